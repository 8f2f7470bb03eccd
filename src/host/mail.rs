//! Letters to connections: what reaches a client out of the order of its requests, from whatever shard.
//!
//! Must stay true: a letter names the connection by a token of its shard, and one for a connection that is gone reaches
//! nobody; letters of one thread to one connection arrive in the order in which they were written.
use std::sync::Arc;

use super::hub::Message;

/// A connection among those of its shard; stale tokens reach nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Token {
    /// Place in the shard's list of connections.
    pub slot: u32,
    /// How often the place was used before.
    pub generation: u32,
}

/// Where a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Address {
    /// Its shard.
    pub shard: u16,
    /// Which connection of that shard.
    pub token: Token,
}

/// What a letter says.
#[derive(Clone, Debug)]
pub enum Letter {
    /// The client gets this, a push of RESP3; one that speaks RESP2 gets an array instead.
    Push(Arc<[u8]>),
    /// For all subscribers of the message's subject on the shard of the address, whatever the token.
    Published(Message),
    /// The client gets this as it is, whatever protocol it speaks.
    Line(Arc<[u8]>),
    /// The reply of the command that the client is blocked in.
    Served(Vec<u8>),
    /// The command that the client is blocked in may be served; the connection has the claim and must run it again.
    Retry,
    /// Look again: the wait may be over.
    Rung,
    /// The client shall forget what it keeps of these keys.
    Forget {
        /// An array of keys, in the encoding of replies; `None`: all keys.
        keys: Option<Arc<[u8]>>,
        /// It is another client that keeps them, and has them redirected.
        for_other: bool,
    },
    /// What the client wants to have redirected reaches nobody: the client with this number is gone.
    RedirectBroken(u64),
}

/// Letters that a command left behind, to be sent when it is done.
pub type Mail = Vec<(Address, Letter)>;
