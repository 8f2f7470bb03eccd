//! COMMAND and its subcommands: the command table as clients read it.
//!
//! Must stay true: everything said here derives from the rows; no command is treated apart.
use crate::base::glob;
use crate::cmd::cx::ConnCx;
use crate::cmd::docs::{self, Arg, ArgKind};
use crate::cmd::spec::{Begin, CATEGORIES, Done, Find, Group::Server as S, KeyPart, Spec, flag};
use crate::cmd::table::{RowRef, table};
use crate::wire::{Args, Error, Out};

const EACH: &str = "O(N) where N is the number of commands looked up.";
const ALL: &str = "O(N) where N is the number of commands.";
const UNORDERED: &[&str] = &["nondeterministic_output_order"];

/// The rows.
pub const COMMANDS: &[Spec] = &[row("command", "", command)
    .doc(S, "2.8.13", "Describes every command.")
    .cost(ALL)
    .arity(-1)
    .tips(UNORDERED)
    .subs(SUBCOMMANDS)];

const SUBCOMMANDS: &[Spec] = &[
    row("command|count", "", count).doc(S, "2.8.13", "Tells how many commands there are."),
    row("command|docs", "[command-name [command-name ...]]", command_docs)
        .doc(S, "7.0.0", "Documents some commands, or all of them.")
        .cost(EACH)
        .tips(UNORDERED),
    row("command|getkeys", "command [arg [arg ...]]", getkeys)
        .doc(S, "2.8.13", "Tells which arguments of a call are keys.")
        .cost("O(N) where N is the number of arguments of the call.")
        .arity(-3),
    row("command|getkeysandflags", "command [arg [arg ...]]", getkeysandflags)
        .doc(S, "7.0.0", "Tells which arguments of a call are keys, and how each is used.")
        .cost("O(N) where N is the number of arguments of the call.")
        .arity(-3),
    row("command|info", "[command-name [command-name ...]]", info)
        .doc(S, "2.8.13", "Describes some commands, or all of them.")
        .cost(EACH)
        .tips(UNORDERED),
    row("command|list", "[FILTERBY <MODULE module-name|ACLCAT category|PATTERN pattern>]", list)
        .doc(S, "7.0.0", "Lists the names of all commands, or of those that a filter lets through.")
        .cost(ALL)
        .tips(UNORDERED),
    row("command|help", "", help).doc(S, "5.0.0", "Tells what each subcommand does."),
];

const fn row(
    name: &'static str,
    syntax: &'static str,
    handler: fn(&mut ConnCx<'_>, &mut Args<'_>, &mut Out) -> Done,
) -> Spec {
    Spec::conn(name, syntax, handler).cat(&["connection"])
}

fn command(_: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    write_all(out);
    Ok(())
}

fn write_all(out: &mut Out) {
    let commands = table().commands();
    out.array(commands.len());
    for row in commands {
        write_info(row.spec, out);
    }
}

fn count(_: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    out.count(table().commands().len());
    Ok(())
}

fn info(_: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    if args.is_done() {
        write_all(out);
        return Ok(());
    }
    out.array(args.left());
    for name in args.rest() {
        match table().find_full(name) {
            Some(row) => write_info(row.spec, out),
            None => out.null(),
        }
    }
    Ok(())
}

fn command_docs(_: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let found: Vec<RowRef> = if args.is_done() {
        table().commands().iter().collect()
    } else {
        args.rest().filter_map(|name| table().find_full(name)).collect()
    };
    out.map(found.len());
    for row in found {
        out.bulk(row.spec.name.as_bytes());
        write_docs(row.spec, out);
    }
    Ok(())
}

fn list(_: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let passes: Filter<'_> = if args.is_done() { Box::new(|_| true) } else { filter(args)? };
    let names: Vec<&str> =
        table().rows().iter().map(|row| row.spec).filter(|spec| passes(spec)).map(|s| s.name).collect();
    out.array(names.len());
    for name in names {
        out.bulk(name.as_bytes());
    }
    Ok(())
}

/// Whether a row belongs to the list.
type Filter<'a> = Box<dyn Fn(&Spec) -> bool + 'a>;

/// `FILTERBY kind argument`; the last one given counts.
fn filter<'a>(args: &mut Args<'a>) -> Result<Filter<'a>, Error> {
    if args.left() != 3 || !args.keyword("FILTERBY") {
        return Err(Error::Syntax);
    }
    // Nothing comes from a module.
    if args.keyword("MODULE") {
        return Ok(Box::new(|_| false));
    }
    if args.keyword("ACLCAT") {
        let wanted = args.bytes()?;
        let category = CATEGORIES.iter().find(|name| name.as_bytes().eq_ignore_ascii_case(wanted));
        return Ok(Box::new(move |spec| category.is_some_and(|name| spec.all_categories().contains(name))));
    }
    if args.keyword("PATTERN") {
        let pattern = args.bytes()?;
        return Ok(Box::new(move |spec| glob::matches(pattern, spec.name.as_bytes(), true)));
    }
    Err(Error::Syntax)
}

fn getkeys(_: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    write_keys(args, out, false)
}

fn getkeysandflags(_: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    write_keys(args, out, true)
}

fn write_keys(args: &Args<'_>, out: &mut Out, with_flags: bool) -> Done {
    let call: Vec<&[u8]> = args.rest().collect();
    let spec = called(&call).ok_or_else(|| Error::err("Invalid command specified"))?;
    if !spec.keys.iter().any(KeyPart::has_keys) {
        return Err(Error::err("The command has no key arguments"));
    }
    if !spec.accepts(call.len()) {
        return Err(Error::err("Invalid number of arguments specified for command"));
    }
    let mut found: Vec<(&[u8], &KeyPart)> = Vec::new();
    spec.for_each_key_part(call.len(), |at| call[at], |at, part| found.push((call[at], part)));
    if spec.keys.iter().any(|part| part.is_miscounted(call.len(), |at| call[at])) {
        found.clear();
    }
    if found.is_empty() && spec.flags & flag::NO_MANDATORY_KEYS == 0 {
        return Err(Error::err("Invalid arguments specified for command"));
    }
    out.array(found.len());
    for (key, part) in found {
        if with_flags {
            out.array(2);
        }
        out.bulk(key);
        if with_flags {
            write_key_flags(spec.key_use.map_or(part.flags, |key_use| key_use(&call)), out);
        }
    }
    Ok(())
}

/// The row that a whole call means.
fn called(call: &[&[u8]]) -> Option<&'static Spec> {
    let row = table().find(call.first()?)?;
    match call.get(1) {
        Some(sub) if !row.spec.subs.is_empty() => table().find_sub(row, sub).map(|row| row.spec),
        _ => Some(row.spec),
    }
}

fn help(_: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    docs::help("command", out);
    Ok(())
}

fn write_info(spec: &Spec, out: &mut Out) {
    let (first, last, step) = plain_range(spec.keys);
    out.array(10);
    out.bulk(spec.name.as_bytes());
    out.int(spec.arity.into());
    let flags: Vec<&str> =
        flag::NAMES.iter().filter(|(bit, _)| spec.flags & bit != 0).map(|(_, name)| *name).collect();
    write_statuses(&flags, out);
    for number in [first, last, step] {
        out.int(number.into());
    }
    let categories = spec.all_categories();
    out.set(categories.len());
    for category in categories {
        out.simple(&format!("@{category}"));
    }
    out.set(spec.tips.len());
    for tip in spec.tips {
        out.bulk(tip.as_bytes());
    }
    out.set(spec.keys.len());
    for part in spec.keys {
        write_key_spec(part, out);
    }
    if spec.subs.is_empty() {
        out.set(0)
    } else {
        out.array(spec.subs.len())
    }
    for sub in spec.subs {
        write_info(sub, out);
    }
}

fn write_statuses(words: &[&str], out: &mut Out) {
    out.set(words.len());
    for word in words {
        out.simple(word);
    }
}

fn write_key_flags(flags: &str, out: &mut Out) {
    let words: Vec<&str> = flags.split(' ').collect();
    write_statuses(&words, out);
}

/// First key, last key and step of the one range that old clients understand; ranges that touch become one.
fn plain_range(parts: &[KeyPart]) -> (i32, i32, i32) {
    let mut ranges = parts.iter().filter_map(|part| match (part.begin, part.find) {
        (Begin::At(first), Find::Range { last, step, .. }) => {
            Some((first, if last < 0 { last } else { first + last }, step))
        }
        _ => None,
    });
    if parts.len() == 1 {
        return ranges.next().unwrap_or_default();
    }
    let mut range: Option<(i32, i32)> = None;
    for (first, last, _) in ranges.filter(|(_, _, step)| *step == 1) {
        range = match range {
            None => Some((first, last)),
            Some((known, before)) if before + 1 == first => Some((known, last)),
            other => other,
        };
    }
    range.map_or((0, 0, 0), |(first, last)| (first, last, 1))
}

fn write_key_spec(part: &KeyPart, out: &mut Out) {
    let note = match part.begin {
        Begin::Derived => {
            Some("The names of these keys follow from patterns and from the data under other keys.")
        }
        Begin::LastOption(..) => Some("The option may stand anywhere among the others."),
        _ => None,
    };
    out.map(3 + usize::from(note.is_some()));
    if let Some(note) = note {
        out.bulk(b"notes");
        out.bulk(note.as_bytes());
    }
    out.bulk(b"flags");
    write_key_flags(part.flags, out);
    out.bulk(b"begin_search");
    match part.begin {
        Begin::LastOption(..) | Begin::Derived => write_search("unknown", &[], out),
        Begin::At(at) => write_search("index", &[("index", at)], out),
        Begin::Word(word, from) | Begin::Option(word, from, _) => {
            write_search_head("keyword", 2, out);
            out.bulk(b"keyword");
            out.bulk(word.as_bytes());
            write_number("startfrom", from, out);
        }
    }
    out.bulk(b"find_keys");
    match part.find {
        _ if note.is_some() => write_search("unknown", &[], out),
        Find::Range { last, step, limit } => {
            write_search("range", &[("lastkey", last), ("keystep", step), ("limit", limit)], out);
        }
        Find::Count => write_search("keynum", &[("keynumidx", 0), ("firstkey", 1), ("keystep", 1)], out),
    }
}

fn write_search(kind: &str, numbers: &[(&str, i32)], out: &mut Out) {
    write_search_head(kind, numbers.len(), out);
    for (name, number) in numbers {
        write_number(name, *number, out);
    }
}

fn write_search_head(kind: &str, facts: usize, out: &mut Out) {
    out.map(2);
    out.bulk(b"type");
    out.bulk(kind.as_bytes());
    out.bulk(b"spec");
    out.map(facts);
}

fn write_number(name: &str, number: i32, out: &mut Out) {
    out.bulk(name.as_bytes());
    out.int(number.into());
}

fn write_docs(spec: &Spec, out: &mut Out) {
    let args = docs::arguments(spec);
    let texts = [
        ("summary", spec.summary),
        ("since", spec.since),
        ("group", spec.group.name()),
        ("complexity", spec.complexity),
    ];
    out.map(texts.len() + usize::from(!args.is_empty()) + usize::from(!spec.subs.is_empty()));
    for (name, text) in texts {
        out.bulk(name.as_bytes());
        out.bulk(text.as_bytes());
    }
    if !args.is_empty() {
        out.bulk(b"arguments");
        write_args(&args, out);
    }
    if !spec.subs.is_empty() {
        out.bulk(b"subcommands");
        out.map(spec.subs.len());
        for sub in spec.subs {
            out.bulk(sub.name.as_bytes());
            write_docs(sub, out);
        }
    }
}

fn write_args(args: &[Arg], out: &mut Out) {
    out.array(args.len());
    for arg in args {
        write_arg(arg, out);
    }
}

fn write_arg(arg: &Arg, out: &mut Out) {
    let group = matches!(arg.kind, ArgKind::OneOf | ArgKind::Block);
    let flags: Vec<&str> =
        [(arg.optional, "optional"), (arg.multiple, "multiple"), (arg.multiple_token, "multiple_token")]
            .into_iter()
            .filter(|(set, _)| *set)
            .map(|(_, name)| name)
            .collect();
    let extras = [arg.key_part.is_some(), arg.token.is_some(), !flags.is_empty()];
    // Groups have `arguments`, all others `display_text`.
    out.map(3 + extras.iter().filter(|extra| **extra).count());
    let mut texts = vec![("name", arg.name.as_str()), ("type", arg.kind.name())];
    if !group {
        let shown = if arg.kind == ArgKind::Pattern { ArgKind::Pattern.name() } else { &arg.name };
        texts.push(("display_text", shown));
    }
    for (name, text) in texts {
        out.bulk(name.as_bytes());
        out.bulk(text.as_bytes());
    }
    if let Some(part) = arg.key_part {
        out.bulk(b"key_spec_index");
        out.count(part);
    }
    if let Some(token) = &arg.token {
        out.bulk(b"token");
        out.bulk(token.as_bytes());
    }
    if !flags.is_empty() {
        out.bulk(b"flags");
        write_statuses(&flags, out);
    }
    if group {
        out.bulk(b"arguments");
        write_args(&arg.args, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::spec::{key, key_range, keys};

    #[test]
    fn touching_ranges_become_one() {
        assert_eq!(plain_range(&[]), (0, 0, 0));
        assert_eq!(plain_range(keys::READ_ALL), (1, -1, 1));
        assert_eq!(plain_range(&[key_range("OW", 1, -1, 2)]), (1, -1, 2));
        assert_eq!(plain_range(&[key("RO", 1), key("OW", 2)]), (1, 2, 1));
        assert_eq!(plain_range(&[key("OW", 2), key_range("RO", 3, -1, 1)]), (2, -1, 1));
        assert_eq!(plain_range(&[key("OW", 1), key("RO", 3)]), (1, 1, 1));
    }
}
