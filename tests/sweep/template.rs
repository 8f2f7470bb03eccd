//! Commands with holes: `HGET hash f{any}`.
//!
//! The elements of a place bear ascending numbers of ten digits, so that the order of texts is the order of numbers.
//! New ones are added above, old ones are taken away in the middle or below: the newest half is always there, and
//! the size stays. The holes, each with an optional `+k` or `-k`:
//!
//! | hole | stands for |
//! |---|---|
//! | `next` | the newest element; a case that names it makes a new one in every round |
//! | `any` | a random one of the newest half |
//! | `mid` | the one below the newest half; it moves up with `next` |
//! | `n`, `half` | the size, and half of it |
//! | `pos` | a random index below the size, less ten |
//! | `bytes`, `byte` | the length of the long string, and a random offset in it, less 128 |
//! | `count` | how many elements a filling command carries |
//! | `lon`, `lat` | a random place on the map; the map grows with the size, so the density stays |
//! | `cursor` | where the scan stands |
use std::io::Write as _;

use super::support::Rng;

/// The first element's number.
const FIRST: u64 = 1_000_000_000;
/// Bytes of the long string for each element.
pub const BYTES_PER_ELEMENT: u64 = 16;
/// Degrees between neighbours on the map, about a kilometre.
const DEGREES_APART: f64 = 0.01;

/// The data of one size: a database of its own.
pub struct Place {
    /// Its database.
    pub db: usize,
    /// Its number of elements.
    pub size: usize,
    /// The number that the next new element gets.
    pub next: u64,
    /// Where a scan stands.
    pub cursor: String,
}

impl Place {
    /// An empty place.
    pub fn new(db: usize, size: usize) -> Place {
        Place { db, size, next: FIRST, cursor: "0".into() }
    }

    /// Begins again with the first element's number.
    pub fn rewind(&mut self) {
        self.next = FIRST;
    }
}

/// Random choices for one command: the same hole has the same value throughout it.
struct Draw {
    any: u64,
    pos: u64,
    byte: u64,
    lon: f64,
    lat: f64,
}

impl Draw {
    fn new(place: &Place, rng: &mut Rng) -> Draw {
        let newest_half = (place.size / 2).saturating_sub(16).max(1);
        let mut degrees = || {
            let steps = (place.size as f64).sqrt() * DEGREES_APART;
            rng.below(1 << 20) as f64 / f64::from(1 << 20) * steps
        };
        let (lon, lat) = (degrees(), degrees());
        let bytes = (place.size as u64 * BYTES_PER_ELEMENT) as usize;
        Draw {
            any: place.next.saturating_sub(1 + rng.below(newest_half) as u64),
            pos: rng.below(place.size.saturating_sub(10).max(1)) as u64,
            byte: rng.below(bytes.saturating_sub(128).max(1)) as u64,
            lon,
            lat,
        }
    }

    fn number(&self, hole: &str, place: &Place, count: usize) -> u64 {
        match hole {
            "next" => place.next.saturating_sub(1),
            "any" => self.any,
            "mid" => place.next.saturating_sub(1 + place.size as u64 / 2),
            "n" => place.size as u64,
            "half" => place.size as u64 / 2,
            "pos" => self.pos,
            "bytes" => place.size as u64 * BYTES_PER_ELEMENT,
            "byte" => self.byte,
            "count" => count as u64,
            other => panic!("no hole is called {other}"),
        }
    }

    fn fill(&self, word: &str, place: &Place, count: usize, to: &mut Vec<u8>) {
        let mut rest = word;
        while let Some((before, hole)) = rest.split_once('{') {
            let (hole, after) = hole.split_once('}').unwrap_or_else(|| panic!("{word} has an open hole"));
            to.extend_from_slice(before.as_bytes());
            rest = after;
            let _ = match hole {
                "lon" => write!(to, "{:.6}", self.lon),
                "lat" => write!(to, "{:.6}", self.lat),
                "cursor" => write!(to, "{}", place.cursor),
                hole => {
                    let (name, offset) = hole.find(['+', '-']).map_or((hole, 0), |at| {
                        (
                            &hole[..at],
                            hole[at..].parse().unwrap_or_else(|_| panic!("{word} has an odd offset")),
                        )
                    });
                    write!(to, "{}", self.number(name, place, count).saturating_add_signed(offset))
                }
            };
        }
        to.extend_from_slice(rest.as_bytes());
    }
}

fn push_words(template: &str, place: &Place, count: usize, rng: &mut Rng, to: &mut Vec<u8>) -> usize {
    let draw = Draw::new(place, rng);
    let mut words = 0;
    let mut filled = Vec::with_capacity(32);
    for word in template.split_whitespace() {
        filled.clear();
        draw.fill(word, place, count, &mut filled);
        let _ = write!(to, "${}\r\n", filled.len());
        to.extend_from_slice(&filled);
        to.extend_from_slice(b"\r\n");
        words += 1;
    }
    words
}

/// Appends the bytes of a command.
pub fn push_command(template: &str, place: &Place, rng: &mut Rng, to: &mut Vec<u8>) {
    push_filling(template, "", 0, &mut Place { cursor: place.cursor.clone(), ..*place }, rng, to);
}

/// Appends the bytes of a command that carries `count` new elements, each written as `each` behind `head`.
pub fn push_filling(
    head: &str,
    each: &str,
    count: usize,
    place: &mut Place,
    rng: &mut Rng,
    to: &mut Vec<u8>,
) {
    let mut body = Vec::new();
    let mut words = push_words(head, place, count, rng, &mut body);
    for _ in 0..count {
        place.next += 1;
        words += push_words(each, place, count, rng, &mut body);
    }
    let _ = write!(to, "*{words}\r\n");
    to.append(&mut body);
}

#[cfg(test)]
mod tests {
    use super::super::support::words;
    use super::*;

    fn text(bytes: &[u8]) -> String {
        let text = std::str::from_utf8(bytes).unwrap();
        let words: Vec<&str> =
            text.split("\r\n").filter(|w| !w.is_empty() && !w.starts_with(['*', '$'])).collect();
        words.join(" ")
    }

    #[test]
    fn holes_are_filled() {
        let mut place = Place::new(0, 1000);
        place.next += 1000;
        let mut rng = Rng::new(1);
        let mut bytes = Vec::new();
        push_command(
            "A f{next} {mid} {next-1} {n} {half+9} {bytes} {cursor} x{n}y{n}",
            &place,
            &mut rng,
            &mut bytes,
        );
        assert_eq!(text(&bytes), "A f1000000999 1000000499 1000000998 1000 509 16000 0 x1000y1000");
        for _ in 0..5000 {
            bytes.clear();
            push_command("{any} {any-10} {pos+9} {byte+127} {lon}", &place, &mut rng, &mut bytes);
            let line = text(&bytes);
            let numbers: Vec<f64> = line.split(' ').map(|w| w.parse().unwrap()).collect();
            assert!((1_000_000_500.0..1_000_001_000.0).contains(&numbers[0]), "{line}");
            assert_eq!(numbers[1], numbers[0] - 10.0);
            assert!(numbers[1] > 1_000_000_499.0 && numbers[2] < 1000.0 && numbers[3] < 16_000.0, "{line}");
            assert!((0.0..0.32).contains(&numbers[4]), "{line}");
        }
    }

    #[test]
    fn fillings_carry_new_elements() {
        let mut place = Place::new(0, 1000);
        let mut bytes = Vec::new();
        push_filling("H k {count}", "f{next} v", 2, &mut place, &mut Rng::new(1), &mut bytes);
        let want = super::super::support::command(&words("H k 2 f1000000000 v f1000000001 v"));
        assert_eq!(bytes, want);
        assert_eq!(place.next, FIRST + 2);
    }
}
