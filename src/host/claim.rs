//! The right to end a wait. Whoever wants to serve a waiting client, or to end its wait otherwise, claims it first.
//!
//! Must stay true: of all who try at once only one succeeds, so a client is served exactly once.
use std::sync::atomic::{AtomicU8, Ordering};

/// How a wait stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Stand {
    /// Nobody has claimed it.
    Waiting = 0,
    /// Somebody tries to serve it.
    Claimed = 1,
    /// It was served, or its client is gone.
    Over = 2,
    /// It ended as if its time were up.
    TimedOut = 3,
    /// It ended with an error, because another client wanted that.
    Unblocked = 4,
}

/// A wait, as far as those who want to end it must know.
#[derive(Debug, Default)]
pub struct Claim(AtomicU8);

impl Claim {
    /// How it stands.
    pub fn stand(&self) -> Stand {
        match self.0.load(Ordering::Acquire) {
            0 => Stand::Waiting,
            1 => Stand::Claimed,
            3 => Stand::TimedOut,
            4 => Stand::Unblocked,
            _ => Stand::Over,
        }
    }

    /// Takes the right to serve it. `false`: somebody else has it, or it is over.
    pub fn claim(&self) -> bool {
        self.change(Stand::Waiting, Stand::Claimed)
    }

    /// Ends it at once. `false`: it is claimed, or over.
    pub fn end(&self, how: Stand) -> bool {
        self.change(Stand::Waiting, how)
    }

    /// Gives the claim back: there was nothing to serve it with. It stays over when its client has gone meanwhile.
    pub fn release(&self) {
        self.change(Stand::Claimed, Stand::Waiting);
    }

    /// Ends it whatever its stand, since its client is gone. `true`: somebody had claimed it, and perhaps nobody goes on
    /// to serve those behind it.
    pub fn abandon(&self) -> bool {
        self.0.swap(Stand::Over as u8, Ordering::AcqRel) == Stand::Claimed as u8
    }

    /// Ends it; the caller has claimed it.
    pub fn finish(&self) {
        self.0.store(Stand::Over as u8, Ordering::Release);
    }

    fn change(&self, from: Stand, to: Stand) -> bool {
        self.0.compare_exchange(from as u8, to as u8, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_claim_succeeds() {
        let claim = Claim::default();
        assert!(claim.claim() && !claim.claim() && !claim.end(Stand::TimedOut));
        claim.release();
        assert!(claim.end(Stand::Unblocked) && !claim.claim());
        assert_eq!(claim.stand(), Stand::Unblocked);
        let served = Claim::default();
        assert!(served.claim());
        served.finish();
        assert_eq!((served.stand(), served.claim()), (Stand::Over, false));
        let gone = Claim::default();
        assert!(gone.claim() && gone.abandon() && !gone.abandon());
        gone.release();
        assert_eq!((gone.stand(), gone.claim()), (Stand::Over, false), "nobody serves who is gone");
        assert!(!Claim::default().abandon());
    }
}
