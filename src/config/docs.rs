//! docs/configuration.md, rendered from the table so that it cannot fall behind it.
use super::value::memory_text;
use super::{Group, Kind, PARAMS, Param, flags};
use std::fmt::Write;

const HEAD: &str = "\
# Configuration

This page is generated from the table of parameters in `src/config/params.rs`; edit the table, not this page.

Parameters are set in the config file (`name value`, one a line), on the command line (`--name value`), or at
run time with `CONFIG SET name value`. Later settings win. Memory takes a unit: `k`, `m` and `g` count in
thousands, `kb`, `mb` and `gb` in powers of 1024. `CONFIG REWRITE` brings the config file up to date.

Notes in the tables:

- *at start*: only the command line and the config file can set it.
- *protected*: `CONFIG SET` needs `enable-protected-configs`.
- *hidden*: `CONFIG GET` shows it only under its exact name.
- *secret*: kept out of logs.
- *accepted, no effect yet*: the value is kept and shown, its feature is still to come.
- *accepted, no effect*: known only so that existing files and clients work.
";

/// The whole text of docs/configuration.md.
pub fn configuration_md() -> String {
    let mut page = HEAD.to_string();
    for group in Group::ALL {
        let rows: Vec<&Param> = PARAMS.iter().filter(|row| row.group == group).collect();
        page.push_str(&chapter(group, &rows));
    }
    page
}

fn chapter(group: Group, rows: &[&Param]) -> String {
    let mut text = format!("\n## {}\n\n", group.title());
    text.push_str("| Parameter | Value | Default | Meaning | Notes |\n|---|---|---|---|---|\n");
    for row in rows {
        let cells = [names(row), value(row.kind), default(row), row.doc().to_string(), notes(row)];
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {} |", cells.map(|cell| cell.replace('|', "\\|")).join(" | "));
    }
    text
}

fn names(row: &Param) -> String {
    match row.alias {
        Some(alias) => format!("`{}` (also `{alias}`)", row.name),
        None => format!("`{}`", row.name),
    }
}

fn default(row: &Param) -> String {
    if row.default.is_empty() { "empty".to_string() } else { format!("`{}`", row.default.trim_matches('"')) }
}

/// What a kind of value looks like.
fn value(kind: Kind) -> String {
    let words = |words: super::Words| {
        words.iter().map(|(word, _)| format!("`{word}`")).collect::<Vec<_>>().join(", ")
    };
    match kind {
        Kind::Bool => "`yes` or `no`".to_string(),
        Kind::Int { min, max } => match (i32::try_from(min), max >= i64::from(i32::MAX)) {
            (Ok(i32::MIN), _) => "integer".to_string(),
            (_, true) => format!("integer from {min}"),
            _ => format!("{min} to {max}"),
        },
        Kind::Octal { max } => format!("octal, 0 to {max:o}"),
        Kind::Memory { min, .. } => format!("memory from {}", memory_text(min)),
        Kind::MemoryOrPercent => "memory, or 1% to 100%".to_string(),
        Kind::Choice(list) => format!("one of {}", words(list)),
        Kind::Choices(list) => format!("any of {}", words(list)),
        Kind::Text { .. } => "text".to_string(),
        Kind::Events => "letters of `Ag$lshzxeKEtmdn`".to_string(),
        Kind::Save => "seconds changes ...".to_string(),
        Kind::OutputLimits => {
            "class hard soft seconds ...; classes `normal`, `replica`, `pubsub`".to_string()
        }
        Kind::Addresses => "address ...".to_string(),
        Kind::OomScores => "three integers".to_string(),
        Kind::Primary => "host port".to_string(),
        Kind::Percentiles => "0 to 100 ...".to_string(),
    }
}

fn notes(row: &Param) -> String {
    const NOTES: &[(u16, &str)] = &[
        (flags::IMMUTABLE, "at start"),
        (flags::PROTECTED, "protected"),
        (flags::HIDDEN, "hidden"),
        (flags::SENSITIVE, "secret"),
        (flags::NOT_YET, "accepted, no effect yet"),
        (flags::INERT, "accepted, no effect"),
    ];
    NOTES.iter().filter(|(flag, _)| row.has(*flag)).map(|(_, note)| *note).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_has_its_line() {
        let page = configuration_md();
        for row in PARAMS {
            let lines: Vec<&str> =
                page.lines().filter(|line| line.starts_with(&format!("| `{}`", row.name))).collect();
            assert_eq!(lines.len(), 1, "{}", row.name);
            assert!(lines[0].contains(row.doc()), "{}", row.name);
        }
        let tables = Group::ALL.len() * 2;
        assert_eq!(page.lines().filter(|line| line.starts_with('|')).count(), PARAMS.len() + tables);
    }

    #[test]
    fn lines_say_what_matters() {
        let page = configuration_md();
        for line in [
            "| `shards` | 0 to 1024 | `0` |",
            "| `proto-max-bulk-len` | memory from 1mb | `512mb` |",
            "| `busy-reply-threshold` (also `lua-time-limit`) | integer from 0 | `5000` |",
        ] {
            assert!(page.contains(line), "{line}");
        }
    }
}
