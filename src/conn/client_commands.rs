//! CLIENT: what connections are called, who is connected, and how to be rid of them.
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::commands::{client_name, is_plain};
use super::tracking;
use crate::base::num;
use crate::cmd::cx::{ConnCx, ReplyMode, Wish};
use crate::cmd::docs;
use crate::cmd::spec::{Done, Group::Connection as C, Spec, flag, gate};
use crate::cmd::table::table;
use crate::host::hub::Kind;
use crate::host::mail::Letter;
use crate::host::{ClientInfo, Stand, mark};
use crate::wire::{Args, Error, Out};

const ADMIN: u32 = flag::ADMIN | flag::NOSCRIPT;
const OF_CLIENTS: &str = "O(N) where N is the number of connections.";
const EVERYWHERE: &[&str] = &["request_policy:all_nodes", "response_policy:all_succeeded"];
/// The part of the replies that wait which Redis shows as lying in a buffer of fixed size.
const REPLY_BUFFER_BYTES: u64 = 16 * 1024;
const VARYING: &[&str] = &["nondeterministic_output"];

/// The rows.
pub const COMMANDS: &[Spec] = &[Spec::container("client", SUBCOMMANDS)
    .doc(C, "2.4.0", "Holds the commands about connections.")
    .with(flag::KEEPS_CACHING)];

const SUBCOMMANDS: &[Spec] = &[
    tracking::CACHING,
    Spec::conn("client|getname", "", getname)
        .doc(C, "2.6.9", "Returns the name of this connection.")
        .with(flag::NOSCRIPT),
    tracking::GETREDIR,
    Spec::conn("client|help", "", help).doc(C, "5.0.0", "Tells what each subcommand does."),
    Spec::conn("client|id", "", id)
        .doc(C, "5.0.0", "Returns the number of this connection.")
        .with(flag::NOSCRIPT),
    Spec::conn("client|info", "", info)
        .doc(C, "6.2.0", "Describes this connection.")
        .with(flag::NOSCRIPT)
        .tips(VARYING),
    Spec::conn(
        "client|kill",
        "<ip:port|[ID client-id] [TYPE NORMAL|MASTER|SLAVE|REPLICA|PUBSUB] [USER username] [ADDR ip:port] \
         [LADDR ip:port] [SKIPME YES|NO] [MAXAGE maxage]>",
        kill,
    )
    .doc(C, "2.4.0", "Closes connections, by address or by filters that must all hold.")
    .cost(OF_CLIENTS)
    .with(ADMIN),
    Spec::conn("client|list", "[TYPE NORMAL|MASTER|REPLICA|PUBSUB] [ID client-id [client-id ...]]", list)
        .doc(C, "2.4.0", "Describes open connections.")
        .cost(OF_CLIENTS)
        .with(ADMIN)
        .tips(VARYING),
    Spec::conn("client|no-evict", "ON|OFF", no_evict)
        .doc(C, "7.0.0", "Guards this connection from being closed when clients take too much memory.")
        .with(ADMIN),
    Spec::conn("client|no-touch", "ON|OFF", no_touch)
        .doc(C, "7.2.0", "Lets reads of this connection leave no trace in the ages of keys.")
        .with(flag::NOSCRIPT),
    Spec::conn("client|pause", "timeout [WRITE|ALL]", pause)
        .doc(C, "3.0.0", "Holds commands, or only writes, back for some milliseconds.")
        .with(ADMIN),
    Spec::conn("client|reply", "ON|OFF|SKIP", reply)
        .doc(C, "3.2.0", "Chooses whether this connection wants replies.")
        .with(flag::NOSCRIPT),
    Spec::conn("client|setinfo", "<LIB-NAME libname|LIB-VER libver>", setinfo)
        .doc(C, "7.2.0", "Tells the name or the version of the client's library.")
        .arity(4)
        .with(flag::NOSCRIPT)
        .tips(EVERYWHERE),
    Spec::conn("client|setname", "connection-name", setname)
        .doc(C, "2.6.9", "Names this connection.")
        .with(flag::NOSCRIPT)
        .tips(EVERYWHERE),
    tracking::TRACKING,
    tracking::TRACKINGINFO,
    Spec::conn("client|unblock", "client-id [TIMEOUT|ERROR]", unblock)
        .doc(C, "5.0.0", "Ends the wait of another connection in a blocking command.")
        .cost("O(log N) where N is the number of connections.")
        .with(ADMIN),
    Spec::conn("client|unpause", "", unpause)
        .doc(C, "6.2.0", "Ends a pause early.")
        .cost("O(N) where N is the number of paused connections.")
        .with(ADMIN),
];

fn help(_: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    docs::help("client", out);
    Ok(())
}

fn id(cx: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    out.int(cx.client.info.id as i64);
    Ok(())
}

fn getname(cx: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    let name = cx.client.info.name.lock();
    if name.is_empty() {
        out.null()
    } else {
        out.bulk(name.as_bytes())
    }
    Ok(())
}

fn setname(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    *cx.client.info.name.lock() = client_name(args.bytes()?)?;
    out.ok();
    Ok(())
}

fn setinfo(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (option, value) = (args.bytes()?, args.bytes()?);
    let shown = String::from_utf8_lossy(option);
    let (is_name, is_version) =
        (option.eq_ignore_ascii_case(b"lib-name"), option.eq_ignore_ascii_case(b"lib-ver"));
    if !is_name && !is_version {
        return Err(Error::err(format_args!("Unrecognized option '{shown}'")));
    }
    if !is_plain(value) {
        return Err(Error::err(format_args!(
            "{shown} cannot contain spaces, newlines or special characters."
        )));
    }
    let value = String::from_utf8_lossy(value).into_owned();
    let mut lib = cx.client.info.lib.lock();
    if is_name {
        lib.0 = value
    } else {
        lib.1 = value
    }
    out.ok();
    Ok(())
}

/// One client as CLIENT LIST shows it, without a line end. Fields of what this server lacks hold what Redis shows
/// for a client that does not use it.
pub(super) fn line(info: &ClientInfo, now_ms: u64) -> String {
    let load = |field: &std::sync::atomic::AtomicU64| field.load(Ordering::Relaxed);
    let seconds_since = |ms: u64| now_ms.saturating_sub(ms) / 1000;
    let (query, capacity, output) =
        (load(&info.query_bytes), load(&info.query_capacity), load(&info.output_bytes));
    // What Redis keeps in a buffer of fixed size, and what beyond that.
    let (in_buffer, beyond) = (output.min(REPLY_BUFFER_BYTES), output.saturating_sub(REPLY_BUFFER_BYTES));
    let reply_capacity = load(&info.reply_capacity);
    let last = info.last_command.load(Ordering::Relaxed);
    let command = if last == u32::MAX { "NULL" } else { table().row(last).spec.name };
    let lib = info.lib.lock();
    format!(
        "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={} db={} sub={} psub={} ssub={} multi={} watch={} \
         qbuf={query} qbuf-free={} argv-mem=0 multi-mem={} rbs={reply_capacity} rbp={reply_capacity} \
         obl={in_buffer} oll={} omem={beyond} tot-mem={} events={} cmd={command} user=default redir={} resp={} \
         lib-name={} lib-ver={} io-thread={}",
        info.id,
        info.addr,
        info.laddr,
        *info.fd.lock(),
        info.name.lock(),
        seconds_since(info.since_ms),
        seconds_since(load(&info.last_ms)),
        flags(info),
        info.db.load(Ordering::Relaxed),
        info.subscriptions(Kind::Channel),
        info.subscriptions(Kind::Pattern),
        info.subscriptions(Kind::ShardChannel),
        info.queued.load(Ordering::Relaxed),
        info.watched.load(Ordering::Relaxed),
        capacity.saturating_sub(query),
        load(&info.queued_bytes),
        beyond.div_ceil(REPLY_BUFFER_BYTES),
        info.memory.get(),
        if output > 0 { "rw" } else { "r" },
        info.redirect.load(Ordering::Relaxed),
        info.resp.load(Ordering::Relaxed),
        lib.0,
        lib.1,
        info.shard.load(Ordering::Relaxed),
    )
}

fn flags(info: &ClientInfo) -> String {
    let is = |bit: u32| match bit {
        mark::PUBSUB => info.is_subscriber(),
        mark::MULTI => info.queued.load(Ordering::Relaxed) >= 0,
        mark::BLOCKED => info.wait.lock().is_some() || info.has(mark::PAUSED),
        mark::CHANGED => {
            info.watched_changed.lock().upgrade().is_some_and(|changed| changed.load(Ordering::Relaxed))
        }
        mark::KILLED => info.killed.load(Ordering::Relaxed),
        bit => info.has(bit),
    };
    let text: String = mark::LETTERS.iter().filter(|(bit, _)| is(*bit)).map(|(_, letter)| *letter).collect();
    if text.is_empty() { "N".to_string() } else { text }
}

fn write_lines<'a>(clients: impl Iterator<Item = &'a Arc<ClientInfo>>, now_ms: u64, out: &mut Out) {
    let text: String = clients.map(|info| line(info, now_ms) + "\n").collect();
    out.verbatim("txt", text.as_bytes());
}

fn info(cx: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    write_lines([&cx.client.info].into_iter(), cx.now.ms, out);
    Ok(())
}

/// Types of clients. None is a master or a replica so far.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Type {
    Normal,
    PubSub,
    Master,
    Replica,
}

impl Type {
    fn read(word: &[u8]) -> Result<Type, Error> {
        let all = [
            ("normal", Type::Normal),
            ("slave", Type::Replica),
            ("replica", Type::Replica),
            ("pubsub", Type::PubSub),
            ("master", Type::Master),
        ];
        let found = all.into_iter().find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes()));
        found.map(|(_, kind)| kind).ok_or_else(|| {
            Error::err(format_args!("Unknown client type '{}'", String::from_utf8_lossy(word)))
        })
    }

    fn of(info: &ClientInfo) -> Type {
        if info.is_subscriber() { Type::PubSub } else { Type::Normal }
    }
}

fn list(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let mut clients = cx.host.clients.all();
    if args.left() == 2 && args.keyword("TYPE") {
        let wanted = Type::read(args.bytes()?)?;
        clients.retain(|info| Type::of(info) == wanted);
    } else if args.left() > 1 && args.keyword("ID") {
        let ids: Result<Vec<i64>, Error> =
            args.rest().map(|id| num::parse_i64(id).ok_or_else(|| Error::err("Invalid client ID"))).collect();
        let found = |id: i64| u64::try_from(id).ok().and_then(|id| cx.host.clients.get(id));
        clients = ids?.into_iter().filter_map(found).collect();
    } else if !args.is_done() {
        return Err(Error::Syntax);
    }
    write_lines(clients.iter(), cx.now.ms, out);
    Ok(())
}

/// What a client must be like to be killed; `None` asks for nothing.
#[derive(Debug, Default)]
struct Filter<'a> {
    id: Option<u64>,
    addr: Option<&'a [u8]>,
    laddr: Option<&'a [u8]>,
    age_seconds: Option<u64>,
    kind: Option<Type>,
    spare_self: bool,
}

impl<'a> Filter<'a> {
    /// Reads the filters behind CLIENT KILL, in the order and with the errors of Redis.
    fn read(args: &mut Args<'a>) -> Result<Filter<'a>, Error> {
        let mut filter = Filter { spare_self: true, ..Filter::default() };
        while args.left() > 1 {
            if args.keyword("ID") {
                let id = args.int().ok().filter(|id| *id > 0);
                filter.id = Some(id.ok_or_else(|| Error::err("client-id should be greater than 0"))? as u64);
            } else if args.keyword("MAXAGE") {
                let age = args.int().map_err(|_| Error::err("maxage is not an integer or out of range"))?;
                if age <= 0 {
                    return Err(Error::err("maxage should be greater than 0"));
                }
                filter.age_seconds = Some(age as u64);
            } else if args.keyword("TYPE") {
                filter.kind = Some(Type::read(args.bytes()?)?);
            } else if args.keyword("ADDR") {
                filter.addr = Some(args.bytes()?);
            } else if args.keyword("LADDR") {
                filter.laddr = Some(args.bytes()?);
            } else if args.keyword("USER") {
                known_user(args.bytes()?)?;
            } else if args.keyword("SKIPME") {
                filter.spare_self = on_or_off(args, "YES", "NO")?;
            } else {
                return Err(Error::Syntax);
            }
        }
        if args.is_done() { Ok(filter) } else { Err(Error::Syntax) }
    }

    fn hits(&self, info: &ClientInfo, now_ms: u64) -> bool {
        self.id.is_none_or(|id| info.id == id)
            && self.addr.is_none_or(|addr| info.addr.as_bytes() == addr)
            && self.laddr.is_none_or(|laddr| info.laddr.as_bytes() == laddr)
            && self.kind.is_none_or(|kind| Type::of(info) == kind)
            && self.age_seconds.is_none_or(|age| now_ms.saturating_sub(info.since_ms) / 1000 >= age)
    }
}

/// There is one user.
fn known_user(name: &[u8]) -> Done {
    if name == b"default" {
        return Ok(());
    }
    Err(Error::err(format_args!("No such user '{}'", String::from_utf8_lossy(name))))
}

fn kill(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let old_form = args.left() == 1;
    let filter = if old_form {
        Filter { addr: Some(args.bytes()?), ..Filter::default() }
    } else {
        Filter::read(args)?
    };
    let own = cx.client.info.id;
    let mut killed = 0;
    for info in cx.host.clients.all() {
        if !filter.hits(&info, cx.now.ms) || info.id == own && filter.spare_self {
            continue;
        }
        killed += 1;
        if info.id == own {
            // The reply still has to leave.
            cx.client.wish = Wish::Close;
        } else {
            cx.host.clients.kill(&info);
        }
    }
    match (old_form, killed) {
        (true, 0) => return Err(Error::err("No such client")),
        (true, _) => out.ok(),
        (false, _) => out.int(killed),
    }
    Ok(())
}

/// One of two words; a syntax error when it is neither.
fn on_or_off(args: &mut Args<'_>, on: &str, off: &str) -> Result<bool, Error> {
    if args.keyword(on) {
        Ok(true)
    } else if args.keyword(off) {
        Ok(false)
    } else {
        Err(Error::Syntax)
    }
}

fn no_evict(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    cx.client.info.set(mark::NO_EVICT, on_or_off(args, "ON", "OFF")?);
    out.ok();
    Ok(())
}

fn no_touch(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    cx.client.set_no_touch(on_or_off(args, "ON", "OFF")?);
    out.ok();
    Ok(())
}

/// OFF and SKIP are not answered themselves; SKIP means nothing while replies are off.
fn reply(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    if args.keyword("SKIP") {
        if cx.client.reply_mode != ReplyMode::Off {
            cx.client.set_reply_mode(ReplyMode::SkipNext);
        }
    } else if on_or_off(args, "ON", "OFF")? {
        cx.client.set_reply_mode(ReplyMode::On);
        out.ok();
    } else {
        cx.client.set_reply_mode(ReplyMode::Off);
    }
    Ok(())
}

/// When a pause ends, from its length in milliseconds.
fn pause_end(arg: &[u8], now_ms: u64) -> Result<u64, Error> {
    let length =
        num::parse_i64(arg).ok_or_else(|| Error::err("timeout is not an integer or out of range"))?;
    let length = u64::try_from(length).map_err(|_| Error::err("timeout is negative"))?;
    match now_ms.checked_add(length).filter(|end| *end <= i64::MAX as u64) {
        Some(end) if length > 0 => Ok(end),
        Some(_) => Ok(0),
        None => Err(Error::err("timeout is out of range")),
    }
}

fn pause(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let length = args.bytes()?;
    let bit = match args.take() {
        Some(mode) if mode.eq_ignore_ascii_case(b"write") => gate::PAUSE_WRITE,
        Some(mode) if !mode.eq_ignore_ascii_case(b"all") => {
            return Err(Error::err("CLIENT PAUSE mode must be WRITE or ALL"));
        }
        _ => gate::PAUSE_ALL,
    };
    if !args.is_done() {
        return Err(Error::Syntax);
    }
    let end = pause_end(length, cx.now.ms)?;
    // A pause never shortens or weakens the one in force; one that is over counts for nothing.
    let host = cx.host;
    if !host.is_paused(cx.now.ms) {
        host.gates.fetch_and(!(gate::PAUSE_ALL | gate::PAUSE_WRITE), Ordering::Relaxed);
    }
    host.pause_until_ms.fetch_max(end, Ordering::Relaxed);
    host.gates.fetch_or(bit, Ordering::Relaxed);
    out.ok();
    Ok(())
}

fn unpause(cx: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    cx.host.pause_until_ms.store(0, Ordering::Relaxed);
    cx.host.gates.fetch_and(!(gate::PAUSE_ALL | gate::PAUSE_WRITE), Ordering::Relaxed);
    // Nobody waits for the next tick.
    let paused = cx.host.clients.all().into_iter().filter(|info| info.has(mark::PAUSED));
    cx.client.mail.extend(paused.map(|info| (*info.address.lock(), Letter::Rung)));
    out.ok();
    Ok(())
}

/// Ends the wait of a blocked client, as if its time were up or with an error.
fn unblock(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let id = args.bytes()?;
    let how = match args.take() {
        Some(reason) if reason.eq_ignore_ascii_case(b"error") => Stand::Unblocked,
        Some(reason) if !reason.eq_ignore_ascii_case(b"timeout") => {
            return Err(Error::err("CLIENT UNBLOCK reason should be TIMEOUT or ERROR"));
        }
        _ => Stand::TimedOut,
    };
    let id = num::parse_i64(id).ok_or(Error::NotInteger)?;
    let other = u64::try_from(id).ok().and_then(|id| cx.host.clients.get(id));
    let ended =
        other.as_ref().is_some_and(|info| info.wait.lock().as_ref().is_some_and(|wait| wait.end(how)));
    if let (Some(info), true) = (other, ended) {
        cx.client.mail.push((*info.address.lock(), Letter::Rung));
    }
    out.flag(ended);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Span;

    fn client() -> ClientInfo {
        let info = ClientInfo::new(7, "127.0.0.1:5".into(), "127.0.0.1:6379".into(), 9, 1);
        *info.name.lock() = "me".into();
        info
    }

    #[test]
    fn lines_have_the_fields_of_redis_in_order() {
        let info = client();
        let text = line(&info, info.since_ms + 2500);
        let names: Vec<&str> = text.split(' ').map(|field| field.split('=').next().unwrap()).collect();
        let want = "id addr laddr fd name age idle flags db sub psub ssub multi watch qbuf qbuf-free argv-mem \
                    multi-mem rbs rbp obl oll omem tot-mem events cmd user redir resp lib-name lib-ver io-thread";
        assert_eq!(names.join(" "), want);
        assert!(text.starts_with(
            "id=7 addr=127.0.0.1:5 laddr=127.0.0.1:6379 fd=9 name=me age=2 idle=2 flags=N db=0 "
        ));
        assert!(text.contains(" cmd=NULL "));
        info.set(mark::NO_TOUCH | mark::NO_EVICT, true);
        info.subscriptions[Kind::Pattern as usize].store(3, Ordering::Relaxed);
        let text = line(&info, 0);
        assert!(text.contains(" flags=PeT ") && text.contains(" sub=0 psub=3 ssub=0 "));
        info.queued.store(2, Ordering::Relaxed);
        info.watched.store(3, Ordering::Relaxed);
        *info.wait.lock() = Some(Arc::default());
        let text = line(&info, 0);
        assert!(text.contains(" flags=PxbeT ") && text.contains(" multi=2 watch=3 "), "{text}");
    }

    fn filter<'a>(buf: &'a [u8], spans: &'a [Span]) -> Result<Filter<'a>, Error> {
        let mut args = Args::new(buf, spans, (0, crate::base::hash::KeyHash::from_bits(0)));
        args.seek(2);
        Filter::read(&mut args)
    }

    fn outcome(words: &str) -> Result<bool, String> {
        let line = format!("client kill {words}");
        let mut spans = Vec::new();
        let mut at = 0;
        for word in line.split(' ') {
            spans.push(Span { at, len: word.len() as u32 });
            at += word.len() as u32 + 1;
        }
        let info = client();
        match filter(line.as_bytes(), &spans) {
            Ok(filter) => Ok(filter.hits(&info, info.since_ms + 10_000)),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn filters_must_all_hold() {
        for hit in [
            "ID 7",
            "addr 127.0.0.1:5 TYPE normal",
            "MAXAGE 10 USER default",
            "LADDR 127.0.0.1:6379 SKIPME no",
        ] {
            assert_eq!(outcome(hit), Ok(true), "{hit}");
        }
        for miss in ["ID 8", "ID 7 TYPE replica", "ADDR 127.0.0.1:6", "MAXAGE 11", "LADDR x"] {
            assert_eq!(outcome(miss), Ok(false), "{miss}");
        }
        let errors = [
            ("ID 0", "ERR client-id should be greater than 0"),
            ("ID x", "ERR client-id should be greater than 0"),
            ("MAXAGE x", "ERR maxage is not an integer or out of range"),
            ("MAXAGE 0 x", "ERR maxage should be greater than 0"),
            ("TYPE x", "ERR Unknown client type 'x'"),
            ("USER x", "ERR No such user 'x'"),
            ("SKIPME x", "ERR syntax error"),
            ("ID 7 ADDR", "ERR syntax error"),
        ];
        for (words, error) in errors {
            assert_eq!(outcome(words), Err(error.to_string()), "{words}");
        }
    }

    #[test]
    fn pauses_end() {
        assert_eq!(pause_end(b"5", 100), Ok(105));
        assert_eq!(pause_end(b"0", 100), Ok(0));
        assert_eq!(pause_end(b"-1", 100).unwrap_err().to_string(), "ERR timeout is negative");
        assert_eq!(
            pause_end(b"9223372036854775807", 100).unwrap_err().to_string(),
            "ERR timeout is out of range"
        );
    }
}
