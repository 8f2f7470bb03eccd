//! FUNCTION: the libraries of functions, listed, loaded, dumped and restored.
//!
//! A dump is Redis's: each library's code behind the opcode that it has in a snapshot, in the envelope of DUMP.
use super::commands::{engine, kill_running, known};
use super::libraries::{Library, Restore};
use crate::base::glob;
use crate::cmd::cx::ConnCx;
use crate::cmd::docs;
use crate::cmd::spec::{Done, Group::Scripting as S, Spec, flag};
use crate::rdb::file::{self, op};
use crate::rdb::payload;
use crate::rdb::reader::Reader;
use crate::rdb::writer::Writer;
use crate::wire::{Args, Error, Out};

const EVERYWHERE: &[&str] = &["request_policy:all_shards", "response_policy:all_succeeded"];
/// The oldest version of the format that has libraries.
const VERSION: u16 = 10;

const fn sub(
    name: &'static str,
    syntax: &'static str,
    handler: fn(&mut ConnCx<'_>, &mut Args<'_>, &mut Out) -> Done,
    flags: u32,
) -> Spec {
    let spec = Spec::conn(name, syntax, handler).without(flag::LOADING | flag::STALE);
    spec.with(flag::NOSCRIPT | flags).cat(&["scripting"])
}

/// The rows.
pub const COMMANDS: &[Spec] = &[Spec::container(
    "function",
    &[
        sub("function|delete", "library-name", delete, flag::WRITE)
            .doc(S, "7.0.0", "Deletes a library and its functions.")
            .tips(EVERYWHERE),
        sub("function|dump", "", dump, 0)
            .doc(S, "7.0.0", "Dumps all libraries.")
            .cost("O(N) where N is the number of functions."),
        sub("function|flush", "[ASYNC|SYNC]", flush, flag::WRITE)
            .doc(S, "7.0.0", "Deletes all libraries and functions.")
            .cost("O(N) where N is the number of functions.")
            .tips(EVERYWHERE),
        Spec::conn("function|help", "", help)
            .doc(S, "7.0.0", "Tells what each subcommand does.")
            .cat(&["scripting"]),
        sub("function|kill", "", kill, flag::ALLOW_BUSY)
            .doc(S, "7.0.0", "Ends the function that runs.")
            .tips(&["request_policy:all_shards", "response_policy:one_succeeded"]),
        sub("function|list", "[LIBRARYNAME library-name-pattern] [WITHCODE]", list, 0)
            .doc(S, "7.0.0", "Describes the libraries.")
            .cost("O(N) where N is the number of functions.")
            .tips(&["nondeterministic_output_order"]),
        sub("function|load", "[REPLACE] function-code", load, flag::WRITE | flag::DENYOOM)
            .doc(S, "7.0.0", "Loads a library.")
            .cost("O(1), but for the time that its code takes.")
            .tips(EVERYWHERE),
        sub(
            "function|restore",
            "serialized-value [FLUSH|APPEND|REPLACE]",
            restore,
            flag::WRITE | flag::DENYOOM,
        )
        .doc(S, "7.0.0", "Restores the libraries of a dump.")
        .cost("O(N) where N is the number of functions in the dump.")
        .tips(EVERYWHERE),
        sub("function|stats", "", stats, flag::ALLOW_BUSY)
            .doc(S, "7.0.0", "Tells which function runs, and how many there are.")
            .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"]),
    ],
)
.doc(S, "7.0.0", "Holds the commands about functions.")];

fn delete(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    known().libraries.delete(args.bytes()?)?;
    cx.counters.dirty.add(1);
    out.ok();
    Ok(())
}

fn dump(_: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    let mut writer = Writer::new(true);
    for library in known().libraries.all().1 {
        file::write_library(&library.code, &mut writer);
    }
    let mut body = writer.into_bytes();
    payload::seal(&mut body, VERSION);
    out.bulk(&body);
    Ok(())
}

fn flush(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let named = args.is_done() || args.keyword("ASYNC") || args.keyword("SYNC");
    if !named {
        return Err(Error::err("FUNCTION FLUSH only supports SYNC|ASYNC option"));
    }
    if !args.is_done() {
        return Err(wrong_arguments(args.get(1)));
    }
    known().libraries.flush();
    cx.counters.dirty.add(1);
    out.ok();
    Ok(())
}

fn wrong_arguments(sub: &[u8]) -> Error {
    let sub = String::from_utf8_lossy(sub);
    Error::err(format_args!(
        "unknown subcommand or wrong number of arguments for '{sub}'. Try FUNCTION HELP."
    ))
}

fn help(_: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    docs::help("function", out);
    Ok(())
}

fn kill(cx: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    kill_running(cx, true)?;
    out.ok();
    Ok(())
}

fn list(_: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let (mut with_code, mut pattern) = (false, None);
    while !args.is_done() {
        if !with_code && args.keyword("WITHCODE") {
            with_code = true;
        } else if pattern.is_none() && args.keyword("LIBRARYNAME") {
            pattern = Some(args.take().ok_or_else(|| Error::err("library name argument was not given"))?);
        } else {
            let unknown = String::from_utf8_lossy(args.bytes()?);
            return Err(Error::err(format_args!("Unknown argument {unknown}")));
        }
    }
    let mut libraries = known().libraries.all().1;
    if let Some(pattern) = pattern {
        libraries.retain(|library| glob::matches(pattern, library.name.as_bytes(), true));
    }
    out.array(libraries.len());
    for library in libraries {
        describe(&library, with_code, out);
    }
    Ok(())
}

fn describe(library: &Library, with_code: bool, out: &mut Out) {
    out.map(if with_code { 4 } else { 3 });
    out.bulk(b"library_name");
    out.bulk(library.name.as_bytes());
    out.bulk(b"engine");
    out.bulk(b"LUA");
    out.bulk(b"functions");
    out.array(library.functions.len());
    for function in &library.functions {
        out.map(3);
        out.bulk(b"name");
        out.bulk(function.name.as_bytes());
        out.bulk(b"description");
        match &function.description {
            Some(text) => out.bulk(text),
            None => out.null(),
        }
        out.bulk(b"flags");
        out.set(function.flags.names().count());
        function.flags.names().for_each(|name| out.simple(name));
    }
    if with_code {
        out.bulk(b"library_code");
        out.bulk(&library.code);
    }
}

fn load(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let mut replace = false;
    while args.left() > 1 {
        if !args.keyword("REPLACE") {
            let unknown = String::from_utf8_lossy(args.bytes()?);
            return Err(Error::err(format_args!("Unknown option given: {unknown}")));
        }
        replace = true;
    }
    let library = engine().library(args.bytes()?, |name| known().libraries.check_name(name, replace))?;
    let name = library.name.clone();
    known().libraries.insert(library, replace)?;
    cx.counters.dirty.add(1);
    out.bulk(name.as_bytes());
    Ok(())
}

fn restore(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let dump = args.bytes()?;
    let policy = if args.is_done() || args.keyword("APPEND") {
        Restore::Append
    } else if args.keyword("REPLACE") {
        Restore::Replace
    } else if args.keyword("FLUSH") {
        Restore::Flush
    } else if args.left() > 1 {
        return Err(wrong_arguments(args.get(1)));
    } else {
        return Err(Error::err(
            "Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.",
        ));
    };
    if !args.is_done() {
        return Err(wrong_arguments(args.get(1)));
    }
    let opened = payload::open(dump);
    let opened = opened.map_err(|_| Error::err("DUMP payload version or checksum are wrong"))?;
    known().libraries.restore(read_libraries(opened.body)?, policy)?;
    cx.counters.dirty.add(1);
    out.ok();
    Ok(())
}

/// The libraries of a dump, their code run to learn their functions.
fn read_libraries(body: &[u8]) -> Result<Vec<Library>, Error> {
    let mut reader = Reader::new(body);
    let mut libraries: Vec<Library> = Vec::new();
    while !reader.is_at_end() {
        match reader.u8().map_err(|_| Error::err("can not read data type"))? {
            op::FUNCTION => {}
            op::FUNCTION_PRE_GA => return Err(Error::err("Pre-GA function format not supported")),
            _ => return Err(Error::err("given type is not a function")),
        }
        let code = reader.string().map_err(|_| Error::err("Failed loading library payload"))?;
        let library =
            engine().library(&code, |name| match libraries.iter().any(|other| other.name == name) {
                true => Err(Error::err(format_args!("Library '{name}' already exists"))),
                false => Ok(()),
            })?;
        libraries.push(library);
    }
    Ok(libraries)
}

fn stats(cx: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    let of_script = cx.host.scripts.with(|running| running.as_ref().is_some_and(|r| !r.is_function));
    if of_script {
        return Err(cx.host.scripts.busy());
    }
    out.map(2);
    out.bulk(b"running_script");
    cx.host.scripts.with(|running| match running {
        None => out.null(),
        Some(running) => {
            out.map(3);
            out.bulk(b"name");
            out.bulk(running.name.as_bytes());
            out.bulk(b"command");
            out.array(running.command.len());
            running.command.iter().for_each(|word| out.bulk(word));
            out.bulk(b"duration_ms");
            out.count(running.started.elapsed().as_millis() as usize);
        }
    });
    let (libraries, functions) = known().libraries.counts();
    out.bulk(b"engines");
    out.map(1);
    out.bulk(b"LUA");
    out.map(2);
    out.bulk(b"libraries_count");
    out.count(libraries);
    out.bulk(b"functions_count");
    out.count(functions);
    Ok(())
}
