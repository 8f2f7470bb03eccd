//! The envelope of DUMP: what was dumped, the format's version in two bytes, the CRC-64 of all that in eight,
//! both little endian. RESTORE and FUNCTION RESTORE open it. (A checksum of 0 is not special here as it is at
//! the end of a snapshot file: Redis compares it like any other.)
use super::crc64::crc64;

/// The newest version of Redis that we know: 8.0's. What we write depends on the value, see
/// [`super::ValueType::version`].
pub const VERSION: u16 = 12;
/// The version of Valkey 9. Valkey leaves 12 to 79 to Redis, and means other things by some numbers; see
/// [`super::ValueType::of`].
pub const VALKEY_VERSION: u16 = 80;

const VERSION_BYTES: usize = 2;
const FOOTER_BYTES: usize = VERSION_BYTES + 8;

/// Why an envelope was not opened. Clients get one text for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Fewer bytes than a version and a checksum take.
    Short,
    /// A version that nobody whose format we know has written.
    Version,
    /// The checksum is another.
    Checksum,
}

/// What may pass that usually does not. For tests and for data of which the format is known to fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leniency {
    /// Any version.
    pub version: bool,
    /// Any checksum.
    pub checksum: bool,
}

/// An opened envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload<'a> {
    /// A value's type and the value; maybe more (Redis ignores what follows a value). May be empty.
    pub body: &'a [u8],
    /// The format's version, which settles what some types mean.
    pub version: u16,
}

/// Opens an envelope: versions up to [`VERSION`] and [`VALKEY_VERSION`], and the right checksum.
pub fn open(payload: &[u8]) -> Result<Payload<'_>, Refused> {
    open_leniently(payload, Leniency::default())
}

/// As [`open`], with exceptions.
pub fn open_leniently(payload: &[u8], leniency: Leniency) -> Result<Payload<'_>, Refused> {
    let (body, footer) =
        payload.len().checked_sub(FOOTER_BYTES).map(|at| payload.split_at(at)).ok_or(Refused::Short)?;
    let (version, checksum) = footer.split_first_chunk().ok_or(Refused::Short)?;
    let version = u16::from_le_bytes(*version);
    if !leniency.version && !is_known(version) {
        return Err(Refused::Version);
    }
    let summed = &payload[..payload.len() - checksum.len()];
    if !leniency.checksum && crc64(0, summed).to_le_bytes() != *checksum {
        return Err(Refused::Checksum);
    }
    Ok(Payload { body, version })
}

/// Whether we read the format of this version. (Like Redis, 0 passes, though nobody has written it.)
fn is_known(version: u16) -> bool {
    version <= VERSION || version == VALKEY_VERSION
}

/// Completes an envelope around all of `body`, in the version of the value's type.
pub fn seal(body: &mut Vec<u8>, version: u16) {
    body.extend_from_slice(&version.to_le_bytes());
    let checksum = crc64(0, body);
    body.extend_from_slice(&checksum.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// SET k hello, DUMP k: Redis 8.0.6 and Valkey 9.1.2.
    const REDIS: &[u8] = b"\x00\x05hello\x0c\x00\xa8\x04\xeb\xb6\x9f\x1e\xbe\x43";
    const VALKEY: &[u8] = b"\x00\x05hello\x50\x00\xac\x58\x16\xe7\xfb\x66\x47\xfe";

    fn sealed(body: &[u8], version: u16) -> Vec<u8> {
        let mut payload = body.to_vec();
        seal(&mut payload, version);
        payload
    }

    #[test]
    fn redis_s_and_valkey_s_payloads_open() {
        assert_eq!(open(REDIS), Ok(Payload { body: b"\x00\x05hello", version: 12 }));
        assert_eq!(open(VALKEY), Ok(Payload { body: b"\x00\x05hello", version: 80 }));
        // A list, a sorted set and a hash with field times of Redis 8.0.6.
        for payload in [
            &b"\x12\x01\x02\x0f\x0f\x00\x00\x00\x03\x00\x81a\x02\x01\x01\x81b\x02\xff\
               \x0c\x00\x5b\x35\x97\x8c\x11\xa4\x85\x55"[..],
            b"\x05\x01\x01m\x00\x00\x00\x00\x00\x00\xf8\xbf\x0c\x00\x4c\xbe\x2b\xe8\xb7\x06\x2f\xe7",
            b"\x19\x00\xd8\xc3\x2c\xbb\x03\x00\x00\x1f\x1f\x00\x00\x00\x06\x00\x81f\x02\x81v\x02\xf4\
              \x00\xd8\xc3\x2c\xbb\x03\x00\x00\x09\x81g\x02\x81w\x02\x00\x01\xff\
              \x0c\x00\x84\x36\xd9\x88\x88\x06\xec\x99",
        ] {
            assert_eq!(open(payload).map(|p| p.body), Ok(&payload[..payload.len() - 10]));
        }
    }

    #[test]
    fn we_seal_as_they_do() {
        assert_eq!(sealed(b"\x00\x05hello", VERSION), REDIS);
        assert_eq!(sealed(b"\x00\x05hello", VALKEY_VERSION), VALKEY);
    }

    #[test]
    fn versions() {
        for version in [0, 1, 5, 9, 11, 12, 80] {
            assert_eq!(open(&sealed(b"x", version)), Ok(Payload { body: b"x", version }));
        }
        for version in [13, 79, 81, 0x0100, 0x5000, u16::MAX] {
            let payload = sealed(b"x", version);
            assert_eq!(open(&payload), Err(Refused::Version));
            let leniency = Leniency { version: true, checksum: false };
            assert_eq!(open_leniently(&payload, leniency), Ok(Payload { body: b"x", version }));
        }
    }

    #[test]
    fn short_and_false() {
        assert_eq!(open(&sealed(b"", 12)), Ok(Payload { body: b"", version: 12 }));
        for end in 0..10 {
            assert_eq!(open(&REDIS[..end]), Err(Refused::Short));
        }
        // Redis compares a checksum of zero, too.
        let mut zero = REDIS.to_vec();
        zero[9..].fill(0);
        assert_eq!(open(&zero), Err(Refused::Checksum));
        let leniency = Leniency { version: false, checksum: true };
        assert_eq!(open_leniently(&zero, leniency), Ok(Payload { body: b"\x00\x05hello", version: 12 }));
        assert_eq!(open_leniently(&zero[..9], leniency), Err(Refused::Short));
    }

    proptest! {
        #[test]
        fn a_flipped_bit_is_noticed(
            body in proptest::collection::vec(any::<u8>(), 0..200),
            at in any::<proptest::sample::Index>(),
            bit in 0_u8..8,
        ) {
            let mut payload = sealed(&body, VERSION);
            prop_assert_eq!(open(&payload), Ok(Payload { body: &body, version: VERSION }));
            let at = at.index(payload.len());
            payload[at] ^= 1 << bit;
            prop_assert!(open(&payload).is_err());
        }

        #[test]
        fn hostile_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let leniency = Leniency { version: true, checksum: true };
            prop_assert_eq!(open_leniently(&bytes, leniency).is_ok(), bytes.len() >= 10);
            let _ = open(&bytes);
        }
    }
}
