//! The manifest: which files are the append-only log, in the order in which they are loaded.
//!
//! One line per file: `file NAME seq NUMBER type LETTER`, further pairs allowed. `b` is the base, at most one; `i` are
//! the increments, numbers ascending; `h` are files that a rewrite has made superfluous. Format and refusals are those of
//! Redis 7 and later.
//!
//! Must stay true: what [`Manifest::text`] gives, [`Manifest::parse`] reads as the same manifest.
use std::fmt::Write as _;

use crate::wire::inline;

/// Bytes of a file's name at most, by the system.
const NAME_BYTES_MAX: usize = 255;
/// Bytes of a line at most, its end included: Redis's 1024, and what a name may take beyond that when it is quoted.
const LINE_BYTES_MAX: usize = 1024 + 64;

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// All data at some moment.
    Base,
    /// What was changed since.
    Increment,
    /// No longer needed.
    History,
}

impl Role {
    fn letter(self) -> char {
        match self {
            Role::Base => 'b',
            Role::Increment => 'i',
            Role::History => 'h',
        }
    }
}

/// A file of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name, without a directory.
    pub name: Vec<u8>,
    /// Its number among those of its kind.
    pub sequence: i64,
}

/// Which files are the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// All data at some moment.
    pub base: Option<Entry>,
    /// What was changed since, in order.
    pub increments: Vec<Entry>,
    /// No longer needed, not deleted yet.
    pub history: Vec<Entry>,
    /// The greatest number of a base so far.
    base_sequence: i64,
    /// The greatest number of an increment so far.
    increment_sequence: i64,
}

/// Why a manifest is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Number and text of the line that is wrong.
    pub line: Option<(usize, String)>,
    /// What is wrong.
    pub reason: &'static str,
}

/// The words of one line.
#[derive(Default)]
struct Words {
    name: Option<Vec<u8>>,
    sequence: i64,
    role: u8,
}

/// A number as C's `atoll` reads it.
fn leading_number(text: &[u8]) -> i64 {
    let text = text.trim_ascii_start();
    let (sign, digits) = match text.split_first() {
        Some((b'-', rest)) => (-1, rest),
        Some((b'+', rest)) => (1, rest),
        _ => (1, text),
    };
    digits
        .iter()
        .take_while(|digit| digit.is_ascii_digit())
        .fold(0i64, |sum, digit| sum.saturating_mul(10).saturating_add(sign * i64::from(digit - b'0')))
}

impl Words {
    fn of(line: &[u8]) -> Result<Words, &'static str> {
        const INVALID: &str = "Invalid AOF manifest file format";
        let words = inline::split_words(line).ok_or(INVALID)?;
        if words.len() < 6 || words.len() % 2 == 1 {
            return Err(INVALID);
        }
        let mut found = Words::default();
        for pair in words.chunks_exact(2) {
            let (key, value) = (&pair[0][..], &pair[1][..]);
            if key.eq_ignore_ascii_case(b"file") {
                if memchr::memchr2(b'/', b'\\', value).is_some() {
                    return Err("File can't be a path, just a filename");
                }
                found.name = Some(value.to_vec());
            } else if key.eq_ignore_ascii_case(b"seq") {
                found.sequence = leading_number(value);
            } else if key.eq_ignore_ascii_case(b"type") {
                found.role = value.first().copied().unwrap_or(0);
            }
        }
        if found.name.is_none() || found.sequence == 0 || found.role == 0 {
            return Err(INVALID);
        }
        Ok(found)
    }
}

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// What does not follow the format.
    pub fn parse(text: &[u8]) -> Result<Manifest, Refusal> {
        let mut manifest = Manifest::default();
        if text.is_empty() {
            return Err(Refusal { line: None, reason: "Found an empty AOF manifest" });
        }
        for (index, line) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
            if line[0] == b'#' && line.len() <= LINE_BYTES_MAX {
                continue;
            }
            if !line.ends_with(b"\n") || line.len() > LINE_BYTES_MAX {
                return Err(Refusal { line: None, reason: "The AOF manifest file contains too long line" });
            }
            let line = line.trim_ascii();
            let taken = Words::of(line).and_then(|words| manifest.take(words));
            taken.map_err(|reason| Refusal {
                line: Some((index + 1, String::from_utf8_lossy(line).into_owned())),
                reason,
            })?;
        }
        Ok(manifest)
    }

    fn take(&mut self, words: Words) -> Result<(), &'static str> {
        let entry = Entry { name: words.name.unwrap_or_default(), sequence: words.sequence };
        if entry.name.len() > NAME_BYTES_MAX {
            return Err("File name too long");
        }
        match words.role {
            b'b' if self.base.is_some() => return Err("Found duplicate base file information"),
            b'b' => {
                self.base_sequence = entry.sequence;
                self.base = Some(entry);
            }
            b'h' => self.history.push(entry),
            b'i' if entry.sequence <= self.increment_sequence => {
                return Err("Found a non-monotonic sequence number");
            }
            b'i' => {
                self.increment_sequence = entry.sequence;
                self.increments.push(entry);
            }
            _ => return Err("Unknown AOF file type"),
        }
        Ok(())
    }

    /// The text of the manifest's file.
    pub fn text(&self) -> Vec<u8> {
        let mut text = Vec::new();
        let lines = |entries: &[Entry], role: Role, text: &mut Vec<u8>| {
            for entry in entries {
                text.extend_from_slice(b"file ");
                append_name(&entry.name, text);
                text.extend_from_slice(
                    format!(" seq {} type {}\n", entry.sequence, role.letter()).as_bytes(),
                );
            }
        };
        lines(self.base.as_slice(), Role::Base, &mut text);
        lines(&self.history, Role::History, &mut text);
        lines(&self.increments, Role::Increment, &mut text);
        text
    }

    /// Whether it names no file to load.
    pub fn is_empty(&self) -> bool {
        self.base.is_none() && self.increments.is_empty()
    }

    /// The files to load, in order.
    pub fn to_load(&self) -> impl Iterator<Item = &Entry> {
        self.base.iter().chain(&self.increments)
    }

    /// Takes an old log of one file as the base.
    pub fn adopt(&mut self, name: &[u8]) {
        self.base = Some(Entry { name: name.to_vec(), sequence: 1 });
        self.base_sequence = 1;
    }

    /// A new base, whose predecessor is history. Returns its name.
    pub fn new_base(&mut self, stem: &[u8], is_snapshot: bool) -> Vec<u8> {
        let former = self.base.take();
        self.history.splice(..0, former);
        self.base_sequence = self.base_sequence.saturating_add(1);
        let kind = if is_snapshot { "base.rdb" } else { "base.aof" };
        let name = name_of(stem, self.base_sequence, kind);
        self.base = Some(Entry { name: name.clone(), sequence: self.base_sequence });
        name
    }

    /// A new increment. Returns its name.
    pub fn new_increment(&mut self, stem: &[u8]) -> Vec<u8> {
        self.increment_sequence = self.increment_sequence.saturating_add(1);
        let name = name_of(stem, self.increment_sequence, "incr.aof");
        self.increments.push(Entry { name: name.clone(), sequence: self.increment_sequence });
        name
    }

    /// Makes history of all increments but the last `kept` ones.
    pub fn retire_increments(&mut self, kept: usize) {
        let retired = self.increments.len().saturating_sub(kept);
        let retired: Vec<Entry> = self.increments.drain(..retired).collect();
        self.history.splice(..0, retired.into_iter().rev());
    }
}

fn name_of(stem: &[u8], sequence: i64, kind: &str) -> Vec<u8> {
    [stem, format!(".{sequence}.{kind}").as_bytes()].concat()
}

/// Appends a name, in quotes if it would not be one word otherwise.
fn append_name(name: &[u8], text: &mut Vec<u8>) {
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'\\' | b'\'' | b'"');
    if !name.is_empty() && name.iter().all(is_plain) {
        text.extend_from_slice(name);
        return;
    }
    text.push(b'"');
    let mut escaped = String::new();
    for byte in name {
        match byte {
            b'\\' | b'"' => escaped.extend(['\\', char::from(*byte)]),
            b'\n' => escaped.push_str("\\n"),
            b'\r' => escaped.push_str("\\r"),
            b' '..=b'~' => escaped.push(char::from(*byte)),
            // Writing to a string cannot fail.
            _ => drop(write!(escaped, "\\x{byte:02x}")),
        }
    }
    text.extend_from_slice(escaped.as_bytes());
    text.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> (Option<usize>, &'static str) {
        let refusal = Manifest::parse(text.as_bytes()).unwrap_err();
        (refusal.line.map(|(number, _)| number), refusal.reason)
    }

    #[test]
    fn reads_what_redis_writes() {
        let text = "# made by hand\nfile a.aof.2.base.rdb seq 2 type b\nFILE a.aof.1.incr.aof SEQ 1 TYPE h\n \
                    file \"a b.4.incr.aof\" seq 4 type i startoffset 12 endoffset 99\n\
                    file a.aof.5.incr.aof seq 5 type i startoffset 12\r\n";
        let mut manifest = Manifest::parse(text.as_bytes()).unwrap();
        let names: Vec<_> = manifest.to_load().map(|entry| String::from_utf8_lossy(&entry.name)).collect();
        assert_eq!(names, ["a.aof.2.base.rdb", "a b.4.incr.aof", "a.aof.5.incr.aof"]);
        assert_eq!(manifest.new_increment(b"a.aof"), b"a.aof.6.incr.aof");
        assert_eq!(manifest.new_base(b"a.aof", false), b"a.aof.3.base.aof");
        manifest.retire_increments(1);
        let expected = "file a.aof.3.base.aof seq 3 type b\nfile a.aof.5.incr.aof seq 5 type h\n\
                        file \"a b.4.incr.aof\" seq 4 type h\nfile a.aof.2.base.rdb seq 2 type h\n\
                        file a.aof.1.incr.aof seq 1 type h\nfile a.aof.6.incr.aof seq 6 type i\n";
        assert_eq!(String::from_utf8(manifest.text()).unwrap(), expected);
    }

    #[test]
    fn the_longest_name_is_read_as_it_is_written() {
        let name = vec![b'\xff'; NAME_BYTES_MAX];
        let entry = Entry { name, sequence: i64::MAX };
        let manifest =
            Manifest { increment_sequence: i64::MAX, increments: vec![entry], ..Manifest::default() };
        assert_eq!(Manifest::parse(&manifest.text()), Ok(manifest));
    }

    #[test]
    fn refuses_in_the_words_of_redis() {
        const INVALID: &str = "Invalid AOF manifest file format";
        const LONG: &str = "The AOF manifest file contains too long line";
        let good = "file x seq 1 type b\n";
        assert_eq!(refusal(""), (None, "Found an empty AOF manifest"));
        assert_eq!(refusal("file x seq 1 type b"), (None, LONG));
        assert_eq!(refusal(&format!("{good}file {} seq 1 type i\n", "x".repeat(1080))), (None, LONG));
        let (_, reason) = refusal(&format!("{good}file {} seq 1 type i\n", "x".repeat(256)));
        assert_eq!(reason, "File name too long");
        assert_eq!(refusal(&format!("{good}\n")), (Some(2), INVALID));
        for bad in [
            "file x seq 1",
            "file x seq 1 type",
            "file x seq y type i",
            "file x seq 0 type i",
            "file \"x seq 1 type i",
            "file x seq 1 type \"\"",
            "f x seq 1 type i",
        ] {
            assert_eq!(refusal(&format!("{good}{bad}\n")), (Some(2), INVALID), "{bad}");
        }
        assert_eq!(refusal("file a/b seq 1 type i\n"), (Some(1), "File can't be a path, just a filename"));
        assert_eq!(refusal("file a\\b seq 1 type i\n"), (Some(1), "File can't be a path, just a filename"));
        assert_eq!(refusal(&good.repeat(2)), (Some(2), "Found duplicate base file information"));
        assert_eq!(refusal("file x seq 1 type x\n"), (Some(1), "Unknown AOF file type"));
        for (first, second) in [(2, 1), (2, 2), (1, -1)] {
            let text = format!("file x seq {first} type i\nfile y seq {second} type i\n");
            assert_eq!(refusal(&text), (Some(2), "Found a non-monotonic sequence number"));
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_written_is_read(
            names in proptest::collection::vec(proptest::collection::vec(0u8.., 0..20), 0..6),
            bases in 0..3,
        ) {
            let mut manifest = Manifest::default();
            for name in names {
                // What Redis refuses as a name of files cannot come here.
                let stem: Vec<u8> = name.into_iter().filter(|byte| !b"/\\".contains(byte)).collect();
                manifest.new_increment(&stem);
                for _ in 0..bases {
                    manifest.new_base(&stem, true);
                }
                if bases == 1 {
                    manifest.retire_increments(1);
                }
            }
            let text = manifest.text();
            if !text.is_empty() {
                proptest::prop_assert_eq!(Manifest::parse(&text).unwrap(), manifest);
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in "(file|seq|type|a|1|2|b|h|i| |\"|\n|\\\\x|#|é)*") {
            if let Ok(manifest) = Manifest::parse(text.as_bytes()) {
                let again = manifest.text();
                if !again.is_empty() {
                    proptest::prop_assert_eq!(Manifest::parse(&again).unwrap(), manifest);
                }
            }
        }
    }
}
