//! Records on their way from stores to the append-only log.
//!
//! Must stay true: what leaves the thread (bytes to a socket, a message that another shard could turn into a reply)
//! leaves behind the records of everything that this thread has executed before; a unit over several shards is written
//! under its hold, behind what these shards have noted before, so the log has the changes of each key in their order.
use smallvec::SmallVec;

use super::local::Local;
use super::msg::Message;
use crate::cmd::cx::Held;
use crate::host::journal::{Journal, Piece};
use crate::store::Store;
use crate::store::log::Unit;

/// Pieces of this many shards are put together without an allocation.
const FEW: usize = 8;

/// Writes what these stores have noted, the unit that ran on them last, and ends that.
pub fn write_unit(journal: &Journal, held: &mut dyn Held) {
    if !write_pieces(journal, held) {
        return;
    }
    for shard in 0..held.shards() {
        if let Some(store) = held.get_mut(shard) {
            store.has_records = false;
            store.log.clear();
        }
    }
}

/// `false`: there was nothing.
fn write_pieces(journal: &Journal, held: &dyn Held) -> bool {
    let stores = || (0..held.shards()).filter_map(|shard| held.get(shard));
    if stores().all(|store| store.log.is_empty()) {
        return false;
    }
    let mut unit = Unit::default();
    stores().filter(|store| store.has_records).for_each(|store| unit.add(&store.log));
    let (bytes, first_db, last_db) = unit.assemble();
    let mut pieces: SmallVec<[Piece<'_>; FEW]> = stores().filter_map(|store| store.log.piece()).collect();
    if !bytes.is_empty() {
        pieces.push(Piece { first_db, last_db, bytes: &bytes });
    }
    journal.write(&pieces);
    true
}

/// Writes what a store has noted; no unit runs on it.
pub fn write_one(journal: &Journal, store: &mut Store) {
    debug_assert!(!store.has_records);
    if let Some(piece) = store.log.piece() {
        journal.write(&[piece]);
        store.log.clear();
    }
}

impl Local {
    /// Whether something has run on this thread's data that the log has not got yet.
    #[inline]
    pub fn has_unwritten(&self) -> bool {
        self.shared.unwritten[self.id].is_set()
    }

    /// Writes what has been noted on this thread's data. `false`: somebody holds that, and something is still to be
    /// written.
    pub fn write_log(&self) -> bool {
        if self.has_unwritten() {
            let Some(mut store) = self.enter() else { return !self.has_unwritten() };
            write_one(&self.shared.host.journal, &mut store);
        }
        self.send_kept();
        true
    }

    /// [`Local::write_log`] for who is in.
    pub fn write_log_of(&self, store: &mut Store) {
        write_one(&self.shared.host.journal, store);
        self.send_kept();
    }

    /// Sends what another shard could turn into a reply: not before everything that ran before is in the log.
    pub(super) fn send_news(&self, to: usize, message: Message) {
        if self.has_unwritten() {
            self.kept.borrow_mut().push_back((to, message));
            return self.begin_turn();
        }
        // What was kept goes first.
        self.send_kept();
        self.send(to, message);
    }

    /// Sends what waited for the log.
    fn send_kept(&self) {
        loop {
            let Some((to, message)) = self.kept.borrow_mut().pop_front() else { return };
            self.send(to, message);
        }
    }

    /// [`Local::send_kept`], if the log has everything: whoever holds this thread's data may have written it.
    pub(super) fn send_what_is_logged(&self) {
        if self.keeps_news() && !self.has_unwritten() {
            self.send_kept();
        }
    }

    /// Whether messages wait for the log.
    pub(super) fn keeps_news(&self) -> bool {
        !self.kept.borrow().is_empty()
    }
}
