//! For developers: PFDEBUG and PFSELFTEST.
use super::{Stored, refusal};
use crate::base::rng::Rng;
use crate::cmd::cx::{ConnCx, WriteCx};
use crate::cmd::spec::Done;
use crate::config::P;
use crate::ds::hll::{self, Encoding, Invalid, REGISTERS, Union};
use crate::ds::packed::PackedBytes;
use crate::wire::{Args, Error, Out};

/// PFDEBUG GETREG|DECODE|ENCODING|TODENSE key, and SIMD on|off
pub fn pfdebug(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let word = args.bytes()?;
    if word.eq_ignore_ascii_case(b"simd") {
        return simd(args, out);
    }
    cx.update(args.key()?, |block| {
        let block = block.ok_or_else(|| Error::err("The specified key does not exist"))?;
        let mut value = Stored::InPlace(block);
        hll::encoding(value.bytes()).map_err(refusal)?;
        let changed = show(word, &mut value, out);
        // Redis takes the string for edited as soon as it looks into it.
        let next = value.finish(changed == Ok(true));
        Ok((changed, next))
    })??;
    Ok(())
}

/// There is one way to merge, which the compiler makes as wide as it may: nothing to switch.
fn simd(args: &mut Args<'_>, out: &mut Out) -> Done {
    if !args.keyword("ON") && !args.keyword("OFF") {
        return Err(Error::err("Argument must be ON or OFF"));
    }
    out.simple("disabled");
    Ok(())
}

/// Replies what `word` asks of a value; tells whether that changed it.
fn show(word: &[u8], value: &mut Stored<'_>, out: &mut Out) -> Result<bool, Error> {
    let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
    if is(b"getreg") {
        let changed = hll::make_dense(value).map_err(refusal)?;
        let mut union = Union::default();
        union.merge(value.bytes()).map_err(refusal)?;
        out.array(REGISTERS);
        union.registers().iter().for_each(|register| out.int(i64::from(*register)));
        Ok(changed)
    } else if is(b"decode") {
        if hll::encoding(value.bytes()) == Ok(Encoding::Dense) {
            return Err(Error::err("HLL encoding is not sparse"));
        }
        out.bulk(hll::decode(value.bytes()).map_err(refusal)?.as_bytes());
        Ok(false)
    } else if is(b"encoding") {
        out.simple(match hll::encoding(value.bytes()).map_err(refusal)? {
            Encoding::Dense => "dense",
            Encoding::Sparse => "sparse",
        });
        Ok(false)
    } else if is(b"todense") {
        let changed = hll::make_dense(value).map_err(refusal)?;
        out.flag(changed);
        Ok(changed)
    } else {
        let word = String::from_utf8_lossy(word);
        Err(Error::err(format_args!("Unknown PFDEBUG subcommand '{word}'")))
    }
}

/// Rounds of random registers.
const REGISTER_ROUNDS: usize = 100;
/// Elements of the largest set whose estimate is tested. The shard's thread waits meanwhile.
const ELEMENTS_MAX: u64 = 1_000_000;

/// PFSELFTEST
pub fn pfselftest(cx: &mut ConnCx<'_>, _: &mut Args<'_>, out: &mut Out) -> Done {
    let bytes_max = cx.host.settings().memory(P::HLL_SPARSE_MAX_BYTES);
    let mut rng = Rng::from_entropy();
    let failed = |text: String| Error::err(format_args!("TESTFAILED {text}"));
    test_registers(&mut rng).map_err(failed)?;
    test_estimates(&mut rng, bytes_max).map_err(failed)?;
    out.ok();
    Ok(())
}

/// Registers keep what they are set to, and leave their neighbours alone.
fn test_registers(rng: &mut Rng) -> Result<(), String> {
    let mut value = hll::empty();
    for _ in 0..REGISTER_ROUNDS {
        let wanted: [u8; REGISTERS] = std::array::from_fn(|_| (rng.next_u64() & 63) as u8);
        let mut found = Union::default();
        Union::from(wanted).store(&mut value, true, 0).map_err(text_of)?;
        found.merge(&value).map_err(text_of)?;
        if let Some(n) = (0..REGISTERS).find(|n| found.registers()[*n] != wanted[*n]) {
            let (wanted, found) = (wanted[n], found.registers()[n]);
            return Err(format!("Register {n} should be {wanted} but is {found}"));
        }
    }
    Ok(())
}

fn text_of(why: Invalid) -> String {
    refusal(why).to_string()
}

/// Both encodings give the same estimates, and these are not further off than a sixfold standard error.
fn test_estimates(rng: &mut Rng, bytes_max: u64) -> Result<(), String> {
    let (mut dense, mut value, seed) = (hll::empty(), hll::empty(), rng.next_u64());
    hll::make_dense(&mut dense).map_err(text_of)?;
    let mut checkpoint = 1;
    for n in 1..=ELEMENTS_MAX {
        let element = (n ^ seed).to_le_bytes();
        hll::add(&mut dense, &element, bytes_max).map_err(text_of)?;
        hll::add(&mut value, &element, bytes_max).map_err(text_of)?;
        if n != checkpoint {
            continue;
        }
        if n < bytes_max / 2 && hll::encoding(&value) != Ok(Encoding::Sparse) {
            return Err("sparse encoding not used".into());
        }
        let (count, other) = (hll::count(&dense).map_err(text_of)?, hll::count(&value).map_err(text_of)?);
        if count != other {
            return Err("dense/sparse disagree".into());
        }
        let (off, off_max) = (count.abs_diff(n), error_max(n));
        if off > off_max {
            return Err(format!("Too big error. card:{n} abserr:{off}"));
        }
        checkpoint *= 10;
    }
    Ok(())
}

/// How far off the estimate of a set of `elements` may be. Of few elements two may well share a register.
fn error_max(elements: u64) -> u64 {
    if elements == 10 {
        return 1;
    }
    let relative = 1.04 / (REGISTERS as f64).sqrt();
    (relative * 6.0 * elements as f64).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_self_test_passes() {
        let mut rng = Rng::seeded(1);
        assert_eq!(test_registers(&mut rng), Ok(()));
        assert_eq!(test_estimates(&mut rng, 3000), Ok(()));
        // Without room for sparse values it still passes, and notices a bound that is not kept.
        assert_eq!(test_estimates(&mut rng, 0), Ok(()));
    }

    #[test]
    fn errors_are_bounded() {
        assert_eq!((error_max(1), error_max(10), error_max(100), error_max(1_000_000)), (1, 1, 5, 48750));
    }
}
