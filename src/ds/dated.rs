//! Listpacks of keys, values and deadlines in turns: small maps whose entries expire.
//!
//! A deadline is a number of milliseconds since the epoch; 0 stands for none.
//!
//! Must stay true: entries with deadlines come first, the earliest at the front; of two with the same deadline the one
//! that got it later comes first. So what is due is a run at the front. Redis has the same order, also in files.
use smallvec::SmallVec;

use super::listpack::{self, Element, Entries, HEAD_BYTES, Listpack, Probe};
use super::packed::PackedBytes;

/// Elements of an entry.
pub const STRIDE: usize = 3;

/// Where an entry lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Offset of its key.
    pub at: usize,
    /// Offset of its value.
    pub value_at: usize,
    /// Offset of its deadline.
    deadline_at: usize,
    /// Offset behind it.
    end: usize,
    /// When it is due.
    pub deadline_ms: Option<u64>,
}

impl Place {
    #[inline]
    fn read(pack: Listpack<'_>, at: usize) -> Place {
        let value_at = pack.skip(at, 1);
        let deadline_at = pack.skip(value_at, 1);
        let end = pack.skip(deadline_at, 1);
        Place { at, value_at, deadline_at, end, deadline_ms: deadline_of(pack.get(deadline_at)) }
    }
}

/// The deadline that an element stands for.
#[inline]
pub fn deadline_of(element: Element<'_>) -> Option<u64> {
    element.to_i64().and_then(|ms| u64::try_from(ms).ok()).filter(|ms| *ms > 0)
}

/// The element that stands for a deadline.
fn element_of(deadline_ms: Option<u64>) -> Element<'static> {
    Element::Int(deadline_ms.map_or(0, |ms| i64::try_from(ms).unwrap_or(i64::MAX)))
}

/// All entries.
pub fn entries(pack: Listpack<'_>) -> impl Iterator<Item = Place> {
    let mut next = HEAD_BYTES;
    std::iter::from_fn(move || {
        if next >= pack.end() {
            return None;
        }
        let place = Place::read(pack, next);
        next = place.end;
        Some(place)
    })
}

/// The earliest deadline.
pub fn earliest_ms(pack: Listpack<'_>) -> Option<u64> {
    entries(pack).next()?.deadline_ms
}

/// The entry with a key.
#[inline]
pub fn find(pack: Listpack<'_>, key: &Probe<'_>) -> Option<Place> {
    Some(Place::read(pack, pack.find(key, HEAD_BYTES, STRIDE)?))
}

/// The entry at an offset.
pub fn at(pack: Listpack<'_>, offset: usize) -> Place {
    Place::read(pack, offset)
}

/// The number of entries at the front that are due, `limit` at most.
pub fn due(pack: Listpack<'_>, now_ms: u64, limit: usize) -> usize {
    entries(pack).take(limit).take_while(|place| place.deadline_ms.is_some_and(|ms| ms <= now_ms)).count()
}

/// Takes out the first `n` entries.
pub fn remove_first(pack: &mut impl PackedBytes, n: usize) {
    listpack::remove(pack, HEAD_BYTES, n * STRIDE);
}

/// Gives an entry another deadline, and the place that goes with it.
pub fn set_deadline(pack: &mut impl PackedBytes, place: &Place, deadline_ms: Option<u64>) {
    if deadline_ms.is_none() && place.deadline_ms.is_none() {
        return;
    }
    let mut entry: SmallVec<[u8; 256]> = SmallVec::from_slice(&pack.bytes()[place.at..place.deadline_at]);
    listpack::encode(element_of(deadline_ms), &mut entry);
    listpack::remove(pack, place.at, STRIDE);
    let rest = Listpack::new(pack.bytes());
    let behind = |there: &Place| there.deadline_ms.is_none_or(|ms| deadline_ms.is_some_and(|new| ms >= new));
    let at = match deadline_ms {
        Some(_) => entries(rest).find(behind).map_or(rest.end(), |place| place.at),
        None => rest.end(),
    };
    listpack::insert_encoded(pack, at, &entry, STRIDE);
}

/// Appends an entry without a deadline.
pub fn append(pack: &mut impl PackedBytes, key: Element<'_>, value: Element<'_>) {
    listpack::append_many(pack, [key, value, element_of(None)]);
}

/// Appends entries without deadlines: `pairs` are encoded keys and values in turns.
pub fn append_pairs(pack: &mut impl PackedBytes, pairs: Listpack<'_>) {
    let mut added = Entries::new();
    let mut count = 0;
    let mut at = HEAD_BYTES;
    while at < pairs.end() {
        let end = pairs.skip(at, 2);
        added.extend_from_slice(&pairs.bytes()[at..end]);
        listpack::encode(element_of(None), &mut added);
        (at, count) = (end, count + STRIDE);
    }
    let end = pack.bytes().len();
    listpack::insert_encoded(pack, end, &added, count);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pack_of(keys: &[&str]) -> Vec<u8> {
        let mut pairs = listpack::EMPTY.to_vec();
        for key in keys {
            listpack::append_many(&mut pairs, [Element::Bytes(key.as_bytes()), Element::Bytes(b"value")]);
        }
        let mut pack = listpack::EMPTY.to_vec();
        append_pairs(&mut pack, Listpack::new(&pairs));
        pack
    }

    fn shown(pack: &[u8]) -> Vec<(String, Option<u64>)> {
        assert!(listpack::check(pack));
        let pack = Listpack::new(pack);
        let text = |at| String::from_utf8(pack.get(at).to_vec()).unwrap();
        entries(pack)
            .map(|place| {
                assert_eq!(text(place.value_at), "value");
                (text(place.at), place.deadline_ms)
            })
            .collect()
    }

    fn date(pack: &mut Vec<u8>, key: &str, deadline_ms: Option<u64>) {
        let place = find(Listpack::new(pack), &Probe::new(key.as_bytes())).unwrap();
        set_deadline(pack, &place, deadline_ms);
    }

    #[test]
    fn deadlines_set_the_order() {
        let mut pack = pack_of(&["a", "b", "c", "7"]);
        assert_eq!(earliest_ms(Listpack::new(&pack)), None);
        for (key, at) in [("c", Some(30)), ("7", Some(20)), ("a", Some(30)), ("b", Some(1 << 46))] {
            date(&mut pack, key, at);
        }
        let keys = |pack: &[u8]| shown(pack).into_iter().map(|entry| entry.0).collect::<String>();
        assert_eq!((keys(&pack).as_str(), earliest_ms(Listpack::new(&pack))), ("7acb", Some(20)));
        date(&mut pack, "7", None);
        date(&mut pack, "7", None);
        assert_eq!((keys(&pack).as_str(), earliest_ms(Listpack::new(&pack))), ("acb7", Some(30)));
        let due_at = |now_ms, limit| due(Listpack::new(&pack), now_ms, limit);
        assert_eq!((due_at(29, 9), due_at(30, 9), due_at(30, 1), due_at(u64::MAX, 9)), (0, 2, 1, 3));
        remove_first(&mut pack, 2);
        assert_eq!(keys(&pack), "b7");
        assert_eq!(find(Listpack::new(&pack), &Probe::new(b"value")), None);
    }

    proptest! {
        #[test]
        fn the_order_holds(steps in proptest::collection::vec((0_usize..5, proptest::option::of(1_u64..6)), 0..40)) {
            let keys = ["a", "bb", "3", "-4", "five"];
            let mut pack = pack_of(&keys);
            // Earliest first; those without last.
            let mut model: Vec<(String, Option<u64>)> = keys.iter().map(|key| (key.to_string(), None)).collect();
            for (key, at) in steps {
                date(&mut pack, keys[key], at);
                let old = model.iter().position(|entry| entry.0 == keys[key]).unwrap();
                if model[old].1.is_some() || at.is_some() {
                    let entry = model.remove(old);
                    let rank = |at: Option<u64>| at.unwrap_or(u64::MAX);
                    let place = model.iter().position(|other| at.is_some() && rank(other.1) >= rank(at));
                    model.insert(place.unwrap_or(model.len()), (entry.0, at));
                }
                prop_assert_eq!(shown(&pack), model.clone());
            }
        }
    }
}
