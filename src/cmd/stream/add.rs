//! Changes of the log: XADD, XTRIM, XDEL, XSETID.
use super::id::{parse, parse_all, parse_new};
use super::{XADD, XTRIM, reply_id};
use crate::cmd::cx::WriteCx;
use crate::cmd::spec::Done;
use crate::config::{P, Settings};
use crate::ds::stream::{ENTRY_BYTES_MAX, Keep, Log, NewId, Stream, StreamId, Trim};
use crate::store::edit::Editor;
use crate::types::stream;
use crate::wire::args::option_word;
use crate::wire::{Args, Error, Out};

/// Trimming by whole nodes looks at so many nodes, unless LIMIT says otherwise,
const NODES_TRIMMED_MAX: u64 = 100;
/// at no more entries than this,
const ENTRIES_TRIMMED_MAX: u64 = 1_000_000;
/// and at so many where nodes have no limit.
const ENTRIES_TRIMMED: u64 = 10_000;

/// What XADD and XTRIM are told besides the entry.
#[derive(Default)]
struct Options {
    keep: Option<Keep>,
    whole_nodes: bool,
    limit: Option<u64>,
    must_exist: bool,
    /// Which argument is `~`; the threshold stands behind it.
    about_at: Option<usize>,
    /// `None`: that of the clock.
    id: Option<NewId>,
}

const MAXLEN: u64 = option_word(b"MAXLEN");
const MINID: u64 = option_word(b"MINID");
const LIMIT: u64 = option_word(b"LIMIT");

impl Options {
    /// Those of XADD, up to and with the id.
    fn of_xadd(args: &mut Args<'_>, is_loading: bool) -> Result<Options, Error> {
        let mut options = Options::default();
        while let Some(next) = args.rest().next() {
            if next == b"*" {
                args.skip();
                break;
            }
            if options.trimming(args)? {
                continue;
            }
            if args.keyword("NOMKSTREAM") {
                options.must_exist = true;
            } else {
                options.id = Some(parse_new(args.bytes()?)?);
                break;
            }
        }
        options.check(is_loading, false)?;
        Ok(options)
    }

    fn of_xtrim(args: &mut Args<'_>, is_loading: bool) -> Result<Options, Error> {
        let mut options = Options::default();
        while !args.is_done() {
            if !options.trimming(args)? {
                return Err(Error::Syntax);
            }
        }
        options.check(is_loading, true)?;
        Ok(options)
    }

    /// An option about trimming, with its argument, if one is next.
    fn trimming(&mut self, args: &mut Args<'_>) -> Result<bool, Error> {
        if args.left() < 2 {
            return Ok(false);
        }
        match args.option() {
            word @ (MAXLEN | MINID) => {
                args.skip();
                self.threshold(word, args)?;
            }
            LIMIT => {
                args.skip();
                let limit = args.int()?;
                let negative = |_| Error::err("The LIMIT argument must be >= 0.");
                self.limit = Some(u64::try_from(limit).map_err(negative)?);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn threshold(&mut self, word: u64, args: &mut Args<'_>) -> Done {
        if self.keep.is_some() {
            return Err(Error::err(
                "syntax error, MAXLEN and MINID options at the same time are not compatible",
            ));
        }
        self.whole_nodes = false;
        if args.left() >= 2 {
            self.about_at = None;
            self.whole_nodes = args.keyword("~");
            if self.whole_nodes {
                self.about_at = Some(args.position() - 1);
            }
            if !self.whole_nodes {
                args.keyword("=");
            }
        }
        self.keep = Some(if word == MAXLEN {
            let negative = |_| Error::err("The MAXLEN argument must be >= 0.");
            Keep::Last(u64::try_from(args.int()?).map_err(negative)?)
        } else {
            Keep::From(parse(args.bytes()?, 0)?)
        });
        Ok(())
    }

    fn check(&mut self, is_loading: bool, must_trim: bool) -> Done {
        if is_loading {
            // Redis logs what was trimmed exactly, and leaves a limit where it stands.
            self.limit = None;
        }
        if self.keep.is_none() && self.limit.is_some_and(|limit| limit > 0) {
            return Err(Error::err(
                "syntax error, LIMIT cannot be used without specifying a trimming strategy",
            ));
        }
        if self.keep.is_none() && must_trim {
            return Err(Error::err("syntax error, XTRIM must be called with a trimming strategy"));
        }
        if self.limit.is_some() && !self.whole_nodes {
            return Err(Error::err("syntax error, LIMIT cannot be used without the special ~ option"));
        }
        Ok(())
    }

    fn trim(&self, settings: &Settings) -> Option<Trim> {
        let keep = self.keep?;
        let limit = match self.limit {
            Some(limit) => limit,
            None if !self.whole_nodes => 0,
            None => match settings.int(P::STREAM_NODE_MAX_ENTRIES).unsigned_abs() {
                0 => ENTRIES_TRIMMED,
                entries => entries.saturating_mul(NODES_TRIMMED_MAX).min(ENTRIES_TRIMMED_MAX),
            },
        };
        Some(Trim { keep, whole_nodes: self.whole_nodes, limit })
    }
}

/// What trimming by about a threshold came to: the exact threshold that does the same.
fn exact_threshold(keep: Option<Keep>, log: &Log) -> Vec<u8> {
    match keep {
        Some(Keep::From(_)) if log.is_empty() => StreamId::MAX.text(b'-').as_bytes().to_vec(),
        Some(Keep::From(_)) => log.first_id().text(b'-').as_bytes().to_vec(),
        _ => itoa::Buffer::new().format(log.len()).into(),
    }
}

/// XADD key [NOMKSTREAM] [MAXLEN|MINID [=|~] threshold [LIMIT count]] *|id field value [field value ...]
pub fn xadd(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let key = args.key()?;
    let options = Options::of_xadd(args, cx.now.is_loading)?;
    let id_at = args.position() - 1;
    if args.left() < 2 || !args.left().is_multiple_of(2) {
        return Err(Error::Arity("xadd"));
    }
    if matches!(options.id, Some(NewId::Exactly(StreamId::MIN))) {
        return Err(Error::err("The ID specified in XADD must be greater than 0-0"));
    }
    match cx.edit(key, |editor| append(editor, &options, args))? {
        Some((id, threshold)) => {
            reply_id(out, id);
            log_xadd(cx, args, (id_at, id), &options, &threshold);
        }
        None => out.null(),
    }
    Ok(())
}

/// Logs an XADD with the id that the entry got, trimming exactly.
fn log_xadd(
    cx: &mut WriteCx<'_>,
    args: &Args<'_>,
    (id_at, id): (usize, StreamId),
    options: &Options,
    threshold: &[u8],
) {
    let id = id.text(b'-');
    let about_at = options.about_at.unwrap_or(usize::MAX - 1);
    if options.about_at.is_some() || !matches!(options.id, Some(NewId::Exactly(_))) {
        cx.log_with(args, &[(id_at, id.as_bytes()), (about_at, b"="), (about_at + 1, threshold)], &[]);
    }
}

/// Appends an entry; returns its id and, where trimming was told a threshold about which, the exact one.
fn append(
    editor: &mut Editor<'_>,
    options: &Options,
    args: &Args<'_>,
) -> Result<Option<(StreamId, Vec<u8>)>, Error> {
    if options.must_exist && editor.kind().is_none() {
        return Ok(None);
    }
    let (limits, trim) = (stream::node_limits(editor.settings()), options.trim(editor.settings()));
    let wanted = options.id.unwrap_or(NewId::Now(editor.now().ms));
    let log = &mut stream::edit_or_make(editor)?.log;
    if log.last_id() == StreamId::MAX {
        return Err(Error::err("The stream has exhausted the last possible ID, unable to add more items"));
    }
    let Some(id) = log.new_id(wanted) else {
        return Err(Error::err(
            "The ID specified in XADD is equal or smaller than the target stream top item",
        ));
    };
    // No request is as long today; the limit is that of the nodes.
    if args.rest().map(<[u8]>::len).sum::<usize>() > ENTRY_BYTES_MAX {
        return Err(Error::err("Elements are too large to be stored"));
    }
    log.append(id, limits, args.rest());
    let is_trimmed = trim.is_some_and(|trim| log.trim(trim) > 0);
    let threshold = options.about_at.map_or(Vec::new(), |_| exact_threshold(options.keep, log));
    if is_trimmed {
        editor.stands_for(&[XADD, XTRIM]);
    }
    editor.changed(1);
    Ok(Some((id, threshold)))
}

/// XTRIM key MAXLEN|MINID [=|~] threshold [LIMIT count]
pub fn xtrim(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let key = args.key()?;
    let options = Options::of_xtrim(args, cx.now.is_loading)?;
    let (removed, threshold) = cx.edit(key, |editor| {
        let trim = options.trim(editor.settings());
        let mut threshold = None;
        let removed = match (stream::edit(editor)?, trim) {
            (Some(stream), Some(trim)) => {
                let removed = stream.log.trim(trim);
                threshold = options.about_at.map(|_| exact_threshold(options.keep, &stream.log));
                removed
            }
            _ => 0,
        };
        editor.changed(removed as usize);
        Ok((removed, threshold))
    })?;
    if removed > 0
        && let (Some(at), Some(threshold)) = (options.about_at, threshold)
    {
        cx.log_with(args, &[(at, b"="), (at + 1, &threshold)], &[]);
    }
    out.int(removed as i64);
    Ok(())
}

/// XDEL key id [id ...]
pub fn xdel(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let key = args.key()?;
    let removed = cx.edit(key, |editor| {
        let Some(stream) = stream::edit(editor)? else { return Ok(0) };
        let ids = parse_all(args)?;
        let removed = ids.iter().filter(|id| stream.log.delete(**id)).count();
        editor.changed(removed);
        Ok(removed)
    })?;
    out.count(removed);
    Ok(())
}

/// XSETID key last-id [ENTRIESADDED entries-added] [MAXDELETEDID max-deleted-id]
pub fn xsetid(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let key = args.key()?;
    let id = parse(args.bytes()?, 0)?;
    let (mut added, mut max_deleted) = (None, StreamId::MIN);
    while !args.is_done() {
        let more = args.left() > 1;
        if more && args.keyword("ENTRIESADDED") {
            let negative = |_| Error::err("entries_added must be positive");
            added = Some(u64::try_from(args.int()?).map_err(negative)?);
        } else if more && args.keyword("MAXDELETEDID") {
            max_deleted = parse(args.bytes()?, 0)?;
            if id < max_deleted {
                return Err(Error::err(
                    "The ID specified in XSETID is smaller than the provided max_deleted_entry_id",
                ));
            }
        } else {
            return Err(Error::Syntax);
        }
    }
    cx.edit(key, |editor| {
        let stream = stream::edit(editor)?.ok_or(Error::NoSuchKey)?;
        set_facts(stream, id, added, max_deleted)?;
        editor.changed_beside(1);
        Ok(())
    })?;
    out.ok();
    Ok(())
}

fn set_facts(stream: &mut Stream, id: StreamId, added: Option<u64>, max_deleted: StreamId) -> Done {
    let log = &mut stream.log;
    if id < log.max_deleted_id() {
        return Err(Error::err("The ID specified in XSETID is smaller than current max_deleted_entry_id"));
    }
    if log.last_entry_id().is_some_and(|last| id < last) {
        return Err(Error::err("The ID specified in XSETID is smaller than the target stream top item"));
    }
    if !log.is_empty() && added.is_some_and(|added| added < log.len()) {
        return Err(Error::err(
            "The entries_added specified in XSETID is smaller than the target stream length",
        ));
    }
    log.set_last_id(id);
    if let Some(added) = added {
        log.set_entries_added(added);
    }
    if !max_deleted.is_min() {
        log.set_max_deleted_id(max_deleted);
    }
    Ok(())
}
