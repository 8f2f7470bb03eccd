//! Which records of a packed table have a deadline, in its order.
//!
//! Must stay true: the index holds (deadline, hash) of every dated record, once for all records that share both, and
//! nothing else; `records` counts the records.
use std::collections::BTreeSet;

use crate::base::hash::KeyHash;

/// Heap bytes of one entry: a node of the standard library's tree holds up to eleven, and about two thirds are
/// filled.
const ENTRY_BYTES: usize = 28;

/// The index.
#[derive(Clone, Default)]
pub(super) struct Due {
    index: BTreeSet<(u64, u64)>,
    records: usize,
}

impl Due {
    /// Notes a record's deadline.
    pub fn add(&mut self, deadline_ms: u64, hash: KeyHash) {
        self.index.insert((deadline_ms, hash.bits()));
        self.records += 1;
    }

    /// Forgets a record's deadline. `shared`: another record has the same hash and deadline.
    pub fn forget(&mut self, deadline_ms: u64, hash: KeyHash, shared: bool) {
        if !shared {
            self.index.remove(&(deadline_ms, hash.bits()));
        }
        self.records -= 1;
    }

    /// Number of records with a deadline.
    pub fn records(&self) -> usize {
        self.records
    }

    /// The earliest deadline, and the hash of a record that has it.
    pub fn first(&self) -> Option<(u64, KeyHash)> {
        self.index.first().map(|(deadline_ms, bits)| (*deadline_ms, KeyHash::from_bits(*bits)))
    }

    /// Whether a deadline is noted with a hash.
    pub fn has(&self, deadline_ms: u64, hash: KeyHash) -> bool {
        self.index.contains(&(deadline_ms, hash.bits()))
    }

    /// Number of entries, of which several records may share one.
    pub fn entries(&self) -> usize {
        self.index.len()
    }

    /// Heap bytes, about.
    pub fn heap_bytes(&self) -> usize {
        size_of::<Due>() + self.index.len() * ENTRY_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_stays_while_it_is_shared() {
        let mut due = Due::default();
        let hash = KeyHash::from_bits(7);
        for deadline in [5, 3, 3] {
            due.add(deadline, hash);
        }
        assert_eq!((due.records(), due.entries(), due.first()), (3, 2, Some((3, hash))));
        due.forget(3, hash, true);
        assert_eq!((due.records(), due.first()), (2, Some((3, hash))));
        due.forget(3, hash, false);
        assert_eq!((due.records(), due.first(), due.has(3, hash)), (1, Some((5, hash)), false));
        due.forget(5, hash, false);
        assert_eq!((due.records(), due.first()), (0, None));
    }
}
