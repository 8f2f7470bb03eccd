//! The inline form: a command as a line of words, typed by a person or sent by a simple tool.
//!
//! A line is turned into the array form and put back in its place in the read buffer, so that everything after
//! this knows one form only.

/// Splits a line into words as Redis does: blanks separate; double quotes know `\n \r \t \b \a \xHH \"`, single
/// quotes know `\'`; a closing quote must be followed by a blank or the end. `None`: quotes do not match.
pub fn split_words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (mut words, mut at) = (Vec::new(), 0);
    loop {
        while line.get(at).is_some_and(|b| is_blank(*b)) {
            at += 1;
        }
        if at >= line.len() {
            return Some(words);
        }
        let (word, next) = one_word(line, at)?;
        words.push(word);
        at = next;
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c | 0)
}

fn one_word(line: &[u8], mut at: usize) -> Option<(Vec<u8>, usize)> {
    let mut word = Vec::new();
    while let Some(&byte) = line.get(at) {
        match byte {
            b'"' | b'\'' => {
                at = quoted(line, at, &mut word)?;
                return line.get(at).is_none_or(|b| is_blank(*b)).then_some((word, at));
            }
            _ if is_blank(byte) => break,
            _ => word.push(byte),
        }
        at += 1;
    }
    Some((word, at))
}

/// Reads from the opening quote at `at`; returns where the next byte is.
fn quoted(line: &[u8], at: usize, word: &mut Vec<u8>) -> Option<usize> {
    let quote = line[at];
    let mut at = at + 1;
    loop {
        match (*line.get(at)?, quote) {
            (b'\\', b'"') => at += escape(&line[at..], word)?,
            (b'\\', _) if line.get(at + 1) == Some(&b'\'') => {
                word.push(b'\'');
                at += 2;
            }
            (byte, _) if byte == quote => return Some(at + 1),
            (byte, _) => {
                word.push(byte);
                at += 1;
            }
        }
    }
}

/// Decodes the escape at the start of `rest`; returns its length.
fn escape(rest: &[u8], word: &mut Vec<u8>) -> Option<usize> {
    if let [_, b'x', high, low, ..] = rest
        && let (Some(high), Some(low)) = (char::from(*high).to_digit(16), char::from(*low).to_digit(16))
    {
        word.push((high * 16 + low) as u8);
        return Some(4);
    }
    word.push(match *rest.get(1)? {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'a' => 7,
        other => other,
    });
    Some(2)
}

/// The array form of `words`.
pub fn as_array(words: &[Vec<u8>]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        let cases: [(&str, Option<&[&str]>); 9] = [
            ("set a b", Some(&["set", "a", "b"])),
            ("  set\ta  ", Some(&["set", "a"])),
            ("", Some(&[])),
            (r#"set a "x y\n\x41""#, Some(&["set", "a", "x y\nA"])),
            (r"set a 'it\'s'", Some(&["set", "a", "it's"])),
            (r#"set a "b"#, None),
            (r#"set a "b"c"#, None),
            (r#"set a"b" c"#, Some(&["set", "ab", "c"])),
            (r#"set a ''"#, Some(&["set", "a", ""])),
        ];
        for (line, words) in cases {
            let got = split_words(line.as_bytes());
            let want = words.map(|w| w.iter().map(|w| w.as_bytes().to_vec()).collect::<Vec<_>>());
            assert_eq!(got, want, "{line}");
        }
    }
}
