//! Deadlines of keys: setting, showing and clearing them.
use crate::base::num;
use crate::cmd::cx::{ReadCx, WriteCx};
use crate::cmd::spec::Done;
use crate::store::db::DeadlineChange;
use crate::wire::{Args, Error, Out};

/// Which changes of a deadline are wanted.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
struct Condition {
    /// NX: only where there is none.
    absent: bool,
    /// XX: only where there is one.
    present: bool,
    /// GT: only to a later time; no deadline counts as infinitely late.
    later: bool,
    /// LT: only to an earlier time.
    earlier: bool,
}

impl Condition {
    fn parse(args: &mut Args<'_>) -> Result<Condition, Error> {
        let mut wanted = Condition::default();
        while !args.is_done() {
            if args.keyword("NX") {
                wanted.absent = true;
            } else if args.keyword("XX") {
                wanted.present = true;
            } else if args.keyword("GT") {
                wanted.later = true;
            } else if args.keyword("LT") {
                wanted.earlier = true;
            } else {
                let option = String::from_utf8_lossy(args.bytes()?);
                return Err(Error::err(format_args!("Unsupported option {option}")));
            }
        }
        if wanted.absent && (wanted.present || wanted.later || wanted.earlier) {
            return Err(Error::err("NX and XX, GT or LT options at the same time are not compatible"));
        }
        if wanted.later && wanted.earlier {
            return Err(Error::err("GT and LT options at the same time are not compatible"));
        }
        Ok(wanted)
    }

    /// Whether a deadline at `next_ms` (which may lie before the epoch) shall replace `before_ms`.
    fn allows(self, before_ms: Option<u64>, next_ms: i64) -> bool {
        match before_ms.map(|ms| i64::try_from(ms).unwrap_or(i64::MAX)) {
            Some(before) => {
                !self.absent && (!self.later || next_ms > before) && (!self.earlier || next_ms < before)
            }
            None => !self.present && !self.later,
        }
    }
}

/// The time that an argument means, in milliseconds since the epoch; it may lie in the past or before the epoch.
fn time_ms(arg: &[u8], unit_ms: i64, base_ms: u64, command: &'static str) -> Result<i64, Error> {
    let value = num::parse_i64(arg).ok_or(Error::NotInteger)?;
    let time = value.checked_mul(unit_ms).and_then(|ms| ms.checked_add_unsigned(base_ms));
    time.ok_or(Error::ExpireTime(command))
}

fn expire_with(
    cx: &mut WriteCx<'_>,
    args: &mut Args<'_>,
    out: &mut Out,
    (unit_ms, relative, command): (i64, bool, &'static str),
) -> Done {
    let (key, time) = (args.key()?, args.bytes()?);
    let wanted = Condition::parse(args)?;
    let (now, caller) = (cx.now, cx.caller);
    let next_ms = time_ms(time, unit_ms, if relative { now.ms } else { 0 }, command)?;
    let change = cx.store(key.hash).change_deadline(caller.db, key, |block| {
        now.mark_use(block);
        match u64::try_from(next_ms) {
            _ if !wanted.allows(block.deadline_ms(), next_ms) => DeadlineChange::Keep,
            Ok(ms) if ms > now.ms => DeadlineChange::Set(ms),
            _ => DeadlineChange::Delete,
        }
    });
    match change {
        Some(DeadlineChange::Delete) => cx.log(&[b"DEL", key.bytes]),
        Some(DeadlineChange::Set(ms)) if relative || unit_ms != 1 => {
            let mut at = itoa::Buffer::new();
            cx.log_with(args, &[(0, b"PEXPIREAT"), (2, at.format(ms).as_bytes())], &[]);
        }
        _ => {}
    }
    out.flag(change.is_some_and(|change| change != DeadlineChange::Keep));
    Ok(())
}

/// EXPIRE key seconds [NX|XX|GT|LT]
pub fn expire(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    expire_with(cx, args, out, (1000, true, "expire"))
}

/// PEXPIRE key milliseconds [NX|XX|GT|LT]
pub fn pexpire(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    expire_with(cx, args, out, (1, true, "pexpire"))
}

/// EXPIREAT key unix-time-seconds [NX|XX|GT|LT]
pub fn expireat(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    expire_with(cx, args, out, (1000, false, "expireat"))
}

/// PEXPIREAT key unix-time-milliseconds [NX|XX|GT|LT]
pub fn pexpireat(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    expire_with(cx, args, out, (1, false, "pexpireat"))
}

/// PERSIST key
pub fn persist(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let key = args.key()?;
    let (now, caller) = (cx.now, cx.caller);
    let change = cx.store(key.hash).change_deadline(caller.db, key, |block| {
        now.mark_use(block);
        if block.deadline_ms().is_some() { DeadlineChange::Clear } else { DeadlineChange::Keep }
    });
    out.flag(change == Some(DeadlineChange::Clear));
    Ok(())
}

/// Milliseconds in `unit_ms`, rounded to the nearest.
fn rounded(ms: u64, unit_ms: u64) -> i64 {
    (ms.saturating_add(unit_ms / 2) / unit_ms) as i64
}

fn show(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out, unit_ms: u64, base_ms: u64) -> Done {
    out.int(match cx.look(args.key()?).map(|block| block.deadline_ms()) {
        None => -2,
        Some(None) => -1,
        Some(Some(ms)) => rounded(ms.saturating_sub(base_ms), unit_ms),
    });
    Ok(())
}

/// TTL key
pub fn ttl(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    show(cx, args, out, 1000, cx.now.ms)
}

/// PTTL key
pub fn pttl(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    show(cx, args, out, 1, cx.now.ms)
}

/// EXPIRETIME key
pub fn expiretime(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    show(cx, args, out, 1000, 0)
}

/// PEXPIRETIME key
pub fn pexpiretime(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    show(cx, args, out, 1, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions() {
        let none = Condition::default();
        let cases = [
            // condition, without a deadline, from 100 to 50, to 100, to 150
            (none, true, [true, true, true]),
            (Condition { absent: true, ..none }, true, [false, false, false]),
            (Condition { present: true, ..none }, false, [true, true, true]),
            (Condition { later: true, ..none }, false, [false, false, true]),
            (Condition { earlier: true, ..none }, true, [true, false, false]),
            (Condition { present: true, earlier: true, ..none }, false, [true, false, false]),
        ];
        for (condition, without, with) in cases {
            assert_eq!(condition.allows(None, 7), without, "{condition:?}");
            assert_eq!([50, 100, 150].map(|next| condition.allows(Some(100), next)), with, "{condition:?}");
        }
    }

    #[test]
    fn times() {
        assert_eq!(time_ms(b"2", 1000, 500, "expire"), Ok(2500));
        assert_eq!(time_ms(b"-2", 1000, 500, "expire"), Ok(-1500));
        assert_eq!(time_ms(b"9223372036854775807", 1, 1, "pexpire"), Err(Error::ExpireTime("pexpire")));
        assert_eq!(time_ms(b"9223372036854776", 1000, 0, "expireat"), Err(Error::ExpireTime("expireat")));
        assert_eq!(time_ms(b"1x", 1000, 0, "expire"), Err(Error::NotInteger));
    }

    #[test]
    fn remaining_time_is_rounded_to_the_nearest() {
        let cases = [(1499, 1), (1500, 2), (499, 0), (0, 0), (u64::MAX, i64::MAX / 500)];
        for (ms, seconds) in cases {
            assert_eq!(rounded(ms, 1000), seconds, "{ms}");
        }
        assert_eq!(rounded(1499, 1), 1499);
    }
}
