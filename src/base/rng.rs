//! A small seeded generator of random numbers: sampling, ids, random replies.
//!
//! xoshiro256++ (Blackman and Vigna, 2019), its state filled by SplitMix64. Quick and well spread, but
//! predictable to anyone who sees enough of it: never for passwords or keys. The same seed gives the same
//! numbers for ever, which tests rely on.
use std::cell::RefCell;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// A generator; each owner holds its own, nothing is shared.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The generator that this seed always gives. Any seed will do, zero included.
    pub fn seeded(seed: u64) -> Self {
        let mut mixer = seed;
        Self { state: std::array::from_fn(|_| split_mix(&mut mixer)) }
    }

    /// A generator that differs from every other one and from run to run.
    ///
    /// The standard library's hash keys are its source: drawn from the operating system once per thread and
    /// changed at every call.
    pub fn from_entropy() -> Self {
        let mut state = [0; 4];
        for (index, word) in state.iter_mut().enumerate() {
            *word = RandomState::new().hash_one(index);
        }
        // An all-zero state would give zeros for ever.
        if state == [0; 4] { Self::seeded(0) } else { Self { state } }
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number from 0 up to but not including `n`, each equally likely; 0 when `n` is 0.
    ///
    /// Multiplies instead of dividing and redraws the few products that would favour small numbers
    /// (Lemire, "Fast Random Integer Generation in an Interval", 2019).
    pub fn below(&mut self, n: u64) -> u64 {
        let mut product = u128::from(self.next_u64()) * u128::from(n);
        if (product as u64) < n {
            let surplus = n.wrapping_neg() % n;
            while (product as u64) < surplus {
                product = u128::from(self.next_u64()) * u128::from(n);
            }
        }
        (product >> 64) as u64
    }

    /// A string of `n_chars` lower-case hexadecimal digits, as in run ids.
    pub fn hex(&mut self, n_chars: usize) -> String {
        let mut text = String::with_capacity(n_chars);
        let mut bits = 0;
        for index in 0..n_chars {
            if index % 16 == 0 {
                bits = self.next_u64();
            }
            text.push(char::from(b"0123456789abcdef"[(bits & 15) as usize]));
            bits >>= 4;
        }
        text
    }
}

thread_local! {
    static OF_THREAD: RefCell<Rng> = RefCell::new(Rng::from_entropy());
}

/// Lets the calling thread's generator begin anew with a seed. For simulations.
#[doc(hidden)]
pub fn seed_thread(seed: u64) {
    OF_THREAD.set(Rng::seeded(seed));
}

/// [`Rng::below`] of a generator that belongs to the calling thread.
pub fn below(n: u64) -> u64 {
    OF_THREAD.with_borrow_mut(|rng| rng.below(n))
}

/// A random place among `len`, by the calling thread's generator.
pub fn index_below(len: usize) -> usize {
    below(len as u64) as usize
}

/// [`Rng::next_u64`] of a generator that belongs to the calling thread.
pub fn next_u64() -> u64 {
    OF_THREAD.with_borrow_mut(Rng::next_u64)
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{prop_assert, proptest};

    #[test]
    fn split_mix_gives_its_published_numbers() {
        let mut state = 1_234_567;
        let first: [u64; 3] = std::array::from_fn(|_| split_mix(&mut state));
        assert_eq!(first, [6457827717110365317, 3203168211198807973, 9817491932198370423]);
    }

    #[test]
    fn xoshiro_gives_its_published_numbers() {
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let first: [u64; 5] = std::array::from_fn(|_| rng.next_u64());
        assert_eq!(first, [41943041, 58720359, 3588806011781223, 3591011842654386, 9228616714210784205]);
    }

    #[test]
    fn a_seed_repeats_and_entropy_does_not() {
        let (mut a, mut b) = (Rng::seeded(7), Rng::seeded(7));
        assert_eq!(a.next_u64(), b.next_u64());
        assert_ne!(Rng::seeded(7).next_u64(), Rng::seeded(8).next_u64());
        assert_ne!(Rng::from_entropy().next_u64(), Rng::from_entropy().next_u64());
    }

    #[test]
    fn below_is_even_and_within_bounds() {
        let mut rng = Rng::seeded(1);
        assert_eq!((rng.below(0), rng.below(1)), (0, 0));
        let mut counts = [0_u32; 6];
        for _ in 0..60_000 {
            counts[rng.below(6) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
    }

    #[test]
    fn below_does_not_favour_small_numbers_of_a_large_range() {
        // Scaling 64 bits to three quarters of 2^64 hits every third number twice unless surplus draws go.
        let (n, mut low) = (3 << 62, 0_u32);
        let mut rng = Rng::seeded(2);
        for _ in 0..30_000 {
            low += u32::from(rng.below(n).is_multiple_of(3));
        }
        assert!((9_500..10_500).contains(&low), "{low}");
    }

    #[test]
    fn hex_has_the_length_and_the_letters() {
        let mut rng = Rng::seeded(3);
        let id = rng.hex(40);
        assert_eq!(id.len(), 40);
        assert!(id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')));
        assert_ne!(id, rng.hex(40));
        assert_eq!(rng.hex(0), "");
        assert!(id[..16] != id[16..32], "each block of digits draws anew");
    }

    #[test]
    fn threads_draw_different_numbers() {
        let draw = || [below(u64::MAX), below(u64::MAX)];
        let other = std::thread::spawn(draw).join().unwrap();
        assert!(draw() != draw() && draw() != other);
    }

    #[test]
    fn a_thread_repeats_what_it_was_seeded_with() {
        let draw = || {
            seed_thread(5);
            [next_u64(), below(1000)]
        };
        assert_eq!(std::thread::spawn(draw).join().unwrap(), draw());
    }

    proptest! {
        #[test]
        fn below_stays_below(seed: u64, n in 1_u64..) {
            prop_assert!(Rng::seeded(seed).below(n) < n);
        }
    }
}
