//! The assembled command table: every row under a number, and a name lookup without allocation.
use std::sync::OnceLock;

use super::spec::Spec;

/// A row and its number; subcommands have numbers of their own.
#[derive(Clone, Copy)]
pub struct Row {
    /// The row.
    pub spec: &'static Spec,
    /// Its number, an index for counters.
    pub id: u32,
    /// Gate bits that it cares about.
    pub gates: u32,
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

const NAME_BYTES_MAX: usize = 32;

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
        let mut table = Table { rows: Vec::new(), first_sub: vec![0; top.len()], index: vec![0; 1024] };
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
            let mut at = name_hash(table.rows[number].spec.name.as_bytes()) & 1023;
            while table.index[at] != 0 {
                at = (at + 1) & 1023;
            }
            table.index[at] = number as u16 + 1;
        }
        table
    }

    fn push(&mut self, spec: &'static Spec) {
        self.rows.push(Row { spec, id: self.rows.len() as u32, gates: spec.gates() });
    }

    /// Finds a command by its name in any case.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<Row> {
        if name.len() > NAME_BYTES_MAX {
            return None;
        }
        let mut at = name_hash(name) & 1023;
        loop {
            let number = self.index[at];
            if number == 0 {
                return None;
            }
            let row = self.rows[number as usize - 1];
            if same_name(row.spec.name.as_bytes(), name) {
                return Some(row);
            }
            at = (at + 1) & 1023;
        }
    }

    /// Finds a subcommand of `row` by its name in any case.
    pub fn find_sub(&self, row: Row, name: &[u8]) -> Option<Row> {
        let first = *self.first_sub.get(row.id as usize)? as usize;
        let subs = &self.rows[first..first + row.spec.subs.len()];
        subs.iter().find(|sub| sub.spec.sub_name().as_bytes().eq_ignore_ascii_case(name)).copied()
    }

    /// Finds a command or `container|sub` by its full name.
    pub fn find_full(&self, name: &[u8]) -> Option<Row> {
        match name.iter().position(|b| *b == b'|') {
            None => self.find(name),
            Some(bar) => self.find_sub(self.find(&name[..bar])?, &name[bar + 1..]),
        }
    }

    /// The row with a number.
    pub fn row(&self, id: u32) -> Row {
        self.rows[id as usize]
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

/// Mixes length and up to the first eight letters, case folded.
#[inline]
fn name_hash(name: &[u8]) -> usize {
    let mut word = name.len() as u64;
    for byte in &name[..name.len().min(10)] {
        word = word.rotate_left(6) ^ u64::from(byte | 0x20);
    }
    (word.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54) as usize
}

/// `lower` is a row's name; `given` may have capitals.
#[inline]
fn same_name(lower: &[u8], given: &[u8]) -> bool {
    lower.len() == given.len() && lower.iter().zip(given).all(|(l, g)| *l == g.to_ascii_lowercase())
}
