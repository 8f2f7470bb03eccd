//! Whole keys: deleting, naming, moving and listing them; whole databases.
//!
//! Must stay true: a key that is renamed, moved or copied keeps its deadline; large things are freed in the
//! background.
use std::sync::atomic::Ordering;

use super::{int_arg, type_name};
use crate::base::{glob, rng};
use crate::cmd::cx::{Met, ReadCx, WriteCx, db_index};
use crate::cmd::spec::Done;
use crate::ds::raw::block::BlockRef;
use crate::ds::raw::dash::ScanAt;
use crate::store::Store;
use crate::store::news::{Event, class};
use crate::wire::{Args, Error, Key, Out};

/// How often RANDOMKEY draws again when it meets expired keys.
const RANDOM_DRAWS: u32 = 100;
/// Keys looked at in one step when all draws failed.
const WALK_KEYS: usize = 100;

fn same_object() -> Error {
    Error::err("source and destination objects are the same")
}

/// DEL key [key ...] and UNLINK key [key ...]
pub fn del(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    if args.left() == 1 {
        let removed = cx.remove(args.key()?);
        out.flag(removed);
        return Ok(());
    }
    let mut removed = 0;
    while !args.is_done() {
        let keys = args.some_keys();
        cx.prefetch(&keys);
        removed += keys.into_iter().filter(|key| cx.remove(*key)).count();
    }
    out.count(removed);
    Ok(())
}

fn count_found(
    cx: &ReadCx<'_>,
    args: &mut Args<'_>,
    out: &mut Out,
    mut found: impl FnMut(Key<'_>) -> bool,
) -> Done {
    if args.left() == 1 {
        out.flag(found(args.key()?));
        return Ok(());
    }
    let mut count = 0;
    while !args.is_done() {
        let keys = args.some_keys();
        cx.prefetch(&keys);
        count += keys.into_iter().filter(|key| found(*key)).count();
    }
    out.count(count);
    Ok(())
}

/// EXISTS key [key ...]
pub fn exists(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    count_found(cx, args, out, |key| cx.look(key).is_some())
}

/// TOUCH key [key ...]. Marks the use even under CLIENT NO-TOUCH.
pub fn touch_keys(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let now = cx.now.with_no_touch(false);
    count_found(cx, args, out, |key| cx.look(key).inspect(|block| now.mark_use(*block)).is_some())
}

/// TYPE key
pub fn type_of(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let found = cx.look(args.key()?);
    out.simple(found.map_or("none", |block| type_name(block.kind())));
    Ok(())
}

/// RENAME key newkey
pub fn rename(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    rename_key(cx, args, false)?;
    out.ok();
    Ok(())
}

/// RENAMENX key newkey
pub fn renamenx(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let renamed = rename_key(cx, args, true)?;
    out.flag(renamed);
    Ok(())
}

/// Whether the key has a new name now; `only_new`: not when another key has it.
fn rename_key(cx: &mut WriteCx<'_>, args: &mut Args<'_>, only_new: bool) -> Result<bool, Error> {
    let (from, to) = (args.key()?, args.key()?);
    let (now, caller) = (cx.now, cx.caller);
    cx.find_used(from).ok_or(Error::NoSuchKey)?;
    if from.bytes == to.bytes || (cx.find_used(to).is_some() && only_new) {
        return Ok(false);
    }
    let block = cx.store(from.hash).take(caller.db, from).ok_or(Error::NoSuchKey)?.with_key(to.bytes);
    // To Redis a key under a new name is a new key.
    block.view().touch(now.fresh());
    cx.store(to.hash).place(caller.db, to, block);
    cx.note_event(from, Event { class: class::GENERIC, name: "rename_from" });
    cx.note_event(to, Event { class: class::GENERIC, name: "rename_to" });
    Ok(true)
}

/// A database index as COPY and MOVE read it: the range of a C `int` is checked first.
fn database(cx: &WriteCx<'_>, arg: &[u8]) -> Result<u32, Error> {
    let index = int_arg(arg)?;
    if i32::try_from(index).is_err() {
        return Err(Error::not_between(i32::MIN.into(), i32::MAX.into()));
    }
    db_index(&cx.host.settings(), arg, Error::NotInteger)
}

/// COPY source destination [DB destination-db] [REPLACE]
pub fn copy(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (from, to) = (args.key()?, args.key()?);
    let (now, caller) = (cx.now, cx.caller);
    let (mut db, mut replace) = (caller.db, false);
    while !args.is_done() {
        if args.keyword("REPLACE") {
            replace = true;
        } else if args.keyword("DB") {
            db = database(cx, args.bytes()?)?;
        } else {
            return Err(Error::Syntax);
        }
    }
    if db == caller.db && from.bytes == to.bytes {
        return Err(same_object());
    }
    if cx.find_counted(from).is_none() {
        out.flag(false);
        return Ok(());
    }
    let wanted = cx.find_in(db, to).inspect(|block| now.mark_use(*block)).is_none() || replace;
    if wanted && let Some(source) = cx.find(from) {
        let block = source.copy_as(to.bytes, now.fresh());
        cx.store(to.hash).place(db, to, block);
    }
    out.flag(wanted);
    Ok(())
}

/// MOVE key db
pub fn move_key(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (key, db) = (args.key()?, database(cx, args.bytes()?)?);
    let (now, caller) = (cx.now, cx.caller);
    if db == caller.db {
        return Err(same_object());
    }
    let found = cx.find_used(key).is_some();
    let moves = found && cx.find_in(db, key).inspect(|block| now.mark_use(*block)).is_none();
    let store = cx.store(key.hash);
    if moves && let Some(block) = store.take(caller.db, key) {
        block.view().touch(now.fresh());
        store.place(db, key, block);
        store.note_event(caller.db, key, Event { class: class::GENERIC, name: "move_from" });
        store.note_event(db, key, Event { class: class::GENERIC, name: "move_to" });
    }
    out.flag(moves);
    Ok(())
}

/// DBSIZE
pub fn dbsize(cx: &ReadCx<'_>, _args: &mut Args<'_>, out: &mut Out) -> Done {
    out.count(cx.all().map(|store| store.key_count(cx.caller.db)).sum());
    Ok(())
}

/// Whether a key is there, seen from a walk over the table.
fn is_live(cx: &ReadCx<'_>, block: BlockRef<'_>) -> bool {
    block.deadline_ms().is_none_or(|at| at > cx.now.ms)
}

/// [`is_live`], for walks that clear away what is not.
fn is_live_or_met(cx: &ReadCx<'_>, block: BlockRef<'_>) -> bool {
    let live = is_live(cx, block);
    if !live {
        cx.met.set(Met::Walked);
    }
    live
}

/// RANDOMKEY
pub fn randomkey(cx: &ReadCx<'_>, _args: &mut Args<'_>, out: &mut Out) -> Done {
    match random_live(cx).or_else(|| first_live(cx)) {
        Some(block) => out.bulk(block.key()),
        None => out.null(),
    }
    Ok(())
}

/// A live key, each about equally likely; `None` when too many draws met expired ones.
fn random_live<'a>(cx: &ReadCx<'a>) -> Option<BlockRef<'a>> {
    let db = cx.caller.db;
    let total: usize = cx.all().map(|store| store.key_count(db)).sum();
    (0..RANDOM_DRAWS).find_map(|_| {
        let store = nth_share(cx.all().map(|store| (store, store.key_count(db))), rng::below(total as u64))?;
        let block = store.db(db)?.table.random(rng::next_u64)?;
        is_live_or_met(cx, block).then_some(block)
    })
}

/// The owner of share `n`, when everybody in turn owns as many shares as their number says.
fn nth_share<T>(owners: impl Iterator<Item = (T, usize)>, mut n: u64) -> Option<T> {
    for (owner, shares) in owners {
        if n < shares as u64 {
            return Some(owner);
        }
        n -= shares as u64;
    }
    None
}

/// The first live key of a walk over all tables.
fn first_live<'a>(cx: &ReadCx<'a>) -> Option<BlockRef<'a>> {
    for table in cx.all().filter_map(|store| Some(&store.db(cx.caller.db)?.table)) {
        let mut at = Some(ScanAt::default());
        while let Some(here) = at {
            let mut live = None;
            at = table.scan(here, WALK_KEYS, &mut |block| {
                if live.is_none() && is_live_or_met(cx, block) {
                    live = Some(block);
                }
            });
            if live.is_some() {
                return live;
            }
        }
    }
    None
}

/// KEYS pattern
pub fn keys(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let pattern = args.bytes()?;
    if let Some(name) = glob::literal_prefix(pattern) {
        let found = cx.peek(Key::new(name)).is_some();
        out.array(usize::from(found));
        if found {
            out.bulk(name);
        }
        return Ok(());
    }
    let (mark, mut count) = (out.mark(), 0);
    for db in cx.all().filter_map(|store| store.db(cx.caller.db)) {
        db.table.for_each(|block| {
            let key = block.key();
            if (pattern == b"*" || glob::matches(pattern, key, false)) && is_live(cx, block) {
                out.bulk(key);
                count += 1;
            }
        });
    }
    out.insert_at(mark, |out| out.array(count));
    Ok(())
}

/// SYNC and ASYNC are the same here: the databases are empty at once, and freed in the background.
fn flush_option(args: &mut Args<'_>) -> Done {
    let known = args.is_done() || args.keyword("SYNC") || args.keyword("ASYNC");
    if known && args.is_done() { Ok(()) } else { Err(Error::Syntax) }
}

/// FLUSHDB [ASYNC|SYNC]
pub fn flushdb(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    flush_option(args)?;
    let db = cx.caller.db;
    cx.for_all(|store| {
        store.flush_db(db);
    });
    cx.log_words(args);
    out.ok();
    Ok(())
}

/// FLUSHALL [ASYNC|SYNC]
pub fn flushall(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    flush_option(args)?;
    cx.for_all(Store::flush_all);
    if !cx.host.settings().save_rules().is_empty() {
        // What was there must not come back with a restart.
        cx.host.persistence.is_scheduled.store(true, Ordering::Relaxed);
    }
    cx.log_words(args);
    out.ok();
    Ok(())
}

/// SWAPDB index1 index2
pub fn swapdb(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let mut number = |text| {
        let index = int_arg(args.bytes()?).ok().and_then(|index| i32::try_from(index).ok());
        index.ok_or_else(|| Error::err(text))
    };
    let (a, b) = (number("invalid first DB index")?, number("invalid second DB index")?);
    let databases = cx.host.settings().int(crate::config::P::DATABASES);
    let valid = |index: i32| (0..databases).contains(&i64::from(index)).then_some(index as u32);
    let (a, b) = valid(a).zip(valid(b)).ok_or(Error::DbIndex)?;
    if a != b {
        cx.for_all(|store| store.swap(a, b));
    }
    out.ok();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::nth_share;

    #[test]
    fn shares() {
        let owners = || [("a", 2), ("b", 0), ("c", 1)].into_iter();
        let all: Vec<_> = (0..4).map(|n| nth_share(owners(), n)).collect();
        assert_eq!(all, [Some("a"), Some("a"), Some("c"), None]);
    }
}
