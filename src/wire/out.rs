//! The one writer of replies. It appends to the connection's output buffer and knows RESP2 and RESP3, so that
//! handlers name a shape once (`map`, `set`, `double`, `null` ...).
use super::error::Error;
use crate::base::num;

/// The protocol version of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Protocol {
    /// RESP2, the default.
    #[default]
    Resp2,
    /// RESP3, after HELLO 3.
    Resp3,
}

/// The writer. `buf` holds encoded replies in order.
#[derive(Debug, Default)]
pub struct Out {
    /// What was written.
    pub buf: Vec<u8>,
    /// How to encode what is written next.
    pub protocol: Protocol,
}

impl Out {
    /// A writer with an empty buffer.
    pub fn new(protocol: Protocol) -> Out {
        Out { buf: Vec::new(), protocol }
    }

    #[inline]
    fn is3(&self) -> bool {
        self.protocol == Protocol::Resp3
    }

    /// A type byte, a number and a line end, in one append.
    #[inline(always)]
    fn head(&mut self, kind: u8, n: u64) {
        if n < 10 {
            self.buf.extend_from_slice(&[kind, b'0' + n as u8, b'\r', b'\n']);
        } else if n < 100 {
            self.buf.extend_from_slice(&[kind, b'0' + (n / 10) as u8, b'0' + (n % 10) as u8, b'\r', b'\n']);
        } else {
            self.line(kind, itoa::Buffer::new().format(n).as_bytes());
        }
    }

    #[inline]
    fn line(&mut self, kind: u8, text: &[u8]) {
        self.buf.reserve(text.len() + 3);
        self.buf.push(kind);
        self.buf.extend_from_slice(text);
        self.buf.extend_from_slice(b"\r\n");
    }

    /// `+OK`.
    #[inline]
    pub fn ok(&mut self) {
        self.buf.extend_from_slice(b"+OK\r\n");
    }

    /// A status line; `text` must hold no line break.
    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// An error line.
    #[cold]
    pub fn error(&mut self, error: &Error) {
        self.line(b'-', error.to_string().as_bytes());
    }

    /// An integer.
    #[inline]
    pub fn int(&mut self, n: i64) {
        if (0..10).contains(&n) {
            self.head(b':', n as u64);
        } else {
            self.line(b':', itoa::Buffer::new().format(n).as_bytes());
        }
    }

    /// A count.
    #[inline]
    pub fn count(&mut self, n: usize) {
        self.head(b':', n as u64);
    }

    /// 1 or 0.
    #[inline]
    pub fn flag(&mut self, yes: bool) {
        self.head(b':', u64::from(yes));
    }

    /// A binary-safe string.
    #[inline(always)]
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.buf.reserve(bytes.len() + 32);
        self.head(b'$', bytes.len() as u64);
        self.buf.extend_from_slice(bytes);
        self.buf.extend_from_slice(b"\r\n");
    }

    /// An integer as a string.
    #[inline]
    pub fn bulk_int(&mut self, n: i64) {
        self.bulk(itoa::Buffer::new().format(n).as_bytes());
    }

    /// No value.
    #[inline]
    pub fn null(&mut self) {
        self.buf.extend_from_slice(if self.is3() { b"_\r\n" } else { b"$-1\r\n" });
    }

    /// No value where RESP2 has a null array.
    pub fn null_array(&mut self) {
        self.buf.extend_from_slice(if self.is3() { b"_\r\n" } else { b"*-1\r\n" });
    }

    /// An array of `n` replies that follow.
    #[inline]
    pub fn array(&mut self, n: usize) {
        self.head(b'*', n as u64);
    }

    /// Where the next reply will start, for [`Out::insert_at`].
    pub fn mark(&self) -> usize {
        self.buf.len()
    }

    /// Has `f` write what must come at `mark`, before all that was written since: the head of an array whose
    /// length was not known.
    pub fn insert_at(&mut self, mark: usize, f: impl FnOnce(&mut Out)) {
        let end = self.buf.len();
        f(self);
        let inserted = self.buf.len() - end;
        self.buf[mark..].rotate_right(inserted);
    }

    /// A map of `pairs` keys and values that follow, in turns.
    pub fn map(&mut self, pairs: usize) {
        if self.is3() { self.head(b'%', pairs as u64) } else { self.head(b'*', 2 * pairs as u64) }
    }

    /// A set of `n` replies that follow.
    pub fn set(&mut self, n: usize) {
        self.head(if self.is3() { b'~' } else { b'*' }, n as u64);
    }

    /// A message out of the request order, of `n` replies that follow.
    pub fn push(&mut self, n: usize) {
        self.head(if self.is3() { b'>' } else { b'*' }, n as u64);
    }

    /// A float.
    pub fn double(&mut self, v: f64) {
        let text = num::f64_text(v);
        if self.is3() { self.line(b',', &text) } else { self.bulk(&text) }
    }

    /// True or false.
    pub fn boolean(&mut self, v: bool) {
        match (self.is3(), v) {
            (true, true) => self.buf.extend_from_slice(b"#t\r\n"),
            (true, false) => self.buf.extend_from_slice(b"#f\r\n"),
            (false, _) => self.flag(v),
        }
    }

    /// An integer beyond 64 bits, as text.
    pub fn big_number(&mut self, text: &str) {
        if self.is3() { self.line(b'(', text.as_bytes()) } else { self.bulk(text.as_bytes()) }
    }

    /// Text for people; `format` has three letters.
    pub fn verbatim(&mut self, format: &str, text: &[u8]) {
        if !self.is3() {
            return self.bulk(text);
        }
        self.head(b'=', text.len() as u64 + 4);
        self.buf.extend_from_slice(format.as_bytes());
        self.buf.push(b':');
        self.buf.extend_from_slice(text);
        self.buf.extend_from_slice(b"\r\n");
    }

    /// Attributes of the reply that follows: `pairs` keys and values. Only RESP3 knows them.
    pub fn attribute(&mut self, pairs: usize) {
        debug_assert!(self.is3());
        self.head(b'|', pairs as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(f: impl Fn(&mut Out)) -> (String, String) {
        let text = |protocol| {
            let mut out = Out::new(protocol);
            f(&mut out);
            String::from_utf8(out.buf).unwrap()
        };
        (text(Protocol::Resp2), text(Protocol::Resp3))
    }

    #[test]
    fn heads_come_later() {
        let late = |o: &mut Out| {
            o.ok();
            let mark = o.mark();
            o.int(1);
            o.bulk(b"two");
            o.insert_at(mark, |o| o.array(2));
        };
        assert_eq!(both(late).0, "+OK\r\n*2\r\n:1\r\n$3\r\ntwo\r\n");
    }

    #[test]
    fn shapes_of_both_protocols() {
        let same = |s: &str| (s.to_string(), s.to_string());
        assert_eq!(both(|o| o.bulk(&[b'x'; 11])), same("$11\r\nxxxxxxxxxxx\r\n"));
        assert_eq!(both(|o| o.int(-5)), same(":-5\r\n"));
        assert_eq!(both(|o| o.count(123)), same(":123\r\n"));
        assert_eq!(both(Out::null), ("$-1\r\n".into(), "_\r\n".into()));
        assert_eq!(both(Out::null_array), ("*-1\r\n".into(), "_\r\n".into()));
        assert_eq!(both(|o| o.map(2)), ("*4\r\n".into(), "%2\r\n".into()));
        assert_eq!(both(|o| o.set(2)), ("*2\r\n".into(), "~2\r\n".into()));
        assert_eq!(both(|o| o.boolean(true)), (":1\r\n".into(), "#t\r\n".into()));
        assert_eq!(both(|o| o.verbatim("txt", b"hi")), ("$2\r\nhi\r\n".into(), "=6\r\ntxt:hi\r\n".into()));
    }
}
