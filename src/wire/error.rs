//! Every error text that clients may match, in one home. Handlers return [`Error`]; only the one door writes it.
use std::borrow::Cow;
use std::fmt;

/// A refusal, as the client sees it. `Display` gives the whole line after the `-`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// Options that do not fit together.
    Syntax,
    /// A key of another type.
    WrongType,
    /// An argument or value that is no 64-bit integer.
    NotInteger,
    /// An argument or value that is no float.
    NotFloat,
    /// A counter would leave the 64-bit range.
    Overflow,
    /// A float counter would become NaN or infinite.
    NanOrInfinity,
    /// An index or offset outside what is allowed.
    OutOfRange,
    /// A bit offset outside what is allowed.
    BitOffset,
    /// A bit value other than 0 and 1.
    BitValue,
    /// A string beyond `proto-max-bulk-len`.
    TooLong,
    /// RENAME and kin on a missing key.
    NoSuchKey,
    /// A database index outside 0..databases.
    DbIndex,
    /// SCAN with something that is no cursor.
    Cursor,
    /// Wrong number of arguments for the named command (`name|sub` for subcommands).
    Arity(&'static str),
    /// An expire time that is zero, negative or beyond the clock, for the named command.
    ExpireTime(&'static str),
    /// Any other text with its code word.
    Text(Cow<'static, str>),
}

impl Error {
    /// An error with the code `ERR`. Line breaks become spaces: they would end the reply early.
    pub fn err(text: impl fmt::Display) -> Error {
        Error::line(format!("ERR {text}"))
    }

    /// A number outside a range, both of whose ends are allowed.
    pub fn not_between(min: i64, max: i64) -> Error {
        Error::err(format_args!("value is out of range, value must between {min} and {max}"))
    }

    /// An error that says its own code. Line breaks become spaces.
    pub fn line(text: String) -> Error {
        Error::Text(Cow::Owned(if text.contains(['\r', '\n']) {
            text.replace(['\r', '\n'], " ")
        } else {
            text
        }))
    }

    /// The word before the first space, which INFO errorstats counts by.
    pub fn code(&self) -> String {
        self.to_string().split(' ').next().unwrap_or("ERR").to_string()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::Syntax => "ERR syntax error",
            Error::WrongType => "WRONGTYPE Operation against a key holding the wrong kind of value",
            Error::NotInteger => "ERR value is not an integer or out of range",
            Error::NotFloat => "ERR value is not a valid float",
            Error::Overflow => "ERR increment or decrement would overflow",
            Error::NanOrInfinity => "ERR increment would produce NaN or Infinity",
            Error::OutOfRange => "ERR offset is out of range",
            Error::BitOffset => "ERR bit offset is not an integer or out of range",
            Error::BitValue => "ERR bit is not an integer or out of range",
            Error::TooLong => "ERR string exceeds maximum allowed size (proto-max-bulk-len)",
            Error::NoSuchKey => "ERR no such key",
            Error::DbIndex => "ERR DB index is out of range",
            Error::Cursor => "ERR invalid cursor",
            Error::Arity(name) => return write!(f, "ERR wrong number of arguments for '{name}' command"),
            Error::ExpireTime(name) => return write!(f, "ERR invalid expire time in '{name}' command"),
            Error::Text(text) => text,
        })
    }
}

/// `ERR unknown command ...` with the start of its arguments, cut as Redis cuts it (128 bytes each part).
pub fn unknown_command<'a>(name: &[u8], args: impl Iterator<Item = &'a [u8]>) -> Error {
    let mut shown = String::new();
    for arg in args {
        if shown.len() >= 128 {
            break;
        }
        let room = 128 - shown.len();
        shown.push_str(&format!("'{}' ", String::from_utf8_lossy(&arg[..arg.len().min(room)])));
    }
    let name = String::from_utf8_lossy(&name[..name.len().min(128)]).into_owned();
    Error::err(format!("unknown command '{name}', with args beginning with: {shown}"))
}

/// `ERR unknown subcommand ...` for the container `name` (upper case).
pub fn unknown_subcommand(sub: &[u8], name: &str) -> Error {
    let sub = String::from_utf8_lossy(&sub[..sub.len().min(128)]).into_owned();
    Error::err(format!("unknown subcommand '{sub}'. Try {name} HELP."))
}

/// The refusal of a subcommand `sub`, which is known, with arguments that are not, of the container `name` (upper case).
pub fn subcommand_syntax(sub: &[u8], name: &str) -> Error {
    let sub = String::from_utf8_lossy(&sub[..sub.len().min(128)]).into_owned();
    Error::err(format!("unknown subcommand or wrong number of arguments for '{sub}'. Try {name} HELP."))
}
