//! What one row of the parameter table can say: its kind, bounds, flags, default and doc.
//!
//! Rows are built in constants, so everything here is `const fn` and borrows only `'static` data. A row knows
//! nothing of current values; `value.rs` turns text into values by a row's kind.
use super::value::Value;
use std::borrow::Cow;

/// A promised error text about one value, without the prefix that CONFIG SET or the config file puts before it.
pub type Reason = Cow<'static, str>;

/// The words of a choice with the number each stands for; when two share a number the first is the one printed.
pub type Words = &'static [(&'static str, i64)];

/// A row's last word on a parsed value: refuse it, or hand back the value to store.
pub type Settle = fn(Value) -> Result<Value, Reason>;

/// How a parameter's text is read, bounded and printed.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// `yes` or `no`.
    Bool,
    /// A decimal integer within `min..=max`.
    Int {
        /// Least value allowed.
        min: i64,
        /// Greatest value allowed.
        max: i64,
    },
    /// File permission bits in octal, `0..=max`.
    Octal {
        /// Greatest value allowed.
        max: i64,
    },
    /// A number of bytes, units allowed (`1gb`), within `min..=max`.
    Memory {
        /// Least number of bytes.
        min: u64,
        /// Greatest number of bytes.
        max: u64,
    },
    /// A number of bytes, or a percentage such as `5%` up to 100%.
    MemoryOrPercent,
    /// One of some words.
    Choice(Words),
    /// Any of some words, their numbers or-ed together.
    Choices(Words),
    /// Free text. With `optional`, an empty text means "not set" and CONFIG REWRITE leaves the line out.
    Text {
        /// Whether an empty text means "not set".
        optional: bool,
    },
    /// Keyspace event classes, one letter each.
    Events,
    /// Snapshot rules: pairs of seconds and changes.
    Save,
    /// Output buffer limits per client class.
    OutputLimits,
    /// Listening addresses.
    Addresses,
    /// Three OOM score adjustments.
    OomScores,
    /// Host and port of the primary to replicate, or nothing.
    Primary,
    /// Percentiles between 0 and 100.
    Percentiles,
}

/// Bits of [`Param::flags`].
pub mod flags {
    /// Only the command line and the config file may set it.
    pub const IMMUTABLE: u16 = 1;
    /// Shown by CONFIG GET only when asked for by its exact name.
    pub const HIDDEN: u16 = 1 << 1;
    /// CONFIG SET is refused while a data set is being loaded.
    pub const DENY_LOADING: u16 = 1 << 2;
    /// CONFIG SET needs `enable-protected-configs`.
    pub const PROTECTED: u16 = 1 << 3;
    /// The value is a list of words.
    pub const MULTI_ARG: u16 = 1 << 4;
    /// A secret: never logged, nor shown in MONITOR or SLOWLOG.
    pub const SENSITIVE: u16 = 1 << 5;
    /// Setting it again to the same text still means something: the file it names may have changed.
    pub const VOLATILE: u16 = 1 << 6;
    /// Accepted, but its feature is not there yet.
    pub const NOT_YET: u16 = 1 << 7;
    /// Accepted for compatibility only; it will never have an effect.
    pub const INERT: u16 = 1 << 8;
}

/// Chapters of docs/configuration.md and of `--help`, in their order of appearance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Listening and connections.
    Network,
    /// Process, logging, databases.
    General,
    /// Threads and I/O.
    Threads,
    /// Bounds on clients.
    Clients,
    /// Memory limit, eviction, freeing, defragmentation.
    Memory,
    /// Compact encodings.
    Encodings,
    /// RDB files.
    Snapshots,
    /// The append-only file.
    AppendOnly,
    /// Replication.
    Replication,
    /// Cluster.
    Cluster,
    /// Passwords, users, protected commands.
    Security,
    /// TLS.
    Tls,
    /// Scripts.
    Scripting,
    /// Slow log, latency, notifications, tracking.
    Monitoring,
    /// Operating system matters.
    System,
    /// Known for compatibility or for tests.
    Compatibility,
}

impl Group {
    /// Every group in the order of the chapters.
    pub const ALL: [Group; 16] = [
        Group::Network,
        Group::General,
        Group::Threads,
        Group::Clients,
        Group::Memory,
        Group::Encodings,
        Group::Snapshots,
        Group::AppendOnly,
        Group::Replication,
        Group::Cluster,
        Group::Security,
        Group::Tls,
        Group::Scripting,
        Group::Monitoring,
        Group::System,
        Group::Compatibility,
    ];

    /// The chapter's heading.
    pub const fn title(self) -> &'static str {
        match self {
            Group::Network => "Network",
            Group::General => "General",
            Group::Threads => "Threads and I/O",
            Group::Clients => "Clients",
            Group::Memory => "Memory and expiry",
            Group::Encodings => "Compact encodings",
            Group::Snapshots => "Snapshots (RDB)",
            Group::AppendOnly => "Append-only file (AOF)",
            Group::Replication => "Replication",
            Group::Cluster => "Cluster",
            Group::Security => "Security",
            Group::Tls => "TLS",
            Group::Scripting => "Scripting",
            Group::Monitoring => "Monitoring, notifications, tracking",
            Group::System => "Operating system",
            Group::Compatibility => "Compatibility and testing",
        }
    }
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// The name, lower-case.
    pub name: &'static str,
    /// An older name that means the same.
    pub alias: Option<&'static str>,
    /// How its text is read and printed.
    pub kind: Kind,
    /// The default, in the grammar of the config file.
    pub default: &'static str,
    /// A set of [`flags`].
    pub flags: u16,
    /// Checks and adjustments beyond the kind's own.
    pub settle: Option<Settle>,
    /// Where it is documented.
    pub group: Group,
    /// One sentence, unit included.
    pub doc: &'static str,
}

impl Param {
    /// Whether any of the given [`flags`] is set.
    pub const fn has(&self, flags: u16) -> bool {
        self.flags & flags != 0
    }

    /// The doc sentence without the blanks that doc comments bring along.
    pub fn doc(&self) -> &'static str {
        self.doc.trim()
    }

    pub(super) const fn alias(mut self, alias: &'static str) -> Param {
        self.alias = Some(alias);
        self
    }

    pub(super) const fn settle(mut self, settle: Settle) -> Param {
        self.settle = Some(settle);
        self
    }

    pub(super) const fn with(mut self, flags: u16) -> Param {
        self.flags |= flags;
        self
    }

    pub(super) const fn immutable(self) -> Param {
        self.with(flags::IMMUTABLE)
    }

    pub(super) const fn hidden(self) -> Param {
        self.with(flags::HIDDEN)
    }

    pub(super) const fn later(self) -> Param {
        self.with(flags::NOT_YET)
    }

    pub(super) const fn inert(self) -> Param {
        self.with(flags::INERT)
    }

    pub(super) const fn place(mut self, group: Group, doc: &'static str) -> Param {
        self.group = group;
        self.doc = doc;
        self
    }
}

/// A row of any kind; lists of words get their flag here, so that no row can forget it.
pub(super) const fn row(name: &'static str, default: &'static str, kind: Kind) -> Param {
    let flags = match kind {
        Kind::Choices(_)
        | Kind::Save
        | Kind::OutputLimits
        | Kind::Addresses
        | Kind::OomScores
        | Kind::Primary
        | Kind::Percentiles => flags::MULTI_ARG,
        _ => 0,
    };
    Param { name, alias: None, kind, default, flags, settle: None, group: Group::General, doc: "" }
}

pub(super) const fn switch(name: &'static str, default: &'static str) -> Param {
    row(name, default, Kind::Bool)
}

pub(super) const fn int(name: &'static str, default: &'static str, min: i64, max: i64) -> Param {
    row(name, default, Kind::Int { min, max })
}

pub(super) const fn memory(name: &'static str, default: &'static str, min: u64, max: u64) -> Param {
    row(name, default, Kind::Memory { min, max })
}

pub(super) const fn choice(name: &'static str, default: &'static str, words: Words) -> Param {
    row(name, default, Kind::Choice(words))
}

pub(super) const fn text(name: &'static str, default: &'static str) -> Param {
    row(name, default, Kind::Text { optional: false })
}

pub(super) const fn optional(name: &'static str) -> Param {
    row(name, "", Kind::Text { optional: true })
}

/// Turns the table into the `P` ids, the rows and the list of ids, so that the three cannot disagree.
macro_rules! params {
    ($($group:ident {
        $($(#[doc = $doc:literal])+ $id:ident = $row:expr;)+
    })+) => {
        /// The id of a parameter: its index in [`PARAMS`].
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum P {
            $($($(#[doc = $doc])+ $id,)+)+
        }

        /// Every parameter, grouped as in docs/configuration.md.
        pub static PARAMS: &[Param] = &[
            $($($row.place(Group::$group, concat!($($doc),+)),)+)+
        ];

        /// The ids of [`PARAMS`] in the same order.
        pub static ALL: &[P] = &[$($(P::$id,)+)+];
    };
}
pub(super) use params;
