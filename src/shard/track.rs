//! Client-side caching: reads are entered in the stores, and what has become of them is told.
//!
//! Must stay true: the number of keys that all stores together hold for clients passes `tracking-table-max-keys` for a
//! moment at most.
use std::collections::BTreeMap;

use super::exec::{Door, for_keys};
use crate::cmd::cx::{Caller, WriteStores};
use crate::cmd::spec::flag;
use crate::cmd::table::RowRef;
use crate::config::P;
use crate::host::mail::Mail;
use crate::store::Store;
use crate::wire::Args;

/// Keys that a store forgets at once when there are too many.
const STEP_KEYS: usize = 1000;

impl Door<'_> {
    /// Enters the keys that a command has read for its client.
    #[cold]
    #[inline(never)]
    pub(super) fn track(&self, row: RowRef, mut stores: WriteStores<'_>, caller: &Caller, args: &Args<'_>) {
        if row.spec.flags & flag::READONLY == 0 {
            return;
        }
        for_keys(row, args, |_, key| {
            let store = stores.of(key.hash);
            store.track(key, caller.client_id);
            self.limit_tracked(store);
        });
    }

    /// Has a store forget some keys when all stores together hold too many for clients. `true`: it has more to forget.
    pub fn limit_tracked(&self, store: &mut Store) -> bool {
        let most = store.settings.int(P::TRACKING_TABLE_MAX_KEYS) as u64;
        // Where all hold too many, one holds more than its share: only such a one needs to look at the others.
        let beyond_share = (store.tracked_keys() as u64).saturating_sub(most / self.host.shards() as u64);
        if most == 0 || beyond_share == 0 {
            return false;
        }
        let _alone = self.host.trackers.limit();
        let excess = self.host.sum(|counters| &counters.tracked_keys).saturating_sub(most).min(beyond_share);
        store.untrack_some((excess as usize).min(STEP_KEYS));
        excess as usize > STEP_KEYS
    }

    /// Leaves word for clients whose keys have changed.
    pub(super) fn tell_trackers(&self, stores: &mut WriteStores<'_>, mail: &mut Mail) {
        let (mut stale, mut changed, mut all_stale) = (Vec::new(), Vec::new(), false);
        stores.for_each(|store| {
            stale.append(&mut store.news.stale);
            changed.append(&mut store.news.changed);
            all_stale |= std::mem::take(&mut store.news.all_stale);
        });
        let trackers = &self.host.trackers;
        stale.sort_by_key(|stale| stale.number);
        for stale in &stale {
            trackers.tell_readers(&stale.key, stale.readers.iter().copied(), stale.by, mail);
        }
        if all_stale {
            trackers.tell_all(mail);
        }
        if !changed.is_empty() {
            // A key lies in one store, which has its changes in order: the last one stays.
            let last: BTreeMap<&[u8], u64> =
                changed.iter().map(|changed| (&*changed.key, changed.by)).collect();
            trackers.tell_by_prefix(&last, mail);
        }
    }
}
