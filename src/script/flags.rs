//! What a script says about itself in its first line, `#!lua flags=...`.
//!
//! The texts of refusals are Redis's.
use crate::wire::Error;
use crate::wire::inline::split_words;

/// A set of flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Flags(u8);

impl Flags {
    /// The script says that it writes nothing.
    pub const NO_WRITES: Flags = Flags(1);
    /// It may run when memory is short.
    pub const ALLOW_OOM: Flags = Flags(1 << 1);
    /// It may run on a replica whose data is stale.
    pub const ALLOW_STALE: Flags = Flags(1 << 2);
    /// It must not run in a cluster.
    pub const NO_CLUSTER: Flags = Flags(1 << 3);
    /// It may use keys of several slots.
    pub const ALLOW_CROSS_SLOT: Flags = Flags(1 << 5);
    /// A script without a first line of this form: nothing was said, so the rules are those of each command in it.
    pub const UNDECLARED: Flags = Flags(1 << 4);

    /// All that have a name, in the order in which they are listed.
    pub const NAMED: [(&'static str, Flags); 5] = [
        ("no-writes", Flags::NO_WRITES),
        ("allow-oom", Flags::ALLOW_OOM),
        ("allow-stale", Flags::ALLOW_STALE),
        ("no-cluster", Flags::NO_CLUSTER),
        ("allow-cross-slot-keys", Flags::ALLOW_CROSS_SLOT),
    ];

    /// Whether all of `other` are set.
    #[inline]
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets.
    #[must_use]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// The names of those that are set.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Flags::NAMED.iter().filter(move |(_, flag)| self.has(*flag)).map(|(name, _)| *name)
    }

    /// The flag called `name`.
    pub fn named(name: &[u8]) -> Option<Flags> {
        Flags::NAMED.iter().find(|(n, _)| n.as_bytes() == name).map(|(_, flag)| *flag)
    }
}

/// The flags of a script's body, and how long its first line is, without the line end, if it is a `#!` line. What
/// follows keeps the line numbers.
///
/// # Errors
/// A first line of another form, another engine, an unknown flag or option.
pub fn of_script(body: &[u8]) -> Result<(Flags, usize), Error> {
    if !body.starts_with(b"#!") {
        return Ok((Flags::UNDECLARED, 0));
    }
    let line = first_line(body).ok_or_else(|| Error::err("Invalid script shebang"))?;
    let words = split_words(line).filter(|words| !words.is_empty());
    let words = words.ok_or_else(|| Error::err("Invalid engine in script shebang"))?;
    if words[0] != b"#!lua" {
        return Err(says("Unexpected engine in script shebang: ", &words[0]));
    }
    let mut flags = Flags::default();
    for word in &words[1..] {
        let list = word.strip_prefix(b"flags=").ok_or_else(|| says("Unknown lua shebang option: ", word))?;
        // An empty list names no flag; but `a,` names an empty one.
        for name in list.split(|b| *b == b',').filter(|_| !list.is_empty()) {
            let flag = Flags::named(name);
            flags = flags.with(flag.ok_or_else(|| says("Unexpected flag in script shebang: ", name))?);
        }
    }
    Ok((flags, line.len()))
}

/// The first line of a body, without its end; `None` when it has no end.
pub(super) fn first_line(body: &[u8]) -> Option<&[u8]> {
    memchr::memchr(b'\n', body).map(|end| &body[..end])
}

/// A refusal that repeats what was given.
pub(super) fn says(text: &str, given: &[u8]) -> Error {
    Error::err(format_args!("{text}{}", String::from_utf8_lossy(given)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(body: &str) -> String {
        of_script(body.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn first_lines_are_read() {
        assert_eq!(of_script(b"return 1").unwrap(), (Flags::UNDECLARED, 0));
        assert_eq!(of_script(b"#!lua\nreturn 1").unwrap(), (Flags::default(), 5));
        let (flags, length) = of_script(b"#!lua flags=no-writes,allow-oom\nreturn 1").unwrap();
        assert_eq!(flags, Flags::NO_WRITES.with(Flags::ALLOW_OOM));
        assert_eq!((length, flags.names().collect::<Vec<_>>()), (31, vec!["no-writes", "allow-oom"]));
        assert_eq!(of_script(b"#!lua flags=\nx").unwrap().0, Flags::default());
    }

    #[test]
    fn refusals_are_those_of_redis() {
        assert_eq!(refusal("#!lua"), "ERR Invalid script shebang");
        assert_eq!(refusal("#!lua 'x\n"), "ERR Invalid engine in script shebang");
        assert_eq!(refusal("#!not-lua\n"), "ERR Unexpected engine in script shebang: #!not-lua");
        assert_eq!(refusal("#!lua name=x\n"), "ERR Unknown lua shebang option: name=x");
        assert_eq!(refusal("#!lua flags=bad\n"), "ERR Unexpected flag in script shebang: bad");
    }
}
