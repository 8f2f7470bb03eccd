//! Tokens of JSON, with the leniency of Lua CJSON: a NUL byte ends the text, strings may hold any other byte, and
//! numbers are whatever C's `strtod` takes, if the settings allow it.

use super::number::{is_invalid, leading_number};

/// A token and where it begins, or where it is wrong.
#[derive(Clone, Copy)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) at: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    Colon,
    Comma,
    End,
    Null,
    Boolean(bool),
    Number(f64),
    Text(Text),
    /// What is wrong.
    Wrong(&'static str),
}

/// Where a string's bytes are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Text {
    /// In the input, from and to.
    Plain(usize, usize),
    /// In the buffer for strings with escapes.
    Unescaped,
}

impl Kind {
    /// What an error calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::ObjectBegin => "T_OBJ_BEGIN",
            Kind::ObjectEnd => "T_OBJ_END",
            Kind::ArrayBegin => "T_ARR_BEGIN",
            Kind::ArrayEnd => "T_ARR_END",
            Kind::Text(_) => "T_STRING",
            Kind::Number(_) => "T_NUMBER",
            Kind::Boolean(_) => "T_BOOLEAN",
            Kind::Null => "T_NULL",
            Kind::Colon => "T_COLON",
            Kind::Comma => "T_COMMA",
            Kind::End => "T_END",
            Kind::Wrong(what) => what,
        }
    }
}

pub(super) struct Lexer<'a> {
    pub(super) data: &'a [u8],
    /// The next byte to look at.
    pub(super) at: usize,
    /// Whether numbers that strict JSON does not have are taken.
    pub(super) lenient: bool,
    /// The last string that had escapes in it.
    pub(super) unescaped: Vec<u8>,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(data: &'a [u8], lenient: bool) -> Lexer<'a> {
        Lexer { data, at: 0, lenient, unescaped: Vec::new() }
    }

    /// The next token. At the end, and at an error, there is no going further.
    pub(super) fn next(&mut self) -> Token {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.data.get(self.at) {
            self.at += 1;
        }
        let at = self.at;
        let single = match self.byte(0) {
            b'{' => Kind::ObjectBegin,
            b'}' => Kind::ObjectEnd,
            b'[' => Kind::ArrayBegin,
            b']' => Kind::ArrayEnd,
            b':' => Kind::Colon,
            b',' => Kind::Comma,
            0 => return Token { kind: Kind::End, at },
            b'"' => return self.string(),
            b'-' | b'0'..=b'9' => return self.number(),
            _ => return self.word(),
        };
        self.at += 1;
        Token { kind: single, at }
    }

    /// A byte from here on; zero behind the input.
    fn byte(&self, ahead: usize) -> u8 {
        self.data.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn rest(&self) -> &'a [u8] {
        self.data.get(self.at..).unwrap_or_default()
    }

    fn wrong(&self, what: &'static str) -> Token {
        Token { kind: Kind::Wrong(what), at: self.at }
    }

    fn number(&mut self) -> Token {
        if !self.lenient && is_invalid(self.rest()) {
            return self.wrong("invalid number");
        }
        let at = self.at;
        match leading_number(self.rest()) {
            Some((value, len)) => {
                self.at += len;
                Token { kind: Kind::Number(value), at }
            }
            None => self.wrong("invalid number"),
        }
    }

    fn word(&mut self) -> Token {
        let at = self.at;
        let rest = self.rest();
        let words: [(&[u8], Kind); 3] =
            [(b"true", Kind::Boolean(true)), (b"false", Kind::Boolean(false)), (b"null", Kind::Null)];
        if let Some((word, kind)) = words.into_iter().find(|(word, _)| rest.starts_with(word)) {
            self.at += word.len();
            return Token { kind, at };
        }
        let begins_number = matches!(self.byte(0), b'i' | b'I' | b'n' | b'N' | b'+');
        if begins_number && self.lenient && is_invalid(rest) {
            self.number()
        } else {
            self.wrong("invalid token")
        }
    }

    fn string(&mut self) -> Token {
        let at = self.at;
        let start = at + 1;
        let special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0);
        let plain = |from: usize, data: &[u8]| {
            data.get(from..).unwrap_or_default().iter().position(special).unwrap_or(data.len() - from)
        };
        self.at = start + plain(start, self.data);
        if self.byte(0) == b'"' {
            let text = Text::Plain(start, self.at);
            self.at += 1;
            return Token { kind: Kind::Text(text), at };
        }
        self.unescaped.clear();
        self.unescaped.extend_from_slice(&self.data[start..self.at]);
        loop {
            match self.byte(0) {
                b'"' => {
                    self.at += 1;
                    return Token { kind: Kind::Text(Text::Unescaped), at };
                }
                b'\\' => {
                    if let Err(what) = self.escape() {
                        return self.wrong(what);
                    }
                }
                0 => return self.wrong("unexpected end of string"),
                _ => {
                    let end = self.at + plain(self.at, self.data);
                    self.unescaped.extend_from_slice(&self.data[self.at..end]);
                    self.at = end;
                }
            }
        }
    }

    /// Takes an escape in.
    fn escape(&mut self) -> Result<(), &'static str> {
        let byte = match self.byte(1) {
            byte @ (b'"' | b'\\' | b'/') => byte,
            b'b' => 0x08,
            b't' => b'\t',
            b'n' => b'\n',
            b'f' => 0x0c,
            b'r' => b'\r',
            b'u' => {
                let (char, bytes) = self.unicode().ok_or("invalid unicode escape code")?;
                self.unescaped.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
                self.at += bytes;
                return Ok(());
            }
            _ => return Err("invalid escape code"),
        };
        self.unescaped.push(byte);
        self.at += 2;
        Ok(())
    }

    /// A character in four hexadecimal digits, or two times four for a surrogate pair, and the bytes of its escape.
    fn unicode(&self) -> Option<(char, usize)> {
        let first = self.hex4(2)?;
        if !(0xd800..0xe000).contains(&first) {
            return Some((char::from_u32(first)?, 6));
        }
        // A low half must follow a high one.
        let low = if self.byte(6) == b'\\' && self.byte(7) == b'u' { self.hex4(8)? } else { return None };
        if first >= 0xdc00 || !(0xdc00..0xe000).contains(&low) {
            return None;
        }
        Some((char::from_u32(0x1_0000 + ((first & 0x3ff) << 10 | low & 0x3ff))?, 12))
    }

    fn hex4(&self, ahead: usize) -> Option<u32> {
        (ahead..ahead + 4).try_fold(0, |value, at| Some(value << 4 | char::from(self.byte(at)).to_digit(16)?))
    }
}
