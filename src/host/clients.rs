//! The connected clients of all shards, for CLIENT LIST and KILL.
//!
//! Taken at connect, disconnect and by administrators only. What changes with every batch is atomic and written
//! by the client's own shard.
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::hub::Kind;
use super::mail::Address;
use super::{Claim, Counter};
use crate::base::clock;
use crate::rt::sys::shutdown_fd;

/// What CLIENT LIST tells of a client by a letter. Most are bits of [`ClientInfo::marks`]; some follow from other fields.
pub mod mark {
    /// Watches every command.
    pub const MONITOR: u32 = 1;
    /// Subscribed to something. Follows from the subscriptions.
    pub const PUBSUB: u32 = 1 << 1;
    /// Inside MULTI. Follows from what is queued.
    pub const MULTI: u32 = 1 << 2;
    /// Waits in a blocking command, or for a pause to end. Follows from these.
    pub const BLOCKED: u32 = 1 << 3;
    /// Tracks keys.
    pub const TRACKING: u32 = 1 << 4;
    /// Tracks keys for a connection that is gone.
    pub const TRACKING_BROKEN: u32 = 1 << 5;
    /// Tracks all keys with some prefixes.
    pub const TRACKING_BROADCAST: u32 = 1 << 6;
    /// To be closed at once. Follows from that.
    pub const KILLED: u32 = 1 << 7;
    /// Will be closed once its replies are sent.
    pub const CLOSES: u32 = 1 << 8;
    /// CLIENT NO-EVICT.
    pub const NO_EVICT: u32 = 1 << 9;
    /// CLIENT NO-TOUCH.
    pub const NO_TOUCH: u32 = 1 << 10;
    /// Waits for CLIENT PAUSE to end; has no letter of its own.
    pub const PAUSED: u32 = 1 << 11;
    /// Something that it watches has changed. Follows from that.
    pub const CHANGED: u32 = 1 << 12;

    /// The letters in the order in which they are printed.
    pub const LETTERS: &[(u32, char)] = &[
        (MONITOR, 'O'),
        (PUBSUB, 'P'),
        (MULTI, 'x'),
        (BLOCKED, 'b'),
        (TRACKING, 't'),
        (TRACKING_BROKEN, 'R'),
        (TRACKING_BROADCAST, 'B'),
        (CHANGED, 'd'),
        (CLOSES, 'c'),
        (KILLED, 'A'),
        (NO_EVICT, 'e'),
        (NO_TOUCH, 'T'),
    ];
}

/// What others may know of a client.
#[derive(Debug)]
pub struct ClientInfo {
    /// Unique, ascending.
    pub id: u64,
    /// Remote address as `ip:port`.
    pub addr: String,
    /// Local address as `ip:port`.
    pub laddr: String,
    /// Socket, -1 once closed: the owner sets it, under the lock, before it closes the socket.
    pub fd: Mutex<i32>,
    /// Shard that serves it.
    pub shard: AtomicI32,
    /// Wall clock at connect, milliseconds.
    pub since_ms: u64,
    /// Wall clock of the last batch, milliseconds.
    pub last_ms: AtomicU64,
    /// CLIENT SETNAME.
    pub name: Mutex<String>,
    /// CLIENT SETINFO lib-name, lib-ver.
    pub lib: Mutex<(String, String)>,
    /// Database.
    pub db: AtomicU32,
    /// 2 or 3.
    pub resp: AtomicU32,
    /// Row of the last command, `u32::MAX` before the first.
    pub last_command: AtomicU32,
    /// Bytes in the read buffer, and its capacity.
    pub query_bytes: AtomicU64,
    /// Capacity of the read buffer.
    pub query_capacity: AtomicU64,
    /// Bytes of replies not yet written.
    pub output_bytes: AtomicU64,
    /// Capacity of the reply buffer.
    pub reply_capacity: AtomicU64,
    /// Bytes that it costs in all, as last accounted for.
    pub memory: Counter,
    /// Commands executed.
    pub commands: AtomicU64,
    /// Bytes read.
    pub net_in: Counter,
    /// Bytes written.
    pub net_out: Counter,
    /// Number of subscriptions, by kind.
    pub subscriptions: [AtomicU32; 3],
    /// Commands queued for EXEC; -1 outside of a transaction.
    pub queued: AtomicI64,
    /// Bytes of the queued commands.
    pub queued_bytes: AtomicU64,
    /// Keys that it watches.
    pub watched: AtomicU32,
    /// Raised when one of them has changed; gone when it watches none.
    pub watched_changed: Mutex<Weak<AtomicBool>>,
    /// Who hears of changes of keys that it tracks: 0: it does itself; -1: it tracks none.
    pub redirect: AtomicI64,
    /// Bits of [`mark`].
    pub marks: AtomicU32,
    /// It shall be closed.
    pub killed: AtomicBool,
    /// Where letters reach it.
    pub address: Mutex<Address>,
    /// Its wait, while it is blocked.
    pub wait: Mutex<Option<Arc<Claim>>>,
}

impl ClientInfo {
    /// A fresh client.
    pub fn new(id: u64, addr: String, laddr: String, fd: i32, shard: usize) -> ClientInfo {
        let now_ms = clock::wall_ms();
        ClientInfo {
            id,
            addr,
            laddr,
            fd: Mutex::new(fd),
            shard: AtomicI32::new(shard as i32),
            since_ms: now_ms,
            last_ms: AtomicU64::new(now_ms),
            name: Mutex::default(),
            lib: Mutex::default(),
            db: AtomicU32::new(0),
            resp: AtomicU32::new(2),
            last_command: AtomicU32::new(u32::MAX),
            query_bytes: AtomicU64::new(0),
            query_capacity: AtomicU64::new(0),
            output_bytes: AtomicU64::new(0),
            reply_capacity: AtomicU64::new(0),
            memory: Counter::default(),
            commands: AtomicU64::new(0),
            net_in: Counter::default(),
            net_out: Counter::default(),
            subscriptions: Default::default(),
            queued: AtomicI64::new(-1),
            queued_bytes: AtomicU64::new(0),
            watched: AtomicU32::new(0),
            watched_changed: Mutex::default(),
            redirect: AtomicI64::new(-1),
            marks: AtomicU32::new(0),
            killed: AtomicBool::new(false),
            address: Mutex::default(),
            wait: Mutex::default(),
        }
    }
}

impl ClientInfo {
    /// Whether it has a [`mark`].
    #[inline]
    pub fn has(&self, mark: u32) -> bool {
        self.marks.load(Ordering::Relaxed) & mark != 0
    }

    /// Sets or clears a [`mark`].
    pub fn set(&self, mark: u32, on: bool) {
        if on {
            self.marks.fetch_or(mark, Ordering::Relaxed);
        } else {
            self.marks.fetch_and(!mark, Ordering::Relaxed);
        }
    }

    /// Number of subscriptions of a kind.
    pub fn subscriptions(&self, kind: Kind) -> u32 {
        self.subscriptions[kind as usize].load(Ordering::Relaxed)
    }

    /// Whether it is subscribed to anything.
    pub fn is_subscriber(&self) -> bool {
        Kind::ALL.into_iter().any(|kind| self.subscriptions(kind) > 0)
    }
}

/// The registry.
#[derive(Debug, Default)]
pub struct Clients {
    by_id: Mutex<BTreeMap<u64, Arc<ClientInfo>>>,
    next_id: AtomicU64,
}

impl Clients {
    /// A new unique id.
    pub fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Enters a client.
    pub fn add(&self, client: Arc<ClientInfo>) {
        self.by_id.lock().insert(client.id, client);
    }

    /// Takes a client out.
    pub fn remove(&self, id: u64) {
        self.by_id.lock().remove(&id);
    }

    /// The client with an id.
    pub fn get(&self, id: u64) -> Option<Arc<ClientInfo>> {
        self.by_id.lock().get(&id).cloned()
    }

    /// Marks a client to be closed and ends its socket, so that its shard notices. Its shard takes the number of
    /// the socket out (under the same lock) before it closes it; hence the number cannot mean another socket here.
    ///
    /// Returns whether nobody had done so before.
    pub fn kill(&self, client: &ClientInfo) -> bool {
        let is_first = !client.killed.swap(true, Ordering::AcqRel);
        let fd = client.fd.lock();
        if *fd >= 0 {
            shutdown_fd(*fd);
        }
        is_first
    }

    /// All clients, by id. Killed ones are on their way out and count no more.
    pub fn all(&self) -> Vec<Arc<ClientInfo>> {
        self.by_id.lock().values().filter(|c| !c.killed.load(Ordering::Acquire)).cloned().collect()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_id.lock().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    #[test]
    fn killing_ends_the_socket_only_while_it_is_open() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (ours, _) = listener.accept().unwrap();
        let clients = Clients::default();
        let info = Arc::new(ClientInfo::new(clients.next_id(), "a".into(), "b".into(), ours.as_raw_fd(), 0));
        clients.add(info.clone());
        clients.kill(&clients.get(info.id).unwrap());
        assert!(info.killed.load(Ordering::Relaxed));
        assert_eq!(theirs.read(&mut [0; 1]).unwrap(), 0);
        *info.fd.lock() = -1;
        clients.kill(&info);
        assert!(clients.get(info.id + 1).is_none());
    }
}
