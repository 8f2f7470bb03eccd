//! INFO's section `keysizes`: how many keys of each kind hold how many items, strings how many bytes, by powers of two.
//!
//! It is counted when somebody asks, on a walk over all keys, so that no write has to keep account of it. Must stay true:
//! only who names the section pays for that.
use super::Text;
use crate::cmd::cx::ReadCx;
use crate::cmd::string::len_of;
use crate::config::P;
use crate::ds::object::Kind;
use crate::ds::raw::block::BlockRef;
use crate::types::hash::HashRef;
use crate::types::list::ListRef;
use crate::types::set::SetRef;
use crate::types::sorted_set::SortedSetRef;

/// None, one, and then a step for each power of two.
const STEPS: usize = 65;

/// The kinds that are counted, in Redis's order and under its names.
const KINDS: [(Kind, &str); 5] = [
    (Kind::String, "strings_sizes"),
    (Kind::List, "lists_items"),
    (Kind::Set, "sets_items"),
    (Kind::SortedSet, "zsets_items"),
    (Kind::Hash, "hashes_items"),
];

/// The step that a size belongs to.
fn step_of(size: usize) -> usize {
    size.checked_ilog2().map_or(0, |log| log as usize + 1)
}

/// The smallest size of a step, as Redis writes it.
fn label(step: usize) -> String {
    const UNITS: [&str; 7] = ["", "K", "M", "G", "T", "P", "E"];
    match step.checked_sub(1) {
        None => "0".to_string(),
        Some(log) => format!("{}{}", 1 << (log % 10), UNITS[log / 10]),
    }
}

fn size_of(block: BlockRef<'_>) -> Option<usize> {
    let value = block.value();
    match block.kind() {
        Kind::String => block.string().map(len_of),
        Kind::List => ListRef::of_value(value).map(ListRef::len),
        Kind::Set => SetRef::of_value(value).ok().map(SetRef::len),
        Kind::SortedSet => SortedSetRef::of_value(value).map(SortedSetRef::len),
        Kind::Hash => HashRef::of_value(value).map(HashRef::len),
        Kind::Stream => None,
    }
}

pub(super) fn keysizes(cx: &ReadCx<'_>, text: &mut Text) {
    text.section("Keysizes");
    for index in 0..cx.host.settings().int(P::DATABASES) as u32 {
        let mut counts = [[0u64; STEPS]; KINDS.len()];
        for db in cx.all().filter_map(|store| store.db(index)) {
            db.table.for_each(|block| {
                let kind = KINDS.iter().position(|(kind, _)| *kind == block.kind());
                if let (Some(kind), Some(size)) = (kind, size_of(block)) {
                    counts[kind][step_of(size)] += 1;
                }
            });
        }
        for ((_, name), counts) in KINDS.iter().zip(&counts) {
            let some = counts.iter().enumerate().filter(|(_, count)| **count > 0);
            let shown: Vec<String> = some.map(|(step, count)| format!("{}={count}", label(step))).collect();
            if !shown.is_empty() {
                text.field(&format!("db{index}_distrib_{name}"), shown.join(","));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_powers_of_two() {
        let cases = [
            (0, "0"),
            (1, "1"),
            (2, "2"),
            (3, "2"),
            (4, "4"),
            (1023, "512"),
            (1024, "1K"),
            (1 << 29, "512M"),
        ];
        for (size, want) in cases {
            assert_eq!(label(step_of(size)), want, "{size}");
        }
        assert_eq!(label(step_of(usize::MAX)), "8E");
        assert!(step_of(usize::MAX) < STEPS);
    }
}
