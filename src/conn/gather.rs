//! Commands that run elsewhere, and their replies put back into the order of the requests.
//!
//! Must stay true: replies leave in request order, each once. Until all groups of a batch are back nothing after
//! the first hole leaves the buffer, and no further batch is executed.
use crate::base::hash::KeyHash;
use crate::cmd::cx::Caller;
use crate::shard::local::Local;
use crate::shard::msg::{Group, Token};
use crate::wire::{Args, Out};

/// A reply that is missing in the output buffer.
struct Hole {
    /// Where it belongs.
    at: usize,
    shard: usize,
    nth: usize,
}

/// The groups of one batch.
#[derive(Default)]
pub struct Gather {
    holes: Vec<Hole>,
    /// By shard: being filled or back with replies.
    groups: Vec<Option<Box<Group>>>,
    outstanding: usize,
    /// Groups not sent yet.
    unsent: usize,
}

impl Gather {
    /// Whether commands of this connection are under way to `shard`; a read there must follow them.
    #[inline]
    pub fn pending(&self, shard: usize) -> bool {
        self.unsent > 0 && self.groups.get(shard).is_some_and(Option::is_some)
    }

    /// Whether anything is under way.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.unsent + self.outstanding > 0
    }

    /// Leaves a command for `shard`; its reply belongs at the end of `out`, or nowhere when `silent`.
    pub fn post(
        &mut self,
        local: &Local,
        token: Token,
        shard: usize,
        command: (u32, &Args<'_>, (u32, KeyHash)),
        caller: Caller,
        reply_at: Option<usize>,
    ) {
        if self.groups.len() <= shard {
            self.groups.resize_with(local.shared.shards(), || None);
        }
        let group = self.groups[shard].get_or_insert_with(|| {
            self.unsent += 1;
            local.group(token)
        });
        if let Some(at) = reply_at {
            self.holes.push(Hole { at, shard, nth: group.queued.commands.len() });
        }
        let (row, args, known) = command;
        group.queued.push(row, args, known, caller);
    }

    /// Sends all groups.
    pub fn send(&mut self, local: &Local) {
        for shard in 0..self.groups.len() {
            if let Some(group) = self.groups[shard].take() {
                local.post(shard, group);
                self.outstanding += 1;
            }
        }
        self.unsent = 0;
    }

    /// A group is back from `shard`. `true`: it was the last one.
    pub fn back(&mut self, shard: usize, group: Box<Group>) -> bool {
        self.groups[shard] = Some(group);
        self.outstanding -= 1;
        self.outstanding == 0
    }

    /// Fills the holes of `out`.
    pub fn assemble(&mut self, local: &Local, out: &mut Out) {
        if !self.holes.is_empty() {
            let bytes: usize = self.groups.iter().flatten().map(|g| g.out.buf.len()).sum();
            let mut whole = Vec::with_capacity(out.buf.len() + bytes);
            let mut done = 0;
            for hole in self.holes.drain(..) {
                whole.extend_from_slice(&out.buf[done..hole.at]);
                done = hole.at;
                if let Some(group) = &self.groups[hole.shard] {
                    whole.extend_from_slice(group.reply(hole.nth));
                }
            }
            whole.extend_from_slice(&out.buf[done..]);
            out.buf = whole;
        }
        for group in self.groups.iter_mut().filter_map(Option::take) {
            local.recycle(group);
        }
    }
}
