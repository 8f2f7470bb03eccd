//! Glob patterns over bytes, as KEYS, SCAN, PSUBSCRIBE and the ACL rules read them.
//!
//! Every answer equals that of Redis's own matcher, odd corners included, but the time stays bounded: at most
//! one point to go back to is remembered (the latest `*`), so a match costs at most `pattern * text` steps and
//! no recursion. One point is enough because a later `*` can absorb whatever an earlier one could have.

/// Stars (runs of them count once) that may be followed by more pattern. Redis stops recursing at this depth
/// and answers "no match"; a pattern accepted here must not depend on which server reads it.
const INNER_STARS_MAX: u32 = 1000;

/// Whether `text` as a whole matches `pattern`; with `nocase`, ASCII letters match either case.
///
/// - `*` any run of bytes, `?` any byte, `\x` the byte `x`, anything else itself.
/// - `[abc]`, `[a-z]` (either order), `[^...]`; inside a class `\x` is the byte `x`, in exactly its case.
///   A class without `]` extends to the end of the pattern. `[]` matches nothing, `[^]` any byte.
/// - A range compares bytes as *signed* numbers: bytes from 0x80 up sort before the ASCII ones.
/// - An empty text matches only an empty pattern: not even `*`. Commands for which a lone `*` means
///   "everything" (KEYS, SCAN) test for it before they ask.
pub fn matches(pattern: &[u8], text: &[u8], nocase: bool) -> bool {
    if text.is_empty() {
        return pattern.is_empty();
    }
    let mut at_pattern = 0;
    let mut at_text = 0;
    let mut resume: Option<Resume> = None;
    let mut inner_stars = 0;
    while at_text < text.len() {
        if pattern.get(at_pattern) == Some(&b'*') {
            at_pattern = skip_stars(pattern, at_pattern);
            if at_pattern == pattern.len() {
                return true;
            }
            inner_stars += 1;
            if inner_stars > INNER_STARS_MAX {
                return false;
            }
            let point = Resume {
                pattern: at_pattern,
                text: at_text,
                literal: literal_at(pattern, at_pattern, nocase),
            };
            let Some(start) = point.candidate(text, at_text) else { return false };
            at_text = start;
            resume = Some(Resume { text: start, ..point });
            continue;
        }
        if let Some(next) = match_one(pattern, at_pattern, text[at_text], nocase) {
            at_pattern = next;
            at_text += 1;
            continue;
        }
        let Some(point) = &mut resume else { return false };
        let Some(start) = point.candidate(text, point.text + 1) else { return false };
        point.text = start;
        at_text = start;
        at_pattern = point.pattern;
    }
    skip_stars(pattern, at_pattern) == pattern.len()
}

/// The whole pattern when it holds no special byte, so that it can name only one text; else `None`.
///
/// An escaped byte counts as special: its text would differ from the pattern.
pub fn literal_prefix(pattern: &[u8]) -> Option<&[u8]> {
    let special = |byte: &u8| matches!(byte, b'*' | b'?' | b'[' | b'\\');
    if pattern.iter().any(special) { None } else { Some(pattern) }
}

/// Where matching takes up again after a mismatch: just behind the latest star.
struct Resume {
    pattern: usize,
    text: usize,
    /// The one byte that can follow the star, when only one can.
    literal: Option<u8>,
}

impl Resume {
    /// The first place from `from` on where the pattern behind the star could begin to match.
    fn candidate(&self, text: &[u8], from: usize) -> Option<usize> {
        let rest = text.get(from..).filter(|rest| !rest.is_empty())?;
        match self.literal {
            Some(byte) => memchr::memchr(byte, rest).map(|skipped| from + skipped),
            None => Some(from),
        }
    }
}

fn skip_stars(pattern: &[u8], mut at: usize) -> usize {
    while pattern.get(at) == Some(&b'*') {
        at += 1;
    }
    at
}

/// The byte that the element at `at` demands, if it is a plain byte whose case matters.
fn literal_at(pattern: &[u8], at: usize, nocase: bool) -> Option<u8> {
    match (pattern[at], pattern.get(at + 1)) {
        (b'?' | b'[', _) => None,
        (b'\\', Some(&escaped)) => Some(escaped),
        (byte, _) => Some(byte),
    }
    .filter(|byte| !nocase || !byte.is_ascii_alphabetic())
}

/// Matches one byte against the element at `at` (not a star); returns where the next element begins.
fn match_one(pattern: &[u8], at: usize, byte: u8, nocase: bool) -> Option<usize> {
    let (wanted, next) = match (*pattern.get(at)?, pattern.get(at + 1)) {
        (b'?', _) => return Some(at + 1),
        (b'[', _) => return match_class(pattern, at + 1, byte, nocase),
        (b'\\', Some(&escaped)) => (escaped, at + 2),
        (literal, _) => (literal, at + 1),
    };
    let same = if nocase { wanted.eq_ignore_ascii_case(&byte) } else { wanted == byte };
    same.then_some(next)
}

/// Matches one byte against the class whose inside begins at `at`.
fn match_class(pattern: &[u8], mut at: usize, byte: u8, nocase: bool) -> Option<usize> {
    let negated = pattern.get(at) == Some(&b'^');
    at += usize::from(negated);
    let mut found = false;
    loop {
        match pattern[at..] {
            [] => break,
            [b'\\', escaped, ..] => {
                // An escape is exact even when case is ignored, and cannot begin a range.
                found |= escaped == byte;
                at += 2;
            }
            [b']', ..] => {
                at += 1;
                break;
            }
            [first, b'-', last, ..] => {
                found |= in_range(first, last, byte, nocase);
                at += 3;
            }
            [literal, ..] => {
                found |= if nocase { literal.eq_ignore_ascii_case(&byte) } else { literal == byte };
                at += 1;
            }
        }
    }
    (found != negated).then_some(at)
}

/// Whether `byte` lies between two ends given in either order. The ends are put in order *before* their case
/// is folded, so `[Z-a]` without case is the empty range z to a.
fn in_range(first: u8, last: u8, byte: u8, nocase: bool) -> bool {
    let signed = |byte: u8| byte as i8;
    let (low, high) = if signed(first) > signed(last) { (last, first) } else { (first, last) };
    let fold = |byte: u8| signed(if nocase { byte.to_ascii_lowercase() } else { byte });
    (fold(low)..=fold(high)).contains(&fold(byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A plain recursive reading of the same rules: slow, obvious, without pruning.
    fn model(pattern: &[u8], text: &[u8], nocase: bool) -> bool {
        match pattern {
            [] => text.is_empty(),
            [b'*', rest @ ..] => (0..=text.len()).any(|skipped| model(rest, &text[skipped..], nocase)),
            _ => {
                let Some((&byte, rest)) = text.split_first() else { return false };
                match_one(pattern, 0, byte, nocase).is_some_and(|next| model(&pattern[next..], rest, nocase))
            }
        }
    }

    #[track_caller]
    fn check(pattern: &[u8], text: &[u8], expected: bool) {
        assert_eq!(
            matches(pattern, text, false),
            expected,
            "{} on {}",
            pattern.escape_ascii(),
            text.escape_ascii()
        );
    }

    #[test]
    fn stars_and_marks() {
        check(b"", b"", true);
        check(b"", b"a", false);
        check(b"*", b"a", true);
        check(b"h?llo", b"hello", true);
        check(b"h?llo", b"hllo", false);
        check(b"h*llo", b"heeeello", true);
        check(b"h**llo", b"hllo", true);
        check(b"*ab", b"aab", true);
        check(b"*aab*aac", b"aaaabaaaac", true);
        check(b"*aab*aac", b"aaaabaaaacd", false);
        check(b"a*", b"a", true);
        check(b"a***", b"a", true);
        check(b"a?*", b"a", false);
        check(b"\0*\0", b"\0\xff\0", true);
    }

    #[test]
    fn an_empty_text_matches_only_an_empty_pattern() {
        check(b"*", b"", false);
        check(b"**", b"", false);
        check(b"?", b"", false);
        check(b"[^]", b"", false);
    }

    #[test]
    fn classes() {
        check(b"h[ae]llo", b"hallo", true);
        check(b"h[ae]llo", b"hillo", false);
        check(b"h[^e]llo", b"hallo", true);
        check(b"h[^e]llo", b"hello", false);
        check(b"h[a-c]llo", b"hbllo", true);
        check(b"h[c-a]llo", b"hbllo", true);
        check(b"h[a-c]llo", b"hdllo", false);
        check(b"[]", b"]", false);
        check(b"[]a]", b"a", false);
        check(b"[^]", b"x", true);
        check(b"[^]x", b"xx", true);
        check(b"[a^]", b"^", true);
        check(b"[!a]", b"!", true);
    }

    #[test]
    fn unterminated_classes_run_to_the_end() {
        check(b"[abc", b"b", true);
        check(b"[abc", b"d", false);
        check(b"[^abc", b"d", true);
        check(b"[", b"[", false);
        check(b"[^", b"x", true);
        // The `]` is the far end of a range here, so nothing closes the class.
        check(b"[a-]b", b"^", true);
        check(b"[a-]b", b"b", true);
        check(b"[a-", b"-", true);
    }

    #[test]
    fn escapes() {
        check(b"\\*", b"*", true);
        check(b"\\*", b"x", false);
        check(b"a\\", b"a\\", true);
        check(b"a\\?b", b"a?b", true);
        check(b"[\\]]", b"]", true);
        check(b"[\\a-z]", b"-", true);
        check(b"[\\a-z]", b"b", false);
        check(b"[a\\", b"\\", true);
        check(b"[*-\\]b", b"Bb", true);
        check(b"*\\*", b"a*", true);
    }

    #[test]
    fn ranges_compare_signed_bytes() {
        check(b"[\x80-\xff]", b"\xc0", true);
        check(b"[a-\xff]", b"b", false);
        check(b"[a-\xff]", b"A", true);
        check(b"[a-\xff]", b"\xfe", false);
    }

    #[test]
    fn case_is_ignored_on_request_only() {
        assert!(matches(b"HeL*[A-C]", b"hello b", true));
        assert!(!matches(b"HeL*[A-C]", b"hello b", false));
        assert!(matches(b"[AB]", b"b", true));
        assert!(matches(b"\\A", b"a", true));
        assert!(!matches(b"[\\A]", b"a", true), "an escape in a class is exact");
        assert!(!matches(b"[Z-a]", b"z", true), "ends are ordered before they are folded");
        assert!(matches(b"*B", b"aab", true));
        assert!(!matches(b"\xc3", b"\xe3", true), "only ASCII letters fold");
    }

    #[test]
    fn hostile_patterns_end_soon() {
        let pattern = [b"a*".repeat(500), b"b".to_vec()].concat();
        assert!(!matches(&pattern, &vec![b'a'; 20_000], false));
        let pattern = [b"*[^b]".repeat(300), b"b".to_vec()].concat();
        assert!(!matches(&pattern, &vec![b'a'; 20_000], false));
    }

    #[test]
    fn the_count_of_inner_stars_is_limited() {
        let text = vec![b'a'; 1100];
        let stars = |count: usize, end: &[u8]| [b"*a".repeat(count), end.to_vec()].concat();
        assert!(matches(&stars(1000, b""), &text, false));
        assert!(matches(&stars(1000, b"*"), &text, false));
        assert!(!matches(&stars(1001, b""), &text, false));
    }

    #[test]
    fn literals_are_recognised() {
        assert_eq!(literal_prefix(b"user:1]"), Some(&b"user:1]"[..]));
        assert_eq!(literal_prefix(b""), Some(&b""[..]));
        for pattern in [&b"a*"[..], b"a?", b"[a", b"\\a"] {
            assert_eq!(literal_prefix(pattern), None);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn agrees_with_the_recursive_model(
            pattern in proptest::collection::vec(proptest::sample::select(&b"aabcB***?[]^-\\\xf0"[..]), 0..12),
            text in proptest::collection::vec(proptest::sample::select(&b"aabcAB]^-\\*\xf0"[..]), 1..12),
            nocase: bool,
        ) {
            prop_assert_eq!(matches(&pattern, &text, nocase), model(&pattern, &text, nocase));
        }

        #[test]
        fn a_literal_matches_itself_alone(text in proptest::collection::vec(any::<u8>(), 0..20)) {
            if let Some(whole) = literal_prefix(&text) {
                prop_assert!(matches(whole, &text, false));
            }
        }
    }
}
