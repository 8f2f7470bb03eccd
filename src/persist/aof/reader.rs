//! Reads a file of logged commands in chunks of whole commands, and tells what is wrong with the rest.
//!
//! Must stay true: a chunk holds whole commands only, each of a name that is known; nothing is reserved from a
//! claimed length that the file has not backed with bytes.
use std::io::{self, Read};

/// Bytes of commands in a chunk, unless one command has more.
const CHUNK_BYTES: usize = 64 * 1024;
/// Bytes read at once.
const READ_BYTES: usize = 256 * 1024;
/// A line with a number or a note is shorter.
const LINE_BYTES_MAX: usize = 1024;

/// Why a file cannot be read on.
#[derive(Debug)]
pub enum Fault {
    /// The file ends within a command, or within a transaction.
    CutOff {
        /// Where the last whole command, not of a transaction that has no end, ends.
        valid_up_to: u64,
        /// The file ends within a transaction.
        in_transaction: bool,
    },
    /// Something else than commands; where it begins.
    Format(u64),
    /// A command that does not exist.
    Unknown(Vec<u8>),
    /// The system refused.
    Read(io::Error),
}

/// What the head of the unread bytes is.
enum Head {
    /// A command of so many bytes; its name.
    Command(usize, std::ops::Range<usize>),
    /// A note of so many bytes.
    Note(usize),
    /// The beginning of one of these; at least so many bytes are missing.
    Partial(usize),
    /// Neither.
    Garbage,
}

/// Reads whole commands from a file.
pub struct Reader<R> {
    source: R,
    is_known: fn(&[u8]) -> bool,
    buffer: Vec<u8>,
    /// Bytes at the start of `buffer` that were handed out.
    taken: usize,
    /// Position in the file of the start of `buffer`.
    origin: u64,
    /// Where the transaction that is open began.
    transaction_at: Option<u64>,
}

impl<R: Read> Reader<R> {
    /// Reads `source`, which stands at `position` of the file. `is_known`: whether a command has this name.
    pub fn new(source: R, position: u64, is_known: fn(&[u8]) -> bool) -> Reader<R> {
        Reader { source, is_known, buffer: Vec::new(), taken: 0, origin: position, transaction_at: None }
    }

    /// Position in the file of what comes next.
    pub fn position(&self) -> u64 {
        self.origin + self.taken as u64
    }

    /// The next commands; `None`: the file has ended behind a whole one, and no transaction is open.
    ///
    /// # Errors
    /// What is there instead of commands. All commands before it were handed out, those of a transaction without an
    /// end, too.
    pub fn next_commands(&mut self) -> Result<Option<&[u8]>, Fault> {
        let (mut from, mut to) = (self.taken, self.taken);
        loop {
            match head(&self.buffer[to..]) {
                Head::Command(bytes, name) => {
                    let name = &self.buffer[to + name.start..to + name.end];
                    let is_known = (self.is_known)(name);
                    if !is_known && from < to {
                        break;
                    }
                    if !is_known {
                        return Err(Fault::Unknown(name.to_vec()));
                    }
                    self.heed_transaction(to, to + bytes);
                    to += bytes;
                    if to - from >= CHUNK_BYTES {
                        break;
                    }
                }
                Head::Note(bytes) if from == to => (from, to) = (from + bytes, to + bytes),
                Head::Note(_) | Head::Garbage | Head::Partial(_) if from < to => break,
                Head::Note(_) => unreachable!("both cases were seen to"),
                Head::Garbage => return Err(Fault::Format(self.origin + to as u64)),
                Head::Partial(missing) => {
                    self.taken = to;
                    if !self.fill(missing)? {
                        return self.ended();
                    }
                    (from, to) = (self.taken, self.taken);
                }
            }
        }
        self.taken = to;
        Ok(Some(&self.buffer[from..to]))
    }

    fn heed_transaction(&mut self, from: usize, to: usize) {
        let command = &self.buffer[from..to];
        let is = |whole: &[u8]| command.eq_ignore_ascii_case(whole);
        if is(b"*1\r\n$5\r\nMULTI\r\n") {
            self.transaction_at = Some(self.origin + from as u64);
        } else if is(b"*1\r\n$4\r\nEXEC\r\n") {
            self.transaction_at = None;
        }
    }

    /// Reads more, at least `missing` bytes unless the file has fewer. `false`: it has no more.
    fn fill(&mut self, missing: usize) -> Result<bool, Fault> {
        self.buffer.drain(..self.taken);
        self.origin += self.taken as u64;
        self.taken = 0;
        let before = self.buffer.len();
        // Doubling: a long command is looked through a few times only.
        let wanted = missing.max(READ_BYTES).max(before);
        // Grows as bytes arrive, whatever is wanted.
        let source = &mut self.source;
        source.by_ref().take(wanted as u64).read_to_end(&mut self.buffer).map_err(Fault::Read)?;
        Ok(self.buffer.len() > before)
    }

    fn ended(&self) -> Result<Option<&[u8]>, Fault> {
        let is_whole = self.taken == self.buffer.len();
        if is_whole && self.transaction_at.is_none() {
            return Ok(None);
        }
        let valid_up_to = self.transaction_at.unwrap_or(self.position());
        Err(Fault::CutOff { valid_up_to, in_transaction: is_whole && self.transaction_at.is_some() })
    }
}

/// A line's content and where the next one begins.
enum Line {
    Whole(usize, usize),
    Partial,
    Garbage,
}

/// Reads a line with a mark and a number, or a note.
fn line(bytes: &[u8], mark: u8) -> Line {
    match bytes.first() {
        None => return Line::Partial,
        Some(byte) if *byte != mark => return Line::Garbage,
        Some(_) => {}
    }
    let window = &bytes[..bytes.len().min(LINE_BYTES_MAX)];
    match memchr::memchr(b'\n', window) {
        Some(end) if mark == b'#' => Line::Whole(0, end + 1),
        Some(end) if window[end - 1] == b'\r' => match number(&window[1..end - 1]) {
            Some(number) => Line::Whole(number, end + 1),
            None => Line::Garbage,
        },
        Some(_) => Line::Garbage,
        None if window.len() == LINE_BYTES_MAX => Line::Garbage,
        None if mark == b'#' => Line::Partial,
        None => {
            let digits = window[1..].strip_suffix(b"\r").unwrap_or(&window[1..]);
            if digits.is_empty() && window.len() == 1 || number(digits).is_some() {
                Line::Partial
            } else {
                Line::Garbage
            }
        }
    }
}

fn number(digits: &[u8]) -> Option<usize> {
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    digits
        .iter()
        .try_fold(0usize, |sum, digit| digit.is_ascii_digit().then(|| sum * 10 + usize::from(digit - b'0')))
}

fn head(bytes: &[u8]) -> Head {
    if bytes.first() == Some(&b'#') {
        return match line(bytes, b'#') {
            Line::Whole(_, end) => Head::Note(end),
            Line::Partial => Head::Partial(1),
            Line::Garbage => Head::Garbage,
        };
    }
    let (count, mut at) = match line(bytes, b'*') {
        Line::Whole(0, _) | Line::Garbage => return Head::Garbage,
        Line::Whole(count, end) => (count, end),
        Line::Partial => return Head::Partial(1),
    };
    let mut name = 0..0;
    for index in 0..count {
        let (length, start) = match line(&bytes[at..], b'$') {
            Line::Whole(length, end) => (length, at + end),
            Line::Partial => return Head::Partial(1),
            Line::Garbage => return Head::Garbage,
        };
        let end = start + length;
        let rest = bytes.get(end..).unwrap_or_default();
        match rest {
            [b'\r', b'\n', ..] => {}
            [] | [b'\r'] => return Head::Partial(end + 2 - bytes.len()),
            _ => return Head::Garbage,
        }
        if index == 0 {
            name = start..end;
        }
        at = end + 2;
    }
    Head::Command(at, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &[&str] = &[
        "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n",
        "#TS:1700000000\r\n",
        "*3\r\n$3\r\nset\r\n$1\r\nk\r\n$4\r\n\r\n*1\r\n",
        "*1\r\n$5\r\nMULTI\r\n",
        "*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n",
        "#TS:1700000001\r\n",
        "*1\r\n$4\r\nEXEC\r\n",
        "*3\r\n$3\r\nSET\r\n$0\r\n\r\n$1\r\nv\r\n",
    ];

    /// All commands, and how it ended.
    fn read(bytes: &[u8]) -> (Vec<u8>, Result<(), Fault>) {
        let mut reader = Reader::new(bytes, 0, |name| name != b"nope");
        let mut all = Vec::new();
        loop {
            match reader.next_commands() {
                Ok(Some(chunk)) => all.extend_from_slice(chunk),
                Ok(None) => return (all, Ok(())),
                Err(fault) => return (all, Err(fault)),
            }
        }
    }

    #[test]
    fn commands_come_without_notes() {
        let (all, end) = read(GOOD.concat().as_bytes());
        let commands: Vec<&str> = GOOD.iter().copied().filter(|part| !part.starts_with('#')).collect();
        assert_eq!(String::from_utf8(all).unwrap(), commands.concat());
        assert!(end.is_ok());
        assert!(read(b"").1.is_ok());
    }

    #[test]
    fn a_file_may_be_cut_at_every_byte() {
        let text = GOOD.concat();
        // Where a cut leaves whole commands and no open transaction.
        let mut ends = vec![0];
        for part in GOOD {
            ends.push(ends.last().unwrap() + part.len());
        }
        let (open, close) = (ends[3], ends[7]);
        for cut in 0..text.len() {
            let within = |end: &&usize| **end <= cut && (**end <= open || **end >= close);
            let expected = *ends.iter().filter(within).max().unwrap() as u64;
            match read(&text.as_bytes()[..cut]).1 {
                Ok(()) => assert_eq!(expected, cut as u64),
                Err(Fault::CutOff { valid_up_to, in_transaction }) => {
                    assert_eq!(valid_up_to, expected, "cut at {cut}");
                    assert!(expected < cut as u64);
                    assert_eq!(in_transaction, ends.contains(&cut), "cut at {cut}");
                }
                Err(fault) => panic!("cut at {cut}: {fault:?}"),
            }
        }
    }

    #[test]
    fn what_is_no_command_is_told_from_what_is_cut_off() {
        let good = GOOD[0];
        for bad in [
            "x",
            "\0\0",
            "\r\n",
            "PING\r\n",
            "*0\r\n",
            "*-1\r\n",
            "*1\r\n*1\r\n",
            "*1\n$4\nPING\n",
            "*1\r\n$4\r\nPINGxx",
            "*1\r\n$-4\r\n",
            "*1x",
            "*1\r\n$4x",
            "*12345678901234567890\r\n",
            "*1\r\n$4\r\nPINGx",
        ] {
            let (all, end) = read(format!("{good}{bad}").as_bytes());
            assert_eq!(all, good.as_bytes(), "{bad:?}");
            assert!(matches!(end, Err(Fault::Format(at)) if at == good.len() as u64), "{bad:?} {end:?}");
        }
        let (_, end) = read(format!("{good}*1\r\n$4\r\nnope\r\n").as_bytes());
        assert!(matches!(end, Err(Fault::Unknown(name)) if name == b"nope"));
    }

    #[test]
    fn claims_reserve_nothing() {
        for claim in ["*999999999999\r\n", "*2\r\n$999999999999999\r\nab", "*1\r\n$99999999999999999\r\n"] {
            let mut reader = Reader::new(claim.as_bytes(), 0, |_| true);
            assert!(matches!(reader.next_commands(), Err(Fault::CutOff { valid_up_to: 0, .. })));
            assert!(reader.buffer.capacity() < 1024);
        }
    }

    #[test]
    fn large_commands_and_many_commands_come_in_order() {
        let large = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$700000\r\n{}\r\n", "x".repeat(700_000));
        let many: String =
            (0..20_000).map(|n| format!("*3\r\n$3\r\nSET\r\n$5\r\n{n:05}\r\n$1\r\nv\r\n")).collect();
        let text = format!("{many}{large}{many}");
        let (all, end) = read(text.as_bytes());
        assert!(end.is_ok() && all == text.as_bytes());
    }
}
