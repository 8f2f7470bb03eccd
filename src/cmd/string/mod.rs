//! Strings: rows, and what the handlers of the family share.
mod counter;
mod get_set;
mod lcs;
mod range;

use std::borrow::Cow;

pub(super) use range::{clamp_ends, clamp_range};

use super::spec::{Group::String as S, KeyPart, Spec, flag, key, key_range, keys};
use crate::base::num;
use crate::ds::raw::block::{BlockMut, MARK_EDITED, MARK_SLACK, NewValue, Payload};
use crate::store::db::Next;
use crate::store::news::class;
use crate::wire::{Error, Out};

/// Keys and values in turns.
const PAIRS: &[KeyPart] = &[key_range("OW update", 1, -1, 2)];

/// The rows.
pub const COMMANDS: &[Spec] = &[
    Spec::read("get", "key", get_set::get)
        .doc(S, "1.0.0", "Returns the string value of a key.")
        .keys(keys::READ)
        .with(flag::FAST),
    Spec::write(
        "set",
        "key value [NX|XX|IFEQ comparison-value] [GET] [EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|KEEPTTL]",
        get_set::set,
    )
    .event(class::STRING, "set")
    .doc(S, "1.0.0", "Sets the string value of a key, whatever it held before; makes the key when it does not exist.")
    .keys(&[key("RW access update variable_flags", 1)])
    .key_use(get_set::set_key_use)
    .with(flag::DENYOOM),
    Spec::write("setnx", "key value", get_set::setnx)
        .event(class::STRING, "set")
        .doc(S, "1.0.0", "Sets the string value of a key only when the key does not exist.")
        .keys(&[key("OW insert", 1)])
        .with(flag::DENYOOM | flag::FAST),
    Spec::write("setex", "key seconds value", get_set::setex)
        .event(class::STRING, "set")
        .doc(S, "2.0.0", "Sets the string value and expiration time of a key, in seconds.")
        .keys(keys::OVERWRITE)
        .with(flag::DENYOOM),
    Spec::write("psetex", "key milliseconds value", get_set::psetex)
        .event(class::STRING, "set")
        .doc(S, "2.6.0", "Sets the string value and expiration time of a key, in milliseconds.")
        .keys(keys::OVERWRITE)
        .with(flag::DENYOOM),
    Spec::write("getset", "key value", get_set::getset)
        .event(class::STRING, "set")
        .doc(S, "1.0.0", "Returns the string value of a key and sets a new one.")
        .keys(&[key("RW access update", 1)])
        .with(flag::DENYOOM | flag::FAST),
    Spec::write("getdel", "key", get_set::getdel)
        .doc(S, "6.2.0", "Returns the string value of a key and deletes it.")
        .keys(&[key("RW access delete", 1)])
        .with(flag::FAST),
    Spec::write(
        "getex",
        "key [EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|PERSIST]",
        get_set::getex,
    )
    .doc(S, "6.2.0", "Returns the string value of a key and sets or clears its expiration time.")
    .keys(keys::READ_UPDATE)
    .with(flag::FAST),
    Spec::read("mget", "key [key ...]", get_set::mget)
        .doc(S, "1.0.0", "Returns the string values of several keys.")
        .cost("O(N) where N is the number of keys.")
        .keys(keys::READ_ALL)
        .tips(&["request_policy:multi_shard"])
        .with(flag::FAST),
    Spec::write("mset", "key value [key value ...]", get_set::mset)
        .event(class::STRING, "set")
        .doc(S, "1.0.1", "Sets the string values of several keys at once.")
        .cost("O(N) where N is the number of keys.")
        .keys(PAIRS)
        .tips(&["request_policy:multi_shard", "response_policy:all_succeeded"])
        .with(flag::DENYOOM),
    Spec::write("msetnx", "key value [key value ...]", get_set::msetnx)
        .event(class::STRING, "set")
        .doc(S, "1.0.1", "Sets the string values of several keys at once, only when none of them exists.")
        .cost("O(N) where N is the number of keys.")
        .keys(&[key_range("OW insert", 1, -1, 2)])
        .with(flag::DENYOOM),
    Spec::write("append", "key value", range::append)
        .event(class::STRING, "append")
        .doc(S, "2.0.0", "Appends to the string value of a key; makes the key when it does not exist.")
        .cost("O(1), amortized, for short values to append.")
        .keys(&[key("RW insert", 1)])
        .with(flag::DENYOOM | flag::FAST),
    Spec::read("strlen", "key", range::strlen)
        .doc(S, "2.2.0", "Returns the length of the string value of a key, in bytes.")
        .keys(keys::LOOK)
        .with(flag::FAST),
    Spec::write("setrange", "key offset value", range::setrange)
        .event(class::STRING, "setrange")
        .doc(S, "2.2.0", "Overwrites a part of the string value of a key; makes the key when it does not exist.")
        .cost("O(N) where N is the length of the value argument, or of a gap that it leaves.")
        .keys(keys::UPDATE)
        .with(flag::DENYOOM),
    Spec::read("getrange", "key start end", range::getrange)
        .doc(S, "2.4.0", "Returns a part of the string value of a key.")
        .cost("O(N) where N is the length of the returned part.")
        .keys(keys::READ),
    Spec::read("substr", "key start end", range::getrange)
        .doc(S, "1.0.0", "Returns a part of the string value of a key; the old name of GETRANGE.")
        .cost("O(N) where N is the length of the returned part.")
        .keys(keys::READ),
    Spec::write("incr", "key", counter::incr)
        .event(class::STRING, "incrby")
        .doc(S, "1.0.0", "Adds one to the integer value of a key; a missing key counts as 0.")
        .keys(keys::READ_UPDATE)
        .with(flag::DENYOOM | flag::FAST),
    Spec::write("decr", "key", counter::decr)
        .event(class::STRING, "incrby")
        .doc(S, "1.0.0", "Subtracts one from the integer value of a key; a missing key counts as 0.")
        .keys(keys::READ_UPDATE)
        .with(flag::DENYOOM | flag::FAST),
    Spec::write("incrby", "key increment", counter::incrby)
        .event(class::STRING, "incrby")
        .doc(S, "1.0.0", "Adds to the integer value of a key; a missing key counts as 0.")
        .keys(keys::READ_UPDATE)
        .with(flag::DENYOOM | flag::FAST),
    Spec::write("decrby", "key decrement", counter::decrby)
        .event(class::STRING, "incrby")
        .doc(S, "1.0.0", "Subtracts from the integer value of a key; a missing key counts as 0.")
        .keys(keys::READ_UPDATE)
        .with(flag::DENYOOM | flag::FAST),
    Spec::write("incrbyfloat", "key increment:double", counter::incrbyfloat)
        .event(class::STRING, "incrbyfloat")
        .doc(S, "2.6.0", "Adds to the float value of a key; a missing key counts as 0.")
        .keys(keys::READ_UPDATE)
        .with(flag::DENYOOM | flag::FAST),
    Spec::read("lcs", "key1 key2 [LEN] [IDX] [MINMATCHLEN min-match-len] [WITHMATCHLEN]", lcs::lcs)
        .doc(S, "7.0.0", "Finds the longest common subsequence of two strings.")
        .cost("O(N*M) where N and M are the lengths of the two strings.")
        .keys(&[key_range("RO access", 1, 2, 1)]),
];

/// The value to store for bytes from a client: a number when it is one in its canonical form.
#[inline]
pub(super) fn encode(bytes: &[u8]) -> NewValue<'_> {
    match num::parse_i64(bytes) {
        Some(n) => NewValue::Int(n),
        None => NewValue::Bytes(bytes),
    }
}

/// Writes a stored string as a reply.
#[inline(always)]
pub(super) fn reply(out: &mut Out, value: Payload<'_>) {
    match value {
        Payload::Bytes(bytes) => out.bulk(bytes),
        Payload::Int(n) => out.bulk_int(n),
    }
}

/// A stored string as bytes.
pub(super) fn text(value: Payload<'_>) -> Cow<'_, [u8]> {
    match value {
        Payload::Bytes(bytes) => Cow::Borrowed(bytes),
        Payload::Int(n) => Cow::Owned(itoa::Buffer::new().format(n).as_bytes().to_vec()),
    }
}

/// Calls `f` with a stored string as bytes. The text of a number lives on the stack meanwhile; a missing key is
/// an empty string.
#[inline]
pub fn with_text<T>(value: Option<Payload<'_>>, f: impl FnOnce(&[u8]) -> T) -> T {
    match value {
        Some(Payload::Bytes(bytes)) => f(bytes),
        Some(Payload::Int(n)) => f(itoa::Buffer::new().format(n).as_bytes()),
        None => f(&[]),
    }
}

/// Length of a stored string in bytes.
#[inline]
pub fn len_of(value: Payload<'_>) -> usize {
    with_text(Some(value), <[u8]>::len)
}

/// Length of the string in a block that is handed out for a change.
#[inline]
pub(super) fn stored_len(block: &BlockMut<'_>) -> usize {
    with_text(block.view().string(), <[u8]>::len)
}

/// A string's new length, when it is allowed: `max` is `proto-max-bulk-len`.
#[inline]
pub(super) fn allowed_len(len: u64, max: u64) -> Result<usize, Error> {
    if len > max { Err(Error::TooLong) } else { usize::try_from(len).map_err(|_| Error::TooLong) }
}

/// Calls `f` with the bytes of a string that a command changes in part, filled up with zeros to at least `len`
/// bytes. Where the string has room they are the stored bytes themselves, and nothing is copied. `f` says whether
/// it changed anything.
#[inline]
pub(super) fn edit_bytes<T>(
    block: Option<BlockMut<'_>>,
    len: usize,
    f: impl FnOnce(&mut [u8]) -> (T, bool),
) -> (T, Next<'static>) {
    let mut copy;
    let grows = match block {
        None => {
            copy = vec![0; len];
            true
        }
        Some(mut block) => {
            let old_len = stored_len(&block);
            if block.grow_in_place(len) {
                block.set_marks(MARK_EDITED);
                let (result, changed) = f(block.bytes_mut().unwrap_or_default());
                return (result, if changed || old_len < len { Next::Edited } else { Next::Same });
            }
            // A number, or bytes whose place is too small.
            copy = vec![0; len.max(old_len)];
            with_text(block.view().string(), |old| copy[..old_len].copy_from_slice(old));
            old_len < len
        }
    };
    let (result, changed) = f(&mut copy);
    let value = NewValue::Heap(copy);
    (
        result,
        if changed || grows {
            Next::Put(value, MARK_EDITED | MARK_SLACK)
        } else {
            Next::Recode(value, MARK_EDITED)
        },
    )
}

/// An expiration time argument as milliseconds since the epoch. `unit_ms` is 1000 for seconds; `base_ms` is the
/// time it is relative to, 0 for absolute times.
pub(super) fn deadline_ms(
    arg: &[u8],
    unit_ms: i64,
    base_ms: u64,
    command: &'static str,
) -> Result<u64, Error> {
    let value = num::parse_i64(arg).ok_or(Error::NotInteger)?;
    let deadline = value.checked_mul(unit_ms).and_then(|ms| ms.checked_add(base_ms as i64));
    match deadline {
        Some(ms) if value > 0 && ms > 0 => Ok(ms as u64),
        _ => Err(Error::ExpireTime(command)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ds::raw::block::Block;

    fn edited(value: NewValue<'_>, len: usize) -> (Vec<u8>, u32) {
        let mut block = Block::new(b"key", value, None, 0, 0);
        let ((), next) = edit_bytes(Some(block.view_mut()), len, |bytes| {
            bytes[0] = b'!';
            ((), true)
        });
        match next {
            Next::Edited => (with_text(block.view().string(), <[u8]>::to_vec), block.view().marks()),
            Next::Put(NewValue::Heap(bytes), marks) => (bytes, marks & MARK_EDITED),
            _ => panic!("an edit is not nothing"),
        }
    }

    #[test]
    fn edits_reach_every_form_of_a_string() {
        let large = vec![b'x'; 30_000];
        for (value, len, want) in [
            (NewValue::Bytes(b"abc"), 2, b"!bc".to_vec()),
            (NewValue::Bytes(b"abc"), 5, b"!bc\0\0".to_vec()),
            (NewValue::Bytes(b"abc"), 300, [&b"!bc"[..], &[0; 297]].concat()),
            (NewValue::Int(-12), 1, b"!12".to_vec()),
            (NewValue::Int(-12), 4, b"!12\0".to_vec()),
            (NewValue::Bytes(&large), 0, [&b"!"[..], &large[1..]].concat()),
            (NewValue::Bytes(&large), 30_001, [&b"!"[..], &large[1..], &[0]].concat()),
        ] {
            assert_eq!(edited(value, len), (want, MARK_EDITED));
        }
    }

    #[test]
    fn only_changes_are_reported() {
        let nothing = |value: NewValue<'_>, len| {
            let mut block = Block::new(b"key", value, None, 0, 0);
            edit_bytes(Some(block.view_mut()), len, |_| ((), false)).1
        };
        assert!(matches!(nothing(NewValue::Bytes(b"abc"), 3), Next::Same));
        assert!(matches!(nothing(NewValue::Bytes(b"abc"), 4), Next::Edited));
        assert!(matches!(nothing(NewValue::Bytes(b"abc"), 400), Next::Put(..)));
        assert!(matches!(nothing(NewValue::Int(7), 1), Next::Recode(..)));
        assert!(matches!(nothing(NewValue::Int(7), 2), Next::Put(..)));
        assert!(matches!(edit_bytes(None, 3, |_| ((), false)).1, Next::Put(..)));
    }
}
