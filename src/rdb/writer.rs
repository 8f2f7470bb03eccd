//! Writes the scalars of the snapshot format to a buffer, in the same forms that Redis chooses: the shortest
//! length, an integer for a string that is the text of one, compression for a long string that gains from it.
//! Whatever is written [`super::Reader`] reads back.
use crate::base::num;
use crate::ds::lzf;

/// Longer strings are tried with compression; below, nothing is gained.
const UNCOMPRESSED_LEN_MAX: usize = 20;
/// The longest text of a 32 bit integer.
const INTEGER_LEN_MAX: usize = 11;

/// A growing buffer of bytes in snapshot format.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    out: Vec<u8>,
    compress: bool,
    /// The compressed string that is tried: its length comes before it.
    packed: Vec<u8>,
}

impl Writer {
    /// An empty buffer. `compress`: whether long strings are compressed.
    pub fn new(compress: bool) -> Self {
        Self::over(Vec::new(), compress)
    }

    /// Appends to `out`.
    pub fn over(out: Vec<u8>, compress: bool) -> Self {
        Writer { out, compress, packed: Vec::new() }
    }

    /// What was written.
    pub fn as_bytes(&self) -> &[u8] {
        &self.out
    }

    /// What was written.
    pub fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    /// Exchanges the buffer that is appended to.
    pub fn exchange(&mut self, out: &mut Vec<u8>) {
        std::mem::swap(&mut self.out, out);
    }

    /// Whether long strings are compressed.
    pub fn compresses(&self) -> bool {
        self.compress
    }

    /// Forgets what was written and keeps the room.
    pub fn clear(&mut self) {
        self.out.clear();
    }

    /// Bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// A byte: a value's type, an opcode.
    pub fn u8(&mut self, byte: u8) {
        self.out.push(byte);
    }

    /// Four bytes, little endian.
    pub fn u32_le(&mut self, value: u32) {
        self.raw(&value.to_le_bytes());
    }

    /// Eight bytes, little endian.
    pub fn u64_le(&mut self, value: u64) {
        self.raw(&value.to_le_bytes());
    }

    /// A time in milliseconds since 1970.
    pub fn time_ms(&mut self, at_ms: i64) {
        self.raw(&at_ms.to_le_bytes());
    }

    /// A length, a count, or another number in this form: 1, 2, 5 or 9 bytes.
    pub fn length(&mut self, length: u64) {
        if length < 1 << 6 {
            self.u8(length as u8);
        } else if length < 1 << 14 {
            self.raw(&(0x4000 | length as u16).to_be_bytes());
        } else if let Ok(length) = u32::try_from(length) {
            self.u8(0x80);
            self.raw(&length.to_be_bytes());
        } else {
            self.u8(0x81);
            self.raw(&length.to_be_bytes());
        }
    }

    /// A string: as an integer if it is the canonical text of one of 32 bits, else compressed if that is on
    /// and pays, else as it is.
    pub fn string(&mut self, bytes: &[u8]) {
        if bytes.len() <= INTEGER_LEN_MAX && num::parse_i64(bytes).is_some_and(|value| self.short(value)) {
            return;
        }
        if self.compress && bytes.len() > UNCOMPRESSED_LEN_MAX && self.compressed(bytes) {
            return;
        }
        self.length(bytes.len() as u64);
        self.raw(bytes);
    }

    /// The string that is the decimal text of `value`.
    pub fn integer(&mut self, value: i64) {
        if !self.short(value) {
            let mut digits = Vec::with_capacity(20);
            num::append_i64(&mut digits, value);
            self.length(digits.len() as u64);
            self.raw(&digits);
        }
    }

    /// An integer in 8, 16 or 32 bits; false when it needs more, with nothing written.
    fn short(&mut self, value: i64) -> bool {
        if let Ok(value) = i8::try_from(value) {
            self.u8(0xc0);
            self.raw(&value.to_le_bytes());
        } else if let Ok(value) = i16::try_from(value) {
            self.u8(0xc1);
            self.raw(&value.to_le_bytes());
        } else if let Ok(value) = i32::try_from(value) {
            self.u8(0xc2);
            self.raw(&value.to_le_bytes());
        } else {
            return false;
        }
        true
    }

    /// A string in compressed form; false when that does not pay, with nothing written.
    fn compressed(&mut self, bytes: &[u8]) -> bool {
        let mut packed = std::mem::take(&mut self.packed);
        packed.clear();
        let pays = lzf::compress_into(bytes, &mut packed);
        if pays {
            self.u8(0xc3);
            self.length(packed.len() as u64);
            self.length(bytes.len() as u64);
            self.raw(&packed);
        }
        self.packed = packed;
        pays
    }

    /// A double as eight bytes, little endian.
    pub fn double(&mut self, value: f64) {
        self.raw(&value.to_le_bytes());
    }

    /// A double as text behind a byte with its length, or one byte for infinities and NaN: the old form.
    pub fn double_text(&mut self, value: f64) {
        if value.is_nan() {
            self.u8(253);
        } else if value.is_infinite() {
            self.u8(if value > 0.0 { 254 } else { 255 });
        } else {
            let at = self.out.len();
            self.u8(0);
            num::format_f64(value, &mut self.out);
            // At most 24 digits, signs and points.
            self.out[at] = (self.out.len() - at - 1) as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rdb::Reader;
    use proptest::prelude::*;

    fn written(write: impl FnOnce(&mut Writer)) -> Vec<u8> {
        let mut writer = Writer::new(true);
        write(&mut writer);
        writer.into_bytes()
    }

    #[test]
    fn lengths_take_the_shortest_form() {
        for (length, bytes) in [
            (0, &b"\x00"[..]),
            (63, b"\x3f"),
            (64, b"\x40\x40"),
            (16383, b"\x7f\xff"),
            (16384, b"\x80\x00\x00\x40\x00"),
            (u64::from(u32::MAX), b"\x80\xff\xff\xff\xff"),
            (1 << 32, b"\x81\x00\x00\x00\x01\x00\x00\x00\x00"),
            (u64::MAX, b"\x81\xff\xff\xff\xff\xff\xff\xff\xff"),
        ] {
            assert_eq!(written(|w| w.length(length)), bytes);
        }
    }

    /// As Redis 8.0.6 and Valkey 9.1.2 wrote them in DUMP payloads.
    #[test]
    fn strings_take_redis_s_forms() {
        for (text, bytes) in [
            (&b"-5"[..], &b"\xc0\xfb"[..]),
            (b"1234", b"\xc1\xd2\x04"),
            (b"-70000", b"\xc2\x90\xee\xfe\xff"),
            (b"5000000000", b"\x0a5000000000"),
            (b"hello", b"\x05hello"),
            (b"", b"\x00"),
            (b"007", b"\x03007"),
            (b"-128", b"\xc0\x80"),
            (b"-129", b"\xc1\x7f\xff"),
            (b"-2147483648", b"\xc2\x00\x00\x00\x80"),
            (b"2147483648", b"\x0a2147483648"),
            (b"-2147483649", b"\x0b-2147483649"),
        ] {
            assert_eq!(written(|w| w.string(text)), bytes);
        }
        assert_eq!(written(|w| w.integer(-70000)), b"\xc2\x90\xee\xfe\xff");
        assert_eq!(written(|w| w.integer(5_000_000_000)), b"\x0a5000000000");
    }

    #[test]
    fn compression_is_for_long_strings_and_can_be_off() {
        assert_eq!(written(|w| w.string(&[b'a'; 20])), [&b"\x14"[..], &[b'a'; 20]].concat());
        assert_eq!(written(|w| w.string(&[b'a'; 64]))[..4], *b"\xc3\x05\x40\x40");
        let mut writer = Writer::over(b"before".to_vec(), false);
        writer.string(&[b'a'; 64]);
        assert_eq!(writer.as_bytes(), [&b"before\x40\x40"[..], &[b'a'; 64]].concat());
        writer.clear();
        assert_eq!(writer.as_bytes(), b"");
    }

    #[test]
    fn doubles() {
        assert_eq!(written(|w| w.double(-1.5)), b"\x00\x00\x00\x00\x00\x00\xf8\xbf");
        assert_eq!(written(|w| w.double_text(20.0)), b"\x0220");
        assert_eq!(written(|w| w.double_text(-1.5)), b"\x04-1.5");
        assert_eq!(written(|w| w.double_text(f64::NAN)), [253]);
        assert_eq!(written(|w| w.double_text(f64::INFINITY)), [254]);
        assert_eq!(written(|w| w.double_text(f64::NEG_INFINITY)), [255]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(600))]

        #[test]
        fn what_is_written_is_read_back(
            number in any::<u64>(),
            shift in 0_u32..64,
            texts in proptest::collection::vec(proptest::collection::vec(b'0'..=b'3', 0..80), 0..6),
            bits in any::<u64>(),
            compress in any::<bool>(),
        ) {
            let (number, double) = (number >> shift, f64::from_bits(bits));
            let mut writer = Writer::new(compress);
            writer.length(number);
            writer.integer(number as i64);
            for text in &texts {
                writer.string(text);
            }
            writer.double(double);
            writer.double_text(double);
            writer.time_ms(number as i64);
            writer.u64_le(number);
            writer.u32_le(number as u32);
            let bytes = writer.into_bytes();
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(reader.length().unwrap(), number);
            prop_assert_eq!(reader.string().unwrap(), (number as i64).to_string().into_bytes());
            for text in &texts {
                prop_assert_eq!(&*reader.string().unwrap(), &text[..]);
            }
            prop_assert_eq!(reader.double().unwrap().to_bits(), bits);
            let text = reader.double_text().unwrap();
            prop_assert!(text.to_bits() == bits || (text.is_nan() && double.is_nan()));
            prop_assert_eq!(reader.time_ms().unwrap(), number as i64);
            prop_assert_eq!(reader.u64_le().unwrap(), number);
            prop_assert_eq!(reader.u32_le().unwrap(), number as u32);
            prop_assert!(reader.is_at_end());
        }
    }
}
