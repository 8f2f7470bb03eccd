//! Values of all kinds, written and read under all kinds of limits; payloads of real servers; hostile bytes.
use std::fmt::Write as _;

use proptest::prelude::*;

use super::plain::{Plain, PlainGroup, check, plain};
use super::*;
use crate::ds::stream::{Delivery, Group, NewId, NodeLimits, Stream, StreamId};
use crate::rdb::payload::VERSION;

/// Payloads of real servers. Three lines each: where it is from; version, type and value in hexadecimal; what it says.
const VECTORS: &str = include_str!("vectors.txt");

/// Memory that a value takes for a byte of input at most: compressed strings grow so much, and members of tables, whose
/// records are small, not more.
const EXPANSION_MAX: usize = 150;

fn limits(entries: usize, text_bytes: usize) -> Limits {
    let small = Small { entries, text_bytes };
    let list = Limit::new(if entries < 100 { entries as i64 } else { -2 });
    Limits {
        hash: small,
        set: small,
        ints: entries,
        sorted_set: small,
        list,
        list_depth: (entries % 3) as i64,
    }
}

fn all_limits() -> [Limits; 5] {
    [Limits::of(&Settings::default()), limits(0, 0), limits(2, 100), limits(100, 3), limits(1 << 40, 1 << 40)]
}

/// The type's number and the value.
fn written(value: Value<'_>, compress: bool) -> Vec<u8> {
    let mut writer = Writer::new(compress);
    writer.u8(type_of(value).number());
    write(value, &mut writer);
    writer.into_bytes()
}

fn read_all(bytes: &[u8], version: u16, limits: &Limits) -> Result<Loaded, Corrupt> {
    let mut reader = Reader::new(bytes);
    let number = reader.u8()?;
    let value_type = ValueType::of(number, version).ok_or(reader.refuse("no type"))?;
    let loaded = read(value_type, &mut reader, limits)?;
    Ok(loaded)
}

/// Writes and reads again, under all limits.
fn there_and_back(value: Value<'_>) {
    check(value);
    let want = plain(value);
    let version = type_of(value).version();
    assert!(version == 10 || version == 12);
    for compress in [false, true] {
        let bytes = written(value, compress);
        for limits in all_limits() {
            let back = read_all(&bytes, version, &limits).expect("what we write we read");
            check(back.value());
            assert_eq!(plain(back.value()), want);
        }
    }
}

fn text(bytes: &[u8]) -> String {
    // Long runs are shortened, so that lines stay readable.
    let text = bytes.escape_ascii().to_string();
    if text.len() > 30 { format!("{}..{}", &text[..3], text.len()) } else { text }
}

fn shown_group(name: &[u8], group: &PlainGroup, line: &mut String) {
    let read = group.facts.1.map_or("?".into(), |read| read.to_string());
    write!(line, " | {} {} {read}", text(name), group.facts.0).unwrap();
    for (id, consumer, time_ms, count) in &group.pending {
        write!(line, " {id}:{}:{time_ms}:{count}", text(consumer)).unwrap();
    }
    group.consumers.iter().for_each(|(name, seen_ms)| write!(line, " {}@{seen_ms}", text(name)).unwrap());
}

/// One line.
fn shown(plain: &Plain) -> String {
    let words = |texts: &mut dyn Iterator<Item = String>| texts.collect::<Vec<_>>().join(" ");
    match plain {
        Plain::Text(bytes) => format!("string {}", text(bytes)),
        Plain::List(texts) => format!("list {}", words(&mut texts.iter().map(|t| text(t)))),
        Plain::Set(texts) => format!("set {}", words(&mut texts.iter().map(|t| text(t)))),
        Plain::SortedSet(members) => {
            format!("zset {}", words(&mut members.iter().map(|(m, s)| format!("{}={s}", text(m)))))
        }
        Plain::Hash(fields) => {
            let at = |ms: &Option<u64>| ms.map_or(String::new(), |ms| format!("@{ms}"));
            let field = |(n, (v, ms)): (&Vec<u8>, &(Vec<u8>, Option<u64>))| {
                format!("{}={}{}", text(n), text(v), at(ms))
            };
            format!("hash {}", words(&mut fields.iter().map(field)))
        }
        Plain::Stream(stream) => {
            let (last, deleted, added) = &stream.facts;
            let mut line = format!("stream {last} {deleted} {added}");
            for (id, texts) in &stream.entries {
                write!(line, " {id}({})", words(&mut texts.iter().map(|t| text(t)))).unwrap();
            }
            stream.groups.iter().for_each(|(name, group)| shown_group(name, group, &mut line));
            line
        }
    }
}

/// Origin, version, type and value, what it says.
fn vectors() -> impl Iterator<Item = (&'static str, u16, Vec<u8>, &'static str)> {
    let lines: Vec<&str> = VECTORS.lines().filter(|line| !line.starts_with('#')).collect();
    let vector = |lines: &[&'static str]| {
        let (version, hex) = lines[1].split_once(' ').expect("version and bytes");
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        (lines[0], version.parse().unwrap(), hex.as_bytes().chunks(2).map(byte).collect(), lines[2])
    };
    lines.chunks(3).map(vector).collect::<Vec<_>>().into_iter()
}

#[test]
fn payloads_of_real_servers() {
    let mut seen = std::collections::BTreeSet::new();
    for (origin, version, bytes, want) in vectors() {
        seen.insert(bytes[0]);
        for limits in all_limits() {
            let loaded = read_all(&bytes, version, &limits).unwrap_or_else(|e| panic!("{origin}: {e}"));
            assert_eq!(shown(&plain(loaded.value())), want, "{origin}");
            there_and_back(loaded.value());
        }
    }
    let types = [0, 1, 2, 3, 4, 5, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 24, 25];
    let missing: Vec<u8> = types.into_iter().filter(|number| !seen.contains(number)).collect();
    assert!(missing.is_empty(), "every type has a payload: {missing:?}");
}

/// What Redis 8.0.6 writes we write, too, where there is no reason for an older type.
#[test]
fn we_write_what_redis_writes() {
    let mut same = 0;
    for (origin, version, bytes, _) in vectors().filter(|vector| vector.0.starts_with("Redis 8")) {
        let loaded = read_all(&bytes, version, &all_limits()[0]).unwrap();
        let ours = written(loaded.value(), true);
        // Tables have their own order, and compression is another.
        if ours[0] == bytes[0] && !["large", "long"].iter().any(|word| origin.contains(word)) {
            assert_eq!(ours, bytes, "{origin}");
            same += 1;
        }
    }
    assert_eq!(same, 6);
}

type Texts = Vec<Vec<u8>>;

fn texts() -> impl Strategy<Value = Texts> {
    let text = prop_oneof![
        4 => (-300_i64..300).prop_map(|int| int.to_string().into_bytes()),
        4 => "[ab]{0,4}".prop_map(String::into_bytes),
        1 => any::<i64>().prop_map(|int| int.to_string().into_bytes()),
        1 => (0_usize..200, any::<u8>()).prop_map(|(len, byte)| vec![byte; len]),
        1 => Just(vec![b'L'; 9000]),
    ];
    proptest::collection::vec(text, 1..40)
}

fn distinct(texts: &Texts) -> Vec<&Vec<u8>> {
    texts.iter().collect::<std::collections::BTreeSet<_>>().into_iter().collect()
}

/// Containers of all kinds with these texts, as types that everybody reads.
fn plain_payloads(texts: &Texts, scores: &[f64]) -> Vec<Vec<u8>> {
    let set = distinct(texts);
    let score = |at: usize| scores[at % scores.len()];
    let payload = |number: ValueType, count: usize, each: &mut dyn FnMut(usize, &mut Writer)| {
        let mut writer = Writer::new(false);
        writer.u8(number.number());
        writer.length(count as u64);
        (0..count).for_each(|at| each(at, &mut writer));
        writer.into_bytes()
    };
    vec![
        payload(ValueType::List, texts.len(), &mut |at, w| w.string(&texts[at])),
        payload(ValueType::Set, set.len(), &mut |at, w| w.string(set[at])),
        payload(ValueType::Zset2, set.len(), &mut |at, w| {
            w.string(set[at]);
            w.double(score(at));
        }),
        payload(ValueType::Zset, set.len(), &mut |at, w| {
            w.string(set[at]);
            w.double_text(score(at));
        }),
        payload(ValueType::Hash, set.len(), &mut |at, w| {
            w.string(set[at]);
            w.string(&texts[at]);
        }),
        payload(ValueType::HashMetadataPreGa, set.len(), &mut |at, w| {
            w.length(if score(at) > 0.5 { at as u64 % 7 * 1000 } else { 0 });
            w.string(set[at]);
            w.string(&texts[at]);
        }),
    ]
}

fn score() -> impl Strategy<Value = f64> {
    prop_oneof![
        3 => (-9_i32..9).prop_map(f64::from),
        1 => any::<f64>().prop_filter("a number", |score| !score.is_nan()),
        1 => proptest::sample::select(vec![0.1, -0.0, 3.2, 1e300, 5e-324, f64::INFINITY, f64::NEG_INFINITY]),
    ]
}

fn stream_of(texts: &Texts, choices: &[u8]) -> Stream {
    let mut stream = Stream::default();
    let node_limits = NodeLimits { bytes: 0, entries: 5 };
    for (at, choice) in choices.iter().enumerate() {
        let id = stream.log.new_id(NewId::Now(u64::from(*choice))).unwrap();
        let (name, value) = (&texts[at % 2 % texts.len()][..], &texts[at % texts.len()][..]);
        stream.log.append(id, node_limits, [name, value].into_iter());
        match choice % 5 {
            0 => drop(stream.log.delete(StreamId::new(id.ms / 2, 0))),
            1 => drop(stream.groups.insert(vec![*choice].into(), Group::new(id, Some(at as i64)))),
            2 => drop(stream.groups.insert(vec![*choice].into(), Group::new(StreamId::MIN, None))),
            _ => {}
        }
        for group in stream.groups.values_mut() {
            let (consumer, _) = group.find_or_add(&[choice % 3], i64::from(*choice));
            if choice % 2 == 0 {
                let delivery = Delivery { consumer, time_ms: at as i64 - 3, count: u64::from(*choice) << 40 };
                group.assign(id, delivery);
            }
        }
    }
    stream
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn values_come_back_under_all_limits(
        texts in texts(),
        scores in proptest::collection::vec(score(), 1..8),
        choices in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        for payload in plain_payloads(&texts, &scores) {
            let mut said = None;
            for limits in all_limits() {
                let loaded = read_all(&payload, VERSION, &limits).unwrap();
                let this = plain(loaded.value());
                prop_assert_eq!(said.get_or_insert(this.clone()), &this);
                there_and_back(loaded.value());
            }
        }
        let string = read_all(&[&[0][..], &written_string(&texts[0])].concat(), VERSION, &all_limits()[0]).unwrap();
        prop_assert_eq!(plain(string.value()), Plain::Text(texts[0].clone()));
        there_and_back(string.value());
        let stream = Object::Stream(Box::new(stream_of(&texts, &choices)));
        there_and_back(Value::Object(&stream));
    }
}

fn written_string(text: &[u8]) -> Vec<u8> {
    let mut writer = Writer::new(true);
    writer.string(text);
    writer.into_bytes()
}

/// Memory that a value takes.
fn bytes_of(loaded: &Loaded) -> usize {
    match loaded {
        Loaded::Int(_) => 0,
        Loaded::Bytes(bytes) | Loaded::Packed(_, bytes) => bytes.len(),
        Loaded::Object(object) => object.heap_bytes(),
    }
}

/// Reads what may be anything: it is refused, or a value that is sound in every way.
fn read_hostile(bytes: &[u8], version: u16) -> bool {
    let mut sound = 0;
    for limits in all_limits() {
        let Ok(loaded) = read_all(bytes, version, &limits) else { continue };
        sound += 1;
        let taken = bytes_of(&loaded);
        assert!(taken <= 4096 + bytes.len() * EXPANSION_MAX, "{taken} bytes for {}", bytes.len());
        there_and_back(loaded.value());
    }
    // Limits decide on forms, not on what is a value.
    assert!(sound == 0 || sound == all_limits().len());
    sound > 0
}

#[derive(Clone, Debug)]
enum Edit {
    Set(prop::sample::Index, u8),
    Flip(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Insert(prop::sample::Index, u8),
    Remove(prop::sample::Index),
}

fn edit() -> impl Strategy<Value = Edit> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        2 => (at(), any::<u8>()).prop_map(|(at, byte)| Edit::Set(at, byte)),
        2 => (at(), 0_u8..8).prop_map(|(at, bit)| Edit::Flip(at, bit)),
        1 => at().prop_map(Edit::Cut),
        1 => (at(), any::<u8>()).prop_map(|(at, byte)| Edit::Insert(at, byte)),
        1 => at().prop_map(Edit::Remove),
    ]
}

fn apply(edit: &Edit, bytes: &mut Vec<u8>) {
    let len = bytes.len();
    match *edit {
        Edit::Set(at, byte) => bytes[at.index(len)] = byte,
        Edit::Flip(at, bit) => bytes[at.index(len)] ^= 1 << bit,
        Edit::Cut(at) => bytes.truncate(at.index(len).max(1)),
        Edit::Insert(at, byte) => bytes.insert(at.index(len), byte),
        Edit::Remove(at) if len > 1 => drop(bytes.remove(at.index(len))),
        Edit::Remove(_) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn edited_payloads_are_refused_or_sound(
        which in any::<prop::sample::Index>(),
        edits in proptest::collection::vec(edit(), 1..4),
    ) {
        let all: Vec<_> = vectors().collect();
        let (_, version, bytes, _) = &all[which.index(all.len())];
        // Uncompressed, edits hit more than the compression.
        let plain = read_all(bytes, *version, &all_limits()[0]).unwrap();
        for mut bytes in [bytes.clone(), written(plain.value(), false)] {
            edits.iter().for_each(|edit| apply(edit, &mut bytes));
            read_hostile(&bytes, *version);
        }
    }

    #[test]
    fn any_bytes_are_refused_or_sound(
        number in 0_u8..26,
        bytes in proptest::collection::vec(prop_oneof![any::<u8>(), 0_u8..6], 0..60),
        valkey in any::<bool>(),
    ) {
        let version = if valkey { crate::rdb::payload::VALKEY_VERSION } else { VERSION };
        read_hostile(&[&[number], &bytes[..]].concat(), version);
    }
}

#[test]
fn cut_payloads_are_refused() {
    for (origin, version, bytes, _) in vectors() {
        for end in 1..bytes.len() {
            assert!(!read_hostile(&bytes[..end], version), "{origin} cut at {end}");
        }
    }
}

fn packed_string(texts: &[&str]) -> Vec<u8> {
    let mut stored = crate::ds::listpack::EMPTY.to_vec();
    let elements = texts.iter().map(|text| crate::ds::listpack::Element::of(text.as_bytes()));
    crate::ds::listpack::append_many(&mut stored, elements);
    written_string(&crate::ds::listpack::to_portable(&stored))
}

#[test]
fn what_breaks_a_promise_is_refused() {
    let pack = |number: u8, texts: &[&str]| [&[number][..], &packed_string(texts)].concat();
    let dated = |texts: &[&str]| [&[25, 0, 0, 0, 0, 0, 0, 0, 0][..], &packed_string(texts)].concat();
    for (bytes, reason) in [
        (b"\x01\x00".to_vec(), blob::EMPTY),
        (b"\x02\x00".to_vec(), blob::EMPTY),
        (b"\x03\x00".to_vec(), blob::EMPTY),
        (b"\x04\x00".to_vec(), blob::EMPTY),
        (b"\x05\x00".to_vec(), blob::EMPTY),
        (b"\x0e\x00".to_vec(), blob::EMPTY),
        (b"\x12\x00".to_vec(), blob::EMPTY),
        (b"\x18\0\0\0\0\0\0\0\0\x00".to_vec(), blob::EMPTY),
        (pack(16, &[]), blob::EMPTY),
        (pack(17, &[]), blob::EMPTY),
        (pack(20, &[]), blob::EMPTY),
        ([&b"\x12\x01\x02"[..], &packed_string(&[])].concat(), blob::EMPTY),
        (b"\x02\x02\x01a\x01a".to_vec(), blob::TWICE),
        (b"\x02\x02\xc0\x05\x015".to_vec(), blob::TWICE),
        (b"\x02\x03\xc0\x05\x01a\x015".to_vec(), blob::TWICE),
        (b"\x04\x02\x01a\x01b\x01a\x01c".to_vec(), blob::TWICE),
        (b"\x03\x02\x01a\x01\x31\x01a\x01\x32".to_vec(), blob::TWICE),
        (pack(20, &["a", "b", "a"]), blob::TWICE),
        (pack(17, &["a", "1", "a", "2"]), blob::TWICE),
        (pack(16, &["a", "1", "a", "2"]), blob::TWICE),
        (dated(&["a", "1", "0", "a", "2", "0"]), blob::TWICE),
        (pack(16, &["a", "1", "b"]), blob::UNEVEN),
        (pack(17, &["a", "1", "b"]), blob::UNEVEN),
        (dated(&["a", "1"]), blob::UNEVEN),
        (dated(&["a", "1", "9", "b", "1", "8"]), "deadlines out of order"),
        (dated(&["a", "1", "0", "b", "1", "8"]), "deadlines out of order"),
        (dated(&["a", "1", "-1"]), "a deadline beyond the range of deadlines"),
        (dated(&["a", "1", "x"]), "a deadline beyond the range of deadlines"),
        (dated(&["a", "1", "281474976710655"]), "a deadline beyond the range of deadlines"),
        (b"\x03\x01\x01a\xfd".to_vec(), "a score that is no number"),
        (b"\x05\x01\x01a\0\0\0\0\0\0\xf8\x7f".to_vec(), "a score that is no number"),
        (pack(17, &["a", "nan"]), "a score that is no number"),
        (pack(17, &["a", "one"]), "a score that is no number"),
        (b"\x12\x01\x03\x01a".to_vec(), "a node of an unknown kind"),
        (b"\x12\x01\x01\x00".to_vec(), "a large element without bytes"),
        (b"\x06\x00".to_vec(), "a module's value"),
        (b"\x07\x81\0\0\0\0\0\0\0\x01\x00".to_vec(), "a module's value"),
        (b"\x0b\x08\x02\0\0\0\0\0\0\0".to_vec(), "an unsound integer set"),
        (b"\x02\x7fab".to_vec(), "a count of more elements than there are bytes for"),
    ] {
        for limits in all_limits() {
            let refusal = read_all(&bytes, VERSION, &limits).expect_err(reason);
            assert_eq!(refusal.reason, reason, "{}", bytes.escape_ascii());
        }
    }
}

/// The bytes of a stream with one entry and a group with one pending entry, with changes.
fn stream_bytes(change: impl FnOnce(&mut StreamParts)) -> Vec<u8> {
    let id = |ms: u64| [ms.to_be_bytes(), 0_u64.to_be_bytes()].concat();
    let mut parts = StreamParts {
        key: id(5),
        length: 1,
        last_ms: 5,
        group_names: vec!["g"],
        pending: vec![id(5)],
        consumers: vec![("c", vec![id(5)])],
    };
    change(&mut parts);
    let mut w = Writer::new(false);
    w.raw(&[19, 1]);
    w.string(&parts.key);
    w.raw(&packed_string(&["1", "0", "1", "f", "0", "2", "0", "0", "v", "4"]));
    [parts.length, parts.last_ms, 0, 5, 0, 0, 0, 1].into_iter().for_each(|number| w.length(number));
    w.length(parts.group_names.len() as u64);
    for name in &parts.group_names {
        w.string(name.as_bytes());
        [5, 0, 1].into_iter().for_each(|number| w.length(number));
        w.length(parts.pending.len() as u64);
        for id in &parts.pending {
            w.raw(id);
            w.time_ms(77);
            w.length(1);
        }
        w.length(parts.consumers.len() as u64);
        for (name, pending) in &parts.consumers {
            w.string(name.as_bytes());
            w.time_ms(78);
            w.length(pending.len() as u64);
            pending.iter().for_each(|id| w.raw(id));
        }
    }
    w.into_bytes()
}

struct StreamParts {
    key: Vec<u8>,
    length: u64,
    last_ms: u64,
    group_names: Vec<&'static str>,
    pending: Vec<Vec<u8>>,
    consumers: Vec<(&'static str, Vec<Vec<u8>>)>,
}

#[test]
fn streams_that_break_a_promise_are_refused() {
    let read = |bytes: &[u8]| read_all(bytes, VERSION, &all_limits()[0]);
    let good = read(&stream_bytes(|_| ())).expect("a stream");
    assert_eq!(shown(&plain(good.value())), "stream 5-0 0-0 1 5-0(f v) | g 5-0 1 5-0:c:77:1 c@78");
    type Change = fn(&mut StreamParts);
    let cases: [(Change, &str); 9] = [
        (|p| p.key.truncate(15), "a node's id of another length"),
        (|p| p.length = 2, "a false number of entries"),
        (|p| p.last_ms = 4, "a last id before an entry"),
        (|p| p.group_names.push("g"), "a group's name that stands there twice"),
        (|p| p.pending.push(p.pending[0].clone()), "an entry that is pending twice"),
        (|p| p.pending.clear(), "a consumer's entry that is not pending, or is another's"),
        (|p| p.consumers[0].1.clear(), "an entry that is pending for nobody"),
        (
            |p| p.consumers.push(("d", p.pending.clone())),
            "a consumer's entry that is not pending, or is another's",
        ),
        (|p| p.consumers.push(("c", Vec::new())), "a consumer's name that stands there twice"),
    ];
    for (change, reason) in cases {
        assert_eq!(read(&stream_bytes(change)).expect_err(reason).reason, reason);
    }
}

#[test]
fn forms_are_those_that_the_limits_say() {
    let form = |bytes: &[u8], version, limits: &Limits| match read_all(bytes, version, limits).unwrap() {
        Loaded::Packed(packing, _) => format!("{packing:?}"),
        Loaded::Object(object) => format!("large {:?}", object.kind()),
        Loaded::Bytes(_) => "bytes".into(),
        Loaded::Int(_) => "int".into(),
    };
    let default = &all_limits()[0];
    let hash = b"\x04\x02\x01a\x01b\x01c\x01d";
    for (limits, want) in [(limits(2, 1), "Hash"), (limits(1, 1), "large Hash"), (limits(2, 0), "large Hash")]
    {
        assert_eq!(form(hash, 12, &limits), want);
    }
    let set = b"\x02\x02\xc0\x05\x01a";
    for (limits, want) in [(limits(2, 1), "Set"), (limits(1, 1), "large Set"), (limits(2, 0), "large Set")] {
        assert_eq!(form(set, 12, &limits), want);
    }
    assert_eq!(form(b"\x02\x02\xc0\x05\xc0\x07", 12, default), "IntSet");
    assert_eq!(form(b"\x02\x02\xc0\x05\xc0\x07", 12, &limits(1, 9)), "large Set");
    assert_eq!(form(b"\x02\x02\xc0\x05\xc0\x07", 12, &Limits { ints: 1, ..*default }), "Set");
    let scores = b"\x05\x01\x02ab\0\0\0\0\0\0\0\0";
    for (limits, want) in
        [(limits(1, 2), "SortedSet"), (limits(0, 2), "large SortedSet"), (limits(1, 1), "large SortedSet")]
    {
        assert_eq!(form(scores, 12, &limits), want);
    }
    assert_eq!(form(b"\x01\x03\x01a\x01b\x01c", 12, default), "List");
    assert_eq!(form(b"\x01\x03\x01a\x01b\x01c", 12, &limits(2, 0)), "large List");
    // Deadlines make the form, not the type.
    assert_eq!(form(b"\x16\x01\x00\x01a\x01b", 12, default), "Hash");
    assert_eq!(form(b"\x16\x01\x05\x01a\x01b", 12, default), "HashDeadlines");
    assert_eq!(form(b"\x16\x01\x01a\x01b\xff\xff\xff\xff\xff\xff\xff\xff", 80, default), "Hash");
    assert_eq!(
        (form(b"\x00\x0212", 12, default), form(b"\x00\x02ab", 12, default)),
        ("int".into(), "bytes".into())
    );
}

#[test]
fn a_listpack_out_of_order_is_put_in_order() {
    let bytes = [&[17][..], &packed_string(&["b", "2", "a", "2", "c", "1.5", "d", "-inf"])].concat();
    let loaded = read_all(&bytes, 10, &all_limits()[0]).unwrap();
    let Loaded::Packed(Packing::SortedSet, stored) = &loaded else { panic!("a small sorted set") };
    let texts: Vec<Vec<u8>> =
        crate::ds::listpack::Listpack::new(stored).iter().map(|(_, element)| element.to_vec()).collect();
    let want: [&[u8]; 8] = [b"d", b"-inf", b"c", b"1.5", b"a", b"2", b"b", b"2"];
    assert_eq!(texts, want);
}
