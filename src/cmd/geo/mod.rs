//! Geospatial indexes: rows, and what the handlers of the family share.
//!
//! An index is a sorted set whose scores are geohashes (`ds::geo`). Everything here works on [`Places`], the little
//! that the family wants from a sorted set; the handlers reach the stored set.
//!
//! Must stay true: a set is looked up, and its type checked, before arguments are read, except by GEOADD and
//! GEODIST; a search tells its mistakes in the order in which the arguments stand.
pub mod add;
#[cfg(test)]
mod fake;
mod handlers;
pub mod query;
pub mod search;

use std::ops::ControlFlow;

use super::spec::{Group::Geo as G, KeyPart, Spec, flag, key, key_behind, keys};
use crate::base::num;
use crate::ds::geo::Point;
use crate::ds::geo::distance::{Unit, append_distance, distance_m};
use crate::store::news::class;
use crate::wire::{Args, Error, Out};

/// A sorted set, as this family sees it.
pub trait Places {
    /// A member's score.
    fn score(&self, member: &[u8]) -> Option<f64>;

    /// Calls `visit` with every member whose score is at least `first` and below `end`, ordered by score and then
    /// by bytes, until it breaks. Returns the break.
    fn range(
        &self,
        first: f64,
        end: f64,
        visit: &mut dyn FnMut(&[u8], f64) -> ControlFlow<()>,
    ) -> ControlFlow<()>;
}

const RADIUS_COST: &str = "O(N+log(M)) where N is the number of members in the square around the circle and M is the number of members of the index.";
const SEARCH_COST: &str = "O(N+log(M)) where N is the number of members in the grid cells around the area and M is the number of members of the index.";
const EACH_COST: &str = "O(1) for each member.";

/// Where GEORADIUS searches and may store.
const RADIUS_KEYS: &[KeyPart] =
    &[key("RO access", 1), key_behind("OW update", "STORE", 6), key_behind("OW update", "STOREDIST", 6)];
/// Where GEORADIUSBYMEMBER searches and may store.
const BY_MEMBER_KEYS: &[KeyPart] =
    &[key("RO access", 1), key_behind("OW update", "STORE", 5), key_behind("OW update", "STOREDIST", 5)];
/// Where GEOSEARCHSTORE stores and searches.
const STORE_KEYS: &[KeyPart] = &[key("OW update", 1), key("RO access", 2)];

/// The rows.
pub const COMMANDS: &[Spec] = &[
        Spec::write(
            "geoadd",
            "key [NX|XX] [CH] longitude latitude member [longitude latitude member ...]",
            handlers::geoadd,
        )
        .event(class::SORTED_SET, "zadd")
        .doc(
            G,
            "3.2.0",
            "Adds members with their places to a geospatial index; makes the key when it does not exist.",
        )
        .cost("O(log(N)) for each member added, where N is the number of members of the index.")
        .keys(keys::UPDATE)
        .with(flag::DENYOOM),
        Spec::read("geodist", "key member1 member2 [M|KM|FT|MI]", handlers::geodist)
            .doc(G, "3.2.0", "Returns the distance between two members of a geospatial index.")
            .keys(keys::READ),
        Spec::read("geohash", "key [member [member ...]]", handlers::geohash)
            .doc(G, "3.2.0", "Returns the places of members of a geospatial index as geohash texts.")
            .cost(EACH_COST)
            .keys(keys::READ),
        Spec::read("geopos", "key [member [member ...]]", handlers::geopos)
            .doc(G, "3.2.0", "Returns the longitudes and latitudes of members of a geospatial index.")
            .cost(EACH_COST)
            .keys(keys::READ),
        Spec::write(
            "georadius",
            "key longitude latitude radius M|KM|FT|MI [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC|DESC] [STORE storekey|STOREDIST storedistkey]",
            handlers::georadius,
        )
        .event(class::SORTED_SET, "georadiusstore")
        .doc(G, "3.2.0", "Finds or stores the members of a geospatial index within a distance of a place; superseded by GEOSEARCH and GEOSEARCHSTORE.")
        .cost(RADIUS_COST)
        .keys(RADIUS_KEYS)
        .with(flag::DENYOOM | flag::MOVABLEKEYS),
        Spec::read(
            "georadius_ro",
            "key longitude latitude radius M|KM|FT|MI [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC|DESC]",
            handlers::georadius_ro,
        )
        .doc(G, "3.2.10", "Finds the members of a geospatial index within a distance of a place; superseded by GEOSEARCH.")
        .cost(RADIUS_COST)
        .keys(keys::READ),
        Spec::write(
            "georadiusbymember",
            "key member radius M|KM|FT|MI [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC|DESC] [STORE storekey|STOREDIST storedistkey]",
            handlers::georadiusbymember,
        )
        .event(class::SORTED_SET, "georadiusstore")
        .doc(G, "3.2.0", "Finds or stores the members of a geospatial index within a distance of a member; superseded by GEOSEARCH and GEOSEARCHSTORE.")
        .cost(RADIUS_COST)
        .keys(BY_MEMBER_KEYS)
        .with(flag::DENYOOM | flag::MOVABLEKEYS),
        Spec::read(
            "georadiusbymember_ro",
            "key member radius M|KM|FT|MI [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC|DESC]",
            handlers::georadiusbymember_ro,
        )
        .doc(G, "3.2.10", "Finds the members of a geospatial index within a distance of a member; superseded by GEOSEARCH.")
        .cost(RADIUS_COST)
        .keys(keys::READ),
        Spec::read(
            "geosearch",
            "key <FROMMEMBER member|FROMLONLAT longitude latitude> <BYRADIUS radius <M|KM|FT|MI>|BYBOX width height <M|KM|FT|MI>> [ASC|DESC] [COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]",
            handlers::geosearch,
        )
        .doc(G, "6.2.0", "Finds the members of a geospatial index in a circle or a rectangle.")
        .cost(SEARCH_COST)
        .keys(keys::READ),
        Spec::write(
            "geosearchstore",
            "destination source <FROMMEMBER member|FROMLONLAT longitude latitude> <BYRADIUS radius <M|KM|FT|MI>|BYBOX width height <M|KM|FT|MI>> [ASC|DESC] [COUNT count [ANY]] [STOREDIST]",
            handlers::geosearchstore,
        )
        .event(class::SORTED_SET, "geosearchstore")
        .doc(G, "6.2.0", "Stores the members of a geospatial index that lie in a circle or a rectangle.")
        .cost(SEARCH_COST)
        .keys(STORE_KEYS)
        .with(flag::DENYOOM),
];

/// The place of a member.
fn place_of(set: &dyn Places, member: &[u8]) -> Option<Point> {
    set.score(member).map(Point::from_score)
}

/// Longitude and latitude at the cursor.
fn place(args: &mut Args<'_>) -> Result<Point, Error> {
    let longitude = number(args, || Error::NotFloat)?;
    let latitude = number(args, || Error::NotFloat)?;
    Point::new(longitude, latitude)
        .ok_or_else(|| Error::err(format!("invalid longitude,latitude pair {longitude:.6},{latitude:.6}")))
}

/// A number at the cursor, or the refusal `wrong`.
fn number(args: &mut Args<'_>, wrong: impl Fn() -> Error) -> Result<f64, Error> {
    num::parse_f64(args.bytes()?).ok_or_else(wrong)
}

/// The name of a unit at the cursor.
fn unit(args: &mut Args<'_>) -> Result<Unit, Error> {
    Unit::parse(args.bytes()?)
        .ok_or_else(|| Error::err("unsupported unit provided. please use M, KM, FT, MI"))
}

/// The unit that GEODIST is asked for. Read before the set is looked up.
fn geodist_unit(args: &Args<'_>) -> Result<Unit, Error> {
    match args.count() {
        ..=4 => Ok(Unit::M),
        5 => {
            let mut last = args.clone();
            last.seek(4);
            unit(&mut last)
        }
        _ => Err(Error::Syntax),
    }
}

/// The reply of GEODIST, the same text in both protocols.
fn geodist(set: Option<&dyn Places>, args: &Args<'_>, unit: Unit, out: &mut Out) {
    let places = set.and_then(|set| Some((place_of(set, args.get(2))?, place_of(set, args.get(3))?)));
    match places {
        Some((a, b)) => write_distance(distance_m(a, b), unit, out),
        None => out.null(),
    }
}

/// The reply of GEOPOS: a place or nothing for each argument behind the key.
fn geopos(set: Option<&dyn Places>, args: &mut Args<'_>, out: &mut Out) {
    args.seek(2);
    out.array(args.left());
    for member in args.rest() {
        match set.and_then(|set| place_of(set, member)) {
            Some(point) => write_place(point, out),
            None => out.null_array(),
        }
    }
}

/// The reply of GEOHASH: a text or nothing for each argument behind the key.
fn geohash(set: Option<&dyn Places>, args: &mut Args<'_>, out: &mut Out) {
    args.seek(2);
    out.array(args.left());
    for member in args.rest() {
        match set.and_then(|set| place_of(set, member)) {
            Some(point) => out.bulk(&point.geohash()),
            None => out.null(),
        }
    }
}

fn write_distance(metres: f64, unit: Unit, out: &mut Out) {
    let mut text = Vec::with_capacity(24);
    append_distance(metres / unit.metres(), &mut text);
    out.bulk(&text);
}

fn write_place(point: Point, out: &mut Out) {
    out.array(2);
    out.double(point.longitude);
    out.double(point.latitude);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::laws::check_rows;
    use crate::cmd::table::Row;
    use crate::wire::Protocol;

    #[test]
    fn rows_keep_the_laws() {
        let rows: Vec<Row> = COMMANDS.iter().map(|spec| Row::new(spec, 0)).collect();
        assert_eq!(check_rows(&rows), Vec::<String>::new());
        let arities: Vec<i32> = COMMANDS.iter().map(|spec| spec.arity).collect();
        assert_eq!(arities, [-5, -4, -2, -2, -6, -6, -5, -5, -7, -8]);
        assert!(COMMANDS.iter().all(|spec| spec.all_categories().contains(&"geo")));
    }

    #[test]
    fn replies_about_members() {
        fake::Server::with_places().check(&[
            ("geodist g Catania sydney", "$13|16071911.2391|"),
            ("geodist g Catania sydney MI", "$9|9986.6475|"),
            ("geodist g Catania nobody", "$-1|"),
            ("geodist none Catania sydney", "$-1|"),
            ("geohash g Catania nobody sydney", "*3|$11|sqdtr74hyu0|$-1|$11|r3gx2f77bj0|"),
            ("geohash g", "*0|"),
            ("geohash none a", "*1|$-1|"),
            ("geopos none a", "*1|*-1|"),
            ("geopos g", "*0|"),
        ]);
    }

    #[test]
    fn mistakes_of_geodist() {
        fake::Server::with_places().check(&[
            ("geodist g Palermo Catania huh", "-ERR unsupported unit provided. please use M, KM, FT, MI|"),
            ("geodist g Palermo Catania m m", "-ERR syntax error|"),
            ("geodist none a b huh", "-ERR unsupported unit provided. please use M, KM, FT, MI|"),
        ]);
    }

    #[test]
    fn replies_in_the_newer_protocol() {
        let mut server = fake::Server::with_places();
        let mut reply = |words: &[&[u8]]| server.run(words, Protocol::Resp3);
        assert_eq!(
            reply(&[b"geopos", b"g", b"east", b"nobody"]),
            b"*2\r\n*2\r\n,180\r\n,0.9999994591429768\r\n_\r\n"
        );
        assert_eq!(reply(&[b"geohash", b"g", b"nobody"]), b"*1\r\n_\r\n");
        assert_eq!(reply(&[b"geodist", b"g", b"Palermo", b"Catania"]), b"$11\r\n166274.1516\r\n");
        assert_eq!(reply(&[b"geodist", b"g", b"Palermo", b"nobody"]), b"_\r\n");
    }
}
