//! The scripts that the process knows, by the SHA-1 of their text.
//!
//! SCRIPT LOAD keeps a script until SCRIPT FLUSH. A script that came with EVAL is kept among the last 500 of its kind:
//! clients that write their data into their scripts would fill the memory. Each shard compiles on its own; it looks
//! here when it does not know a script, and at `Script::is_gone` when it does.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;
use rapidhash::RapidHashMap;

use super::flags::Flags;

/// The lower-case hexadecimal SHA-1 of a script.
pub type Sha = [u8; 40];

/// Scripts of EVAL that are kept.
const PASSING_MAX: usize = 500;

/// A script.
#[derive(Debug)]
pub struct Script {
    /// Its name.
    pub sha: Sha,
    /// Its text.
    pub body: Box<[u8]>,
    /// What it says about itself.
    pub flags: Flags,
    /// Length of its `#!` line, 0 if it has none.
    pub code_at: usize,
    /// Came with SCRIPT LOAD.
    kept: AtomicBool,
    /// When it was last used, in insertions.
    used: AtomicU64,
    gone: AtomicBool,
}

impl Script {
    /// A script; `kept` when it came with SCRIPT LOAD.
    pub fn new(sha: Sha, body: &[u8], flags: Flags, code_at: usize, kept: bool) -> Script {
        let kept = AtomicBool::new(kept);
        let (used, gone) = (AtomicU64::new(0), AtomicBool::new(false));
        Script { sha, body: body.into(), flags, code_at, kept, used, gone }
    }

    /// Whether it was flushed or evicted.
    #[inline]
    pub fn is_gone(&self) -> bool {
        self.gone.load(Relaxed)
    }
}

/// The SHA that a client gave, in any case.
pub fn parse_sha(given: &[u8]) -> Option<Sha> {
    let sha: Sha = given.try_into().ok()?;
    Some(sha.map(|b| b.to_ascii_lowercase()))
}

/// All scripts.
#[derive(Debug, Default)]
pub struct Scripts {
    all: Mutex<RapidHashMap<Sha, Arc<Script>>>,
    flushes: AtomicU64,
    insertions: AtomicU64,
    evicted: AtomicU64,
    bytes: AtomicU64,
    count: AtomicU64,
}

impl Scripts {
    /// The script called `sha`.
    pub fn get(&self, sha: &Sha) -> Option<Arc<Script>> {
        self.all.lock().get(sha).cloned()
    }

    /// The script called `sha`, which is kept from now on.
    pub fn keep(&self, sha: &Sha) -> Option<Arc<Script>> {
        let script = self.get(sha)?;
        script.kept.store(true, Relaxed);
        Some(script)
    }

    /// Remembers that `script` is used.
    #[inline]
    pub fn touch(&self, script: &Script) {
        let now = self.insertions.load(Relaxed);
        // Most uses write nothing: the line is shared by all shards.
        if script.used.load(Relaxed) != now {
            script.used.store(now, Relaxed);
        }
    }

    /// Adds a script, unless it is there. Returns the one that is there then; it is kept if one of them was.
    pub fn insert(&self, script: Script) -> Arc<Script> {
        let mut all = self.all.lock();
        if let Some(known) = all.get(&script.sha) {
            if script.kept.load(Relaxed) {
                known.kept.store(true, Relaxed);
            }
            return known.clone();
        }
        if !script.kept.load(Relaxed) {
            self.evict(&mut all);
        }
        let now = self.insertions.fetch_add(1, Relaxed) + 1;
        script.used.store(now, Relaxed);
        self.bytes.fetch_add(bytes_of(&script), Relaxed);
        let script = Arc::new(script);
        all.insert(script.sha, script.clone());
        self.count.store(all.len() as u64, Relaxed);
        script
    }

    /// Makes room for one more script of EVAL.
    fn evict(&self, all: &mut RapidHashMap<Sha, Arc<Script>>) {
        let passing = || all.values().filter(|script| !script.kept.load(Relaxed));
        if passing().count() < PASSING_MAX {
            return;
        }
        let oldest = passing().min_by_key(|script| script.used.load(Relaxed)).map(|script| script.sha);
        if let Some(script) = oldest.and_then(|sha| all.remove(&sha)) {
            script.gone.store(true, Relaxed);
            self.bytes.fetch_sub(bytes_of(&script), Relaxed);
            self.evicted.fetch_add(1, Relaxed);
        }
    }

    /// Forgets all scripts.
    pub fn flush(&self) {
        let mut all = self.all.lock();
        all.drain().for_each(|(_, script)| script.gone.store(true, Relaxed));
        self.flushes.fetch_add(1, Relaxed);
        self.bytes.store(0, Relaxed);
        self.count.store(0, Relaxed);
    }

    /// How often they were flushed.
    #[inline]
    pub fn flushes(&self) -> u64 {
        self.flushes.load(Relaxed)
    }

    /// How many scripts there are.
    pub fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// How many scripts of EVAL had to go.
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Relaxed)
    }

    /// Bytes that the scripts take, without what each shard has compiled.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }
}

fn bytes_of(script: &Script) -> u64 {
    (script.body.len() + size_of::<Script>() + size_of::<(Sha, usize)>()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(number: usize, kept: bool) -> Script {
        let mut sha = [b'0'; 40];
        sha[..8].copy_from_slice(format!("{number:08}").as_bytes());
        Script::new(sha, b"return 1", Flags::UNDECLARED, 0, kept)
    }

    #[test]
    fn the_longest_unused_of_eval_goes() {
        let scripts = Scripts::default();
        let kept = scripts.insert(script(0, true));
        let first = scripts.insert(script(1, false));
        let second = scripts.insert(script(2, false));
        (3..=PASSING_MAX).for_each(|n| drop(scripts.insert(script(n, false))));
        assert_eq!((scripts.count(), scripts.evicted()), (PASSING_MAX as u64 + 1, 0));
        scripts.touch(&first);
        scripts.insert(script(1000, false));
        assert_eq!((scripts.count(), scripts.evicted()), (PASSING_MAX as u64 + 1, 1));
        assert_eq!((kept.is_gone(), first.is_gone(), second.is_gone()), (false, false, true));
        assert!(scripts.get(&second.sha).is_none());
    }

    #[test]
    fn loading_keeps_what_eval_brought() {
        let scripts = Scripts::default();
        let script_1 = scripts.insert(script(1, false));
        assert!(Arc::ptr_eq(&script_1, &scripts.insert(script(1, true))));
        (2..2 * PASSING_MAX).for_each(|n| drop(scripts.insert(script(n, false))));
        assert!(!script_1.is_gone());
        scripts.flush();
        assert_eq!(
            (script_1.is_gone(), scripts.count(), scripts.bytes(), scripts.flushes()),
            (true, 0, 0, 1)
        );
    }
}
