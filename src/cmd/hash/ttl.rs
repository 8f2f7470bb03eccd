//! Deadlines of fields: setting, showing and clearing them.
use super::{
    Expiration, HDEL, HEXPIRE, MILLISECONDS, POSITIVE, SECONDS, UNIX_MILLISECONDS, UNIX_SECONDS, change,
    fields, look,
};
use crate::cmd::cx::{ReadCx, WriteCx};
use crate::cmd::spec::Done;
use crate::types::hash::{Condition, Outcome};
use crate::wire::args::option_word;
use crate::wire::{Args, Out};

/// What stands for a field that does not exist.
const NO_FIELD: i64 = -2;
/// What stands for a field without a deadline.
const NO_DEADLINE: i64 = -1;

const NX: u64 = option_word(b"NX");
const XX: u64 = option_word(b"XX");
const GT: u64 = option_word(b"GT");
const LT: u64 = option_word(b"LT");

fn condition(args: &mut Args<'_>) -> Condition {
    let condition = match args.option() {
        NX => Condition::Absent,
        XX => Condition::Present,
        GT => Condition::Later,
        LT => Condition::Earlier,
        _ => return Condition::Always,
    };
    args.skip();
    condition
}

/// The type of the value is looked at before the arguments are.
fn expire_with(
    cx: &mut WriteCx<'_>,
    args: &mut Args<'_>,
    out: &mut Out,
    (time, command): (Expiration, &'static str),
) -> Done {
    let (key, now_ms) = (args.key()?, cx.now.ms);
    let mut changed = Vec::new();
    let is_logged = cx.is_logged();
    let (deadline_ms, first) = change(cx, key, |hash| {
        let deadline_ms = time.deadline_ms(args.bytes()?, now_ms, command)?;
        let condition = condition(args);
        hash.stands_for(if deadline_ms > now_ms { &[HEXPIRE] } else { &[HDEL] });
        let count = fields(args, "Parameter `numFields` should be greater than 0")?;
        if hash.view().is_some() {
            hash.admit_deadlines();
        }
        out.array(count);
        let first = args.position();
        for name in args.rest() {
            let outcome = hash.set_deadline(name, deadline_ms, condition);
            hash.changed(usize::from(matches!(outcome, Outcome::Changed | Outcome::Deleted)));
            out.int(match outcome {
                Outcome::NoField => NO_FIELD,
                Outcome::Unchanged => 0,
                Outcome::Changed => 1,
                Outcome::Deleted => 2,
            });
            if is_logged && outcome == Outcome::Changed {
                changed.push(name);
            }
        }
        Ok((deadline_ms, first))
    })?;
    // Fields that were deleted are logged as such.
    cx.log_own();
    if !changed.is_empty() {
        let mut at = itoa::Buffer::new();
        let name = if time.is_exact() { args.get(0) } else { b"HPEXPIREAT" };
        log_fields(cx, args, &[(0, name), (2, at.format(deadline_ms).as_bytes())], first, &changed);
    }
    Ok(())
}

/// Logs the words before the number of fields, some of them replaced, and these fields. `first` is the argument of the
/// first field.
fn log_fields(
    cx: &mut WriteCx<'_>,
    args: &Args<'_>,
    replaced: &[(usize, &[u8])],
    first: usize,
    names: &[&[u8]],
) {
    let word = |at| replaced.iter().find(|(other, _)| *other == at).map_or(args.get(at), |(_, word)| *word);
    let mut count = itoa::Buffer::new();
    let mut words: Vec<&[u8]> = (0..first - 1).map(word).collect();
    words.push(count.format(names.len()).as_bytes());
    words.extend(names);
    cx.log(&words);
}

/// HEXPIRE key seconds [NX|XX|GT|LT] FIELDS numfields field [field ...]
pub fn hexpire(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    expire_with(cx, args, out, (SECONDS, "hexpire"))
}

/// HPEXPIRE key milliseconds [NX|XX|GT|LT] FIELDS numfields field [field ...]
pub fn hpexpire(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    expire_with(cx, args, out, (MILLISECONDS, "hpexpire"))
}

/// HEXPIREAT key unix-time-seconds [NX|XX|GT|LT] FIELDS numfields field [field ...]
pub fn hexpireat(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    expire_with(cx, args, out, (UNIX_SECONDS, "hexpireat"))
}

/// HPEXPIREAT key unix-time-milliseconds [NX|XX|GT|LT] FIELDS numfields field [field ...]
pub fn hpexpireat(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    expire_with(cx, args, out, (UNIX_MILLISECONDS, "hpexpireat"))
}

/// HPERSIST key FIELDS numfields field [field ...]
pub fn hpersist(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (key, now_ms) = (args.key()?, cx.now.ms);
    let mut persisted = Vec::new();
    change(cx, key, |hash| {
        let count = fields(args, POSITIVE)?;
        out.array(count);
        for name in args.rest() {
            let due = hash.find(name).is_some_and(|field| field.is_due(now_ms));
            let outcome = if due { Outcome::NoField } else { hash.persist(name) };
            if outcome == Outcome::Changed {
                persisted.push(name);
            }
            out.int(match outcome {
                Outcome::NoField => NO_FIELD,
                Outcome::Unchanged => NO_DEADLINE,
                Outcome::Changed | Outcome::Deleted => 1,
            });
        }
        hash.changed(usize::from(!persisted.is_empty()));
        Ok(())
    })?;
    if cx.is_logged() && !persisted.is_empty() {
        // Not those that are due: nothing is while the log is read.
        log_fields(cx, args, &[], args.position(), &persisted);
    }
    Ok(())
}

/// Shows deadlines, counted from `base_ms`, in units rounded up.
fn show(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out, unit_ms: u64, base_ms: u64) -> Done {
    let hash = look(cx, args.key()?)?;
    let count = fields(args, POSITIVE)?;
    out.array(count);
    for name in args.rest() {
        let field = hash.and_then(|hash| hash.find(name)).filter(|field| !field.is_due(cx.now.ms));
        out.int(match field.map(|field| field.deadline_ms) {
            None => NO_FIELD,
            Some(None) => NO_DEADLINE,
            Some(Some(ms)) => ms.saturating_sub(base_ms).div_ceil(unit_ms) as i64,
        });
    }
    Ok(())
}

/// HTTL key FIELDS numfields field [field ...]
pub fn httl(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    show(cx, args, out, 1000, cx.now.ms)
}

/// HPTTL key FIELDS numfields field [field ...]
pub fn hpttl(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    show(cx, args, out, 1, cx.now.ms)
}

/// HEXPIRETIME key FIELDS numfields field [field ...]
pub fn hexpiretime(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    show(cx, args, out, 1000, 0)
}

/// HPEXPIRETIME key FIELDS numfields field [field ...]
pub fn hpexpiretime(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    show(cx, args, out, 1, 0)
}
