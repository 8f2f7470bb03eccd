//! LATENCY GRAPH: a drawing of one event, a column a sample, with its age written downwards below.
use std::fmt::Write;

use crate::host::Series;

/// Columns before the drawing starts anew.
const COLUMNS: usize = 80;
/// Rows of bars.
const ROWS: u64 = 4;
/// What the top of a bar looks like, from low to high, within one row.
const TOPS: [char; 3] = ['_', 'o', '#'];

/// Draws `series` as of `now_s`.
pub fn draw(event: &str, series: &Series, now_s: u64) -> String {
    let values = || series.samples.iter().map(|sample| sample.took_ms);
    let (low, high) = (values().min().unwrap_or(0), values().max().unwrap_or(0));
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{event} - high {high} ms, low {low} ms (all time high {} ms)", series.worst_ms);
    text.extend(std::iter::repeat_n('-', COLUMNS));
    text.push('\n');
    let columns: Vec<(u64, String)> = series
        .samples
        .iter()
        .map(|sample| (step(sample.took_ms, low, high), age(now_s.saturating_sub(sample.at_s))))
        .collect();
    let parts: Vec<String> = columns.chunks(COLUMNS).map(draw_part).collect();
    text + &parts.join("\n")
}

/// Steps of a bar above the ground.
fn step(value: u64, low: u64, high: u64) -> u64 {
    let steps = ROWS * TOPS.len() as u64;
    ((value - low) * steps / (high - low).max(1)).min(steps - 1)
}

/// The first unit in which an age is below the next one's size.
fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

fn draw_part(columns: &[(u64, String)]) -> String {
    let mut text = String::new();
    for row in (0..ROWS).rev() {
        let bottom = row * TOPS.len() as u64;
        text.extend(columns.iter().map(|(step, _)| match step.checked_sub(bottom) {
            None => ' ',
            Some(above) => TOPS.get(above as usize).copied().unwrap_or('|'),
        }));
        text.push('\n');
    }
    text.extend(std::iter::repeat_n(' ', columns.len()));
    text.push('\n');
    let longest = columns.iter().map(|(_, label)| label.len()).max().unwrap_or(0);
    for line in 0..longest {
        text.extend(columns.iter().map(|(_, label)| label.chars().nth(line).unwrap_or(' ')));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Sample;

    #[test]
    fn bars_and_ages() {
        let sample = |at_s, took_ms| Sample { at_s, took_ms };
        let samples = [sample(0, 100), sample(100_000, 300), sample(103_590, 500)].into_iter().collect();
        let text = draw("command", &Series { samples, worst_ms: 700 }, 103_600);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "command - high 500 ms, low 100 ms (all time high 700 ms)");
        assert_eq!(lines[1], "-".repeat(80));
        assert_eq!(lines[2..], ["  #", " _|", " ||", "_||", "   ", "111", "dh0", "  s"]);
    }

    #[test]
    fn one_sample_lies_on_the_ground() {
        let samples = [Sample { at_s: 5, took_ms: 7 }].into_iter().collect();
        let text = draw("x", &Series { samples, worst_ms: 7 }, 5);
        assert_eq!(text.lines().skip(2).collect::<Vec<_>>(), [" ", " ", " ", "_", " ", "0", "s"]);
    }
}
