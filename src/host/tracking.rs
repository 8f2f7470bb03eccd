//! Clients that keep what they read (CLIENT TRACKING): who they are, what they asked for, and what they are told when
//! it changes.
//!
//! Stores know clients by their numbers; here a number becomes an address, so a client that is gone, or has switched
//! tracking off, gets nothing, and what stores still hold of it does no harm.
//! Must stay true: only the thread of a client enters it and takes it out; a prefix stands here as long as a client has
//! it.
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard, RwLock};
use rapidhash::RapidHashMap;

use super::mail::{Address, Letter, Mail};
use super::{ClientInfo, mark};
use crate::wire::Out;

/// A client that tracks keys.
#[derive(Clone, Debug)]
pub struct Tracker {
    /// The client.
    pub info: Arc<ClientInfo>,
    /// Where letters reach it.
    pub address: Address,
    /// Who hears of changes in its place.
    pub redirect: Option<Arc<ClientInfo>>,
    /// Not of changes that it made itself (NOLOOP).
    pub skips_own: bool,
    /// It hears of all keys with its prefixes, whether it has read them or not (BCAST).
    pub broadcasts: bool,
}

impl Tracker {
    /// Leaves word of keys that it must forget; `None`: of all keys.
    fn tell(&self, keys: Option<&Arc<[u8]>>, mail: &mut Mail) {
        let keys = keys.cloned();
        match &self.redirect {
            None => mail.push((self.address, Letter::Forget { keys, for_other: false })),
            Some(other) if is_gone(other) => {
                self.info.set(mark::TRACKING_BROKEN, true);
                mail.push((self.address, Letter::RedirectBroken(other.id)));
            }
            Some(other) => mail.push((*other.address.lock(), Letter::Forget { keys, for_other: true })),
        }
    }

    fn skips(&self, by: u64) -> bool {
        self.skips_own && self.info.id == by
    }
}

/// Whether a client has parted: closed, or about to be.
fn is_gone(info: &ClientInfo) -> bool {
    info.has(mark::CLOSES) || info.killed.load(Ordering::Acquire) || *info.fd.lock() < 0
}

/// An array of keys, as it stands in what clients are told.
fn array_of<'a>(keys: impl ExactSizeIterator<Item = &'a [u8]>) -> Arc<[u8]> {
    let mut out = Out::default();
    out.array(keys.len());
    keys.for_each(|key| out.bulk(key));
    out.buf.into()
}

#[derive(Debug, Default)]
struct Registry {
    by_id: RapidHashMap<u64, Tracker>,
    /// The clients that asked for a prefix.
    prefixes: BTreeMap<Box<[u8]>, Vec<u64>>,
    /// How many prefixes have a length: a key is compared with no others.
    lengths: BTreeMap<usize, usize>,
}

impl Registry {
    fn add_prefix(&mut self, prefix: &[u8], id: u64) {
        let entry = self.prefixes.entry(prefix.into());
        if matches!(entry, Entry::Vacant(_)) {
            *self.lengths.entry(prefix.len()).or_default() += 1;
        }
        let clients = entry.or_default();
        if !clients.contains(&id) {
            clients.push(id);
        }
    }

    fn remove_prefix(&mut self, prefix: &[u8], id: u64) {
        let Some(clients) = self.prefixes.get_mut(prefix) else { return };
        clients.retain(|other| *other != id);
        if !clients.is_empty() {
            return;
        }
        self.prefixes.remove(prefix);
        if let Some(count) = self.lengths.get_mut(&prefix.len()) {
            *count -= 1;
            if *count == 0 {
                self.lengths.remove(&prefix.len());
            }
        }
    }
}

/// The registry of clients that track keys.
#[derive(Debug, Default)]
pub struct Trackers {
    registry: RwLock<Registry>,
    /// Somebody asked for prefixes: stores must note all keys that change.
    broadcasts: AtomicBool,
    limiting: Mutex<()>,
}

impl Trackers {
    /// Enters a client, or what it changed of its wishes; it hears of these prefixes from now on, beside those it had.
    /// `true`: stores must look again whether [`Trackers::broadcasts`].
    pub fn enter<'a>(&self, tracker: Tracker, prefixes: impl Iterator<Item = &'a [u8]>) -> bool {
        let mut registry = self.registry.write();
        let id = tracker.info.id;
        registry.by_id.insert(id, tracker);
        prefixes.for_each(|prefix| registry.add_prefix(prefix, id));
        self.heed(&registry)
    }

    /// Takes a client out, which has these prefixes. `true`: see [`Trackers::enter`].
    pub fn leave<'a>(&self, id: u64, prefixes: impl Iterator<Item = &'a [u8]>) -> bool {
        let mut registry = self.registry.write();
        registry.by_id.remove(&id);
        prefixes.for_each(|prefix| registry.remove_prefix(prefix, id));
        self.heed(&registry)
    }

    fn heed(&self, registry: &Registry) -> bool {
        let broadcasts = !registry.prefixes.is_empty();
        self.broadcasts.swap(broadcasts, Ordering::Relaxed) != broadcasts
    }

    /// Whether any client hears of keys by their prefixes.
    pub fn broadcasts(&self) -> bool {
        self.broadcasts.load(Ordering::Relaxed)
    }

    /// Number of clients.
    pub fn len(&self) -> usize {
        self.registry.read().by_id.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of prefixes.
    pub fn prefixes(&self) -> usize {
        self.registry.read().prefixes.len()
    }

    /// Whoever lowers the number of tracked keys does it alone, so that all together do not lower it too far.
    pub fn limit(&self) -> MutexGuard<'_, ()> {
        self.limiting.lock()
    }

    /// Tells the clients who have read a key that it has changed by the client `by`.
    pub fn tell_readers(&self, key: &[u8], readers: impl Iterator<Item = u64>, by: u64, mail: &mut Mail) {
        let registry = self.registry.read();
        let mut keys = None;
        for reader in readers {
            let tracker = registry.by_id.get(&reader);
            if let Some(tracker) = tracker.filter(|tracker| !tracker.broadcasts && !tracker.skips(by)) {
                tracker.tell(Some(keys.get_or_insert_with(|| array_of([key].into_iter()))), mail);
            }
        }
    }

    /// Tells those who have asked for prefixes which keys have changed, each with who changed it last. One message for
    /// each prefix.
    pub fn tell_by_prefix(&self, changed: &BTreeMap<&[u8], u64>, mail: &mut Mail) {
        let registry = self.registry.read();
        let mut found: BTreeMap<&[u8], Vec<(&[u8], u64)>> = BTreeMap::new();
        for (key, by) in changed {
            for len in registry.lengths.keys().take_while(|len| **len <= key.len()) {
                if let Some((prefix, _)) = registry.prefixes.get_key_value(&key[..*len]) {
                    found.entry(prefix).or_default().push((key, *by));
                }
            }
        }
        for (prefix, keys) in &found {
            let all = array_of(keys.iter().map(|(key, _)| *key));
            let clients = registry.prefixes[*prefix].iter().filter_map(|id| registry.by_id.get(id));
            for tracker in clients {
                if !keys.iter().any(|(_, by)| tracker.skips(*by)) {
                    tracker.tell(Some(&all), mail);
                    continue;
                }
                let others: Vec<&[u8]> =
                    keys.iter().filter(|(_, by)| !tracker.skips(*by)).map(|(key, _)| *key).collect();
                if !others.is_empty() {
                    tracker.tell(Some(&array_of(others.into_iter())), mail);
                }
            }
        }
    }

    /// Tells everybody that all keys are gone.
    pub fn tell_all(&self, mail: &mut Mail) {
        self.registry.read().by_id.values().for_each(|tracker| tracker.tell(None, mail));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::mail::Token;

    fn client(id: u64) -> Arc<ClientInfo> {
        let info = ClientInfo::new(id, String::new(), String::new(), 9, 0);
        *info.address.lock() = address(id);
        Arc::new(info)
    }

    fn address(id: u64) -> Address {
        Address { shard: 0, token: Token { slot: id as u32, generation: 0 } }
    }

    fn tracker(id: u64) -> Tracker {
        Tracker {
            info: client(id),
            address: address(id),
            redirect: None,
            skips_own: false,
            broadcasts: false,
        }
    }

    /// What was left, as `to:text`.
    fn texts(mail: Mail) -> Vec<String> {
        let text = |(to, letter): (Address, Letter)| {
            let said = match letter {
                Letter::Forget { keys: None, for_other } => format!("all {for_other}"),
                Letter::Forget { keys: Some(keys), for_other } => {
                    format!("{} {for_other}", String::from_utf8_lossy(&keys).replace("\r\n", " "))
                }
                Letter::RedirectBroken(id) => format!("broken {id}"),
                other => panic!("{other:?}"),
            };
            format!("{}:{said}", to.token.slot)
        };
        mail.into_iter().map(text).collect()
    }

    #[test]
    fn readers_are_told_where_they_want_it() {
        let trackers = Trackers::default();
        let other = client(9);
        assert!(!trackers.enter(tracker(1), [].into_iter()));
        trackers.enter(Tracker { redirect: Some(other.clone()), ..tracker(2) }, [].into_iter());
        trackers.enter(Tracker { skips_own: true, ..tracker(3) }, [].into_iter());
        trackers.enter(Tracker { broadcasts: true, ..tracker(4) }, [].into_iter());
        let told = |by| {
            let mut mail = Mail::new();
            trackers.tell_readers(b"key", 1..=5, by, &mut mail);
            texts(mail)
        };
        let key = |to: u32, for_other: bool| format!("{to}:*1 $3 key  {for_other}");
        assert_eq!(told(1), [key(1, false), key(9, true), key(3, false)]);
        assert_eq!(told(3), [key(1, false), key(9, true)]);
        *other.fd.lock() = -1;
        assert_eq!(told(3), [key(1, false), "2:broken 9".into()]);
        trackers.leave(1, [].into_iter());
        trackers.leave(2, [].into_iter());
        assert_eq!((told(0), trackers.len()), (vec![key(3, false)], 2));
        let mut mail = Mail::new();
        trackers.tell_all(&mut mail);
        let mut told = texts(mail);
        told.sort();
        assert_eq!(told, ["3:all false", "4:all false"]);
    }

    #[test]
    fn prefixes_have_messages_of_their_own() {
        let trackers = Trackers::default();
        let broadcast = |id, skips_own| Tracker { broadcasts: true, skips_own, ..tracker(id) };
        let prefixes = |list: &'static [&'static str]| list.iter().map(|prefix| prefix.as_bytes());
        assert!(trackers.enter(broadcast(1, false), prefixes(&["a", "b"])));
        assert!(!trackers.enter(broadcast(2, true), prefixes(&[""])));
        assert!(!trackers.enter(broadcast(1, false), prefixes(&["cd"])));
        assert_eq!((trackers.prefixes(), trackers.broadcasts()), (4, true));
        let told = |changed: &[(&'static str, u64)]| {
            let changed = changed.iter().map(|(key, by)| (key.as_bytes(), *by)).collect();
            let mut mail = Mail::new();
            trackers.tell_by_prefix(&changed, &mut mail);
            texts(mail)
        };
        assert_eq!(
            told(&[("a2", 1), ("a1", 2), ("c", 2), ("b", 0)]),
            ["2:*2 $2 a2 $1 b  false", "1:*2 $2 a1 $2 a2  false", "1:*1 $1 b  false"]
        );
        assert_eq!(told(&[("c", 2)]), [""; 0]);
        assert!(!trackers.leave(1, prefixes(&["a", "b", "cd"])));
        assert!(trackers.leave(2, prefixes(&[""])));
        assert_eq!((trackers.prefixes(), trackers.registry.read().lengths.len()), (0, 0));
    }
}
