//! BITOP: strings joined bit by bit.
use std::borrow::Cow;

use smallvec::SmallVec;

use crate::cmd::cx::{WriteCx, string_of};
use crate::cmd::spec::Done;
use crate::cmd::string::text;
use crate::ds::bits::{self, BitOp};
use crate::ds::raw::block::{BlockRef, MARK_EDITED, NewValue};
use crate::store::db::Ttl;
use crate::wire::{Args, Error, Key, Out};

const OPERATIONS: [(&str, BitOp); 8] = [
    ("AND", BitOp::And),
    ("OR", BitOp::Or),
    ("XOR", BitOp::Xor),
    ("NOT", BitOp::Not),
    ("DIFF", BitOp::Diff),
    ("DIFF1", BitOp::Diff1),
    ("ANDOR", BitOp::AndOr),
    ("ONE", BitOp::One),
];

/// The operation named `name`, when it goes with that many sources.
fn operation(name: &[u8], sources: usize) -> Result<BitOp, Error> {
    let row = OPERATIONS.iter().find(|row| row.0.as_bytes().eq_ignore_ascii_case(name));
    let &(name, op) = row.ok_or(Error::Syntax)?;
    let refusal = match op {
        BitOp::Not if sources != 1 => "a single source key",
        BitOp::Diff | BitOp::Diff1 | BitOp::AndOr if sources < 2 => "at least two source keys",
        _ => return Ok(op),
    };
    Err(Error::err(format_args!("BITOP {name} must be called with {refusal}.")))
}

/// BITOP operation destkey key [key ...]
///
/// The sources stay where they are; only the result is new.
pub fn bitop(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let name = args.bytes()?;
    let op = operation(name, args.left().saturating_sub(1))?;
    let target = args.key()?;
    let sources: SmallVec<[Key<'_>; 8]> = args.keys(args.left()).collect();
    for &source in &sources {
        cx.find_counted(source).map(string_of).transpose()?;
    }
    let result = combine(cx, op, &sources);
    let len = result.len();
    if len == 0 {
        cx.remove(target);
    } else {
        cx.put(target, NewValue::Heap(result), Ttl::Clear, MARK_EDITED);
    }
    out.count(len);
    Ok(())
}

fn combine(cx: &WriteCx<'_>, op: BitOp, sources: &[Key<'_>]) -> Vec<u8> {
    let stored =
        |key: &Key<'_>| cx.peek(*key).and_then(BlockRef::string).map_or(Cow::Borrowed(&[][..]), text);
    let texts: SmallVec<[Cow<'_, [u8]>; 8]> = sources.iter().map(stored).collect();
    let slices: SmallVec<[&[u8]; 8]> = texts.iter().map(|text| &text[..]).collect();
    bits::combine(op, &slices)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_want_their_number_of_sources() {
        let text = |name: &[u8], sources| operation(name, sources).unwrap_err().to_string();
        assert_eq!(operation(b"nOt", 1), Ok(BitOp::Not));
        assert_eq!(text(b"not", 2), "ERR BITOP NOT must be called with a single source key.");
        assert_eq!(operation(b"diff1", 2), Ok(BitOp::Diff1));
        assert_eq!(text(b"diff1", 1), "ERR BITOP DIFF1 must be called with at least two source keys.");
        assert_eq!(text(b"andor", 1), "ERR BITOP ANDOR must be called with at least two source keys.");
        assert_eq!(operation(b"one", 1), Ok(BitOp::One));
        assert_eq!(operation(b"nand", 1), Err(Error::Syntax));
    }
}
