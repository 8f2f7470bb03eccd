//! The command line: `perigee [config-file] [-] [--name value ...]`.
//!
//! The rules are those of redis-server: options are turned into lines and read after the config file, so that
//! they win and share its grammar and its errors. Nothing is started here; `parse` only says what to do.
use super::file::{self, LoadError};
use super::{Kind, P, PARAMS, Settings, VERSION, flags, words};
use clap::{Arg, ArgAction, Command};
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Invocation {
    /// Run a server.
    Run {
        /// Every parameter's value.
        settings: Settings,
        /// Absolute path of the config file, which CONFIG REWRITE will rewrite.
        config_file: Option<PathBuf>,
        /// The words after `user`, one entry per line of the config file.
        users: Vec<Vec<Vec<u8>>>,
    },
    /// Print a text and leave.
    Print(String),
}

/// Reads the arguments after the program's own name, and the files they point to; `-` reads standard input.
/// The error is the text for standard error.
pub fn parse(args: impl Iterator<Item = OsString>) -> Result<Invocation, String> {
    parse_with(args, &mut std::io::stdin())
}

fn parse_with(args: impl Iterator<Item = OsString>, input: &mut dyn Read) -> Result<Invocation, String> {
    let args: Vec<Vec<u8>> = args.map(OsString::into_vec).collect();
    match args.first().map(Vec::as_slice) {
        Some(b"-v" | b"--version") => return Ok(Invocation::Print(format!("Perigee server v={VERSION}\n"))),
        Some(b"-h" | b"--help") => return Ok(Invocation::Print(help())),
        Some(b"--test-memory") => {
            return Err("--test-memory is not supported: use a memory tester such as memtester".to_string());
        }
        _ => {}
    }
    run(&args, input).map_err(|error| error.to_string())
}

fn run(args: &[Vec<u8>], input: &mut dyn Read) -> Result<Invocation, LoadError> {
    let (config_file, options) = match args.split_first() {
        Some((path, options)) if !path.starts_with(b"-") => (Some(absolute(path)), options),
        _ => (None, args),
    };
    let Options { lines, from_input } = read_options(options, config_file.is_none());
    let mut text = match &config_file {
        Some(path) => file::read(path)?,
        None => Vec::new(),
    };
    if from_input {
        text.push(b'\n');
        input.read_to_end(&mut text).map_err(|error| LoadError::Unreadable {
            path: PathBuf::from("-"),
            reason: super::settle::system_words(&error),
        })?;
    }
    text.push(b'\n');
    text.extend(lines);
    let parsed = file::parse(&text)?;
    Ok(Invocation::Run { settings: parsed.settings, config_file, users: parsed.users })
}

/// The path as it will be found after the working directory has changed.
fn absolute(path: &[u8]) -> PathBuf {
    let path = PathBuf::from(OsString::from_vec(path.to_vec()));
    std::path::absolute(Path::new(&path)).unwrap_or(path)
}

#[derive(Default)]
struct Options {
    /// The options as lines of a config file.
    lines: Vec<u8>,
    /// A lone `-` asked for standard input.
    from_input: bool,
}

/// Turns options into lines. A `-` counts as standard input only as the first argument of all or the last.
fn read_options(args: &[Vec<u8>], first_of_all: bool) -> Options {
    let mut options = Options::default();
    // An option without a value yet takes whatever comes next, even if it looks like an option.
    let mut has_value = true;
    for (at, arg) in args.iter().enumerate() {
        let next = args.get(at + 1);
        if arg == b"-" && (next.is_none() || (first_of_all && at == 0)) {
            options.from_input = true;
        } else if let Some(name) = arg.strip_prefix(b"--")
            && has_value
        {
            if !options.lines.is_empty() {
                options.lines.push(b'\n');
            }
            options.lines.extend_from_slice(name);
            options.lines.push(b' ');
            has_value = words::split(arg).is_none_or(|words| words.len() != 1);
            if !has_value && let Some(value) = implied_value(name, next) {
                options.lines.extend_from_slice(value);
                has_value = true;
            }
        } else {
            options.lines.extend(words::quote(arg));
            options.lines.push(b' ');
            has_value = true;
        }
    }
    options
}

/// What an option stands for when no value follows it: `--save` saves never, a bare switch is on.
fn implied_value(name: &[u8], next: Option<&Vec<u8>>) -> Option<&'static [u8]> {
    if next.is_some_and(|next| !next.starts_with(b"--")) {
        return None;
    }
    let (id, _) = P::find(name.trim_ascii())?;
    match id.row().kind {
        Kind::Save => Some(b"\"\""),
        Kind::Bool => Some(b"yes"),
        _ => None,
    }
}

/// The text of `--help`.
fn help() -> String {
    let mut command = Command::new("perigee")
        .about("A standalone Redis-compatible key-value server: thread per core, every command family fast.")
        .override_usage("perigee [config-file] [-] [--name value ...]")
        .disable_help_flag(true)
        .disable_version_flag(true)
        .arg(Arg::new("config-file").help("Config file to read first; - reads one from standard input"))
        .arg(Arg::new("help").short('h').long("help").action(ArgAction::SetTrue).help("Print this text"))
        .arg(
            Arg::new("version")
                .short('v')
                .long("version")
                .action(ArgAction::SetTrue)
                .help("Print the version"),
        );
    for row in PARAMS.iter().filter(|row| !row.has(flags::HIDDEN)) {
        let mut arg = Arg::new(row.name).long(row.name).help(row.doc()).help_heading(row.group.title());
        arg = arg.value_name(value_name(row.kind));
        if !row.default.is_empty() {
            arg = arg.default_value(row.default);
        }
        command = command.arg(arg);
    }
    command.render_help().to_string()
}

fn value_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Bool => "yes|no",
        Kind::Int { .. } => "number",
        Kind::Octal { .. } => "octal",
        Kind::Memory { .. } => "bytes",
        Kind::MemoryOrPercent => "bytes|percent",
        Kind::Choice(_) => "word",
        Kind::Choices(_) => "words",
        Kind::Text { .. } => "text",
        Kind::Events => "letters",
        _ => "list",
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Folder;
    use super::*;

    fn parse_words(args: &[&str], input: &str) -> Result<Invocation, String> {
        parse_with(args.iter().map(OsString::from), &mut input.as_bytes())
    }

    fn settings(args: &[&str]) -> Settings {
        match parse_words(args, "") {
            Ok(Invocation::Run { settings, .. }) => settings,
            other => panic!("{args:?}: {other:?}"),
        }
    }

    fn refusal(args: &[&str]) -> String {
        let error = parse_words(args, "").unwrap_err();
        error.split_once(" ***\n").map_or(error.clone(), |(_, rest)| rest.to_string())
    }

    #[test]
    fn options_become_lines() {
        let got = settings(&["--port", "7000", "--bind", "1.2.3.4", "::1", "--appendonly", "yes"]);
        assert_eq!(got.int(P::PORT), 7000);
        assert_eq!(got.get_text(P::BIND), "1.2.3.4 ::1");
        assert!(got.bool(P::APPENDONLY));
        assert_eq!(settings(&["--port 7001"]).int(P::PORT), 7001);
        assert_eq!(settings(&["--requirepass", "--foo", "--hz", "20"]).text(P::REQUIREPASS), b"--foo");
        assert_eq!(settings(&["--logfile", ""]).text(P::LOGFILE), b"");
        assert_eq!(settings(&[]), Settings::default());
    }

    #[test]
    fn values_may_be_implied() {
        for args in [&["--save"][..], &["--save", "--port", "1"], &["--save", ""]] {
            assert_eq!(settings(args).get_text(P::SAVE), "", "{args:?}");
        }
        assert!(settings(&["--daemonize"]).bool(P::DAEMONIZE));
        let both = settings(&["--daemonize", "--port", "5"]);
        assert!(both.bool(P::DAEMONIZE) && both.int(P::PORT) == 5);
        assert_eq!(settings(&["--save", "9", "8", "--save", "7", "6"]).get_text(P::SAVE), "9 8 7 6");
    }

    #[test]
    fn file_then_input_then_options() {
        let folder = Folder::new("cli");
        folder.write("p.conf", "port 1\nhz 11\ntimeout 1\nuser a on");
        let path = folder.path().join("p.conf");
        let args = [path.to_str().unwrap(), "--timeout", "3", "-"];
        let Ok(Invocation::Run { settings, config_file, users }) = parse_words(&args, "hz 12\ntimeout 2")
        else {
            panic!("refused");
        };
        assert_eq!((settings.int(P::PORT), settings.int(P::HZ), settings.int(P::TIMEOUT)), (1, 12, 3));
        assert_eq!((config_file, users.len()), (Some(path), 1));
        assert!(parse_words(&["-", "--port", "1"], "hz 12").is_ok());
    }

    #[test]
    fn mistakes_read_like_those_of_a_file() {
        let at = "Reading the configuration file, at line";
        assert_eq!(refusal(&["--port"]), format!("{at} 2\n>>> 'port'\nwrong number of arguments"));
        assert_eq!(
            refusal(&["--port", "abc"]),
            format!("{at} 2\n>>> 'port \"abc\"'\nargument couldn't be parsed into an integer")
        );
        assert_eq!(
            refusal(&["-x"]),
            format!("{at} 2\n>>> '\"-x\"'\nBad directive or wrong number of arguments")
        );
        assert_eq!(
            refusal(&["--save", "--port", "99999999"]),
            format!("{at} 3\n>>> 'port \"99999999\"'\nargument must be between 0 and 65535 inclusive")
        );
        assert!(
            refusal(&["/no/such.conf"])
                .starts_with("Fatal error, can't open config file '/no/such.conf': No")
        );
        assert!(refusal(&["--test-memory", "1"]).contains("not supported"));
    }

    #[test]
    fn help_and_version_are_printed() {
        let Ok(Invocation::Print(text)) = parse_words(&["--help"], "") else { panic!("refused") };
        for row in PARAMS {
            let shown = text.contains(&format!("--{} ", row.name));
            assert_eq!(shown, !row.has(flags::HIDDEN), "{}", row.name);
        }
        let version = Invocation::Print(format!("Perigee server v={VERSION}\n"));
        assert_eq!(parse_words(&["-v"], ""), Ok(version));
    }
}
