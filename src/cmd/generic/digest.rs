//! DEBUG DIGEST: one number for all data, equal to that of Redis for equal data.
//!
//! The digest of a key starts at zero and mixes in key, type and value; a deadline adds a mark. The digest of the
//! data mixes in the number of each database that has keys, then adds the digests of those keys. Mixing keeps the
//! order (`d = sha1(d ^ sha1(x))`), adding does not (`d ^= sha1(x)`).
//!
//! Must stay true: the layout of keys over shards does not show.
use sha1::{Digest as _, Sha1};

use super::object::stored;
use crate::base::num;
use crate::cmd::cx::ReadCx;
use crate::cmd::spec::Done;
use crate::cmd::string::with_text;
use crate::ds::object::Kind;
use crate::ds::raw::block::BlockRef;
use crate::ds::stream::{Log, StreamId};
use crate::types::hash::{Field, HashRef};
use crate::types::list::ListRef;
use crate::types::set::SetRef;
use crate::types::sorted_set::SortedSetRef;
use crate::types::stream;
use crate::wire::{Args, Out};

/// The number that stands for a type.
const fn type_number(kind: Kind) -> u32 {
    match kind {
        Kind::String => 0,
        Kind::List => 1,
        Kind::Set => 2,
        Kind::SortedSet => 3,
        Kind::Hash => 4,
        Kind::Stream => 6,
    }
}

/// A digest in the making.
#[derive(Clone, Copy, Default)]
pub struct Digest([u8; 20]);

impl Digest {
    /// Takes another digest in, in any order.
    fn join(&mut self, other: Digest) {
        self.0.iter_mut().zip(other.0).for_each(|(to, from)| *to ^= from);
    }

    /// Takes bytes in, in any order.
    pub fn add(&mut self, bytes: &[u8]) {
        self.join(Digest(Sha1::digest(bytes).into()));
    }

    /// Takes bytes in, in this order.
    pub fn mix(&mut self, bytes: &[u8]) {
        self.add(bytes);
        *self = Digest(Sha1::digest(self.0).into());
    }

    /// Forty hexadecimal digits.
    pub fn hex(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Takes in what is stored under a key: type, value, whether it has a deadline.
    fn mix_value(&mut self, block: BlockRef<'_>) {
        self.mix(&type_number(block.kind()).to_be_bytes());
        if let Some(string) = block.string() {
            with_text(Some(string), |text| self.mix(text));
        } else if let Ok(list) = ListRef::of(block) {
            list.for_each(|element| element.with_text(|text| self.mix(text)));
        } else if let Some(set) = SortedSetRef::of_value(block.value()) {
            for (member, score) in set.iter() {
                let mut pair = Digest::default();
                member.with_text(|text| pair.mix(text));
                pair.mix(&num::f64_digits(score));
                self.add(&pair.0);
            }
        } else if let Ok(set) = SetRef::of(block) {
            set.for_each(&mut |member| member.with_text(|text| self.add(text)));
        } else if let Ok(hash) = HashRef::of(block) {
            hash.for_each(|field| self.add(&field_digest(&field).0));
        } else if let Ok(stream) = stream::of(block) {
            self.mix_entries(&stream.log);
        }
        if block.deadline_ms().is_some() {
            self.add(b"!!expire!!");
        }
    }

    /// The groups of a stream do not count.
    fn mix_entries(&mut self, log: &Log) {
        for entry in log.range(StreamId::MIN, StreamId::MAX) {
            self.mix(entry.id.text(b'.').as_bytes());
            for (name, value) in entry.pairs() {
                name.with_text(|text| self.mix(text));
                value.with_text(|text| self.mix(text));
            }
        }
    }
}

/// The digest of a field: name, value, whether it has a deadline.
fn field_digest(field: &Field<'_>) -> Digest {
    let mut digest = Digest::default();
    field.name.with_text(|name| digest.mix(name));
    field.value.with_text(|value| digest.mix(value));
    if field.deadline_ms.is_some() {
        digest.add(b"!!hexpire!!");
    }
    digest
}

/// The digest of key and value.
fn entry_digest(block: BlockRef<'_>) -> Digest {
    let mut digest = Digest::default();
    digest.mix(block.key());
    digest.mix_value(block);
    digest
}

/// DEBUG DIGEST. Counts what is stored, expired or not.
pub fn digest(cx: &ReadCx<'_>, _args: &mut Args<'_>, out: &mut Out) -> Done {
    let mut all = Digest::default();
    let databases = cx.all().map(|store| store.databases()).max().unwrap_or(0);
    for index in 0..databases as u32 {
        let (mut keys, mut sum) = (0, Digest::default());
        for db in cx.all().filter_map(|store| store.db(index)) {
            keys += db.table.len();
            db.table.for_each(|block| sum.add(&entry_digest(block).0));
        }
        if keys > 0 {
            all.mix(&index.to_be_bytes());
            all.join(sum);
        }
    }
    out.simple(&all.hex());
    Ok(())
}

/// DEBUG DIGEST-VALUE key [key ...]. Zeros for a missing key.
pub fn digest_value(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let count = args.left();
    out.array(count);
    for key in args.keys(count) {
        let mut digest = Digest::default();
        if let Some(block) = stored(cx, key) {
            digest.mix_value(block);
        }
        out.simple(&digest.hex());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::hash::KeyHash;
    use crate::config::Settings;
    use crate::ds::dated;
    use crate::ds::list::Quicklist;
    use crate::ds::listpack::{self, Element, Listpack};
    use crate::ds::object::{Object, Packing};
    use crate::ds::raw::block::{Block, NewValue};
    use crate::ds::stream::{NodeLimits, Stream};
    use crate::ds::table::{Deadline, Layout, PackedTable};
    use crate::types::set::{Limits, NewSet};

    fn value_hex(value: NewValue<'_>, deadline_ms: Option<u64>) -> String {
        let block = Block::new(b"k", value, deadline_ms, 0, 0);
        let mut digest = Digest::default();
        digest.mix_value(block.view());
        digest.hex()
    }

    #[test]
    fn streams_as_redis_digests_them() {
        let mut stream = Box::<Stream>::default();
        let entries =
            [(1_000, 5, "a 1 b xyz"), (1_000, 6, "a 2 b "), (1_007, 0, "b 1"), (9_999, 0, "a -5 b 7")];
        for (ms, seq, line) in entries {
            let fields: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            stream.log.append(StreamId::new(ms, seq), NodeLimits::default(), fields.into_iter());
        }
        // Given by DEBUG DIGEST-VALUE of Redis 8.0.6.
        let value = NewValue::Object(Box::new(Object::Stream(stream)));
        assert_eq!(value_hex(value, None), "929f9caeb3ed096651fb8d99ed46c4f4f474cd07");
    }

    #[test]
    fn values_as_redis_digests_them() {
        // Given by DEBUG DIGEST-VALUE of Redis 8.0.6.
        assert_eq!(value_hex(NewValue::Bytes(b"hello"), None), "36b23a1456b2dce2c3ed252c456761301dba8060");
        assert_eq!(value_hex(NewValue::Int(9999), None), "1cccc814745f3e39e4e9cb701a60bfdb09b076ff");
        assert_eq!(value_hex(NewValue::Bytes(b""), Some(7)), "6db1b93ce6baa1d5cf28f3e32abc6d750a8ed39f");
        let mut list = listpack::EMPTY.to_vec();
        listpack::append_many(&mut list, [&b"a"[..], b"12", b"-7", b""].map(listpack::Element::Bytes));
        let mut quick = Quicklist::default();
        quick.append_pack(&list);
        let long = NewValue::Object(Box::new(Object::List(quick)));
        for value in [NewValue::Packed(Packing::List, &list), long] {
            assert_eq!(value_hex(value, None), "021df298e425afa3d1b612cc9a0966ba4dabd445");
        }
        assert_eq!(value_hex(NewValue::Bytes(b"9999"), None), value_hex(NewValue::Int(9999), None));
    }

    #[test]
    fn hashes_as_redis_digests_them() {
        let mut pairs = listpack::EMPTY.to_vec();
        listpack::append_many(&mut pairs, ["f", "v", "7", "012"].map(|text| Element::Bytes(text.as_bytes())));
        let mut dated_pairs = listpack::EMPTY.to_vec();
        dated::append_pairs(&mut dated_pairs, Listpack::new(&pairs));
        let first = dated::at(Listpack::new(&dated_pairs), listpack::HEAD_BYTES);
        dated::set_deadline(&mut dated_pairs, &first, Some(7));
        let mut table = PackedTable::new(Layout::KeysAndValues);
        table.insert(KeyHash::of(b"a"), b"a", b"1", Deadline::Clear);
        let hexes = [
            NewValue::Packed(Packing::Hash, &pairs),
            NewValue::Packed(Packing::HashDeadlines, &dated_pairs),
            NewValue::Object(Box::new(Object::Hash(table))),
        ]
        .map(|value| value_hex(value, None));
        // Given by DEBUG DIGEST-VALUE of Redis 8.0.6.
        let given = [
            "981867863d8a4505a12b57ee5d55b71d28bb8cc2",
            "7c6798cbd2d6056c84df5371b124fb522db80577",
            "626a7b57a269f8f179a44902458ecb2f5920d35d",
        ];
        assert_eq!(hexes, given);
    }

    #[test]
    fn sets_as_redis_digests_them() {
        let long = "a long text that makes the set a table, since it has more than sixty-four bytes";
        let forms = [&["7", "-3"][..], &["7", "x", "-3"], &["7", long]];
        let hexes = forms.map(|members| {
            let mut set = NewSet::of_ints();
            let limits = Limits::of(&Settings::default());
            for member in members {
                set.add(member.as_bytes().into(), &limits);
            }
            let mut hex = String::new();
            set.store(|value| hex = value_hex(value, None));
            hex
        });
        // Given by DEBUG DIGEST-VALUE of Redis 8.0.6.
        let given = [
            "fc62501d60286028e7dab3abd58c6088d7187611",
            "ed94fd93a50249ac4c704ed7eedd058baf445663",
            "6da2c138281d03320ce929b1e83ba07b8b597253",
        ];
        assert_eq!(hexes, given);
    }
}
