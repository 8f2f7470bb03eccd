//! Strings: rows, and what the handlers of the family share.
mod get_set;

use std::borrow::Cow;

use super::spec::{Group::String as S, KeyPart, Spec, flag, key_range, keys};
use crate::base::num;
use crate::ds::raw::block::{NewValue, Payload};
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
    .doc(S, "1.0.0", "Sets the string value of a key, whatever it held before; makes the key when it does not exist.")
    .keys(&[KeyPart { flags: "RW access update variable_flags", first: 1, last: 1, step: 1 }])
    .with(flag::DENYOOM),
    Spec::write("setnx", "key value", get_set::setnx)
        .doc(S, "1.0.0", "Sets the string value of a key only when the key does not exist.")
        .keys(&[KeyPart { flags: "OW insert", first: 1, last: 1, step: 1 }])
        .with(flag::DENYOOM | flag::FAST),
    Spec::write("setex", "key seconds value", get_set::setex)
        .doc(S, "2.0.0", "Sets the string value and expiration time of a key, in seconds.")
        .keys(keys::OVERWRITE)
        .with(flag::DENYOOM),
    Spec::write("psetex", "key milliseconds value", get_set::psetex)
        .doc(S, "2.6.0", "Sets the string value and expiration time of a key, in milliseconds.")
        .keys(keys::OVERWRITE)
        .with(flag::DENYOOM),
    Spec::write("getset", "key value", get_set::getset)
        .doc(S, "1.0.0", "Returns the string value of a key and sets a new one.")
        .keys(&[KeyPart { flags: "RW access update", first: 1, last: 1, step: 1 }])
        .with(flag::DENYOOM | flag::FAST),
    Spec::write("getdel", "key", get_set::getdel)
        .doc(S, "6.2.0", "Returns the string value of a key and deletes it.")
        .keys(&[KeyPart { flags: "RW access delete", first: 1, last: 1, step: 1 }])
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
        .doc(S, "1.0.1", "Sets the string values of several keys at once.")
        .cost("O(N) where N is the number of keys.")
        .keys(PAIRS)
        .tips(&["request_policy:multi_shard", "response_policy:all_succeeded"])
        .with(flag::DENYOOM),
    Spec::write("msetnx", "key value [key value ...]", get_set::msetnx)
        .doc(S, "1.0.1", "Sets the string values of several keys at once, only when none of them exists.")
        .cost("O(N) where N is the number of keys.")
        .keys(&[key_range("OW insert", 1, -1, 2)])
        .with(flag::DENYOOM),
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
#[inline]
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

/// An expiration time argument as milliseconds since the epoch. `unit_ms` is 1000 for seconds; `base_ms` is the
/// time it is relative to, 0 for absolute times.
pub(super) fn deadline_ms(arg: &[u8], unit_ms: i64, base_ms: u64, command: &'static str) -> Result<u64, Error> {
    let value = num::parse_i64(arg).ok_or(Error::NotInteger)?;
    let deadline = value.checked_mul(unit_ms).and_then(|ms| ms.checked_add(base_ms as i64));
    match deadline {
        Some(ms) if value > 0 && ms > 0 => Ok(ms as u64),
        _ => Err(Error::ExpireTime(command)),
    }
}
