//! Hashes: rows, and what the handlers of the family share.
mod all;
mod fetch;
mod field;
mod random;
mod scan;
mod ttl;

use super::cx::{Met, ReadCx, WriteCx};
use super::spec::keys::{LOOK, READ, READ_UPDATE, UPDATE};
use super::spec::{Group::Hash as H, KeyPart, Spec, flag, key};
use crate::base::num;
use crate::cmd::element::put_element;
use crate::store::news::{Event, class};
use crate::types::hash::{Field, HashMut, HashRef};
use crate::wire::{Args, Error, Key, Out};

const INSERT: &[KeyPart] = &[key("RW insert", 1)];
const DELETE: &[KeyPart] = &[key("RW delete", 1)];
const READ_DELETE: &[KeyPart] = &[key("RW access delete", 1)];
const UNORDERED: &[&str] = &["nondeterministic_output_order"];
const VARYING: &[&str] = &["nondeterministic_output"];
const EACH_FIELD: &str = "O(N) where N is the number of given fields.";
const WHOLE: &str = "O(N) where N is the size of the hash.";
const MORE: u32 = flag::DENYOOM | flag::FAST;

/// The rows.
pub const COMMANDS: &[Spec] = &[
    Spec::write("hset", "key field value [field value ...]", field::hset)
        .event(class::HASH, "hset")
        .doc(H, "2.0.0", "Sets fields of a hash; makes the key when it does not exist.")
        .cost(EACH_FIELD)
        .keys(UPDATE)
        .with(MORE),
    Spec::write("hsetnx", "key field value", field::hsetnx)
        .event(class::HASH, "hset")
        .doc(H, "2.0.0", "Sets a field of a hash only when the field does not exist.")
        .keys(INSERT)
        .with(MORE),
    Spec::write("hmset", "key field value [field value ...]", field::hmset)
        .event(class::HASH, "hset")
        .doc(H, "2.0.0", "Sets fields of a hash; the old name of HSET.")
        .cost(EACH_FIELD)
        .keys(UPDATE)
        .with(MORE),
    Spec::read("hget", "key field", field::hget)
        .doc(H, "2.0.0", "Returns the value of a field of a hash.")
        .keys(READ)
        .with(flag::FAST),
    Spec::read("hmget", "key field [field ...]", field::hmget)
        .doc(H, "2.0.0", "Returns the values of fields of a hash.")
        .cost(EACH_FIELD)
        .keys(READ)
        .with(flag::FAST),
    Spec::write("hdel", "key field [field ...]", field::hdel)
        .event(class::HASH, "hdel")
        .doc(H, "2.0.0", "Deletes fields of a hash, and the hash with its last field.")
        .cost(EACH_FIELD)
        .keys(DELETE)
        .with(flag::FAST),
    Spec::read("hlen", "key", field::hlen)
        .doc(H, "2.0.0", "Returns the number of fields of a hash.")
        .keys(LOOK)
        .with(flag::FAST),
    Spec::read("hstrlen", "key field", field::hstrlen)
        .doc(H, "3.2.0", "Returns the length of the value of a field, in bytes.")
        .keys(LOOK)
        .with(flag::FAST),
    Spec::read("hexists", "key field", field::hexists)
        .doc(H, "2.0.0", "Tells whether a field of a hash exists.")
        .keys(LOOK)
        .with(flag::FAST),
    Spec::write("hincrby", "key field increment", field::hincrby)
        .event(class::HASH, "hincrby")
        .doc(H, "2.0.0", "Adds to the integer value of a field; a missing field counts as 0.")
        .keys(READ_UPDATE)
        .with(MORE),
    Spec::write("hincrbyfloat", "key field increment:double", field::hincrbyfloat)
        .event(class::HASH, "hincrbyfloat")
        .doc(H, "2.6.0", "Adds to the float value of a field; a missing field counts as 0.")
        .keys(READ_UPDATE)
        .with(MORE),
    Spec::read("hkeys", "key", all::hkeys)
        .doc(H, "2.0.0", "Returns the names of all fields of a hash.")
        .cost(WHOLE)
        .keys(READ)
        .tips(UNORDERED),
    Spec::read("hvals", "key", all::hvals)
        .doc(H, "2.0.0", "Returns the values of all fields of a hash.")
        .cost(WHOLE)
        .keys(READ)
        .tips(UNORDERED),
    Spec::read("hgetall", "key", all::hgetall)
        .doc(H, "2.0.0", "Returns all fields of a hash with their values.")
        .cost(WHOLE)
        .keys(READ)
        .tips(UNORDERED),
    Spec::read("hscan", "key cursor [MATCH pattern] [COUNT count] [NOVALUES]", scan::hscan)
        .doc(H, "2.8.0", "Returns some fields of a hash, and where to go on.")
        .cost("O(1) for a call, O(N) for a whole walk over N fields.")
        .keys(READ)
        .tips(VARYING),
    Spec::read("hrandfield", "key [count [WITHVALUES]]", random::hrandfield)
        .doc(H, "6.2.0", "Returns fields of a hash picked at random.")
        .cost("O(N) where N is the number of fields returned.")
        .keys(READ)
        .tips(VARYING),
    Spec::write("hexpire", "key seconds [NX|XX|GT|LT] FIELDS numfields field [field ...]", ttl::hexpire)
        .doc(H, "7.4.0", "Sets after how many seconds fields of a hash expire.")
        .cost(EACH_FIELD)
        .keys(UPDATE)
        .with(flag::FAST),
    Spec::write("hpexpire", "key milliseconds [NX|XX|GT|LT] FIELDS numfields field [field ...]", ttl::hpexpire)
        .doc(H, "7.4.0", "Sets after how many milliseconds fields of a hash expire.")
        .cost(EACH_FIELD)
        .keys(UPDATE)
        .with(flag::FAST),
    Spec::write(
        "hexpireat",
        "key unix-time-seconds [NX|XX|GT|LT] FIELDS numfields field [field ...]",
        ttl::hexpireat,
    )
    .doc(H, "7.4.0", "Sets when fields of a hash expire, as a Unix time in seconds.")
    .cost(EACH_FIELD)
    .keys(UPDATE)
    .with(flag::FAST),
    Spec::write(
        "hpexpireat",
        "key unix-time-milliseconds [NX|XX|GT|LT] FIELDS numfields field [field ...]",
        ttl::hpexpireat,
    )
    .doc(H, "7.4.0", "Sets when fields of a hash expire, as a Unix time in milliseconds.")
    .cost(EACH_FIELD)
    .keys(UPDATE)
    .with(flag::FAST),
    Spec::read("httl", "key FIELDS numfields field [field ...]", ttl::httl)
        .doc(H, "7.4.0", "Tells after how many seconds fields of a hash expire.")
        .cost(EACH_FIELD)
        .keys(READ)
        .tips(VARYING)
        .with(flag::FAST),
    Spec::read("hpttl", "key FIELDS numfields field [field ...]", ttl::hpttl)
        .doc(H, "7.4.0", "Tells after how many milliseconds fields of a hash expire.")
        .cost(EACH_FIELD)
        .keys(READ)
        .tips(VARYING)
        .with(flag::FAST),
    Spec::read("hexpiretime", "key FIELDS numfields field [field ...]", ttl::hexpiretime)
        .doc(H, "7.4.0", "Tells when fields of a hash expire, as a Unix time in seconds.")
        .cost(EACH_FIELD)
        .keys(READ)
        .with(flag::FAST),
    Spec::read("hpexpiretime", "key FIELDS numfields field [field ...]", ttl::hpexpiretime)
        .doc(H, "7.4.0", "Tells when fields of a hash expire, as a Unix time in milliseconds.")
        .cost(EACH_FIELD)
        .keys(READ)
        .with(flag::FAST),
    Spec::write("hpersist", "key FIELDS numfields field [field ...]", ttl::hpersist)
        .event(class::HASH, "hpersist")
        .doc(H, "7.4.0", "Makes fields of a hash stay for ever.")
        .cost(EACH_FIELD)
        .keys(UPDATE)
        .with(flag::FAST),
    Spec::write("hgetdel", "key FIELDS numfields field [field ...]", fetch::hgetdel)
        .event(class::HASH, "hdel")
        .doc(H, "8.0.0", "Returns the values of fields of a hash and deletes them.")
        .cost(EACH_FIELD)
        .keys(READ_DELETE)
        .with(flag::FAST),
    Spec::write(
        "hgetex",
        "key [EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|PERSIST] FIELDS numfields field [field ...]",
        fetch::hgetex,
    )
    .doc(H, "8.0.0", "Returns the values of fields of a hash and sets or clears their expiration times.")
    .cost(EACH_FIELD)
    .keys(READ_UPDATE)
    .with(flag::FAST),
    Spec::write(
        "hsetex",
        "key [FNX|FXX] [EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|KEEPTTL] FIELDS numfields field value [field value ...]",
        fetch::hsetex,
    )
    .event(class::HASH, "hset")
    .doc(H, "8.0.0", "Sets fields of a hash, perhaps with an expiration time.")
    .cost(EACH_FIELD)
    .keys(UPDATE)
    .with(MORE),
];

/// The latest time at which a field can expire, in milliseconds since the epoch.
const DEADLINE_MS_MAX: i64 = (1 << 46) - 1;

/// Looks a hash up to read it.
#[inline]
fn look<'a>(cx: &ReadCx<'a>, key: Key<'_>) -> Result<Option<HashRef<'a>>, Error> {
    cx.find(key).map(HashRef::of).transpose()
}

/// A field for a client: one whose time has come is none, and its owner clears it away.
#[inline]
fn live<'a>(cx: &ReadCx<'_>, field: Option<Field<'a>>) -> Option<Field<'a>> {
    field.filter(|field| {
        let due = field.is_due(cx.now.ms);
        if due {
            cx.met.set(Met::NamedParts);
        }
        !due
    })
}

/// Hands a hash out for a change, under a key that may be missing.
#[inline]
fn change<T>(
    cx: &mut WriteCx<'_>,
    key: Key<'_>,
    change: impl FnOnce(&mut HashMut<'_, '_>) -> Result<T, Error>,
) -> Result<T, Error> {
    cx.edit(key, |editor| {
        let mut hash = HashMut::of(editor)?;
        let result = change(&mut hash);
        hash.finish();
        result
    })
}

/// Writes a field's value as a reply, null when there is no field.
#[inline]
fn reply_value(out: &mut Out, field: Option<Field<'_>>) {
    match field {
        Some(field) => put_element(out, field.value),
        None => out.null(),
    }
}

/// `FIELDS numfields` at the cursor, with as many fields behind it as it says; `positive` is the text for a number that
/// is none or too small.
fn fields(args: &mut Args<'_>, positive: &'static str) -> Result<usize, Error> {
    if !args.keyword("FIELDS") {
        return Err(Error::err("Mandatory argument FIELDS is missing or not at the right position"));
    }
    let count = args.take().and_then(num::parse_i64).filter(|count| *count > 0);
    let count = count.ok_or_else(|| Error::err(positive))?;
    if usize::try_from(count) != Ok(args.left()) {
        return Err(Error::err("The `numfields` parameter must match the number of arguments"));
    }
    Ok(args.left())
}

/// What [`fields`] says of a number that is none or too small, in most commands.
const HSET: Event = Event { class: class::HASH, name: "hset" };
const HDEL: Event = Event { class: class::HASH, name: "hdel" };
const HEXPIRE: Event = Event { class: class::HASH, name: "hexpire" };
const HPERSIST: Event = Event { class: class::HASH, name: "hpersist" };

const POSITIVE: &str = "Number of fields must be a positive integer";

/// An expiration time as an argument gives it.
#[derive(Clone, Copy)]
struct Expiration {
    /// Milliseconds of one.
    unit_ms: i64,
    /// It counts from now.
    relative: bool,
}

const SECONDS: Expiration = Expiration { unit_ms: 1000, relative: true };
const MILLISECONDS: Expiration = Expiration { unit_ms: 1, relative: true };
const UNIX_SECONDS: Expiration = Expiration { unit_ms: 1000, relative: false };
const UNIX_MILLISECONDS: Expiration = Expiration { unit_ms: 1, relative: false };

impl Expiration {
    /// Whether it is the form that the log has.
    fn is_exact(self) -> bool {
        self.unit_ms == 1 && !self.relative
    }

    /// The time that an argument means, in milliseconds since the epoch; it may have come already.
    fn deadline_ms(self, arg: &[u8], now_ms: u64, command: &'static str) -> Result<u64, Error> {
        let value = num::parse_i64(arg).ok_or(Error::NotInteger)?;
        if value < 0 {
            return Err(Error::err("invalid expire time, must be >= 0"));
        }
        let base_ms = if self.relative { i64::try_from(now_ms).unwrap_or(i64::MAX) } else { 0 };
        let deadline_ms = value.checked_mul(self.unit_ms).and_then(|ms| ms.checked_add(base_ms));
        match deadline_ms {
            Some(ms) if ms <= DEADLINE_MS_MAX => Ok(ms as u64),
            _ => Err(Error::ExpireTime(command)),
        }
    }
}
