//! Where a command runs, from its row and its keys alone.
use smallvec::SmallVec;

use crate::base::hash::KeyHash;
use crate::cmd::cx::Client;
use crate::cmd::generic::shard_of_cursor;
use crate::cmd::spec::{Route, Spec};
use crate::cmd::table::table;
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
        Route::Here | Route::Transaction => Plan::Local,
        Route::All => all(shards),
        Route::Cursor => {
            let first = shard_of_cursor(args.get(1), shards) as u16;
            Plan::Several((first..shards as u16).collect())
        }
        Route::Patterns if (2..args.count()).any(|at| args.get(at).contains(&b'*')) => all(shards),
        Route::Keys | Route::Patterns => by_keys(spec, args, known, shards, own),
    }
}

fn add(set: &mut ShardSet, shard: usize) {
    if !set.contains(&(shard as u16)) {
        set.push(shard as u16);
    }
}

/// Adds the shards whose data a command needs, in no order. `known` as for [`plan`].
fn add_needed(set: &mut ShardSet, spec: &Spec, args: &Args<'_>, known: (u32, KeyHash), shards: usize) {
    // As seen from a shard that does not exist, nothing is local but what needs no data.
    match plan(spec, args, known, shards, usize::MAX) {
        Plan::Local => {}
        Plan::Foreign(shard) => add(set, shard),
        Plan::Several(several) => several.iter().for_each(|shard| add(set, usize::from(*shard))),
    }
}

/// The shards, in ascending order, that a command needs which its own connection runs while it holds them all.
pub fn plan_whole(spec: &Spec, args: &Args<'_>, client: &Client, shards: usize) -> ShardSet {
    let mut set = ShardSet::new();
    if shards == 1 {
        set.push(0);
        return set;
    }
    add_needed(&mut set, spec, args, (0, KeyHash::from_bits(0)), shards);
    if spec.route == Route::Transaction {
        if let Some(multi) = &client.multi {
            for command in &multi.queued.commands {
                let (spec, args) = (table().row(command.row).spec, multi.queued.args(*command));
                add_needed(&mut set, spec, &args, command.known, shards);
            }
        }
        let watched = client.watched.iter().flat_map(|watched| watched.hashes());
        watched.for_each(|hash| add(&mut set, hash.shard(shards)));
    }
    set.sort_unstable();
    set
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
            add(&mut set, hash.shard(shards));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::generic;
    use crate::wire::Span;

    fn planned(line: &str) -> Plan {
        let (mut buf, mut spans) = (Vec::new(), Vec::new());
        for word in line.split(' ') {
            spans.push(Span { at: buf.len() as u32, len: word.len() as u32 });
            buf.extend_from_slice(word.as_bytes());
        }
        let args = Args::new(&buf, &spans, (0, KeyHash::of(b"")));
        let spec = generic::COMMANDS.iter().find(|spec| line.split(' ').next() == Some(spec.name)).unwrap();
        plan(spec, &args, (0, KeyHash::of(b"")), 4, 0)
    }

    /// A key on a shard.
    fn key(shard: usize) -> String {
        let on_shard = |key: &String| KeyHash::of(key.as_bytes()).shard(4) == shard;
        (0..).map(|n| format!("key{n}")).find(on_shard).unwrap()
    }

    #[test]
    fn a_pattern_takes_all_shards() {
        let (own, other) = (key(0), key(2));
        let all = Plan::Several((0..4).collect());
        assert_eq!(planned(&format!("sort {own}")), Plan::Local);
        assert_eq!(planned(&format!("sort {own} by nosort get # limit 0 1")), Plan::Local);
        assert_eq!(planned(&format!("sort_ro {other} get #")), Plan::Foreign(2));
        assert_eq!(
            planned(&format!("sort {other} store {own}")),
            Plan::Several([0, 2].into_iter().collect())
        );
        assert_eq!(planned(&format!("sort {own} by w_*")), all);
        assert_eq!(planned(&format!("sort_ro {other} alpha get w_*->f")), all);
        let starred = |key: &String| key.contains('*') && KeyHash::of(key.as_bytes()).shard(4) == 0;
        let starred = (0..).map(|n| format!("{n}*")).find(starred).unwrap();
        assert_eq!(planned(&format!("sort {starred}")), Plan::Local, "the key itself is no pattern");
    }
}
