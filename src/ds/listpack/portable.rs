//! The form that files and dumps hold, and how bytes from outside become stored ones.
//!
//! Must stay true: nothing is believed before it was checked, and what passes also passes [`check`].
use super::entry::{Element, Probe, backlen, backlen_bytes, claimed_body_bytes, decode, encode, load};
use super::{COUNT_BY_WALKING, HEAD_BYTES, PORTABLE_EXTRA_BYTES, count_head};

const PORTABLE_HEAD_BYTES: usize = 6;
const END_MARK: u8 = 0xFF;

/// The portable form of stored bytes.
pub fn to_portable(stored: &[u8]) -> Vec<u8> {
    let total = stored.len() + PORTABLE_EXTRA_BYTES;
    let mut portable = Vec::with_capacity(total);
    portable.extend_from_slice(&(total as u32).to_le_bytes());
    portable.extend_from_slice(stored);
    portable.push(END_MARK);
    portable
}

/// The stored form of portable bytes, which may be anything: `None` unless they are a sound listpack. Entries that
/// are not as [`encode`] writes them (longer than needed, say) are written anew.
pub fn from_portable(portable: &[u8]) -> Option<Vec<u8>> {
    let (head, rest) = portable.split_at_checked(PORTABLE_HEAD_BYTES)?;
    let (&end_mark, entries) = rest.split_last()?;
    let total = u32::from_le_bytes(load(head, 0));
    if end_mark != END_MARK || u32::try_from(portable.len()) != Ok(total) {
        return None;
    }
    let found = survey(entries)?;
    let count = u16::from_le_bytes(load(head, 4));
    if count != COUNT_BY_WALKING && usize::from(count) != found.count {
        return None;
    }
    let mut stored = Vec::with_capacity(HEAD_BYTES + entries.len());
    stored.extend_from_slice(&count_head(found.count));
    if found.plain {
        stored.extend_from_slice(entries);
        return Some(stored);
    }
    let mut at = 0;
    while at < entries.len() {
        let entry = sound_entry(entries, at)?;
        encode(entry.element, &mut stored);
        at += entry.bytes;
    }
    Some(stored)
}

/// Whether bytes are those of a listpack as stored, for tests and for whoever doubts.
pub fn check(stored: &[u8]) -> bool {
    let Some((head, entries)) = stored.split_at_checked(HEAD_BYTES) else { return false };
    survey(entries).is_some_and(|found| found.plain && head == count_head(found.count))
}

/// What a walk over sound entries found.
struct Survey {
    count: usize,
    /// Whether all are as [`encode`] writes them.
    plain: bool,
}

/// Walks over entries that may be anything; `None` unless they are sound.
fn survey(entries: &[u8]) -> Option<Survey> {
    let mut found = Survey { count: 0, plain: true };
    let mut at = 0;
    while at < entries.len() {
        let entry = sound_entry(entries, at)?;
        found.plain &= entry.plain;
        found.count += 1;
        at += entry.bytes;
    }
    Some(found)
}

/// An entry that came from outside.
struct SoundEntry<'a> {
    element: Element<'a>,
    /// All of its bytes.
    bytes: usize,
    /// Whether it is as [`encode`] writes it.
    plain: bool,
}

/// The entry at `at`, if the bytes there are one.
fn sound_entry(entries: &[u8], at: usize) -> Option<SoundEntry<'_>> {
    let body = claimed_body_bytes(&entries[at..])?;
    let length_at = at.checked_add(body)?;
    let ends_in = |n: usize| entries.get(length_at..)?.starts_with(&backlen(body, n)[..n]).then_some(n);
    let own = backlen_bytes(body);
    // Valkey 9 corrected the limits: there, one byte less holds a length at a limit.
    let corrected = own > 1 && body < 1 << (7 * (own - 1));
    let n = ends_in(own).or_else(|| if corrected { ends_in(own - 1) } else { None })?;
    let (element, _) = decode(entries, at);
    let probe = Probe::of(element);
    let plain = n == own && probe.body_bytes() == body && probe.first() == entries[at];
    Some(SoundEntry { element, bytes: body + n, plain })
}
