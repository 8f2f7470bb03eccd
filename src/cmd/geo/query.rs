//! The arguments of the searches: GEOSEARCH, GEORADIUS and their kin.
//!
//! Must stay true: arguments are read from left to right, and a member that a search starts from is looked up where
//! it stands, so that the first mistake of several is the one reported. What only a set could tell stays unread
//! when there is none.
use super::{Places, number, place, place_of, unit};
use crate::ds::geo::Point;
use crate::ds::geo::area::Area;
use crate::ds::geo::distance::Unit;
use crate::wire::{Args, Error, Key};

/// Which command asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// GEORADIUS.
    Radius,
    /// GEORADIUS_RO.
    RadiusRo,
    /// GEORADIUSBYMEMBER.
    ByMember,
    /// GEORADIUSBYMEMBER_RO.
    ByMemberRo,
    /// GEOSEARCH.
    Search,
    /// GEOSEARCHSTORE.
    SearchStore,
}

impl Form {
    /// Index of the argument that names the index to search.
    pub fn source_index(self) -> usize {
        if self == Form::SearchStore { 2 } else { 1 }
    }

    /// The keyspace event of a stored result.
    pub fn store_event(self) -> &'static str {
        if self == Form::SearchStore { "geosearchstore" } else { "georadiusstore" }
    }

    fn is_search(self) -> bool {
        matches!(self, Form::Search | Form::SearchStore)
    }

    /// Whether STORE and STOREDIST may name a key.
    fn may_store(self) -> bool {
        matches!(self, Form::Radius | Form::ByMember)
    }
}

/// The order of the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As they are met.
    Met,
    /// Nearest first.
    Near,
    /// Farthest first.
    Far,
}

/// What is told of each result beside its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct With {
    /// Its distance from the middle.
    pub distance: bool,
    /// Its score.
    pub hash: bool,
    /// Its place.
    pub place: bool,
}

impl With {
    /// How many things that is.
    pub fn count(self) -> usize {
        usize::from(self.distance) + usize::from(self.hash) + usize::from(self.place)
    }
}

/// Where the results go instead of to the client.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The key.
    pub key: Key<'a>,
    /// Distances become the scores, not geohashes.
    pub distances: bool,
}

/// A search, ready to run.
#[derive(Clone, Debug)]
pub struct Query<'a> {
    /// Where to search. `None` only when there is no set, and then perhaps.
    pub area: Option<Area>,
    /// The unit of distances.
    pub unit: Unit,
    /// Order of the results.
    pub order: Order,
    /// Most results.
    pub count: Option<usize>,
    /// The first results met will do.
    pub any: bool,
    /// What is told of each.
    pub with: With,
    /// Where they go.
    pub target: Option<Target<'a>>,
}

/// Reads all arguments. `set` is the index to search, whose type is known to be right.
///
/// # Errors
/// The first mistake.
pub fn parse<'a>(form: Form, args: &mut Args<'a>, set: Option<&dyn Places>) -> Result<Query<'a>, Error> {
    let mut reader = Reader::new(form, set);
    reader.fixed(args)?;
    while !args.is_done() {
        reader.option(args)?;
    }
    reader.finish(args.get(0))
}

/// The middle of the area.
#[derive(Clone, Copy, Debug)]
enum From {
    /// `None`: there is no set, and so no member.
    Member(Option<Point>),
    Place(Point),
}

/// The extent of the area.
#[derive(Clone, Copy, Debug)]
enum By {
    Radius(f64),
    Box { width: f64, height: f64 },
}

/// What was read so far.
struct Reader<'a, 's> {
    form: Form,
    set: Option<&'s dyn Places>,
    from: Option<From>,
    by: Option<(By, Unit)>,
    order: Order,
    count: Option<usize>,
    any: bool,
    with: With,
    target: Option<Target<'a>>,
}

impl<'a, 's> Reader<'a, 's> {
    fn new(form: Form, set: Option<&'s dyn Places>) -> Self {
        Reader {
            form,
            set,
            from: None,
            by: None,
            order: Order::Met,
            count: None,
            any: false,
            with: With::default(),
            target: None,
        }
    }

    /// The arguments in front of the options.
    fn fixed(&mut self, args: &mut Args<'a>) -> Result<(), Error> {
        args.seek(1);
        match self.form {
            Form::SearchStore => {
                self.target = Some(Target { key: args.key()?, distances: false });
                args.skip();
            }
            Form::Search => args.skip(),
            Form::Radius | Form::RadiusRo => {
                args.skip();
                self.from = Some(From::Place(place(args)?));
                self.by = Some(radius(args)?);
            }
            Form::ByMember | Form::ByMemberRo if self.set.is_none() => args.seek(5),
            Form::ByMember | Form::ByMemberRo => {
                args.skip();
                self.from = Some(self.member(args)?);
                self.by = Some(radius(args)?);
            }
        }
        Ok(())
    }

    /// A member to start from, at the cursor.
    fn member(&self, args: &mut Args<'a>) -> Result<From, Error> {
        let name = args.bytes()?;
        let Some(set) = self.set else { return Ok(From::Member(None)) };
        let point = place_of(set, name);
        match point {
            Some(_) => Ok(From::Member(point)),
            None => Err(Error::err("could not decode requested zset member")),
        }
    }

    /// One option. A word without all its arguments counts as unknown.
    fn option(&mut self, args: &mut Args<'a>) -> Result<(), Error> {
        if args.keyword("WITHDIST") {
            self.with.distance = true;
        } else if args.keyword("WITHHASH") {
            self.with.hash = true;
        } else if args.keyword("WITHCOORD") {
            self.with.place = true;
        } else if args.keyword("ANY") {
            self.any = true;
        } else if args.keyword("ASC") {
            self.order = Order::Near;
        } else if args.keyword("DESC") {
            self.order = Order::Far;
        } else if args.left() >= 2 && args.keyword("COUNT") {
            self.count = Some(count(args)?);
        } else if self.form.is_search() {
            return self.area_option(args);
        } else {
            return self.store_option(args);
        }
        Ok(())
    }

    /// An option of the older commands only.
    fn store_option(&mut self, args: &mut Args<'a>) -> Result<(), Error> {
        if !self.form.may_store() || args.left() < 2 {
            return Err(Error::Syntax);
        }
        let distances = args.keyword("STOREDIST");
        if !distances && !args.keyword("STORE") {
            return Err(Error::Syntax);
        }
        self.target = Some(Target { key: args.key()?, distances });
        Ok(())
    }

    /// An option of the newer commands only. Each part of the area may be given again, but in the same way.
    fn area_option(&mut self, args: &mut Args<'a>) -> Result<(), Error> {
        let left = args.left();
        let from_member = matches!(self.from, Some(From::Member(_)));
        let from_place = matches!(self.from, Some(From::Place(_)));
        let by_radius = matches!(self.by, Some((By::Radius(_), _)));
        let by_box = matches!(self.by, Some((By::Box { .. }, _)));
        if let Some(target) = &mut self.target
            && args.keyword("STOREDIST")
        {
            target.distances = true;
        } else if left >= 2 && !from_place && args.keyword("FROMMEMBER") {
            self.from = Some(self.member(args)?);
        } else if left >= 3 && !from_member && args.keyword("FROMLONLAT") {
            self.from = Some(From::Place(place(args)?));
        } else if left >= 3 && !by_box && args.keyword("BYRADIUS") {
            self.by = Some(radius(args)?);
        } else if left >= 4 && !by_radius && args.keyword("BYBOX") {
            self.by = Some(width_and_height(args)?);
        } else {
            return Err(Error::Syntax);
        }
        Ok(())
    }

    /// What options demand of each other. `name` is the command as the client wrote it.
    fn finish(self, name: &[u8]) -> Result<Query<'a>, Error> {
        let name = String::from_utf8_lossy(name);
        if self.target.is_some() && self.with.count() > 0 {
            let what = if self.form.is_search() { "GEOSEARCHSTORE" } else { "STORE option in GEORADIUS" };
            return Err(Error::err(format!(
                "{what} is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
            )));
        }
        if self.form.is_search() && self.from.is_none() {
            return Err(Error::err(format!(
                "exactly one of FROMMEMBER or FROMLONLAT can be specified for {name}"
            )));
        }
        if self.form.is_search() && self.by.is_none() {
            return Err(Error::err(format!("exactly one of BYRADIUS and BYBOX can be specified for {name}")));
        }
        if self.any && self.count.is_none() {
            return Err(Error::err("the ANY argument requires COUNT argument"));
        }
        // Some of the results are the nearest ones, unless any will do.
        let nearest = self.count.is_some() && self.order == Order::Met && !self.any;
        Ok(Query {
            area: self.area(),
            unit: self.by.map_or(Unit::M, |(_, unit)| unit),
            order: if nearest { Order::Near } else { self.order },
            count: self.count,
            any: self.any,
            with: self.with,
            target: self.target,
        })
    }

    fn area(&self) -> Option<Area> {
        let (Some(From::Place(middle)) | Some(From::Member(Some(middle)))) = self.from else { return None };
        let (by, unit) = self.by?;
        Some(match by {
            By::Radius(radius) => Area::circle(middle, radius, unit),
            By::Box { width, height } => Area::rectangle(middle, width, height, unit),
        })
    }
}

fn count(args: &mut Args<'_>) -> Result<usize, Error> {
    let count = args.int()?;
    if count <= 0 {
        return Err(Error::err("COUNT must be > 0"));
    }
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

fn radius(args: &mut Args<'_>) -> Result<(By, Unit), Error> {
    let radius = number(args, || Error::err("need numeric radius"))?;
    if radius < 0.0 {
        return Err(Error::err("radius cannot be negative"));
    }
    Ok((By::Radius(radius), unit(args)?))
}

fn width_and_height(args: &mut Args<'_>) -> Result<(By, Unit), Error> {
    let width = number(args, || Error::err("need numeric width"))?;
    let height = number(args, || Error::err("need numeric height"))?;
    if width < 0.0 || height < 0.0 {
        return Err(Error::err("height or width cannot be negative"));
    }
    Ok((By::Box { width, height }, unit(args)?))
}

#[cfg(test)]
mod tests {
    use super::super::fake::{Server, with_args};
    use super::*;

    fn query_of<T>(form: Form, line: &str, f: impl FnOnce(Query<'_>) -> T) -> T {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        with_args(&words, |mut args| f(parse(form, &mut args, None).unwrap()))
    }

    /// From a Redis 8.0.6 server.
    #[test]
    fn the_first_mistake_is_reported() {
        Server::with_places().check(&[
            ("geosearch g fromlonlat 1 2 byradius 3 m count 0", "-ERR COUNT must be > 0|"),
            ("geosearch g fromlonlat 1 2 byradius 3 m count x", "-ERR value is not an integer or out of range|"),
            ("geosearch g fromlonlat 1 2 byradius 3 m count", "-ERR syntax error|"),
            ("geosearch g fromlonlat 1 2 byradius 3 m any", "-ERR the ANY argument requires COUNT argument|"),
            ("GeoSearch g byradius 3 m asc desc", "-ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for GeoSearch|"),
            ("geosearchSTORE d g fromlonlat 1 2 asc desc asc", "-ERR exactly one of BYRADIUS and BYBOX can be specified for geosearchSTORE|"),
            ("geosearch g fromlonlat 1 2 frommember Palermo byradius 3 m", "-ERR syntax error|"),
            ("geosearch g frommember Palermo fromlonlat 1 2 byradius 3 m", "-ERR syntax error|"),
            ("geosearch g fromlonlat 1 2 byradius 3 m bybox 1 2 m", "-ERR syntax error|"),
            ("geosearch g fromlonlat 1 2 bybox 3 3 m byradius 2 m", "-ERR syntax error|"),
            ("geosearch g frommember nobody byradius x m huh", "-ERR could not decode requested zset member|"),
            ("geosearch none frommember nobody byradius x m huh", "-ERR need numeric radius|"),
            ("geosearch g frommember nobody huh huh huh", "-ERR could not decode requested zset member|"),
            ("geosearch g huh frommember nobody byradius 3 m", "-ERR syntax error|"),
            ("geosearch g fromlonlat 1 2 byradius x m", "-ERR need numeric radius|"),
            ("geosearch g fromlonlat 1 2 byradius -1 huh", "-ERR radius cannot be negative|"),
            ("geosearch g fromlonlat 1 2 byradius 1 huh", "-ERR unsupported unit provided. please use M, KM, FT, MI|"),
            ("geosearch g fromlonlat 1 2 bybox x y m", "-ERR need numeric width|"),
            ("geosearch g fromlonlat 1 2 bybox 1 y m", "-ERR need numeric height|"),
            ("geosearch g fromlonlat 1 2 bybox 1 -1 m", "-ERR height or width cannot be negative|"),
            ("geosearch g fromlonlat 1 2 bybox 1 1 huh", "-ERR unsupported unit provided. please use M, KM, FT, MI|"),
            ("geosearch g fromlonlat 1 2 bybox 1 1 asc desc", "-ERR unsupported unit provided. please use M, KM, FT, MI|"),
            ("geosearch g fromlonlat 200 2 byradius 1 m", "-ERR invalid longitude,latitude pair 200.000000,2.000000|"),
            ("geosearch g fromlonlat x 2 byradius 1 m", "-ERR value is not a valid float|"),
            ("geosearch g fromlonlat 1 2 byradius 3 m storedist", "-ERR syntax error|"),
            ("geosearch g fromlonlat 1 2 byradius 3 m store d", "-ERR syntax error|"),
            ("geosearchstore d g fromlonlat 1 2 byradius 3 m withdist", "-ERR GEOSEARCHSTORE is not compatible with WITHDIST, WITHHASH and WITHCOORD options|"),
            ("geosearchstore d g fromlonlat 1 2 byradius 3 m store d", "-ERR syntax error|"),
            ("georadius g 1 2 3 m store d withcoord", "-ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORD options|"),
            ("georadius_ro g 1 2 3 m store d", "-ERR syntax error|"),
            ("georadius g 1 2 3 m store", "-ERR syntax error|"),
            ("georadius g 1 2 3 m bybox 1 2 m", "-ERR syntax error|"),
            ("georadius g 1 99 x huh huh", "-ERR invalid longitude,latitude pair 1.000000,99.000000|"),
            ("georadius g 1 2 x huh huh", "-ERR need numeric radius|"),
            ("georadius none 1 2 3 huh huh", "-ERR unsupported unit provided. please use M, KM, FT, MI|"),
            ("georadiusbymember g nobody x huh huh", "-ERR could not decode requested zset member|"),
            ("georadiusbymember g Palermo x huh huh", "-ERR need numeric radius|"),
            ("georadiusbymember none x huh huh", "*0|"),
            ("georadiusbymember none x huh huh huh", "-ERR syntax error|"),
            ("georadius g 1 2 3 m any", "-ERR the ANY argument requires COUNT argument|"),
            ("geosearch none byradius 3 m asc desc", "-ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for geosearch|"),
        ]);
    }

    #[test]
    fn a_count_asks_for_the_nearest() {
        let order = |options: &str| {
            let line = format!("geosearch none fromlonlat 1 2 byradius 3 m {options}");
            query_of(Form::Search, line.trim_end(), |query| query.order)
        };
        assert_eq!(order(""), Order::Met);
        assert_eq!(order("count 1"), Order::Near);
        assert_eq!(order("count 1 any"), Order::Met);
        assert_eq!(order("count 1 desc"), Order::Far);
        assert_eq!(order("desc any count 1 asc"), Order::Near);
    }

    #[test]
    fn targets() {
        let target = |form, line: &str| {
            query_of(form, line, |query| query.target.map(|t| (t.key.bytes.to_vec(), t.distances)))
        };
        let named = |key: &[u8], distances| Some((key.to_vec(), distances));
        assert_eq!(target(Form::SearchStore, "s d g fromlonlat 1 2 bybox 1 1 m"), named(b"d", false));
        assert_eq!(
            target(Form::SearchStore, "s d g fromlonlat 1 2 bybox 1 1 m storeDist"),
            named(b"d", true)
        );
        assert_eq!(target(Form::Radius, "r g 1 2 3 m"), None);
        assert_eq!(target(Form::Radius, "r g 1 2 3 m store a storedist b"), named(b"b", true));
        assert_eq!(target(Form::ByMember, "r g x 3 m storedist a store b"), named(b"b", false));
    }

    #[test]
    fn an_area_needs_a_known_middle() {
        let known = |form, line: &str| query_of(form, line, |query| query.area.is_some());
        assert!(known(Form::Search, "s g fromlonlat 1 2 byradius 3 m"));
        assert!(!known(Form::Search, "s g frommember x byradius 3 m"));
        assert!(!known(Form::ByMemberRo, "r g x 3 m"));
    }
}
