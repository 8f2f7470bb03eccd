//! Commands that are kept to run later or elsewhere: their arguments in one buffer, and who asked.
use super::mail::Address;
use crate::base::hash::KeyHash;
use crate::wire::{Args, Protocol, Span};

/// Who asks, in the form that travels with a command to another shard.
#[derive(Clone, Copy, Debug, Default)]
pub struct Caller {
    /// Selected database.
    pub db: u32,
    /// Reply encoding.
    pub protocol: Protocol,
    /// CLIENT NO-TOUCH: uses leave no trace.
    pub no_touch: bool,
    /// The client is on this machine.
    pub local: bool,
    /// The command is part of a transaction or a script: it must not wait for others.
    pub is_part: bool,
    /// A script calls the command.
    pub is_script: bool,
    /// The client keeps what its commands read: the stores must note which keys that is.
    pub tracks: bool,
    /// Whose command it is: the client's unique number; 0: nobody's.
    pub client_id: u64,
    /// Where letters reach the client.
    pub address: Address,
}

/// One of [`Queued`].
#[derive(Clone, Copy, Debug)]
pub struct QueuedCommand {
    /// Row of the command table.
    pub row: u32,
    first: u32,
    count: u32,
    /// Where the cursor stands: behind the subcommand, if there is one.
    at: u32,
    /// A key argument whose hash is known, and the hash.
    pub known: (u32, KeyHash),
    /// Who asks.
    pub caller: Caller,
}

/// Commands in order.
#[derive(Clone, Debug, Default)]
pub struct Queued {
    bytes: Vec<u8>,
    spans: Vec<Span>,
    /// The commands.
    pub commands: Vec<QueuedCommand>,
}

impl Queued {
    /// Forgets everything but the buffers.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
        self.commands.clear();
    }

    /// Copies a command in.
    pub fn push(&mut self, row: u32, args: &Args<'_>, known: (u32, KeyHash), caller: Caller) {
        self.push_with(row, args, known, caller, |_| None);
    }

    /// Copies a command in, with other texts for some of its arguments.
    pub fn push_with<'t>(
        &mut self,
        row: u32,
        args: &Args<'_>,
        known: (u32, KeyHash),
        caller: Caller,
        replaced: impl Fn(usize) -> Option<&'t [u8]>,
    ) {
        let (buf, spans) = args.parts();
        let first = self.spans.len() as u32;
        self.spans.reserve(spans.len());
        for (index, span) in spans.iter().enumerate() {
            let text = replaced(index).unwrap_or_else(|| span.of(buf));
            self.spans.push(Span { at: self.bytes.len() as u32, len: text.len() as u32 });
            self.bytes.extend_from_slice(text);
        }
        let (count, at) = (spans.len() as u32, args.position() as u32);
        self.commands.push(QueuedCommand { row, first, count, at, known, caller });
    }

    /// The arguments of a command.
    pub fn args(&self, command: QueuedCommand) -> Args<'_> {
        let spans = &self.spans[command.first as usize..(command.first + command.count) as usize];
        let mut args = Args::new(&self.bytes, spans, command.known);
        args.seek(command.at as usize);
        args
    }

    /// Heap bytes that its buffers keep.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
            + self.spans.capacity() * size_of::<Span>()
            + self.commands.capacity() * size_of::<QueuedCommand>()
    }
}
