//! Rings between pairs of shards, made when the first message goes that way.
//!
//! Must stay true: a ring has one sender and one receiver; a message that finds its ring full waits in the sender
//! in order, and the sender comes back for it.
use std::cell::RefCell;
use std::collections::VecDeque;

use ringbuf::traits::{Consumer, Observer, Producer, Split};
use ringbuf::{HeapCons, HeapProd, HeapRb};

use super::Shared;
use super::msg::{Control, Message};
use crate::rt::meet::meet;

/// Messages that a ring of a server takes.
pub const RING_MESSAGES: usize = 256;

/// The receiving end of a ring.
pub struct Receiver(HeapCons<Message>);

/// One shard's ends of its rings.
pub struct Mesh {
    to: RefCell<Vec<Option<HeapProd<Message>>>>,
    from: RefCell<Vec<Receiver>>,
    /// Messages whose ring was full.
    waiting: RefCell<VecDeque<(usize, Message)>>,
}

impl Mesh {
    /// No ring yet, to none of `shards` shards.
    pub fn new(shards: usize) -> Mesh {
        Mesh {
            to: RefCell::new((0..shards).map(|_| None).collect()),
            from: RefCell::default(),
            waiting: RefCell::default(),
        }
    }

    /// Enters the receiving end of a ring that another shard made.
    pub fn add(&self, receiver: Receiver) {
        self.from.borrow_mut().push(receiver);
    }

    /// Sends a message and wakes its receiver if that sleeps.
    pub fn send(&self, shared: &Shared, own: usize, to: usize, message: Message) {
        shared.host.counters[own].mesh_messages.add(1);
        let mut waiting = self.waiting.borrow_mut();
        if waiting.iter().any(|(other, _)| *other == to) {
            waiting.push_back((to, message));
        } else if let Err(message) = self.push(shared, to, message) {
            waiting.push_back((to, message));
        }
        drop(waiting);
        if shared.bells[to].ring() {
            shared.host.counters[own].parks.add(1);
        }
    }

    fn push(&self, shared: &Shared, to: usize, message: Message) -> Result<(), Message> {
        let mut rings = self.to.borrow_mut();
        let ring = rings[to].get_or_insert_with(|| {
            let (sender, receiver) = HeapRb::new(shared.ring_messages).split();
            shared.control(to, Control::Ring(Receiver(receiver)));
            sender
        });
        meet();
        ring.try_push(message)
    }

    /// Tries again to send what found its ring full. `true`: some of it was sent.
    pub fn send_waiting(&self, shared: &Shared) -> bool {
        let mut waiting = self.waiting.borrow_mut();
        let (count, mut any) = (waiting.len(), false);
        let mut stuck: Vec<usize> = Vec::new();
        for _ in 0..count {
            let Some((to, message)) = waiting.pop_front() else { break };
            let sent = if stuck.contains(&to) { Err(message) } else { self.push(shared, to, message) };
            match sent {
                Ok(()) => {
                    any = true;
                    shared.bells[to].ring();
                }
                Err(message) => {
                    stuck.push(to);
                    waiting.push_back((to, message));
                }
            }
        }
        any
    }

    /// Whether a message waits in the sender, because its ring was full.
    #[inline]
    pub fn has_waiting(&self) -> bool {
        !self.waiting.borrow().is_empty()
    }

    /// Takes what has arrived, ring by ring, at most a ring's worth each. `start` rotates which ring is first.
    pub fn receive(&self, start: usize, mut f: impl FnMut(Message)) -> bool {
        let count = self.from.borrow().len();
        let mut any = false;
        for offset in 0..count {
            let index = (start + offset) % count;
            let most = self.from.borrow()[index].0.capacity().get();
            for _ in 0..most {
                meet();
                // Not borrowed while `f` runs: it may send, and sending may make rings.
                let Some(message) = self.from.borrow_mut()[index].0.try_pop() else { break };
                any = true;
                f(message);
            }
        }
        any
    }

    /// Whether something has arrived.
    pub fn has_arrivals(&self) -> bool {
        meet();
        self.from.borrow().iter().any(|ring| !ring.0.is_empty())
    }
}
