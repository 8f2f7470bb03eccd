//! Loom on the real latch and doorbell: every interleaving of a few threads within the preemption bound.
//!
//! Run by `scripts/test.sh` with `RUSTFLAGS="--cfg loom"`. Each property has been seen to fail with the ordering
//! that it rests on weakened.
#![cfg(loom)]

use std::sync::Arc;

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use perigee::shard::cell::Cell;
use perigee::shard::doorbell::Doorbell;

fn model(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(f);
}

fn cell(rings: &Arc<AtomicUsize>) -> Arc<Cell<usize>> {
    let rings = rings.clone();
    let ring = move || {
        rings.fetch_add(1, Ordering::SeqCst);
    };
    Arc::new(Cell::new(0, false, Box::new(ring)))
}

/// Loom's cells report any reader that meets a writer.
#[test]
fn readers_never_meet_the_owner() {
    model(|| {
        let cell = cell(&Arc::new(AtomicUsize::new(0)));
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let cell = cell.clone();
                thread::spawn(move || cell.read().map(|value| *value))
            })
            .collect();
        if let Some(mut value) = cell.enter() {
            *value += 1;
        }
        for reader in readers {
            assert!(reader.join().unwrap().is_none_or(|value| value <= 1));
        }
    });
}

#[test]
fn holders_are_alone() {
    model(|| {
        let cell = cell(&Arc::new(AtomicUsize::new(0)));
        let holders: Vec<_> = (0..2)
            .map(|_| {
                let cell = cell.clone();
                thread::spawn(move || match cell.hold() {
                    Some(mut value) => {
                        *value += 1;
                        1
                    }
                    None => 0,
                })
            })
            .collect();
        let mut total = 0;
        if let Some(mut value) = cell.enter() {
            *value += 1;
            total += 1;
        }
        for holder in holders {
            total += holder.join().unwrap();
        }
        assert_eq!(*cell.enter().expect("everybody has left"), total);
    });
}

/// An owner that was turned away and said that it waits is rung, or gets in at its second look.
#[test]
fn a_waiting_owner_is_rung() {
    model(|| {
        let rings = Arc::new(AtomicUsize::new(0));
        let cell = cell(&rings);
        let holder = {
            let cell = cell.clone();
            thread::spawn(move || drop(cell.hold()))
        };
        let left_waiting = cell.enter().is_none() && !cell.wait();
        holder.join().unwrap();
        assert!(!left_waiting || rings.load(Ordering::SeqCst) == 1);
    });
}

/// A hold that was passed on is released by whoever adopts it.
#[test]
fn a_hold_can_change_threads() {
    model(|| {
        let cell = cell(&Arc::new(AtomicUsize::new(0)));
        let mut held = cell.hold().expect("nobody is in");
        *held = 7;
        held.pass_on();
        let adopter = {
            let cell = cell.clone();
            thread::spawn(move || *cell.adopt())
        };
        if let Some(value) = cell.enter() {
            assert_eq!(*value, 7);
        }
        assert_eq!(adopter.join().unwrap(), 7);
        assert!(cell.enter().is_some());
    });
}

/// Work that is left before the sleeper's last look is seen by it; later work rings.
#[test]
fn no_work_is_slept_over() {
    model(|| {
        let bell = Arc::new(Doorbell::new(None));
        let work = Arc::new(AtomicUsize::new(0));
        let giver = {
            let (bell, work) = (bell.clone(), work.clone());
            thread::spawn(move || {
                work.store(1, Ordering::Relaxed);
                bell.ring()
            })
        };
        bell.fall_asleep();
        let seen = work.load(Ordering::Relaxed) == 1;
        let rung = giver.join().unwrap();
        assert!(seen || rung);
    });
}
