//! Where a snapshot goes: a thread that writes what it is sent to a file of its own, and puts that in the place of the
//! target when all of it is on the disk.
//!
//! Must stay true: the target is the old file or the whole new one at any moment; a file that was not finished is removed;
//! the records of one lane (a shard) that were left open are not parted by those of others.
use std::collections::VecDeque;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::host::error_text;
use crate::rdb::crc64::crc64;
use crate::rdb::file::op;
use crate::rt::disk::{self, File};
use crate::rt::log::{Level, line};

/// Bytes written between two flushes to the disk.
const SYNC_BYTES: u64 = 4 << 20;
/// Buffers that wait to be used again, and the largest that does.
const SPARES_MAX: usize = 8;
const SPARE_BYTES_MAX: usize = 256 * 1024;

/// What to write.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The file to be replaced.
    pub target: PathBuf,
    /// The file that is written meanwhile, in the same folder.
    pub temporary: PathBuf,
    /// It is in the snapshot format, which has an end.
    pub is_snapshot: bool,
    /// A checksum stands behind the end.
    pub has_checksum: bool,
    /// Flushed to the disk piece by piece.
    pub syncs_often: bool,
}

/// How it ended: bytes written, or why not.
pub type Ended = Result<u64, Failure>;

/// Why a file was not written.
#[derive(Debug)]
pub enum Failure {
    /// The system refused.
    Io(io::Error),
    /// Nobody wanted the rest.
    Aborted,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Io(error) => f.write_str(&error_text(error)),
            Failure::Aborted => f.write_str("aborted"),
        }
    }
}

enum Message {
    Chunk { lane: usize, bytes: Vec<u8>, is_open: bool },
    End,
}

/// What a producer and the thread share.
struct State {
    /// Bytes that were sent and are not written, by lane.
    in_flight: Box<[AtomicU64]>,
    aborted: AtomicBool,
    failed: AtomicBool,
}

/// The producers' end. Dropped without [`Target::finish`], it aborts. Clones are for other producers.
#[derive(Clone)]
pub struct Target {
    sender: flume::Sender<Message>,
    spares: flume::Receiver<Vec<u8>>,
    state: Arc<State>,
}

impl Target {
    /// Starts a thread that takes records of so many lanes. `then` runs on it when the file is in its place, or will never be.
    ///
    /// # Errors
    /// When there can be no more threads.
    pub fn start(plan: Plan, lanes: usize, then: impl FnOnce(Ended) + Send + 'static) -> io::Result<Target> {
        let (sender, receiver) = flume::unbounded();
        let (spare_sender, spares) = flume::bounded(SPARES_MAX);
        let in_flight = (0..lanes).map(|_| AtomicU64::new(0)).collect();
        let state =
            Arc::new(State { in_flight, aborted: AtomicBool::new(false), failed: AtomicBool::new(false) });
        let target = Target { sender, spares, state: state.clone() };
        let write = move || {
            let ended = Sink { plan: &plan, spares: spare_sender, state: &state }.write(&receiver);
            if ended.is_err() {
                state.failed.store(true, Ordering::Relaxed);
                // It may not even be there.
                let _ = disk::remove(&plan.temporary);
            }
            // Nobody shall wait for room.
            drop(receiver);
            state.in_flight.iter().for_each(|bytes| bytes.store(0, Ordering::Relaxed));
            then(ended);
        };
        std::thread::Builder::new().name("snapshot".into()).stack_size(256 * 1024).spawn(write)?;
        Ok(target)
    }

    /// Sends bytes of a lane. While `is_open`, the next bytes of that lane go directly behind these, and those of other
    /// lanes wait; so whoever has left a lane open goes on whatever is in flight of others.
    pub fn send(&self, lane: usize, bytes: Vec<u8>, is_open: bool) {
        self.state.in_flight[lane].fetch_add(bytes.len() as u64, Ordering::Relaxed);
        // A thread that has failed takes nothing.
        let _ = self.sender.send(Message::Chunk { lane, bytes, is_open });
    }

    /// A buffer to fill: an old one, if there is any.
    pub fn buffer(&self) -> Vec<u8> {
        self.spares.try_recv().unwrap_or_default()
    }

    /// Bytes of a lane that were sent and are not written yet.
    pub fn in_flight(&self, lane: usize) -> u64 {
        self.state.in_flight[lane].load(Ordering::Relaxed)
    }

    /// Whether the file will never be complete, so more bytes are of no use.
    pub fn has_failed(&self) -> bool {
        self.state.failed.load(Ordering::Relaxed) || self.state.aborted.load(Ordering::Relaxed)
    }

    /// All was sent.
    pub fn finish(self) {
        let _ = self.sender.send(Message::End);
    }

    /// Nobody wants the file any more.
    pub fn abort(&self) {
        self.state.aborted.store(true, Ordering::Relaxed);
        // The thread may wait for more, and others may keep it from learning that there is none.
        let _ = self.sender.send(Message::End);
    }
}

/// The thread's end.
struct Sink<'a> {
    plan: &'a Plan,
    spares: flume::Sender<Vec<u8>>,
    state: &'a State,
}

/// A chunk that waits: its lane, its bytes, and whether it leaves the lane open.
type Waiting = (usize, Vec<u8>, bool);

/// The chunk that may be written next: of the lane that is open, else the first.
fn next_waiting(open: Option<usize>, waiting: &mut VecDeque<Waiting>) -> Option<Waiting> {
    match open {
        None => waiting.pop_front(),
        Some(lane) => waiting.remove(waiting.iter().position(|chunk| chunk.0 == lane)?),
    }
}

/// The file while it is written.
struct Output {
    file: File,
    sum: u64,
    bytes: u64,
    synced: u64,
}

impl Sink<'_> {
    fn write(&self, receiver: &flume::Receiver<Message>) -> Ended {
        let file = File::create(&self.plan.temporary).map_err(Failure::Io)?;
        let mut output = Output { file, sum: 0, bytes: 0, synced: 0 };
        let mut open: Option<usize> = None;
        let mut waiting: VecDeque<Waiting> = VecDeque::new();
        loop {
            // Without an end before it, a closed channel is an abort.
            let message = receiver.recv().map_err(|_| Failure::Aborted)?;
            if self.state.aborted.load(Ordering::Relaxed) {
                return Err(Failure::Aborted);
            }
            let Message::Chunk { lane, bytes, is_open } = message else { break };
            if open.is_some_and(|open| open != lane) {
                waiting.push_back((lane, bytes, is_open));
                continue;
            }
            self.put(lane, bytes, &mut output)?;
            open = is_open.then_some(lane);
            while let Some((lane, bytes, is_open)) = next_waiting(open, &mut waiting) {
                self.put(lane, bytes, &mut output)?;
                open = is_open.then_some(lane);
            }
        }
        for (lane, bytes, _) in waiting {
            self.put(lane, bytes, &mut output)?;
        }
        self.end(output).map_err(Failure::Io)
    }

    fn put(&self, lane: usize, bytes: Vec<u8>, output: &mut Output) -> Result<(), Failure> {
        if self.state.aborted.load(Ordering::Relaxed) {
            return Err(Failure::Aborted);
        }
        self.append(&bytes, output).map_err(Failure::Io)?;
        self.state.in_flight[lane].fetch_sub(bytes.len() as u64, Ordering::Relaxed);
        self.reuse(bytes);
        Ok(())
    }

    fn append(&self, bytes: &[u8], output: &mut Output) -> io::Result<()> {
        if self.plan.has_checksum {
            output.sum = crc64(output.sum, bytes);
        }
        output.file.write_all(bytes)?;
        output.bytes += bytes.len() as u64;
        if self.plan.syncs_often && output.bytes - output.synced >= SYNC_BYTES {
            output.file.sync()?;
            output.synced = output.bytes;
        }
        Ok(())
    }

    fn reuse(&self, mut bytes: Vec<u8>) {
        if bytes.capacity() <= SPARE_BYTES_MAX {
            bytes.clear();
            let _ = self.spares.try_send(bytes);
        }
    }

    /// Writes the end, and puts the file in its place.
    fn end(&self, mut output: Output) -> io::Result<u64> {
        if self.plan.is_snapshot {
            self.append(&[op::END], &mut output)?;
            // 0 stands for no checksum.
            let sum = output.sum.to_le_bytes();
            output.file.write_all(&sum)?;
            output.bytes += sum.len() as u64;
        }
        output.file.sync()?;
        disk::rename(&self.plan.temporary, &self.plan.target)?;
        disk::sync_folder(self.plan.target.parent().unwrap_or(Path::new("")))?;
        Ok(output.bytes)
    }
}

/// Says in the log why a file was not written.
pub fn log_failure(failure: &Failure, plan: &Plan) {
    let text = format!("Write error while saving DB to the disk({}): {failure}", plan.target.display());
    line(Level::Warning, &text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(name: &str) -> Plan {
        let folder = std::env::temp_dir().join(format!("perigee-target-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (target, temporary) = (folder.join("target"), folder.join("temporary"));
        Plan { target, temporary, is_snapshot: true, has_checksum: true, syncs_often: true }
    }

    fn start(plan: &Plan) -> (Target, flume::Receiver<Ended>) {
        let (sender, receiver) = flume::bounded(1);
        let then = move |ended| drop(sender.send(ended));
        (Target::start(plan.clone(), 3, then).unwrap(), receiver)
    }

    fn forget(plan: &Plan) {
        std::fs::remove_dir_all(plan.target.parent().unwrap()).unwrap();
    }

    #[test]
    fn what_is_sent_is_in_the_file_and_what_is_open_stays_together() {
        let plan = plan("whole");
        let (target, ended) = start(&plan);
        let chunks: [(usize, &[u8], bool); 7] = [
            (0, b"a1", false),
            (1, b"b1", true),
            (0, b"a2", true),
            (0, b"a3", false),
            (2, b"c1", false),
            (1, b"b2", true),
            (1, b"b3", false),
        ];
        for (lane, bytes, is_open) in chunks {
            target.send(lane, bytes.to_vec(), is_open);
        }
        target.clone().finish();
        assert_eq!(ended.recv().unwrap().unwrap(), 14 + 9);
        let bytes = std::fs::read(&plan.target).unwrap();
        assert!(bytes.starts_with(b"a1b1b2b3a2a3c1\xff"));
        assert_eq!(bytes[15..], crc64(0, &bytes[..15]).to_le_bytes());
        assert!(!plan.temporary.exists() && (0..3).all(|lane| target.in_flight(lane) == 0));
        forget(&plan);
    }

    #[test]
    fn an_unfinished_file_leaves_the_old_one() {
        let plan = plan("aborted");
        std::fs::write(&plan.target, "old").unwrap();
        for aborts in [true, false] {
            let (target, ended) = start(&plan);
            target.send(0, vec![1; 100], false);
            if aborts {
                target.abort();
            } else {
                drop(target);
            }
            assert!(matches!(ended.recv().unwrap(), Err(Failure::Aborted)));
            assert!(!plan.temporary.exists());
        }
        let missing = Plan { temporary: "/nowhere/at/all".into(), ..plan.clone() };
        let (target, ended) = start(&missing);
        let failure = ended.recv().unwrap().unwrap_err();
        assert_eq!(failure.to_string(), "No such file or directory");
        assert!(target.has_failed());
        assert_eq!(std::fs::read(&plan.target).unwrap(), b"old");
        forget(&plan);
    }
}
