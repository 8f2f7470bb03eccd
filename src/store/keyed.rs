//! What somebody has left at keys, which need not exist: watches of transactions, waits of blocked clients.
//!
//! Must stay true: what was left at one key keeps its order; an empty list keeps no key.
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::base::hash::KeyHash;
use crate::wire::Key;

/// The hash of a key is one already.
#[derive(Default)]
pub struct Same(u64);

impl Hasher for Same {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only whole words are hashed");
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = word;
    }
}

/// Things left at one key of one database.
#[derive(Debug)]
struct Place<T> {
    db: u32,
    key: Box<[u8]>,
    left: Vec<T>,
}

/// Things left at keys, in order.
#[derive(Debug)]
pub struct Keyed<T> {
    /// By the bits of the key's hash; keys that share them stand side by side.
    places: HashMap<u64, Vec<Place<T>>, BuildHasherDefault<Same>>,
}

impl<T> Default for Keyed<T> {
    fn default() -> Keyed<T> {
        Keyed { places: HashMap::default() }
    }
}

impl<T> Keyed<T> {
    /// Whether nothing is left anywhere.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Number of keys at which something is left that `counts`.
    pub fn keys(&self, counts: impl Fn(&T) -> bool) -> usize {
        self.places.values().flatten().filter(|place| place.left.iter().any(&counts)).count()
    }

    /// What is left at a key.
    pub fn at(&self, db: u32, key: Key<'_>) -> &[T] {
        let place = self.places.get(&key.hash.bits()).and_then(|places| find(places, db, key.bytes));
        place.map_or(&[], |place| &place.left)
    }

    /// Leaves something at a key, behind what is there.
    pub fn leave(&mut self, db: u32, key: Key<'_>, thing: T) {
        let places = self.places.entry(key.hash.bits()).or_default();
        match places.iter_mut().find(|place| place.db == db && *place.key == *key.bytes) {
            Some(place) => place.left.push(thing),
            None => places.push(Place { db, key: key.bytes.into(), left: vec![thing] }),
        }
    }

    /// Keeps only what `keeps` says of what is left at a key.
    pub fn retain_at(&mut self, db: u32, key: Key<'_>, keeps: impl FnMut(&T) -> bool) {
        self.change_at(db, key, |left| left.retain(keeps));
    }

    /// Takes the first thing away that `is` means of what is left at a key.
    pub fn take_at(&mut self, db: u32, key: Key<'_>, is: impl FnMut(&T) -> bool) {
        self.change_at(db, key, |left| {
            if let Some(at) = left.iter().position(is) {
                left.remove(at);
            }
        });
    }

    fn change_at(&mut self, db: u32, key: Key<'_>, change: impl FnOnce(&mut Vec<T>)) {
        let bits = key.hash.bits();
        let Some(places) = self.places.get_mut(&bits) else { return };
        let Some(at) = places.iter().position(|place| place.db == db && *place.key == *key.bytes) else {
            return;
        };
        change(&mut places[at].left);
        if places[at].left.is_empty() {
            places.swap_remove(at);
        }
        if places.is_empty() {
            self.places.remove(&bits);
        }
    }

    /// Keeps only what `keeps` says of everything.
    pub fn retain(&mut self, mut keeps: impl FnMut(&T) -> bool) {
        self.places.retain(|_, places| {
            places.iter_mut().for_each(|place| place.left.retain(&mut keeps));
            places.retain(|place| !place.left.is_empty());
            !places.is_empty()
        });
    }

    /// Calls `f` with the keys of a database and what is left at them.
    pub fn for_each_in(&mut self, db: u32, mut f: impl FnMut(Key<'_>, &mut [T])) {
        for (bits, places) in &mut self.places {
            for place in places.iter_mut().filter(|place| place.db == db) {
                f(Key { bytes: &place.key, hash: KeyHash::from_bits(*bits) }, &mut place.left);
            }
        }
    }
}

fn find<'p, T>(places: &'p [Place<T>], db: u32, key: &[u8]) -> Option<&'p Place<T>> {
    places.iter().find(|place| place.db == db && *place.key == *key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_keep_their_order_and_their_key() {
        let mut keyed = Keyed::default();
        let (a, b) = (Key::new(b"a"), Key::new(b"b"));
        // Two keys whose hashes have the same bits.
        let twin = Key { bytes: b"twin", hash: a.hash };
        for (db, key, thing) in [(0, a, 1), (0, a, 2), (1, a, 3), (0, b, 4), (0, twin, 5)] {
            keyed.leave(db, key, thing);
        }
        assert_eq!((keyed.at(0, a), keyed.at(1, a), keyed.at(0, twin)), (&[1, 2][..], &[3][..], &[5][..]));
        assert!(keyed.at(2, a).is_empty());
        keyed.retain_at(0, a, |thing| *thing != 1);
        assert_eq!((keyed.at(0, a), keyed.keys(|_| true), keyed.keys(|thing| *thing > 3)), (&[2][..], 4, 2));
        let mut seen = Vec::new();
        keyed.for_each_in(0, |key, things| seen.push((key.bytes.to_vec(), things.to_vec())));
        seen.sort();
        assert_eq!(seen, [(b"a".to_vec(), vec![2]), (b"b".to_vec(), vec![4]), (b"twin".to_vec(), vec![5])]);
        keyed.leave(0, a, 6);
        keyed.leave(0, a, 2);
        keyed.take_at(0, a, |thing| *thing == 2);
        assert_eq!(keyed.at(0, a), [6, 2]);
        keyed.retain_at(0, a, |_| false);
        keyed.retain(|thing| *thing == 5);
        assert_eq!((keyed.at(0, twin), keyed.keys(|_| true)), (&[5][..], 1));
        keyed.retain_at(0, twin, |_| false);
        assert!(keyed.is_empty());
    }
}
