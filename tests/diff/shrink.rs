//! Makes a sequence that tells the servers apart shorter, and prints it.
use super::pair::{Mode, Pair, Words};
use super::support::show;

/// Drops every command that is not needed for a difference, there or in the questions behind them.
pub fn shrink(
    pair: &mut Pair,
    mut commands: Vec<Words>,
    questions: &[Words],
    mode: Mode,
    found: (usize, String),
) -> (Vec<Words>, String) {
    let (at, mut text) = found;
    commands.truncate(at + 1);
    let mut step = (commands.len() / 2).max(1);
    loop {
        let mut shorter = false;
        let mut start = 0;
        while start < commands.len() {
            let mut fewer = commands.clone();
            fewer.drain(start..(start + step).min(commands.len()));
            match pair.first_difference(&fewer, questions, mode) {
                Some((at, now)) => {
                    fewer.truncate(at + 1);
                    (commands, text, shorter) = (fewer, now, true);
                }
                None => start += step,
            }
        }
        if step > 1 {
            step /= 2;
        } else if !shorter {
            return (commands, text);
        }
    }
}

/// A command as a line that may be typed again.
pub fn line(words: &Words) -> String {
    let word = |word: &Vec<u8>| {
        let plain =
            !word.is_empty() && word.iter().all(|b| b.is_ascii_graphic() && *b != b'"' && *b != b'\\');
        if plain { show(word) } else { format!("\"{}\"", show(word)) }
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// One command a line.
pub fn listing(commands: &[Words]) -> String {
    commands.iter().map(|words| format!("  {}\n", line(words))).collect()
}
