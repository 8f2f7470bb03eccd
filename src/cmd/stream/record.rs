//! What the append-only log gets of deliveries: who has which entry since when, in words that need no clock, as Redis
//! says it.
use smallvec::SmallVec;

use crate::cmd::cx::WriteCx;
use crate::ds::stream::{Delivery, Group, StreamId};

/// A delivery, with the name of its consumer and where the group stood then.
struct Pending {
    id: StreamId,
    delivery: Delivery,
    consumer: SmallVec<[u8; 32]>,
    last_id: StreamId,
}

/// What changed in a group, noted while the stream is handed out.
#[derive(Default)]
pub struct Records {
    /// Deliveries are noted at all.
    is_on: bool,
    deliveries: Vec<Pending>,
    made: bool,
    moved: bool,
    last_id: StreamId,
    entries_read: Option<i64>,
}

impl Records {
    /// Notes nothing where nothing is logged.
    pub fn new(cx: &WriteCx<'_>) -> Records {
        Records { is_on: cx.is_logged(), ..Records::default() }
    }

    /// An entry is pending as the group says it now, or was until now.
    pub fn delivery(&mut self, group: &Group, id: StreamId) {
        if let Some(delivery) = group.pending().get(&id).filter(|_| self.is_on) {
            let consumer = SmallVec::from_slice(group.consumer(delivery.consumer).name());
            self.deliveries.push(Pending { id, delivery: *delivery, consumer, last_id: group.last_id });
        }
    }

    /// A consumer was made, and has nothing pending.
    pub fn made_consumer(&mut self) {
        self.made = true;
    }

    /// The group goes on behind another entry.
    pub fn moved(&mut self) {
        self.moved = true;
    }

    /// Where the group stands at the end.
    pub fn end(&mut self, group: &Group) {
        (self.last_id, self.entries_read) = (group.last_id, group.entries_read);
    }

    /// Logs all of it.
    pub fn log(self, cx: &mut WriteCx<'_>, key: &[u8], group: &[u8], consumer: &[u8]) {
        cx.log_own();
        if self.made {
            cx.log(&[b"XGROUP", b"CREATECONSUMER", key, group, consumer]);
        }
        for Pending { id, delivery, consumer, last_id } in &self.deliveries {
            let (mut time, mut count) = (itoa::Buffer::new(), itoa::Buffer::new());
            let (time, count) =
                (time.format(delivery.time_ms).as_bytes(), count.format(delivery.count).as_bytes());
            let (id, last_id) = (id.text(b'-'), last_id.text(b'-'));
            let head: [&[u8]; 6] = [b"XCLAIM", key, group, consumer, b"0", id.as_bytes()];
            let tail: [&[u8]; 8] =
                [b"TIME", time, b"RETRYCOUNT", count, b"FORCE", b"JUSTID", b"LASTID", last_id.as_bytes()];
            cx.log(&[&head[..], &tail].concat());
        }
        if self.moved {
            let last_id = self.last_id.text(b'-');
            let mut read = itoa::Buffer::new();
            let read = read.format(self.entries_read.unwrap_or(-1)).as_bytes();
            cx.log(&[b"XGROUP", b"SETID", key, group, last_id.as_bytes(), b"ENTRIESREAD", read]);
        }
    }
}
