//! Commands that wait: their timeouts, and WAIT itself.
use super::cx::{ConnCx, Wait, Wish};
use super::spec::{Done, Group, Spec, flag};
use crate::base::num;
use crate::ds::object::Kind;
use crate::wire::{Args, Error, Out};

/// The rows.
pub const COMMANDS: &[Spec] = &[Spec::conn("wait", "numreplicas:integer timeout", wait)
    .doc(Group::Generic, "3.0.0", "Waits until so many replicas have all writes of this connection.")
    .with(flag::BLOCKING)
    .without(flag::LOADING | flag::STALE)
    .cat(&["connection"])
    .tips(&["request_policy:all_shards", "response_policy:agg_min"])];

/// When a wait ends, milliseconds since the epoch; `None`: never.
pub type Until = Option<u64>;

impl Wait {
    /// A wait for a key to become `kind`.
    pub fn for_kind(kind: Kind, until_ms: Until) -> Box<Wait> {
        Box::new(Wait { until_ms, kind, heeds_all: false, replaced: Vec::new() })
    }
}

/// When the wait ends whose length in seconds, with a fraction, stands in `arg`.
///
/// # Errors
/// It is no number, negative, or too long.
pub fn until_of_seconds(arg: &[u8], now_ms: u64) -> Result<Until, Error> {
    let seconds = num::parse_f64(arg).ok_or_else(|| Error::err("timeout is not a float or out of range"))?;
    let ms = (seconds * 1000.0).ceil();
    if ms >= i64::MAX as f64 {
        return Err(Error::err("timeout is out of range"));
    }
    until(ms as i64, now_ms)
}

/// When the wait ends whose length in milliseconds stands in `arg`.
///
/// # Errors
/// It is no integer, negative, or too long.
pub fn until_of_ms(arg: &[u8], now_ms: u64) -> Result<Until, Error> {
    let ms = num::parse_i64(arg).ok_or_else(|| Error::err("timeout is not an integer or out of range"))?;
    until(ms, now_ms)
}

fn until(ms: i64, now_ms: u64) -> Result<Until, Error> {
    let ms = u64::try_from(ms).map_err(|_| Error::err("timeout is negative"))?;
    let end = now_ms.checked_add(ms).filter(|end| *end <= i64::MAX as u64);
    let end = end.ok_or_else(|| Error::err("timeout is out of range"))?;
    Ok((ms > 0).then_some(end))
}

/// There are no replicas yet: nobody will ever have the writes.
fn wait(cx: &mut ConnCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let replicas = args.int()?;
    let until_ms = until_of_ms(args.bytes()?, cx.now.ms)?;
    if replicas <= 0 || cx.client.caller.is_part {
        out.int(0);
    } else {
        cx.client.wish = Wish::WaitUntil(until_ms, b":0\r\n".to_vec());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts() {
        let seconds = |arg: &str| until_of_seconds(arg.as_bytes(), 1_000).map_err(|e| e.to_string());
        assert_eq!(
            (seconds("0"), seconds("0.0001"), seconds("1.5")),
            (Ok(None), Ok(Some(1_001)), Ok(Some(2_500)))
        );
        let refused = |text: &str| Err(format!("ERR timeout is {text}"));
        assert_eq!(seconds("x"), refused("not a float or out of range"));
        assert_eq!(seconds("-1"), refused("negative"));
        assert_eq!(seconds("1e300"), refused("out of range"));
        assert_eq!(seconds("9223372036854775"), refused("out of range"));
        let ms = |arg: &str| until_of_ms(arg.as_bytes(), 1_000).map_err(|e| e.to_string());
        assert_eq!((ms("0"), ms("7")), (Ok(None), Ok(Some(1_007))));
        assert_eq!(ms("1.5"), refused("not an integer or out of range"));
        assert_eq!(ms("-7"), refused("negative"));
        assert_eq!(ms("9223372036854775807"), refused("out of range"));
    }
}
