//! What clients cost, and who is closed when all of them together cost too much (`maxmemory-clients`).
//!
//! Must stay true: a connection whose memory did not change pays a comparison per turn. The largest go first; who asked
//! to be spared is counted, but not closed.
use std::cmp::Reverse;
use std::sync::atomic::Ordering;

use super::client_commands::line;
use super::session::Session;
use crate::base::clock;
use crate::cmd::spec::gate;
use crate::host::hub::Kind;
use crate::host::{ClientInfo, mark};
use crate::rt::log::{self, Level};
use crate::shard::local::Local;

/// What a connection costs without buffers: its state and what others may know of it.
const CLIENT_BYTES: u64 = (size_of::<Session>() + size_of::<ClientInfo>()) as u64;
/// What a subscription costs besides its name, which others may share.
const SUBSCRIPTION_BYTES: u64 = 64;

/// Takes note of what a connection costs now, of which `writing_bytes` are on their way to the socket, and closes
/// clients when that is too much for all of them together.
#[inline]
pub fn account(session: &Session, writing_bytes: usize, local: &Local, info: &ClientInfo) {
    let client = &session.client;
    let mut bytes = CLIENT_BYTES
        + info.query_capacity.load(Ordering::Relaxed)
        + (session.out.buf.capacity() + writing_bytes) as u64;
    if let Some(multi) = &client.multi {
        bytes += multi.queued.capacity() as u64;
    }
    if let Some(watched) = &client.watched {
        bytes += watched.bytes() as u64;
    }
    if client.gates & gate::SUBSCRIBED != 0 {
        let count: u32 = Kind::ALL.into_iter().map(|kind| info.subscriptions(kind)).sum();
        bytes += u64::from(count) * SUBSCRIPTION_BYTES;
    }
    if bytes != info.memory.get() {
        info.reply_capacity.store(session.out.buf.capacity() as u64, Ordering::Relaxed);
        changed(bytes, local, info);
    }
    if local.watch.clients_bytes_fell.take() {
        evict(local);
    }
}

#[cold]
fn changed(bytes: u64, local: &Local, info: &ClientInfo) {
    let before = info.memory.get();
    info.memory.set(bytes);
    local.counters.client_bytes.add(bytes.wrapping_sub(before));
    let max_bytes = local.watch.clients_bytes_max.get();
    if bytes > before && local.shared.host.sum(|c| &c.client_bytes) >= max_bytes {
        evict(local);
    }
}

/// A connection ends.
pub fn forget(local: &Local, info: &ClientInfo) {
    local.counters.client_bytes.add(info.memory.get().wrapping_neg());
    info.memory.set(0);
}

/// Closes the largest clients until the others are within the limit.
#[cold]
pub fn evict(local: &Local) {
    let host = &local.shared.host;
    // Nobody may have asked for anything since the limit was lowered.
    local.watch.heed_settings(host);
    let max_bytes = local.watch.clients_bytes_max.get();
    if host.sum(|c| &c.client_bytes) < max_bytes {
        return;
    }
    let mut clients = host.clients.all();
    let mut total: u64 = clients.iter().map(|info| info.memory.get()).sum();
    clients.retain(|info| !info.has(mark::NO_EVICT));
    clients.sort_by_key(|info| Reverse(info.memory.get()));
    for info in clients {
        if total < max_bytes {
            return;
        }
        total = total.saturating_sub(info.memory.get());
        if host.clients.kill(&info) {
            local.counters.evicted_clients.add(1);
            log::line(Level::Notice, &format!("Evicting client: {}", line(&info, clock::wall_ms())));
        }
    }
}
