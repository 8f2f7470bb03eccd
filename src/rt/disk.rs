//! Every call of the file system that persistence makes, so that a test can have the n-th one fail.
//!
//! Must stay true: no snapshot and no log reaches the disk past this module; a plan of faults works in builds with debug
//! assertions only.
use std::fs::{self, OpenOptions};
use std::io::{self, IoSlice, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once};

/// The environment variable that holds a [`Plan`] from the start on.
pub const FAULTS_VARIABLE: &str = "PERIGEE_DISK_FAULTS";

/// Kinds of calls, as plans name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Making or truncating a file.
    Create,
    /// Opening a file that is there.
    Open,
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Cutting a file.
    Truncate,
    /// Having a file or a folder reach the disk.
    Sync,
    /// Renaming.
    Rename,
    /// Removing a file.
    Remove,
    /// Making a folder.
    MakeFolder,
    /// Listing a folder.
    List,
}

impl Call {
    const NAMES: [(&'static str, Call); 10] = [
        ("create", Call::Create),
        ("open", Call::Open),
        ("read", Call::Read),
        ("write", Call::Write),
        ("truncate", Call::Truncate),
        ("sync", Call::Sync),
        ("rename", Call::Rename),
        ("remove", Call::Remove),
        ("mkdir", Call::MakeFolder),
        ("list", Call::List),
    ];
}

/// Which calls fail, and how. As text, words in any order: kinds of calls that count (`write sync`; none: all),
/// `at=N` (the first that fails, from 1), `for=N` (how many fail; without it all from there on), `errno=N` (28 if not
/// said), `cut` (a write that fails writes half of its bytes first).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    calls: Vec<Call>,
    at: u64,
    count: u64,
    errno: i32,
    cuts: bool,
    seen: u64,
    failed: u64,
}

impl Plan {
    /// Reads a plan; `None`: a word means nothing.
    pub fn parse(text: &str) -> Option<Plan> {
        let mut plan =
            Plan { calls: Vec::new(), at: 1, count: u64::MAX, errno: 28, cuts: false, seen: 0, failed: 0 };
        for word in text.split_whitespace() {
            match word.split_once('=') {
                Some(("at", number)) => plan.at = number.parse().ok()?,
                Some(("for", number)) => plan.count = number.parse().ok()?,
                Some(("errno", number)) => plan.errno = number.parse().ok()?,
                None if word == "cut" => plan.cuts = true,
                _ => plan.calls.push(Call::NAMES.iter().find(|named| named.0 == word)?.1),
            }
        }
        Some(plan)
    }

    /// Counts a call; whether it fails.
    fn fails(&mut self, call: Call) -> bool {
        if !self.calls.is_empty() && !self.calls.contains(&call) {
            return false;
        }
        self.seen += 1;
        let fails = self.seen >= self.at && self.seen - self.at < self.count;
        self.failed += u64::from(fails);
        fails
    }
}

static HAS_PLAN: AtomicBool = AtomicBool::new(false);
static PLAN: Mutex<Option<Plan>> = Mutex::new(None);
static AT_START: Once = Once::new();

/// Has calls fail by a plan from now on; `None`: none fails. Returns how many the plan before it has failed. Without
/// effect in release builds.
pub fn plan_faults(plan: Option<Plan>) -> u64 {
    HAS_PLAN.store(plan.is_some(), Ordering::Relaxed);
    let Ok(mut known) = PLAN.lock() else { return 0 };
    std::mem::replace(&mut *known, plan).map_or(0, |former| former.failed)
}

/// How a call shall fail: the error, and whether a write is cut.
fn fault(call: Call) -> Option<(io::Error, bool)> {
    if !cfg!(debug_assertions) {
        return None;
    }
    AT_START.call_once(|| {
        if let Some(plan) = std::env::var(FAULTS_VARIABLE).ok().and_then(|text| Plan::parse(&text)) {
            plan_faults(Some(plan));
        }
    });
    if !HAS_PLAN.load(Ordering::Relaxed) {
        return None;
    }
    let mut plan = PLAN.lock().ok()?;
    let plan = plan.as_mut()?;
    plan.fails(call).then(|| (io::Error::from_raw_os_error(plan.errno), plan.cuts))
}

fn check(call: Call) -> io::Result<()> {
    fault(call).map_or(Ok(()), |(error, _)| Err(error))
}

/// An open file.
#[derive(Debug)]
pub struct File(fs::File);

impl File {
    /// Makes a file for writing; one that is there is emptied.
    pub fn create(path: &Path) -> io::Result<File> {
        check(Call::Create)?;
        fs::File::create(path).map(File)
    }

    /// Opens a file for reading.
    pub fn open(path: &Path) -> io::Result<File> {
        check(Call::Open)?;
        fs::File::open(path).map(File)
    }

    /// Opens a file for writing behind what it has; makes it if there is none.
    pub fn append(path: &Path) -> io::Result<File> {
        check(Call::Open)?;
        OpenOptions::new().create(true).append(true).open(path).map(File)
    }

    /// Opens a file to change it in place.
    pub fn edit(path: &Path) -> io::Result<File> {
        check(Call::Open)?;
        OpenOptions::new().read(true).write(true).open(path).map(File)
    }

    /// Bytes in the file.
    pub fn len(&self) -> io::Result<u64> {
        self.0.metadata().map(|facts| facts.len())
    }

    /// Whether the file has no bytes.
    pub fn is_empty(&self) -> io::Result<bool> {
        self.len().map(|bytes| bytes == 0)
    }

    /// Puts the place of the next read or write.
    pub fn seek(&mut self, at: u64) -> io::Result<()> {
        self.0.seek(SeekFrom::Start(at)).map(|_| ())
    }

    /// Writes several pieces at once, as far as the system takes them.
    pub fn write_parts(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match fault(Call::Write) {
            Some((error, true)) => {
                let all: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
                match all.len() / 2 {
                    0 => Err(error),
                    half => (&self.0).write(&all[..half]),
                }
            }
            Some((error, false)) => Err(error),
            None => (&self.0).write_vectored(parts),
        }
    }

    /// Cuts the file, or fills it up with zeros.
    pub fn truncate(&self, bytes: u64) -> io::Result<()> {
        check(Call::Truncate)?;
        self.0.set_len(bytes)
    }

    /// Has the data and what is needed to read it reach the disk.
    pub fn sync(&self) -> io::Result<()> {
        check(Call::Sync)?;
        self.0.sync_data()
    }

    /// Takes the file for this process alone, until it is closed or the process ends. `false`: another one has it.
    pub fn try_lock(&self) -> io::Result<bool> {
        match self.0.try_lock() {
            Ok(()) => Ok(true),
            Err(fs::TryLockError::WouldBlock) => Ok(false),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }
}

impl Read for File {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        check(Call::Read)?;
        self.0.read(into)
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match fault(Call::Write) {
            Some((error, cuts)) => {
                if cuts {
                    self.0.write_all(&bytes[..bytes.len() / 2])?;
                }
                Err(error)
            }
            None => self.0.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Renames a file, over one that is there.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    check(Call::Rename)?;
    fs::rename(from, to)
}

/// Removes a file.
pub fn remove(path: &Path) -> io::Result<()> {
    check(Call::Remove)?;
    fs::remove_file(path)
}

/// Makes a folder; one that is there is fine.
pub fn make_folder(path: &Path) -> io::Result<()> {
    check(Call::MakeFolder)?;
    fs::create_dir_all(path)
}

/// Has the names in a folder reach the disk: behind a creation, a rename, a removal.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    check(Call::Sync)?;
    fs::File::open(folder(path))?.sync_all()
}

/// The files in a folder.
pub fn list(path: &Path) -> io::Result<Vec<PathBuf>> {
    check(Call::List)?;
    fs::read_dir(folder(path))?.map(|entry| entry.map(|entry| entry.path())).collect()
}

/// Whether a file is there.
pub fn exists(path: &Path) -> bool {
    path.exists()
}

/// The folder that no name at all stands for.
fn folder(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_count_the_calls_they_name() {
        let mut plan = Plan::parse("write sync at=2 for=2 errno=5 cut").unwrap();
        assert!(plan.cuts && plan.errno == 5);
        let calls = [Call::Write, Call::Rename, Call::Sync, Call::Write, Call::Write];
        assert_eq!(calls.map(|call| plan.fails(call)), [false, false, true, true, false]);
        let mut all = Plan::parse("at=3").unwrap();
        assert_eq!([Call::Open; 4].map(|call| all.fails(call)), [false, false, true, true]);
        for wrong in ["writes", "at=x", "when=1"] {
            assert_eq!(Plan::parse(wrong), None, "{wrong}");
        }
    }
}
