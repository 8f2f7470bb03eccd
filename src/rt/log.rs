//! The log: lines in the form that Redis operators know, to standard output or a file.
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use parking_lot::Mutex;

use crate::base::clock;

/// How much a line matters, in the order of `loglevel`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For developers.
    Debug,
    /// Small things.
    Verbose,
    /// What an operator wants to know.
    Notice,
    /// What an operator must know.
    Warning,
}

static LEVEL: AtomicU8 = AtomicU8::new(Level::Notice as u8);
static FILE: OnceLock<Mutex<File>> = OnceLock::new();

/// Sets the level below which lines are dropped, by its word in the configuration.
pub fn set_level(word: &str) {
    let level = match word {
        "debug" => Level::Debug,
        "verbose" => Level::Verbose,
        "warning" | "nothing" => Level::Warning,
        _ => Level::Notice,
    };
    LEVEL.store(level as u8, Ordering::Relaxed);
}

/// Logs to a file from now on.
///
/// # Errors
/// When it cannot be opened for appending.
pub fn open(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new().create(true).append(true).open(path)?;
    let _ = FILE.set(Mutex::new(file));
    Ok(())
}

/// Writes a line.
pub fn line(level: Level, text: &str) {
    if (level as u8) < LEVEL.load(Ordering::Relaxed) {
        return;
    }
    let mark = ['.', '-', '*', '#'][level as usize];
    let line = format!("{}:M {} {mark} {text}\n", std::process::id(), stamp(clock::wall_ms()));
    // A log that cannot be written must not stop the server.
    let _ = match FILE.get() {
        Some(file) => file.lock().write_all(line.as_bytes()),
        None => io::stdout().write_all(line.as_bytes()),
    };
}

/// `30 Nov 2026 17:01:02.345`, UTC. The civil calendar from days since the epoch, by Howard Hinnant's algorithm.
fn stamp(ms: u64) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (days, day_ms) = ((ms / 86_400_000) as i64, ms % 86_400_000);
    let z = days + 719_468;
    let (era, day_of_era) = (z.div_euclid(146_097), z.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 2 } else { shifted_month - 10 };
    let year = year_of_era + era * 400 + i64::from(month < 2);
    let (h, m, s) = (day_ms / 3_600_000, day_ms / 60_000 % 60, day_ms / 1000 % 60);
    format!("{day:02} {} {year} {h:02}:{m:02}:{s:02}.{:03}", MONTHS[month as usize], day_ms % 1000)
}

#[cfg(test)]
mod tests {
    #[test]
    fn stamps() {
        assert_eq!(super::stamp(0), "01 Jan 1970 00:00:00.000");
        assert_eq!(super::stamp(951_782_400_000), "29 Feb 2000 00:00:00.000");
        assert_eq!(super::stamp(1_796_058_061_234), "30 Nov 2026 17:01:01.234");
    }
}
