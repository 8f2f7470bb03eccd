//! What shards say to each other. A closed list.
use std::rc::Rc;

use super::local::Local;
use crate::host::mail::Letter;
pub use crate::host::mail::Token;
use crate::host::queued::Queued;
use crate::wire::Out;

/// Over the rings.
pub enum Message {
    /// Commands for the receiver's keys.
    Work(Box<Group>),
    /// The same group with its replies, on its way back.
    Done(Box<Group>),
    /// The connection wants to hold the receiver's data alone.
    WantHold {
        /// Shard of the connection.
        from: usize,
        /// The connection.
        token: Token,
    },
    /// Those who wait at a key of the receiver shall be looked at again.
    Look {
        /// Its database.
        db: u32,
        /// The key.
        key: Box<[u8]>,
    },
    /// A letter to a connection of the receiver.
    Letter {
        /// The connection.
        token: Token,
        /// What it says.
        letter: Letter,
    },
    /// `shard` is held for the connection; it must adopt the hold.
    Granted {
        /// The held shard.
        shard: usize,
        /// The connection.
        token: Token,
    },
}

/// Over the channel for rare messages.
pub enum Control {
    /// Another shard made a ring to this one.
    Ring(super::mesh::Receiver),
    /// A connection to serve.
    Connection(std::net::TcpStream),
    /// A snapshot has begun: the shard's data is to be walked.
    Walk,
    /// Work for the shard's thread.
    Job(Job),
    /// The server ends.
    Stop,
}

/// Work that any thread hands to a shard's.
pub type Job = Box<dyn FnOnce(&Rc<Local>) + Send>;

/// Commands of one connection for one other shard, and their replies. Travels there and back by value.
#[derive(Default)]
pub struct Group {
    /// Whose it is.
    pub token: Token,
    /// Shard of the connection.
    pub from: usize,
    /// Shard that runs it.
    pub to: usize,
    /// The commands.
    pub queued: Queued,
    /// Replies, one after the other.
    pub out: Out,
    /// Where each reply ends in `out`.
    pub ends: Vec<u32>,
}

impl Group {
    /// Forgets everything but the buffers.
    pub fn clear(&mut self) {
        self.queued.clear();
        self.out.buf.clear();
        self.ends.clear();
    }

    /// Reply `n`.
    pub fn reply(&self, n: usize) -> &[u8] {
        let start = if n == 0 { 0 } else { self.ends[n - 1] as usize };
        &self.out.buf[start..self.ends[n] as usize]
    }

    /// Heap bytes that its buffers keep.
    pub fn capacity(&self) -> usize {
        self.queued.capacity() + self.out.buf.capacity()
    }
}
