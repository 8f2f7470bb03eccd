//! Fields at random. Those whose time has come are not among them.
use std::collections::HashSet;

use super::{Field, HashRef};
use crate::base::rng;
use crate::ds::table::{PackedTable, Record};

/// Draws that may meet a due field before all live ones are gathered.
const TRIES: usize = 64;

/// Whether the next of `left` items is among `wanted` that are still to be taken, all being equally likely.
fn takes(wanted: usize, left: usize) -> bool {
    wanted >= left || rng::index_below(left) < wanted
}

impl<'a> HashRef<'a> {
    /// Calls `f` with `count` fields, each picked anew among all, until it says stop. Nothing, when there is none.
    pub fn random(self, now_ms: u64, count: u64, mut f: impl FnMut(Field<'a>) -> bool) {
        match self {
            HashRef::Table(table) => random_records(table, now_ms, count, f),
            small if count == 1 => {
                if let Some(field) = small.random_of_few(now_ms) {
                    f(field);
                }
            }
            small => {
                let mut live = Vec::with_capacity(small.len());
                small.for_each_live(now_ms, |field| live.push(field));
                random_of(&live, count, f);
            }
        }
    }

    /// One field, by a walk.
    fn random_of_few(self, now_ms: u64) -> Option<Field<'a>> {
        let (mut picked, mut left) = (None, self.live_len(now_ms));
        self.for_each_live(now_ms, |field| {
            if picked.is_none() && takes(1, left) {
                picked = Some(field);
            }
            left -= 1;
        });
        picked
    }

    /// Visits `count` different fields, or all if there are no more.
    pub fn random_distinct(self, now_ms: u64, count: usize, mut f: impl FnMut(Field<'a>)) {
        match self {
            HashRef::Table(table) if !self.has_due(now_ms) => {
                table.random_distinct(count, &mut rng::next_u64, |record| f(Field::of_record(record)));
            }
            HashRef::Table(table) if count.saturating_mul(3) <= table.len() => {
                distinct_among_due(table, now_ms, count, f);
            }
            hash => {
                let (mut wanted, mut left) = (count, hash.live_len(now_ms));
                hash.for_each_live(now_ms, |field| {
                    if takes(wanted, left) {
                        wanted -= 1;
                        f(field);
                    }
                    left -= 1;
                });
            }
        }
    }
}

fn random_of<'a>(fields: &[Field<'a>], count: u64, mut f: impl FnMut(Field<'a>) -> bool) {
    if fields.is_empty() {
        return;
    }
    for _ in 0..count {
        if !f(fields[rng::index_below(fields.len())]) {
            return;
        }
    }
}

/// A live record, unless nearly all are due.
fn draw_live(table: &PackedTable, now_ms: u64) -> Option<Field<'_>> {
    (0..TRIES).find_map(|_| {
        let field = Field::of_record(table.random(&mut rng::next_u64)?);
        (!field.is_due(now_ms)).then_some(field)
    })
}

fn random_records<'a>(table: &'a PackedTable, now_ms: u64, count: u64, mut f: impl FnMut(Field<'a>) -> bool) {
    for drawn in 0..count {
        let Some(field) = draw_live(table, now_ms) else {
            let live: Vec<Field<'a>> =
                table.iter().map(Field::of_record).filter(|field| !field.is_due(now_ms)).collect();
            return random_of(&live, count - drawn, f);
        };
        if !f(field) {
            return;
        }
    }
}

/// Different live records of a table of which some are due: draws, and when too many draws fail, takes what a walk
/// finds.
fn distinct_among_due<'a>(table: &'a PackedTable, now_ms: u64, count: usize, mut f: impl FnMut(Field<'a>)) {
    // A record is known by where its key lies.
    let mut seen: HashSet<*const u8> = HashSet::new();
    let mut visit = |record: Record<'a>| {
        let field = Field::of_record(record);
        if !field.is_due(now_ms) && seen.len() < count && seen.insert(record.key().as_ptr()) {
            f(field);
        }
        seen.len() >= count
    };
    for _ in 0..count.saturating_mul(4) + TRIES {
        if table.random(&mut rng::next_u64).is_none_or(&mut visit) {
            return;
        }
    }
    for record in table {
        if visit(record) {
            return;
        }
    }
}
