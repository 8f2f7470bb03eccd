//! Freeing in the background: what takes long to free is handed to one thread that does nothing else, so that no
//! shard stands still for it.
//!
//! Must stay true: handing over never waits for the thread; when no thread can be had, the caller frees.
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;

/// Something to be dropped, and how many objects it counts for.
type Rubbish = (Box<dyn Send>, u64);

/// The background thread and its counters; the thread starts at the first use.
///
/// A thread starts with the CPU affinity of the one that starts it. Call [`LazyFree::start`] before shards are
/// pinned, else the thread shares the core of the shard that first needed it.
#[derive(Default)]
pub struct LazyFree {
    queue: OnceLock<Option<flume::Sender<Rubbish>>>,
    tally: Arc<Tally>,
}

#[derive(Default)]
struct Tally {
    pending: AtomicU64,
    freed: AtomicU64,
}

impl Tally {
    fn free(&self, (rubbish, objects): Rubbish) {
        drop(rubbish);
        self.freed.fetch_add(objects, Ordering::Relaxed);
        self.pending.fetch_sub(objects, Ordering::Relaxed);
    }
}

impl LazyFree {
    /// Drops `rubbish` soon, on the background thread. `objects`: how many keys or values it counts for in INFO.
    pub fn drop_later(&self, rubbish: Box<dyn Send>, objects: u64) {
        self.tally.pending.fetch_add(objects, Ordering::Relaxed);
        let unsent = match self.queue.get_or_init(|| start_thread(self.tally.clone())) {
            Some(queue) => queue.send((rubbish, objects)).err().map(flume::SendError::into_inner),
            None => Some((rubbish, objects)),
        };
        if let Some(unsent) = unsent {
            self.tally.free(unsent);
        }
    }

    /// Starts the thread, unless it runs.
    pub fn start(&self) {
        self.queue.get_or_init(|| start_thread(self.tally.clone()));
    }

    /// Objects handed over and not yet freed: INFO's `lazyfree_pending_objects`.
    pub fn pending_objects(&self) -> u64 {
        self.tally.pending.load(Ordering::Relaxed)
    }

    /// Objects freed since the start or the last reset: INFO's `lazyfreed_objects`.
    pub fn freed_objects(&self) -> u64 {
        self.tally.freed.load(Ordering::Relaxed)
    }

    /// CONFIG RESETSTAT.
    pub fn reset(&self) {
        self.tally.freed.store(0, Ordering::Relaxed);
    }
}

/// The thread ends when the last sender is gone.
fn start_thread(tally: Arc<Tally>) -> Option<flume::Sender<Rubbish>> {
    let (sender, receiver) = flume::unbounded::<Rubbish>();
    let work = move || receiver.into_iter().for_each(|rubbish| tally.free(rubbish));
    thread::Builder::new().name("lazy-free".into()).spawn(work).ok().map(|_| sender)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    struct Tell(flume::Sender<thread::ThreadId>);

    impl Drop for Tell {
        fn drop(&mut self) {
            let _ = self.0.send(thread::current().id());
        }
    }

    #[test]
    fn drops_elsewhere_and_counts() {
        let lazy = LazyFree::default();
        let (sender, told) = flume::unbounded();
        lazy.drop_later(Box::new(Tell(sender.clone())), 5);
        lazy.drop_later(Box::new(Tell(sender)), 2);
        let ids = [told.recv().unwrap(), told.recv().unwrap()];
        assert!(ids[0] == ids[1] && ids[0] != thread::current().id());
        for _ in 0..1_000 {
            if lazy.pending_objects() == 0 {
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!((lazy.pending_objects(), lazy.freed_objects()), (0, 7));
        lazy.reset();
        assert_eq!(lazy.freed_objects(), 0);
    }
}
