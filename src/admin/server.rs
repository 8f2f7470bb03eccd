//! TIME, LOLWUT, SHUTDOWN.
use std::fmt::Write;

use crate::base::clock;
use crate::base::rng::Rng;
use crate::cmd::cx::{ConnCx, Ending, Wish};
use crate::cmd::spec::{Done, Group::Server as S, Spec, flag};
use crate::config::{REDIS_VERSION, VERSION};
use crate::wire::{Args, Error, Out};

/// The rows.
pub const COMMANDS: &[Spec] = &[
    Spec::conn("lolwut", "[VERSION version]", lolwut)
        .doc(S, "5.0.0", "Draws a picture, and tells the version.")
        .without(flag::LOADING | flag::STALE)
        .with(flag::READONLY | flag::FAST),
    Spec::conn("shutdown", "[NOSAVE|SAVE] [NOW] [FORCE] [ABORT]", shutdown)
        .doc(S, "1.0.0", "Ends the server.")
        .with(flag::ADMIN | flag::NOSCRIPT | flag::NO_MULTI | flag::ALLOW_BUSY),
    Spec::conn("time", "", time)
        .doc(S, "2.6.0", "Returns the time of the server, in seconds and microseconds.")
        .with(flag::FAST)
        .tips(&["nondeterministic_output"]),
];

fn time(cx: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    // In a whole it is the same time all along.
    let us = if cx.client.caller.is_part { cx.now.ms as i64 * 1000 } else { clock::wall_us() as i64 };
    out.array(2);
    out.bulk_int(us / 1_000_000);
    out.bulk_int(us % 1_000_000);
    Ok(())
}

const COLUMNS: usize = 60;
const ROWS: usize = 13;

/// An orbit with its focus, and a body on it: at the perigee when `turn` is 0, half round at 0.5.
fn orbit(turn: f64) -> String {
    let mut picture = vec![[b' '; COLUMNS]; ROWS];
    let mut put = |x: f64, y: f64, mark: u8| {
        let (column, row) = ((x * 27.0 + 29.5).round() as usize, (y * 5.5 + 6.0).round() as usize);
        picture[row.min(ROWS - 1)][column.min(COLUMNS - 1)] = mark;
    };
    let place = |turn: f64| {
        let (y, x) = (turn * std::f64::consts::TAU).sin_cos();
        (-x, y)
    };
    for step in 0..120 {
        let (x, y) = place(f64::from(step) / 120.0);
        put(x, y, b'.');
    }
    put(-0.6, 0.0, b'O');
    let (x, y) = place(turn);
    put(x, y, b'*');
    picture.iter().map(|row| String::from_utf8_lossy(row).trim_end().to_string() + "\n").collect()
}

fn lolwut(_: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    // Every version draws the same picture; further arguments are those of other pictures.
    if args.left() > 1 && args.keyword("VERSION") {
        args.int()?;
    }
    let mut text = orbit(Rng::from_entropy().below(1000) as f64 / 1000.0);
    // Writing to a string cannot fail. Clients read the last line.
    let _ = write!(text, "\nPerigee ver. {VERSION}\nRedis ver. {REDIS_VERSION}\n");
    out.verbatim("txt", text.as_bytes());
    Ok(())
}

/// What SHUTDOWN asks for; `None`: that an end under way is called off.
fn ending(args: &mut Args<'_>) -> Result<Option<Ending>, Error> {
    let (mut saves, mut is_forced, mut is_urgent, mut aborts) = (None, false, false, false);
    while !args.is_done() {
        if saves != Some(false) && args.keyword("SAVE") {
            saves = Some(true);
        } else if saves != Some(true) && args.keyword("NOSAVE") {
            saves = Some(false);
        } else if args.keyword("NOW") {
            is_urgent = true;
        } else if args.keyword("FORCE") {
            is_forced = true;
        } else if args.keyword("ABORT") {
            aborts = true;
        } else {
            return Err(Error::Syntax);
        }
    }
    if aborts && (saves.is_some() || is_forced || is_urgent) {
        return Err(Error::Syntax);
    }
    // There are no replicas to wait for, so every end is urgent.
    Ok((!aborts).then_some(Ending { saves, is_forced }))
}

fn shutdown(cx: &mut ConnCx<'_>, args: &mut Args<'_>, _: &mut Out) -> Done {
    match ending(args)? {
        Some(ending) => cx.client.wish = Wish::Shutdown(ending),
        None => return Err(Error::err("No shutdown in progress.")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::hash::KeyHash;
    use crate::wire::Span;

    #[test]
    fn the_orbit_is_closed_and_has_a_body() {
        for turn in [0.0, 0.25, 0.5, 0.999] {
            let picture = orbit(turn);
            assert_eq!(picture.lines().count(), ROWS);
            assert_eq!((picture.matches('*').count(), picture.matches('O').count()), (1, 1));
            assert!(picture.lines().all(|line| line.len() <= COLUMNS));
        }
        let perigee = orbit(0.0);
        let line = perigee.lines().nth(6).unwrap();
        assert!(line.find('*') < line.find('O'));
    }

    #[test]
    fn words_of_shutdown() {
        let read = |words: &str| {
            let line = format!("shutdown {words}");
            let mut spans = Vec::new();
            let mut at = 0;
            for word in line.split(' ') {
                if !word.is_empty() {
                    spans.push(Span { at, len: word.len() as u32 });
                }
                at += word.len() as u32 + 1;
            }
            ending(&mut Args::new(line.as_bytes(), &spans, (0, KeyHash::from_bits(0)))).ok()
        };
        let ends = |saves, is_forced| Some(Some(Ending { saves, is_forced }));
        assert_eq!(read(""), ends(None, false));
        assert_eq!(read("nosave NOW force"), ends(Some(false), true));
        assert_eq!(read("save"), ends(Some(true), false));
        assert_eq!(read("abort"), Some(None));
        for bad in ["save nosave", "abort now", "abort save", "x"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
