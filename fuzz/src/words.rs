//! A second, plain implementation of the words of an inline command: a state machine over single bytes. The server's
//! own reads ahead instead, so that a slip in one is unlikely to be made in the other too.

#[derive(Clone, Copy, PartialEq)]
enum State {
    Between,
    Plain,
    Double,
    /// Behind a backslash inside double quotes.
    Escape,
    /// Behind `\x` inside double quotes.
    Hex,
    /// Behind `\x` and one digit, which is kept.
    HexDigit(u8),
    Single,
    /// Behind a backslash inside single quotes.
    SingleEscape,
    /// Behind a closing quote.
    Closed,
}

/// The words of `line`; `None`: its quotes do not match.
pub fn split_plainly(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (mut words, mut word, mut state) = (Vec::new(), Vec::new(), State::Between);
    let mut at = 0;
    while at < line.len() {
        let byte = line[at];
        at += 1;
        state = match state {
            State::Between if is_blank(byte) => State::Between,
            State::Plain | State::Closed if is_blank(byte) => {
                words.push(std::mem::take(&mut word));
                State::Between
            }
            State::Closed => return None,
            State::Between | State::Plain => match byte {
                b'"' => State::Double,
                b'\'' => State::Single,
                _ => {
                    word.push(byte);
                    State::Plain
                }
            },
            State::Double | State::Escape | State::Hex | State::HexDigit(_) => {
                let (next, again) = in_double(state, byte, &mut word);
                at -= usize::from(again);
                next
            }
            State::Single if byte == b'\'' => State::Closed,
            State::Single if byte == b'\\' => State::SingleEscape,
            State::Single => {
                word.push(byte);
                State::Single
            }
            // Only a quote is escaped by a backslash here; before anything else it stands for itself.
            State::SingleEscape if byte == b'\'' => {
                word.push(b'\'');
                State::Single
            }
            State::SingleEscape => {
                word.push(b'\\');
                at -= 1;
                State::Single
            }
        };
    }
    match state {
        State::Between => Some(words),
        State::Plain | State::Closed => {
            words.push(word);
            Some(words)
        }
        _ => None,
    }
}

/// One step inside double quotes. `true`: the byte was not used up.
fn in_double(state: State, byte: u8, word: &mut Vec<u8>) -> (State, bool) {
    match (state, byte) {
        (State::Double, b'"') => return (State::Closed, false),
        (State::Double, b'\\') => return (State::Escape, false),
        (State::Double, _) => word.push(byte),
        (State::Escape, b'x') => return (State::Hex, false),
        (State::Escape, b'n') => word.push(b'\n'),
        (State::Escape, b'r') => word.push(b'\r'),
        (State::Escape, b't') => word.push(b'\t'),
        (State::Escape, b'b') => word.push(0x08),
        (State::Escape, b'a') => word.push(0x07),
        (State::Escape, _) => word.push(byte),
        (State::Hex, _) if byte.is_ascii_hexdigit() => return (State::HexDigit(byte), false),
        // Without two digits, `\x` stands for an x, and what followed is read again.
        (State::Hex, _) => {
            word.push(b'x');
            return (State::Double, true);
        }
        (State::HexDigit(high), low) if low.is_ascii_hexdigit() => {
            word.push(hex(high) * 16 + hex(low));
        }
        (State::HexDigit(high), _) => {
            word.extend([b'x', high]);
            return (State::Double, true);
        }
        _ => unreachable!("only states inside double quotes come here"),
    }
    (State::Double, false)
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit - b'A' + 10,
    }
}

fn is_blank(byte: u8) -> bool {
    byte == 0 || byte == b' ' || (0x09..=0x0d).contains(&byte)
}
