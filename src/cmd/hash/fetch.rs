//! Fields fetched or set together with their deadlines: HGETDEL, HGETEX, HSETEX.
use super::{
    Expiration, HDEL, HEXPIRE, HPERSIST, HSET, MILLISECONDS, POSITIVE, SECONDS, UNIX_MILLISECONDS,
    UNIX_SECONDS, change, fields, reply_value,
};
use crate::base::num;
use crate::cmd::cx::WriteCx;
use crate::cmd::spec::Done;
use crate::types::hash::{Condition, HashMut, Outcome};
use crate::wire::args::option_word;
use crate::wire::{Args, Error, Key, Out};

const EX: u64 = option_word(b"EX");
const PX: u64 = option_word(b"PX");
const EXAT: u64 = option_word(b"EXAT");
const PXAT: u64 = option_word(b"PXAT");
const PERSIST: u64 = option_word(b"PERSIST");
const KEEPTTL: u64 = option_word(b"KEEPTTL");
const FNX: u64 = option_word(b"FNX");
const FXX: u64 = option_word(b"FXX");
const FIELDS: u64 = option_word(b"FIELDS");

/// The expiration that an option word announces.
fn expiration(option: u64) -> Option<Expiration> {
    Some(match option {
        EX => SECONDS,
        PX => MILLISECONDS,
        EXAT => UNIX_SECONDS,
        PXAT => UNIX_MILLISECONDS,
        _ => return None,
    })
}

/// HGETDEL key FIELDS numfields field [field ...]
pub fn hgetdel(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let key = args.key()?;
    let mut any = false;
    change(cx, key, |hash| {
        let count = fields(args, POSITIVE)?;
        out.array(count);
        for name in args.rest() {
            hash.drop_due(name);
            reply_value(out, hash.find(name));
            let deleted = hash.remove(name);
            hash.changed(usize::from(deleted));
            any |= deleted;
        }
        Ok(())
    })?;
    if any {
        log_names(cx, &[b"HDEL", key.bytes], args);
    }
    Ok(())
}

/// Logs `words` and the fields at the cursor.
fn log_names(cx: &mut WriteCx<'_>, words: &[&[u8]], args: &Args<'_>) {
    if cx.is_logged() {
        let words: Vec<&[u8]> = words.iter().copied().chain(args.rest()).collect();
        cx.log(&words);
    }
}

/// What HGETEX does with deadlines.
enum Change {
    Nothing,
    Set(u64),
    Clear,
}

/// HGETEX key [expiration] FIELDS numfields field [field ...]
pub fn hgetex(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (key, now_ms) = (args.key()?, cx.now.ms);
    let mut any = false;
    let wanted = change(cx, key, |hash| {
        let option = args.option();
        let wanted = match expiration(option) {
            Some(expiration) => {
                args.skip();
                Change::Set(expiration.deadline_ms(args.bytes()?, now_ms, "hgetex")?)
            }
            None if option == PERSIST => {
                args.skip();
                Change::Clear
            }
            None => Change::Nothing,
        };
        if args.left() < 2 {
            return Err(Error::Arity("hgetex"));
        }
        let count = fields(args, POSITIVE)?;
        if hash.view().is_some() && !matches!(wanted, Change::Nothing) {
            hash.admit_deadlines();
        }
        hash.stands_for(match wanted {
            Change::Set(deadline_ms) if deadline_ms > now_ms => &[HEXPIRE],
            Change::Set(_) => &[HDEL],
            Change::Clear | Change::Nothing => &[HPERSIST],
        });
        out.array(count);
        for name in args.rest() {
            hash.drop_due(name);
            reply_value(out, hash.find(name));
            let outcome = match wanted {
                Change::Nothing => Outcome::Unchanged,
                Change::Set(deadline_ms) => hash.set_deadline(name, deadline_ms, Condition::Always),
                Change::Clear => hash.persist(name),
            };
            hash.changed(usize::from(matches!(outcome, Outcome::Changed | Outcome::Deleted)));
            any |= outcome == Outcome::Changed;
        }
        Ok(wanted)
    })?;
    log_hgetex(cx, (key, any), &wanted, args);
    Ok(())
}

/// Logs what HGETEX did to the fields at the cursor; those that were deleted are logged as such.
fn log_hgetex(cx: &mut WriteCx<'_>, (key, any): (Key<'_>, bool), wanted: &Change, args: &Args<'_>) {
    cx.log_own();
    let (mut at, mut count) = (itoa::Buffer::new(), itoa::Buffer::new());
    let count = count.format(args.left()).as_bytes();
    match wanted {
        Change::Set(ms) if any => {
            let at = at.format(*ms).as_bytes();
            log_names(cx, &[b"HPEXPIREAT", key.bytes, at, b"FIELDS", count], args);
        }
        Change::Clear if any => log_names(cx, &[b"HPERSIST", key.bytes, b"FIELDS", count], args),
        _ => {}
    }
}

/// When HSETEX may set.
#[derive(Clone, Copy, PartialEq)]
enum If {
    Always,
    /// FNX: none of the fields exists.
    NoneExists,
    /// FXX: all of the fields exist.
    AllExist,
}

struct SetOptions {
    when: If,
    deadline_ms: Option<u64>,
    /// Which argument says when.
    deadline_at: usize,
    keep_deadlines: bool,
    fields: usize,
}

impl SetOptions {
    /// Everything up to the first field. Refuses in the order of the arguments.
    fn parse(args: &mut Args<'_>, now_ms: u64) -> Result<SetOptions, Error> {
        let mut options = SetOptions {
            when: If::Always,
            deadline_ms: None,
            deadline_at: 0,
            keep_deadlines: false,
            fields: 0,
        };
        loop {
            let word = args.option();
            match (word, expiration(word)) {
                (FIELDS, _) => {
                    options.fields = count_pairs(args)?;
                    return Ok(options);
                }
                (FNX | FXX, _) => {
                    if options.when != If::Always {
                        return Err(Error::err("Only one of FXX or FNX arguments can be specified"));
                    }
                    options.when = if word == FNX { If::NoneExists } else { If::AllExist };
                }
                (KEEPTTL, _) => {
                    options.must_be_first_expiration()?;
                    options.keep_deadlines = true;
                }
                (_, Some(expiration)) => {
                    options.must_be_first_expiration()?;
                    args.skip();
                    if args.is_done() {
                        return Err(Error::err("missing expire time"));
                    }
                    let time = args.get(args.position());
                    options.deadline_at = args.position();
                    options.deadline_ms = Some(expiration.deadline_ms(time, now_ms, "hsetex")?);
                }
                _ => {
                    let unknown = String::from_utf8_lossy(args.bytes()?);
                    return Err(Error::err(format_args!("unknown argument: {unknown}")));
                }
            }
            args.skip();
        }
    }

    fn must_be_first_expiration(&self) -> Done {
        if self.deadline_ms.is_some() || self.keep_deadlines {
            return Err(Error::err("Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified"));
        }
        Ok(())
    }

    /// Whether the fields are such that HSETEX may set. Fields whose time has come are deleted on the way.
    fn allows<'n>(&self, hash: &mut HashMut<'_, '_>, mut names: impl Iterator<Item = &'n [u8]>) -> bool {
        let mut exists = |name| {
            hash.drop_due(name);
            hash.find(name).is_some()
        };
        match self.when {
            If::Always => true,
            If::NoneExists => !names.any(exists),
            If::AllExist => names.all(&mut exists),
        }
    }
}

/// `FIELDS numfields` at the cursor, with as many pairs behind it as it says.
fn count_pairs(args: &mut Args<'_>) -> Result<usize, Error> {
    args.skip();
    if args.left() < 3 {
        return Err(Error::Arity("hsetex"));
    }
    let count =
        args.take().and_then(num::parse_i64).filter(|count| (1..=i64::from(i32::MAX)).contains(count));
    let count = count.ok_or_else(|| Error::err("invalid number of fields"))?;
    if !args.left().is_multiple_of(2) || usize::try_from(count) != Ok(args.left() / 2) {
        return Err(Error::Arity("hsetex"));
    }
    Ok(args.left() / 2)
}

/// HSETEX key [FNX|FXX] [expiration|KEEPTTL] FIELDS numfields field value [field value ...]
pub fn hsetex(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let key = args.key()?;
    let options = SetOptions::parse(args, cx.now.ms)?;
    let set = change(cx, key, |hash| {
        if hash.view().is_none() && options.when == If::AllExist {
            return Ok(false);
        }
        if !options.allows(hash, args.rest().step_by(2)) {
            return Ok(false);
        }
        hash.make_room(options.fields, args.rest());
        if options.deadline_ms.is_some() {
            hash.admit_deadlines();
        }
        let keep = options.keep_deadlines || options.deadline_ms.is_some();
        while let (Some(name), Some(value)) = (args.take(), args.take()) {
            if options.keep_deadlines {
                hash.drop_due(name);
            }
            hash.put(name, value, keep);
            if let Some(deadline_ms) = options.deadline_ms {
                hash.set_deadline(name, deadline_ms, Condition::Always);
            }
        }
        match options.deadline_ms {
            Some(deadline_ms) if deadline_ms > hash.now_ms() => hash.stands_for(&[HSET, HEXPIRE]),
            Some(_) => hash.stands_for(&[HSET, HDEL]),
            None => {}
        }
        hash.changed(options.fields);
        Ok(true)
    })?;
    match options.deadline_ms {
        // The fields were deleted at once, and are logged as such.
        Some(deadline_ms) if deadline_ms <= cx.now.ms => cx.log_own(),
        Some(deadline_ms) if set => {
            let (at, mut ms) = (options.deadline_at, itoa::Buffer::new());
            cx.log_with(args, &[(at - 1, b"PXAT"), (at, ms.format(deadline_ms).as_bytes())], &[]);
        }
        _ => {}
    }
    out.flag(set);
    Ok(())
}
