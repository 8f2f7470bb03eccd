//! What must hold of a packed table at any time, for tests here and above.
use super::{PackedTable, bucket, hash_of, weight};
use crate::ds::packed::PackedBytes;

/// What a walk over a table adds up.
#[derive(Default)]
struct Sums {
    records: usize,
    weight: usize,
    dated: usize,
    /// Deadlines with their hashes.
    entries: std::collections::BTreeSet<(u64, u64)>,
}

impl PackedTable {
    /// Checks everything that must hold. Visits every record; for tests.
    ///
    /// # Panics
    /// When something does not hold.
    pub fn check(&self) {
        let mut sums = Sums::default();
        for index in 0..self.buckets.len() {
            self.check_bucket(index, &mut sums);
        }
        assert_eq!((sums.records, sums.weight), (self.len, self.weight), "records and their weight");
        assert_eq!(sums.dated, self.deadline_count(), "records with a deadline");
        assert_eq!(self.due.is_some(), sums.dated > 0, "an index exists where it is needed");
        if let Some(due) = &self.due {
            assert_eq!(due.entries(), sums.entries.len(), "entries of the index");
            assert_eq!(due.first().map(|first| first.0), sums.entries.first().map(|first| first.0));
        }
        let (count, needed) = (self.buckets.len(), self.needed());
        assert!(count >= needed && count <= (3 * needed).max(1), "{count} buckets where {needed} are needed");
    }

    fn check_bucket(&self, index: usize, sums: &mut Sums) {
        let bytes = self.buckets[index].bytes();
        let (count, first) = bucket::head(bytes);
        assert_eq!(count == 0, bytes.is_empty(), "an empty bucket has no bytes");
        let mut keys = std::collections::HashSet::new();
        let mut end = first + count;
        for found in bucket::shapes(bytes, self.layout) {
            let record = found.shape.record(bytes);
            let hash = hash_of(record.key());
            assert!(keys.insert(record.key()), "a key is there twice");
            assert_eq!(self.index(hash), index, "a record in its bucket");
            assert_eq!(bucket::fingerprints(bytes)[found.slot], hash.fingerprint());
            assert!(self.get(hash, record.key()) == Some(record), "a record can be found");
            if let Some(deadline_ms) = record.deadline_ms() {
                sums.dated += 1;
                sums.entries.insert((deadline_ms, hash.bits()));
                assert!(self.due.as_ref().is_some_and(|due| due.has(deadline_ms, hash)));
            }
            sums.records += 1;
            sums.weight += weight(found.shape.len());
            end = found.shape.end();
        }
        assert_eq!((keys.len(), end), (count, bytes.len()), "records fill their bucket");
    }
}
