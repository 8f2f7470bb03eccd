//! The assembled command table: every row under a number, and a name lookup without allocation.
use std::sync::OnceLock;

use super::spec::{KeyPart, Spec};

/// A row and its number; subcommands have numbers of their own.
pub struct Row {
    /// The row.
    pub spec: &'static Spec,
    /// Its number, an index for counters.
    pub id: u32,
    /// Gate bits that it cares about.
    pub gates: u32,
    /// `name_word` of its name.
    word: u64,
    /// Argument index of its first key; 0: it has none.
    pub first_key: u32,
    /// Whether the number of arguments alone says that it can run: no subcommands.
    pub is_plain: bool,
}

/// A row of the process's table.
pub type RowRef = &'static Row;

impl Row {
    /// A row under a number.
    pub fn new(spec: &'static Spec, id: u32) -> Row {
        let first_key =
            spec.keys.first().filter(|part| part.has_keys()).and_then(KeyPart::first).unwrap_or(0);
        let is_plain = spec.subs.is_empty();
        Row { spec, id, gates: spec.gates(), word: name_word(spec.name.as_bytes()), first_key, is_plain }
    }
}

impl Row {
    /// Whether `name`, whose word is `word`, names this row. The word tells short names apart; what it leaves out of
    /// a long one must be compared.
    #[inline]
    fn is_named(&self, word: u64, name: &[u8]) -> bool {
        self.word == word
            && self.spec.name.len() == name.len()
            && (name.len() <= 8 || self.spec.name.as_bytes().eq_ignore_ascii_case(name))
    }
}

/// The table.
pub struct Table {
    rows: Vec<Row>,
    /// First row of each command's subcommands, by row.
    first_sub: Vec<u32>,
    /// Open addressing by `name_hash`; 0 is free, else row + 1.
    index: Vec<u16>,
}

static TABLE: OnceLock<Table> = OnceLock::new();

/// Slots of the name index; a power of two, at most a quarter used.
const INDEX_SLOTS: usize = 2048;

/// The process's table.
///
/// # Panics
/// Before [`install`].
#[inline]
pub fn table() -> &'static Table {
    TABLE.get().expect("the table is installed at boot")
}

/// Installs the table; later calls change nothing.
pub fn install(families: &[&'static [Spec]]) -> &'static Table {
    TABLE.get_or_init(|| Table::new(families))
}

impl Table {
    fn new(families: &[&'static [Spec]]) -> Table {
        let top: Vec<&'static Spec> = families.iter().flat_map(|f| f.iter()).collect();
        let mut table =
            Table { rows: Vec::new(), first_sub: vec![0; top.len()], index: vec![0; INDEX_SLOTS] };
        for spec in &top {
            table.push(spec);
        }
        for (number, spec) in top.iter().enumerate() {
            table.first_sub[number] = table.rows.len() as u32;
            for sub in spec.subs {
                table.push(sub);
            }
        }
        for number in 0..top.len() {
            let mut at = slot(table.rows[number].word, table.rows[number].spec.name.len());
            while table.index[at] != 0 {
                at = (at + 1) % INDEX_SLOTS;
            }
            table.index[at] = number as u16 + 1;
        }
        table
    }

    fn push(&mut self, spec: &'static Spec) {
        self.rows.push(Row::new(spec, self.rows.len() as u32));
    }

    /// Finds a command by its name in any case.
    #[inline]
    pub fn find(&'static self, name: &[u8]) -> Option<RowRef> {
        self.find_word(name_word(name), name)
    }

    /// The same, when the command before it was `last`: pipelines mostly repeat themselves.
    #[inline]
    pub fn find_after(&'static self, last: Option<RowRef>, name: &[u8]) -> Option<RowRef> {
        let word = name_word(name);
        match last {
            Some(row) if row.is_named(word, name) => Some(row),
            _ => self.find_word(word, name),
        }
    }

    fn find_word(&'static self, word: u64, name: &[u8]) -> Option<RowRef> {
        let mut at = slot(word, name.len());
        loop {
            let number = self.index[at];
            if number == 0 {
                return None;
            }
            let row = &self.rows[number as usize - 1];
            if row.is_named(word, name) {
                return Some(row);
            }
            at = (at + 1) % INDEX_SLOTS;
        }
    }

    /// Finds a subcommand of `row` by its name in any case.
    pub fn find_sub(&'static self, row: &Row, name: &[u8]) -> Option<RowRef> {
        let first = *self.first_sub.get(row.id as usize)? as usize;
        let subs = &self.rows[first..first + row.spec.subs.len()];
        subs.iter().find(|sub| sub.spec.sub_name().as_bytes().eq_ignore_ascii_case(name))
    }

    /// Finds a command or `container|sub` by its full name.
    pub fn find_full(&'static self, name: &[u8]) -> Option<RowRef> {
        match name.iter().position(|b| *b == b'|') {
            None => self.find(name),
            Some(bar) => self.find_sub(self.find(&name[..bar])?, &name[bar + 1..]),
        }
    }

    /// The row with a number.
    pub fn row(&'static self, id: u32) -> RowRef {
        &self.rows[id as usize]
    }

    /// All rows, subcommands behind all commands.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The commands, without subcommands.
    pub fn commands(&self) -> &[Row] {
        &self.rows[..self.first_sub.len()]
    }
}

/// The name in eight bytes, case folded: all of it up to eight letters (each length reads its bytes at fixed, maybe
/// overlapping places), the first four and the last four of a longer one.
#[inline]
fn name_word(name: &[u8]) -> u64 {
    const FOLD: u64 = 0x2020_2020_2020_2020;
    let four =
        |at: usize| u64::from(u32::from_le_bytes([name[at], name[at + 1], name[at + 2], name[at + 3]]));
    let word = match name.len() {
        0 => 0,
        n @ 1..=3 => u64::from(name[0]) | u64::from(name[n / 2]) << 8 | u64::from(name[n - 1]) << 16,
        n => four(0) | four(n - 4) << 32,
    };
    word | FOLD
}

#[inline]
fn slot(word: u64, len: usize) -> usize {
    ((word ^ len as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize % INDEX_SLOTS
}
