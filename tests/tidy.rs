//! The house rules that a reader of the sources can check: floors, rooms for unsafe code, sizes, head comments, and
//! generated pages that are up to date.
//!
//! The lists of exceptions may only shrink: an entry that is better than listed fails the test, too.
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Folders of `src`, lowest floor first. A folder uses lower floors and itself.
const FLOORS: &[&[&str]] = &[
    &["base"],
    &["rt"],
    &["wire", "ds", "config"],
    &["host"],
    &["store"],
    &["types"],
    &["rdb"],
    &["cmd"],
    &["shard"],
    &["pubsub", "script"],
    &["persist"],
    &["obs", "admin"],
    &["conn"],
    &["server"],
];

/// Where unsafe code may stand.
const UNSAFE_ROOMS: &[&str] = &["src/ds/raw", "src/shard/cell.rs", "src/rt/sys.rs", "src/rt/sys/"];

/// Words with a home: nobody else says them.
const HOMES: &[(&str, &[&str])] = &[
    ("monoio", &["src/rt/"]),
    ("tokio", &["src/rt/"]),
    ("SystemTime::now", &["src/base/clock.rs", "src/rt/"]),
    ("Instant::now", &["src/base/clock.rs", "src/rt/"]),
];

const FUNCTION_LINES_MAX: usize = 70;
const FILE_LINES_MAX: usize = 800;

/// Longer functions, by file and name, with their lines.
const LONG_FUNCTIONS: &[(&str, &str, usize)] = &[];
/// Longer files, with their lines without tests.
const LONG_FILES: &[(&str, usize)] = &[];

/// A source file.
struct Source {
    /// From the crate's root.
    path: String,
    /// All of it.
    text: String,
}

impl Source {
    /// Lines before the unit tests.
    fn code(&self) -> Vec<&str> {
        let lines: Vec<&str> = self.text.lines().collect();
        let tests = lines.windows(2).position(|w| w[0] == "#[cfg(test)]" && w[1].starts_with("mod "));
        lines[..tests.unwrap_or(lines.len())].to_vec()
    }

    fn is_in(&self, places: &[&str]) -> bool {
        places.iter().any(|place| self.path.starts_with(place))
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources() -> Vec<Source> {
    let mut sources = Vec::new();
    let mut folders = vec![root().join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("src can be read") {
            let path: PathBuf = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).expect("a source is text");
                let path = path.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned();
                sources.push(Source { path, text });
            }
        }
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    sources
}

/// A line without its comment. A `//` in a text counts as one, too; that hides little.
fn without_comment(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}

#[track_caller]
fn expect_none(rule: &str, broken: &BTreeSet<String>) {
    let list = broken.iter().fold(String::new(), |text, line| text + "\n  " + line);
    assert!(broken.is_empty(), "{rule}:{list}");
}

fn floor_of(folder: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&folder))
}

/// The folders that a line names by `crate::`.
fn used_folders(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("crate::").map(|(at, word)| {
        let rest = &line[at + word.len()..];
        &rest[..rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len())]
    })
}

#[test]
fn a_folder_uses_lower_floors_only() {
    let mut broken = BTreeSet::new();
    for source in sources() {
        let folder = source.path.trim_start_matches("src/").split('/').next().unwrap_or_default();
        if folder.ends_with(".rs") {
            continue;
        }
        let Some(own) = floor_of(folder) else {
            broken.insert(format!("{folder} stands on no floor: give it one in FLOORS"));
            continue;
        };
        for (number, line) in source.text.lines().enumerate() {
            for used in used_folders(without_comment(line)) {
                let fine = used == folder || floor_of(used).is_some_and(|floor| floor < own);
                // `crate::Name` and macros of the crate's root belong to no floor.
                if !fine && used.starts_with(|c: char| c.is_ascii_lowercase()) {
                    broken.insert(format!("{}:{} uses {used}", source.path, number + 1));
                }
            }
        }
    }
    expect_none("a folder may use only lower floors", &broken);
}

#[test]
fn unsafe_code_stays_in_its_rooms() {
    let mut broken = BTreeSet::new();
    for source in sources().iter().filter(|s| !s.is_in(UNSAFE_ROOMS)) {
        for (number, line) in source.text.lines().enumerate() {
            let code = without_comment(line);
            if code
                .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .any(|w| w == "unsafe" || w == "unsafe_code")
            {
                broken.insert(format!("{}:{}", source.path, number + 1));
            }
        }
    }
    expect_none("unsafe code outside its rooms", &broken);
}

#[test]
fn words_stay_at_home() {
    let mut broken = BTreeSet::new();
    for source in sources() {
        for (word, _) in HOMES.iter().filter(|(_, homes)| !source.is_in(homes)) {
            for (number, line) in source.text.lines().enumerate() {
                if without_comment(line).contains(word) {
                    broken.insert(format!("{}:{} says {word}", source.path, number + 1));
                }
            }
        }
        if source.is_in(&["src/ds/"]) {
            for (number, line) in source.code().iter().enumerate() {
                let code = without_comment(line);
                if code.to_ascii_lowercase().contains("redis") || code.contains("RESP") {
                    broken.insert(format!("{}:{}: data structures know no server", source.path, number + 1));
                }
            }
        }
    }
    expect_none("words away from home", &broken);
}

#[test]
fn every_file_says_what_it_is_for() {
    let silent = sources().iter().filter(|s| !s.text.starts_with("//!")).map(|s| s.path.clone()).collect();
    expect_none("files without a head comment", &silent);
}

/// Functions with their number of lines. The sources are formatted, so a function ends at a brace with the indent
/// that it began with.
fn functions(source: &Source) -> Vec<(String, usize)> {
    let lines = source.code();
    let mut functions = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let code = without_comment(line);
        let words: Vec<&str> = code.split_whitespace().collect();
        let Some(at) = words.iter().position(|w| *w == "fn") else { continue };
        let plain =
            |w: &&str| w.starts_with("pub") || ["const", "async", "unsafe", "extern", "\"C\""].contains(w);
        let Some(name) = words.get(at + 1).filter(|_| words[..at].iter().all(plain)) else { continue };
        let indent = &line[..line.len() - line.trim_start().len()];
        let end = format!("{indent}}}");
        let one_line = code.trim_end().ends_with(['}', ';']);
        if let Some(length) = lines[start..].iter().position(|l| *l == end).filter(|_| !one_line) {
            let name = name.split(['(', '<']).next().unwrap_or(name);
            functions.push((name.to_string(), length + 1));
        }
    }
    functions
}

/// Compares sizes with a limit and with the listed exceptions.
fn compare(broken: &mut BTreeSet<String>, what: &str, lines: usize, max: usize, listed: Option<usize>) {
    match listed {
        None if lines > max => drop(broken.insert(format!("{what} has {lines} lines; {max} are allowed"))),
        Some(listed) if lines > listed => {
            broken.insert(format!("{what} has {lines} lines; as an exception {listed} are allowed"));
        }
        Some(listed) if lines < listed => {
            broken
                .insert(format!("{what} has only {lines} lines: lower its entry ({listed}), or take it out"));
        }
        _ => {}
    }
}

#[test]
fn functions_and_files_are_short() {
    let mut broken = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for source in sources() {
        for (name, lines) in functions(&source) {
            let entry = LONG_FUNCTIONS.iter().find(|(path, n, _)| *path == source.path && *n == name);
            compare(
                &mut broken,
                &format!("{} {name}", source.path),
                lines,
                FUNCTION_LINES_MAX,
                entry.map(|e| e.2),
            );
            seen.insert(format!("{} {name}", source.path));
        }
        let entry = LONG_FILES.iter().find(|(path, _)| *path == source.path);
        compare(&mut broken, &source.path, source.code().len(), FILE_LINES_MAX, entry.map(|e| e.1));
        seen.insert(source.path);
    }
    let gone = LONG_FUNCTIONS.iter().map(|(path, name, _)| format!("{path} {name}"));
    for gone in gone.chain(LONG_FILES.iter().map(|(path, _)| path.to_string())).filter(|e| !seen.contains(e))
    {
        broken.insert(format!("{gone} is gone: take its entry out"));
    }
    expect_none("sizes", &broken);
}

#[test]
fn the_reader_of_functions_reads() {
    let text = "//! x\nimpl A {\n    pub const fn one(&self) -> u8 {\n        1\n    }\n\n    fn two() {}\n}\n\
                fn three<T>(\n    a: T,\n) {\n    a\n}\n#[cfg(test)]\nmod tests {\n    fn four() {\n    }\n}\n";
    let source = Source { path: "x".into(), text: text.into() };
    assert_eq!(functions(&source), [("one".to_string(), 3), ("three".to_string(), 5)]);
    let used: Vec<&str> = used_folders("use crate::base::{a}; crate::ds::raw::x(crate::Name)").collect();
    assert_eq!(used, ["base", "ds", "Name"]);
    let mut broken = BTreeSet::new();
    compare(&mut broken, "a", 5, 5, None);
    compare(&mut broken, "b", 7, 5, Some(7));
    assert!(broken.is_empty());
    compare(&mut broken, "c", 6, 5, None);
    compare(&mut broken, "d", 6, 5, Some(7));
    compare(&mut broken, "e", 8, 5, Some(7));
    assert_eq!(broken.len(), 3);
}

/// Compares a generated page with the file; writes it when `UPDATE=1`.
fn page(name: &str, text: &str) {
    let path = root().join("docs").join(name);
    if std::env::var("UPDATE").is_ok_and(|v| v == "1") {
        std::fs::create_dir_all(root().join("docs")).expect("docs can be made");
        std::fs::write(&path, text).expect("the page can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    if found == text {
        return;
    }
    let mut difference = String::new();
    for (number, (found, want)) in
        found.lines().zip(text.lines()).enumerate().filter(|(_, (a, b))| a != b).take(3)
    {
        let _ = write!(difference, "\n{}: {found}\n   now: {want}", number + 1);
    }
    panic!(
        "docs/{name} is not what the tables say; run the test with UPDATE=1 and commit the page{difference}"
    );
}

#[test]
fn generated_pages_are_up_to_date() {
    page("commands.md", &perigee::cmd::docs::commands_md(perigee::server::table::assemble()));
    page("configuration.md", &perigee::config::docs::configuration_md());
}
