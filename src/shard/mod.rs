//! One shard: its data behind a latch, the mesh to the others, and the one door to handlers. Floor 5.
pub mod cell;
pub mod doorbell;
pub mod exec;
pub mod hold;
pub mod local;
pub mod logged;
mod mailbox;
pub mod mesh;
pub mod msg;
pub mod plan;
pub mod spread;
mod sync;
mod track;
pub mod watch;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cell::Cell;
use doorbell::Doorbell;

use crate::config::{P, Settings};
use crate::host::Host;
use crate::store::Store;
use crate::store::log::Unwritten;
use crate::store::news::{class, published};

/// What all shards of a server share.
pub struct Shared {
    /// The data, by shard.
    pub cells: Vec<Cell<Store>>,
    /// Whether a shard has records that the append-only log has not got yet.
    pub unwritten: Vec<Arc<Unwritten>>,
    /// How to wake a shard.
    pub bells: Vec<Arc<Doorbell>>,
    /// Rare messages: new rings, new connections, stop.
    pub controls: Vec<flume::Sender<msg::Control>>,
    /// Messages that a ring between two shards takes.
    pub ring_messages: usize,
    /// Process-wide facts.
    pub host: Arc<Host>,
    /// Reads of other shards' keys may be served in place (`cross-shard-fast-path`, resolved).
    pub in_place: AtomicBool,
}

impl Shared {
    /// Number of shards.
    #[inline]
    pub fn shards(&self) -> usize {
        self.cells.len()
    }

    /// Takes over whether reads of other shards' keys are served in place: `auto` means yes, since a read that finds
    /// the owner busy goes by message anyway.
    pub fn set_in_place(&self, settings: &Settings) {
        // Reads that find nothing leave news where somebody listens to those; only the owner can note them.
        let misses = published(settings) & class::KEY_MISS != 0;
        let in_place = settings.choice(P::CROSS_SHARD_FAST_PATH) != "off" && self.shards() > 1 && !misses;
        self.in_place.store(in_place, Ordering::Relaxed);
    }

    /// Sends a rare message.
    pub fn control(&self, shard: usize, message: msg::Control) {
        // A shard that is gone needs no messages.
        let _ = self.controls[shard].send(message);
        self.bells[shard].ring();
    }

    /// Asks every shard to end.
    pub fn stop(&self) {
        self.host.stopping.store(true, Ordering::SeqCst);
        for shard in 0..self.shards() {
            self.control(shard, msg::Control::Stop);
        }
    }
}
