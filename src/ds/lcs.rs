//! Longest common subsequence of two byte strings, with the matched ranges that the LCS command reports.
//!
//! The textbook table of lengths is never built. Neighbouring lengths in a row differ by at most one, so a row
//! is kept as one bit per column and 64 columns are advanced by a few word operations (Hyyrö, "Bit-Parallel
//! LCS-length Computation Revisited", 2004). The walk back through the table needs only those bits, so
//! [`subsequence`] holds 1/32 of the memory that 4-byte cells would take.
//!
//! Invariant: among equally long subsequences the one reported is the one Redis reports.

/// A stretch that both strings share, as inclusive ranges of byte positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// First and last position in the first string.
    pub a: (u64, u64),
    /// First and last position in the second string.
    pub b: (u64, u64),
    /// Bytes matched.
    pub len: u64,
}

/// Why two strings are refused before any work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooLarge {
    /// One of the strings is as long as a 32-bit length can say.
    Strings,
    /// The table of 4-byte cells, one per pair of positions, would exceed the limit.
    Table,
}

/// The limit on the table's size that Redis's defaults give (`proto-max-bulk-len`), in bytes.
pub const TABLE_BYTES_MAX_DEFAULT: u64 = 512 << 20;

/// Whether strings of these lengths (in bytes) may be compared when a table of 4-byte cells for them may take
/// `table_bytes_max` bytes. No such table is built here, but the limit also bounds the time spent, and clients
/// meet the same refusal at the same sizes as elsewhere.
pub fn check_size(a_len: usize, b_len: usize, table_bytes_max: u64) -> Result<(), TooLarge> {
    let too_long = |len: usize| len as u64 >= u64::from(u32::MAX) - 1;
    if too_long(a_len) || too_long(b_len) {
        return Err(TooLarge::Strings);
    }
    let cells = (a_len as u128 + 1) * (b_len as u128 + 1);
    if cells * 4 > u128::from(table_bytes_max) { Err(TooLarge::Table) } else { Ok(()) }
}

/// The length of the longest common subsequence. Time `a * b / 64`, memory at most `32 * min(a, b)` bytes.
/// Callers ask [`check_size`] first.
pub fn length(a: &[u8], b: &[u8]) -> u64 {
    let (rows, columns) = if a.len() < b.len() { (b, a) } else { (a, b) };
    let masks = Masks::new(rows, columns);
    let mut row = vec![u64::MAX; masks.words];
    for &byte in rows {
        masks.advance(byte, &mut row);
    }
    row.iter().map(|word| u64::from(word.count_zeros())).sum()
}

/// The longest common subsequence and its matched ranges, last range first.
///
/// # Errors
/// [`TooLarge`] exactly when [`check_size`] says so for `table_bytes_max`.
pub fn subsequence(a: &[u8], b: &[u8], table_bytes_max: u64) -> Result<(Vec<u8>, Vec<Match>), TooLarge> {
    check_size(a.len(), b.len(), table_bytes_max)?;
    let table = Table::new(a, b);
    let mut found = Vec::new();
    let mut matches = Vec::new();
    let (mut i, mut j) = (a.len(), b.len());
    let mut run_len = 0;
    // Both strings are read from their ends; a run of equal bytes closes at the first step sideways, or where
    // a string begins.
    while i > 0 && j > 0 {
        if a[i - 1] == b[j - 1] {
            (i, j, run_len) = (i - 1, j - 1, run_len + 1);
            found.push(a[i]);
        } else {
            close_run(&mut matches, i, j, &mut run_len);
            if table.grows_at(i, j) { i -= 1 } else { j -= 1 }
        }
    }
    close_run(&mut matches, i, j, &mut run_len);
    found.reverse();
    Ok((found, matches))
}

/// Notes the run of `run_len` matched bytes that begins at `i` and `j`, if there is one.
fn close_run(matches: &mut Vec<Match>, i: usize, j: usize, run_len: &mut u64) {
    let (first_a, first_b, len) = (i as u64, j as u64, std::mem::take(run_len));
    if len > 0 {
        matches.push(Match { a: (first_a, first_a + len - 1), b: (first_b, first_b + len - 1), len });
    }
}

/// For each byte value that both strings hold, the columns where it stands, one bit each.
struct Masks {
    /// Index of a byte's mask, in units of `words`; `ABSENT` when the columns lack the byte.
    index: [u16; 256],
    bits: Vec<u64>,
    words: usize,
}

const ABSENT: u16 = u16::MAX;

impl Masks {
    fn new(rows: &[u8], columns: &[u8]) -> Self {
        let words = columns.len().div_ceil(64);
        let (mut in_rows, mut index, mut bits) = ([false; 256], [ABSENT; 256], Vec::new());
        for &byte in rows {
            in_rows[usize::from(byte)] = true;
        }
        let mut count = 0;
        for (column, &byte) in columns.iter().enumerate() {
            if !in_rows[usize::from(byte)] {
                continue;
            }
            let slot = &mut index[usize::from(byte)];
            if *slot == ABSENT {
                *slot = count;
                count += 1;
                bits.resize(usize::from(count) * words, 0);
            }
            bits[usize::from(*slot) * words + column / 64] |= 1 << (column % 64);
        }
        Self { index, bits, words }
    }

    /// Turns the row for the strings so far into the row with one more `byte`. A clear bit says that the
    /// length grows at that column.
    fn advance(&self, byte: u8, row: &mut [u64]) {
        let slot = self.index[usize::from(byte)];
        if slot == ABSENT {
            return;
        }
        let start = usize::from(slot) * self.words;
        let mask = &self.bits[start..start + self.words];
        let mut carry = false;
        for (word, &mask) in row.iter_mut().zip(mask) {
            let met = *word & mask;
            let (sum, over) = word.overflowing_add(met);
            let (sum, over_by_carry) = sum.overflowing_add(u64::from(carry));
            carry = over | over_by_carry;
            *word = sum | (*word & !mask);
        }
    }
}

/// The rows for every prefix of the first string.
struct Table {
    rows: Vec<u64>,
    words: usize,
}

impl Table {
    fn new(a: &[u8], b: &[u8]) -> Self {
        let masks = Masks::new(a, b);
        let words = masks.words;
        let mut rows = Vec::with_capacity(a.len() * words);
        let mut row = vec![u64::MAX; words];
        for &byte in a {
            masks.advance(byte, &mut row);
            rows.extend_from_slice(&row);
        }
        Self { rows, words }
    }

    /// Whether the length for prefixes `i`, `j` exceeds that for `i`, `j - 1`. Where the last bytes differ this
    /// says that the way back leads through `i - 1`, and only through it.
    fn grows_at(&self, i: usize, j: usize) -> bool {
        let column = j - 1;
        self.rows[(i - 1) * self.words + column / 64] & (1 << (column % 64)) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NO_LIMIT: u64 = u64::MAX;

    const fn range(a: (u64, u64), b: (u64, u64)) -> Match {
        Match { a, b, len: a.1 - a.0 + 1 }
    }

    /// The textbook table, and the walk back that prefers the second string unless the first is longer.
    fn model(a: &[u8], b: &[u8]) -> (Vec<u8>, Vec<Match>) {
        let mut table = vec![vec![0_u32; b.len() + 1]; a.len() + 1];
        for i in 1..=a.len() {
            for j in 1..=b.len() {
                table[i][j] = if a[i - 1] == b[j - 1] {
                    table[i - 1][j - 1] + 1
                } else {
                    table[i - 1][j].max(table[i][j - 1])
                };
            }
        }
        let (mut i, mut j) = (a.len(), b.len());
        let (mut pairs, mut matches): (Vec<(u64, u64)>, Vec<Match>) = (Vec::new(), Vec::new());
        while i > 0 && j > 0 {
            if a[i - 1] == b[j - 1] {
                (i, j) = (i - 1, j - 1);
                pairs.push((i as u64, j as u64));
            } else if table[i - 1][j] > table[i][j - 1] {
                i -= 1;
            } else {
                j -= 1;
            }
        }
        for &(x, y) in &pairs {
            match matches.last_mut() {
                Some(last) if last.a.0 == x + 1 && last.b.0 == y + 1 => {
                    *last = range((x, last.a.1), (y, last.b.1));
                }
                _ => matches.push(range((x, x), (y, y))),
            }
        }
        (pairs.iter().rev().map(|&(x, _)| a[x as usize]).collect(), matches)
    }

    #[test]
    fn the_manual_s_example() {
        let (text, matches) = subsequence(b"ohmytext", b"mynewtext", NO_LIMIT).unwrap();
        assert_eq!(text, b"mytext");
        assert_eq!(matches, [range((4, 7), (5, 8)), range((2, 3), (0, 1))]);
        assert_eq!(length(b"ohmytext", b"mynewtext"), 6);
    }

    /// Replies of a Redis 8.0.6 server, ties among them.
    #[test]
    fn ties_break_as_in_redis() {
        type Case = (&'static [u8], &'static [u8], &'static [u8], &'static [Match]);
        const CASES: [Case; 3] = [
            (b"ab", b"ba", b"b", &[range((1, 1), (0, 0))]),
            (b"abab", b"baba", b"bab", &[range((1, 3), (0, 2))]),
            (b"abcbdab", b"bdcaba", b"bdab", &[range((5, 6), (3, 4)), range((3, 4), (0, 1))]),
        ];
        for (a, b, text, matches) in CASES {
            assert_eq!(subsequence(a, b, NO_LIMIT).unwrap(), (text.to_vec(), matches.to_vec()));
        }
    }

    #[test]
    fn nothing_in_common() {
        for (a, b) in [(&b""[..], &b""[..]), (b"", b"abc"), (b"abc", b""), (b"abc", b"xyz")] {
            assert_eq!(subsequence(a, b, NO_LIMIT).unwrap(), (vec![], vec![]));
            assert_eq!(length(a, b), 0);
        }
    }

    #[test]
    fn a_carry_passes_through_words_without_a_match() {
        let b = [&b"x"[..], &[b'q'; 150], b"x"].concat();
        assert_eq!(length(&[&b"x"[..], &[b'z'; 200]].concat(), &b), 1);
        assert_eq!(length(&b, &b), 152);
        assert_eq!(
            subsequence(b"x", &b, NO_LIMIT).unwrap(),
            (b"x".to_vec(), vec![range((0, 0), (151, 151))])
        );
    }

    #[test]
    fn sizes_are_refused_where_the_table_would_pass_the_limit() {
        assert_eq!(check_size(9, 9, 400), Ok(()));
        assert_eq!(check_size(9, 9, 399), Err(TooLarge::Table));
        assert_eq!(check_size(0, 134_217_727, TABLE_BYTES_MAX_DEFAULT), Ok(()));
        assert_eq!(check_size(0, 134_217_728, TABLE_BYTES_MAX_DEFAULT), Err(TooLarge::Table));
        assert_eq!(check_size(0, (u32::MAX - 2) as usize, NO_LIMIT), Ok(()));
        assert_eq!(check_size(0, (u32::MAX - 1) as usize, NO_LIMIT), Err(TooLarge::Strings));
        assert_eq!(check_size(usize::MAX, usize::MAX, NO_LIMIT), Err(TooLarge::Strings));
        assert_eq!(subsequence(b"ab", b"ab", 35), Err(TooLarge::Table));
        assert!(subsequence(b"ab", b"ab", 36).is_ok());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1500))]

        #[test]
        fn agrees_with_the_textbook(
            a in proptest::collection::vec(0_u8..4, 0..200),
            b in proptest::collection::vec(0_u8..4, 0..200),
        ) {
            let (text, matches) = subsequence(&a, &b, NO_LIMIT).unwrap();
            prop_assert_eq!((&text, &matches), (&model(&a, &b).0, &model(&a, &b).1));
            prop_assert_eq!(length(&a, &b), text.len() as u64);
        }

        #[test]
        fn agrees_with_the_textbook_on_any_bytes(a: Vec<u8>, b: Vec<u8>) {
            let (text, matches) = subsequence(&a, &b, NO_LIMIT).unwrap();
            prop_assert_eq!((&text, &matches), (&model(&a, &b).0, &model(&a, &b).1));
            prop_assert_eq!(length(&a, &b), text.len() as u64);
        }
    }
}
