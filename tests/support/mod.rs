//! What the integration tests share: servers that they start, and a client of their own.
//!
//! The client must not use the crate's own parser or writer: a mistake there would answer itself.
// Each test binary uses its own part of this.
#![allow(dead_code)]

pub mod client;
pub mod resp;
pub mod rng;
pub mod server;

pub use client::Client;
pub use resp::Value;
pub use rng::Rng;
pub use server::Server;

/// Calls `condition` until it holds, at most ten seconds.
///
/// # Panics
/// When it does not hold in time; `what` says what was waited for.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while !condition() {
        assert!(std::time::Instant::now() < end, "waited in vain: {what}");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

/// Splits a line into words: blanks separate, double quotes hold blanks and the escapes `\n \r \t \\ \" \xHH`.
pub fn words(line: &str) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    let mut rest = line.bytes().peekable();
    loop {
        while rest.next_if_eq(&b' ').is_some() {}
        if rest.peek().is_none() {
            return words;
        }
        let mut word = Vec::new();
        let mut quoted = false;
        while let Some(byte) = rest.next() {
            match byte {
                b'"' => quoted = !quoted,
                b' ' if !quoted => break,
                b'\\' if quoted => word.push(escape(&mut rest)),
                byte => word.push(byte),
            }
        }
        words.push(word);
    }
}

fn escape(rest: &mut impl Iterator<Item = u8>) -> u8 {
    match rest.next().expect("something follows a backslash") {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'x' => {
            let mut digit =
                || char::from(rest.next().unwrap()).to_digit(16).expect("a hexadecimal digit") as u8;
            digit() << 4 | digit()
        }
        byte => byte,
    }
}

/// The array form of a command.
pub fn command<W: AsRef<[u8]>>(words: &[W]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        let word = word.as_ref();
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// Bytes as text that shows the odd ones.
pub fn show(bytes: &[u8]) -> String {
    const SHOWN_MAX: usize = 600;
    let text: String = bytes[..bytes.len().min(SHOWN_MAX)]
        .iter()
        .flat_map(|b| std::ascii::escape_default(*b))
        .map(char::from)
        .collect();
    if bytes.len() > SHOWN_MAX { format!("{text}... ({} bytes)", bytes.len()) } else { text }
}
