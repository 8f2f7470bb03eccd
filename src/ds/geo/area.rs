//! Searching a sorted set of places by area: which ranges of scores to read, and which places in them to keep.
//!
//! The area lies inside a cell and its eight neighbours, in a grid coarse enough for that; cells that the area does
//! not reach are left out. Must stay true: the ranges are those of Redis 8.0, in its order, since unsorted results
//! come in the order in which they are met, and a search that stops early keeps the first it meets.
use super::distance::{EARTH_RADIUS_M, Origin, Unit, degrees, latitude_distance_m, radians};
use super::{Bounds, Cell, Point, STEPS_MAX};

/// Half the height of the square world map, in metres.
const MAP_HALF_M: f64 = 20_037_726.37;

/// An area around a place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Area {
    origin: Origin,
    shape: Shape,
    /// From the middle to the farthest place of the shape, in metres.
    reach_m: f64,
    /// Places farther to the north or south, in degrees, are certainly outside.
    latitude_reach: f64,
}

/// In metres.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Shape {
    Circle { radius: f64 },
    Rectangle { width: f64, height: f64 },
}

impl Area {
    /// All places at most `radius` away from `middle`. The radius is zero or more, and may be infinite.
    pub fn circle(middle: Point, radius: f64, unit: Unit) -> Area {
        let radius = radius * unit.metres();
        Area::new(middle, Shape::Circle { radius }, radius, radius)
    }

    /// All places at most half the height north or south of `middle`, and at most half the width east or west,
    /// measured at their own latitude.
    pub fn rectangle(middle: Point, width: f64, height: f64, unit: Unit) -> Area {
        let (half_width, half_height) = (width / 2.0, height / 2.0);
        let reach_m = (half_width * half_width + half_height * half_height).sqrt() * unit.metres();
        let shape = Shape::Rectangle { width: width * unit.metres(), height: height * unit.metres() };
        Area::new(middle, shape, reach_m, half_height * unit.metres())
    }

    fn new(middle: Point, shape: Shape, reach_m: f64, north_m: f64) -> Area {
        // The margin is far above any rounding error, so that the exact test decides everything near the border.
        let latitude_reach = degrees(north_m / EARTH_RADIUS_M) * (1.0 + 1e-6) + 1e-6;
        Area { origin: Origin::new(middle), shape, reach_m, latitude_reach }
    }

    /// The place's distance from the middle in metres, when it lies in the area.
    #[inline]
    pub fn distance_m(&self, to: Point) -> Option<f64> {
        let middle = self.origin.point;
        if (to.latitude - middle.latitude).abs() > self.latitude_reach {
            return None;
        }
        match self.shape {
            Shape::Circle { radius } => {
                let distance = self.origin.distance_m(to);
                if distance > radius { None } else { Some(distance) }
            }
            Shape::Rectangle { width, height } => {
                if latitude_distance_m(to.latitude, middle.latitude) > height / 2.0 {
                    return None;
                }
                let beside = Point { longitude: middle.longitude, latitude: to.latitude };
                let outside = Origin::new(to).distance_m(beside) > width / 2.0;
                if outside { None } else { Some(self.origin.distance_m(to)) }
            }
        }
    }

    /// The ranges of scores (from the first, included, to the second, excluded) that hold every place of the area,
    /// in the order in which they are read.
    pub fn score_ranges(&self) -> impl Iterator<Item = (f64, f64)> + use<> {
        let mut last = None;
        let cells = self.cells().into_iter().enumerate().filter_map(move |(index, cell)| {
            let cell = cell.filter(|cell| last != Some(*cell))?;
            // In a grid of two columns the neighbours on both sides are one cell, met twice in a row. The cell in
            // the middle is not compared with.
            last = Some(cell).filter(|_| index > 0);
            Some(cell)
        });
        cells.map(Cell::scores)
    }

    /// The cell of the middle and its neighbours, without those that the area does not reach.
    fn cells(&self) -> [Option<Cell>; 9] {
        const MOVES: [(i32, i32); 9] =
            [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1)];
        let sides = self.sides();
        let cell = self.middle_cell(&sides);
        let own = cell.bounds();
        let needed = |(columns, rows): (i32, i32)| {
            cell.steps < 2
                || !(rows < 0 && own.south < sides.south
                    || rows > 0 && own.north > sides.north
                    || columns < 0 && own.west < sides.west
                    || columns > 0 && own.east > sides.east)
        };
        MOVES.map(|by| needed(by).then(|| cell.moved(by.0, by.1)))
    }

    /// The cell of the middle, in a grid in which the neighbours cover the area, as far as one try more tells.
    fn middle_cell(&self, sides: &Bounds) -> Cell {
        let middle = self.origin.point;
        let steps = steps_for(self.reach_m, middle.latitude);
        let cell = Cell::around(middle, steps);
        let beyond = |columns, rows| cell.moved(columns, rows).bounds();
        let too_fine = beyond(0, 1).north < sides.north
            || beyond(0, -1).south > sides.south
            || beyond(1, 0).east < sides.east
            || beyond(-1, 0).west > sides.west;
        if steps > 1 && too_fine { Cell::around(middle, steps - 1) } else { cell }
    }

    /// A rectangle of degrees around the area. It ends neither at the poles nor at the date line. The sides are as
    /// far apart as at the edge that is nearer to the pole.
    fn sides(&self) -> Bounds {
        let (half_width, half_height) = match self.shape {
            Shape::Circle { radius } => (radius, radius),
            Shape::Rectangle { width, height } => (width / 2.0, height / 2.0),
        };
        let Point { longitude, latitude } = self.origin.point;
        let north = degrees(half_height / EARTH_RADIUS_M);
        let edge = if latitude < 0.0 { latitude - north } else { latitude + north };
        let east = degrees(half_width / EARTH_RADIUS_M / radians(edge).cos());
        Bounds {
            west: longitude - east,
            south: latitude - north,
            east: longitude + east,
            north: latitude + north,
        }
    }
}

/// Steps of the grid whose cells are about as large as the area. Near the poles cells are narrow, so the grid is
/// coarser there.
fn steps_for(reach_m: f64, latitude: f64) -> u32 {
    if reach_m <= 0.0 {
        return STEPS_MAX;
    }
    let (mut size_m, mut steps) = (reach_m, -1_i32);
    while size_m < MAP_HALF_M {
        size_m *= 2.0;
        steps += 1;
    }
    let poleward = latitude.abs();
    steps -= i32::from(poleward > 66.0) + i32::from(poleward > 80.0);
    steps.clamp(1, STEPS_MAX as i32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(longitude: f64, latitude: f64) -> Point {
        Point::new(longitude, latitude).unwrap()
    }

    fn ranges(area: &Area) -> Vec<(f64, f64)> {
        area.score_ranges().collect()
    }

    #[test]
    fn grids_grow_with_the_area_and_towards_the_poles() {
        for (reach_m, latitude, steps) in [
            (0.0, 0.0, 26),
            (f64::MIN_POSITIVE, 0.0, 26),
            (0.1, 0.0, 26),
            (1.0, 0.0, 24),
            (1000.0, 0.0, 14),
            (1000.0, 66.0, 14),
            (1000.0, -66.1, 13),
            (1000.0, 80.1, 12),
            (2e7, 0.0, 1),
            (f64::INFINITY, 85.0, 1),
            (-1.0, 0.0, 26),
            (f64::NAN, 0.0, 1),
        ] {
            assert_eq!(steps_for(reach_m, latitude), steps, "{reach_m} {latitude}");
        }
    }

    #[test]
    fn no_cell_is_read_twice() {
        // Two columns and two rows: four cells, each met several times.
        let all = ranges(&Area::circle(at(1.0, 1.0), f64::INFINITY, Unit::M));
        assert_eq!(all.len(), 4);
        let size = (1_u64 << 50) as f64;
        assert_eq!(all[0], (3.0 * size, 4.0 * size));
        assert!(all.iter().all(|(first, end)| end - first == size));
    }

    #[test]
    fn cells_that_the_area_does_not_reach_are_left_out() {
        // Here a cell of 14 steps, which a kilometre asks for, is 2.4 km wide and 1.2 km high.
        let cell = Cell::around(at(10.0, 10.0), 14);
        let Bounds { west, south, east, north } = cell.bounds();
        let found =
            |longitude, latitude, radius| ranges(&Area::circle(at(longitude, latitude), radius, Unit::M));
        let (middle_x, middle_y) = ((west + east) / 2.0, (south + north) / 2.0);
        let all = |moves: &[(i32, i32)]| -> Vec<(f64, f64)> {
            moves.iter().map(|&(columns, rows)| cell.moved(columns, rows).scores()).collect()
        };
        assert_eq!(found(middle_x, middle_y, 1000.0), all(&[(0, 0), (0, 1), (0, -1)]));
        assert_eq!(found(west + 1e-6, south + 1e-6, 1000.0), all(&[(0, 0), (0, -1), (-1, 0), (-1, -1)]));
        // On the border of two cells neither is left out.
        assert_eq!(found(middle_x, middle_y, 0.0).len(), 4);
        let inside = Point::from_score(cell.scores().0);
        assert_eq!(found(inside.longitude, inside.latitude, 0.0).len(), 1);
    }

    #[test]
    fn units_and_shapes() {
        let middle = at(10.0, 50.0);
        let north = at(10.0, 51.0);
        let metres = latitude_distance_m(50.0, 51.0);
        assert_eq!(Area::circle(middle, metres, Unit::M).distance_m(north), Some(metres));
        assert_eq!(Area::circle(middle, metres * 0.999, Unit::M).distance_m(north), None);
        assert!(Area::circle(middle, metres / 1000.0 * 1.001, Unit::Km).distance_m(north).is_some());
        assert!(Area::rectangle(middle, 0.0, 2.0 * metres, Unit::M).distance_m(north).is_some());
        assert!(Area::rectangle(middle, 1e9, 1.999 * metres, Unit::M).distance_m(north).is_none());
        // A degree of longitude is shorter in the north than in the middle.
        let width = Origin::new(at(10.0, 51.0)).distance_m(at(11.0, 51.0)) * 2.0;
        assert!(Area::rectangle(middle, width * 1.001, 1e9, Unit::M).distance_m(at(11.0, 51.0)).is_some());
        assert!(Area::rectangle(middle, width * 1.001, 1e9, Unit::M).distance_m(at(11.0, 50.0)).is_none());
    }

    proptest! {
        /// Away from the poles and from the date line the ranges miss nothing.
        #[test]
        fn ranges_hold_every_place_of_the_area(
            longitude in -150.0..150.0_f64,
            latitude in -60.0..60.0_f64,
            size_log in 0.0..5.7_f64,
            wide in 0.1..1.0_f64,
            east in -1.2..1.2_f64,
            north in -1.2..1.2_f64,
        ) {
            let (middle, size_m) = (at(longitude, latitude), 10_f64.powf(size_log));
            let degrees_lat = degrees(size_m / EARTH_RADIUS_M);
            let point = at(
                longitude + east * degrees_lat / radians(latitude).cos(),
                latitude + north * degrees_lat,
            );
            let score = point.score();
            let areas = [
                Area::circle(middle, size_m, Unit::M),
                Area::rectangle(middle, 2.0 * size_m * wide, 2.0 * size_m, Unit::M),
                Area::rectangle(middle, 2.0 * size_m, 2.0 * size_m * wide, Unit::M),
            ];
            for area in areas {
                let times = ranges(&area).iter().filter(|(first, end)| (*first..*end).contains(&score)).count();
                let inside = area.distance_m(Point::from_score(score)).is_some();
                prop_assert!(times == 1 || times == 0 && !inside, "{times} {inside}");
            }
        }

        /// The quick test by latitude never contradicts the exact one.
        #[test]
        fn the_quick_test_is_no_stricter(
            latitude in -85.0..85.0_f64,
            radius_log in -1.0..7.5_f64,
            near in -1e-7..1e-7_f64,
            south: bool,
        ) {
            let (middle, radius) = (at(0.0, latitude), 10_f64.powf(radius_log));
            let away = degrees(radius / EARTH_RADIUS_M) * (1.0 + near) * if south { -1.0 } else { 1.0 };
            if let Some(point) = Point::new(0.0, latitude + away) {
                let exact = super::super::distance::distance_m(middle, point) <= radius;
                prop_assert_eq!(Area::circle(middle, radius, Unit::M).distance_m(point).is_some(), exact);
            }
        }
    }
}
