//! Making and changing groups: XGROUP.
use super::id::{parse, parse_or_end};
use super::no_such_group;
use crate::cmd::cx::WriteCx;
use crate::cmd::spec::Done;
use crate::ds::stream::{Group, StreamId};
use crate::store::edit::Editor;
use crate::types::stream;
use crate::wire::error::subcommand_syntax;
use crate::wire::{Args, Error, Out};

/// Options behind the id.
struct Options {
    make: bool,
    entries_read: Option<i64>,
}

impl Options {
    fn of(args: &mut Args<'_>, takes_mkstream: bool) -> Result<Options, Error> {
        let mut options = Options { make: false, entries_read: None };
        while !args.is_done() {
            if takes_mkstream && args.keyword("MKSTREAM") {
                options.make = true;
            } else if args.left() > 1 && args.keyword("ENTRIESREAD") {
                options.entries_read = match args.int()? {
                    -1 => None,
                    read if read >= 0 => Some(read),
                    _ => return Err(Error::err("value for ENTRIESREAD must be positive or -1")),
                };
            } else {
                return Err(subcommand_syntax(args.get(1), "XGROUP"));
            }
        }
        Ok(options)
    }
}

fn no_key() -> Error {
    Error::err(
        "The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM \
         option to create an empty stream automatically.",
    )
}

/// XGROUP CREATE key group id|$ [MKSTREAM] [ENTRIESREAD entries-read]
pub fn create(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    /// Arguments with two options, or as many words of them.
    const COUNT_MAX: usize = 8;
    let (key, group, id) = (args.key()?, args.bytes()?, args.bytes()?);
    let options = Options::of(args, true)?;
    cx.edit(key, |editor| {
        let last = match stream::edit(editor)? {
            Some(stream) => stream.log.last_id(),
            None if options.make => StreamId::MIN,
            None => return Err(no_key()),
        };
        if args.count() > COUNT_MAX {
            return Err(subcommand_syntax(args.get(1), "XGROUP"));
        }
        let last = if id == b"$" { last } else { parse(id, 0)? };
        let stream = stream::edit_or_make(editor)?;
        if stream.groups.contains_key(group) {
            return Err(Error::line("BUSYGROUP Consumer Group name already exists".into()));
        }
        stream.groups.insert(group.into(), Group::new(last, options.entries_read));
        editor.changed_beside(1);
        Ok(())
    })?;
    out.ok();
    Ok(())
}

/// The group that arguments name, at least as long as the stream is there; the key and the group's name are read.
fn with_group<T>(
    cx: &mut WriteCx<'_>,
    (key, name): (crate::wire::Key<'_>, &[u8]),
    change: impl FnOnce(&mut Group, StreamId) -> Result<(T, usize), Error>,
) -> Result<T, Error> {
    cx.edit(key, |editor: &mut Editor<'_>| {
        let stream = stream::edit(editor)?.ok_or_else(no_key)?;
        let last_id = stream.log.last_id();
        let group = stream.groups.get_mut(name).ok_or_else(|| no_such_group(key.bytes, name))?;
        let (result, changes) = change(group, last_id)?;
        editor.changed_beside(changes);
        Ok(result)
    })
}

/// XGROUP SETID key group id|$ [ENTRIESREAD entries-read]
pub fn setid(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    const COUNTS: [usize; 2] = [5, 7];
    let (key, name, id) = (args.key()?, args.bytes()?, args.bytes()?);
    let options = Options::of(args, false)?;
    with_group(cx, (key, name), |group, last_id| {
        if !COUNTS.contains(&args.count()) {
            return Err(subcommand_syntax(args.get(1), "XGROUP"));
        }
        group.last_id = if id == b"$" { last_id } else { parse_or_end(id, 0)? };
        group.entries_read = options.entries_read;
        Ok(((), 1))
    })?;
    out.ok();
    Ok(())
}

/// XGROUP DESTROY key group
pub fn destroy(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (key, name) = (args.key()?, args.bytes()?);
    let removed = cx.edit(key, |editor| {
        let removed = stream::edit(editor)?.ok_or_else(no_key)?.groups.remove(name).is_some();
        editor.changed_beside(usize::from(removed));
        Ok(removed)
    })?;
    if removed {
        // Those who wait for its entries wait in vain.
        let db = cx.caller.db;
        cx.store(key.hash).note_ready(db, key);
    }
    out.flag(removed);
    Ok(())
}

/// XGROUP CREATECONSUMER key group consumer
pub fn createconsumer(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (key, name, consumer) = (args.key()?, args.bytes()?, args.bytes()?);
    let now_ms = cx.now.ms as i64;
    let made = with_group(cx, (key, name), |group, _| {
        // One that is there is not seen by this.
        let made = group.find(consumer).is_none() && group.find_or_add(consumer, now_ms).1;
        Ok((made, usize::from(made)))
    })?;
    out.flag(made);
    Ok(())
}

/// XGROUP DELCONSUMER key group consumer
pub fn delconsumer(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (key, name, consumer) = (args.key()?, args.bytes()?, args.bytes()?);
    let pending = with_group(cx, (key, name), |group, _| {
        let removed = group.remove(consumer);
        Ok((removed.unwrap_or(0), usize::from(removed.is_some())))
    })?;
    out.count(pending);
    Ok(())
}
