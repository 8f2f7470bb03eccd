//! Holding several shards at once, so that one command over all of them is plain code.
//!
//! Shards are taken in ascending order. A shard whose owner is out is taken on the spot; else the owner is asked
//! by message and grants when it is out. While it waits for a grant a connection holds nothing, so that a busy
//! owner stalls nobody else; only after many lost rounds does it keep what it has, in ascending order, which
//! cannot deadlock.
//!
//! Must stay true: whatever is granted is adopted and released exactly once, also when the connection is gone.
use smallvec::SmallVec;

use super::Shared;
use super::cell::Holder;
use super::local::{Event, Local};
use super::plan::ShardSet;
use crate::cmd::cx::Held;
use crate::store::{Now, Store};

/// Rounds after which a connection keeps lower shards while it waits.
const PATIENT_ROUNDS: u32 = 16;

/// Holds of a few shards lie on the stack.
pub type Holders<'a> = SmallVec<[Holder<'a, Store>; 4]>;

/// The stores of shards that are held, by shard.
pub struct Stores<'a>(SmallVec<[Option<Holder<'a, Store>>; 4]>);

impl<'a> Stores<'a> {
    /// Of what [`acquire`] took of `set`, on a server of `shards` shards.
    pub fn new(held: Holders<'a>, set: &ShardSet, shards: usize) -> Stores<'a> {
        if held.len() == shards {
            return Stores(held.into_iter().map(Some).collect());
        }
        let mut stores: SmallVec<_> = (0..shards).map(|_| None).collect();
        for (holder, shard) in held.into_iter().zip(set) {
            stores[usize::from(*shard)] = Some(holder);
        }
        Stores(stores)
    }
}

impl<'a> Stores<'a> {
    /// Of shards whose holds [`Stores::pass_on`] left behind.
    pub fn adopt(shared: &'a Shared, set: &ShardSet) -> Stores<'a> {
        let held = set.iter().map(|shard| shared.cells[usize::from(*shard)].adopt()).collect();
        Stores::new(held, set, shared.shards())
    }

    /// Leaves the shards held, for whoever adopts them.
    pub fn pass_on(self) {
        self.0.into_iter().flatten().for_each(Holder::pass_on);
    }
}

impl Held for Stores<'_> {
    fn shards(&self) -> usize {
        self.0.len()
    }

    fn get(&self, shard: usize) -> Option<&Store> {
        self.0[shard].as_deref()
    }

    fn get_mut(&mut self, shard: usize) -> Option<&mut Store> {
        self.0[shard].as_deref_mut()
    }
}

/// A hold begins: reads the clock, and has what is held follow the settings in force.
pub fn begin(local: &Local, held: &mut Holders<'_>) -> Now {
    local.counters.holds.add(1);
    let now = Now::under(&local.shared.host);
    for holder in held {
        holder.now = now;
        local.heed_settings(holder);
    }
    now
}

/// Runs `f` while all shards are held, with the clock read and the settings in force. For work of no connection: other
/// threads' commands are whole before and after. Must be awaited while this thread is not in its data.
pub async fn hold_all<T>(local: &Local, f: impl FnOnce(&mut Stores<'_>, Now) -> T) -> T {
    let set: ShardSet = (0..local.shared.shards() as u16).collect();
    let (token, mailbox) = local.sit();
    let mut pending = Pending::default();
    loop {
        match acquire(&local.shared, &set, &mut pending) {
            Ok(mut held) => {
                local.stand_up(token);
                let now = begin(local, &mut held);
                return f(&mut Stores::new(held, &set, local.shared.shards()), now);
            }
            Err(busy) => {
                local.want_hold(busy, token);
                if let Event::Granted(shard) = mailbox.next().await {
                    pending.granted(shard);
                }
            }
        }
    }
}

/// What a connection that wants several shards has so far.
#[derive(Default)]
pub struct Pending {
    /// Shards granted, still to be adopted.
    granted: Vec<usize>,
    rounds: u32,
}

impl Pending {
    /// A grant arrived.
    pub fn granted(&mut self, shard: usize) {
        self.granted.push(shard);
    }

    /// Lets go of everything granted.
    pub fn release(&mut self, shared: &Shared) {
        for shard in self.granted.drain(..) {
            drop(shared.cells[shard].adopt());
        }
    }
}

/// Takes all of `set`. `Err`: the shard whose owner must be asked; what may be kept is in `pending`.
pub fn acquire<'a>(shared: &'a Shared, set: &ShardSet, pending: &mut Pending) -> Result<Holders<'a>, usize> {
    let mut held = Holders::new();
    let mut failed = None;
    for shard in set.iter().map(|s| usize::from(*s)) {
        let granted = pending.granted.iter().position(|g| *g == shard);
        let holder = match granted {
            Some(at) => {
                pending.granted.swap_remove(at);
                Some(shared.cells[shard].adopt())
            }
            None => shared.cells[shard].hold(),
        };
        match holder {
            Some(holder) => held.push(holder),
            None => {
                failed = Some(shard);
                break;
            }
        }
    }
    let Some(failed) = failed else {
        pending.rounds = 0;
        return Ok(held);
    };
    // Granted ones above the failed shard would be held against the order.
    pending.release(shared);
    pending.rounds += 1;
    if pending.rounds > PATIENT_ROUNDS {
        for (holder, shard) in held.into_iter().zip(set) {
            holder.pass_on();
            pending.granted.push(usize::from(*shard));
        }
    }
    Err(failed)
}
