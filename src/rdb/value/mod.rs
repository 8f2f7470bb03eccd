//! Values in the snapshot format: what DUMP carries and what follows a key in files, written from the forms that
//! values have in memory and read into them. The layouts are told in `super::types`.
//!
//! [`write()`] takes, for each value, the type that the oldest servers read: version 10 of the format (Redis 7.0), 12
//! only for hashes with field deadlines. [`read`] takes every type that servers wrote since Redis 2.4, and gives a
//! value in the form that the [`Limits`] call for. Each module here has both directions for one kind of value; `blob`
//! has what they share.
//!
//! Must stay true of reading: the input is hostile. It is gone through once; every count is compared with the bytes
//! that are left before room is made for it; what comes out keeps all that the structures in memory promise (no member
//! twice, scores that are numbers, ids that ascend...), or nothing comes out. Containers without elements are refused,
//! but for streams.
mod blob;
mod hash;
mod list;
#[cfg(any(test, feature = "reference"))]
pub mod plain;
mod set;
mod sorted_set;
pub mod steps;
mod stream;
#[cfg(test)]
mod tests;

pub use blob::EMPTY;
use steps::Steps;

use super::reader::Text;
use super::{Corrupt, Reader, ValueType, Writer};
use crate::base::num;
use crate::config::{P, Settings};
use crate::ds::list::Limit;
use crate::ds::object::{Object, Packing};
use crate::ds::raw::block::{NewValue, Payload, Value};

/// Up to where a container stays in a listpack.
#[derive(Clone, Copy, Debug)]
pub struct Small {
    /// Elements: members, or fields.
    pub entries: usize,
    /// Bytes of a member, of a field's name, of a field's value.
    pub text_bytes: usize,
}

/// Up to where values stay in their small forms.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Of a hash.
    pub hash: Small,
    /// Of a set.
    pub set: Small,
    /// Members of a set of integers.
    pub ints: usize,
    /// Of a sorted set.
    pub sorted_set: Small,
    /// Of a list, and of a node of a long one.
    pub list: Limit,
    /// Nodes at each end of a long list that stay uncompressed; 0 compresses none.
    pub list_depth: i64,
}

impl Limits {
    /// Those that the settings say.
    pub fn of(settings: &Settings) -> Limits {
        let int = |id| usize::try_from(settings.int(id)).unwrap_or(0);
        let memory = |id| usize::try_from(settings.memory(id)).unwrap_or(usize::MAX);
        Limits {
            hash: Small {
                entries: int(P::HASH_MAX_LISTPACK_ENTRIES),
                text_bytes: memory(P::HASH_MAX_LISTPACK_VALUE),
            },
            set: Small {
                entries: int(P::SET_MAX_LISTPACK_ENTRIES),
                text_bytes: int(P::SET_MAX_LISTPACK_VALUE),
            },
            ints: int(P::SET_MAX_INTSET_ENTRIES),
            sorted_set: Small {
                entries: int(P::ZSET_MAX_LISTPACK_ENTRIES),
                text_bytes: memory(P::ZSET_MAX_LISTPACK_VALUE),
            },
            list: Limit::new(settings.int(P::LIST_MAX_LISTPACK_SIZE)),
            list_depth: settings.int(P::LIST_COMPRESS_DEPTH),
        }
    }
}

/// A value that was read.
#[derive(Debug)]
pub enum Loaded {
    /// A string.
    Bytes(Vec<u8>),
    /// A string that is a number.
    Int(i64),
    /// A small container.
    Packed(Packing, Vec<u8>),
    /// A large container.
    Object(Box<Object>),
}

impl Loaded {
    /// The value, to look at.
    pub fn value(&self) -> Value<'_> {
        match self {
            Loaded::Bytes(bytes) => Value::String(Payload::Bytes(bytes)),
            Loaded::Int(int) => Value::String(Payload::Int(*int)),
            Loaded::Packed(packing, bytes) => Value::Packed(*packing, bytes),
            Loaded::Object(object) => Value::Object(object),
        }
    }

    /// Hands the value over as that of a key.
    pub fn store<R>(self, put: impl FnOnce(NewValue<'_>) -> R) -> R {
        match self {
            Loaded::Bytes(bytes) => put(NewValue::Heap(bytes)),
            Loaded::Int(int) => put(NewValue::Int(int)),
            Loaded::Packed(packing, bytes) => put(NewValue::Packed(packing, &bytes)),
            Loaded::Object(object) => put(NewValue::Object(object)),
        }
    }

    fn of(object: Object) -> Loaded {
        Loaded::Object(Box::new(object))
    }
}

/// The type under which [`write()`] writes a value.
pub fn type_of(value: Value<'_>) -> ValueType {
    match value {
        Value::String(_) => ValueType::String,
        Value::Packed(Packing::List, _) | Value::Object(Object::List(_)) => ValueType::ListQuicklist2,
        Value::Packed(Packing::IntSet, _) => ValueType::SetIntset,
        // The listpack of members came with version 11.
        Value::Packed(Packing::Set, _) | Value::Object(Object::Set(_)) => ValueType::Set,
        Value::Packed(Packing::SortedSet, _) => ValueType::ZsetListpack,
        Value::Object(Object::SortedSet(_)) => ValueType::Zset2,
        Value::Packed(Packing::Hash, _) => ValueType::HashListpack,
        Value::Packed(Packing::HashDeadlines, _) | Value::Object(Object::Hash(_)) => hash::type_of(value),
        // What version 11 adds, the times when consumers were active, is not worth a version.
        Value::Object(Object::Stream(_)) => ValueType::StreamListpacks2,
    }
}

/// Writes a value as its [`type_of`] has it, without the type's number.
pub fn write(value: Value<'_>, writer: &mut Writer) {
    match value {
        Value::String(Payload::Bytes(bytes)) => writer.string(bytes),
        Value::String(Payload::Int(int)) => writer.integer(int),
        Value::Packed(Packing::List, stored) => list::write_pack(stored, writer),
        Value::Packed(Packing::IntSet, stored) => set::write_ints(stored, writer),
        Value::Packed(Packing::Set, stored) => set::write_pack(stored, writer),
        Value::Packed(Packing::Hash | Packing::SortedSet, stored) => blob::write_listpack(stored, writer),
        Value::Packed(Packing::HashDeadlines, stored) => hash::write_dated(stored, writer),
        Value::Object(object) => {
            let mut steps = Steps::begin(object, writer);
            while !steps.go_on(object, usize::MAX, writer) {}
        }
    }
}

/// Reads a value behind its type's number. The reader is then behind the value.
///
/// # Errors
/// Bytes that are no value of that type, or hold one that breaks a promise; modules' values.
pub fn read(value_type: ValueType, reader: &mut Reader<'_>, limits: &Limits) -> Result<Loaded, Corrupt> {
    use ValueType as T;
    match value_type {
        T::String => read_string(reader),
        T::List => list::read_plain(reader, limits),
        T::ListZiplist => list::read_ziplist(reader, limits),
        T::ListQuicklist | T::ListQuicklist2 => list::read_nodes(value_type, reader, limits),
        T::Set => set::read(reader, limits),
        T::SetIntset => set::read_ints(reader, limits),
        T::SetListpack => set::read_pack(reader, limits),
        T::Zset | T::Zset2 => sorted_set::read(value_type, reader, limits),
        T::ZsetZiplist => sorted_set::read_ziplist(reader, limits),
        T::ZsetListpack => sorted_set::read_pack(reader, limits),
        T::Hash => hash::read(reader, limits),
        T::HashZipmap => hash::read_zipmap(reader, limits),
        T::HashZiplist => hash::read_ziplist(reader, limits),
        T::HashListpack => hash::read_pack(reader, limits),
        T::HashListpackEx | T::HashListpackExPreGa => hash::read_dated(value_type, reader, limits),
        T::HashMetadata | T::HashMetadataPreGa => hash::read_with_times(value_type, reader, limits),
        T::ValkeyHash2 => hash::read_valkey(reader, limits),
        T::StreamListpacks | T::StreamListpacks2 | T::StreamListpacks3 => stream::read(value_type, reader),
        T::ModulePreGa | T::Module2 => Err(reader.refuse("a module's value")),
    }
}

fn read_string(reader: &mut Reader<'_>) -> Result<Loaded, Corrupt> {
    Ok(match reader.text()? {
        Text::Integer(int) => Loaded::Int(int),
        Text::Bytes(bytes) => match num::parse_i64(&bytes) {
            Some(int) => Loaded::Int(int),
            None => Loaded::Bytes(bytes.into_owned()),
        },
    })
}
