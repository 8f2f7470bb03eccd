//! Values with parts: what a key can hold besides a string, small (packed bytes) or large (a structure of its own).
use super::list::Quicklist;
use super::sorted::SortedTable;
use super::stream::Stream;
use super::table::PackedTable;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Bytes or a number.
    String,
    /// An ordered sequence.
    List,
    /// Distinct members.
    Set,
    /// Distinct members with scores, in their order.
    SortedSet,
    /// Fields with values.
    Hash,
    /// An append-only log of entries.
    Stream,
}

/// How packed bytes are to be read. The numbers are stored in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Packing {
    /// A listpack of elements.
    List,
    /// A listpack of members.
    Set,
    /// An integer set.
    IntSet,
    /// A listpack of fields and values in turns.
    Hash,
    /// A listpack of fields, values and deadlines in turns, in the order of the deadlines (see `dated`).
    HashDeadlines,
    /// A listpack of members and scores in turns, in the order of the scores.
    SortedSet,
}

impl Packing {
    const ALL: [Packing; 6] = [
        Packing::List,
        Packing::Set,
        Packing::IntSet,
        Packing::Hash,
        Packing::HashDeadlines,
        Packing::SortedSet,
    ];

    /// The packing with this number.
    pub(super) fn from_number(number: u8) -> Packing {
        Packing::ALL[usize::from(number)]
    }

    /// What such bytes are.
    pub const fn kind(self) -> Kind {
        match self {
            Packing::List => Kind::List,
            Packing::Set | Packing::IntSet => Kind::Set,
            Packing::Hash | Packing::HashDeadlines => Kind::Hash,
            Packing::SortedSet => Kind::SortedSet,
        }
    }
}

/// A value in a structure of its own.
#[derive(Clone, Debug)]
pub enum Object {
    /// A list of several listpacks.
    List(Quicklist),
    /// Members in a table.
    Set(PackedTable),
    /// Fields and values in a table.
    Hash(PackedTable),
    /// Members in the order of their scores.
    SortedSet(SortedTable),
    /// A log with its consumer groups.
    Stream(Box<Stream>),
}

impl Object {
    /// What it is.
    pub const fn kind(&self) -> Kind {
        match self {
            Object::List(_) => Kind::List,
            Object::Set(_) => Kind::Set,
            Object::Hash(_) => Kind::Hash,
            Object::SortedSet(_) => Kind::SortedSet,
            Object::Stream(_) => Kind::Stream,
        }
    }

    /// Parts that are freed one by one when it goes.
    pub fn parts(&self) -> usize {
        match self {
            Object::List(list) => list.node_count(),
            Object::Set(table) | Object::Hash(table) => table.len(),
            Object::SortedSet(table) => table.len(),
            Object::Stream(stream) => stream.parts(),
        }
    }

    /// Heap bytes, its own box included.
    pub fn heap_bytes(&self) -> usize {
        size_of::<Object>()
            + match self {
                Object::List(list) => list.heap_bytes(),
                Object::Set(table) | Object::Hash(table) => table.heap_bytes(),
                Object::SortedSet(table) => table.heap_bytes(),
                Object::Stream(stream) => size_of::<Stream>() + stream.heap_bytes(),
            }
    }
}
