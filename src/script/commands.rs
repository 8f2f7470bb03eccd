//! EVAL and its kin, and SCRIPT.
use std::rc::Rc;
use std::sync::OnceLock;

use super::bridge::{self, Run};
use super::engine::{Engine, Options, Ready};
use super::flags::{self, Flags};
use super::libraries::Libraries;
use super::scripts::Scripts;
use crate::base::num;
use crate::cmd::cx::{ConnCx, WholeCx};
use crate::cmd::docs;
use crate::cmd::spec::{Done, Group::Scripting as S, KeyPart, Route, Spec, flag, key_count};
use crate::host::running::Unkillable;
use crate::wire::{Args, Error, Out};

const RUNS: u32 = flag::NOSCRIPT
    | flag::SKIP_MONITOR
    | flag::NO_MANDATORY_KEYS
    | flag::STALE
    | flag::MOVABLEKEYS
    | flag::RUNS_SCRIPTS;
const WRITES: u32 = RUNS | flag::MAY_REPLICATE;
const READS: u32 = RUNS | flag::READONLY;
const KEYS: &[KeyPart] = &[key_count("RW access update", 2)];
const KEYS_READ: &[KeyPart] = &[key_count("RO access", 2)];
const OF_SCRIPT: &str = "Depends on the script that is executed.";
const OF_FUNCTION: &str = "Depends on the function that is executed.";
const ALL_NODES: &[&str] = &["request_policy:all_nodes", "response_policy:all_succeeded"];

/// The rows.
pub const COMMANDS: &[Spec] = &[
    runs("eval", "script numkeys [key [key ...]] [arg [arg ...]]", eval, WRITES, KEYS)
        .doc(S, "2.6.0", "Runs a Lua script.")
        .cost(OF_SCRIPT),
    runs("eval_ro", "script numkeys [key [key ...]] [arg [arg ...]]", eval_ro, READS, KEYS_READ)
        .doc(S, "7.0.0", "Runs a Lua script that only reads.")
        .cost(OF_SCRIPT),
    runs("evalsha", "sha1 numkeys [key [key ...]] [arg [arg ...]]", evalsha, WRITES, KEYS)
        .doc(S, "2.6.0", "Runs a Lua script by its SHA-1 digest.")
        .cost(OF_SCRIPT),
    runs("evalsha_ro", "sha1 numkeys [key [key ...]] [arg [arg ...]]", evalsha_ro, READS, KEYS_READ)
        .doc(S, "7.0.0", "Runs a Lua script that only reads by its SHA-1 digest.")
        .cost(OF_SCRIPT),
    runs("fcall", "function numkeys [key [key ...]] [arg [arg ...]]", fcall, WRITES, KEYS)
        .doc(S, "7.0.0", "Calls a function.")
        .cost(OF_FUNCTION),
    runs("fcall_ro", "function numkeys [key [key ...]] [arg [arg ...]]", fcall_ro, READS, KEYS_READ)
        .doc(S, "7.0.0", "Calls a function that only reads.")
        .cost(OF_FUNCTION),
    Spec::container("script", SCRIPT).doc(S, "2.6.0", "Holds the commands about scripts."),
];

const SCRIPT: &[Spec] = &[
    Spec::conn("script|debug", "YES|SYNC|NO", debug)
        .doc(S, "3.2.0", "Switches the debugger of scripts on or off.")
        .without(flag::LOADING | flag::STALE)
        .with(flag::NOSCRIPT)
        .cat(&["scripting"]),
    Spec::conn("script|exists", "sha1 [sha1 ...]", exists)
        .doc(S, "2.6.0", "Tells which of some scripts are cached.")
        .cost("O(N) where N is the number of scripts to look for.")
        .without(flag::LOADING | flag::STALE)
        .with(flag::NOSCRIPT)
        .cat(&["scripting"])
        .tips(&["request_policy:all_shards", "response_policy:agg_logical_and"]),
    Spec::conn("script|flush", "[ASYNC|SYNC]", flush)
        .doc(S, "2.6.0", "Forgets all cached scripts.")
        .cost("O(N) where N is the number of scripts.")
        .without(flag::LOADING | flag::STALE)
        .with(flag::NOSCRIPT)
        .cat(&["scripting"])
        .tips(ALL_NODES),
    Spec::conn("script|help", "", help)
        .doc(S, "5.0.0", "Tells what each subcommand does.")
        .cat(&["scripting"]),
    Spec::conn("script|kill", "", kill)
        .doc(S, "2.6.0", "Ends the script that runs.")
        .without(flag::LOADING | flag::STALE)
        .with(flag::NOSCRIPT | flag::ALLOW_BUSY)
        .cat(&["scripting"])
        .tips(&["request_policy:all_shards", "response_policy:one_succeeded"]),
    Spec::conn("script|load", "script", load)
        .doc(S, "2.6.0", "Caches a script and returns its digest.")
        .cost("O(N) where N is the length of the script.")
        .without(flag::LOADING)
        .with(flag::NOSCRIPT)
        .cat(&["scripting"])
        .tips(ALL_NODES),
    Spec::conn("script|show", "sha1", show)
        .doc(S, "8.0.0", "Returns a cached script.")
        .without(flag::LOADING)
        .with(flag::NOSCRIPT)
        .cat(&["scripting"]),
];

const fn runs(
    name: &'static str,
    syntax: &'static str,
    handler: fn(&mut WholeCx<'_>, &mut Args<'_>, &mut Out) -> Done,
    flags: u32,
    keys: &'static [KeyPart],
) -> Spec {
    // A script may use keys that it does not declare, and stays atomic all the same: it holds all shards.
    Spec::whole(name, syntax, handler).with(flags).keys(keys).route(Route::All)
}

/// What all shards know.
pub struct Known {
    /// Scripts.
    pub scripts: Scripts,
    /// Libraries of functions.
    pub libraries: Libraries,
}

/// The process's scripts and functions.
pub fn known() -> &'static Known {
    static KNOWN: OnceLock<Known> = OnceLock::new();
    KNOWN.get_or_init(|| Known { scripts: Scripts::default(), libraries: Libraries::default() })
}

thread_local! {
    static ENGINE: Rc<Engine> = Rc::new(Engine::new(Options::default()));
}

/// This thread's engine.
pub fn engine() -> Rc<Engine> {
    ENGINE.with(Rc::clone)
}

/// The flag bits of a command, those of a script that says something about itself by what it says: it writes, or it
/// does not.
pub fn flags_of(spec: &Spec, args: &Args<'_>) -> u32 {
    let said = match spec.name {
        "eval" => flags::of_script(args.get(1)).ok().map(|(flags, _)| flags),
        "evalsha" => engine().find(&known().scripts, args.get(1)).map(|ready| ready.flags),
        "fcall" => engine().function(&known().libraries, args.get(1)).map(|ready| ready.flags),
        _ => None,
    };
    match said {
        Some(said) if !said.has(Flags::UNDECLARED) => {
            let writes = if said.has(Flags::NO_WRITES) { 0 } else { flag::WRITE };
            spec.flags & !flag::MAY_REPLICATE | writes
        }
        _ => spec.flags,
    }
}

/// The number of keys behind the script's name.
fn keys(args: &mut Args<'_>, not_a_number: impl FnOnce() -> Error) -> Result<usize, Error> {
    let keys = num::parse_i64(args.bytes()?).ok_or_else(not_a_number)?;
    if keys > args.left() as i64 {
        return Err(Error::err("Number of keys can't be greater than number of args"));
    }
    usize::try_from(keys).map_err(|_| Error::err("Number of keys can't be negative"))
}

/// Runs what is compiled with the rest of the arguments.
fn run(
    cx: &mut WholeCx<'_>,
    ready: &Ready,
    (is_function, by_reader): (bool, bool),
    keys: usize,
    args: &Args<'_>,
    out: &mut Out,
) -> Done {
    let rights = bridge::rights(ready.flags, by_reader)?;
    let words = args.rest();
    let mut run = Run::new(cx, ready, is_function, rights, args.clone());
    engine().run(ready, words.clone().take(keys), words.skip(keys), &mut run, out);
    Ok(())
}

fn run_text(cx: &mut WholeCx<'_>, args: &mut Args<'_>, out: &mut Out, by_reader: bool) -> Done {
    let text = args.bytes()?;
    let keys = keys(args, || Error::NotInteger)?;
    let ready = engine().script(&known().scripts, text, false)?;
    run(cx, &ready, (false, by_reader), keys, args, out)
}

fn run_sha(cx: &mut WholeCx<'_>, args: &mut Args<'_>, out: &mut Out, by_reader: bool) -> Done {
    let sha = args.bytes()?;
    let keys = keys(args, || Error::NotInteger)?;
    let ready = engine().find(&known().scripts, sha);
    let ready = ready.ok_or_else(|| Error::line("NOSCRIPT No matching script. Please use EVAL.".into()))?;
    run(cx, &ready, (false, by_reader), keys, args, out)
}

fn run_function(cx: &mut WholeCx<'_>, args: &mut Args<'_>, out: &mut Out, by_reader: bool) -> Done {
    let name = args.bytes()?;
    let ready = engine().function(&known().libraries, name);
    let ready = ready.ok_or_else(|| Error::err("Function not found"))?;
    let keys = keys(args, || Error::err("Bad number of keys provided"))?;
    run(cx, &ready, (true, by_reader), keys, args, out)
}

fn eval(cx: &mut WholeCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    run_text(cx, args, out, false)
}

fn eval_ro(cx: &mut WholeCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    run_text(cx, args, out, true)
}

fn evalsha(cx: &mut WholeCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    run_sha(cx, args, out, false)
}

fn evalsha_ro(cx: &mut WholeCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    run_sha(cx, args, out, true)
}

fn fcall(cx: &mut WholeCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    run_function(cx, args, out, false)
}

fn fcall_ro(cx: &mut WholeCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    run_function(cx, args, out, true)
}

fn load(_: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let ready = engine().script(&known().scripts, args.bytes()?, true)?;
    out.bulk(ready.name.as_bytes());
    Ok(())
}

fn exists(_: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    out.array(args.left());
    for sha in args.rest() {
        let is_known = super::scripts::parse_sha(sha).is_some_and(|sha| known().scripts.get(&sha).is_some());
        out.flag(is_known);
    }
    Ok(())
}

fn flush(_: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let named = args.is_done() || args.keyword("ASYNC") || args.keyword("SYNC");
    if !named || !args.is_done() {
        return Err(Error::err("SCRIPT FLUSH only support SYNC|ASYNC option"));
    }
    known().scripts.flush();
    out.ok();
    Ok(())
}

fn kill(cx: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    kill_running(cx, false)?;
    out.ok();
    Ok(())
}

/// Ends the script, or function, that runs.
pub fn kill_running(cx: &ConnCx<'_>, is_function: bool) -> Done {
    cx.host.scripts.kill(is_function).map_err(|why| match why {
        Unkillable::NotRunning => Error::line("NOTBUSY No scripts in execution right now.".into()),
        Unkillable::OtherKind => cx.host.scripts.busy(),
        Unkillable::HasWritten => Error::line(
            "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the \
             script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command."
                .into(),
        ),
    })
}

/// Valkey has this, too.
fn show(_: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let script = super::scripts::parse_sha(args.bytes()?).and_then(|sha| known().scripts.get(&sha));
    let script = script.ok_or_else(|| Error::line("NOSCRIPT No matching script.".into()))?;
    out.bulk(&script.body);
    Ok(())
}

/// There is no debugger: only to switch it off is no error.
fn debug(_: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    if args.keyword("NO") {
        out.ok();
        return Ok(());
    }
    if args.keyword("YES") || args.keyword("SYNC") {
        return Err(Error::err("the debugger of scripts is not available"));
    }
    Err(Error::err("Use SCRIPT DEBUG YES/SYNC/NO"))
}

fn help(_: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    docs::help("script", out);
    Ok(())
}
