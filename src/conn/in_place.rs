//! Reads of other shards' keys that this thread serves itself, in place, without a message.
//!
//! Must stay true: what must be cleared away or left at a key is not a reader's business; then the command goes the
//! other way, and nothing of its reply stays.
use smallvec::SmallVec;

use super::session::{Round, Session};
use crate::cmd::cx::{Met, ReadStores};
use crate::cmd::spec::Handler;
use crate::cmd::table::RowRef;
use crate::shard::local::Local;
use crate::shard::plan::ShardSet;
use crate::store::Store;
use crate::wire::Args;

/// Whether the log has everything that a reader could see here: nobody hears of what a crash could take back.
#[inline]
fn is_written(store: &Store) -> bool {
    !store.is_logged() || store.log.is_empty()
}

impl Session {
    /// Whether a command is a read that may be served by a thread that shares the data. Not one that is entered there.
    #[inline]
    pub(super) fn may_read_in_place(&self, row: RowRef, local: &Local) -> bool {
        matches!(row.spec.handler, Handler::Read(_)) && local.in_place() && !self.client.caller.tracks
    }

    /// Serves a read of another shard's keys in place. `false`: it must be posted.
    pub(super) fn read_in_place(
        &mut self,
        round: &Round<'_>,
        shard: usize,
        row: RowRef,
        args: &Args<'_>,
    ) -> bool {
        let (local, door) = (round.local, &round.door);
        if !self.may_read_in_place(row, local) || self.gather.pending(shard) {
            return false;
        }
        let Some(store) = local.shared.cells[shard].read().filter(|store| is_written(store)) else {
            return false;
        };
        let before = self.out.buf.len();
        let mut look = args.clone();
        let (met, wait) =
            door.read(row, ReadStores::One(&store), &self.client.caller, &mut look, &mut self.out);
        if met != Met::Nothing || wait.is_some() {
            // Something must be cleared away, or left: not by a reader.
            self.out.buf.truncate(before);
            return false;
        }
        local.counters.in_place_reads.add(1);
        true
    }

    /// Serves a read over several shards in place, all of them latched at once. `false`: they must be held.
    pub(super) fn read_several_in_place(
        &mut self,
        round: &Round<'_>,
        set: &ShardSet,
        row: RowRef,
        args: &Args<'_>,
    ) -> bool {
        let (local, door) = (round.local, &round.door);
        if !self.may_read_in_place(row, local) {
            return false;
        }
        let mut guards = SmallVec::<[_; 8]>::new();
        for shard in set.iter().map(|s| usize::from(*s)).filter(|s| *s != local.id) {
            let Some(guard) = local.shared.cells[shard].read().filter(|store| is_written(store)) else {
                return false;
            };
            guards.push((shard, guard));
        }
        let mut stores: SmallVec<[Option<&Store>; 8]> = SmallVec::from_elem(None, local.shared.shards());
        stores[local.id] = Some(&*round.store);
        for (shard, guard) in &guards {
            stores[*shard] = Some(guard);
        }
        let before = self.out.buf.len();
        let mut look = args.clone();
        let (met, wait) =
            door.read(row, ReadStores::Many(&stores), &self.client.caller, &mut look, &mut self.out);
        if met != Met::Nothing || wait.is_some() {
            self.out.buf.truncate(before);
            return false;
        }
        local.counters.in_place_reads.add(guards.len() as u64);
        true
    }
}
