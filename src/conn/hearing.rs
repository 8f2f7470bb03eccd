//! Letters to a connection: what its client gets out of the order of its requests.
//!
//! Must stay true: a client hears that a key has changed behind every reply that may hold the key's former value, and
//! what its own command has changed behind that command's reply.
use super::session::Session;
use crate::cmd::spec::gate;
use crate::host::Stand;
use crate::host::mail::Letter;
use crate::shard::local::Local;
use crate::wire::{Out, Protocol};

/// The channel whose subscribers get the redirected messages of others under RESP2.
const CHANNEL: &[u8] = b"__redis__:invalidate";

impl Session {
    /// Takes what was published for this connection.
    #[inline]
    pub fn hear(&mut self) {
        self.mailbox.take_pushes(&mut self.out.buf);
    }

    /// Whether nothing has come but messages for the client, which [`Session::hear`] takes.
    #[inline]
    pub fn only_hears(&self) -> bool {
        !self.mailbox.has_events()
    }

    /// After a command that may have changed the client: speaks as it wants, and hears what it published for itself.
    #[inline]
    pub(super) fn follow_client(&mut self) {
        self.out.protocol = self.client.caller.protocol;
        self.mailbox.set_protocol(self.out.protocol);
        if self.listens() && self.client.gates & gate::REPLY_MODE == 0 {
            self.hear();
        }
    }

    /// Takes a letter in.
    pub(super) fn read_letter(&mut self, local: &Local, letter: Letter) {
        match letter {
            Letter::Push(push) => {
                let at = self.out.buf.len();
                self.out.buf.extend_from_slice(&push);
                if self.client.caller.protocol == Protocol::Resp2 {
                    self.out.buf[at] = b'*';
                }
            }
            Letter::Line(line) => self.out.buf.extend_from_slice(&line),
            Letter::Served(reply) => self.end_wait(local, |out| out.buf.extend_from_slice(&reply)),
            Letter::Retry => {
                if let Some(blocked) = &mut self.blocked {
                    blocked.must_retry = true;
                }
            }
            Letter::Rung => {}
            letter @ (Letter::Forget { .. } | Letter::RedirectBroken(_)) if self.is_owed_a_reply() => {
                self.held_back.push(letter);
            }
            Letter::Forget { keys, for_other } => self.forget(keys.as_deref(), for_other),
            Letter::RedirectBroken(id) => {
                if self.client.tracking.is_some() && self.client.caller.protocol == Protocol::Resp3 {
                    self.out.push(2);
                    self.out.bulk(b"tracking-redir-broken");
                    self.out.int(id as i64);
                }
            }
            Letter::Published(_) => unreachable!("the shard hands these out"),
        }
    }

    /// A command of this client has run whose reply is still to come here: from a fiber, or from the shard that served
    /// it. (Those of posted commands have their places in the output already.)
    fn is_owed_a_reply(&self) -> bool {
        self.fiber.is_some()
            || self.blocked.as_ref().is_some_and(|blocked| blocked.claim.stand() == Stand::Over)
    }

    /// Takes in what the last command left for its own client, and what was held back until now.
    pub(super) fn hear_behind_reply(&mut self) {
        let home = self.home.clone();
        for letter in std::mem::take(&mut self.held_back) {
            self.read_letter(&home, letter);
        }
        while let Some(letter) = self.mailbox.take_letter() {
            self.read_letter(&home, letter);
        }
    }

    /// Tells the client which keys to forget.
    fn forget(&mut self, keys: Option<&[u8]>, for_other: bool) {
        let out = &mut self.out;
        if for_other {
            // Others count on it: from now on it looks for letters before it answers.
            self.client.gates |= gate::LISTENER;
        } else if self.client.tracking.is_none() {
            return;
        }
        if out.protocol == Protocol::Resp3 {
            out.push(2);
            out.bulk(b"invalidate");
        } else if for_other && self.client.gates & gate::SUBSCRIBED != 0 {
            out.push(3);
            out.bulk(b"message");
            out.bulk(CHANNEL);
        } else {
            return;
        }
        write_keys(keys, out);
    }
}

fn write_keys(keys: Option<&[u8]>, out: &mut Out) {
    match keys {
        Some(keys) => out.buf.extend_from_slice(keys),
        None => out.null(),
    }
}
