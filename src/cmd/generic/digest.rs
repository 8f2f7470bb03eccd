//! DEBUG DIGEST: one number for all data, equal to that of Redis for equal data.
//!
//! The digest of a key starts at zero and mixes in key, type and value; a deadline adds a mark. The digest of the
//! data mixes in the number of each database that has keys, then adds the digests of those keys. Mixing keeps the
//! order (`d = sha1(d ^ sha1(x))`), adding does not (`d ^= sha1(x)`).
//!
//! Must stay true: the layout of keys over shards does not show.
use sha1::{Digest as _, Sha1};

use super::object::stored;
use crate::cmd::cx::ReadCx;
use crate::cmd::spec::Done;
use crate::cmd::string::with_text;
use crate::ds::raw::block::{BlockRef, Value};
use crate::types::hash::{Field, HashRef};
use crate::types::set::SetRef;
use crate::wire::{Args, Out};

/// The number that stands for strings.
const TYPE_STRING: u32 = 0;
/// The number that stands for hashes.
const TYPE_HASH: u32 = 4;
/// The number that stands for sets.
const TYPE_SET: u32 = 2;

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
        match block.value() {
            Value::String(string) => {
                self.mix(&TYPE_STRING.to_be_bytes());
                with_text(Some(string), |text| self.mix(text));
            }
            Value::Packed(..) | Value::Object(_) => {}
        }
        if let Ok(set) = SetRef::of(block) {
            self.mix(&TYPE_SET.to_be_bytes());
            set.for_each(&mut |member| member.with_text(|text| self.add(text)));
        }
        if let Ok(hash) = HashRef::of(block) {
            self.mix(&TYPE_HASH.to_be_bytes());
            hash.for_each(|field| self.add(&field_digest(&field).0));
        }
        if block.deadline_ms().is_some() {
            self.add(b"!!expire!!");
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
    use crate::ds::listpack::{self, Element, Listpack};
    use crate::ds::object::{Object, Packing};
    use crate::ds::raw::block::{Block, NewValue};
    use crate::ds::table::{Deadline, Layout, PackedTable};
    use crate::types::set::{Limits, NewSet};

    fn value_hex(value: NewValue<'_>, deadline_ms: Option<u64>) -> String {
        let block = Block::new(b"k", value, deadline_ms, 0, 0);
        let mut digest = Digest::default();
        digest.mix_value(block.view());
        digest.hex()
    }

    #[test]
    fn values_as_redis_digests_them() {
        // Given by DEBUG DIGEST-VALUE of Redis 8.0.6.
        assert_eq!(value_hex(NewValue::Bytes(b"hello"), None), "36b23a1456b2dce2c3ed252c456761301dba8060");
        assert_eq!(value_hex(NewValue::Int(9999), None), "1cccc814745f3e39e4e9cb701a60bfdb09b076ff");
        assert_eq!(value_hex(NewValue::Bytes(b""), Some(7)), "6db1b93ce6baa1d5cf28f3e32abc6d750a8ed39f");
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
