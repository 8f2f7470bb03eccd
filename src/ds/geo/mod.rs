//! Places on the earth as sorted numbers: the geohash arithmetic behind geospatial indexes.
//!
//! Longitude and latitude are each cut into 2^26 equal steps, and the bits of the two step numbers alternate in one
//! number of 52 bits, longitude in the odd places. Places that are near each other mostly have near numbers, so a
//! sorted set of such numbers can be searched by area ([`area`]).
//!
//! Must stay true: every double computed here is the one that Redis 8.0 computes on x86-64, since results depend
//! on the last bit: the order of the operations matters, and so do the odd answers at the very edges (a place at
//! 180 degrees has a step number one beyond the last) and for scores that are no geohash at all.
pub mod area;
pub mod distance;

/// Southern and northern limit in degrees: the square world map of web maps (EPSG:3857) ends there.
pub const LATITUDE_LIMIT: f64 = 85.051_128_78;
/// Western and eastern limit in degrees.
pub const LONGITUDE_LIMIT: f64 = 180.0;
/// Steps (halvings of each axis) of a score.
pub const STEPS_MAX: u32 = 26;

/// Letters and digits of the geohash text, by value.
const BASE32: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";

/// A place, in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// East of Greenwich.
    pub longitude: f64,
    /// North of the equator.
    pub latitude: f64,
}

impl Point {
    /// The place, when it lies within the limits.
    pub fn new(longitude: f64, latitude: f64) -> Option<Point> {
        let inside = (-LONGITUDE_LIMIT..=LONGITUDE_LIMIT).contains(&longitude)
            && (-LATITUDE_LIMIT..=LATITUDE_LIMIT).contains(&latitude);
        inside.then_some(Point { longitude, latitude })
    }

    /// The number that stands for the place in a sorted set.
    pub fn score(self) -> f64 {
        Cell::around(self, STEPS_MAX).bits() as f64
    }

    /// The middle of the cell that a score names. Any score gives a place within the limits.
    pub fn from_score(score: f64) -> Point {
        let (x, y) = split(score_bits(score));
        Cell { x, y, steps: STEPS_MAX }.middle()
    }

    /// The geohash text that the world outside knows. It measures latitude from pole to pole and has eleven
    /// characters; the 52 bits at hand fill ten of them, and the last is always `0`.
    pub fn geohash(self) -> [u8; 11] {
        let x = step_number(self.longitude, LONGITUDE_LIMIT, STEPS_MAX);
        let y = step_number(self.latitude, 90.0, STEPS_MAX);
        let bits = join(x, y);
        let mut text = [b'0'; 11];
        for (i, letter) in text[..10].iter_mut().enumerate() {
            *letter = BASE32[(bits >> (47 - 5 * i) & 31) as usize];
        }
        text
    }
}

/// A rectangle of the grid with 2^`steps` columns and rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Column, from the west. At longitude 180 it is one beyond the last.
    x: u32,
    /// Row, from the south. At the northern limit it is one beyond the last.
    y: u32,
    /// At most [`STEPS_MAX`].
    steps: u32,
}

/// The sides of a rectangle, in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Its west side.
    pub west: f64,
    /// Its south side.
    pub south: f64,
    /// Its east side.
    pub east: f64,
    /// Its north side.
    pub north: f64,
}

impl Cell {
    /// The cell that holds a place, in a grid of 1 to [`STEPS_MAX`] steps.
    pub fn around(point: Point, steps: u32) -> Cell {
        let steps = steps.clamp(1, STEPS_MAX);
        Cell {
            x: step_number(point.longitude, LONGITUDE_LIMIT, steps),
            y: step_number(point.latitude, LATITUDE_LIMIT, steps),
            steps,
        }
    }

    /// Column and row in one number, `2 * steps` bits wide, or up to two more at the edges.
    fn bits(self) -> u64 {
        join(self.x, self.y)
    }

    /// The scores of all places in the cell: from the first (included) to the second (excluded).
    pub fn scores(self) -> (f64, f64) {
        let align = |bits: u64| (bits << (2 * (STEPS_MAX - self.steps))) as f64;
        (align(self.bits()), align(self.bits() + 1))
    }

    /// The sides of the cell.
    pub fn bounds(self) -> Bounds {
        let side = |number: u32, limit: f64| -limit + f64::from(number) / grid(self.steps) * (limit - -limit);
        Bounds {
            west: side(self.x, LONGITUDE_LIMIT),
            south: side(self.y, LATITUDE_LIMIT),
            east: side(self.x.wrapping_add(1), LONGITUDE_LIMIT),
            north: side(self.y.wrapping_add(1), LATITUDE_LIMIT),
        }
    }

    /// The middle of the cell, moved inside the limits.
    fn middle(self) -> Point {
        let Bounds { west, south, east, north } = self.bounds();
        Point {
            longitude: ((west + east) / 2.0).clamp(-LONGITUDE_LIMIT, LONGITUDE_LIMIT),
            latitude: ((south + north) / 2.0).clamp(-LATITUDE_LIMIT, LATITUDE_LIMIT),
        }
    }

    /// The cell so many columns to the east and rows to the north. The grid wraps around, in both directions.
    fn moved(self, columns: i32, rows: i32) -> Cell {
        let mask = (1 << self.steps) - 1;
        // An axis without a move keeps its number even where it is one beyond the last.
        let step =
            |number: u32, by: i32| if by == 0 { number } else { number.wrapping_add_signed(by) & mask };
        Cell { x: step(self.x, columns), y: step(self.y, rows), ..self }
    }
}

/// Columns (and rows) of a grid.
fn grid(steps: u32) -> f64 {
    (1_u64 << steps) as f64
}

/// Where `degrees` lies on an axis from `-limit` to `limit`, counted in steps.
fn step_number(degrees: f64, limit: f64, steps: u32) -> u32 {
    ((degrees - -limit) / (limit - -limit) * grid(steps)) as u32
}

/// The bits of a score, whatever it is. Beyond what 64 bits hold, the conversion follows x86-64: numbers of 2^64
/// and more give zero, negative ones wrap around.
fn score_bits(score: f64) -> u64 {
    const TOP: f64 = 9_223_372_036_854_775_808.0;
    if score >= TOP {
        if score < 2.0 * TOP { score as u64 } else { 0 }
    } else if score >= -TOP {
        score as i64 as u64
    } else {
        1 << 63
    }
}

/// Shifts and masks that move the bits of a half apart.
const SPREAD: [(u32, u64); 5] = [
    (16, 0x0000_ffff_0000_ffff),
    (8, 0x00ff_00ff_00ff_00ff),
    (4, 0x0f0f_0f0f_0f0f_0f0f),
    (2, 0x3333_3333_3333_3333),
    (1, 0x5555_5555_5555_5555),
];

/// Alternates the bits of `x` (odd places) and `y` (even places).
fn join(x: u32, y: u32) -> u64 {
    let spread =
        |half: u32| SPREAD.iter().fold(u64::from(half), |bits, &(shift, mask)| (bits | bits << shift) & mask);
    spread(x) << 1 | spread(y)
}

/// What [`join`] joined.
fn split(bits: u64) -> (u32, u32) {
    let squeeze = |bits: u64| {
        let even = bits & SPREAD[4].1;
        // Each move is undone under the mask of the move before it.
        let masks = [SPREAD[3].1, SPREAD[2].1, SPREAD[1].1, SPREAD[0].1, 0xffff_ffff];
        let shifts = SPREAD.iter().rev().map(|(shift, _)| shift);
        shifts.zip(masks).fold(even, |bits, (shift, mask)| (bits | bits >> shift) & mask) as u32
    };
    (squeeze(bits >> 1), squeeze(bits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn at(longitude: f64, latitude: f64) -> Point {
        Point { longitude, latitude }
    }

    /// Place, score, place again, text: from a Redis 8.0.6 server.
    #[test]
    fn scores_and_texts_of_places() {
        type Case = ((f64, f64), u64, (f64, f64), &'static [u8; 11]);
        const CASES: [Case; 12] = [
            (
                (13.361389, 38.115556),
                3479099956230698,
                (13.361389338970184, 38.1155563954963),
                b"sqc8b49rny0",
            ),
            (
                (15.087269, 37.502669),
                3479447370796909,
                (15.087267458438873, 37.50266842333162),
                b"sqdtr74hyu0",
            ),
            ((0.0, 0.0), 3377699720527872, (2.682209014892578e-6, 1.2673605809254695e-6), b"s0000000000"),
            ((180.0, 85.05112878), 13510798882111488, (180.0, 85.05112878), b"bp05b5048p0"),
            ((-180.0, -85.05112878), 0, (-179.99999731779099, -85.05112751263943), b"00bh0hbj200"),
            ((180.0, 0.0), 10133099161583616, (180.0, 1.2673605809254695e-6), b"80000000000"),
            ((-0.1278, 51.5074), 2163557714755072, (-0.12779921293258667, 51.50740077990133), b"gcpvj0duq50"),
            ((151.2093, -33.8688), 3252046221964352, (151.2092998623848, -33.86880091934156), b"r3gx2f77bj0"),
            (
                (-73.935242, 40.73061),
                1791875640195835,
                (-73.93524438142776, 40.73061047253818),
                b"dr5rtwccpb0",
            ),
            ((179.999999, -84.9), 3002401165082303, (179.99999731779099, -84.89999983295615), b"pbzvpbrvxu0"),
            ((33.5, 85.05112878), 6793513526274592, (33.49999934434891, 85.05112878), b"uxpgf71fwx0"),
            ((180.0, -12.345678), 9364614694568276, (180.0, -12.345677514065862), b"2jb1b0810n0"),
        ];
        for ((longitude, latitude), score, again, text) in CASES {
            let point = Point::new(longitude, latitude).unwrap();
            assert_eq!(point.score(), score as f64, "{point:?}");
            let again = at(again.0, again.1);
            assert_eq!(Point::from_score(point.score()), again);
            assert_eq!(again.geohash(), *text, "{point:?}");
        }
    }

    /// From a Redis 8.0.6 server on x86-64.
    #[test]
    fn scores_that_are_no_places() {
        const LOW: Point = at(-179.99999731779099, -85.05112751263943);
        for (score, point) in [
            (-5.0, at(180.0, 85.05112878)),
            (1e300, LOW),
            (f64::INFINITY, LOW),
            (f64::NEG_INFINITY, at(180.0, -85.05112751263943)),
            (1e19, at(180.0, 85.05112878)),
            (12345678901234567890.0, at(180.0, 85.05112878)),
            (-1e30, at(180.0, -85.05112751263943)),
            (0.9, LOW),
            (4503599627370496.0, at(-179.99999731779099, 85.05112878)),
        ] {
            assert_eq!(Point::from_score(score), point, "{score}");
        }
    }

    #[test]
    fn places_beyond_the_limits_are_refused() {
        for (longitude, latitude) in [
            (180.0000001, 0.0),
            (-180.0000001, 0.0),
            (0.0, 85.05112879),
            (0.0, -85.05112879),
            (f64::NAN, 0.0),
            (0.0, f64::NAN),
            (f64::INFINITY, 0.0),
        ] {
            assert_eq!(Point::new(longitude, latitude), None);
        }
    }

    #[test]
    fn the_grid_wraps_around() {
        let cell = Cell { x: 3, y: 0, steps: 2 };
        assert_eq!(cell.moved(1, -1), Cell { x: 0, y: 3, steps: 2 });
        assert_eq!(cell.moved(-1, 1), Cell { x: 2, y: 1, steps: 2 });
        // At the very edge a number is one too large, and stays so on the axis without a move.
        let edge = Cell::around(at(180.0, 0.0), 2);
        assert_eq!(edge, Cell { x: 4, y: 2, steps: 2 });
        assert_eq!(edge.moved(0, 1), Cell { x: 4, y: 3, steps: 2 });
        assert_eq!(edge.moved(1, 0), Cell { x: 1, y: 2, steps: 2 });
        assert_eq!(edge.moved(-1, 0), Cell { x: 3, y: 2, steps: 2 });
    }

    #[test]
    fn a_cell_s_scores_are_those_of_its_places() {
        let cell = Cell { x: 1, y: 0, steps: 1 };
        assert_eq!(cell.scores(), ((2_u64 << 50) as f64, (3_u64 << 50) as f64));
        assert_eq!(Cell { x: 1, y: 1, steps: 26 }.scores(), (3.0, 4.0));
        let bounds = Bounds { west: 0.0, south: -LATITUDE_LIMIT, east: 180.0, north: 0.0 };
        assert_eq!(cell.bounds(), bounds);
    }

    proptest! {
        #[test]
        fn bits_join_and_split(x: u32, y: u32) {
            let bits = join(x, y);
            prop_assert_eq!(split(bits), (x, y));
            for place in 0..32 {
                prop_assert_eq!(bits >> (2 * place) & 1, u64::from(y >> place & 1));
            }
        }

        #[test]
        fn any_score_is_a_place(bits: u64) {
            let point = Point::from_score(f64::from_bits(bits));
            prop_assert!(Point::new(point.longitude, point.latitude).is_some());
        }

        #[test]
        fn a_cell_holds_its_place(
            longitude in -180.0..180.0_f64,
            latitude in -85.0..85.0_f64,
            steps in 1..=26_u32,
        ) {
            let point = at(longitude, latitude);
            let (first, end) = Cell::around(point, steps).scores();
            prop_assert!((first..end).contains(&point.score()));
        }
    }
}
