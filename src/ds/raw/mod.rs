//! The room of the data structures' unsafe code: an arena, heap blocks, segments, the table made of them.
//!
//! Every pointer here is made by this folder and owned by exactly one table slot or handle; what leaves the
//! room is borrowed from the table. Checked by the model tests at the foot of `dash.rs` (proptest, Miri).
#![allow(unsafe_code)]
pub mod arena;
pub mod block;
pub mod dash;
mod segment;
pub mod thin;

pub use arena::size_class;

/// The bytes that jemalloc (with its 8-byte quantum) hands out for a request of `bytes`: every 8 bytes up to 64, then
/// four classes per doubling.
pub const fn heap_class(bytes: usize) -> usize {
    if bytes <= 64 {
        return if bytes == 0 { 8 } else { (bytes + 7) & !7 };
    }
    let spacing = 1usize << ((bytes - 1).ilog2() - 2);
    (bytes + spacing - 1) & !(spacing - 1)
}

#[cfg(test)]
mod tests {
    use super::heap_class;

    #[test]
    fn heap_classes() {
        let cases = [
            (1, 8),
            (8, 8),
            (9, 16),
            (64, 64),
            (65, 80),
            (80, 80),
            (81, 96),
            (129, 160),
            (1024, 1024),
            (1025, 1280),
        ];
        for (ask, get) in cases {
            assert_eq!(heap_class(ask), get, "{ask}");
        }
    }
}
