//! What COMMAND says of every row, against what a reference server of our version says.
use std::collections::BTreeMap;

use perigee::server::table::families;

use super::pair::Pair;
use super::support::Value;

/// The version that the table follows.
const VERSION: (u32, u32) = (8, 0);

/// Rows that differ on purpose, with the reason.
const ON_PURPOSE: &[(&str, &str)] = &[
    ("set", "IFEQ is newer"),
    ("bitop", "DIFF, DIFF1, ANDOR and ONE are newer"),
    ("bitfield", "the syntax line says the same with other groups"),
    ("geosearch", "the syntax line says the same with other groups"),
    ("geosearchstore", "the syntax line says the same with other groups"),
    ("xtrim", "the syntax line says the same with other groups"),
    ("client|kill", "the syntax line says the same with other groups"),
];

/// Maps and flat arrays alike, as pairs.
fn pairs(value: &Value) -> Vec<(String, Value)> {
    value.items().chunks(2).map(|pair| (pair[0].string(), pair[1].clone())).collect()
}

/// A value as text, the elements of sets in order. Positions of fields say where sets are.
fn show(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(show).collect::<Vec<_>>().join(" ")),
        Value::Set(items) => {
            let mut items: Vec<String> = items.iter().map(show).collect();
            items.sort();
            format!("{{{}}}", items.join(" "))
        }
        Value::Map(pairs) => {
            let pairs: Vec<String> = pairs.iter().map(|(k, v)| format!("{}={}", show(k), show(v))).collect();
            format!("({})", pairs.join(" "))
        }
        Value::Int(n) => n.to_string(),
        Value::Null => "null".into(),
        other => other.string(),
    }
}

/// Fields of an element of COMMAND INFO by name. Subcommands are compared as rows of their own.
fn info_fields(row: &Value) -> BTreeMap<String, String> {
    const NAMES: [&str; 9] =
        ["name", "arity", "flags", "first key", "last key", "step", "categories", "tips", "key specs"];
    NAMES.iter().map(|n| n.to_string()).zip(row.items().iter().map(|v| show(&without_texts(v)))).collect()
}

/// What is no text of its own in an element of COMMAND DOCS.
fn docs_fields(docs: &Value) -> BTreeMap<String, String> {
    let kept = ["since", "group", "arguments"];
    let fields = pairs(docs).into_iter().filter(|(name, _)| kept.contains(&name.as_str()));
    fields.map(|(name, value)| (name, show(&without_texts(&value)))).collect()
}

/// Trees without the texts that only readers see, and without the names of groups.
fn without_texts(value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.iter().map(without_texts).collect()),
        Value::Set(items) => Value::Set(items.iter().map(without_texts).collect()),
        Value::Map(pairs) => {
            let is_group = |v: &Value| [&b"oneof"[..], b"block"].contains(&v.text());
            let group = pairs.iter().any(|(k, v)| k.text() == b"type" && is_group(v));
            let kept = pairs.iter().filter(|(k, _)| match k.text() {
                b"display_text" | b"summary" | b"since" | b"notes" => false,
                b"name" => !group,
                _ => true,
            });
            Value::Map(kept.map(|(k, v)| (k.clone(), without_texts(v))).collect())
        }
        other => other.clone(),
    }
}

fn compare(
    name: &str,
    ours: &BTreeMap<String, String>,
    theirs: &BTreeMap<String, String>,
    found: &mut Vec<String>,
) {
    for field in ours.keys().chain(theirs.keys()).collect::<std::collections::BTreeSet<_>>() {
        let (ours, theirs) = (ours.get(field), theirs.get(field));
        if ours != theirs && !ON_PURPOSE.iter().any(|(row, _)| *row == name) {
            let shown = |v: Option<&String>| v.cloned().unwrap_or("nothing".into());
            found.push(format!("{name}: {field}\n     ours: {}\n   theirs: {}", shown(ours), shown(theirs)));
        }
    }
}

#[test]
fn rows_say_what_the_reference_says() {
    let Some(mut pair) = Pair::start(1) else { return };
    if pair.version.0 != VERSION.0 || pair.version.1 != VERSION.1 {
        eprintln!(
            "*** the reference is {:?}, the table follows {VERSION:?}: ROWS NOT COMPARED",
            pair.version
        );
        return;
    }
    pair.run("HELLO 3");
    let mut found = Vec::new();
    for spec in families().iter().flat_map(|family| family.iter()) {
        for row in std::iter::once(spec).chain(spec.subs) {
            let [ours, theirs] =
                pair.run(&format!("COMMAND INFO {}", row.name)).map(|reply| reply.items()[0].clone());
            if theirs == Value::Null {
                eprintln!("the reference does not know {}", row.name);
                continue;
            }
            compare(row.name, &info_fields(&ours), &info_fields(&theirs), &mut found);
            let docs = pair.run(&format!("COMMAND DOCS {}", row.name)).map(|reply| reply.items()[1].clone());
            compare(row.name, &docs_fields(&docs[0]), &docs_fields(&docs[1]), &mut found);
        }
    }
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n"));
}
