//! Large sorted sets: by scores that all differ, by texts under one score, and places on the map.
use super::super::verdict::Order::{Constant, Linear, Log};
use super::{Case, Family, Fill, MILLION, QUARTER};

/// Sorted sets with a score for each member.
pub static BY_SCORE: Family = Family {
    name: "sorted sets",
    sizes: MILLION,
    fills: &[
        Fill::many("ZADD zset", "{next} m{next}").of(Log),
        Fill::once(
            "ZADD tiny 1 m{next-1} 1 m{next-2} 1 m{next-3} 1 m{next-4} 1 m{next-5} 1 m{next-6} 1 a 1 b",
        ),
    ],
    cases: &[
        Case::new(Constant, "ZCARD zset"),
        Case::new(Constant, "ZSCORE zset m{any}"),
        Case::new(Constant, "ZMSCORE zset m{any} m{any-1}").visits(2),
        Case::new(Log, "ZRANK zset m{any}"),
        Case::new(Log, "ZREVRANK zset m{any}"),
        Case::new(Log, "ZRANGE zset 0 9"),
        Case::new(Log, "ZRANGE zset {pos} {pos+9}"),
        Case::new(Log, "ZRANGE zset {pos} {pos+9} REV"),
        Case::new(Log, "ZREVRANGE zset 0 9 WITHSCORES"),
        Case::new(Log, "ZRANGE zset {any-9} {any} BYSCORE"),
        Case::new(Log, "ZRANGESTORE stored zset {pos} {pos+9}"),
        Case::new(Log, "ZRANGEBYSCORE zset -inf +inf LIMIT 0 10"),
        Case::new(Log, "ZRANGEBYSCORE zset {any-9} +inf LIMIT 0 10"),
        Case::new(Linear, "ZRANGEBYSCORE zset -inf +inf LIMIT {half} 10"),
        Case::new(Log, "ZREVRANGEBYSCORE zset +inf -inf LIMIT 0 10"),
        Case::new(Log, "ZREVRANGEBYSCORE zset {any} -inf LIMIT 0 10"),
        Case::new(Log, "ZCOUNT zset -inf +inf"),
        Case::new(Log, "ZCOUNT zset {any} +inf"),
        Case::new(Constant, "ZRANDMEMBER zset").visits(2),
        Case::new(Log, "ZRANDMEMBER zset 10").visits(20),
        Case::new(Log, "ZRANDMEMBER zset -10").visits(20),
        Case::new(Constant, "ZSCAN zset {cursor}").visits(10).or_nothing(),
        Case::new(Log, "ZINTER 2 tiny zset").visits(10),
        Case::new(Log, "ZINTER 2 zset tiny").visits(10),
        Case::new(Log, "ZINTERCARD 2 zset tiny").visits(10),
        Case::new(Log, "ZDIFF 2 tiny zset").visits(10),
        Case::new(Log, "ZINCRBY zset 1 m{any}").visits(2),
        Case::new(Log, "ZINCRBY zset 1000 m{any}").visits(2),
        Case::new(Log, "ZADD zset {any} m{any}").or_nothing(),
        Case::new(Log, "ZADD zset {next} m{next}").after("ZREM zset m{mid}"),
        Case::new(Log, "ZADD zset {any} m{next}").after("ZREM zset m{mid}"),
        Case::new(Log, "ZREM zset m{mid}").after("ZADD zset {next} m{next}"),
        Case::new(Log, "ZREMRANGEBYRANK zset 0 0").after("ZADD zset {next} m{next}"),
        Case::new(Log, "ZREMRANGEBYSCORE zset {next} {next}").after("ZADD zset {next} m{next}"),
        Case::new(Log, "ZPOPMIN zset").after("ZADD zset {next} m{next}"),
        Case::new(Log, "ZPOPMAX zset").after("ZADD zset {next} m{next}"),
    ],
};

/// Sorted sets with one score for all members.
pub static BY_TEXT: Family = Family {
    name: "sorted sets by text",
    sizes: QUARTER,
    fills: &[Fill::many("ZADD zset", "0 m{next}").of(Log)],
    cases: &[
        Case::new(Log, "ZRANK zset m{any}"),
        Case::new(Log, "ZRANGEBYLEX zset - + LIMIT 0 10"),
        Case::new(Log, "ZRANGEBYLEX zset [m{any} + LIMIT 0 10"),
        Case::new(Log, "ZREVRANGEBYLEX zset [m{any} - LIMIT 0 10"),
        Case::new(Log, "ZRANGE zset [m{any-9} [m{any} BYLEX"),
        Case::new(Log, "ZLEXCOUNT zset - +"),
        Case::new(Log, "ZLEXCOUNT zset [m{any} +"),
        Case::new(Log, "ZCOUNT zset 0 0"),
        Case::new(Log, "ZADD zset 0 m{next}").after("ZREM zset m{mid}"),
        Case::new(Log, "ZREM zset m{mid}").after("ZADD zset 0 m{next}"),
        Case::new(Log, "ZREMRANGEBYLEX zset [m{next} [m{next}").after("ZADD zset 0 m{next}"),
    ],
};

/// Places on the map, of the same density at all sizes.
pub static GEO: Family = Family {
    name: "geo",
    sizes: QUARTER,
    fills: &[Fill::many("GEOADD geo", "{lon} {lat} p{next}").of(Log)],
    cases: &[
        Case::new(Log, "GEODIST geo p{any} p{any-1}").visits(2),
        Case::new(Log, "GEOPOS geo p{any}"),
        Case::new(Log, "GEOHASH geo p{any}"),
        Case::new(Log, "GEOSEARCH geo FROMLONLAT {lon} {lat} BYRADIUS 2 km COUNT 10").visits(10),
        Case::new(Log, "GEOSEARCH geo FROMMEMBER p{any} BYRADIUS 2 km ASC COUNT 10").visits(10),
        Case::new(Log, "GEOSEARCH geo FROMLONLAT {lon} {lat} BYBOX 3 3 km ASC COUNT 10 WITHDIST").visits(10),
        Case::new(Log, "GEOSEARCH geo FROMLONLAT {lon} {lat} BYRADIUS 2 km COUNT 10 ANY")
            .visits(10)
            .visits(10),
        Case::new(Log, "GEOADD geo {lon} {lat} p{any}").visits(2).or_nothing(),
        Case::new(Log, "GEOADD geo {lon} {lat} p{next}").after("ZREM geo p{mid}"),
    ],
};
