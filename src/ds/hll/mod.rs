//! HyperLogLog: the number of different elements of a set, estimated from 16384 registers of six bits.
//!
//! ```text
//! 0      4        5          8                       16
//! "HYLL" [encoding][unused 3][cached count u64 LE]   [registers ...]
//! encoding 0, dense:  12288 bytes, register n in bits 6n to 6n+5, counted from the lowest bit of the first byte
//! encoding 1, sparse: runs of equal registers, see `sparse`
//! ```
//! The highest bit of the cached count says that it is stale. The bytes are those of Redis for the same history of
//! calls, so values can be exchanged with it in either direction.
//!
//! Must stay true: the bytes may come from anyone. Whatever they are, nothing here panics or reads outside them; what
//! is no HyperLogLog or contradicts itself is refused.
mod dense;
mod estimate;
mod hash;
mod sparse;

pub use sparse::decode;

use super::packed::PackedBytes;
use dense::DENSE_BYTES;
use hash::Place;

const INDEX_BITS: u32 = 14;
/// Number of registers.
pub const REGISTERS: usize = 1 << INDEX_BITS;
/// The largest value that [`hash::Place`] gives: all bits that do not choose the register are zero.
const RANK_MAX: usize = 64 - INDEX_BITS as usize + 1;
/// Values that a register can hold.
const REGISTER_VALUES: usize = 64;

const MAGIC: &[u8; 4] = b"HYLL";
const ENCODING_AT: usize = 4;
const COUNT_AT: usize = 8;
const HEADER_BYTES: usize = 16;
const DENSE: u8 = 0;
const SPARSE: u8 = 1;
const STALE: u64 = 1 << 63;

/// How many registers have each value.
type Histogram = [u32; REGISTER_VALUES];

/// Why bytes are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// They are no HyperLogLog.
    Foreign,
    /// Their header is that of a HyperLogLog, but the runs do not describe its registers.
    Corrupt,
}

/// The two ways to keep registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Six bits each.
    Dense,
    /// Runs.
    Sparse,
}

/// The registers of a value, as far as its header and length tell.
enum Body<'a> {
    Dense(&'a [u8; DENSE_BYTES]),
    Sparse(&'a [u8]),
}

fn body(value: &[u8]) -> Result<Body<'_>, Invalid> {
    let (header, registers) = value.split_first_chunk::<HEADER_BYTES>().ok_or(Invalid::Foreign)?;
    match (header.starts_with(MAGIC), header[ENCODING_AT]) {
        (true, DENSE) => registers.try_into().map(Body::Dense).map_err(|_| Invalid::Foreign),
        (true, SPARSE) => Ok(Body::Sparse(registers)),
        _ => Err(Invalid::Foreign),
    }
}

/// The registers of a dense value, to change them; `None` for any other.
fn dense_mut(value: &mut [u8]) -> Option<&mut [u8; DENSE_BYTES]> {
    if !matches!(body(value), Ok(Body::Dense(_))) {
        return None;
    }
    value.split_first_chunk_mut::<HEADER_BYTES>()?.1.try_into().ok()
}

/// A value without elements, its count known to be 0.
pub fn empty() -> Vec<u8> {
    let mut value = vec![0; HEADER_BYTES];
    value[..MAGIC.len()].copy_from_slice(MAGIC);
    value[ENCODING_AT] = SPARSE;
    value.extend_from_slice(&sparse::ALL_ZERO);
    value
}

/// How a value keeps its registers.
///
/// # Errors
/// [`Invalid::Foreign`].
pub fn encoding(value: &[u8]) -> Result<Encoding, Invalid> {
    Ok(match body(value)? {
        Body::Dense(_) => Encoding::Dense,
        Body::Sparse(_) => Encoding::Sparse,
    })
}

fn stored_count(value: &[u8]) -> u64 {
    value[COUNT_AT..].first_chunk().map_or(STALE, |bytes| u64::from_le_bytes(*bytes))
}

/// The count that the value remembers; `None` when its registers changed since.
///
/// # Errors
/// [`Invalid::Foreign`].
pub fn cached_count(value: &[u8]) -> Result<Option<u64>, Invalid> {
    body(value)?;
    let stored = stored_count(value);
    Ok((stored & STALE == 0).then_some(stored))
}

/// Makes the value remember its count. Anything but a HyperLogLog stays as it is.
pub fn cache_count(value: &mut [u8], count: u64) {
    if body(value).is_ok() {
        value[COUNT_AT..HEADER_BYTES].copy_from_slice(&count.to_le_bytes());
    }
}

/// Marks the remembered count as stale. Anything but a HyperLogLog stays as it is.
pub fn forget_count(value: &mut [u8]) {
    if body(value).is_ok() {
        value[HEADER_BYTES - 1] |= 0x80;
    }
}

/// Adds an element; a sparse value that would grow beyond `sparse_bytes_max` becomes dense. Returns whether a
/// register changed; then the remembered count is stale.
///
/// # Errors
/// [`Invalid`]; then nothing changed.
#[inline]
pub fn add(value: &mut impl PackedBytes, element: &[u8], sparse_bytes_max: u64) -> Result<bool, Invalid> {
    let place = Place::of(element);
    let changed = if let Some(registers) = dense_mut(value.bytes_mut()) {
        dense::raise(registers, place)
    } else {
        body(value.bytes())?;
        add_to_sparse(value, place, sparse_bytes_max)?
    };
    if changed {
        forget_count(value.bytes_mut());
    }
    Ok(changed)
}

fn add_to_sparse(value: &mut impl PackedBytes, place: Place, sparse_bytes_max: u64) -> Result<bool, Invalid> {
    let (outcome, _) = sparse::raise(value, sparse::Cursor::START, place, sparse_bytes_max)?;
    if outcome != sparse::Outcome::Full {
        return Ok(outcome == sparse::Outcome::Raised);
    }
    make_dense(value)?;
    Ok(dense_mut(value.bytes_mut()).is_some_and(|registers| dense::raise(registers, place)))
}

/// Turns a sparse value into a dense one. `false`: it was dense already.
///
/// # Errors
/// [`Invalid`]; then nothing changed.
pub fn make_dense(value: &mut impl PackedBytes) -> Result<bool, Invalid> {
    let Body::Sparse(runs) = body(value.bytes())? else { return Ok(false) };
    let mut registers = [0; DENSE_BYTES];
    sparse::for_each_run(runs, |first, len, rank| {
        for index in (first..first + len).filter(|_| rank > 0) {
            dense::raise(&mut registers, Place { index, rank });
        }
    })?;
    let runs_len = runs.len();
    value.splice(HEADER_BYTES, runs_len, &registers);
    value.bytes_mut()[ENCODING_AT] = DENSE;
    Ok(true)
}

/// Estimates the number of elements from the registers, whatever count is remembered.
///
/// # Errors
/// [`Invalid`].
pub fn count(value: &[u8]) -> Result<u64, Invalid> {
    let histogram = match body(value)? {
        Body::Dense(registers) => dense::histogram(registers),
        Body::Sparse(runs) => {
            let mut histogram = [0; REGISTER_VALUES];
            sparse::for_each_run(runs, |_, len, rank| histogram[usize::from(rank)] += len as u32)?;
            histogram
        }
    };
    Ok(estimate::count(&histogram))
}

/// Registers of one byte each, in which several values come together.
pub struct Union([u8; REGISTERS]);

impl Default for Union {
    fn default() -> Union {
        Union([0; REGISTERS])
    }
}

impl From<[u8; REGISTERS]> for Union {
    fn from(registers: [u8; REGISTERS]) -> Union {
        Union(registers)
    }
}

impl Union {
    /// Takes a value's elements in; tells its encoding.
    ///
    /// # Errors
    /// [`Invalid`]; then registers may have changed.
    pub fn merge(&mut self, value: &[u8]) -> Result<Encoding, Invalid> {
        match body(value)? {
            Body::Dense(registers) => {
                dense::merge(&mut self.0, registers);
                Ok(Encoding::Dense)
            }
            Body::Sparse(runs) => {
                sparse::for_each_run(runs, |first, len, rank| {
                    for register in self.0.iter_mut().skip(first).take(if rank > 0 { len } else { 0 }) {
                        *register = rank.max(*register);
                    }
                })?;
                Ok(Encoding::Sparse)
            }
        }
    }

    /// The registers.
    pub fn registers(&self) -> &[u8; REGISTERS] {
        &self.0
    }

    /// Estimates the number of elements.
    pub fn count(&self) -> u64 {
        estimate::count(&dense::histogram_of_bytes(&self.0))
    }

    /// Raises a value's registers to those of the union, which must already contain the value's own. With
    /// `as_dense` the value becomes dense first; else it stays sparse up to `sparse_bytes_max`. Its remembered count is
    /// stale afterwards.
    ///
    /// # Errors
    /// [`Invalid`].
    pub fn store(
        &self,
        value: &mut impl PackedBytes,
        as_dense: bool,
        sparse_bytes_max: u64,
    ) -> Result<(), Invalid> {
        if encoding(value.bytes())? == Encoding::Sparse
            && (as_dense || !self.raise_sparse(value, sparse_bytes_max)?)
        {
            make_dense(value)?;
        }
        if let Some(registers) = dense_mut(value.bytes_mut()) {
            dense::pack(registers, &self.0);
        }
        forget_count(value.bytes_mut());
        Ok(())
    }

    /// One register after the other, from the first: the runs come out as if every element were added. `false`:
    /// there is no room for all.
    fn raise_sparse(&self, value: &mut impl PackedBytes, sparse_bytes_max: u64) -> Result<bool, Invalid> {
        let mut cursor = sparse::Cursor::START;
        for (index, &rank) in self.0.iter().enumerate().filter(|(_, rank)| **rank > 0) {
            let outcome;
            (outcome, cursor) = sparse::raise(value, cursor, Place { index, rank }, sparse_bytes_max)?;
            if outcome == sparse::Outcome::Full {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sha1::{Digest, Sha1};

    use super::*;

    const MAX: u64 = 3000;

    fn digest(value: &[u8]) -> String {
        Sha1::digest(value).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Elements `e:<n>`.
    fn filled(numbers: impl Iterator<Item = u32>) -> Vec<u8> {
        let mut value = empty();
        forget_count(&mut value);
        for n in numbers {
            add(&mut value, format!("e:{n}").as_bytes(), MAX).unwrap();
        }
        value
    }

    /// What a reference server has after PFADD of `e:0` to `e:<n - 1>`, one by one, with a PFCOUNT at every line:
    /// elements, length, count, SHA-1 of the value before the PFCOUNT.
    type Known = &'static [(u32, usize, u64, &'static str)];
    const KNOWN_3000: Known = &[
        (0, 18, 0, "e2c2a4d6f667db2d3180523f3c7a9bda5a4db0fc"),
        (1, 21, 1, "01a78b4a378011b082dcb95b86a997a32887398f"),
        (10, 48, 10, "e14a524dc8c72be2ea95ecea15457dc4d50238e5"),
        (100, 279, 100, "fda2ba4d7f45d6b65e1bd030e00b024e8559c568"),
        (500, 1047, 500, "0c0037adc7c4fa78343e383a702d28f9372e22f0"),
        (1000, 1880, 995, "15fe0d327662d392955345393b067d54ec5f3972"),
        (2000, 12304, 1983, "e95427842d28857b1ecec9ddeb3e3f5f94d7c57b"),
        (5000, 12304, 5027, "4c8eecc70430546194cb41f334805eea5dd5b916"),
        (20000, 12304, 20096, "a789ddd264af7646d0f32010c30cc96aa3ea6732"),
        (100_000, 12304, 100_342, "41a812f0a9fe519ef4249c50ef2322653e47e0b2"),
    ];
    const KNOWN_100: Known = &[
        (10, 48, 10, "9f5c5379dd4b60a9673de60464adaa90296b6e31"),
        (100, 12304, 100, "c53c73a1d2456f42af7306aa8b5b52569e80216a"),
    ];
    const KNOWN_12000: Known = &[
        (0, 18, 0, "e2c2a4d6f667db2d3180523f3c7a9bda5a4db0fc"),
        (2000, 3461, 1983, "d7d3eb6ea91a7be2088486e844acd42c81234cba"),
        (5000, 7181, 5027, "d3db89d6d7eccb51a0bdbf47bd5fc91afba2258c"),
        (20000, 12304, 20096, "a789ddd264af7646d0f32010c30cc96aa3ea6732"),
    ];

    #[test]
    fn values_and_counts_are_known() {
        for (sparse_bytes_max, known) in [(3000, KNOWN_3000), (100, KNOWN_100), (12000, KNOWN_12000)] {
            let mut value = empty();
            forget_count(&mut value);
            let mut added = 0;
            for (elements, len, wanted, sha1) in known {
                for n in added..*elements {
                    add(&mut value, format!("e:{n}").as_bytes(), sparse_bytes_max).unwrap();
                }
                added = *elements;
                assert_eq!((value.len(), digest(&value).as_str()), (*len, *sha1), "{elements}");
                assert_eq!(count(&value), Ok(*wanted));
                assert_eq!(cached_count(&value), Ok(None));
                cache_count(&mut value, *wanted);
                assert_eq!(cached_count(&value), Ok(Some(*wanted)));
            }
        }
    }

    fn union(values: &[&[u8]]) -> Union {
        let mut union = Union::default();
        for value in values {
            union.merge(value).unwrap();
        }
        union
    }

    /// As [`Known`], for PFMERGE.
    #[test]
    fn unions_are_known() {
        let (a, b, c) = (filled(0..400), filled(200..900), filled((0..20000).map(|n| n * 3)));
        let mut other = empty();
        for n in 0..5 {
            add(&mut other, format!("t:{n}").as_bytes(), MAX).unwrap();
        }
        for (target, sources, as_dense, max, len, wanted, sha1) in [
            (empty(), vec![&a, &b], false, MAX, 1716, 899, "efde29636643fee0847258e2962f79e8d9f13a6f"),
            (other, vec![&a, &b], false, MAX, 1726, 904, "4278d7e408e6d0ef93e329ed9c39f03f09bd55da"),
            (empty(), vec![&a, &b], false, 800, 12304, 899, "433e168661f8f2ed8eae8540d34532633c296aed"),
            (empty(), vec![&a, &b, &c], true, MAX, 12304, 20327, "00f43d7091753eb1cde9e4c25adf932a0bedf4c2"),
            (a.clone(), vec![&c], true, MAX, 12304, 20019, "0ef694a9939c01cf36ece6df5de07eb8d843bc0a"),
        ] {
            let mut value = target.clone();
            let mut all: Vec<&[u8]> = vec![&target];
            all.extend(sources.iter().map(|source| source.as_slice()));
            let union = union(&all);
            union.store(&mut value, as_dense, max).unwrap();
            assert_eq!((value.len(), digest(&value).as_str()), (len, sha1));
            assert_eq!((union.count(), count(&value)), (wanted, Ok(wanted)));
        }
    }

    #[test]
    fn hostile_dense_registers_count_as_elsewhere() {
        let mut value = filled(0..3000);
        value[HEADER_BYTES..].fill(0xFF);
        assert_eq!(count(&value), Ok(1 << 63));
        value[HEADER_BYTES..].iter_mut().enumerate().for_each(|(i, byte)| *byte = (i * 7 + i / 5) as u8);
        assert_eq!(count(&value), Ok(277_017));
    }

    #[test]
    fn what_is_no_value_is_refused() {
        let good = filled(0..10);
        let dense = filled(0..5000);
        let with = |value: &[u8], at: usize, byte: u8| {
            let mut value = value.to_vec();
            value[at] = byte;
            value
        };
        let more = |value: &[u8], bytes: &[u8]| [value, bytes].concat();
        for (mut value, why) in [
            (vec![], Invalid::Foreign),
            (good[..15].to_vec(), Invalid::Foreign),
            (with(&good, 0, b'h'), Invalid::Foreign),
            (with(&good, 4, 2), Invalid::Foreign),
            (with(&good, 4, 0), Invalid::Foreign),
            (dense[..dense.len() - 1].to_vec(), Invalid::Foreign),
            (more(&dense, b"x"), Invalid::Foreign),
            (more(&good, b"hello"), Invalid::Corrupt),
            (good[..good.len() - 1].to_vec(), Invalid::Corrupt),
            (good[..16].to_vec(), Invalid::Corrupt),
            (with(&dense, 4, 1), Invalid::Corrupt),
        ] {
            assert_eq!(count(&value), Err(why));
            assert_eq!(Union::default().merge(&value), Err(why));
            assert_eq!(make_dense(&mut value), Err(why));
            assert_eq!(encoding(&value).is_err(), why == Invalid::Foreign);
        }
        assert_eq!(add(&mut good[..16].to_vec(), b"a", MAX), Err(Invalid::Corrupt));
    }

    /// The second byte of an XZERO that is cut off counts as zero.
    #[test]
    fn half_a_run_counts_as_elsewhere() {
        let mut cut = [&empty()[..16], &[63, 63, 63, 62, 0x7F]].concat();
        forget_count(&mut cut);
        assert_eq!((count(&cut), decode(&cut)), (Ok(0), Ok("z:64 z:64 z:64 z:63 Z:16129".to_string())));
        for element in [b"a", b"b", b"c"] {
            assert_eq!(add(&mut cut, element, MAX), Ok(true));
        }
        assert_eq!(&cut[16..], b"???>_\xf4\x80P\xb1\x84K\xfb\x80B");
    }

    /// The registers of a valid value.
    fn registers(value: &[u8]) -> Box<[u8; REGISTERS]> {
        Box::new(*union(&[value]).registers())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn hll_model(seed in any::<u32>(), elements in 0u32..2500, max in 0u64..4000) {
            let mut value = empty();
            let mut model = Box::new([0; REGISTERS]);
            for n in 0..elements {
                let element = (u64::from(seed) << 32 | u64::from(n % 1500)).to_le_bytes();
                let place = Place::of(&element);
                let raised = model[place.index] < place.rank;
                model[place.index] = model[place.index].max(place.rank);
                prop_assert_eq!(add(&mut value, &element, max), Ok(raised));
            }
            prop_assert!(encoding(&value) == Ok(Encoding::Dense) || value.len() as u64 <= max.max(18));
            prop_assert_eq!(registers(&value), model.clone());
            let before = count(&value);
            prop_assert_eq!(make_dense(&mut value).is_ok(), true);
            prop_assert_eq!((registers(&value), count(&value)), (model, before));
        }

        /// A merge is as adding register by register from the first run on.
        #[test]
        fn merges_equal_adding_one_by_one(a in 0u32..900, b in 0u32..900, shift in 0u32..900, max in 0u64..4000) {
            let (source, mut value) = (filled(0..a), filled(shift..shift + b));
            let union = union(&[&value, &source]);
            let mut plain = value.clone();
            for (index, &rank) in union.registers().iter().enumerate().filter(|(_, rank)| **rank > 0) {
                let place = Place { index, rank };
                let raised = match dense_mut(&mut plain) {
                    Some(registers) => dense::raise(registers, place),
                    None => add_to_sparse(&mut plain, place, max).unwrap(),
                };
                prop_assert!(!raised || registers(&plain)[index] == rank);
            }
            union.store(&mut value, false, max).unwrap();
            prop_assert_eq!(value, plain);
        }

        #[test]
        fn hostile_runs_never_panic(
            runs in proptest::collection::vec(any::<u8>(), 0..300),
            changes in proptest::collection::vec((any::<u16>(), any::<u8>()), 0..6),
            max in 0u64..400,
        ) {
            let mut broken = filled(0..300);
            for (at, byte) in changes {
                let at = usize::from(at) % broken.len();
                broken[at] = byte;
            }
            for mut value in [[&empty()[..HEADER_BYTES], &runs].concat(), broken] {
                let mut all = Union::default();
                let merged = all.merge(&value);
                prop_assert_eq!(merged.is_ok(), count(&value).is_ok());
                let _ = (decode(&value), cached_count(&value), union(&[&empty()]).store(&mut value, false, max));
                for n in 0..200u32 {
                    let _ = add(&mut value, &n.to_le_bytes(), max);
                }
                let _ = (make_dense(&mut value), count(&value));
            }
        }
    }
}
