//! HyperLogLogs, which are strings of a certain form: rows, and what the handlers of the family share.
//!
//! Must stay true: a value that has room is changed where it lies, the 12 KiB of a dense one always; the bytes that
//! GET sees are those of Redis, the remembered count included.
mod debug;
mod elements;

use super::cx::{WriteCx, string_of};
use super::spec::{Group::HyperLogLog as H, KeyPart, Spec, flag, key, key_range};
use crate::config::P;
use crate::ds::hll::{self, Encoding, Invalid};
use crate::ds::packed::PackedBytes;
use crate::ds::raw::block::{BlockMut, BlockRef, MARK_EDITED, MARK_SLACK, NewValue, Payload};
use crate::store::db::Next;
use crate::store::news::class;
use crate::wire::{Error, Key};

/// A destination, then sources.
const MERGED: &[KeyPart] = &[key("RW access insert", 1), key_range("RO access", 2, -1, 1)];

/// The rows.
pub const COMMANDS: &[Spec] = &[
    Spec::write("pfadd", "key [element [element ...]]", elements::pfadd)
        .event(class::STRING, "pfadd")
        .doc(H, "2.8.9", "Adds elements to a HyperLogLog; makes the key when it does not exist.")
        .cost("O(1) for each element.")
        .keys(&[key("RW insert", 1)])
        .with(flag::DENYOOM | flag::FAST),
    // Clients see a command that reads. It counts the registers of a changed value once and leaves the result in the
    // value, for which it must own the key.
    Spec::write("pfcount", "key [key ...]", elements::pfcount)
        .doc(
            H,
            "2.8.9",
            "Estimates the number of different elements of one or of several HyperLogLogs together.",
        )
        .cost(
            "O(1) for one key that did not change since the last time, else O(N) with large constant times.",
        )
        .keys(&[key_range("RW access", 1, -1, 1)])
        .without(flag::WRITE)
        .with(flag::READONLY | flag::MAY_REPLICATE),
    Spec::write("pfmerge", "destkey [sourcekey [sourcekey ...]]", elements::pfmerge)
        .event(class::STRING, "pfadd")
        .doc(H, "2.8.9", "Adds all elements of some HyperLogLogs to another one.")
        .cost("O(N) to merge N HyperLogLogs, with large constant times.")
        .keys(MERGED)
        .with(flag::DENYOOM),
    Spec::write("pfdebug", "subcommand key", debug::pfdebug)
        .doc(H, "2.8.9", "Shows how a HyperLogLog is stored, for developers.")
        .cost("N/A")
        .keys(&[key("RW access", 2)])
        .with(flag::DENYOOM | flag::ADMIN),
    Spec::conn("pfselftest", "", debug::pfselftest)
        .doc(H, "2.8.9", "Tests the registers and the estimates, for developers.")
        .cost("N/A")
        .without(flag::LOADING | flag::STALE)
        .with(flag::ADMIN),
];

/// What a client hears of bytes that are refused.
fn refusal(why: Invalid) -> Error {
    Error::Text(match why {
        Invalid::Foreign => "WRONGTYPE Key is not a valid HyperLogLog string value.".into(),
        Invalid::Corrupt => "INVALIDOBJ Corrupted HLL object detected".into(),
    })
}

/// Bytes up to which values stay sparse (`hll-sparse-max-bytes`).
fn sparse_bytes_max(cx: &mut WriteCx<'_>, key: Key<'_>) -> u64 {
    cx.store(key.hash).settings.memory(P::HLL_SPARSE_MAX_BYTES)
}

/// The bytes of a stored string. A number is no HyperLogLog, and neither is nothing.
fn bytes_of(block: BlockRef<'_>) -> &[u8] {
    match block.string() {
        Some(Payload::Bytes(bytes)) => bytes,
        Some(Payload::Int(_)) | None => &[],
    }
}

/// The bytes of a key that is read.
fn read(block: BlockRef<'_>) -> Result<&[u8], Error> {
    string_of(block)?;
    Ok(bytes_of(block))
}

/// A stored string under change: in its place as long as it has room there.
enum Stored<'a> {
    InPlace(BlockMut<'a>),
    Copy(Vec<u8>),
}

impl<'a> Stored<'a> {
    /// The value of a key; a missing one begins without elements.
    fn of(block: Option<BlockMut<'a>>) -> Stored<'a> {
        block.map_or_else(|| Stored::Copy(hll::empty()), Stored::InPlace)
    }

    /// What becomes of the key. The string counts as edited, whether or not it `changed`.
    fn finish(self, changed: bool) -> Next<'static> {
        match self {
            Stored::InPlace(mut block) => {
                block.set_marks(MARK_EDITED);
                if changed { Next::Edited } else { Next::Same }
            }
            Stored::Copy(bytes) => {
                // Only sparse values grow.
                let slack = if hll::encoding(&bytes) == Ok(Encoding::Sparse) { MARK_SLACK } else { 0 };
                Next::Put(NewValue::Heap(bytes), MARK_EDITED | slack)
            }
        }
    }
}

impl PackedBytes for Stored<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Stored::InPlace(block) => bytes_of(block.view()),
            Stored::Copy(bytes) => bytes,
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Stored::InPlace(block) => block.bytes_mut().unwrap_or_default(),
            Stored::Copy(bytes) => bytes,
        }
    }

    fn splice(&mut self, at: usize, remove: usize, insert: &[u8]) {
        match self {
            Stored::Copy(bytes) => PackedBytes::splice(bytes, at, remove, insert),
            Stored::InPlace(block) => {
                if block.splice_in_place(at, remove, insert) {
                    return;
                }
                let old = bytes_of(block.view());
                let copy = [&old[..at], insert, &old[at + remove..]].concat();
                *self = Stored::Copy(copy);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ds::raw::block::Block;

    #[test]
    fn values_are_changed_in_their_place_or_moved() {
        let mut value = hll::empty();
        let mut block = Block::new(b"key", NewValue::Bytes(&value), None, 0, MARK_SLACK);
        let mut moves = 0;
        for n in 0..3000u32 {
            let mut stored = Stored::of(Some(block.view_mut()));
            let changed = hll::add(&mut stored, &n.to_le_bytes(), 3000).unwrap();
            assert_eq!(hll::add(&mut value, &n.to_le_bytes(), 3000), Ok(changed));
            assert_eq!(stored.bytes(), value);
            match stored.finish(changed) {
                Next::Put(NewValue::Heap(bytes), marks) => {
                    assert_eq!(marks & MARK_SLACK != 0, hll::encoding(&bytes) == Ok(Encoding::Sparse));
                    moves += 1;
                    block = Block::new(b"key", NewValue::Heap(bytes), None, 0, marks);
                }
                Next::Edited => assert!(changed),
                Next::Same => assert!(!changed),
                _ => panic!("a change is more than another form"),
            }
            assert_eq!((bytes_of(block.view()), block.view().marks()), (&value[..], MARK_EDITED));
        }
        assert_eq!(hll::encoding(&value), Ok(Encoding::Dense));
        assert!(moves < 40, "{moves} moves");
    }

    #[test]
    fn numbers_are_refused() {
        let mut block = Block::new(b"key", NewValue::Int(7), None, 0, 0);
        let mut stored = Stored::of(Some(block.view_mut()));
        assert_eq!(hll::add(&mut stored, b"a", 3000), Err(Invalid::Foreign));
    }
}
