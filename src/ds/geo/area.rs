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
