//! What shards say to each other. A closed list.
use crate::base::hash::KeyHash;
use crate::cmd::cx::Caller;
use crate::host::mail::Letter;
pub use crate::host::mail::Token;
use crate::wire::{Args, Out, Span};

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
    /// The server ends.
    Stop,
}

/// One command of a group.
#[derive(Clone, Copy)]
pub struct Posted {
    /// Row of the command table.
    pub row: u32,
    first: u32,
    count: u32,
    /// Where the cursor stands: behind the subcommand, if there is one.
    at: u32,
    known: (u32, KeyHash),
    /// Who asks.
    pub caller: Caller,
}

/// Commands of one connection for one other shard, and their replies. Travels there and back by value.
#[derive(Default)]
pub struct Group {
    /// Whose it is.
    pub token: Token,
    /// Shard of the connection.
    pub from: usize,
    /// Shard that runs it.
    pub to: usize,
    bytes: Vec<u8>,
    spans: Vec<Span>,
    /// The commands.
    pub commands: Vec<Posted>,
    /// Replies, one after the other.
    pub out: Out,
    /// Where each reply ends in `out`.
    pub ends: Vec<u32>,
}

impl Group {
    /// Forgets everything but the buffers.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
        self.commands.clear();
        self.out.buf.clear();
        self.ends.clear();
    }

    /// Copies a command in.
    pub fn push(&mut self, row: u32, args: &Args<'_>, known: (u32, KeyHash), caller: Caller) {
        let (buf, spans) = args.parts();
        let first = self.spans.len() as u32;
        for span in spans {
            self.spans.push(Span { at: self.bytes.len() as u32, len: span.len });
            self.bytes.extend_from_slice(span.of(buf));
        }
        let (count, at) = (spans.len() as u32, args.position() as u32);
        self.commands.push(Posted { row, first, count, at, known, caller });
    }

    /// The arguments of a command.
    pub fn args(&self, posted: Posted) -> Args<'_> {
        let spans = &self.spans[posted.first as usize..(posted.first + posted.count) as usize];
        let mut args = Args::new(&self.bytes, spans, posted.known);
        args.seek(posted.at as usize);
        args
    }

    /// Reply `n`.
    pub fn reply(&self, n: usize) -> &[u8] {
        let start = if n == 0 { 0 } else { self.ends[n - 1] as usize };
        &self.out.buf[start..self.ends[n] as usize]
    }

    /// Heap bytes that its buffers keep.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity() + self.out.buf.capacity()
    }
}
