//! Words of a configuration line: splitting with quotes and escapes, and quoting back.
//!
//! `split(&quote(text))` gives `text` back, whatever its bytes (tested). The grammar is that of redis.conf:
//! blanks part words; double quotes know `\n \r \t \b \a \xHH` and take any other escaped byte as itself;
//! single quotes know only `\'`; a closing quote ends its word and must be followed by a blank or the end.

/// Splits a line into words, or None when a quote is not closed or not followed by a blank.
pub fn split(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        let start = rest.iter().position(|byte| !is_blank(*byte));
        let Some(start) = start else { return Some(words) };
        let (word, after) = take_word(&rest[start..])?;
        words.push(word);
        rest = after;
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Reads one word; a quote opens anywhere in it and ends it.
fn take_word(mut rest: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut word = Vec::new();
    loop {
        match rest {
            [] | [b' ' | b'\n' | b'\r' | b'\t', ..] => return Some((word, rest)),
            [b'"', quoted @ ..] => {
                let after = take_double(quoted, &mut word)?;
                return finish(word, after);
            }
            [b'\'', quoted @ ..] => {
                let after = take_single(quoted, &mut word)?;
                return finish(word, after);
            }
            [byte, after @ ..] => {
                word.push(*byte);
                rest = after;
            }
        }
    }
}

/// A quoted word and what follows it, if that may follow a closing quote.
fn finish(word: Vec<u8>, after: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    match after.first() {
        Some(byte) if !is_blank(*byte) => None,
        _ => Some((word, after)),
    }
}

fn take_double<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [] => return None,
            [b'"', after @ ..] => return Some(after),
            [b'\\', b'x', high, low, after @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                word.push(hex_value(*high) << 4 | hex_value(*low));
                rest = after;
            }
            [b'\\', escaped, after @ ..] => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => *other,
                });
                rest = after;
            }
            [byte, after @ ..] => {
                word.push(*byte);
                rest = after;
            }
        }
    }
}

fn take_single<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [] => return None,
            [b'\'', after @ ..] => return Some(after),
            [b'\\', b'\'', after @ ..] => {
                word.push(b'\'');
                rest = after;
            }
            [byte, after @ ..] => {
                word.push(*byte);
                rest = after;
            }
        }
    }
}

fn hex_value(digit: u8) -> u8 {
    (digit as char).to_digit(16).unwrap_or(0) as u8
}

/// Puts a text into double quotes, so that [`split`] reads it as one word.
pub fn quote(text: &[u8]) -> Vec<u8> {
    let mut quoted = Vec::with_capacity(text.len() + 2);
    quoted.push(b'"');
    for byte in text {
        match byte {
            b'\\' | b'"' => quoted.extend([b'\\', *byte]),
            b'\n' => quoted.extend(b"\\n"),
            b'\r' => quoted.extend(b"\\r"),
            b'\t' => quoted.extend(b"\\t"),
            0x07 => quoted.extend(b"\\a"),
            0x08 => quoted.extend(b"\\b"),
            b' '..=b'~' => quoted.push(*byte),
            _ => quoted.extend(format!("\\x{byte:02x}").bytes()),
        }
    }
    quoted.push(b'"');
    quoted
}

/// The text as it is where it reads as one word, else in quotes.
pub fn quote_if_needed(text: &[u8]) -> Vec<u8> {
    let plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'');
    if !text.is_empty() && text.iter().all(plain) { text.to_vec() } else { quote(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expect: Option<&[&str]>) {
        let expect =
            expect.map(|words| words.iter().map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>());
        assert_eq!(split(line.as_bytes()), expect, "{line}");
    }

    #[test]
    fn splits_as_redis_conf() {
        check("", Some(&[]));
        check("  a  b\tc\r", Some(&["a", "b", "c"]));
        check(r#"save """#, Some(&["save", ""]));
        check(r#"a "b c" 'd e'"#, Some(&["a", "b c", "d e"]));
        check(r#""\n\x41\x4\q\"" '\n\''"#, Some(&["\nAx4q\"", "\\n'"]));
        check(r#"pre"fix ed""#, Some(&["prefix ed"]));
        check(r#"a "b"#, None);
        check(r#"a "b"c"#, None);
        check("a 'b'c", None);
        check(r#"a "b\"#, None);
    }

    #[test]
    fn quoting_comes_back() {
        let every_byte: Vec<u8> = (0..=255).collect();
        for text in [&b""[..], b"a b", b"\"\\'", &every_byte] {
            assert_eq!(split(&quote(text)), Some(vec![text.to_vec()]));
        }
        assert_eq!(quote_if_needed(b"a:1"), b"a:1");
        assert_eq!(quote_if_needed(b"a b"), b"\"a b\"");
        assert_eq!(quote(b"a\"\x01\n"), b"\"a\\\"\\x01\\n\"");
    }
}
