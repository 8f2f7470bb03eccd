//! The commands that took long: the log behind SLOWLOG.
//!
//! Must stay true: the log is touched only by commands that took long and by administrators; an entry is bounded
//! whatever the command was.
use std::collections::VecDeque;

use parking_lot::Mutex;

/// Arguments kept of a command; the last one then says how many are missing.
const ARGS_MAX: usize = 32;
/// Bytes kept of an argument.
const ARG_BYTES_MAX: usize = 128;

/// One slow command.
#[derive(Clone, Debug, Default)]
pub struct SlowCommand {
    /// Ascending; given by the log.
    pub id: u64,
    /// Wall clock when it ended, seconds.
    pub at_s: u64,
    /// How long it took, microseconds.
    pub took_us: u64,
    /// Its arguments, shortened.
    pub args: Vec<Box<[u8]>>,
    /// Address of the client.
    pub addr: String,
    /// Name of the client, or empty.
    pub name: String,
}

/// Arguments as they are logged.
pub fn shorten<'a>(args: impl ExactSizeIterator<Item = &'a [u8]>) -> Vec<Box<[u8]>> {
    let count = args.len();
    let kept = if count > ARGS_MAX { ARGS_MAX - 1 } else { count };
    let mut short: Vec<Box<[u8]>> = args.take(kept).map(shorten_one).collect();
    if kept < count {
        short.push(format!("... ({} more arguments)", count - kept).into_bytes().into());
    }
    short
}

fn shorten_one(arg: &[u8]) -> Box<[u8]> {
    if arg.len() <= ARG_BYTES_MAX {
        return arg.into();
    }
    let mut short = arg[..ARG_BYTES_MAX].to_vec();
    short.extend_from_slice(format!("... ({} more bytes)", arg.len() - ARG_BYTES_MAX).as_bytes());
    short.into()
}

/// The log, newest first.
#[derive(Debug, Default)]
pub struct SlowLog {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    entries: VecDeque<SlowCommand>,
    next_id: u64,
}

impl SlowLog {
    /// Enters a command; of all only the `keep` newest are kept.
    pub fn push(&self, mut command: SlowCommand, keep: usize) {
        let mut inner = self.inner.lock();
        command.id = inner.next_id;
        inner.next_id += 1;
        inner.entries.push_front(command);
        inner.entries.truncate(keep);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.inner.lock().entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The newest ones.
    pub fn newest(&self, count: usize) -> Vec<SlowCommand> {
        self.inner.lock().entries.iter().take(count).cloned().collect()
    }

    /// Forgets all; numbers go on.
    pub fn reset(&self) {
        self.inner.lock().entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_bounded() {
        let long = vec![b'x'; 200];
        let short = shorten([&b"a"[..], &long[..128], &long[..129], &long].into_iter());
        assert_eq!((&*short[0], &*short[1]), (&b"a"[..], &long[..128]));
        assert!(short[2].ends_with(b"x... (1 more bytes)") && short[3].ends_with(b"x... (72 more bytes)"));
        assert_eq!(short[3].len(), 128 + "... (72 more bytes)".len());
        let many = |n: usize| shorten(vec![&b"a"[..]; n].into_iter());
        assert_eq!((many(32).len(), &*many(32)[31]), (32, &b"a"[..]));
        assert_eq!((many(33).len(), &*many(33)[31]), (32, &b"... (2 more arguments)"[..]));
        assert_eq!(&*many(100)[31], b"... (69 more arguments)");
    }

    #[test]
    fn the_newest_are_kept() {
        let log = SlowLog::default();
        (0..5).for_each(|took_us| log.push(SlowCommand { took_us, ..SlowCommand::default() }, 3));
        let seen = |count| log.newest(count).iter().map(|c| (c.id, c.took_us)).collect::<Vec<_>>();
        assert_eq!(seen(10), [(4, 4), (3, 3), (2, 2)]);
        assert_eq!((seen(1).len(), log.len()), (1, 3));
        log.reset();
        assert!(log.is_empty());
        log.push(SlowCommand::default(), 3);
        assert_eq!(log.newest(9)[0].id, 5);
    }
}
