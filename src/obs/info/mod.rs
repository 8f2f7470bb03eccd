//! INFO: sections of `name:value` lines, under the names that Redis gives them.
//!
//! A field that says something of a feature this server lacks is 0, empty, or left out.
mod data;
mod process;
mod sizes;
mod stats;

use std::fmt::{Display, Write};

use crate::cmd::cx::ReadCx;
use crate::cmd::spec::{Done, Group::Server as S, Route, Spec, flag};
use crate::wire::{Args, Out};

/// The rows.
pub const COMMANDS: &[Spec] = &[Spec::read("info", "[section [section ...]]", info)
    .doc(S, "1.0.0", "Tells facts and figures about the server, section by section.")
    .without(flag::READONLY | flag::NO_INTERCEPT)
    .with(flag::LOADING | flag::STALE)
    .cat(&["dangerous"])
    .route(Route::All)
    .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])];

/// The text of an INFO reply while it grows.
#[derive(Default)]
struct Text(String);

impl Text {
    fn section(&mut self, title: &str) {
        if !self.0.is_empty() {
            self.0.push_str("\r\n");
        }
        self.line(format_args!("# {title}"));
    }

    fn field(&mut self, name: &str, value: impl Display) {
        self.line(format_args!("{name}:{value}"));
    }

    fn zeros(&mut self, names: &[&str]) {
        for name in names {
            self.field(name, 0);
        }
    }

    fn line(&mut self, line: impl Display) {
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{line}\r\n");
    }
}

/// When a section is shown.
#[derive(PartialEq, Eq)]
enum Shown {
    /// Also when nobody asks for any.
    ByDefault,
    /// To who asks for it or for all.
    OnDemand,
    /// To who names it: it costs too much for those who did not mean it.
    ByName,
}

struct Section {
    name: &'static str,
    shown: Shown,
    write: fn(&ReadCx<'_>, &mut Text),
}

const fn section(name: &'static str, write: fn(&ReadCx<'_>, &mut Text)) -> Section {
    Section { name, shown: Shown::ByDefault, write }
}

const fn on_demand(name: &'static str, write: fn(&ReadCx<'_>, &mut Text)) -> Section {
    Section { name, shown: Shown::OnDemand, write }
}

const fn by_name(name: &'static str, write: fn(&ReadCx<'_>, &mut Text)) -> Section {
    Section { name, shown: Shown::ByName, write }
}

const SECTIONS: &[Section] = &[
    section("server", process::server),
    section("clients", process::clients),
    section("memory", data::memory),
    section("persistence", data::persistence),
    section("threads", stats::threads),
    section("stats", stats::stats),
    section("replication", process::replication),
    section("cpu", process::cpu),
    section("modules", process::modules),
    on_demand("commandstats", stats::commandstats),
    section("errorstats", stats::errorstats),
    on_demand("latencystats", stats::latencystats),
    section("cluster", process::cluster),
    section("keyspace", data::keyspace),
    by_name("keysizes", sizes::keysizes),
];

/// Whether a section was asked for.
fn is_wanted(section: &Section, asked: &[&[u8]]) -> bool {
    let has = |word: &str| asked.iter().any(|arg| arg.eq_ignore_ascii_case(word.as_bytes()));
    let by_group = match section.shown {
        Shown::ByDefault => asked.is_empty() || has("default") || has("all") || has("everything"),
        Shown::OnDemand => has("all") || has("everything"),
        Shown::ByName => false,
    };
    by_group || has(section.name)
}

fn info(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let asked: Vec<&[u8]> = args.rest().collect();
    let mut text = Text::default();
    for section in SECTIONS.iter().filter(|section| is_wanted(section, &asked)) {
        (section.write)(cx, &mut text);
    }
    out.verbatim("txt", text.0.as_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(asked: &[&str]) -> Vec<&'static str> {
        let asked: Vec<&[u8]> = asked.iter().map(|word| word.as_bytes()).collect();
        SECTIONS.iter().filter(|section| is_wanted(section, &asked)).map(|section| section.name).collect()
    }

    #[test]
    fn sections_are_chosen_by_name_and_by_group() {
        assert_eq!(wanted(&["SERVER", "keyspace", "nope"]), ["server", "keyspace"]);
        assert_eq!(wanted(&[]), wanted(&["default"]));
        assert!(!wanted(&[]).contains(&"commandstats"));
        assert_eq!(wanted(&["all"]).len(), SECTIONS.len() - 1);
        assert_eq!(wanted(&["Everything"]), wanted(&["all"]));
        assert_eq!(wanted(&["keysizes"]), ["keysizes"]);
        assert_eq!(wanted(&["default", "commandstats"]).len(), wanted(&[]).len() + 1);
        assert!(wanted(&["nope"]).is_empty());
    }

    #[test]
    fn sections_are_parted_by_an_empty_line() {
        let mut text = Text::default();
        text.section("One");
        text.field("a", 1);
        text.section("Two");
        assert_eq!(text.0, "# One\r\na:1\r\n\r\n# Two\r\n");
    }
}
