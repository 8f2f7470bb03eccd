//! Running a search, and telling or storing what it found.
//!
//! Must stay true: results that are equally far keep the order in which they were met (Redis promises no order
//! for them where a COUNT cuts them off, and has another); memory grows with what was found, never with a COUNT.
use std::cmp::Ordering;
use std::ops::ControlFlow;

use super::query::{Order, Query};
use super::{Places, write_distance, write_place};
use crate::ds::geo::Point;
use crate::wire::Out;

/// The results of a search, in order.
#[derive(Clone, Debug, Default)]
pub struct Hits {
    /// The names of all hits, one behind the other.
    names: Vec<u8>,
    hits: Vec<Hit>,
}

#[derive(Clone, Copy, Debug)]
struct Hit {
    /// Where its name lies; grows from hit to hit as they are met.
    name: (usize, usize),
    point: Point,
    distance_m: f64,
    score: f64,
}

/// All that `query` finds in `set`, ordered and cut to the count that it asks for.
pub fn search(set: Option<&dyn Places>, query: &Query<'_>) -> Hits {
    let mut found = Hits::default();
    let (Some(set), Some(area)) = (set, query.area) else { return found };
    let enough = query.count.filter(|_| query.any);
    for (first, end) in area.score_ranges() {
        let mut visit = |name: &[u8], score: f64| {
            let point = Point::from_score(score);
            if let Some(distance_m) = area.distance_m(point) {
                found.push(name, point, distance_m, score);
            }
            let full = enough.is_some_and(|enough| found.len() >= enough);
            if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        if set.range(first, end, &mut visit).is_break() {
            break;
        }
    }
    found.arrange(query.order, query.count.unwrap_or(usize::MAX));
    found
}

/// The reply of a search without a target.
pub fn reply(set: Option<&dyn Places>, query: &Query<'_>, out: &mut Out) {
    search(set, query).write(query, out);
}

impl Hits {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.hits.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.hits.is_empty()
    }

    fn push(&mut self, name: &[u8], point: Point, distance_m: f64, score: f64) {
        let start = self.names.len();
        self.names.extend_from_slice(name);
        self.hits.push(Hit { name: (start, self.names.len()), point, distance_m, score });
    }

    /// Orders the hits and keeps the first `count`.
    fn arrange(&mut self, order: Order, count: usize) {
        let compare: fn(&Hit, &Hit) -> Ordering = match order {
            Order::Met => return self.hits.truncate(count),
            Order::Near => |a, b| a.distance_m.total_cmp(&b.distance_m).then(a.name.cmp(&b.name)),
            Order::Far => |a, b| b.distance_m.total_cmp(&a.distance_m).then(a.name.cmp(&b.name)),
        };
        if count < self.hits.len() {
            self.hits.select_nth_unstable_by(count, compare);
            self.hits.truncate(count);
        }
        self.hits.sort_unstable_by(compare);
    }

    fn name(&self, hit: &Hit) -> &[u8] {
        &self.names[hit.name.0..hit.name.1]
    }

    /// Members and scores for the sorted set that GEOSEARCHSTORE and kin make.
    pub fn scored(&self, query: &Query<'_>) -> impl ExactSizeIterator<Item = (&[u8], f64)> {
        let distances = query.target.is_some_and(|target| target.distances);
        let metres = query.unit.metres();
        self.hits
            .iter()
            .map(move |hit| (self.name(hit), if distances { hit.distance_m / metres } else { hit.score }))
    }

    /// Tells the hits to the client.
    pub fn write(&self, query: &Query<'_>, out: &mut Out) {
        let with = query.with;
        out.array(self.len());
        for hit in &self.hits {
            if with.count() > 0 {
                out.array(1 + with.count());
            }
            out.bulk(self.name(hit));
            if with.distance {
                write_distance(hit.distance_m, query.unit, out);
            }
            if with.hash {
                out.int(hit.score as i64);
            }
            if with.place {
                write_place(hit.point, out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake::{Server, Set, with_args};
    use super::super::query::{Form, parse};
    use super::*;

    /// From a Redis 8.0.6 server, the members that it misses at the edges of the map among them.
    #[test]
    fn what_searches_find() {
        Server::with_places().check(&[
            ("geosearch g fromlonlat 15 37 byradius 200 km asc", "*3|$7|Catania|$9|Agrigento|$7|Palermo|"),
            ("geosearch g fromlonlat 15 37 bybox 400 400 km asc withcoord withdist", "*5|*3|$7|Catania|$7|56.4413|*2|$18|15.087267458438873|$17|37.50266842333162|*3|$9|Agrigento|$8|130.4235|*2|$18|13.583331406116486|$18|37.316668049938166|*3|$7|Palermo|$8|190.4424|*2|$18|13.361389338970184|$16|38.1155563954963|*3|$5|edge2|$8|279.7403|*2|$18|17.241510450839996|$17|38.78813451624225|*3|$5|edge1|$8|279.7405|*2|$17|12.75848776102066|$17|38.78813451624225|"),
            ("geosearch g fromlonlat 15 37 bybox 400 400 km desc count 2", "*2|$5|edge1|$5|edge2|"),
            ("geosearch g fromlonlat 15 37 byradius 200 km", "*3|$9|Agrigento|$7|Palermo|$7|Catania|"),
            ("geosearch g frommember Palermo byradius 100 mi withhash withdist", "*3|*3|$9|Agrigento|$7|56.5311|:3479030013248308|*3|$7|Palermo|$6|0.0000|:3479099956230698|*3|$5|edge1|$7|56.7939|:3479273021651468|"),
            ("geosearch g frommember Palermo byradius 300 km count 2 any", "*2|$9|Agrigento|$7|Palermo|"),
            ("geosearch g frommember Palermo byradius 300 km any count 2 desc", "*2|$9|Agrigento|$7|Palermo|"),
            ("geosearch g fromlonlat 0 0 byradius inf m", "*8|$9|Agrigento|$7|Palermo|$5|edge1|$7|Catania|$5|edge2|$6|sydney|$4|west|$2|ny|"),
            ("geosearch g fromlonlat 180 1 byradius 10 m", "*1|$4|east|"),
            ("geosearch g frommember west byradius 10 m", "*1|$4|west|"),
            ("geosearch g fromlonlat 179.9 85.05112878 byradius 5000 km", "*1|$3|top|"),
            ("geosearch g fromlonlat 179 0 bybox 1000 1000 km", "*1|$4|west|"),
            ("geosearch g frommember ny byradius 0 m withdist", "*1|*2|$2|ny|$6|0.0000|"),
            ("geosearch g frommember sydney bybox 0 0 ft", "*1|$6|sydney|"),
            ("geosearch g fromlonlat 1 1 byradius 1 m", "*0|"),
            ("geosearch none fromlonlat 1 1 byradius 1 m", "*0|"),
            ("georadius g 15 37 200 KM WITHDIST WITHCOORD WITHHASH ASC COUNT 1", "*1|*4|$7|Catania|$7|56.4413|:3479447370796909|*2|$18|15.087267458438873|$17|37.50266842333162|"),
            ("georadius_ro g 15 37 200000 m count 9223372036854775807", "*3|$7|Catania|$9|Agrigento|$7|Palermo|"),
            ("georadiusbymember g Agrigento 100 km", "*2|$9|Agrigento|$7|Palermo|"),
            ("georadiusbymember_ro g Agrigento 328083 ft desc", "*2|$7|Palermo|$9|Agrigento|"),
            ("geosearchstore d g fromlonlat 15 37 byradius 200 km", ":3|"),
            ("georadius_ro d 0 0 inf m withhash", "*3|*2|$9|Agrigento|:3479030013248308|*2|$7|Palermo|:3479099956230698|*2|$7|Catania|:3479447370796909|"),
            ("georadius g 15 37 200 km count 2 desc storedist d", ":2|"),
            ("georadius_ro d 0 0 inf m withhash", "*2|*2|$9|Agrigento|:130|*2|$7|Palermo|:190|"),
            ("georadiusbymember g Palermo 1 km store d", ":1|"),
            ("georadius_ro d 0 0 inf m withhash", "*1|*2|$7|Palermo|:3479099956230698|"),
            ("georadius g 0 0 1 m storedist d", ":0|"),
            ("georadius_ro d 0 0 inf m withhash", "*0|"),
            ("geosearchstore d g frommember Palermo bybox 200 200 km storedist", ":3|"),
            ("georadius_ro d 0 0 inf m", "*3|$7|Palermo|$9|Agrigento|$5|edge1|"),
            ("georadiusbymember none x huh huh store d", ":0|"),
            ("georadius_ro d 0 0 inf m withhash", "*0|"),
        ]);
    }

    fn names(hits: &Hits) -> Vec<&str> {
        hits.hits.iter().map(|hit| std::str::from_utf8(hits.name(hit)).unwrap()).collect()
    }

    /// A set of twenty members at two places.
    fn crowd() -> Set {
        let mut set = Set::default();
        for i in 0..20 {
            let point = Point::new(10.0 + f64::from(i % 2), 20.0).unwrap();
            set.put(point.score(), format!("m{i:02}").as_bytes());
        }
        set
    }

    fn found(set: &Set, options: &[&[u8]]) -> Hits {
        let area: [&[u8]; 8] = [b"s", b"g", b"fromlonlat", b"10", b"20", b"byradius", b"500", b"km"];
        let words = [&area, options].concat();
        with_args(&words, |mut args| {
            let query = parse(Form::Search, &mut args, Some(set)).unwrap();
            search(Some(set), &query)
        })
    }

    #[test]
    fn equally_far_members_stay_in_order() {
        let set = crowd();
        let even: Vec<String> = (0..10).map(|i| format!("m{:02}", 2 * i)).collect();
        let near = found(&set, &[b"asc"]);
        assert_eq!(names(&near)[..10], even[..]);
        let far = found(&set, &[b"desc"]);
        assert_eq!(names(&far)[10..], even[..]);
        assert_eq!(names(&found(&set, &[b"count", b"3"])), ["m00", "m02", "m04"]);
        assert_eq!(names(&found(&set, &[b"count", b"12", b"desc"]))[8..], ["m17", "m19", "m00", "m02"]);
    }

    #[test]
    fn a_search_for_any_stops_early() {
        struct Counted(Set, std::cell::Cell<usize>);
        impl Places for Counted {
            fn score(&self, member: &[u8]) -> Option<f64> {
                self.0.score(member)
            }
            fn range(
                &self,
                first: f64,
                end: f64,
                visit: &mut dyn FnMut(&[u8], f64) -> ControlFlow<()>,
            ) -> ControlFlow<()> {
                self.0.range(first, end, &mut |name, score| {
                    self.1.set(self.1.get() + 1);
                    visit(name, score)
                })
            }
        }
        let set = Counted(crowd(), Default::default());
        let words: &[&[u8]] =
            &[b"s", b"g", b"fromlonlat", b"10", b"20", b"byradius", b"500", b"km", b"count", b"2", b"any"];
        let len = with_args(words, |mut args| {
            let query = parse(Form::Search, &mut args, Some(&set)).unwrap();
            search(Some(&set), &query).len()
        });
        assert_eq!((len, set.1.get()), (2, 2));
    }
}
