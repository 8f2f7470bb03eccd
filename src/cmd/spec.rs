//! A row of the command table: everything anyone may ask about a command.
//!
//! Must stay true: no name is compared anywhere else; arity follows from the syntax line; keys are found by the
//! row's key parts alone (routing, COMMAND GETKEYS and whoever comes later use the one extractor, `for_each_key`).
use super::cx::{ConnCx, ReadCx, WholeCx, WriteCx};
use super::key_part::last_named;
pub use super::key_part::{
    Begin, Find, KeyPart, half_behind, half_behind_options, key, key_behind, key_behind_last, key_count,
    key_range, keys, keys_derived, not_keys,
};
pub use crate::host::gate;
use crate::store::news::Event;
use crate::wire::{Args, Error, Out};

/// How a handler ends: the reply was written, or a refusal that the door writes.
pub type Done = Result<(), Error>;

/// The function behind a row.
#[derive(Clone, Copy)]
pub enum Handler {
    /// Reads data; may run on any thread that shares the data.
    Read(fn(&ReadCx<'_>, &mut Args<'_>, &mut Out) -> Done),
    /// Changes data; runs alone on it.
    Write(fn(&mut WriteCx<'_>, &mut Args<'_>, &mut Out) -> Done),
    /// Concerns the connection or the process.
    Conn(fn(&mut ConnCx<'_>, &mut Args<'_>, &mut Out) -> Done),
    /// Needs the connection and data at once, and may run other commands: runs on the connection's thread, holding the
    /// shards that its route says.
    Whole(fn(&mut WholeCx<'_>, &mut Args<'_>, &mut Out) -> Done),
    /// Only its subcommands have handlers.
    Container,
}

/// Key spec flags of a whole call.
pub type KeyUse = fn(&[&[u8]]) -> &'static str;

/// Where a command runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route {
    /// Where its keys are: in place, on their owner, or holding all their owners.
    Keys,
    /// Like `Keys`, but holding every shard when an argument behind the key is a pattern with `*`, which stands for
    /// names of keys that only the data tells.
    Patterns,
    /// Holding the shards of all keys that the connection's transaction has, or watches.
    Transaction,
    /// On the connection's own shard.
    Here,
    /// Holding every shard.
    All,
    /// On the shard that the cursor (its first argument) names, and those after it.
    Cursor,
}

/// Flag bits, by the names of COMMAND INFO.
pub mod flag {
    /// May change data.
    pub const WRITE: u32 = 1;
    /// Only reads data.
    pub const READONLY: u32 = 1 << 1;
    /// Refused when memory is short.
    pub const DENYOOM: u32 = 1 << 2;
    /// For administrators.
    pub const ADMIN: u32 = 1 << 3;
    /// Not from scripts.
    pub const NOSCRIPT: u32 = 1 << 4;
    /// Allowed while loading.
    pub const LOADING: u32 = 1 << 5;
    /// Allowed on a stale replica.
    pub const STALE: u32 = 1 << 6;
    /// Takes constant or logarithmic time.
    pub const FAST: u32 = 1 << 7;
    /// Not shown to MONITOR.
    pub const SKIP_MONITOR: u32 = 1 << 8;
    /// Not logged by SLOWLOG.
    pub const SKIP_SLOWLOG: u32 = 1 << 9;
    /// Needs no authentication.
    pub const NO_AUTH: u32 = 1 << 10;
    /// Not inside MULTI.
    pub const NO_MULTI: u32 = 1 << 11;
    /// Its keys cannot be told from the row alone.
    pub const MOVABLEKEYS: u32 = 1 << 12;
    /// Allowed while the server is busy with a script.
    pub const ALLOW_BUSY: u32 = 1 << 13;
    /// Touches everything; protected by the enable-debug-command setting.
    pub const PROTECTED: u32 = 1 << 14;
    /// Shown as a command that reads, and waits for CLIENT PAUSE WRITE all the same: it may change how a value is
    /// stored.
    pub const MAY_REPLICATE: u32 = 1 << 16;
    /// May be left without any key.
    pub const NO_MANDATORY_KEYS: u32 = 1 << 15;
    /// May wait for others to write.
    pub const BLOCKING: u32 = 1 << 17;
    /// Runs scripts, so it may take long.
    pub const RUNS_SCRIPTS: u32 = 1 << 19;
    /// Runs at once inside MULTI.
    pub const UNQUEUED: u32 = 1 << 18;
    /// Not while data is loaded beside the data that is served, which no server of ours does.
    pub const NO_ASYNC_LOADING: u32 = 1 << 20;
    /// About channels.
    pub const PUBSUB: u32 = 1 << 24;
    /// Allowed to clients that are subscribed under RESP2.
    pub const SUBSCRIBERS: u32 = 1 << 25;
    /// Its answers are pushes, which CLIENT REPLY does not hold back.
    pub const PUSHES: u32 = 1 << 26;
    /// Tells whether the server can do its work, so it is refused when what is written cannot be kept, as if it wrote.
    pub const NEEDS_DISK: u32 = 1 << 28;
    /// Leaves it to the next command to use CLIENT CACHING up.
    pub const KEEPS_CACHING: u32 = 1 << 27;
    /// The promise that no connection-only handling exists: runs at once when no gate bit it keeps is in force.
    pub const NO_INTERCEPT: u32 = 1 << 31;

    /// Names as COMMAND INFO prints them.
    pub const NAMES: &[(u32, &str)] = &[
        (WRITE, "write"),
        (READONLY, "readonly"),
        (DENYOOM, "denyoom"),
        (ADMIN, "admin"),
        (PUBSUB, "pubsub"),
        (NOSCRIPT, "noscript"),
        (BLOCKING, "blocking"),
        (LOADING, "loading"),
        (STALE, "stale"),
        (NO_ASYNC_LOADING, "no_async_loading"),
        (SKIP_MONITOR, "skip_monitor"),
        (SKIP_SLOWLOG, "skip_slowlog"),
        (FAST, "fast"),
        (NO_AUTH, "no_auth"),
        (NO_MANDATORY_KEYS, "no_mandatory_keys"),
        (NO_MULTI, "no_multi"),
        (MOVABLEKEYS, "movablekeys"),
        (ALLOW_BUSY, "allow_busy"),
    ];
}

/// The family a command belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Group {
    /// Any type of key.
    Generic,
    /// Strings.
    String,
    /// Bits of strings.
    Bitmap,
    /// Lists.
    List,
    /// Geospatial indexes.
    Geo,
    /// Hashes.
    Hash,
    /// Strings that estimate numbers of elements.
    HyperLogLog,
    /// Sets.
    Set,
    /// Sorted sets.
    SortedSet,
    /// Logs with consumer groups.
    Stream,
    /// Several commands as a whole.
    Transactions,
    /// Channels.
    PubSub,
    /// The connection.
    Connection,
    /// The process.
    Server,
    /// Scripts and functions.
    Scripting,
}

impl Group {
    /// As COMMAND DOCS prints it.
    pub fn name(self) -> &'static str {
        match self {
            Group::Generic => "generic",
            Group::String => "string",
            Group::Bitmap => "bitmap",
            Group::List => "list",
            Group::Geo => "geo",
            Group::Hash => "hash",
            Group::HyperLogLog => "hyperloglog",
            Group::Set => "set",
            Group::SortedSet => "sorted-set",
            Group::Stream => "stream",
            Group::Transactions => "transactions",
            Group::PubSub => "pubsub",
            Group::Connection => "connection",
            Group::Server => "server",
            Group::Scripting => "scripting",
        }
    }

    fn category(self) -> &'static str {
        match self {
            Group::Generic => "keyspace",
            Group::String => "string",
            Group::Bitmap => "bitmap",
            Group::List => "list",
            Group::Geo => "geo",
            Group::Hash => "hash",
            Group::HyperLogLog => "hyperloglog",
            Group::Set => "set",
            Group::SortedSet => "sortedset",
            Group::Stream => "stream",
            Group::Transactions => "transaction",
            Group::Connection => "connection",
            Group::Server | Group::PubSub => "",
            Group::Scripting => "scripting",
        }
    }
}

/// The ACL categories, in the order in which they are printed.
pub const CATEGORIES: &[&str] = &[
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
];

/// A row.
pub struct Spec {
    /// Lower-case name; of a subcommand `container|sub`.
    pub name: &'static str,
    /// Arguments after the name.
    pub syntax: &'static str,
    /// What it does, one sentence.
    pub summary: &'static str,
    /// First version of Redis (or ours) that has it.
    pub since: &'static str,
    /// Cost, as documented.
    pub complexity: &'static str,
    /// Family.
    pub group: Group,
    /// Flag bits.
    pub flags: u32,
    /// Further ACL categories beyond those that flags and group imply.
    pub categories: &'static [&'static str],
    /// Key arguments.
    pub keys: &'static [KeyPart],
    /// Where it runs.
    pub route: Route,
    /// The function.
    pub handler: Handler,
    /// Subcommands.
    pub subs: &'static [Spec],
    /// Command tips as COMMAND INFO prints them.
    pub tips: &'static [&'static str],
    /// Number of arguments with the name; negative: at least.
    pub arity: i32,
    /// The keyspace event that its changes stand for.
    pub event: Option<Event>,
    /// How a call uses its keys, where the options of the call say that: flags as in [`KeyPart`].
    pub key_use: Option<KeyUse>,
    /// Which arguments are secrets, by their index: neither MONITOR nor SLOWLOG shows them.
    pub secrets: Option<fn(&Args<'_>, usize) -> bool>,
}

impl Spec {
    const fn new(name: &'static str, syntax: &'static str, handler: Handler, flags: u32) -> Spec {
        let base = if is_sub(name) { 2 } else { 1 };
        Spec {
            name,
            syntax,
            summary: "",
            since: "1.0.0",
            complexity: "O(1)",
            group: Group::Generic,
            flags,
            categories: &[],
            keys: &[],
            route: Route::Here,
            handler,
            subs: &[],
            tips: &[],
            arity: arity_of(syntax, base),
            event: None,
            secrets: None,
            key_use: None,
        }
    }

    /// A row that reads data.
    pub const fn read(
        name: &'static str,
        syntax: &'static str,
        handler: fn(&ReadCx<'_>, &mut Args<'_>, &mut Out) -> Done,
    ) -> Spec {
        let spec = Spec::new(name, syntax, Handler::Read(handler), flag::READONLY | flag::NO_INTERCEPT);
        Spec { route: Route::Keys, ..spec }
    }

    /// A row that changes data.
    pub const fn write(
        name: &'static str,
        syntax: &'static str,
        handler: fn(&mut WriteCx<'_>, &mut Args<'_>, &mut Out) -> Done,
    ) -> Spec {
        let spec = Spec::new(name, syntax, Handler::Write(handler), flag::WRITE | flag::NO_INTERCEPT);
        Spec { route: Route::Keys, ..spec }
    }

    /// A row about the connection or the process.
    pub const fn conn(
        name: &'static str,
        syntax: &'static str,
        handler: fn(&mut ConnCx<'_>, &mut Args<'_>, &mut Out) -> Done,
    ) -> Spec {
        Spec::new(name, syntax, Handler::Conn(handler), flag::LOADING | flag::STALE)
    }

    /// A row that needs the connection and data at once.
    pub const fn whole(
        name: &'static str,
        syntax: &'static str,
        handler: fn(&mut WholeCx<'_>, &mut Args<'_>, &mut Out) -> Done,
    ) -> Spec {
        Spec::new(name, syntax, Handler::Whole(handler), 0)
    }

    /// A command that is only a name for its subcommands.
    pub const fn container(name: &'static str, subs: &'static [Spec]) -> Spec {
        let spec = Spec::new(name, "", Handler::Container, 0);
        Spec { subs, arity: -2, complexity: "Depends on subcommand.", ..spec }
    }

    /// Family, first version, sentence.
    pub const fn doc(self, group: Group, since: &'static str, summary: &'static str) -> Spec {
        Spec { group, since, summary, ..self }
    }

    /// Subcommands of a command that also answers without one.
    pub const fn subs(self, subs: &'static [Spec]) -> Spec {
        Spec { subs, ..self }
    }

    /// Documented cost.
    pub const fn cost(self, complexity: &'static str) -> Spec {
        Spec { complexity, ..self }
    }

    /// More flag bits.
    pub const fn with(self, flags: u32) -> Spec {
        Spec { flags: self.flags | flags, ..self }
    }

    /// Fewer flag bits.
    pub const fn without(self, flags: u32) -> Spec {
        Spec { flags: self.flags & !flags, ..self }
    }

    /// Key arguments.
    pub const fn keys(self, keys: &'static [KeyPart]) -> Spec {
        Spec { keys, ..self }
    }

    /// Where it runs.
    pub const fn route(self, route: Route) -> Spec {
        Spec { route, ..self }
    }

    /// Further ACL categories.
    pub const fn cat(self, categories: &'static [&'static str]) -> Spec {
        Spec { categories, ..self }
    }

    /// Command tips.
    pub const fn tips(self, tips: &'static [&'static str]) -> Spec {
        Spec { tips, ..self }
    }

    /// The keyspace event that its changes stand for: a class of [`crate::store::news::class`] and a name.
    pub const fn event(self, class: u32, name: &'static str) -> Spec {
        Spec { event: Some(Event { class, name }), ..self }
    }

    /// Some arguments are secrets.
    pub const fn secrets(self, is_secret: fn(&Args<'_>, usize) -> bool) -> Spec {
        Spec { secrets: Some(is_secret), ..self }
    }

    /// The options of a call say how it uses its keys.
    pub const fn key_use(self, key_use: KeyUse) -> Spec {
        Spec { key_use: Some(key_use), ..self }
    }

    /// The arguments as administrators may see them.
    pub fn shown<'a>(&self, args: &Args<'a>) -> Vec<&'a [u8]> {
        let is_secret = |at| self.secrets.is_some_and(|is_secret| is_secret(args, at));
        (0..args.count()).map(|at| if is_secret(at) { b"(redacted)" } else { args.get(at) }).collect()
    }

    /// Says the arity where the syntax line cannot.
    pub const fn arity(self, arity: i32) -> Spec {
        Spec { arity, ..self }
    }

    /// The gate bits that this row cares about. A row that does not promise `NO_INTERCEPT` cares about all.
    pub const fn gates(&self) -> u32 {
        if self.flags & flag::NO_INTERCEPT == 0 || self.flags & flag::PROTECTED != 0 {
            return !(gate::LISTENER | gate::SUBSCRIBED);
        }
        let pause_write =
            if self.flags & (flag::WRITE | flag::MAY_REPLICATE) != 0 { gate::PAUSE_WRITE } else { 0 };
        let always = gate::REPLY_MODE
            | gate::PAUSE_ALL
            | gate::MULTI
            | gate::SUBSCRIBER
            | gate::TRACKING
            | gate::MONITORED
            | gate::BUSY;
        let loading = if self.flags & flag::LOADING == 0 { gate::LOADING } else { 0 };
        let writes = flag::WRITE | flag::NEEDS_DISK;
        let disk_trouble = if self.flags & writes != 0 { gate::DISK_TROUBLE } else { 0 };
        always | pause_write | loading | disk_trouble
    }

    /// Whether `count` arguments (the name included) are acceptable.
    #[inline]
    pub const fn accepts(&self, count: usize) -> bool {
        if self.arity >= 0 { count == self.arity as usize } else { count >= (-self.arity) as usize }
    }

    /// The subcommand's own name.
    pub fn sub_name(&self) -> &'static str {
        self.name.split_once('|').map_or(self.name, |(_, sub)| sub)
    }

    /// ACL categories: those of the group and of the flags, and the row's own.
    pub fn all_categories(&self) -> Vec<&'static str> {
        let mut all = self.categories.to_vec();
        let mut add = |name: &'static str| {
            if !name.is_empty() && !all.contains(&name) {
                all.push(name);
            }
        };
        let has = |bit| self.flags & bit != 0;
        // What works on the values of some types, or on the connection, belongs to these and not to the keyspace.
        let elsewhere = self.group == Group::Generic
            && ["list", "connection"].iter().any(|name| self.categories.contains(name));
        if !elsewhere && !matches!(self.handler, Handler::Container) {
            add(self.group.category());
        }
        if has(flag::WRITE) {
            add("write");
        }
        let is_script = self.group == Group::Scripting || self.categories.contains(&"scripting");
        if has(flag::READONLY) && !is_script {
            add("read");
        }
        if has(flag::ADMIN) {
            add("admin");
            add("dangerous");
        }
        if has(flag::PUBSUB) {
            add("pubsub");
        }
        if has(flag::BLOCKING) {
            add("blocking");
        }
        if has(flag::FAST) {
            add("fast");
        } else {
            add("slow");
        }
        all.sort_by_key(|name| CATEGORIES.iter().position(|known| known == name));
        all
    }

    /// Calls `f` with the argument index of every key among `count` arguments; `arg` gives the text of an argument.
    #[inline]
    pub fn for_each_key<'a>(&self, count: usize, arg: impl Fn(usize) -> &'a [u8], mut f: impl FnMut(usize)) {
        self.for_each_key_part(count, arg, |at, _| f(at));
    }

    /// Like [`Spec::for_each_key`], with the key part that found each key.
    #[inline]
    pub fn for_each_key_part<'a>(
        &self,
        count: usize,
        arg: impl Fn(usize) -> &'a [u8],
        mut f: impl FnMut(usize, &'static KeyPart),
    ) {
        let mut named = false;
        for part in self.keys {
            if part.names_one_key() {
                named = true;
            } else if part.has_keys() {
                part.for_each(count, &arg, &mut |at| f(at, part));
            }
        }
        if named && let Some((at, part)) = last_named(self.keys, count, &arg) {
            f(at, part);
        }
    }
}

const fn is_sub(name: &str) -> bool {
    let bytes = name.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        if bytes[i] == b'|' {
            return true;
        }
        i += 1;
    }
    false
}

/// Counts the words of a syntax line outside brackets, plus `base`; negative when anything is optional. Of a choice
/// in angle brackets its first alternative counts, which must be the shortest.
pub(crate) const fn arity_of(syntax: &str, base: i32) -> i32 {
    let bytes = syntax.as_bytes();
    let (mut i, mut depth, mut words, mut optional, mut in_word) = (0, 0, base, false, false);
    // How many choices are open, and in which of them (from 1) a later alternative stands; 0: in none.
    let (mut choices, mut passed) = (0, 0);
    while i < bytes.len() {
        match bytes[i] {
            b'[' => {
                depth += 1;
                optional = true;
            }
            b']' => depth -= 1,
            b'<' => choices += 1,
            b'>' => {
                if passed == choices {
                    passed = 0;
                }
                choices -= 1;
                optional = true;
            }
            b' ' => in_word = false,
            b'|' if choices > 0 => {
                if passed == 0 {
                    passed = choices;
                }
            }
            _ => {
                if depth == 0 && passed == 0 && !in_word {
                    words += 1;
                }
                in_word = true;
            }
        }
        i += 1;
    }
    if optional { -words } else { words }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arity_follows_from_syntax() {
        let cases = [
            ("", 1),
            ("key", 2),
            ("key value [NX|XX] [GET]", -3),
            ("key [key ...]", -2),
            ("LEFT|RIGHT key", 3),
            ("key <a|b c> [d]", -3),
            ("<a b <c|d e>|f g> h", -5),
            ("<a|b <c|d>> <e|f> g", -4),
        ];
        for (syntax, arity) in cases {
            assert_eq!(arity_of(syntax, 1), arity, "{syntax}");
        }
    }

    #[test]
    fn keys_are_found() {
        let found = |part: KeyPart, line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let mut found = Vec::new();
            part.for_each(words.len(), &|at| words[at].as_bytes(), &mut |at| found.push(words[at]));
            found.join(" ")
        };
        assert_eq!(found(key_range("RO", 1, -1, 2), "mset a 1 b 2"), "a b");
        assert_eq!(found(key_range("RO", 1, 2, 1), "lmove a b LEFT"), "a b");
        assert_eq!(found(key_range("RO", 1, -2, 1), "blpop a b 0"), "a b");
        assert_eq!(found(key_range("RO", 1, -2, 1), "blpop"), "");
        assert_eq!(found(key_count("RO", 2), "zunionstore z 2 a b WEIGHTS"), "a b");
        assert_eq!(found(key_count("RO", 2), "zunionstore z 99999999999999 a b"), "a b");
        for wrong in ["-1", "x", "0", "18446744073709551615"] {
            assert_eq!(found(key_count("RO", 1), &format!("zunion {wrong} a")), "");
        }
        assert_eq!(found(key_behind("OW", "STORE", 3), "georadius k 1 2 store there"), "there");
        assert_eq!(found(key_behind("OW", "STORE", 3), "georadius k 1 2 store"), "");
        assert_eq!(found(half_behind("RO", "STREAMS", 1), "xread COUNT 2 streams a b 0 0"), "a b");
        assert_eq!(found(half_behind("RO", "STREAMS", 1), "xread streams a"), "");
        let streams = half_behind_options("RO", "STREAMS", 4, &[("COUNT", 1), ("GROUP", 2), ("NOACK", 0)]);
        assert_eq!(found(streams, "xreadgroup noack count 1 group g streams streams a b 0 0"), "a b");
        assert_eq!(found(streams, "xreadgroup group g c other streams a 0"), "");
        assert_eq!(found(streams, "xreadgroup group g c count"), "");
        assert_eq!(found(key_behind("RW", "KEYS", -2), "migrate h p keys 0 t KEYS a"), "a");
        let store = key_behind_last("OW", "STORE", &[("LIMIT", 2), ("GET", 1), ("BY", 1)]);
        assert_eq!(found(store, "sort store get store store b by * asc STORE c alpha"), "c");
        assert_eq!(found(store, "sort a store store desc"), "store");
        assert_eq!(found(store, "sort a limit 0 store b"), "");
        assert_eq!(found(store, "sort a store"), "");
        assert_eq!(found(store, "sort a alpha store b limit"), "b");
        assert_eq!(found(keys_derived("RO"), "sort a by w_*"), "");
    }

    #[test]
    fn of_words_that_name_one_key_the_last_holds() {
        const PARTS: &[KeyPart] =
            &[key("RO", 1), key_behind("OW", "STORE", 3), key_behind("OW", "STOREDIST", 3)];
        let found = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let spec = Spec { keys: PARTS, ..Spec::container("x", &[]) };
            let mut found = Vec::new();
            spec.for_each_key(words.len(), |at| words[at].as_bytes(), |at| found.push(words[at]));
            found.join(" ")
        };
        assert_eq!(found("georadius k 1"), "k");
        assert_eq!(found("georadius k store a"), "k");
        assert_eq!(found("georadius k 1 store a"), "k a");
        assert_eq!(found("georadius k 1 store a asc STORE b"), "k b");
        assert_eq!(found("georadius k 1 storedist a store b"), "k b");
        assert_eq!(found("georadius k 1 store a storedist b store"), "k b");
        assert_eq!(found("georadius k 1 store store b"), "k store");
    }
}
