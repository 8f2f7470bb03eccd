//! Where a command runs, from its row and its keys alone.
use smallvec::SmallVec;

use crate::base::hash::KeyHash;
use crate::cmd::generic::shard_of_cursor;
use crate::cmd::spec::{Route, Spec};
use crate::wire::Args;

/// Shards in ascending order, each once.
pub type ShardSet = SmallVec<[u16; 8]>;

/// Where a command runs.
#[derive(Debug, PartialEq)]
pub enum Plan {
    /// On this shard's data.
    Local,
    /// On one other shard's data.
    Foreign(usize),
    /// On the data of several shards at once.
    Several(ShardSet),
}

/// Plans a command on `own` of `shards` shards. `known` is the hash of a key that was looked at already.
#[inline(always)]
pub fn plan(spec: &Spec, args: &Args<'_>, known: (u32, KeyHash), shards: usize, own: usize) -> Plan {
    if shards == 1 {
        return Plan::Local;
    }
    among_several(spec, args, known, shards, own)
}

fn among_several(spec: &Spec, args: &Args<'_>, known: (u32, KeyHash), shards: usize, own: usize) -> Plan {
    match spec.route {
        Route::Here => Plan::Local,
        Route::All => all(shards),
        Route::Cursor => {
            let first = shard_of_cursor(args.get(1), shards) as u16;
            Plan::Several((first..shards as u16).collect())
        }
        Route::Patterns if (2..args.count()).any(|at| args.get(at).contains(&b'*')) => all(shards),
        Route::Keys | Route::Patterns => by_keys(spec, args, known, shards, own),
    }
}

fn all(shards: usize) -> Plan {
    Plan::Several((0..shards as u16).collect())
}

fn at(shard: usize, own: usize) -> Plan {
    if shard == own { Plan::Local } else { Plan::Foreign(shard) }
}

fn by_keys(spec: &Spec, args: &Args<'_>, known: (u32, KeyHash), shards: usize, own: usize) -> Plan {
    let mut set = ShardSet::new();
    spec.for_each_key(
        args.count(),
        |at| args.get(at),
        |index| {
            let hash = if index as u32 == known.0 { known.1 } else { KeyHash::of(args.get(index)) };
            let shard = hash.shard(shards) as u16;
            if !set.contains(&shard) {
                set.push(shard);
            }
        },
    );
    match set.len() {
        0 => Plan::Local,
        1 => at(usize::from(set[0]), own),
        _ => {
            set.sort_unstable();
            Plan::Several(set)
        }
    }
}
