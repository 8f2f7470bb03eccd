//! Distances between places, their units, and how they are written.
//!
//! Must stay true: the earth is a sphere of [`EARTH_RADIUS_M`], and the haversine formula is computed in one fixed
//! order of operations (see [`super`]).
use super::Point;

/// Radius of the earth, in metres.
pub const EARTH_RADIUS_M: f64 = 6_372_797.560_856;

const RADIANS_PER_DEGREE: f64 = std::f64::consts::PI / 180.0;

/// Degrees to radians.
pub(super) fn radians(degrees: f64) -> f64 {
    degrees * RADIANS_PER_DEGREE
}

/// Radians to degrees. (Not a multiplication: the last bit would differ.)
pub(super) fn degrees(radians: f64) -> f64 {
    radians / RADIANS_PER_DEGREE
}

/// A unit of length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Unit {
    /// Metres.
    #[default]
    M,
    /// Kilometres.
    Km,
    /// Feet.
    Ft,
    /// Miles (of 1609.34 metres).
    Mi,
}

impl Unit {
    /// The unit with this name, in any case.
    pub fn parse(name: &[u8]) -> Option<Unit> {
        let units = [("m", Unit::M), ("km", Unit::Km), ("ft", Unit::Ft), ("mi", Unit::Mi)];
        let found = units.iter().find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes()));
        found.map(|&(_, unit)| unit)
    }

    /// Metres in one.
    pub fn metres(self) -> f64 {
        match self {
            Unit::M => 1.0,
            Unit::Km => 1000.0,
            Unit::Ft => 0.3048,
            Unit::Mi => 1609.34,
        }
    }
}

/// A place that distances are measured from; what depends on it alone is computed once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Origin {
    /// The place.
    pub point: Point,
    longitude_rad: f64,
    latitude_rad: f64,
    latitude_cos: f64,
}

impl Origin {
    /// Measures from `point`.
    pub fn new(point: Point) -> Origin {
        let latitude_rad = radians(point.latitude);
        let longitude_rad = radians(point.longitude);
        Origin { point, longitude_rad, latitude_rad, latitude_cos: latitude_rad.cos() }
    }

    /// Great-circle distance to a place, in metres.
    pub fn distance_m(&self, to: Point) -> f64 {
        let v = ((radians(to.longitude) - self.longitude_rad) / 2.0).sin();
        if v == 0.0 {
            return latitude_distance_m(self.point.latitude, to.latitude);
        }
        let latitude_rad = radians(to.latitude);
        let u = ((latitude_rad - self.latitude_rad) / 2.0).sin();
        // For opposite places rounding may lift this to 1 + 2^-52, whose root is 1: no NaN comes of it.
        let a = u * u + self.latitude_cos * latitude_rad.cos() * v * v;
        2.0 * EARTH_RADIUS_M * a.sqrt().asin()
    }
}

/// Distance of two latitudes, along a meridian, in metres.
pub fn latitude_distance_m(a: f64, b: f64) -> f64 {
    EARTH_RADIUS_M * (radians(b) - radians(a)).abs()
}

/// Great-circle distance of two places, in metres.
pub fn distance_m(a: Point, b: Point) -> f64 {
    Origin::new(a).distance_m(b)
}

/// Appends a distance with four digits after the point. It is scaled by ten thousand first and then rounded, half
/// to even; beyond 64 bits (and for NaN) the scaled number is the lowest of 64 bits, as x86-64 converts it.
pub fn append_distance(distance: f64, out: &mut Vec<u8>) {
    const TOP: f64 = 9_223_372_036_854_775_808.0;
    let scaled = (distance * 10_000.0).round_ties_even();
    let scaled = if (-TOP..TOP).contains(&scaled) { scaled as i64 } else { i64::MIN };
    if scaled < 0 {
        out.push(b'-');
    }
    let magnitude = scaled.unsigned_abs();
    out.extend_from_slice(itoa::Buffer::new().format(magnitude / 10_000).as_bytes());
    out.push(b'.');
    let fraction = magnitude % 10_000;
    out.extend([1000, 100, 10, 1].map(|place| b'0' + (fraction / place % 10) as u8));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(distance: f64) -> String {
        let mut out = Vec::new();
        append_distance(distance, &mut out);
        String::from_utf8(out).unwrap()
    }

    /// The place that a sorted set gives back for one that was put in.
    fn stored(longitude: f64, latitude: f64) -> Point {
        Point::from_score(Point::new(longitude, latitude).unwrap().score())
    }

    /// From a Redis 8.0.6 server.
    #[test]
    fn distances_in_all_units() {
        type Case = ((f64, f64), (f64, f64), [&'static str; 4]);
        const PALERMO: (f64, f64) = (13.361389, 38.115556);
        const NEW_YORK: (f64, f64) = (-73.935242, 40.73061);
        const SYDNEY: (f64, f64) = (151.2093, -33.8688);
        const CASES: [Case; 6] = [
            (PALERMO, (15.087269, 37.502669), ["166274.1516", "166.2742", "545518.8700", "103.3182"]),
            (PALERMO, NEW_YORK, ["7171510.5744", "7171.5106", "23528578.0000", "4456.1812"]),
            (NEW_YORK, SYDNEY, ["15999353.1876", "15999.3532", "52491316.2322", "9941.5619"]),
            (PALERMO, (13.361389, -40.0), ["8688504.3004", "8688.5043", "28505591.5367", "5398.7997"]),
            ((180.0, 0.0), (0.0, 0.0), ["20020733.6202", "20020.7336", "65684821.5884", "12440.3380"]),
            (SYDNEY, SYDNEY, ["0.0000", "0.0000", "0.0000", "0.0000"]),
        ];
        for (from, to, texts) in CASES {
            let distance = distance_m(stored(from.0, from.1), stored(to.0, to.1));
            let found = ["M", "km", "Ft", "mI"]
                .map(|unit| text(distance / Unit::parse(unit.as_bytes()).unwrap().metres()));
            assert_eq!(found, texts, "{from:?} {to:?}");
        }
    }

    #[test]
    fn rounding_is_half_to_even_after_scaling() {
        for (distance, want) in [
            (0.0, "0.0000"),
            (-0.0, "0.0000"),
            (0.00004, "0.0000"),
            (0.00025, "0.0002"),
            (0.00035, "0.0004"),
            (1.00005, "1.0001"),
            (9.99996, "10.0000"),
            (12345.678, "12345.6780"),
            (-0.01, "-0.0100"),
            (f64::NAN, "-922337203685477.5808"),
            (1e300, "-922337203685477.5808"),
        ] {
            assert_eq!(text(distance), want, "{distance}");
        }
    }

    #[test]
    fn other_units_are_unknown() {
        assert_eq!(Unit::parse(b""), None);
        assert_eq!(Unit::parse(b"k"), None);
        assert_eq!(Unit::parse(b"mm"), None);
    }
}
