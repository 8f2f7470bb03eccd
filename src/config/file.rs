//! The config file: one directive per line, later lines win, `include` in place.
//!
//! The grammar is that of redis.conf (see `words` for quoting). Reading starts from the defaults and either
//! yields a whole snapshot or names the first line at fault. Three directives are no parameters: `include`,
//! `user` (kept aside for the access control list) and those this server refuses. Nothing is written here.
use super::settle::system_words;
use super::{P, Reason, SaveRule, Settings, VERSION, Value, flags, words};
use crate::base::glob;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Files included by files included...: enough for any sane layout, and an end to a file that includes itself.
const INCLUDE_DEPTH_MAX: usize = 16;

/// Directives of old versions that no longer mean anything; accepted with one word after them.
const OBSOLETE: &[&[u8]] = &[
    b"list-max-ziplist-entries",
    b"list-max-ziplist-value",
    b"lua-replicate-commands",
    b"io-threads-do-reads",
];

/// What a config file said.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Parsed {
    /// Every parameter's value.
    pub settings: Settings,
    /// The words after `user`, one entry per line.
    pub users: Vec<Vec<Vec<u8>>>,
}

/// Why a config file cannot be used. Displays as the block that goes to standard error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// A file cannot be read.
    Unreadable {
        /// Its path as given.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// A line, or the file as a whole, was refused.
    Refused {
        /// Number of the line, counted from 1, and the line itself without blanks around it.
        line: Option<(usize, Vec<u8>)>,
        /// Why, in Redis's words where Redis has any.
        reason: Reason,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Unreadable { path, reason } => {
                write!(f, "Fatal error, can't open config file '{}': {reason}", path.display())
            }
            LoadError::Refused { line, reason } => {
                writeln!(f, "*** FATAL CONFIG FILE ERROR (Perigee {VERSION}) ***")?;
                if let Some((number, line)) = line {
                    writeln!(f, "Reading the configuration file, at line {number}")?;
                    writeln!(f, ">>> '{}'", String::from_utf8_lossy(line))?;
                }
                f.write_str(reason)
            }
        }
    }
}

/// Reads a whole configuration from its text, starting from the defaults.
pub fn parse(text: &[u8]) -> Result<Parsed, LoadError> {
    let mut loader = Loader::default();
    loader.load(text)?;
    loader.finish()
}

/// Reads a file into memory.
pub fn read(path: &Path) -> Result<Vec<u8>, LoadError> {
    let unreadable = |error| LoadError::Unreadable { path: path.to_path_buf(), reason: system_words(&error) };
    std::fs::read(path).map_err(unreadable)
}

/// Why a line is refused; an included file brings a whole error of its own.
enum Fault {
    Reason(Reason),
    Included(LoadError),
}

impl From<Reason> for Fault {
    fn from(reason: Reason) -> Fault {
        Fault::Reason(reason)
    }
}

impl From<&'static str> for Fault {
    fn from(reason: &'static str) -> Fault {
        Fault::Reason(reason.into())
    }
}

#[derive(Default)]
struct Loader {
    parsed: Parsed,
    /// A `save` line was met: the default rules are gone and further lines add to the ones before.
    save_met: bool,
    depth: usize,
}

impl Loader {
    fn load(&mut self, text: &[u8]) -> Result<(), LoadError> {
        for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() || line[0] == b'#' {
                continue;
            }
            self.line(line).map_err(|fault| match fault {
                Fault::Included(error) => error,
                Fault::Reason(reason) => {
                    LoadError::Refused { line: Some((index + 1, line.to_vec())), reason }
                }
            })?;
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8]) -> Result<(), Fault> {
        let Some(words) = words::split(line) else {
            return Err("Unbalanced quotes in configuration line".into());
        };
        let Some((name, args)) = words.split_first() else { return Ok(()) };
        match P::find(name) {
            Some((id, _)) => Ok(self.parameter(id, args)?),
            None => self.directive(&name.to_ascii_lowercase(), args),
        }
    }

    fn parameter(&mut self, id: P, args: &[Vec<u8>]) -> Result<(), Reason> {
        // A list may come as one quoted word.
        let unpacked = match args {
            [list] if id.row().has(flags::MULTI_ARG) && !list.is_empty() => {
                Some(words::split(list).unwrap_or_default())
            }
            _ => None,
        };
        let args: Vec<&[u8]> = unpacked.as_deref().unwrap_or(args).iter().map(Vec::as_slice).collect();
        if id == P::SAVE { self.save(&args) } else { self.parsed.settings.set_id(id, &args) }
    }

    /// `save` lines add up, except that the first one drops the defaults and an empty one drops all before it.
    fn save(&mut self, args: &[&[u8]]) -> Result<(), Reason> {
        let before = self.parsed.settings.save_rules().to_vec();
        self.parsed.settings.set_id(P::SAVE, args)?;
        let empties = matches!(args, [arg] if arg.is_empty());
        if self.save_met && !empties {
            let added = self.parsed.settings.save_rules();
            let rules: Vec<SaveRule> = before.iter().chain(added).copied().collect();
            self.parsed.settings.values[P::SAVE as usize] = Value::Save(rules);
        }
        self.save_met = true;
        Ok(())
    }

    /// A line that is no parameter.
    fn directive(&mut self, name: &[u8], args: &[Vec<u8>]) -> Result<(), Fault> {
        match (name, args) {
            (b"include", [pattern]) => self.include(pattern),
            (b"user", [_, ..]) => {
                self.parsed.users.push(args.to_vec());
                Ok(())
            }
            (b"rename-command", _) => Err(
                "rename-command is not supported: commands keep their names, restrict them with ACL rules"
                    .into(),
            ),
            (b"loadmodule", _) => Err("loadmodule is not supported: this server has no modules".into()),
            (b"sentinel", _) => Err("sentinel directive while not in sentinel mode".into()),
            (name, [_]) if OBSOLETE.contains(&name) => Ok(()),
            _ => Err("Bad directive or wrong number of arguments".into()),
        }
    }

    /// Reads the files a pattern names, in the order of their names. A pattern that matches none is no error, a
    /// plain name of no file is.
    fn include(&mut self, pattern: &[u8]) -> Result<(), Fault> {
        if self.depth == INCLUDE_DEPTH_MAX {
            return Err("too many config files include one another".into());
        }
        let paths = if has_wildcards(pattern) {
            expand(pattern)
        } else {
            vec![PathBuf::from(OsStr::from_bytes(pattern))]
        };
        self.depth += 1;
        for path in paths {
            let text = read(&path).map_err(Fault::Included)?;
            self.load(&text).map_err(Fault::Included)?;
        }
        self.depth -= 1;
        Ok(())
    }

    /// What can only be judged when everything was read.
    fn finish(mut self) -> Result<Parsed, LoadError> {
        let settings = &mut self.parsed.settings;
        if settings.bool(P::CLUSTER_ENABLED) {
            if settings.primary().is_some() {
                let reason = "replicaof directive not allowed in cluster mode".into();
                return Err(LoadError::Refused { line: None, reason });
            }
            // A cluster has one database; Redis corrects this rather than refuse it.
            settings.values[P::DATABASES as usize] = Value::Int(1);
        }
        Ok(self.parsed)
    }
}

fn has_wildcards(pattern: &[u8]) -> bool {
    pattern.iter().any(|byte| matches!(byte, b'*' | b'?' | b'['))
}

/// The existing paths a pattern with wildcards matches, sorted. A wildcard matches no leading dot.
fn expand(pattern: &[u8]) -> Vec<PathBuf> {
    let mut paths = vec![PathBuf::from(if pattern.starts_with(b"/") { "/" } else { "" })];
    for part in pattern.split(|byte| *byte == b'/').filter(|part| !part.is_empty()) {
        paths = paths.iter().flat_map(|path| step(path, part)).collect();
    }
    paths.retain(|path| path.exists());
    paths
}

/// One part of a pattern below one directory.
fn step(path: &Path, part: &[u8]) -> Vec<PathBuf> {
    if !has_wildcards(part) {
        return vec![path.join(OsStr::from_bytes(part))];
    }
    let here = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let entries = std::fs::read_dir(here).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().into_vec());
    let fits =
        |name: &Vec<u8>| (part[0] == b'.' || !name.starts_with(b".")) && glob::matches(part, name, false);
    let mut names: Vec<_> = names.filter(fits).collect();
    names.sort();
    names.iter().map(|name| path.join(OsStr::from_bytes(name))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::Folder;
    use super::*;

    fn parsed(text: &str) -> Parsed {
        parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
    }

    fn refusal(text: &str) -> String {
        parse(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn later_lines_win_and_names_have_any_case() {
        let settings =
            parsed("# c\n\nPort 1\n  port 2 \r\nslave-priority 7\nrequirepass \"a\\x41\"").settings;
        assert_eq!(settings.int(P::PORT), 2);
        assert_eq!(settings.int(P::REPLICA_PRIORITY), 7);
        assert_eq!(settings.text(P::REQUIREPASS), b"aA");
    }

    #[test]
    fn save_lines_add_up() {
        let save = |text: &str| parsed(text).settings.get_text(P::SAVE);
        assert_eq!(save(""), "3600 1 300 100 60 10000");
        assert_eq!(save("save 900 1"), "900 1");
        assert_eq!(save("save 900 1\nsave 800 2 700 3\nsave '60 9'"), "900 1 800 2 700 3 60 9");
        assert_eq!(save("save 900 1\nsave \"\"\nsave 5 6"), "5 6");
        assert_eq!(save("save \"\""), "");
    }

    #[test]
    fn lists_come_as_words_or_quoted() {
        let settings = parsed(
            "bind 1.2.3.4 -::1\nclient-output-buffer-limit normal 1 2 3\n\
            client-output-buffer-limit \"pubsub 4 5 6\"",
        )
        .settings;
        assert_eq!(settings.get_text(P::BIND), "1.2.3.4 -::1");
        assert_eq!(
            settings.get_text(P::CLIENT_OUTPUT_BUFFER_LIMIT),
            "normal 1 2 3 slave 268435456 67108864 60 pubsub 4 5 6"
        );
        assert_eq!(parsed("bind \"1.2.3.4 ::1\"").settings.addresses().len(), 2);
        assert!(parsed("bind").settings.addresses().is_empty());
    }

    #[test]
    fn users_are_kept_aside() {
        let users = parsed("user a on '>p w'\nuser b").users;
        assert_eq!(users, [vec![b"a".to_vec(), b"on".to_vec(), b">p w".to_vec()], vec![b"b".to_vec()]]);
    }

    #[test]
    fn errors_name_the_line() {
        let head = format!("*** FATAL CONFIG FILE ERROR (Perigee {VERSION}) ***\n");
        let at = "Reading the configuration file, at line";
        assert_eq!(
            refusal("\nport 1\n port \"a \n"),
            format!("{head}{at} 3\n>>> 'port \"a'\nUnbalanced quotes in configuration line")
        );
        assert_eq!(
            refusal("foo bar"),
            format!("{head}{at} 1\n>>> 'foo bar'\nBad directive or wrong number of arguments")
        );
        assert_eq!(refusal("port"), format!("{head}{at} 1\n>>> 'port'\nwrong number of arguments"));
        assert_eq!(
            refusal("cluster-enabled yes\nreplicaof h 1"),
            format!("{head}replicaof directive not allowed in cluster mode")
        );
        assert!(
            refusal("include /no/such.conf").starts_with("Fatal error, can't open config file '/no/such")
        );
    }

    #[test]
    fn some_directives_are_refused_and_some_forgotten() {
        for line in ["rename-command get x", "loadmodule m.so", "sentinel x", "user", "include a b"] {
            assert!(parse(line.as_bytes()).is_err(), "{line}");
        }
        assert_eq!(parsed("io-threads-do-reads yes\ninclude /no/such/*.conf"), Parsed::default());
        assert_eq!(parsed("cluster-enabled yes").settings.int(P::DATABASES), 1);
    }

    #[test]
    fn includes_are_read_in_place() {
        let folder = Folder::new("include");
        folder.write("b.conf", "port 2\nsave 1 1\n");
        folder.write("a.conf", "port 1\ntimeout 9");
        folder.write(".c.conf", "port 3\n");
        let text = format!("port 0\nsave 9 9\ninclude {}/*.conf\nhz 20", folder.path().display());
        let settings = parsed(&text).settings;
        assert_eq!((settings.int(P::PORT), settings.int(P::TIMEOUT), settings.int(P::HZ)), (2, 9, 20));
        assert_eq!(settings.get_text(P::SAVE), "9 9 1 1");
        folder.write("bad.conf", "\nport x\n");
        let error = refusal(&format!("include {}/bad.conf", folder.path().display()));
        assert!(error.contains("at line 2\n>>> 'port x'"), "{error}");
    }

    #[test]
    fn a_file_that_includes_itself_is_refused() {
        let folder = Folder::new("loop");
        let line = format!("include {}/loop.conf", folder.path().display());
        folder.write("loop.conf", &line);
        assert!(refusal(&line).contains("too many config files"));
    }
}
