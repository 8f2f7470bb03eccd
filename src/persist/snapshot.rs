//! Snapshots while the server works: the cut, the walks of all shards, and how they end.
//!
//! [`begin`] runs while all shards are held; from then on each shard's thread walks its own data in short turns
//! ([`walk`]), and writers save ahead what they are about to change (`store::snapshot`).
//!
//! Must stay true: one snapshot at a time, whatever it is for; a turn of a walk is short; the walks wait while much is
//! on its way to the disk.
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::rdb_target::{Ended, Plan, Target};
use crate::base::clock;
use crate::cmd::cx::WriteStores;
use crate::config::{P, Settings};
use crate::host::Persistence;
use crate::rt;
use crate::shard::local::Local;
use crate::store::Store;
use crate::store::snapshot::{Encode, Outlet, Step};

/// Bytes that a step of a walk writes.
const STEP_BYTES: usize = 32 * 1024;
/// How long a turn of a walk lasts, before others have theirs.
const TURN: Duration = Duration::from_micros(300);
/// How long a walk waits when the disk is behind, or the data is held, milliseconds.
const WAIT_MS: u64 = 1;
/// Bytes of a shard that may be on their way to the disk.
const WAITING_BYTES_MAX: u64 = 1 << 20;

/// How long a walk that shall be slow waits without a look at whether it is wanted, milliseconds.
const NAP_MS: u64 = 10;

/// What a snapshot is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A file that stands for all data: FLUSHALL makes it worthless.
    Snapshot,
    /// The base of a log that goes on.
    Base,
}

/// One shard's way to the file.
struct Lane {
    target: Target,
    state: Arc<Persistence>,
    purpose: Purpose,
    lane: usize,
    /// Lanes that are not finished.
    left: Arc<AtomicUsize>,
}

impl Outlet for Lane {
    fn buffer(&self) -> Vec<u8> {
        self.target.buffer()
    }

    fn send(&self, bytes: Vec<u8>, is_open: bool) {
        self.target.send(self.lane, bytes, is_open);
    }

    fn has_room(&self) -> bool {
        self.target.in_flight(self.lane) < WAITING_BYTES_MAX
    }

    fn is_wanted(&self) -> bool {
        !self.target.has_failed()
    }

    fn note_keys(&self, keys: u64) {
        self.state.keys_done.fetch_add(keys, Ordering::Relaxed);
    }

    fn give_up(&self) {
        if self.purpose == Purpose::Snapshot {
            self.cancel();
        }
    }

    fn cancel(&self) {
        self.target.abort();
    }

    fn finish(self: Box<Self>) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.target.finish();
        }
    }
}

/// Microseconds that the settings want to pass with each key, so that tests find a snapshot under way.
pub(super) fn save_delay_us(settings: &Settings) -> u64 {
    settings.int(P::RDB_KEY_SAVE_DELAY).max(0) as u64
}

/// Whether a snapshot of these stores is under way.
pub fn is_under_way<'s>(mut stores: impl Iterator<Item = &'s Store>) -> bool {
    stores.any(Store::has_snapshot)
}

/// Begins a snapshot of what is in these stores, which are all; it starts with the bytes of `head`. `then` runs on a
/// thread of its own when the file is in its place, or will never be.
///
/// # Errors
/// When another is under way, or there can be no more threads.
pub fn begin(
    stores: &mut WriteStores<'_>,
    state: &Arc<Persistence>,
    (plan, purpose): (Plan, Purpose),
    head: Vec<u8>,
    encoder: &dyn Fn() -> Box<dyn Encode>,
    then: impl FnOnce(Ended) + Send + 'static,
) -> io::Result<()> {
    if is_under_way(stores.all()) {
        return Err(io::Error::new(io::ErrorKind::ResourceBusy, "a snapshot is under way"));
    }
    let keys = |store: &Store| (0..store.databases() as u32).map(|db| store.key_count(db)).sum::<usize>();
    let total: usize = stores.all().map(keys).sum();
    let lanes = stores.all().count();
    let target = Target::start(plan, lanes, then)?;
    target.send(0, head, false);
    state.keys_total.store(total as u64, Ordering::Relaxed);
    state.keys_done.store(0, Ordering::Relaxed);
    let left = Arc::new(AtomicUsize::new(lanes));
    let mut lane = 0;
    stores.for_each(|store| {
        let (target, state, left) = (target.clone(), state.clone(), left.clone());
        store.begin_snapshot(encoder(), Box::new(Lane { target, state, purpose, lane, left }));
        lane += 1;
    });
    Ok(())
}

/// Waits so long, unless nobody wants the snapshot any more, or wants it to be slow.
async fn dawdle(local: &Local, ms: u64) {
    let mut left_ms = ms;
    let is_wanted = |store: &Store| store.is_snapshot_wanted() && save_delay_us(&store.settings) > 0;
    while left_ms > 0 && local.enter().is_none_or(|store| is_wanted(&store)) {
        let nap_ms = left_ms.min(NAP_MS);
        rt::sleep_ms(nap_ms).await;
        left_ms -= nap_ms;
    }
}

/// Walks the data of this thread's shard to the end of the snapshot under way.
pub async fn walk(local: Rc<Local>) {
    let mut owed_us = 0;
    loop {
        let Some(mut store) = local.enter() else {
            rt::sleep_ms(WAIT_MS).await;
            continue;
        };
        if !store.has_snapshot() {
            return;
        }
        // For tests that want a slow snapshot: what a key takes when one thread writes them all.
        let key_us = save_delay_us(&store.settings) * local.shared.shards() as u64;
        let step_bytes = if key_us > 0 { 1 } else { STEP_BYTES };
        let began = clock::instant();
        let mut may_walk = store.may_walk();
        while may_walk && owed_us < 1000 && began.elapsed() < TURN {
            if store.snapshot_step(step_bytes) == Step::Done {
                return;
            }
            owed_us += key_us;
            may_walk = store.may_walk();
        }
        drop(store);
        if owed_us >= 1000 {
            dawdle(&local, owed_us / 1000).await;
            owed_us %= 1000;
        } else if may_walk {
            rt::next_turn().await;
        } else {
            rt::sleep_ms(WAIT_MS).await;
        }
    }
}
