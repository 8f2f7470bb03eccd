//! Configuration: one table of parameters, immutable snapshots of their values, and the ways in and out.
//!
//! `params` holds the table; everything else derives from it: `Settings` (one value per row), CONFIG GET and SET
//! (`matching`, `apply_many`), the config file (`file`), CONFIG REWRITE (`rewrite`), the command line (`cli`)
//! and docs/configuration.md (`docs`). A `Settings` always holds one valid value per row, of the row's kind.
//! Changing a parameter means cloning the snapshot, setting, and publishing the clone; what has to happen beyond
//! (opening a port, changing the working directory) is the publisher's part.
use crate::base::glob;
use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

mod absent;
pub mod cli;
pub mod docs;
pub mod file;
mod params;
pub mod rewrite;
mod row;
mod settle;
mod value;
pub mod words;

pub use absent::{absent_feature, refused_yet};
pub use params::{ALL, P, PARAMS};
pub use row::{Group, Kind, Param, Reason, Words, flags};
pub use settle::{SHUTDOWN_FORCE, SHUTDOWN_NOSAVE, SHUTDOWN_SAVE};
pub use value::{CLIENT_CLASSES, MemoryBound, OutputLimit, SaveRule, Value, event_bit};

/// The version of this server, as the config file errors and `--version` print it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The version of Redis whose commands and replies this server has, as clients are told.
pub const REDIS_VERSION: &str = "8.0.6";

impl P {
    /// The parameter's row.
    pub fn row(self) -> &'static Param {
        &PARAMS[self as usize]
    }

    /// Finds a parameter by its name or alias, in any case; gives back the spelling of the table as well.
    pub fn find(name: &[u8]) -> Option<(P, &'static str)> {
        ALL.iter().find_map(|id| {
            let row = id.row();
            let mut names = [Some(row.name), row.alias].into_iter().flatten();
            names.find(|known| known.as_bytes().eq_ignore_ascii_case(name)).map(|known| (*id, known))
        })
    }
}

/// Why a value was not set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetError {
    /// No parameter has this name.
    Unknown,
    /// The value was refused, in Redis's words.
    Refused(Reason),
}

/// Why CONFIG SET changed nothing. Displays as the error line of the reply, without the leading `-`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetManyError {
    /// No parameter has this name.
    Unknown(Vec<u8>),
    /// One of the values was refused.
    Refused {
        /// The parameter as the error names it.
        name: Vec<u8>,
        /// Why, in Redis's words.
        reason: Reason,
    },
    /// A data set is being loaded and this parameter must not change meanwhile.
    Loading,
}

impl fmt::Display for SetManyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetManyError::Unknown(name) => {
                let name = String::from_utf8_lossy(name);
                write!(f, "ERR Unknown option or number of arguments for CONFIG SET - '{name}'")
            }
            SetManyError::Refused { name, reason } => {
                let name = String::from_utf8_lossy(name);
                write!(f, "ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}")
            }
            SetManyError::Loading => f.write_str("LOADING Redis is loading the dataset in memory"),
        }
    }
}

/// Who asks for a CONFIG SET; the default is the least trusted, on a server that has finished loading.
#[derive(Clone, Copy, Debug, Default)]
pub struct Caller {
    /// The client is on this machine.
    pub local: bool,
    /// A data set is being loaded.
    pub loading: bool,
}

/// One snapshot of every parameter's value.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    values: Vec<Value>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { values: PARAMS.iter().map(default_value).collect() }
    }
}

/// The default of a row.
///
/// # Panics
/// When the table holds a default its own row refuses; a test parses them all.
fn default_value(row: &Param) -> Value {
    let mut args = words::split(row.default.as_bytes()).unwrap_or_default();
    if args.is_empty() {
        args.push(Vec::new());
    }
    let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
    match Value::parse(row, &args, None) {
        Ok(value) => value,
        Err(reason) => panic!("default of {}: {reason}", row.name),
    }
}

impl Settings {
    /// The value of a parameter.
    pub fn value(&self, id: P) -> &Value {
        &self.values[id as usize]
    }

    /// A number: integers, octals, bits of choices and of event classes.
    ///
    /// # Panics
    /// This getter and the following ones panic when the parameter is of another kind, a mistake of the caller.
    pub fn int(&self, id: P) -> i64 {
        match self.value(id) {
            Value::Int(number) => *number,
            _ => misread(id),
        }
    }

    /// A switch.
    pub fn bool(&self, id: P) -> bool {
        self.int(id) != 0
    }

    /// Bytes of memory.
    pub fn memory(&self, id: P) -> u64 {
        match self.value(id) {
            Value::Memory(bytes) => *bytes,
            _ => misread(id),
        }
    }

    /// Bytes of memory or a percentage.
    pub fn bound(&self, id: P) -> MemoryBound {
        match self.value(id) {
            Value::Bound(bound) => *bound,
            _ => misread(id),
        }
    }

    /// A free text; empty when not set.
    pub fn text(&self, id: P) -> &[u8] {
        match self.value(id) {
            Value::Text(text) => text,
            _ => misread(id),
        }
    }

    /// A free text that names a file.
    pub fn path(&self, id: P) -> &Path {
        Path::new(OsStr::from_bytes(self.text(id)))
    }

    /// The word of a choice, as the table spells it.
    pub fn choice(&self, id: P) -> &'static str {
        match id.row().kind {
            Kind::Choice(words) => value::word_of(words, self.int(id)),
            _ => misread(id),
        }
    }

    /// Snapshot rules.
    pub fn save_rules(&self) -> &[SaveRule] {
        match self.value(P::SAVE) {
            Value::Save(rules) => rules,
            _ => misread(P::SAVE),
        }
    }

    /// Output limits in the order of [`CLIENT_CLASSES`].
    pub fn output_limits(&self) -> &[OutputLimit; 3] {
        match self.value(P::CLIENT_OUTPUT_BUFFER_LIMIT) {
            Value::OutputLimits(limits) => limits,
            _ => misread(P::CLIENT_OUTPUT_BUFFER_LIMIT),
        }
    }

    /// Addresses to listen on.
    pub fn addresses(&self) -> &[Vec<u8>] {
        match self.value(P::BIND) {
            Value::Addresses(addresses) => addresses,
            _ => misread(P::BIND),
        }
    }

    /// Host and port of the primary, if this server is to be a replica.
    pub fn primary(&self) -> Option<(&[u8], u16)> {
        match self.value(P::REPLICAOF) {
            Value::Primary(primary) => primary.as_ref().map(|(host, port)| (host.as_slice(), *port)),
            _ => misread(P::REPLICAOF),
        }
    }

    /// Percentiles of command latency that INFO shows.
    pub fn percentiles(&self) -> &[f64] {
        match self.value(P::LATENCY_TRACKING_INFO_PERCENTILES) {
            Value::Percentiles(list) => list,
            _ => misread(P::LATENCY_TRACKING_INFO_PERCENTILES),
        }
    }

    /// Sets a parameter, immutable or not, from the words after its name; on an error nothing changes.
    pub fn set(&mut self, name: &[u8], args: &[&[u8]]) -> Result<(), SetError> {
        let (id, _) = P::find(name).ok_or(SetError::Unknown)?;
        self.set_id(id, args).map_err(SetError::Refused)
    }

    /// Like [`Settings::set`] for a known parameter.
    pub fn set_id(&mut self, id: P, args: &[&[u8]]) -> Result<(), Reason> {
        let slot = &mut self.values[id as usize];
        *slot = Value::parse(id.row(), args, Some(slot))?;
        Ok(())
    }

    /// The text CONFIG GET prints for a parameter; any bytes.
    pub fn get_bytes(&self, id: P) -> Vec<u8> {
        self.value(id).text(id.row().kind)
    }

    /// Like [`Settings::get_bytes`], with what is not UTF-8 replaced; for people, not for replies.
    pub fn get_text(&self, id: P) -> String {
        String::from_utf8_lossy(&self.get_bytes(id)).into_owned()
    }

    /// The names and values CONFIG GET answers with. A pattern without wildcards must be a whole name and is
    /// answered under the spelling asked for; with wildcards it matches names and aliases that are not hidden.
    /// No name appears twice.
    pub fn matching<'a>(&self, patterns: &[&'a [u8]]) -> Vec<(Cow<'a, [u8]>, Vec<u8>)> {
        let mut found: Vec<(Cow<'a, [u8]>, P)> = Vec::new();
        let mut add = |name: Cow<'a, [u8]>, id: P| {
            if !found.iter().any(|(known, _)| known.eq_ignore_ascii_case(&name)) {
                found.push((name, id));
            }
        };
        for pattern in patterns {
            if !pattern.iter().any(|byte| matches!(byte, b'[' | b'*' | b'?')) {
                if let Some((id, _)) = P::find(pattern) {
                    add(Cow::Borrowed(pattern), id);
                }
                continue;
            }
            for id in ALL.iter().filter(|id| !id.row().has(flags::HIDDEN)) {
                for name in [Some(id.row().name), id.row().alias].into_iter().flatten() {
                    if glob::matches(pattern, name.as_bytes(), true) {
                        add(Cow::Borrowed(name.as_bytes()), *id);
                    }
                }
            }
        }
        found.into_iter().map(|(name, id)| (name, self.get_bytes(id))).collect()
    }

    /// The snapshot after a CONFIG SET of several parameters, each name with one text; all of them or none.
    /// A caller who changes what a file or a port stands for must act on the difference itself.
    pub fn apply_many(&self, pairs: &[(&[u8], &[u8])], caller: Caller) -> Result<Settings, SetManyError> {
        let mut found: Vec<(P, &'static str)> = Vec::new();
        for (name, _) in pairs {
            let (id, spelling) = P::find(name).ok_or_else(|| SetManyError::Unknown(name.to_vec()))?;
            self.may_set(id, name, caller)?;
            if found.contains(&(id, spelling)) {
                return Err(refused(name, "duplicate parameter"));
            }
            found.push((id, spelling));
        }
        let mut settings = self.clone();
        for ((id, spelling), (_, text)) in found.into_iter().zip(pairs) {
            settings
                .set_id(id, &split_value(id, text))
                .map_err(|reason| SetManyError::Refused { name: spelling.as_bytes().to_vec(), reason })?;
        }
        Ok(settings)
    }

    /// Whether CONFIG SET may touch a parameter at all.
    fn may_set(&self, id: P, name: &[u8], caller: Caller) -> Result<(), SetManyError> {
        let row = id.row();
        if row.has(flags::IMMUTABLE) {
            return Err(refused(name, "can't set immutable config"));
        }
        let allowed = match self.choice(P::ENABLE_PROTECTED_CONFIGS) {
            "yes" => true,
            "local" => caller.local,
            _ => false,
        };
        if row.has(flags::PROTECTED) && !allowed {
            return Err(refused(name, "can't set protected config"));
        }
        if row.has(flags::DENY_LOADING) && caller.loading {
            return Err(SetManyError::Loading);
        }
        Ok(())
    }

    /// The parameters whose values differ between two snapshots.
    pub fn differences(&self, other: &Settings) -> Vec<P> {
        ALL.iter().copied().filter(|id| self.value(*id) != other.value(*id)).collect()
    }
}

fn refused(name: &[u8], reason: &'static str) -> SetManyError {
    SetManyError::Refused { name: name.to_vec(), reason: Cow::Borrowed(reason) }
}

/// The words of a CONFIG SET text: lists are parted at every single space, anything else is one word.
fn split_value(id: P, text: &[u8]) -> Vec<&[u8]> {
    if !id.row().has(flags::MULTI_ARG) {
        return vec![text];
    }
    if text.is_empty() {
        return Vec::new();
    }
    text.split(|byte| *byte == b' ').collect()
}

fn misread(id: P) -> ! {
    panic!("{} is read as a kind it is not", id.row().name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn set(settings: &Settings, pairs: &[(&str, &str)]) -> Result<Settings, String> {
        let pairs: Vec<_> = pairs.iter().map(|(name, text)| (name.as_bytes(), text.as_bytes())).collect();
        settings.apply_many(&pairs, Caller::default()).map_err(|error| error.to_string())
    }

    fn refusal(pairs: &[(&str, &str)]) -> String {
        set(&Settings::default(), pairs).unwrap_err()
    }

    /// The words that set a parameter to a text CONFIG GET printed.
    fn words_of(id: P, text: &[u8]) -> Vec<&[u8]> {
        if text.is_empty() { vec![text] } else { split_value(id, text) }
    }

    #[test]
    fn names_are_lower_case_unique_and_found() {
        let mut seen = HashSet::new();
        for (index, id) in ALL.iter().enumerate() {
            assert_eq!(*id as usize, index);
            let row = id.row();
            for name in [Some(row.name), row.alias].into_iter().flatten() {
                assert!(seen.insert(name), "{name} twice");
                assert!(!name.is_empty() && name.bytes().all(|b| !b.is_ascii_uppercase() && b != b' '));
                assert_eq!(P::find(name.to_ascii_uppercase().as_bytes()), Some((*id, name)));
            }
        }
        assert_eq!(P::find(b"nope"), None);
        assert_eq!(P::find(b"slave-priority").map(|(id, _)| id), Some(P::REPLICA_PRIORITY));
    }

    #[test]
    fn docs_are_single_sentences() {
        for row in PARAMS {
            let doc = row.doc();
            assert!(doc.ends_with('.') && doc.len() > 10 && !doc.contains('\n'), "{}: {doc}", row.name);
            assert!(!doc.contains(". "), "{}: more than one sentence", row.name);
        }
    }

    #[test]
    fn defaults_parse_and_print_back() {
        let defaults = Settings::default();
        for id in ALL {
            let mut again = defaults.clone();
            let text = defaults.get_bytes(*id);
            again.set(id.row().name.as_bytes(), &words_of(*id, &text)).unwrap();
            assert_eq!(again.value(*id), defaults.value(*id), "{}", id.row().name);
        }
    }

    #[test]
    fn choices_default_to_one_of_their_words() {
        for row in PARAMS {
            if let Kind::Choice(words) | Kind::Choices(words) = row.kind {
                assert!(words.iter().any(|(word, _)| *word == row.default), "{}", row.name);
            }
        }
    }

    #[test]
    fn the_bounds_of_every_number_are_kept() {
        for id in ALL {
            let (low, high) = match id.row().kind {
                Kind::Int { min, max } => (i128::from(min), i128::from(max)),
                Kind::Memory { min, max } => (i128::from(min), i128::from(max)),
                _ => continue,
            };
            for (number, good) in [(low, true), (high, true), (low - 1, false), (high + 1, false)] {
                // What does not fit 64 bits is another matter, and another message.
                if i64::try_from(number).is_err() && u64::try_from(number).is_err() {
                    continue;
                }
                let text = number.to_string();
                let outcome = Settings::default().set_id(*id, &[text.as_bytes()]);
                assert_eq!(outcome.is_ok(), good, "{} {text}", id.row().name);
            }
        }
    }

    #[test]
    fn typed_getters_read_the_defaults() {
        let settings = Settings::default();
        assert_eq!(settings.int(P::MAXCLIENTS), 10000);
        assert!(!settings.bool(P::APPENDONLY));
        assert_eq!(settings.memory(P::CLIENT_QUERY_BUFFER_LIMIT), 1 << 30);
        assert_eq!(settings.bound(P::MAXMEMORY_CLIENTS), MemoryBound::Bytes(0));
        assert_eq!(settings.path(P::DIR), Path::new("."));
        assert_eq!(settings.choice(P::IO_DRIVER), "auto");
        let rules = settings.save_rules().iter().map(|rule| (rule.seconds, rule.changes));
        assert!(rules.eq([(3600, 1), (300, 100), (60, 10000)]));
        assert_eq!(settings.output_limits()[2].soft_bytes, 8 << 20);
        assert_eq!(settings.addresses(), [b"127.0.0.1".to_vec()]);
        assert_eq!(settings.primary(), None);
        assert_eq!(settings.percentiles(), [50.0, 99.0, 99.9]);
        assert_eq!(
            settings.get_text(P::CLIENT_OUTPUT_BUFFER_LIMIT),
            "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60"
        );
    }

    #[test]
    fn config_get_answers_each_name_once() {
        let settings = Settings::default();
        let names = |patterns: &[&str]| -> Vec<String> {
            let patterns: Vec<&[u8]> = patterns.iter().map(|pattern| pattern.as_bytes()).collect();
            let found = settings.matching(&patterns);
            found.iter().map(|(name, _)| String::from_utf8_lossy(name).into_owned()).collect()
        };
        assert_eq!(names(&["PORT", "port"]), ["PORT"]);
        assert_eq!(names(&["*-PRIORITY", "slave-priority"]), ["replica-priority", "slave-priority"]);
        assert_eq!(names(&["slave-prio*"]), ["slave-priority"]);
        assert!(names(&["watchdog*", "nope", ""]).is_empty());
        assert_eq!(names(&["watchdog-period"]), ["watchdog-period"]);
        assert_eq!(settings.matching(&[b"maxmemory"])[0].1, b"0");
    }

    #[test]
    fn config_set_takes_all_or_nothing() {
        let before = Settings::default();
        let after = set(&before, &[("timeout", "5"), ("SAVE", "60 1"), ("slave-priority", "7")]).unwrap();
        assert_eq!(before.differences(&after), [P::TIMEOUT, P::SAVE, P::REPLICA_PRIORITY]);
        assert_eq!(after.get_text(P::SAVE), "60 1");
        assert!(set(&before, &[("timeout", "5"), ("port", "x")]).is_err());
        assert!(set(&before, &[("slave-priority", "1"), ("replica-priority", "2")]).is_ok());
        assert_eq!(set(&before, &[("save", "")]).unwrap().save_rules(), []);
        assert_eq!(set(&before, &[("bind", "")]).unwrap().addresses().len(), 0);
    }

    #[test]
    fn config_set_refuses_in_the_words_of_redis() {
        const FAILED: &str = "ERR CONFIG SET failed (possibly related to argument";
        assert_eq!(
            refusal(&[("nope", "1"), ("daemonize", "yes")]),
            "ERR Unknown option or number of arguments for CONFIG SET - 'nope'"
        );
        assert_eq!(
            refusal(&[("DAEMONIZE", "yes"), ("nope", "1")]),
            format!("{FAILED} 'DAEMONIZE') - can't set immutable config")
        );
        assert_eq!(
            refusal(&[("timeout", "1"), ("TIMEOUT", "2")]),
            format!("{FAILED} 'TIMEOUT') - duplicate parameter")
        );
        assert_eq!(refusal(&[("dir", "/")]), format!("{FAILED} 'dir') - can't set protected config"));
        assert_eq!(
            refusal(&[("SLAVE-priority", "x")]),
            format!("{FAILED} 'slave-priority') - argument couldn't be parsed into an integer")
        );
        assert_eq!(
            refusal(&[("shutdown-on-sigterm", "")]),
            format!(
                "{FAILED} 'shutdown-on-sigterm') - argument(s) must be one of the following: \
                 default, save, nosave, now, force"
            )
        );
        assert_eq!(refusal(&[("save", "3600  1")]), format!("{FAILED} 'save') - Invalid save parameters"));
    }

    #[test]
    fn protected_and_loading() {
        let mut settings = Settings::default();
        settings.set(b"enable-protected-configs", &[b"local"]).unwrap();
        let dir: &[(&[u8], &[u8])] = &[(b"dir", b"/")];
        let local = Caller { local: true, loading: false };
        assert_eq!(settings.apply_many(dir, local).unwrap().path(P::DIR), Path::new("/"));
        assert!(settings.apply_many(dir, Caller::default()).is_err());
        let loading = Caller { local: true, loading: true };
        assert_eq!(settings.apply_many(dir, loading), Err(SetManyError::Loading));
    }
}

/// A directory for the tests of this module.
#[cfg(test)]
mod testing {
    use std::path::{Path, PathBuf};

    /// A fresh directory that goes away with this value.
    pub struct Folder(PathBuf);

    impl Folder {
        /// Makes an empty directory; `name` keeps tests that run at the same time apart.
        pub fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("perigee-config-{}-{name}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Folder(path)
        }

        pub fn path(&self) -> &Path {
            &self.0
        }

        pub fn write(&self, name: &str, text: &str) {
            std::fs::write(self.0.join(name), text).unwrap();
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}
