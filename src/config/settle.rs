//! Checks of single parameters beyond what their kind already asks, in the words Redis uses for a refusal.
//!
//! Each is a [`Settle`](super::row::Settle): it gets the parsed value and hands back the one to store. Only
//! `directory` looks outside of its argument.
use super::row::Reason;
use super::value::Value;
use std::os::unix::ffi::OsStrExt;

/// Bit of the shutdown words: save even without save rules.
pub const SHUTDOWN_SAVE: i64 = 1;
/// Bit of the shutdown words: do not save even with save rules.
pub const SHUTDOWN_NOSAVE: i64 = 2;
/// Bit of the shutdown words: end even if that fails.
pub const SHUTDOWN_FORCE: i64 = 8;

/// Chores run at least once and at most this often a second.
const HZ_MAX: i64 = 500;
/// Bytes of the least backlog worth having.
const BACKLOG_BYTES_MIN: u64 = 16 * 1024;
/// Bytes of the longest host name, its end mark included.
const HOSTNAME_BYTES_MAX: usize = 256;

type Settled = Result<Value, Reason>;

fn refuse(reason: &'static str) -> Settled {
    Err(Reason::Borrowed(reason))
}

/// Holds a text value to a condition.
fn text_if(value: Value, holds: impl Fn(&[u8]) -> bool, reason: &'static str) -> Settled {
    match &value {
        Value::Text(text) if !holds(text) => refuse(reason),
        _ => Ok(value),
    }
}

fn is_base_name(text: &[u8]) -> bool {
    memchr::memchr2(b'/', b'\\', text).is_none()
}

/// Takes the frequency as a hint: out of bounds becomes the nearest bound.
pub(super) fn hz(value: Value) -> Settled {
    match value {
        Value::Int(hz) => Ok(Value::Int(hz.clamp(1, HZ_MAX))),
        other => Ok(other),
    }
}

/// Takes the size of the backlog as a hint that has a least value.
pub(super) fn backlog(value: Value) -> Settled {
    match value {
        Value::Memory(bytes) => Ok(Value::Memory(bytes.max(BACKLOG_BYTES_MIN))),
        other => Ok(other),
    }
}

/// Both saving and not saving cannot be had.
pub(super) fn shutdown(value: Value) -> Settled {
    const BOTH: i64 = SHUTDOWN_SAVE | SHUTDOWN_NOSAVE;
    match value {
        Value::Int(bits) if bits & BOTH == BOTH => {
            refuse("shutdown options SAVE and NOSAVE can't be used simultaneously")
        }
        other => Ok(other),
    }
}

/// Turning defragmentation on needs an allocator that can tell which pages are sparse.
pub(super) fn no_defrag(value: Value) -> Settled {
    if value == Value::Int(1) {
        return refuse(
            "Active defragmentation cannot be enabled: this build's allocator offers no support for it",
        );
    }
    Ok(value)
}

/// The snapshot's file name has no directory part.
pub(super) fn dbfilename(value: Value) -> Settled {
    text_if(value, is_base_name, "dbfilename can't be a path, just a filename")
}

/// The append-only file's name is not empty and has no directory part.
pub(super) fn appendfilename(value: Value) -> Settled {
    let value = text_if(value, |text| !text.is_empty(), "appendfilename can't be empty")?;
    text_if(value, is_base_name, "appendfilename can't be a path, just a filename")
}

/// The append-only directory's name is not empty and has no directory part.
pub(super) fn appenddirname(value: Value) -> Settled {
    let value = text_if(value, |text| !text.is_empty(), "appenddirname can't be empty")?;
    text_if(value, is_base_name, "appenddirname can't be a path, just a dirname")
}

/// A host name of letters, digits, hyphens and dots.
pub(super) fn hostname(value: Value) -> Settled {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-' || *byte == b'.';
    let value =
        text_if(value, |text| text.len() < HOSTNAME_BYTES_MAX, "Hostnames must be less than 256 characters")?;
    text_if(
        value,
        |text| text.iter().all(allowed),
        "Hostnames may only contain alphanumeric characters, hyphens or dots",
    )
}

/// A node name without the characters that the cluster's own files give a meaning to.
pub(super) fn nodename(value: Value) -> Settled {
    const RESERVED: &[u8] = b"!#$%&()*+:;<>?@[]^{|}~";
    text_if(
        value,
        |text| !text.iter().any(|byte| RESERVED.contains(byte)),
        "Announced human node name contained invalid character",
    )
}

/// A template whose braces are closed and whose variables are known; `{{` is a plain brace.
pub(super) fn proc_title(value: Value) -> Settled {
    text_if(value, is_proc_title, "template format is invalid or contains unknown variables")
}

fn is_proc_title(template: &[u8]) -> bool {
    const VARIABLES: &[&[u8]] =
        &[b"title", b"listen-addr", b"server-mode", b"config-file", b"port", b"tls-port", b"unixsocket"];
    // These three may expand to nothing, so a template of only them and blanks would leave no title.
    const MAYBE_EMPTY: &[&[u8]] = &[b"title", b"server-mode", b"unixsocket"];
    let mut rest = template;
    let mut shows_something = false;
    while let Some(open) = memchr::memchr(b'{', rest) {
        shows_something |= rest[..open].iter().any(|byte| *byte != b' ');
        rest = &rest[open + 1..];
        if rest.first() == Some(&b'{') {
            shows_something = true;
            rest = &rest[1..];
            continue;
        }
        let Some(close) = memchr::memchr(b'}', rest) else { return false };
        let name = &rest[..close];
        if !VARIABLES.contains(&name) {
            return false;
        }
        shows_something |= !MAYBE_EMPTY.contains(&name);
        rest = &rest[close + 1..];
    }
    shows_something || rest.iter().any(|byte| *byte != b' ')
}

/// A directory that exists; the system's own words otherwise.
pub(super) fn directory(value: Value) -> Settled {
    let Value::Text(text) = &value else { return Ok(value) };
    let path = std::path::Path::new(std::ffi::OsStr::from_bytes(text));
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Ok(value),
        Ok(_) => refuse("Not a directory"),
        Err(error) => Err(Reason::Owned(system_words(&error))),
    }
}

/// What the system calls an error, without the number that Rust adds to it.
pub(super) fn system_words(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_string(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::Text(text.as_bytes().to_vec())
    }

    #[test]
    fn proc_title_templates() {
        for good in ["{title}x", "{port}", "plain", "{{", " {listen-addr} "] {
            assert!(is_proc_title(good.as_bytes()), "{good}");
        }
        for bad in ["", " ", "{", "{title", "{foo}", "{title} {server-mode}", "a {"] {
            assert!(!is_proc_title(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn names_are_held_to_their_alphabets() {
        assert!(hostname(text("a-b.C9")).is_ok());
        assert!(hostname(text("a_b")).is_err());
        assert!(hostname(text(&"a".repeat(256))).is_err());
        assert!(nodename(text("a b")).is_ok());
        assert!(nodename(text("a:b")).is_err());
        assert!(dbfilename(text("a/b")).is_err() && dbfilename(text("")).is_ok());
        assert!(appendfilename(text("")).is_err());
        assert!(appenddirname(text("a\\b")).is_err());
    }

    #[test]
    fn numbers_are_adjusted_or_refused() {
        assert_eq!(hz(Value::Int(0)), Ok(Value::Int(1)));
        assert_eq!(hz(Value::Int(9999)), Ok(Value::Int(500)));
        assert_eq!(backlog(Value::Memory(1)), Ok(Value::Memory(16384)));
        assert_eq!(backlog(Value::Memory(20000)), Ok(Value::Memory(20000)));
        assert!(shutdown(Value::Int(3)).is_err() && shutdown(Value::Int(13)).is_ok());
        assert!(no_defrag(Value::Int(1)).is_err() && no_defrag(Value::Int(0)).is_ok());
    }

    #[test]
    fn directories_must_exist() {
        assert!(directory(text(".")).is_ok());
        assert_eq!(directory(text("/no/such/place")), Err("No such file or directory".into()));
        assert_eq!(directory(text("Cargo.toml")), Err("Not a directory".into()));
    }
}
