//! The types of values in the snapshot format: their numbers, names and layouts.
//!
//! Numbers up to 21 mean the same to Redis and Valkey. From 22 on they part: Redis 7.4 gave 22 to 25 to
//! hashes with field times, Valkey 9 gave 22 to its own form of the same. The version (of a DUMP payload, of
//! a file) tells which is meant, so [`ValueType::of`] wants it.
//!
//! In the layouts below *length*, *string*, *text double*, *double*, *time* and *count* are what
//! [`super::Reader`] reads under `length`, `string`, `double_text`, `double`, `time_ms` and `count`. Packed
//! blobs (listpack, ziplist, intset, zipmap) always lie in a *string*, so they may be compressed. A value
//! without elements is refused by all servers, except for a stream.
use super::payload::VALKEY_VERSION;

/// What follows a type's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// `0`: a string; servers keep an integer that comes as one. Written by all versions.
    String,
    /// `1`: a count, then strings from head to tail. Written before Redis 3.2 for long lists. At least 1 byte
    /// each.
    List,
    /// `2`: a count, then strings in any order, none twice. Written for large sets. At least 1 byte each.
    Set,
    /// `3`: a count, then per member a string and a text double. Written before Redis 4.0 for large sorted
    /// sets. NaN is refused. At least 2 bytes each.
    Zset,
    /// `4`: a count, then per field a string for its name and a string for its value. Written for large
    /// hashes without field times. At least 2 bytes each.
    Hash,
    /// `5`: a count, then per member a string and a double, written from the highest score to the lowest,
    /// read in any order. Since Redis 4.0 for large sorted sets. NaN is refused. At least 9 bytes each.
    Zset2,
    /// `6`: a module's value of the candidates of Redis 4.0; no later server reads it.
    ModulePreGa,
    /// `7`: a length that names the module's type (nine characters of six bits each, then ten bits of its
    /// version), then pairs of a length and what it announces, until 0: 1 and 2 a length (a signed and an
    /// unsigned integer), 3 four bytes of float, 4 eight of double, 5 a string. So it can be skipped by those
    /// who lack the module.
    Module2,
    /// `9`: a string that holds a [`super::legacy::Zipmap`] of field, value. Written before Redis 2.6 for
    /// small hashes.
    HashZipmap,
    /// `10`: a string that holds a [`super::legacy::Ziplist`] of elements. Written before Redis 3.2 for short
    /// lists.
    ListZiplist,
    /// `11`: a string that holds an intset: 32 bits with the bytes of an integer (2, 4, 8), 32 with their
    /// number, then the integers, ascending, all little endian. Written for small sets of integers.
    SetIntset,
    /// `12`: a string that holds a ziplist of member, score, member, score..., the scores as integers or
    /// texts, ascending when a server wrote it. Written before Redis 7.0 for small sorted sets.
    ZsetZiplist,
    /// `13`: a string that holds a ziplist of field, value, field, value... Written before Redis 7.0 for
    /// small hashes.
    HashZiplist,
    /// `14`: a count of nodes, then per node a string that holds a ziplist of elements, never empty bytes. A
    /// ziplist without elements is passed over, a list without any is refused. Written from Redis 3.2 to 6.2
    /// for lists. At least 1 byte each.
    ListQuicklist,
    /// `15`: a stream of Redis 5 and 6. See [`Self::StreamListpacks3`]; the parts that came later are
    /// missing.
    StreamListpacks,
    /// `16`: a string that holds a listpack of field, value, field, value... Since Redis 7.0 for small
    /// hashes.
    HashListpack,
    /// `17`: a string that holds a listpack of member, score, member, score..., ascending. Since Redis 7.0
    /// for small sorted sets.
    ZsetListpack,
    /// `18`: a count of nodes, then per node a length with its kind and a string: kind 1 has one large
    /// element as the string itself, kind 2 a listpack of elements in it. Neither string may have no bytes.
    /// Short lists are written as one node of kind 2. Since Redis 7.0 for all lists. At least 2 bytes each.
    ListQuicklist2,
    /// `19`: a stream of Redis 7.0. See [`Self::StreamListpacks3`]; the active times of consumers are
    /// missing.
    StreamListpacks2,
    /// `20`: a string that holds a listpack of members. Since Redis 7.2 for small sets that are not all
    /// integers.
    SetListpack,
    /// `21`: a stream since Redis 7.2. In order:
    ///
    /// - a count of nodes, then per node a string of 16 bytes (the node's first ID: milliseconds and sequence,
    ///   64 bits each, big endian) and a string that holds the listpack of its entries. At least 2 bytes each;
    /// - lengths: entries in the stream, then milliseconds and sequence of the last ID;
    /// - since `19`, lengths: both halves of the first entry's ID, both halves of the greatest ID that was
    ///   deleted, entries ever added. (For `15`: found in the nodes, 0-0, the number of entries.);
    /// - a count of groups, then the groups. At least 6 bytes each (5 in `15`).
    ///
    /// A group is, in order:
    ///
    /// - a string with its name; lengths: both halves of its last delivered ID; since `19` a length: entries
    ///   read, all ones for unknown. (For `15`: estimated from the ID.);
    /// - a count of pending entries, then per entry 16 raw bytes of ID as above, a time of the last delivery,
    ///   and a length with the number of deliveries. At least 25 bytes each;
    /// - a count of consumers, then per consumer a string with its name, a time when it was seen, since `21` a
    ///   time when it was active (-1 for never; before: the time when it was seen), and a count of pending
    ///   entries followed by 16 raw bytes of ID each. Each of them is among the group's, and each of the
    ///   group's belongs to one consumer. At least 18 bytes per consumer (10 before `21`).
    StreamListpacks3,
    /// Redis's `22`: a hash with field times of the candidates of Redis 7.4. A count, then per field a length
    /// with its time (milliseconds since 1970, 0 for none), a string for its name, a string for its value. At
    /// least 3 bytes each.
    HashMetadataPreGa,
    /// Redis's `23`: a small hash with field times of the candidates of Redis 7.4. As 25 without the leading
    /// time.
    HashListpackExPreGa,
    /// Redis's `24`: a hash with field times since Redis 7.4. A time, the earliest of the fields'; a count;
    /// then per field a length with its time, a string for its name, a string for its value. The field's time
    /// is 0 for none, else what to add, less one, to the earliest. (Servers refuse sums of more than 48 bits,
    /// and write plain [`Self::Hash`] when no field has a time.) At least 3 bytes each.
    HashMetadata,
    /// Redis's `25`: a small hash with field times since Redis 7.4. A time, the earliest of the fields',
    /// which is not needed for reading; a string that holds a listpack of field, value, time, field, value,
    /// time..., the times in milliseconds since 1970, ascending, 0 for none, those at the end.
    HashListpackEx,
    /// Valkey's `22`: a hash with field times since Valkey 9.0, however small. A count, then per field a
    /// string for its name, a string for its value, and a time, -1 for none; one below -1 is refused. A field
    /// whose time has passed is dropped when a primary reads it; a hash that loses all its fields so is no
    /// error. At least 10 bytes each.
    ValkeyHash2,
}

/// Numbers below this mean the same to everybody.
const FIRST_AMBIGUOUS: u8 = 22;

/// All types, with number and name, ascending.
const TYPES: &[(u8, ValueType, &str)] = &[
    (0, ValueType::String, "string"),
    (1, ValueType::List, "list"),
    (2, ValueType::Set, "set"),
    (3, ValueType::Zset, "zset"),
    (4, ValueType::Hash, "hash"),
    (5, ValueType::Zset2, "zset-2"),
    (6, ValueType::ModulePreGa, "module-pre-ga"),
    (7, ValueType::Module2, "module-2"),
    (9, ValueType::HashZipmap, "hash-zipmap"),
    (10, ValueType::ListZiplist, "list-ziplist"),
    (11, ValueType::SetIntset, "set-intset"),
    (12, ValueType::ZsetZiplist, "zset-ziplist"),
    (13, ValueType::HashZiplist, "hash-ziplist"),
    (14, ValueType::ListQuicklist, "list-quicklist"),
    (15, ValueType::StreamListpacks, "stream-listpacks"),
    (16, ValueType::HashListpack, "hash-listpack"),
    (17, ValueType::ZsetListpack, "zset-listpack"),
    (18, ValueType::ListQuicklist2, "list-quicklist-2"),
    (19, ValueType::StreamListpacks2, "stream-listpacks-2"),
    (20, ValueType::SetListpack, "set-listpack"),
    (21, ValueType::StreamListpacks3, "stream-listpacks-3"),
    (22, ValueType::HashMetadataPreGa, "hash-metadata-pre-ga"),
    (22, ValueType::ValkeyHash2, "valkey-hash-2"),
    (23, ValueType::HashListpackExPreGa, "hash-listpack-ex-pre-ga"),
    (24, ValueType::HashMetadata, "hash-metadata"),
    (25, ValueType::HashListpackEx, "hash-listpack-ex"),
];

impl ValueType {
    /// The type that `number` means in a payload or file of a version; `None` for a number without meaning
    /// there.
    pub fn of(number: u8, version: u16) -> Option<ValueType> {
        let meant = |value_type: ValueType| {
            let is_valkey = value_type == ValueType::ValkeyHash2;
            number < FIRST_AMBIGUOUS || is_valkey == (version >= VALKEY_VERSION)
        };
        TYPES.iter().find(|row| row.0 == number && meant(row.1)).map(|row| row.1)
    }

    fn row(self) -> &'static (u8, ValueType, &'static str) {
        // Every type has a row (tested), so the first one never stands in.
        TYPES.iter().find(|row| row.1 == self).unwrap_or(&TYPES[0])
    }

    /// The byte that announces it.
    pub fn number(self) -> u8 {
        self.row().0
    }

    /// The version of payloads and files that hold it: the oldest one since 10 that has it. (Redis 7.0 reads up to 10,
    /// and Valkey nothing from 12 to 79.)
    pub fn version(self) -> u16 {
        match self {
            ValueType::SetListpack | ValueType::StreamListpacks3 => 11,
            ValueType::HashMetadataPreGa
            | ValueType::HashListpackExPreGa
            | ValueType::HashMetadata
            | ValueType::HashListpackEx => 12,
            ValueType::ValkeyHash2 => VALKEY_VERSION,
            _ => 10,
        }
    }

    /// Its name in logs.
    pub fn name(self) -> &'static str {
        self.row().2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rdb::payload::VERSION;

    #[test]
    fn numbers_are_read_as_written() {
        for (number, value_type, name) in TYPES {
            let version = if *value_type == ValueType::ValkeyHash2 { VALKEY_VERSION } else { VERSION };
            assert_eq!(ValueType::of(*number, version), Some(*value_type));
            assert_eq!((value_type.number(), value_type.name()), (*number, *name));
        }
        // One row per type: the last variant's place is the number of types less one.
        assert_eq!(TYPES.len(), ValueType::ValkeyHash2 as usize + 1);
    }

    #[test]
    fn the_version_tells_whose_number_it_is() {
        assert_eq!(ValueType::of(22, 12), Some(ValueType::HashMetadataPreGa));
        assert_eq!(ValueType::of(22, 80), Some(ValueType::ValkeyHash2));
        for number in 23..=25 {
            assert!(ValueType::of(number, 12).is_some());
            assert_eq!(ValueType::of(number, 80), None);
        }
        for number in (26..=255).chain([8]) {
            assert_eq!((ValueType::of(number, 12), ValueType::of(number, 80)), (None, None), "{number}");
        }
        assert_eq!(ValueType::of(21, 80), Some(ValueType::StreamListpacks3));
    }

    /// First bytes of DUMP payloads of Redis 8.0.6 (version 12) and Valkey 9.1.2 (version 80).
    #[test]
    fn what_servers_write() {
        assert_eq!(ValueType::of(0x12, 12), Some(ValueType::ListQuicklist2));
        assert_eq!(ValueType::of(0x11, 80), Some(ValueType::ZsetListpack));
        assert_eq!(ValueType::of(0x05, 80), Some(ValueType::Zset2));
        assert_eq!(ValueType::of(0x19, 12), Some(ValueType::HashListpackEx));
        assert_eq!(ValueType::of(0x16, 80), Some(ValueType::ValkeyHash2));
    }
}
