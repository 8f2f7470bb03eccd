//! Keys among the arguments of a command, in the terms of Redis's key specifications.
//!
//! Must stay true: this is the one extractor; routing, ACL, tracking, WATCH and COMMAND GETKEYS find keys by it.
use crate::base::num;

/// Some keys among the arguments, in the terms of Redis's key specifications: where the search begins, and how the keys
/// are found from there.
#[derive(Clone, Copy, Debug)]
pub struct KeyPart {
    /// Key spec flags as COMMAND INFO prints them, such as `RW access update`.
    pub flags: &'static str,
    /// Where the search begins.
    pub begin: Begin,
    /// How keys are found from there.
    pub find: Find,
}

/// Where the search for keys begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// At this argument.
    At(i32),
    /// Behind this word, looked for from an argument on; negative: from the end, going backwards.
    Word(&'static str, i32),
    /// Behind this word, which is one of the options that stand in front: the others are skipped with their arguments,
    /// as many as the list says. The number is what COMMAND INFO tells as the place where the search begins.
    Option(&'static str, i32, &'static [(&'static str, usize)]),
    /// Behind the last of this word among options, of which any may stand before it and behind it; those with
    /// arguments are listed with the number of these. COMMAND INFO cannot tell it.
    LastOption(&'static str, &'static [(&'static str, usize)]),
    /// Nowhere: the names of the keys follow from patterns and data.
    Derived,
}

/// How keys are found from where the search began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Find {
    /// A run of keys.
    Range {
        /// The last key, counted from the beginning of the search; negative: from the end of the arguments (-1 where
        /// there is a limit).
        last: i32,
        /// Distance of two keys.
        step: i32,
        /// Only so large a part of the arguments that are left has keys: 2 means one half; 0: all.
        limit: i32,
    },
    /// The argument at which the search began says how many keys follow it.
    Count,
}

/// The flags of a part that finds no keys.
const NOT_KEYS: &str = "not_key";

impl KeyPart {
    /// Argument index of the first key, where that is the same in every call.
    pub const fn first(&self) -> Option<u32> {
        match (self.begin, self.find) {
            (Begin::At(at), Find::Range { .. }) => Some(at as u32),
            (Begin::At(at), Find::Count) => Some(at as u32 + 1),
            (Begin::Word(..) | Begin::Option(..) | Begin::LastOption(..) | Begin::Derived, _) => None,
        }
    }

    /// Whether what it finds are keys. Names that a cluster routes by are found like keys and are none.
    #[inline]
    pub const fn has_keys(&self) -> bool {
        self.flags.as_bytes()[0] != NOT_KEYS.as_bytes()[0]
    }

    /// Whether it is a word with one key behind it, which may be repeated.
    #[inline]
    pub(super) const fn names_one_key(&self) -> bool {
        matches!((self.begin, self.find), (Begin::Word(_, 0..), Find::Range { last: 0, .. }))
    }

    /// Whether its count, which stands in the call, says no key, or more keys than there are.
    pub fn is_miscounted<'a>(&self, count: usize, arg: impl Fn(usize) -> &'a [u8]) -> bool {
        match (self.begin, self.find) {
            (Begin::At(at), Find::Count) if (at as usize) < count => {
                let behind = count - at as usize - 1;
                !num::parse_i64(arg(at as usize)).is_some_and(|keys| (1..=behind as i64).contains(&keys))
            }
            _ => false,
        }
    }

    /// Calls `f` with the argument index of each key; `arg` gives the text of an argument.
    #[inline]
    pub(super) fn for_each<'a>(
        &self,
        count: usize,
        arg: &impl Fn(usize) -> &'a [u8],
        f: &mut impl FnMut(usize),
    ) {
        let first = match self.begin {
            Begin::At(at) => Some(at as usize),
            Begin::Word(word, from) => find_word(count, arg, word, from).map(|at| at + 1),
            Begin::Option(word, _, others) => find_option(count, arg, word, others).map(|at| at + 1),
            Begin::LastOption(word, others) => find_last_option(count, arg, word, others).map(|at| at + 1),
            Begin::Derived => None,
        };
        let Some(first) = first else { return };
        if first >= count {
            return;
        }
        match self.find {
            Find::Range { last, step, limit } => {
                // One behind the last key.
                let end = match last {
                    0.. => first + last as usize + 1,
                    _ if limit > 1 => first + (count - first) / limit as usize,
                    _ => count.saturating_sub(-(last + 1) as usize),
                };
                (first..end.min(count)).step_by(step as usize).for_each(f);
            }
            Find::Count => {
                let keys = num::parse_i64(arg(first)).and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
                (first + 1..(first + 1).saturating_add(keys).min(count)).for_each(f);
            }
        }
    }
}

/// The key that the last of these parts' words names, of those that name one key each: STORE and STOREDIST may be
/// repeated, and only one of them holds.
#[cold]
pub(super) fn last_named<'a, 'p>(
    parts: &'p [KeyPart],
    count: usize,
    arg: &impl Fn(usize) -> &'a [u8],
) -> Option<(usize, &'p KeyPart)> {
    let names = |part: &KeyPart, at: usize| match part.begin {
        Begin::Word(word, from) => at >= from as usize && arg(at).eq_ignore_ascii_case(word.as_bytes()),
        _ => false,
    };
    let (mut at, mut last) = (1, None);
    while at + 1 < count {
        match parts.iter().find(|part| part.names_one_key() && names(part, at)) {
            Some(part) => {
                last = Some((at + 1, part));
                at += 2;
            }
            None => at += 1,
        }
    }
    last
}

/// Argument index of a word in any case.
fn find_word<'a>(count: usize, arg: &impl Fn(usize) -> &'a [u8], word: &str, from: i32) -> Option<usize> {
    let is_word = |at: &usize| arg(*at).eq_ignore_ascii_case(word.as_bytes());
    if from >= 0 {
        (from as usize..count).find(is_word)
    } else {
        (1..=count.checked_add_signed(from as isize)?).rev().find(is_word)
    }
}

/// Argument index of a word among options: see [`Begin::Option`].
fn find_option<'a>(
    count: usize,
    arg: &impl Fn(usize) -> &'a [u8],
    word: &str,
    others: &[(&str, usize)],
) -> Option<usize> {
    let mut at = 1;
    while at < count {
        let is = |word: &str| arg(at).eq_ignore_ascii_case(word.as_bytes());
        if is(word) {
            return Some(at);
        }
        at += 1 + others.iter().find(|(other, _)| is(other))?.1;
    }
    None
}

/// Argument index of the last of a word among options that takes an argument: see [`Begin::LastOption`].
fn find_last_option<'a>(
    count: usize,
    arg: &impl Fn(usize) -> &'a [u8],
    word: &str,
    others: &[(&str, usize)],
) -> Option<usize> {
    let (mut at, mut found) = (2, None);
    while at < count {
        let is = |word: &str| arg(at).eq_ignore_ascii_case(word.as_bytes());
        let mut arguments = others.iter().find(|(other, _)| is(other)).map_or(0, |(_, arguments)| *arguments);
        if is(word) && at + 1 < count {
            found = Some(at);
            arguments = 1;
        }
        at += 1 + arguments;
    }
    found
}

/// One key at `at`.
pub const fn key(flags: &'static str, at: i32) -> KeyPart {
    key_range(flags, at, at, 1)
}

/// Keys from `first` to `last` (negative: from the end), `step` apart.
pub const fn key_range(flags: &'static str, first: i32, last: i32, step: i32) -> KeyPart {
    let last = if last < 0 { last } else { last - first };
    KeyPart { flags, begin: Begin::At(first), find: Find::Range { last, step, limit: 0 } }
}

/// Names from `first` to `last` that are no keys and that a cluster routes by.
pub const fn not_keys(first: i32, last: i32) -> KeyPart {
    key_range(NOT_KEYS, first, last, 1)
}

/// As many keys as the argument `at` says, behind it.
pub const fn key_count(flags: &'static str, at: i32) -> KeyPart {
    KeyPart { flags, begin: Begin::At(at), find: Find::Count }
}

/// The one key behind `word`, which is looked for from argument `from` on.
pub const fn key_behind(flags: &'static str, word: &'static str, from: i32) -> KeyPart {
    KeyPart { flags, begin: Begin::Word(word, from), find: Find::Range { last: 0, step: 1, limit: 0 } }
}

/// The first half of all arguments behind `word`, which is looked for from argument `from` on.
pub const fn half_behind(flags: &'static str, word: &'static str, from: i32) -> KeyPart {
    KeyPart { flags, begin: Begin::Word(word, from), find: Find::Range { last: -1, step: 1, limit: 2 } }
}

/// [`half_behind`] for a word that stands among options: `others` are those before it, with the number of arguments
/// that each takes, so that none of these is taken for the word. `from` is what COMMAND INFO says.
pub const fn half_behind_options(
    flags: &'static str,
    word: &'static str,
    from: i32,
    others: &'static [(&'static str, usize)],
) -> KeyPart {
    KeyPart { begin: Begin::Option(word, from, others), ..half_behind(flags, word, from) }
}

/// The key behind the last `word` among options, of which `others` take so many arguments.
pub const fn key_behind_last(
    flags: &'static str,
    word: &'static str,
    others: &'static [(&'static str, usize)],
) -> KeyPart {
    KeyPart { begin: Begin::LastOption(word, others), ..key(flags, 2) }
}

/// Keys whose names follow from patterns and data.
pub const fn keys_derived(flags: &'static str) -> KeyPart {
    KeyPart { begin: Begin::Derived, ..key(flags, 2) }
}

/// The usual key parts.
pub mod keys {
    use super::{KeyPart, key, key_range};

    /// Reads its first argument.
    pub const READ: &[KeyPart] = &[key("RO access", 1)];
    /// Looks at its first argument without its value.
    pub const LOOK: &[KeyPart] = &[key("RO", 1)];
    /// Overwrites its first argument.
    pub const OVERWRITE: &[KeyPart] = &[key("OW update", 1)];
    /// Changes its first argument.
    pub const UPDATE: &[KeyPart] = &[key("RW update", 1)];
    /// Reads and changes its first argument.
    pub const READ_UPDATE: &[KeyPart] = &[key("RW access update", 1)];
    /// Reads all arguments.
    pub const READ_ALL: &[KeyPart] = &[key_range("RO access", 1, -1, 1)];
    /// Looks at all arguments.
    pub const LOOK_ALL: &[KeyPart] = &[key_range("RO", 1, -1, 1)];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_keys_may_be_wrong() {
        let is_wrong = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            key_count("RO", 2).is_miscounted(words.len(), |at| words[at].as_bytes())
        };
        for right in ["zunionstore z 1 a", "zunionstore z 2 a b WEIGHTS", "zunionstore z"] {
            assert!(!is_wrong(right), "{right}");
        }
        for wrong in ["zunionstore z 0 a", "zunionstore z 2 a", "zunionstore z x a", "eval s 2147483647 k"] {
            assert!(is_wrong(wrong), "{wrong}");
        }
    }
}
