//! The commands that greet, name, select and part: PING, ECHO, SELECT, HELLO, AUTH, QUIT, RESET.
use crate::base::num;
use crate::cmd::cx::{Client, ConnCx, ReplyMode, Wish};
use crate::cmd::spec::{Done, Group::Connection as C, Group::Server as S, Spec, flag, gate};
use crate::config::REDIS_VERSION;
use crate::host::{Host, mark};
use crate::shard::watch;
use crate::wire::{Args, Error, Out, Protocol};

/// What the commands have that work before a client is known.
const GREETING: u32 = flag::NOSCRIPT | flag::FAST | flag::NO_AUTH | flag::ALLOW_BUSY;

/// The rows.
pub const COMMANDS: &[Spec] = &[
    Spec::conn("auth", "[username] password", auth)
        .doc(C, "1.0.0", "Tells who the client is, and proves it with a password.")
        .cost("O(N) where N is the number of passwords of the user.")
        .with(GREETING)
        .secrets(|_, at| at > 0),
    Spec::conn("echo", "message", echo).doc(C, "1.0.0", "Returns its argument.").with(flag::FAST),
    Spec::conn("hello", "[protover [AUTH username password] [SETNAME clientname]]", hello)
        .doc(C, "6.0.0", "Chooses the protocol, and tells what server this is.")
        .with(GREETING)
        .secrets(is_credential),
    Spec::conn("monitor", "", monitor)
        .doc(S, "1.0.0", "Shows every command that the server runs, as it runs.")
        .with(flag::ADMIN | flag::NOSCRIPT),
    Spec::conn("ping", "[message]", ping)
        .doc(C, "1.0.0", "Answers PONG, or returns its argument.")
        .without(flag::LOADING | flag::STALE)
        .with(flag::FAST | flag::SUBSCRIBERS | flag::NEEDS_DISK)
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]),
    Spec::conn("quit", "", quit)
        .doc(C, "1.0.0", "Closes the connection once its replies are sent.")
        .with(GREETING | flag::UNQUEUED | flag::SUBSCRIBERS)
        .arity(-1),
    Spec::conn("reset", "", reset)
        .doc(C, "6.2.0", "Puts the connection back to the state of a new one.")
        .with(GREETING | flag::UNQUEUED | flag::SUBSCRIBERS),
    Spec::conn("select", "index", select)
        .doc(C, "1.0.0", "Chooses the database that later commands work on.")
        .with(flag::FAST),
];

fn monitor(cx: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    let client = &mut *cx.client;
    // Whoever monitors already gets no answer.
    if !client.info.has(mark::MONITOR) {
        client.info.set(mark::MONITOR, true);
        client.note_listening();
        watch::start_monitoring(cx.host, client.caller.address);
        out.ok();
    }
    Ok(())
}

/// Ends what MONITOR began.
pub(super) fn stop_monitoring(client: &Client, host: &Host) {
    if client.info.has(mark::MONITOR) {
        client.info.set(mark::MONITOR, false);
        watch::stop_monitoring(host, client.caller.address);
    }
}

fn ping(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    match (args.take(), args.take()) {
        (_, Some(_)) => return Err(Error::Arity("ping")),
        (message, None) if cx.client.gates & gate::SUBSCRIBER != 0 => {
            // Like a message, for clients that expect nothing else.
            out.array(2);
            out.bulk(b"pong");
            out.bulk(message.unwrap_or_default());
        }
        (Some(message), None) => out.bulk(message),
        (None, None) => out.simple("PONG"),
    }
    Ok(())
}

fn echo(_: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    out.bulk(args.bytes()?);
    Ok(())
}

fn select(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let arg = args.bytes()?;
    if num::parse_i64(arg).is_some_and(|index| i32::try_from(index).is_err()) {
        return Err(Error::err("value is out of range, value must between -2147483648 and 2147483647"));
    }
    let db = cx.db_index(arg, Error::NotInteger)?;
    cx.client.select(db);
    out.ok();
    Ok(())
}

/// Whether these credentials are those of a user. There is one user, without a password: any will do.
fn check_password(username: &[u8], _password: &[u8]) -> Result<(), Error> {
    if username == b"default" {
        return Ok(());
    }
    Err(Error::line("WRONGPASS invalid username-password pair or user is disabled.".into()))
}

fn auth(_: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    match args.left() {
        1 => {
            return Err(Error::err(
                "AUTH <password> called without any password configured for the default user. \
                 Are you sure your configuration is correct?",
            ));
        }
        2 => check_password(args.bytes()?, args.bytes()?)?,
        _ => return Err(Error::Syntax),
    }
    out.ok();
    Ok(())
}

/// The protocol that HELLO asks for, if it names one.
fn protocol(args: &mut Args<'_>) -> Result<Option<Protocol>, Error> {
    let Some(version) = args.take() else { return Ok(None) };
    match num::parse_i64(version) {
        None => Err(Error::err("Protocol version is not an integer or out of range")),
        Some(2) => Ok(Some(Protocol::Resp2)),
        Some(3) => Ok(Some(Protocol::Resp3)),
        Some(_) => Err(Error::line("NOPROTO unsupported protocol version".into())),
    }
}

/// Whether an argument of HELLO stands behind AUTH as a user name or a password.
fn is_credential(args: &Args<'_>, at: usize) -> bool {
    let mut option = 2;
    while option < args.count() {
        let word = args.get(option);
        if word.eq_ignore_ascii_case(b"auth") {
            if (option + 1..=option + 2).contains(&at) {
                return true;
            }
            option += 2;
        } else if word.eq_ignore_ascii_case(b"setname") {
            option += 1;
        }
        option += 1;
    }
    false
}

fn hello(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let protocol = protocol(args)?;
    let (mut credentials, mut name) = (None, None);
    while !args.is_done() {
        if args.left() > 2 && args.keyword("AUTH") {
            credentials = Some((args.bytes()?, args.bytes()?));
        } else if args.left() > 1 && args.keyword("SETNAME") {
            name = Some(client_name(args.bytes()?)?);
        } else {
            let option = String::from_utf8_lossy(args.bytes()?);
            return Err(Error::err(format_args!("Syntax error in HELLO option '{option}'")));
        }
    }
    if let Some((username, password)) = credentials {
        check_password(username, password)?;
    }
    if let Some(name) = name {
        *cx.client.info.name.lock() = name;
    }
    if let Some(protocol) = protocol {
        cx.client.set_protocol(protocol);
        out.protocol = protocol;
    }
    write_identity(cx, out);
    Ok(())
}

fn write_identity(cx: &ConnCx<'_>, out: &mut Out) {
    let texts: [(&str, &str); 2] = [("server", "redis"), ("version", REDIS_VERSION)];
    out.map(7);
    for (name, text) in texts {
        out.bulk(name.as_bytes());
        out.bulk(text.as_bytes());
    }
    out.bulk(b"proto");
    out.int(if out.protocol == Protocol::Resp3 { 3 } else { 2 });
    out.bulk(b"id");
    out.int(cx.client.info.id as i64);
    for (name, text) in [("mode", "standalone"), ("role", "master")] {
        out.bulk(name.as_bytes());
        out.bulk(text.as_bytes());
    }
    out.bulk(b"modules");
    out.array(0);
}

/// Whether a text can stand in a line of CLIENT LIST.
pub(super) fn is_plain(text: &[u8]) -> bool {
    text.iter().all(|byte| (b'!'..=b'~').contains(byte))
}

/// A connection name from an argument.
pub(super) fn client_name(arg: &[u8]) -> Result<String, Error> {
    if !is_plain(arg) {
        return Err(Error::err("Client names cannot contain spaces, newlines or special characters."));
    }
    Ok(String::from_utf8_lossy(arg).into_owned())
}

fn quit(cx: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    cx.client.wish = Wish::Close;
    cx.client.info.set(mark::CLOSES, true);
    out.ok();
    Ok(())
}

fn reset(cx: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    let client = &mut *cx.client;
    client.discard_transaction();
    cx.host.hub.leave(&mut client.subscriptions, client.caller.address);
    client.select(0);
    client.set_protocol(Protocol::Resp2);
    client.set_reply_mode(ReplyMode::On);
    client.set_no_touch(false);
    stop_monitoring(client, cx.host);
    client.stop_tracking(cx.host);
    client.note_listening();
    client.info.set(mark::NO_EVICT, false);
    // The library's name stays: it is still the same library.
    client.info.name.lock().clear();
    out.protocol = Protocol::Resp2;
    out.simple("RESET");
    Ok(())
}
