//! What a client may leave waiting: replies and messages that it does not read, and requests that are not complete.
//!
//! Must stay true: what waits for a client is bounded by its class's limits, whether it waits for the socket, behind a
//! write that is under way, or in the mailbox.
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::client_commands::line;
use super::session::Session;
use crate::base::clock;
use crate::config::{OutputLimit, P};
use crate::host::ClientInfo;
use crate::rt::log::{self, Level};
use crate::shard::local::Local;

/// Less output than this is over no limit that makes sense, and reading settings costs.
const OUTPUT_BYTES_FREE: u64 = 16 * 1024;
/// So is less input than this.
const INPUT_BYTES_FREE: u64 = 1 << 20;

/// Since when a client's output has been over the soft limit of its class.
#[derive(Debug, Default)]
pub struct Overrun {
    since: Option<Instant>,
}

impl Overrun {
    /// Whether time alone may bring the client over its limit: then every tick must look.
    pub fn is_timed(&self) -> bool {
        self.since.is_some()
    }

    /// Whether the client must be closed at once: it was killed, or its buffers passed their limits. `writing_bytes`
    /// are those of the write under way.
    #[inline]
    pub fn must_close(
        &mut self,
        session: &Session,
        writing_bytes: usize,
        local: &Local,
        info: &ClientInfo,
    ) -> bool {
        let waiting_bytes = (session.out.buf.len() + writing_bytes) as u64;
        info.output_bytes.store(waiting_bytes, Ordering::Relaxed);
        if info.killed.load(Ordering::Relaxed) {
            return true;
        }
        // What is queued since MULTI was asked for, too.
        let input_bytes = session.input_bytes() as u64 + info.queued_bytes.load(Ordering::Relaxed);
        let few = waiting_bytes < OUTPUT_BYTES_FREE && input_bytes < INPUT_BYTES_FREE;
        if few && self.since.is_none() {
            return false;
        }
        self.is_over(session, waiting_bytes, local, info)
    }

    #[cold]
    fn is_over(&mut self, session: &Session, waiting_bytes: u64, local: &Local, info: &ClientInfo) -> bool {
        let settings = local.shared.host.settings();
        let class = if info.is_subscriber() { SUBSCRIBERS } else { NORMAL };
        if self.output_is_over(&settings.output_limits()[class], waiting_bytes, clock::instant()) {
            local.counters.output_limit_closed.add(1);
            say(info, "its output passed its limit");
            return true;
        }
        if self.is_timed() {
            session.ring_at_tick(local);
        }
        let input_bytes = session.input_bytes() as u64 + info.queued_bytes.load(Ordering::Relaxed);
        if input_bytes > settings.memory(P::CLIENT_QUERY_BUFFER_LIMIT) {
            local.counters.query_limit_closed.add(1);
            say(info, "its requests passed client-query-buffer-limit");
            return true;
        }
        false
    }

    /// Over the hard limit, or over the soft one for longer than it may be.
    fn output_is_over(&mut self, limit: &OutputLimit, waiting_bytes: u64, now: Instant) -> bool {
        if limit.hard_bytes > 0 && waiting_bytes >= limit.hard_bytes {
            return true;
        }
        if limit.soft_bytes == 0 || waiting_bytes < limit.soft_bytes {
            self.since = None;
            return false;
        }
        let since = *self.since.get_or_insert(now);
        now.duration_since(since).as_secs() as i64 > limit.soft_seconds
    }
}

/// Tells why a client is closed.
fn say(info: &ClientInfo, why: &str) {
    log::line(Level::Warning, &format!("Closing client: {why}: {}", line(info, clock::wall_ms())));
}

/// Places of the classes among the limits.
const NORMAL: usize = 0;
const SUBSCRIBERS: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn limits_are_hard_or_take_their_time() {
        let limit = OutputLimit { hard_bytes: 1000, soft_bytes: 100, soft_seconds: 2 };
        let start = clock::instant();
        let mut overrun = Overrun::default();
        let mut at = |ms, bytes| {
            let over = overrun.output_is_over(&limit, bytes, start + Duration::from_millis(ms));
            (over, overrun.is_timed())
        };
        assert_eq!(at(0, 1000), (true, false));
        assert_eq!(at(0, 99), (false, false));
        assert_eq!(at(0, 100), (false, true));
        assert_eq!(at(2900, 999), (false, true));
        assert_eq!(at(2950, 50), (false, false));
        assert_eq!(at(3000, 100), (false, true));
        assert_eq!(at(6000, 100), (true, true));
        let none = OutputLimit { hard_bytes: 0, soft_bytes: 0, soft_seconds: 0 };
        assert!(!Overrun::default().output_is_over(&none, u64::MAX, start));
        assert_eq!(crate::config::CLIENT_CLASSES[SUBSCRIBERS], "pubsub");
        assert_eq!(crate::config::CLIENT_CLASSES[NORMAL], "normal");
    }
}
