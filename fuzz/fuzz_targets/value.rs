//! Values in the snapshot format: whatever the bytes are, they are refused or give a value that is sound and says the
//! same when it is written and read again; nothing is reserved that the input does not back.
//!
//! Input: a byte of switches (whose types the ambiguous numbers mean, compression, small limits), then type and value.
#![no_main]
use libfuzzer_sys::fuzz_target;
use perigee::config::Settings;
use perigee::ds::list::Limit;
use perigee::rdb::payload::{VALKEY_VERSION, VERSION};
use perigee::rdb::value::plain::{check, plain};
use perigee::rdb::value::{Limits, Loaded, Small, read, type_of, write};
use perigee::rdb::{Reader, ValueType, Writer};
use perigee_fuzz::Choices;
use perigee_fuzz::allocator::{Watched, largest_request};

#[global_allocator]
static ALLOCATOR: Watched = Watched;

const SWITCH_VALKEY: u8 = 1;
const SWITCH_COMPRESS: u8 = 2;
const SWITCH_SMALL: u8 = 4;
/// A compressed string grows to so many times its bytes at most, and what is made of it to a few times that.
const EXPANSION_MAX: usize = 88 * 8;

fn limits(small: bool) -> Limits {
    if !small {
        return Limits::of(&Settings::default());
    }
    let small = Small { entries: 3, text_bytes: 5 };
    Limits { hash: small, set: small, ints: 2, sorted_set: small, list: Limit::new(2), list_depth: 1 }
}

fn load(bytes: &[u8], version: u16, limits: &Limits) -> Option<Loaded> {
    let mut reader = Reader::new(bytes);
    let number = reader.u8().ok()?;
    read(ValueType::of(number, version)?, &mut reader, limits).ok()
}

fuzz_target!(|input: &[u8]| {
    let mut choices = Choices::new(input);
    let switches = choices.byte();
    let bytes = choices.rest();
    let version = if switches & SWITCH_VALKEY == 0 { VERSION } else { VALKEY_VERSION };
    let small = switches & SWITCH_SMALL != 0;
    let (loaded, largest_bytes) = largest_request(|| load(bytes, version, &limits(small)));
    assert!(largest_bytes <= 65_536 + EXPANSION_MAX * bytes.len(), "{largest_bytes} for {}", bytes.len());
    // Limits decide on forms, not on what is a value.
    let other = load(bytes, version, &limits(!small));
    assert_eq!(loaded.is_some(), other.is_some());
    let (Some(loaded), Some(other)) = (loaded, other) else { return };
    check(loaded.value());
    let said = plain(loaded.value());
    assert_eq!(said, plain(other.value()));
    let mut writer = Writer::new(switches & SWITCH_COMPRESS != 0);
    let value_type = type_of(loaded.value());
    writer.u8(value_type.number());
    write(loaded.value(), &mut writer);
    let again =
        load(writer.as_bytes(), value_type.version(), &limits(!small)).expect("what is written is read");
    check(again.value());
    assert_eq!(plain(again.value()), said);
});
