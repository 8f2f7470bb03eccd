//! Laws that every row of the command table keeps, for the test beside the assembled table.
use std::collections::HashSet;

use super::docs;
use super::spec::{Begin, Find, Handler, Route, Spec, arity_of, flag};
use super::table::Row;

/// Every breach of a law among `rows`, one line each.
pub(crate) fn check_rows(rows: &[Row]) -> Vec<String> {
    let mut breaches = Vec::new();
    let mut names = HashSet::new();
    for row in rows {
        let spec = row.spec;
        let mut demand = |holds: bool, law: &str| {
            if !holds {
                breaches.push(format!("{}: {law}", spec.name));
            }
        };
        demand(names.insert(spec.name), "the name is unique");
        demand(
            !spec.name.is_empty() && !spec.name.bytes().any(|b| b.is_ascii_uppercase() || b == b' '),
            "lower case",
        );
        check_docs(spec, &mut demand);
        check_keys(spec, &mut demand);
        check_arity(spec, &mut demand);
        for sub in spec.subs {
            let parent = sub.name.split_once('|').map(|(parent, _)| parent);
            demand(parent == Some(spec.name), "subcommands carry the name of their container");
        }
    }
    breaches
}

fn check_docs(spec: &Spec, demand: &mut impl FnMut(bool, &str)) {
    demand(spec.summary.len() > 10 && spec.summary.ends_with('.'), "the summary is a sentence");
    demand(spec.since.split('.').count() == 3, "since is a version");
    demand(!spec.complexity.is_empty(), "the cost is told");
    let opened = |c| spec.syntax.matches(c).count();
    demand(opened('[') == opened(']') && opened('<') == opened('>'), "brackets are closed");
    let args = docs::arguments(spec);
    demand(spec.syntax.is_empty() == args.is_empty(), "the syntax line gives arguments");
}

fn check_keys(spec: &Spec, demand: &mut impl FnMut(bool, &str)) {
    let reaches_data = matches!(spec.handler, Handler::Read(_) | Handler::Write(_));
    let somewhere = !spec.keys.is_empty() || matches!(spec.route, Route::All | Route::Cursor);
    demand(!reaches_data || somewhere, "a row that reaches data has keys, or runs everywhere");
    let write = matches!(spec.handler, Handler::Write(_));
    demand(
        !write || !spec.keys.is_empty() || spec.route == Route::All,
        "a write has keys or holds all shards",
    );
    let read_only = spec.flags & (flag::READONLY | flag::MAY_REPLICATE) == flag::READONLY;
    demand(!(write && read_only), "a write is not read only");
    let least = spec.arity.unsigned_abs() as usize;
    let first = if spec.name.contains('|') { 2 } else { 1 };
    let keys = || spec.keys.iter().filter(|part| part.has_keys());
    for part in keys() {
        if let Begin::At(at) | Begin::Word(_, at) | Begin::Option(_, at, _) = part.begin {
            demand(at >= first || at < 0, "keys stand behind the name");
        }
        demand(!matches!(part.find, Find::Range { step: ..1, .. }), "keys have a distance");
        let words: Vec<&str> = part.flags.split(' ').collect();
        demand(["RO", "RW", "OW", "RM"].contains(&words[0]), "key flags begin with the access");
    }
    if keys().next().is_some() && spec.flags & flag::NO_MANDATORY_KEYS == 0 {
        let mut found = 0;
        // The shortest call names one key where it says how many there are.
        let words = shortest_call(spec.syntax);
        let arg = |at: usize| words.get(at.wrapping_sub(first as usize)).map_or(&b"1"[..], |w| w.as_bytes());
        spec.for_each_key(least, arg, |at| {
            found += 1;
            demand(at >= first as usize && at < least, "key parts find arguments");
        });
        demand(found > 0, "key parts find keys in the shortest call");
    }
}

/// What a call has to have: words in capitals as they are, 1 for values.
fn shortest_call(syntax: &str) -> Vec<&str> {
    let (mut depth, mut words) = (0, Vec::new());
    for part in syntax.split_inclusive([' ', '[', ']', '<', '>', '|']) {
        let (word, end) = match part.char_indices().last() {
            Some((at, end)) if " []<>|".contains(end) => (&part[..at], end),
            _ => (part, ' '),
        };
        if depth == 0 && !word.is_empty() {
            words.push(if word.bytes().any(|b| b.is_ascii_lowercase()) { "1" } else { word });
        }
        match end {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
    }
    words
}

/// An arity said by hand may be looser than the syntax line, never stricter.
fn check_arity(spec: &Spec, demand: &mut impl FnMut(bool, &str)) {
    let base = if spec.name.contains('|') { 2 } else { 1 };
    let derived = arity_of(spec.syntax, base);
    let container = matches!(spec.handler, Handler::Container);
    let looser = spec.arity < 0 && -spec.arity < derived.abs();
    let fits = spec.arity.abs() == derived.abs() || looser || container && spec.arity == -2;
    demand(fits, "the arity follows from the syntax line");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::cx::WriteCx;
    use crate::cmd::spec::{Done, Group, keys};
    use crate::wire::{Args, Out};

    fn nop(_: &mut WriteCx<'_>, _: &mut Args<'_>, _: &mut Out) -> Done {
        Ok(())
    }

    const GOOD: Spec = Spec::write("x", "key value", nop)
        .doc(Group::String, "1.0.0", "Does something or other.")
        .keys(keys::UPDATE);

    fn breaches(specs: &'static [Spec]) -> Vec<String> {
        let rows: Vec<Row> = specs.iter().map(|spec| Row::new(spec, 0)).collect();
        check_rows(&rows)
    }

    #[test]
    fn a_good_row_breaks_no_law() {
        const ROWS: &[Spec] = &[GOOD];
        assert!(breaches(ROWS).is_empty());
    }

    #[test]
    fn every_law_can_be_broken() {
        const ROWS: &[&[Spec]] = &[
            &[GOOD, GOOD],
            &[Spec { name: "X", ..GOOD }],
            &[Spec { summary: "", ..GOOD }],
            &[Spec { since: "1", ..GOOD }],
            &[Spec { complexity: "", ..GOOD }],
            &[Spec { syntax: "key [value", ..GOOD }],
            &[Spec { keys: &[], ..GOOD }],
            &[Spec { keys: keys::LOOK, arity: 1, ..GOOD }],
            &[Spec { arity: 4, ..GOOD }],
            &[Spec { flags: flag::WRITE | flag::READONLY, ..GOOD }],
            &[Spec { subs: &[GOOD], ..GOOD }],
        ];
        for (number, rows) in ROWS.iter().enumerate() {
            assert!(!breaches(rows).is_empty(), "case {number}");
        }
    }
}
