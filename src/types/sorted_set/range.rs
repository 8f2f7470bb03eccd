//! Ranges of scores and of members, as commands name them.
use std::cmp::Ordering;

use crate::base::num;
use crate::ds::listpack::Element;

/// Scores from one end to the other; an open end does not belong to the range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreRange {
    /// Low end.
    pub min: f64,
    /// Whether the low end is open.
    pub min_open: bool,
    /// High end.
    pub max: f64,
    /// Whether the high end is open.
    pub max_open: bool,
}

impl ScoreRange {
    /// Reads both ends: a number, in front of it `(` for an open end. `None`: one of them is no number.
    pub fn parse(min: &[u8], max: &[u8]) -> Option<ScoreRange> {
        let end = |text: &[u8]| match text {
            [b'(', number @ ..] => Some((num::parse_bound(number)?, true)),
            number => Some((num::parse_bound(number)?, false)),
        };
        let ((min, min_open), (max, max_open)) = (end(min)?, end(max)?);
        Some(ScoreRange { min, min_open, max, max_open })
    }

    /// Whether a score lies beyond the low end.
    #[inline]
    pub fn is_above_min(&self, score: f64) -> bool {
        if self.min_open { score > self.min } else { score >= self.min }
    }

    /// Whether a score lies on this side of the high end.
    #[inline]
    pub fn is_below_max(&self, score: f64) -> bool {
        if self.max_open { score < self.max } else { score <= self.max }
    }
}

/// An end of a range of members.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LexEnd<'a> {
    /// Before all members.
    Lowest,
    /// Behind all members.
    Highest,
    /// At a text.
    At {
        /// The text.
        text: &'a [u8],
        /// Whether the text itself is out of the range.
        open: bool,
    },
}

impl<'a> LexEnd<'a> {
    /// Reads `-`, `+`, `[text` or `(text`.
    fn parse(item: &'a [u8]) -> Option<LexEnd<'a>> {
        match item {
            b"-" => Some(LexEnd::Lowest),
            b"+" => Some(LexEnd::Highest),
            [b'(', text @ ..] => Some(LexEnd::At { text, open: true }),
            [b'[', text @ ..] => Some(LexEnd::At { text, open: false }),
            _ => None,
        }
    }
}

/// How the texts of a member and of an end compare.
pub(super) fn compare_text(member: Element<'_>, text: &[u8]) -> Ordering {
    member.with_text(|own| own.cmp(text))
}

/// Members from one end to the other, in the order of their bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LexRange<'a> {
    /// Low end.
    pub min: LexEnd<'a>,
    /// High end.
    pub max: LexEnd<'a>,
}

impl<'a> LexRange<'a> {
    /// Reads both ends; see [`LexEnd`]. `None`: one of them is not written as an end.
    pub fn parse(min: &'a [u8], max: &'a [u8]) -> Option<LexRange<'a>> {
        Some(LexRange { min: LexEnd::parse(min)?, max: LexEnd::parse(max)? })
    }

    /// Whether a member lies beyond the low end.
    pub fn is_above_min(&self, member: Element<'_>) -> bool {
        match self.min {
            LexEnd::Lowest => true,
            LexEnd::Highest => false,
            LexEnd::At { text, open: true } => compare_text(member, text).is_gt(),
            LexEnd::At { text, open: false } => compare_text(member, text).is_ge(),
        }
    }

    /// Whether a member lies on this side of the high end.
    pub fn is_below_max(&self, member: Element<'_>) -> bool {
        match self.max {
            LexEnd::Lowest => false,
            LexEnd::Highest => true,
            LexEnd::At { text, open: true } => compare_text(member, text).is_lt(),
            LexEnd::At { text, open: false } => compare_text(member, text).is_le(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_scores() {
        let range = ScoreRange::parse(b"(1.5", b"+inf").unwrap();
        assert_eq!(range, ScoreRange { min: 1.5, min_open: true, max: f64::INFINITY, max_open: false });
        assert!(!range.is_above_min(1.5) && range.is_above_min(2.0) && range.is_below_max(f64::INFINITY));
        let range = ScoreRange::parse(b"", b"(").unwrap();
        assert!(range.is_above_min(-0.0) && !range.is_below_max(0.0) && range.is_below_max(-1.0));
        for (min, max) in [("x", "1"), ("1", "x"), ("((1", "2"), ("nan", "1"), ("1", "[2")] {
            assert_eq!(ScoreRange::parse(min.as_bytes(), max.as_bytes()), None);
        }
    }

    #[test]
    fn ends_of_members() {
        let range = LexRange::parse(b"[b", b"(d").unwrap();
        let within =
            |text: &[u8]| range.is_above_min(Element::of(text)) && range.is_below_max(Element::of(text));
        let found: Vec<bool> = [&b"a"[..], b"b", b"c", b"cz", b"d"].into_iter().map(within).collect();
        assert_eq!(found, [false, true, true, true, false]);
        let all = LexRange::parse(b"-", b"+").unwrap();
        assert!(all.is_above_min(Element::Int(7)) && all.is_below_max(Element::Bytes(b"\xff")));
        let none = LexRange::parse(b"+", b"-").unwrap();
        assert!(!none.is_above_min(Element::Int(7)) && !none.is_below_max(Element::Int(7)));
        // Integers compare by their texts.
        assert!(LexRange::parse(b"[10", b"[9").unwrap().is_below_max(Element::Int(10)));
        for (min, max) in [("b", "+"), ("-", "b"), ("--", "+"), ("", "+"), ("-", "+x")] {
            assert_eq!(LexRange::parse(min.as_bytes(), max.as_bytes()), None);
        }
    }
}
