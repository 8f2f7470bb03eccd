//! DUMP and RESTORE: a value in serialized form, for another key or another server.
//!
//! A payload is in the oldest version of the format that can hold its value, so that older servers take it. What comes
//! back is checked in full, whatever `sanitize-dump-payload` says.
use std::sync::atomic::Ordering;

use crate::cmd::cx::{ReadCx, WriteCx};
use crate::cmd::spec::Done;
use crate::config::P;
use crate::ds::raw::block::{Block, Value};
use crate::rdb::payload::{self, Leniency};
use crate::rdb::value::{self, Limits, Loaded};
use crate::rdb::{Reader, ValueType, Writer};
use crate::wire::args::option_word;
use crate::wire::{Args, Error, Out};

const REPLACE: u64 = option_word(b"REPLACE");
const ABSTTL: u64 = option_word(b"ABSTTL");
const FREQ: u64 = option_word(b"FREQ");

/// The payload of a value.
fn dumped(value: Value<'_>, compress: bool) -> Vec<u8> {
    let value_type = value::type_of(value);
    let mut writer = Writer::new(compress);
    writer.u8(value_type.number());
    value::write(value, &mut writer);
    let mut bytes = writer.into_bytes();
    payload::seal(&mut bytes, value_type.version());
    bytes
}

/// DUMP key
pub fn dump(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let key = args.key()?;
    match cx.find(key) {
        Some(block) => {
            let compress = cx.store(key.hash).settings.bool(P::RDBCOMPRESSION);
            out.bulk(&dumped(block.value(), compress));
        }
        None => out.null(),
    }
    Ok(())
}

/// What RESTORE was told besides key, time and payload.
#[derive(Default)]
struct Options {
    replace: bool,
    absolute: bool,
    idle_seconds: Option<u64>,
    frequency: Option<u8>,
}

fn options(args: &mut Args<'_>) -> Result<Options, Error> {
    let mut options = Options::default();
    while !args.is_done() {
        match args.option() {
            REPLACE => {
                args.skip();
                options.replace = true;
            }
            ABSTTL => {
                args.skip();
                options.absolute = true;
            }
            FREQ if args.left() > 1 && options.idle_seconds.is_none() => {
                args.skip();
                let text = || Error::err("Invalid FREQ value, must be >= 0 and <= 255");
                options.frequency = Some(u8::try_from(args.int()?).map_err(|_| text())?);
            }
            _ if args.left() > 1 && options.frequency.is_none() && args.keyword("IDLETIME") => {
                let text = || Error::err("Invalid IDLETIME value, must be >= 0");
                options.idle_seconds = Some(u64::try_from(args.int()?).map_err(|_| text())?);
            }
            _ => return Err(Error::Syntax),
        }
    }
    Ok(options)
}

/// The value in a payload.
fn loaded(bytes: &[u8], leniency: Leniency, limits: &Limits) -> Result<Loaded, Error> {
    let payload = payload::open_leniently(bytes, leniency)
        .map_err(|_| Error::err("DUMP payload version or checksum are wrong"))?;
    let bad = || Error::err("Bad data format");
    let mut reader = Reader::new(payload.body);
    let number = reader.u8().map_err(|_| bad())?;
    let value_type = ValueType::of(number, payload.version).ok_or_else(bad)?;
    // What may stand behind the value is left alone, as in Redis.
    value::read(value_type, &mut reader, limits).map_err(|_| bad())
}

/// RESTORE key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]
pub fn restore(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (key, ttl, bytes) = (args.key()?, args.bytes()?, args.bytes()?);
    let options = options(args)?;
    let now = cx.now;
    if !options.replace && cx.find_used(key).is_some() {
        return Err(Error::line("BUSYKEY Target key name already exists.".into()));
    }
    let ttl = super::int_arg(ttl)?;
    if ttl < 0 {
        return Err(Error::err("Invalid TTL value, must be >= 0"));
    }
    let checksum = cx.host.skips_checksums.load(Ordering::Relaxed);
    let settings = &cx.store(key.hash).settings;
    let version = settings.choice(P::RDB_VERSION_CHECK) == "relaxed";
    let value = loaded(bytes, Leniency { version, checksum }, &Limits::of(settings))?;
    // One that leaves the range lies in the past, as in Redis.
    let deadline_ms = match ttl {
        0 => None,
        at if options.absolute => Some(at),
        after => Some(after.wrapping_add(now.ms as i64)),
    };
    if deadline_ms.is_some_and(|at| at <= now.ms as i64) {
        // Nobody would ever see it.
        if cx.remove(key) {
            cx.log(&[b"DEL", key.bytes]);
        }
    } else {
        let access = now.fresh_with(options.idle_seconds, options.frequency);
        let deadline_ms = deadline_ms.map(|at| at as u64);
        let block = value.store(|value| Block::new(key.bytes, value, deadline_ms, access, 0));
        let db = cx.caller.db;
        cx.store(key.hash).place(db, key, block);
        if let Some(at_ms) = deadline_ms.filter(|_| !options.absolute) {
            cx.log_with(args, &[(2, itoa::Buffer::new().format(at_ms).as_bytes())], &[b"ABSTTL"]);
        }
    }
    out.ok();
    Ok(())
}
