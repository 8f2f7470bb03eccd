//! Small integers inside strings: BITFIELD and BITFIELD_RO.
//!
//! Must stay true: nothing happens before all subcommands are known to be right; a read never makes a string
//! longer.
use smallvec::SmallVec;

use super::bit_offset;
use crate::base::num;
use crate::cmd::cx::{ReadCx, WriteCx, string_of};
use crate::cmd::spec::Done;
use crate::cmd::string::{edit_bytes, stored_len, with_text};
use crate::ds::bits::{self, Overflow};
use crate::store::news::{Event, class};
use crate::wire::{Args, Error, Out};

/// Where an integer lies and how it reads.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Field {
    signed: bool,
    /// In bits.
    width: u32,
    /// In bits.
    offset: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Action {
    Get,
    Set(i64, Overflow),
    Add(i64, Overflow),
}

/// One subcommand.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    field: Field,
    action: Action,
}

type Steps = SmallVec<[Step; 4]>;

/// The subcommands at the cursor. A word without all its arguments counts as unknown.
fn steps(args: &mut Args<'_>, bytes_max: u64) -> Result<Steps, Error> {
    let (mut steps, mut overflow) = (Steps::new(), Overflow::Wrap);
    while !args.is_done() {
        let left = args.left();
        if left >= 3 && args.keyword("GET") {
            steps.push(Step { field: field(args, bytes_max)?, action: Action::Get });
        } else if left >= 4 && args.keyword("SET") {
            steps.push(Step { field: field(args, bytes_max)?, action: Action::Set(args.int()?, overflow) });
        } else if left >= 4 && args.keyword("INCRBY") {
            steps.push(Step { field: field(args, bytes_max)?, action: Action::Add(args.int()?, overflow) });
        } else if left >= 2 && args.keyword("OVERFLOW") {
            overflow = overflow_mode(args)?;
        } else {
            return Err(Error::Syntax);
        }
    }
    Ok(steps)
}

fn overflow_mode(args: &mut Args<'_>) -> Result<Overflow, Error> {
    let modes = [("WRAP", Overflow::Wrap), ("SAT", Overflow::Sat), ("FAIL", Overflow::Fail)];
    let mode = modes.iter().find(|(word, _)| args.keyword(word));
    mode.map(|&(_, mode)| mode).ok_or_else(|| Error::err("Invalid OVERFLOW type specified"))
}

fn field(args: &mut Args<'_>, bytes_max: u64) -> Result<Field, Error> {
    let (signed, width) = encoding(args.bytes()?).ok_or_else(|| {
        Error::err(
            "Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.",
        )
    })?;
    Ok(Field { signed, width, offset: bit_offset(args.bytes()?, Some(width), bytes_max)? })
}

/// Sign and width of `i1` to `i64` and `u1` to `u63`. (A reply cannot hold the largest numbers of 64 bits
/// without sign.)
fn encoding(arg: &[u8]) -> Option<(bool, u32)> {
    let (&sign, digits) = arg.split_first()?;
    let (signed, width_max) = match sign {
        b'i' => (true, 64),
        b'u' => (false, 63),
        _ => return None,
    };
    let width = num::parse_i64(digits).filter(|width| (1..=width_max).contains(width))?;
    Some((signed, width as u32))
}

impl Field {
    fn get(self, bytes: &[u8]) -> i64 {
        if self.signed {
            bits::get_signed(bytes, self.offset, self.width)
        } else {
            bits::get_unsigned(bytes, self.offset, self.width) as i64
        }
    }

    /// What SET stores for `value`; `None`: it does not fit and nothing may happen.
    fn fitted(self, value: i64, mode: Overflow) -> Option<i64> {
        if self.signed {
            bits::fit_signed(value, self.width, mode)
        } else {
            bits::fit_unsigned(value, self.width, mode).map(|value| value as i64)
        }
    }

    /// What INCRBY makes of `value`; `None` as above.
    fn added(self, value: i64, by: i64, mode: Overflow) -> Option<i64> {
        if self.signed {
            bits::add_signed(value, by, self.width, mode)
        } else {
            bits::add_unsigned(value as u64, by, self.width, mode).map(|value| value as i64)
        }
    }

    /// The string's length that reaches to the end of the field, in bytes.
    fn reach_bytes(self) -> u64 {
        (self.offset + u64::from(self.width)).div_ceil(8)
    }
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Ran {
    /// It read, or failed.
    Nothing,
    /// It wrote what was there.
    Wrote,
    /// It wrote something else.
    Changed,
}

impl Step {
    fn writes(&self) -> bool {
        self.action != Action::Get
    }

    /// Does the step on a string that holds its field.
    fn run(&self, bytes: &mut [u8], out: &mut Out) -> Ran {
        let old = self.field.get(bytes);
        let (new, answer) = match self.action {
            Action::Get => (Some(old), Some(old)),
            Action::Set(value, mode) => {
                let new = self.field.fitted(value, mode);
                (new, new.map(|_| old))
            }
            Action::Add(by, mode) => {
                let new = self.field.added(old, by, mode);
                (new, new)
            }
        };
        match answer {
            Some(number) => out.int(number),
            None => out.null(),
        }
        match new {
            Some(new) if new != old => {
                bits::set_field(bytes, self.field.offset, self.field.width, new as u64);
                Ran::Changed
            }
            Some(_) if self.writes() => Ran::Wrote,
            _ => Ran::Nothing,
        }
    }
}

fn read(steps: &Steps, bytes: &[u8], out: &mut Out) {
    out.array(steps.len());
    for step in steps {
        out.int(step.field.get(bytes));
    }
}

/// BITFIELD key [subcommands]
pub fn bitfield(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let key = args.key()?;
    let steps = steps(args, cx.string_bytes_max(key))?;
    let reach = steps.iter().filter(|step| step.writes()).map(|step| step.field.reach_bytes()).max();
    let Some(reach_bytes) = reach else {
        let value = cx.find_counted(key).map(string_of).transpose()?;
        with_text(value, |bytes| read(&steps, bytes, out));
        return Ok(());
    };
    let tells = cx.update(key, |block| {
        let grows = block.as_ref().is_none_or(|block| stored_len(block) < reach_bytes as usize);
        Ok(edit_bytes(block, reach_bytes as usize, |bytes| {
            out.array(steps.len());
            let ran = steps.iter().map(|step| step.run(bytes, out)).max().unwrap_or(Ran::Nothing);
            let changed = ran == Ran::Changed;
            (changed || (ran == Ran::Wrote && grows), changed)
        }))
    })?;
    // A string that only grew, since every step failed, is not told of.
    if tells {
        cx.note_event(key, Event { class: class::STRING, name: "setbit" });
    }
    Ok(())
}

/// BITFIELD_RO key [GET encoding offset ...]
pub fn bitfield_ro(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let key = args.key()?;
    let steps = steps(args, cx.string_bytes_max(key))?;
    if steps.iter().any(Step::writes) {
        return Err(Error::err("BITFIELD_RO only supports the GET subcommand"));
    }
    with_text(cx.string(key)?, |bytes| read(&steps, bytes, out));
    Ok(())
}

/// BITFIELD with GET alone reads; anything else may write.
pub fn key_use(call: &[&[u8]]) -> &'static str {
    let mut at = 2;
    while let Some(word) = call.get(at) {
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        let words = if is("get") { 3 } else { 2 };
        if !is("get") && !is("overflow") || at + words > call.len() {
            return "RW access update";
        }
        at += words;
    }
    "RO access"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::hash::KeyHash;
    use crate::wire::{Protocol, Span};

    fn parsed(line: &str) -> Result<Steps, String> {
        let mut buf = Vec::new();
        let mut spans = Vec::new();
        for word in line.split(' ') {
            spans.push(Span { at: buf.len() as u32, len: word.len() as u32 });
            buf.extend_from_slice(word.as_bytes());
        }
        let mut args = Args::new(&buf, &spans, (0, KeyHash::of(b"")));
        args.seek(2);
        steps(&mut args, 1000).map_err(|error| error.to_string())
    }

    #[test]
    fn overflow_holds_for_what_follows() {
        let steps =
            parsed("bitfield k set u8 0 1 overflow sat incrby i5 #3 -2 overflow FAIL get u63 7").unwrap();
        let field = |signed, width, offset| Field { signed, width, offset };
        let want = [
            (field(false, 8, 0), Action::Set(1, Overflow::Wrap)),
            (field(true, 5, 15), Action::Add(-2, Overflow::Sat)),
            (field(false, 63, 7), Action::Get),
        ];
        assert_eq!(steps.to_vec(), want.map(|(field, action)| Step { field, action }));
    }

    #[test]
    fn the_first_mistake_is_reported() {
        let kind = "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.";
        for (line, text) in [
            ("bitfield k get u8", "ERR syntax error"),
            ("bitfield k set u8 1", "ERR syntax error"),
            ("bitfield k overflow", "ERR syntax error"),
            ("bitfield k overflow no", "ERR Invalid OVERFLOW type specified"),
            ("bitfield k get u64 0", kind),
            ("bitfield k get i65 x", kind),
            ("bitfield k get I8 0", kind),
            ("bitfield k get u0 0", kind),
            ("bitfield k set u8 8000 x", "ERR bit offset is not an integer or out of range"),
            ("bitfield k set u8 0 x", "ERR value is not an integer or out of range"),
        ] {
            assert_eq!(parsed(line).unwrap_err(), text, "{line}");
        }
    }

    #[test]
    fn answers_are_old_new_or_nothing() {
        let field = Field { signed: false, width: 4, offset: 4 };
        let mut bytes = vec![0x3c];
        let mut out = Out::new(Protocol::Resp2);
        let mut run = |action| (Step { field, action }).run(&mut bytes, &mut out);
        let changed = [
            run(Action::Get),
            run(Action::Set(5, Overflow::Wrap)),
            run(Action::Set(5, Overflow::Wrap)),
            run(Action::Add(20, Overflow::Fail)),
            run(Action::Add(20, Overflow::Sat)),
            run(Action::Set(99, Overflow::Fail)),
        ];
        use Ran::{Changed, Nothing, Wrote};
        assert_eq!(changed, [Nothing, Changed, Wrote, Nothing, Changed, Nothing]);
        assert_eq!((bytes, &out.buf[..]), (vec![0x3f], &b":12\r\n:12\r\n:5\r\n$-1\r\n:15\r\n$-1\r\n"[..]));
    }

    #[test]
    fn reach_ends_with_the_last_byte() {
        let reach = |offset, width| Field { signed: true, width, offset }.reach_bytes();
        assert_eq!([reach(0, 1), reach(0, 8), reach(0, 9), reach(7, 64)], [1, 1, 2, 9]);
    }
}
