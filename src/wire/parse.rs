//! The fused request parser: one pass over the read buffer yields the argument spans of a command.
//!
//! Must stay true: nothing is copied, and nothing is reserved from a count or length that the client merely
//! claims: spans are pushed as arguments arrive. A command cut anywhere is taken up again where it stopped, so
//! that a million arguments in many small reads cost one pass. Texts of protocol errors are Redis's.
//! Checked against a plain reference parser by `fuzz/fuzz_targets/parse.rs` and the tests below.
use memchr::memchr;

/// A piece of the read buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Byte offset in the buffer.
    pub at: u32,
    /// Length in bytes.
    pub len: u32,
}

impl Span {
    /// The bytes.
    #[inline]
    pub fn of(self, buf: &[u8]) -> &[u8] {
        &buf[self.at as usize..self.at as usize + self.len as usize]
    }
}

/// A count or line longer than this without an end is refused (as in Redis).
pub const LINE_BYTES_MAX: usize = 64 * 1024;
/// Spans that make it worth remembering where a cut command stopped.
const RESUME_ARGS_MIN: usize = 32;

/// What the connection allows.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// `proto-max-bulk-len`, bytes.
    pub bulk_bytes_max: u64,
    /// The client still has to authenticate: at most 10 arguments of 16 KiB.
    pub unauthenticated: bool,
}

/// One step of the parser.
#[derive(Debug, PartialEq)]
pub enum Parsed {
    /// A command; its spans were pushed (none for an empty one), the next one starts at `end`.
    Command {
        /// Byte offset of what follows.
        end: usize,
    },
    /// More bytes are needed.
    Incomplete,
    /// A line in the inline form from `start`, without its line end, which ends before `end`.
    Inline {
        /// Byte offset of the line's first byte.
        line: Span,
        /// Byte offset of what follows.
        end: usize,
    },
    /// A violation; the text follows `ERR Protocol error: `. The connection must close after it.
    Violation(Violation),
}

/// How a client broke the protocol.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub enum Violation {
    /// `*` with a bad number.
    MultibulkLength,
    /// `$` with a bad number.
    BulkLength,
    /// Something else where `$` must be.
    ExpectedDollar(u8),
    /// An endless `*` line.
    CountTooBig,
    /// An endless `$` line.
    BulkTooBig,
    /// An endless inline line.
    InlineTooBig,
    /// Quotes of an inline line do not match.
    Quotes,
    /// More arguments than a client may send before it authenticates.
    UnauthenticatedMultibulk,
    /// A longer argument than a client may send before it authenticates.
    UnauthenticatedBulk,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Violation::MultibulkLength => "invalid multibulk length",
            Violation::BulkLength => "invalid bulk length",
            Violation::ExpectedDollar(got) => return write!(f, "expected '$', got '{}'", char::from(*got)),
            Violation::CountTooBig => "too big mbulk count string",
            Violation::BulkTooBig => "too big bulk count string",
            Violation::InlineTooBig => "too big inline request",
            Violation::Quotes => "unbalanced quotes in request",
            Violation::UnauthenticatedMultibulk => "unauthenticated multibulk length",
            Violation::UnauthenticatedBulk => "unauthenticated bulk length",
        })
    }
}

/// The parser of one connection: only remembers a long command that was cut.
#[derive(Debug, Default)]
pub struct Parser {
    /// Arguments still to come; 0: nothing to take up.
    missing: u32,
    /// Where the cut command starts in the buffer.
    start: usize,
    /// Where to go on, from the command's start.
    at: usize,
    /// Spans so far, from the command's start.
    spans: Vec<Span>,
}

impl Parser {
    /// Parses the command that starts at `start`, pushing its spans. Bytes of a cut command stay the same until the
    /// next call with its start; when they move in the buffer, [`Parser::moved`] must be told.
    #[inline(always)]
    pub fn next(&mut self, buf: &[u8], start: usize, spans: &mut Vec<Span>, limits: Limits) -> Parsed {
        let Some(&first) = buf.get(start) else { return Parsed::Incomplete };
        if first != b'*' {
            return inline_line(buf, start);
        }
        let (missing, at) = if self.missing > 0 && self.start == start {
            self.take_up(start, spans)
        } else {
            match number_line(buf, start + 1) {
                Line::Number(n, _) if n > i64::from(i32::MAX) => {
                    return Parsed::Violation(Violation::MultibulkLength);
                }
                Line::Number(n, _) if limits.unauthenticated && n > 10 => {
                    return Parsed::Violation(Violation::UnauthenticatedMultibulk);
                }
                Line::Number(n, end) if n <= 0 => return Parsed::Command { end },
                Line::Number(n, end) => (n as u32, end),
                Line::Bad => return Parsed::Violation(Violation::MultibulkLength),
                Line::Cut if buf.len() - start > LINE_BYTES_MAX => {
                    return Parsed::Violation(Violation::CountTooBig);
                }
                Line::Cut => return Parsed::Incomplete,
            }
        };
        self.arguments(buf, start, missing, at, spans, limits)
    }

    /// The bytes of the buffer moved `by` towards its front.
    pub fn moved(&mut self, by: usize) {
        self.start = self.start.wrapping_sub(by);
    }

    #[cold]
    fn take_up(&mut self, start: usize, spans: &mut Vec<Span>) -> (u32, usize) {
        let shift = start as u32;
        spans.extend(self.spans.drain(..).map(|s| Span { at: s.at + shift, len: s.len }));
        (std::mem::take(&mut self.missing), self.at + start)
    }

    #[inline(always)]
    fn arguments(
        &mut self,
        buf: &[u8],
        start: usize,
        mut missing: u32,
        mut at: usize,
        spans: &mut Vec<Span>,
        limits: Limits,
    ) -> Parsed {
        while missing > 0 {
            match buf.get(at) {
                Some(b'$') => {}
                Some(other) => return Parsed::Violation(Violation::ExpectedDollar(*other)),
                None => return self.cut(start, missing, at, spans),
            }
            match number_line(buf, at + 1) {
                Line::Number(n, _) if n < 0 || n as u64 > limits.bulk_bytes_max => {
                    return Parsed::Violation(Violation::BulkLength);
                }
                Line::Number(n, _) if limits.unauthenticated && n > 16384 => {
                    return Parsed::Violation(Violation::UnauthenticatedBulk);
                }
                Line::Number(n, body) => {
                    let end = body + n as usize;
                    if buf.len() < end + 2 {
                        return self.cut(start, missing, at, spans);
                    }
                    spans.push(Span { at: body as u32, len: n as u32 });
                    at = end + 2;
                    missing -= 1;
                }
                Line::Bad => return Parsed::Violation(Violation::BulkLength),
                Line::Cut if buf.len() - at > LINE_BYTES_MAX => {
                    return Parsed::Violation(Violation::BulkTooBig);
                }
                Line::Cut => return self.cut(start, missing, at, spans),
            }
        }
        Parsed::Command { end: at }
    }

    /// Remembers a long command; a short one is cheaper to parse again. Takes its spans back.
    #[cold]
    fn cut(&mut self, start: usize, missing: u32, at: usize, spans: &mut Vec<Span>) -> Parsed {
        // The spans of this command are those at or after its start.
        let first = spans.partition_point(|s| (s.at as usize) < start);
        if spans.len() - first >= RESUME_ARGS_MIN {
            let shift = start as u32;
            self.spans.clear();
            self.spans.extend(spans[first..].iter().map(|s| Span { at: s.at - shift, len: s.len }));
            (self.missing, self.at, self.start) = (missing, at - start, start);
        }
        spans.truncate(first);
        Parsed::Incomplete
    }
}

enum Line {
    /// The number, and where the next byte is.
    Number(i64, usize),
    Bad,
    Cut,
}

/// The number from `at` up to a carriage return and one more byte (which Redis does not look at either).
#[inline(always)]
fn number_line(buf: &[u8], at: usize) -> Line {
    // The common case, one or two digits, with one bounds check.
    if let Some(&[first, second, third, _]) = buf.get(at..at + 4) {
        let (tens, ones) = (first.wrapping_sub(b'0'), second.wrapping_sub(b'0'));
        if tens < 10 && second == b'\r' {
            return Line::Number(i64::from(tens), at + 3);
        }
        if (1..10).contains(&tens) && ones < 10 && third == b'\r' {
            return Line::Number(i64::from(tens) * 10 + i64::from(ones), at + 4);
        }
    }
    number_line_any(buf, at)
}

fn number_line_any(buf: &[u8], at: usize) -> Line {
    let rest = &buf[at..];
    // A count that is longer than any number need not be searched to the buffer's end.
    let Some(len) = memchr(b'\r', &rest[..rest.len().min(LINE_BYTES_MAX + 1)]) else { return Line::Cut };
    if rest.len() < len + 2 {
        return Line::Cut;
    }
    match crate::base::num::parse_i64(&rest[..len]) {
        Some(n) => Line::Number(n, at + len + 2),
        None => Line::Bad,
    }
}

#[cold]
fn inline_line(buf: &[u8], start: usize) -> Parsed {
    let rest = &buf[start..];
    let Some(len) = memchr(b'\n', rest) else {
        return if rest.len() > LINE_BYTES_MAX {
            Parsed::Violation(Violation::InlineTooBig)
        } else {
            Parsed::Incomplete
        };
    };
    let text = if len > 0 && rest[len - 1] == b'\r' { len - 1 } else { len };
    Parsed::Inline { line: Span { at: start as u32, len: text as u32 }, end: start + len + 1 }
}

/// The slow, plain parser that the fused one is compared with.
#[cfg(any(test, feature = "reference"))]
pub mod reference {
    use super::{LINE_BYTES_MAX, Violation};

    /// Parses all of `buf`: the commands, how many bytes they took, and the violation that ended it.
    /// Inline lines come out as one argument with the marker `inline:`.
    pub fn parse_all(buf: &[u8], bulk_bytes_max: u64) -> (Vec<Vec<Vec<u8>>>, usize, Option<Violation>) {
        let (mut commands, mut at) = (Vec::new(), 0);
        loop {
            match parse_one(&buf[at..], bulk_bytes_max) {
                Ok(Some((command, used))) => {
                    commands.push(command);
                    at += used;
                }
                Ok(None) => return (commands, at, None),
                Err(violation) => return (commands, at, Some(violation)),
            }
        }
    }

    type One = Result<Option<(Vec<Vec<u8>>, usize)>, Violation>;

    fn parse_one(buf: &[u8], bulk_bytes_max: u64) -> One {
        if buf.is_empty() {
            return Ok(None);
        }
        if buf[0] != b'*' {
            let Some(end) = buf.iter().position(|b| *b == b'\n') else {
                return if buf.len() > LINE_BYTES_MAX { Err(Violation::InlineTooBig) } else { Ok(None) };
            };
            let mut line = buf[..end].to_vec();
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            return Ok(Some((vec![[b"inline:", &line[..]].concat()], end + 1)));
        }
        let Some((count, mut at)) = line(&buf[1..], Violation::MultibulkLength, Violation::CountTooBig)?
        else {
            return Ok(None);
        };
        at += 1;
        if count > i64::from(i32::MAX) {
            return Err(Violation::MultibulkLength);
        }
        let mut args = Vec::new();
        for _ in 0..count.max(0) {
            match buf.get(at) {
                None => return Ok(None),
                Some(b'$') => {}
                Some(other) => return Err(Violation::ExpectedDollar(*other)),
            }
            let Some((len, used)) = line(&buf[at + 1..], Violation::BulkLength, Violation::BulkTooBig)?
            else {
                return Ok(None);
            };
            if len < 0 || len as u64 > bulk_bytes_max {
                return Err(Violation::BulkLength);
            }
            let body = at + 1 + used;
            if buf.len() < body + len as usize + 2 {
                return Ok(None);
            }
            args.push(buf[body..body + len as usize].to_vec());
            at = body + len as usize + 2;
        }
        Ok(Some((args, at)))
    }

    fn line(buf: &[u8], bad: Violation, endless: Violation) -> Result<Option<(i64, usize)>, Violation> {
        let Some(end) = buf.iter().take(LINE_BYTES_MAX + 1).position(|b| *b == b'\r') else {
            return if buf.len() >= LINE_BYTES_MAX { Err(endless) } else { Ok(None) };
        };
        if buf.len() < end + 2 {
            return Ok(None);
        }
        let text = std::str::from_utf8(&buf[..end]).map_err(|_| bad)?;
        let number: i64 = text.parse().map_err(|_| bad)?;
        // Only the canonical form counts: no plus sign, no leading zeros, no minus zero.
        if number.to_string() == text { Ok(Some((number, end + 2))) } else { Err(bad) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: Limits = Limits { bulk_bytes_max: 1000, unauthenticated: false };

    /// Feeds `buf` in pieces cut at `cuts`, as a connection would, and collects what comes out.
    fn run(buf: &[u8], cuts: &[usize]) -> (Vec<Vec<Vec<u8>>>, usize, Option<Violation>) {
        let (mut parser, mut spans, mut commands, mut at) = (Parser::default(), Vec::new(), Vec::new(), 0);
        let mut ends: Vec<usize> = cuts.iter().map(|c| c % (buf.len() + 1)).chain([buf.len()]).collect();
        ends.sort_unstable();
        for end in ends {
            loop {
                spans.clear();
                match parser.next(&buf[..end], at, &mut spans, LIMITS) {
                    Parsed::Command { end: next } => {
                        commands.push(spans.iter().map(|s| s.of(buf).to_vec()).collect());
                        at = next;
                    }
                    Parsed::Inline { line, end: next } => {
                        commands.push(vec![[b"inline:", line.of(buf)].concat()]);
                        at = next;
                    }
                    Parsed::Incomplete => break,
                    Parsed::Violation(v) => return (commands, at, Some(v)),
                }
            }
        }
        (commands, at, None)
    }

    fn piece() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            (0usize..4, 0usize..80).prop_map(|(n, len)| {
                let mut b = format!("*{n}\r\n").into_bytes();
                for _ in 0..n {
                    b.extend(format!("${len}\r\n").bytes().chain(vec![b'x'; len]).chain(*b"\r\n"));
                }
                b
            }),
            Just(b"PING\r\n".to_vec()),
            Just(b"set a \"b\n".to_vec()),
            Just([&b"*40\r\n"[..], &b"$1\r\na\r\n".repeat(40)].concat()),
            "[*$0-9\r\n+-]{0,8}".prop_map(String::into_bytes),
        ]
    }

    proptest! {
        #[test]
        fn equals_the_reference(pieces in proptest::collection::vec(piece(), 0..6),
                                cuts in proptest::collection::vec(any::<usize>(), 0..6)) {
            let buf = pieces.concat();
            prop_assert_eq!(run(&buf, &cuts), reference::parse_all(&buf, LIMITS.bulk_bytes_max));
        }
    }

    #[test]
    fn every_cut_of_a_long_command() {
        let buf = [&b"*70\r\n"[..], &b"$3\r\nabc\r\n".repeat(70), b"*1\r\n$4\r\nPING\r\n"].concat();
        let whole = reference::parse_all(&buf, 1000);
        assert_eq!(whole.0.len(), 2);
        for cut in 0..buf.len() {
            assert_eq!(run(&buf, &[cut]), whole, "cut at {cut}");
        }
        assert_eq!(run(&buf, &(0..buf.len()).collect::<Vec<_>>()), whole);
    }

    #[test]
    fn claims_reserve_nothing() {
        let mut spans = Vec::new();
        let step = Parser::default().next(b"*1048576\r\n$1\r\na\r\n", 0, &mut spans, LIMITS);
        assert_eq!(step, Parsed::Incomplete);
        assert!(spans.capacity() < 64);
    }

    #[test]
    fn violations() {
        let cases: [(&[u8], Violation); 6] = [
            (b"*x\r\n", Violation::MultibulkLength),
            (b"*3000000000\r\n", Violation::MultibulkLength),
            (b"*1\r\n$-1\r\n", Violation::BulkLength),
            (b"*1\r\n$1001\r\n", Violation::BulkLength),
            (b"*1\r\n$-\r\n", Violation::BulkLength),
            (b"*1\r\n:1\r\n", Violation::ExpectedDollar(b':')),
        ];
        for (bytes, violation) in cases {
            assert_eq!(run(bytes, &[]).2, Some(violation), "{}", String::from_utf8_lossy(bytes));
        }
        assert_eq!(run(&[&b"*"[..], &[b'1'; 70_000]].concat(), &[]).2, Some(Violation::CountTooBig));
        assert_eq!(run(&[b'a'; 70_000], &[]).2, Some(Violation::InlineTooBig));
    }
}
