//! A connection's letter box: what reaches it from its own and from other shards.
//!
//! Must stay true: a put wakes the connection once, until it looks again; pushes keep the order in which they came.
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Poll, Waker};

use super::msg::Group;
use crate::host::mail::Letter;
use crate::wire::Protocol;

/// What reaches a waiting connection.
pub enum Event {
    /// Replies of a group.
    Done(Box<Group>),
    /// A shard is held for it.
    Granted(usize),
    /// Try again (the shard's data is free, a pause may be over).
    Rung,
    /// For the client, out of the order of its requests.
    Letter(Letter),
}

/// An empty buffer of pushes larger than this is not kept.
const PUSH_BYTES_KEEP: usize = 64 * 1024;

/// A connection's letter box.
#[derive(Default)]
pub struct Mailbox {
    events: RefCell<VecDeque<Event>>,
    /// Published messages, in the encoding of the client. Bytes, because a subscriber gets many of them and does
    /// nothing with each.
    pushes: RefCell<Vec<u8>>,
    protocol: Cell<Protocol>,
    /// The next tick will ring.
    expects_ring: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Mailbox {
    fn wake(&self) {
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }

    /// Puts an event in.
    pub(super) fn put(&self, event: Event) {
        if matches!(event, Event::Rung) {
            self.expects_ring.set(false);
        }
        self.events.borrow_mut().push_back(event);
        self.wake();
    }

    /// Puts a push of RESP3 in; a client that speaks RESP2 gets an array instead.
    #[inline]
    pub(super) fn put_push(&self, push: &[u8]) {
        let mut pushes = self.pushes.borrow_mut();
        let at = pushes.len();
        pushes.extend_from_slice(push);
        if self.protocol.get() == Protocol::Resp2 {
            pushes[at] = b'*';
        }
        drop(pushes);
        self.wake();
    }

    /// Takes the next event.
    pub fn take(&self) -> Option<Event> {
        self.events.borrow_mut().pop_front()
    }

    /// Takes the next letter, ahead of what else is there.
    pub fn take_letter(&self) -> Option<Letter> {
        let mut events = self.events.borrow_mut();
        let at = events.iter().position(|event| matches!(event, Event::Letter(_)))?;
        match events.remove(at) {
            Some(Event::Letter(letter)) => Some(letter),
            _ => None,
        }
    }

    /// Moves the pushes to the end of `out`.
    pub fn take_pushes(&self, out: &mut Vec<u8>) {
        let mut pushes = self.pushes.borrow_mut();
        if pushes.is_empty() {
            return;
        }
        if out.is_empty() {
            std::mem::swap(&mut *pushes, out);
        } else {
            out.append(&mut pushes);
        }
        if pushes.capacity() > PUSH_BYTES_KEEP {
            *pushes = Vec::new();
        }
    }

    /// Whether there are events, apart from pushes.
    pub fn has_events(&self) -> bool {
        !self.events.borrow().is_empty()
    }

    /// Sets the encoding of pushes that come from now on.
    #[inline]
    pub fn set_protocol(&self, protocol: Protocol) {
        self.protocol.set(protocol);
    }

    /// Whether something is there; else `waker` is woken when something comes.
    pub fn poll(&self, waker: &Waker) -> bool {
        if self.has_events() || !self.pushes.borrow().is_empty() {
            return true;
        }
        let mut known = self.waker.borrow_mut();
        if !known.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *known = Some(waker.clone());
        }
        false
    }

    /// Waits for an event, and takes it.
    pub async fn next(&self) -> Event {
        poll_fn(|cx| match self.take() {
            Some(event) => Poll::Ready(event),
            None => {
                self.poll(cx.waker());
                Poll::Pending
            }
        })
        .await
    }

    /// Waits until there is something.
    pub async fn arrival(&self) {
        poll_fn(|cx| if self.poll(cx.waker()) { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    /// Notes that the next tick will ring; `true` when that was noted before.
    pub(super) fn expect_ring(&self) -> bool {
        self.expects_ring.replace(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn pushes_keep_their_order_and_wake_once() {
        let (mailbox, count) = (Mailbox::default(), Arc::new(Count::default()));
        let waker = Waker::from(count.clone());
        assert!(!mailbox.poll(&waker));
        mailbox.put_push(b">a");
        mailbox.set_protocol(Protocol::Resp3);
        mailbox.put_push(b">b");
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert!(mailbox.poll(&waker) && !mailbox.has_events());
        let mut out = b"+".to_vec();
        mailbox.take_pushes(&mut out);
        assert_eq!(out, b"+*a>b");
        assert!(!mailbox.poll(&waker));
        mailbox.put_push(b">c");
        out.clear();
        mailbox.take_pushes(&mut out);
        assert_eq!((&out[..], count.0.load(Ordering::Relaxed)), (&b">c"[..], 2));
    }

    #[test]
    fn a_ring_is_expected_until_it_comes() {
        let mailbox = Mailbox::default();
        assert!(!mailbox.expect_ring() && mailbox.expect_ring());
        mailbox.put(Event::Rung);
        assert!(matches!(mailbox.take(), Some(Event::Rung)) && !mailbox.expect_ring());
    }
}
