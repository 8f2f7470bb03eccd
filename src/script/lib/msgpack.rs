//! MessagePack as `cmsgpack` has it: the format alone, without Lua.
//!
//! The decoder goes over a document once and hands what it finds to a [`Sink`]. At every header it compares all the
//! elements that are owed with the bytes that are left, so a document that claims more than it can hold is recognised
//! before anything is made of the claim; the rest of it is then read only to find the error that Redis would report.
//! Nesting costs a small entry each on the heap and ends where Lua's stack would end in Redis.
//!
//! Format: <https://github.com/msgpack/msgpack/blob/master/spec.md>, of which `bin`, `ext` and timestamps are refused,
//! as in Redis 8.0. Checked against [`reference`] by the tests below and by `fuzz/fuzz_targets/msgpack.rs`.

use std::fmt;

use super::STACK_SLOTS_MAX;

/// A value without parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar<'a> {
    /// Nothing.
    Nil,
    /// A truth value.
    Boolean(bool),
    /// An integer. Unsigned ones of 2^63 and more wrap around, as they do in Redis.
    Integer(i64),
    /// A float of 32 or 64 bits.
    Number(f64),
    /// A string of bytes.
    Text(&'a [u8]),
}

/// A value with parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// Elements in a row.
    Array,
    /// Keys, each followed by its value.
    Map,
}

/// Why a document is refused. `Display` gives the text of Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The input ends inside of it.
    Missing,
    /// A byte that begins nothing.
    Bad,
    /// More results, or maps in maps, than Lua's stack holds.
    TooManyValues,
    /// Arrays in arrays deeper than Lua's stack allows.
    TooDeep,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Malformed::Missing => "Missing bytes in input.",
            Malformed::Bad => "Bad data format in input.",
            Malformed::TooManyValues => {
                "stack overflow (too many return values at once; use unpack_one or unpack_limit instead.)"
            }
            Malformed::TooDeep => "stack overflow (in function mp_decode_to_lua_array)",
        })
    }
}

/// What takes the values of a document, in order.
pub trait Sink {
    /// What can go wrong, the document included.
    type Error: From<Malformed>;

    /// A value without parts.
    ///
    /// # Errors
    /// The sink's own.
    fn scalar(&mut self, value: Scalar<'_>) -> Result<(), Self::Error>;

    /// A container begins. As many values (twice as many for a map) and [`Sink::close`] follow, unless the document
    /// turns out to be refused; the input has a byte at least for each.
    ///
    /// # Errors
    /// The sink's own.
    fn open(&mut self, container: Container, count: usize) -> Result<(), Self::Error>;

    /// The container that was opened last is complete.
    fn close(&mut self);
}

/// A container that is not complete.
struct Open {
    /// Elements to come, keys and values counted each.
    left: u64,
    container: Container,
    /// Slots in use when it began.
    slots: usize,
}

impl Open {
    /// Slots in use when the next element begins: the table, and what an element of it is stored under.
    fn slots_inside(&self) -> usize {
        let at_key = self.container == Container::Map && self.left.is_multiple_of(2);
        self.slots + if at_key { 1 } else { 2 }
    }
}

/// What stands in front of a document.
enum Item<'a> {
    Scalar(Scalar<'a>),
    Container(Container, usize),
}

/// Decodes the document at the front of `input` into `sink`; returns how many bytes it has. `slots` of Lua's stack are
/// in use before.
///
/// # Errors
/// What is wrong with the document first, or the sink's error.
pub fn decode<S: Sink>(input: &[u8], slots: usize, sink: &mut S) -> Result<usize, S::Error> {
    let mut opened: Vec<Open> = Vec::new();
    let (mut at, mut owed, mut slots) = (0, 1_u64, slots);
    let mut doomed = false;
    loop {
        let rest = input.get(at..).unwrap_or_default();
        let (item, used) = item(rest, slots)?;
        at += used;
        owed -= 1;
        match item {
            Item::Scalar(value) if !doomed => sink.scalar(value)?,
            Item::Scalar(_) => {}
            Item::Container(container, count) => {
                let elements = if container == Container::Map { 2 * count as u64 } else { count as u64 };
                owed += elements;
                doomed |= owed > (rest.len() - used) as u64;
                if !doomed {
                    sink.open(container, count)?;
                }
                if container == Container::Array && slots + 2 > STACK_SLOTS_MAX {
                    return Err(Malformed::TooDeep.into());
                }
                if elements > 0 {
                    let inner = Open { left: elements, container, slots };
                    slots = inner.slots_inside();
                    opened.push(inner);
                    continue;
                }
                if !doomed {
                    sink.close();
                }
            }
        }
        loop {
            let Some(outer) = opened.last_mut() else {
                // A doomed document ends with an error above: it runs out of bytes at the latest.
                return if doomed { Err(Malformed::Missing.into()) } else { Ok(at) };
            };
            outer.left -= 1;
            if outer.left > 0 {
                slots = outer.slots_inside();
                break;
            }
            opened.pop();
            if !doomed {
                sink.close();
            }
        }
    }
}

/// The item at the front of `rest` with the number of its bytes, those of a container's elements not included.
#[inline]
fn item(rest: &[u8], slots: usize) -> Result<(Item<'_>, usize), Malformed> {
    let first = *rest.first().ok_or(Malformed::Missing)?;
    if slots + 1 > STACK_SLOTS_MAX {
        return Err(Malformed::TooManyValues);
    }
    let scalar = |value, bytes| Ok((Item::Scalar(value), bytes));
    match first {
        0x00..=0x7f | 0xe0..=0xff => scalar(Scalar::Integer(i64::from(first as i8)), 1),
        0x80..=0x8f => Ok((Item::Container(Container::Map, usize::from(first & 0x0f)), 1)),
        0x90..=0x9f => Ok((Item::Container(Container::Array, usize::from(first & 0x0f)), 1)),
        0xa0..=0xbf => text(rest, 1, usize::from(first & 0x1f)),
        0xc0 => scalar(Scalar::Nil, 1),
        0xc2 | 0xc3 => scalar(Scalar::Boolean(first == 0xc3), 1),
        0xca => scalar(Scalar::Number(f64::from(f32::from_be_bytes(operand(rest)?))), 5),
        0xcb => scalar(Scalar::Number(f64::from_be_bytes(operand(rest)?)), 9),
        0xcc => scalar(Scalar::Integer(i64::from(u8::from_be_bytes(operand(rest)?))), 2),
        0xcd => scalar(Scalar::Integer(i64::from(u16::from_be_bytes(operand(rest)?))), 3),
        0xce => scalar(Scalar::Integer(i64::from(u32::from_be_bytes(operand(rest)?))), 5),
        0xd0 => scalar(Scalar::Integer(i64::from(i8::from_be_bytes(operand(rest)?))), 2),
        0xd1 => scalar(Scalar::Integer(i64::from(i16::from_be_bytes(operand(rest)?))), 3),
        0xd2 => scalar(Scalar::Integer(i64::from(i32::from_be_bytes(operand(rest)?))), 5),
        0xcf | 0xd3 => scalar(Scalar::Integer(i64::from_be_bytes(operand(rest)?)), 9),
        0xd9 => text(rest, 2, usize::from(u8::from_be_bytes(operand(rest)?))),
        0xda => text(rest, 3, usize::from(u16::from_be_bytes(operand(rest)?))),
        0xdb => text(rest, 5, u32::from_be_bytes(operand(rest)?) as usize),
        0xdc => Ok((Item::Container(Container::Array, usize::from(u16::from_be_bytes(operand(rest)?))), 3)),
        0xdd => Ok((Item::Container(Container::Array, u32::from_be_bytes(operand(rest)?) as usize), 5)),
        0xde => Ok((Item::Container(Container::Map, usize::from(u16::from_be_bytes(operand(rest)?))), 3)),
        0xdf => Ok((Item::Container(Container::Map, u32::from_be_bytes(operand(rest)?) as usize), 5)),
        0xc1 | 0xc4..=0xc9 | 0xd4..=0xd8 => Err(Malformed::Bad),
    }
}

/// The bytes behind the first one.
fn operand<const N: usize>(rest: &[u8]) -> Result<[u8; N], Malformed> {
    rest.get(1..).and_then(|rest| rest.first_chunk()).copied().ok_or(Malformed::Missing)
}

fn text(rest: &[u8], header: usize, len: usize) -> Result<(Item<'_>, usize), Malformed> {
    let bytes = rest.get(header..).and_then(|rest| rest.get(..len)).ok_or(Malformed::Missing)?;
    Ok((Item::Scalar(Scalar::Text(bytes)), header + len))
}

/// Appends an integer in the fewest bytes.
pub fn put_integer(out: &mut Vec<u8>, value: i64) {
    match value {
        -32..=127 => out.push(value as u8),
        128..=0xff => put(out, 0xcc, (value as u8).to_be_bytes()),
        0x100..=0xffff => put(out, 0xcd, (value as u16).to_be_bytes()),
        0x1_0000..=0xffff_ffff => put(out, 0xce, (value as u32).to_be_bytes()),
        0x1_0000_0000.. => put(out, 0xcf, value.to_be_bytes()),
        -0x80..=-33 => put(out, 0xd0, (value as i8).to_be_bytes()),
        -0x8000..=-0x81 => put(out, 0xd1, (value as i16).to_be_bytes()),
        -0x8000_0000..=-0x8001 => put(out, 0xd2, (value as i32).to_be_bytes()),
        _ => put(out, 0xd3, value.to_be_bytes()),
    }
}

/// Appends a number: as an integer if it is one that fits in 64 bits (minus zero is zero), else as a float, of 32 bits
/// if that loses nothing.
pub fn put_number(out: &mut Vec<u8>, value: f64) {
    let fits = (i64::MIN as f64..-(i64::MIN as f64)).contains(&value);
    if fits && value.trunc() == value {
        put_integer(out, value as i64);
    } else if f64::from(value as f32) == value {
        put(out, 0xca, (value as f32).to_be_bytes());
    } else {
        put(out, 0xcb, value.to_be_bytes());
    }
}

/// Appends a string of bytes.
pub fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    match text.len() {
        len @ 0..=31 => out.push(0xa0 | len as u8),
        len @ 32..=0xff => put(out, 0xd9, (len as u8).to_be_bytes()),
        len @ 0x100..=0xffff => put(out, 0xda, (len as u16).to_be_bytes()),
        len => put(out, 0xdb, (len as u32).to_be_bytes()),
    }
    out.extend_from_slice(text);
}

/// Appends the header of a container of `count` elements, or pairs for a map.
pub fn put_container(out: &mut Vec<u8>, container: Container, count: usize) {
    let (short, long) = match container {
        Container::Array => (0x90, 0xdc),
        Container::Map => (0x80, 0xde),
    };
    match count {
        0..=15 => out.push(short | count as u8),
        16..=0xffff => put(out, long, (count as u16).to_be_bytes()),
        _ => put(out, long + 1, (count as u32).to_be_bytes()),
    }
}

/// Appends nil.
pub fn put_nil(out: &mut Vec<u8>) {
    out.push(0xc0);
}

/// Appends a truth value.
pub fn put_boolean(out: &mut Vec<u8>, value: bool) {
    out.push(if value { 0xc3 } else { 0xc2 });
}

fn put<const N: usize>(out: &mut Vec<u8>, first: u8, operand: [u8; N]) {
    out.push(first);
    out.extend_from_slice(&operand);
}

/// Values as plain data, and a slow, plain decoder in two passes that the fused one is compared with.
#[cfg(any(test, feature = "reference"))]
pub mod reference {
    use super::{Container, Malformed, Scalar, Sink};
    use crate::script::lib::STACK_SLOTS_MAX;

    /// A value with all its parts. Floats are equal by their bits.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum Plain {
        /// Nothing.
        Nil,
        /// A truth value.
        Boolean(bool),
        /// An integer.
        Integer(i64),
        /// The bits of a double.
        Number(u64),
        /// A string of bytes.
        Text(Vec<u8>),
        /// Elements.
        Array(Vec<Plain>),
        /// Keys and values in turn.
        Map(Vec<Plain>),
    }

    /// A sink that builds [`Plain`] values.
    #[derive(Default)]
    pub struct Collector {
        /// Complete documents.
        pub done: Vec<Plain>,
        open: Vec<Plain>,
    }

    impl Collector {
        fn add(&mut self, value: Plain) {
            match self.open.last_mut() {
                Some(Plain::Array(parts) | Plain::Map(parts)) => parts.push(value),
                _ => self.done.push(value),
            }
        }
    }

    impl Sink for Collector {
        type Error = Malformed;

        fn scalar(&mut self, value: Scalar<'_>) -> Result<(), Malformed> {
            self.add(match value {
                Scalar::Nil => Plain::Nil,
                Scalar::Boolean(value) => Plain::Boolean(value),
                Scalar::Integer(value) => Plain::Integer(value),
                Scalar::Number(value) => Plain::Number(value.to_bits()),
                Scalar::Text(text) => Plain::Text(text.to_vec()),
            });
            Ok(())
        }

        fn open(&mut self, container: Container, count: usize) -> Result<(), Malformed> {
            self.open.push(match container {
                Container::Array => Plain::Array(Vec::with_capacity(count)),
                Container::Map => Plain::Map(Vec::with_capacity(2 * count)),
            });
            Ok(())
        }

        fn close(&mut self) {
            if let Some(value) = self.open.pop() {
                self.add(value);
            }
        }
    }

    /// All documents of `input` by the fused decoder, and the error that ended it.
    pub fn fused(input: &[u8]) -> (Vec<Plain>, Option<Malformed>) {
        let (mut sink, mut at) = (Collector::default(), 0);
        while at < input.len() {
            match super::decode(&input[at..], 1 + sink.done.len(), &mut sink) {
                Ok(used) => at += used,
                Err(error) => return (sink.done, Some(error)),
            }
        }
        (sink.done, None)
    }

    /// All documents of `input`, each measured first and built then, and the error that ended it.
    pub fn decode_all(input: &[u8]) -> (Vec<Plain>, Option<Malformed>) {
        let (mut done, mut at) = (Vec::new(), 0);
        while at < input.len() {
            if let Err(error) = measure(input, &mut at.clone(), 1 + done.len()) {
                return (done, Some(error));
            }
            done.push(build(input, &mut at));
        }
        (done, None)
    }

    /// First byte, bytes of a big-endian number behind it, and what that number says.
    #[derive(Clone, Copy, PartialEq)]
    enum Says {
        Value,
        Text,
        Array,
        Map,
    }

    fn shape(first: u8) -> Result<(usize, Says), Malformed> {
        Ok(match first {
            0xa0..=0xbf => (0, Says::Text),
            0x90..=0x9f => (0, Says::Array),
            0x80..=0x8f => (0, Says::Map),
            0xc0 | 0xc2 | 0xc3 | 0x00..=0x7f | 0xe0..=0xff => (0, Says::Value),
            0xcc | 0xd0 => (1, Says::Value),
            0xcd | 0xd1 => (2, Says::Value),
            0xca | 0xce | 0xd2 => (4, Says::Value),
            0xcb | 0xcf | 0xd3 => (8, Says::Value),
            0xd9 => (1, Says::Text),
            0xda => (2, Says::Text),
            0xdb => (4, Says::Text),
            0xdc => (2, Says::Array),
            0xdd => (4, Says::Array),
            0xde => (2, Says::Map),
            0xdf => (4, Says::Map),
            _ => return Err(Malformed::Bad),
        })
    }

    /// Reads a header: its first byte, what it says, and the number with it.
    fn header(input: &[u8], at: &mut usize) -> Result<(u8, Says, u64), Malformed> {
        let first = *input.get(*at).ok_or(Malformed::Missing)?;
        let (bytes, says) = shape(first)?;
        let operand = input.get(*at + 1..*at + 1 + bytes).ok_or(Malformed::Missing)?;
        *at += 1 + bytes;
        let number = match (bytes, says) {
            (0, Says::Text) => u64::from(first & 0x1f),
            (0, Says::Array | Says::Map) => u64::from(first & 0x0f),
            _ => operand.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)),
        };
        Ok((first, says, number))
    }

    /// Walks over one document as Redis does, element by element.
    fn measure(input: &[u8], at: &mut usize, slots: usize) -> Result<(), Malformed> {
        if *at >= input.len() {
            return Err(Malformed::Missing);
        }
        if slots + 1 > STACK_SLOTS_MAX {
            return Err(Malformed::TooManyValues);
        }
        match header(input, at)? {
            (_, Says::Value, _) => {}
            (_, Says::Text, len) => {
                if (input.len() - *at) as u64 > len || (input.len() - *at) as u64 == len {
                    *at += len as usize;
                } else {
                    return Err(Malformed::Missing);
                }
            }
            (_, Says::Array, count) => {
                if slots + 2 > STACK_SLOTS_MAX {
                    return Err(Malformed::TooDeep);
                }
                for _ in 0..count {
                    measure(input, at, slots + 2)?;
                }
            }
            (_, Says::Map, count) => {
                for _ in 0..count {
                    measure(input, at, slots + 1)?;
                    measure(input, at, slots + 2)?;
                }
            }
        }
        Ok(())
    }

    /// Builds one document that was measured.
    fn build(input: &[u8], at: &mut usize) -> Plain {
        let Ok((first, says, number)) = header(input, at) else { return Plain::Nil };
        match says {
            Says::Text => {
                let text = input[*at..*at + number as usize].to_vec();
                *at += text.len();
                Plain::Text(text)
            }
            Says::Array => Plain::Array((0..number).map(|_| build(input, at)).collect()),
            Says::Map => Plain::Map((0..2 * number).map(|_| build(input, at)).collect()),
            Says::Value => match first {
                0xc0 => Plain::Nil,
                0xc2 => Plain::Boolean(false),
                0xc3 => Plain::Boolean(true),
                0xca => Plain::Number(f64::from(f32::from_bits(number as u32)).to_bits()),
                0xcb => Plain::Number(number),
                0xd0 => Plain::Integer(i64::from(number as i8)),
                0xd1 => Plain::Integer(i64::from(number as i16)),
                0xd2 => Plain::Integer(i64::from(number as i32)),
                0x00..=0x7f | 0xe0..=0xff => Plain::Integer(i64::from(first as i8)),
                _ => Plain::Integer(number as i64),
            },
        }
    }

    /// Appends a value's encoding.
    pub fn encode(value: &Plain, out: &mut Vec<u8>) {
        match value {
            Plain::Nil => super::put_nil(out),
            Plain::Boolean(value) => super::put_boolean(out, *value),
            Plain::Integer(value) => super::put_integer(out, *value),
            Plain::Number(bits) => super::put_number(out, f64::from_bits(*bits)),
            Plain::Text(text) => super::put_text(out, text),
            Plain::Array(parts) => {
                super::put_container(out, Container::Array, parts.len());
                parts.iter().for_each(|part| encode(part, out));
            }
            Plain::Map(parts) => {
                super::put_container(out, Container::Map, parts.len() / 2);
                parts.iter().for_each(|part| encode(part, out));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::reference::{Plain, decode_all, encode, fused};
    use super::*;

    fn integer() -> impl Strategy<Value = i64> {
        (any::<i64>(), 0_u32..64).prop_map(|(value, shift)| value >> shift)
    }

    /// A number that is not written as an integer.
    fn number() -> impl Strategy<Value = u64> {
        prop_oneof![any::<f64>(), any::<f32>().prop_map(f64::from), Just(f64::INFINITY)]
            .prop_filter("a fraction", |value| value.trunc() != *value || value.abs() >= 2_f64.powi(63))
            .prop_map(f64::to_bits)
    }

    fn value() -> impl Strategy<Value = Plain> {
        let leaf = prop_oneof![
            Just(Plain::Nil),
            any::<bool>().prop_map(Plain::Boolean),
            integer().prop_map(Plain::Integer),
            number().prop_map(Plain::Number),
            proptest::collection::vec(any::<u8>(), 0..40).prop_map(Plain::Text),
            (0_usize..70_000).prop_map(|len| Plain::Text(vec![b'x'; len])),
        ];
        leaf.prop_recursive(5, 60, 20, |inner| {
            let parts = proptest::collection::vec(inner, 0..20);
            prop_oneof![
                parts.clone().prop_map(Plain::Array),
                parts.prop_map(|mut parts| {
                    parts.truncate(parts.len() & !1);
                    Plain::Map(parts)
                }),
            ]
        })
    }

    /// A change of a document: a byte written over, or what follows cut off.
    #[derive(Clone, Debug)]
    enum Edit {
        Byte(usize, u8),
        Cut(usize),
        Insert(usize, u8),
    }

    fn edit() -> impl Strategy<Value = Edit> {
        // Places near the front change headers more often.
        let place = prop_oneof![0_usize..8, any::<usize>()];
        let byte = prop_oneof![any::<u8>(), 0xc0_u8..=0xdf, 0x80_u8..=0x9f];
        prop_oneof![
            (place.clone(), byte.clone()).prop_map(|(at, byte)| Edit::Byte(at, byte)),
            place.clone().prop_map(Edit::Cut),
            (place, byte).prop_map(|(at, byte)| Edit::Insert(at, byte)),
        ]
    }

    fn apply(edit: &Edit, bytes: &mut Vec<u8>) {
        match *edit {
            Edit::Cut(at) => bytes.truncate(at % (bytes.len() + 1)),
            Edit::Insert(at, byte) => bytes.insert(at % (bytes.len() + 1), byte),
            Edit::Byte(at, byte) if !bytes.is_empty() => {
                let at = at % bytes.len();
                bytes[at] = byte;
            }
            Edit::Byte(..) => {}
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(values in proptest::collection::vec(value(), 0..4)) {
            let mut bytes = Vec::new();
            values.iter().for_each(|value| encode(value, &mut bytes));
            prop_assert_eq!(fused(&bytes), (values, None));
        }

        #[test]
        fn equals_the_reference(values in proptest::collection::vec(value(), 0..3),
                                edits in proptest::collection::vec(edit(), 0..6)) {
            let mut bytes = Vec::new();
            values.iter().for_each(|value| encode(value, &mut bytes));
            edits.iter().for_each(|edit| apply(edit, &mut bytes));
            prop_assert_eq!(fused(&bytes), decode_all(&bytes));
        }

        #[test]
        fn equals_the_reference_on_noise(bytes in proptest::collection::vec(
            prop_oneof![any::<u8>(), 0x80_u8..=0x9f, 0xc0_u8..=0xdf, 0_u8..3], 0..60)) {
            prop_assert_eq!(fused(&bytes), decode_all(&bytes));
        }
    }

    #[test]
    fn numbers_take_the_fewest_bytes() {
        for (value, want) in [
            (0.0, "00"),
            (-0.0, "00"),
            (127.0, "7f"),
            (128.0, "cc80"),
            (256.0, "cd0100"),
            (65536.0, "ce00010000"),
            (4294967296.0, "cf0000000100000000"),
            (-32.0, "e0"),
            (-33.0, "d0df"),
            (-129.0, "d1ff7f"),
            (-32769.0, "d2ffff7fff"),
            (-1099511627776.0, "d3ffffff0000000000"),
            (-9223372036854775808.0, "d38000000000000000"),
            (9223372036854775808.0, "ca5f000000"),
            (0.5, "ca3f000000"),
            (0.1, "cb3fb999999999999a"),
            (f64::INFINITY, "ca7f800000"),
            (f64::NAN, "cb7ff8000000000000"),
        ] {
            let mut out = Vec::new();
            put_number(&mut out, value);
            assert_eq!(out.iter().map(|byte| format!("{byte:02x}")).collect::<String>(), want, "{value}");
        }
    }

    /// Counts what reaches it.
    #[derive(Default)]
    struct Count(usize);

    impl Sink for Count {
        type Error = Malformed;

        fn scalar(&mut self, _: Scalar<'_>) -> Result<(), Malformed> {
            self.0 += 1;
            Ok(())
        }

        fn open(&mut self, _: Container, _: usize) -> Result<(), Malformed> {
            self.0 += 1;
            Ok(())
        }

        fn close(&mut self) {}
    }

    #[test]
    fn claims_reach_no_sink() {
        for (input, want) in [
            (&b"\xdd\xff\xff\xff\xff\x01\x02"[..], Malformed::Missing),
            (b"\xdf\xff\xff\xff\xff\x01\x02", Malformed::Missing),
            (b"\xdd\xff\xff\xff\xff\x01\xc1\x02", Malformed::Bad),
            (b"\xdc\x00\x03\x01", Malformed::Missing),
            // Each claim alone could be true, both together cannot.
            (b"\x92\x93\x01\x02\x03", Malformed::Missing),
            (b"\x81\x01", Malformed::Missing),
        ] {
            let mut sink = Count::default();
            assert_eq!(decode(input, 1, &mut sink), Err(want), "{input:x?}");
            assert!(sink.0 <= 2, "{} values of {input:x?}", sink.0);
        }
    }

    #[test]
    fn nesting_ends_with_the_stack() {
        let nested = |byte: u8, levels: usize| {
            let mut bytes = if byte == 0x81 { [1, 0x81].repeat(levels) } else { vec![byte; levels] };
            if byte == 0x81 {
                bytes.remove(0);
            }
            bytes.extend([1, 1]);
            bytes
        };
        // As Redis 8.0.6 has it, with one argument on its stack.
        for (byte, levels, want) in [
            (0x91, 3_999, None),
            (0x91, 4_000, Some(Malformed::TooDeep)),
            (0x81, 3_999, None),
            (0x81, 4_000, Some(Malformed::TooManyValues)),
        ] {
            let bytes = nested(byte, levels);
            assert_eq!(decode(&bytes, 1, &mut Count::default()).err(), want, "{byte:x} {levels}");
        }
        let flat = vec![1; 8_000];
        let mut sink = reference::Collector::default();
        let mut at = 0;
        while let Ok(used) = decode(&flat[at..], 1 + sink.done.len(), &mut sink) {
            at += used;
        }
        assert_eq!(sink.done.len(), 7_999);
    }
}
