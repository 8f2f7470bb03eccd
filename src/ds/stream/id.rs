//! Ids of log entries: a time in milliseconds and a number that tells the entries of one millisecond apart.
use std::fmt;

/// The longest text of an id.
const TEXT_BYTES_MAX: usize = 41;

/// The id of an entry. Ids are ordered by time, then number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    /// Milliseconds since the epoch, unless the client says otherwise.
    pub ms: u64,
    /// Number within the millisecond.
    pub seq: u64,
}

impl StreamId {
    /// The lowest id, which no entry has: it stands for "none".
    pub const MIN: StreamId = StreamId { ms: 0, seq: 0 };
    /// The highest id.
    pub const MAX: StreamId = StreamId { ms: u64::MAX, seq: u64::MAX };

    /// An id from its parts.
    pub const fn new(ms: u64, seq: u64) -> StreamId {
        StreamId { ms, seq }
    }

    /// Whether it is the lowest one.
    pub fn is_min(self) -> bool {
        self == StreamId::MIN
    }

    /// The id behind it; none behind the highest.
    pub fn next(self) -> Option<StreamId> {
        match self.seq.checked_add(1) {
            Some(seq) => Some(StreamId { ms: self.ms, seq }),
            None => Some(StreamId { ms: self.ms.checked_add(1)?, seq: 0 }),
        }
    }

    /// The id before it; none before the lowest.
    pub fn previous(self) -> Option<StreamId> {
        match self.seq.checked_sub(1) {
            Some(seq) => Some(StreamId { ms: self.ms, seq }),
            None => Some(StreamId { ms: self.ms.checked_sub(1)?, seq: u64::MAX }),
        }
    }

    /// Its distance from `base`, part by part, as a node stores it.
    pub(super) fn minus(self, base: StreamId) -> (i64, i64) {
        (self.ms.wrapping_sub(base.ms) as i64, self.seq.wrapping_sub(base.seq) as i64)
    }

    /// The id at that distance.
    pub(super) fn plus(self, (ms, seq): (i64, i64)) -> StreamId {
        StreamId { ms: self.ms.wrapping_add(ms as u64), seq: self.seq.wrapping_add(seq as u64) }
    }

    /// Its text, with a byte of choice between the parts.
    #[inline]
    pub fn text(self, between: u8) -> IdText {
        let mut text = IdText { bytes: [0; TEXT_BYTES_MAX], len: 0 };
        text.push(itoa::Buffer::new().format(self.ms).as_bytes());
        text.push(&[between]);
        text.push(itoa::Buffer::new().format(self.seq).as_bytes());
        text
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.seq)
    }
}

/// The text of an id, on the stack.
pub struct IdText {
    bytes: [u8; TEXT_BYTES_MAX],
    len: usize,
}

impl IdText {
    #[inline]
    fn push(&mut self, part: &[u8]) {
        self.bytes[self.len..self.len + part.len()].copy_from_slice(part);
        self.len += part.len();
    }

    /// The bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_follow_each_other() {
        let id = StreamId::new;
        for (one, next) in [
            (id(0, 0), id(0, 1)),
            (id(5, 7), id(5, 8)),
            (id(5, u64::MAX), id(6, 0)),
            (id(u64::MAX, 3), id(u64::MAX, 4)),
        ] {
            assert!(one < next);
            assert_eq!((one.next(), next.previous()), (Some(next), Some(one)));
        }
        assert_eq!((StreamId::MAX.next(), StreamId::MIN.previous()), (None, None));
    }

    #[test]
    fn texts_and_distances() {
        assert_eq!(StreamId::MAX.text(b'-').as_bytes(), b"18446744073709551615-18446744073709551615");
        assert_eq!(StreamId::new(7, 0).text(b'.').as_bytes(), b"7.0");
        let (base, other) = (StreamId::new(1, u64::MAX), StreamId::new(u64::MAX, 0));
        assert_eq!(base.plus(other.minus(base)), other);
        assert_eq!(StreamId::new(5, 1).minus(StreamId::new(3, 4)), (2, -3));
    }
}
