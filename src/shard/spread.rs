//! What a finished command, transaction or script did, told to whoever wants to hear of it; and clients that waited for
//! it, served.
//!
//! Must stay true: this is the only place where news leave a store; nothing is told before the whole is done. Those who
//! wait at a key are served in the order in which they came: when one of them cannot be served on the spot, because its
//! command needs other shards, too, its own connection runs it, and nobody behind it is served before.
use std::sync::Arc;

use super::exec::Door;
use crate::cmd::cx::WriteStores;
use crate::cmd::table::table;
use crate::host::hub::Hub;
use crate::host::mail::{Letter, Mail};
use crate::store::Store;
use crate::store::news::{KeyEvent, class};
use crate::store::wait::Waiter;
use crate::wire::{Key, Out};

impl Door<'_> {
    /// Tells what is new of these stores.
    #[inline]
    pub fn spread(&self, mut stores: WriteStores<'_>) {
        let mut any = false;
        stores.for_each(|store| any |= store.has_news);
        if any {
            self.spread_news(&mut stores);
        }
    }

    /// [`Door::spread`] of one store.
    #[inline]
    pub fn spread_one(&self, store: &mut Store) {
        if store.has_news {
            self.spread_news(&mut WriteStores::One(store));
        }
    }

    #[cold]
    #[inline(never)]
    fn spread_news(&self, stores: &mut WriteStores<'_>) {
        // Serving one may make news for others.
        while let Some((db, key)) = next_ready(stores) {
            self.serve_at(stores, db, Key::new(&key), None);
        }
        let (mut events, mut classes) = (Vec::new(), 0);
        stores.for_each(|store| {
            store.has_news = false;
            classes = store.news.classes;
            events.append(&mut store.news.events);
        });
        // A command over several shards noted its events here and there.
        events.sort_by_key(|event| event.number);
        let mut mail = Mail::new();
        for event in &events {
            publish(&self.host.hub, classes, event, &mut mail);
        }
        self.local.send_mail(&mut mail);
    }

    /// Serves those who wait at a key, the first first; only those behind `after`, if that is given.
    pub fn serve_at(&self, stores: &mut WriteStores<'_>, db: u32, key: Key<'_>, after: Option<&Arc<Waiter>>) {
        let mut waiters = stores.of(key.hash).waiters(db, key);
        if let Some(after) = after {
            let behind = waiters.iter().position(|waiter| Arc::ptr_eq(waiter, after)).map_or(0, |at| at + 1);
            waiters.drain(..behind);
        }
        for waiter in waiters {
            let kind = stores.shared(key.hash).kind(db, key);
            if !waiter.may_take(kind) {
                continue;
            }
            if !waiter.claim.claim() {
                if waiter.is_over() {
                    continue;
                }
                // Its connection tries; whoever comes behind it waits for that.
                return;
            }
            if !self.has_all_keys(stores, &waiter) {
                return self.local.send_letter(waiter.caller().address, Letter::Retry);
            }
            let mut out = Out::new(waiter.caller().protocol);
            let letter = match self.serve(stores, &waiter, &mut out) {
                true => Letter::Served(out.buf),
                false => Letter::Rung,
            };
            self.local.send_letter(waiter.caller().address, letter);
        }
    }

    /// Runs a claimed waiter's command again. `false`: it still waits, and is claimed no more.
    pub fn serve(&self, stores: &mut WriteStores<'_>, waiter: &Arc<Waiter>, out: &mut Out) -> bool {
        let (row, mut args) = (table().row(waiter.row()), waiter.args());
        let wait = self.part(row, stores.reborrow(), waiter.caller(), &mut args, out);
        if wait.is_some() {
            waiter.claim.release();
            return false;
        }
        waiter.claim.finish();
        let db = waiter.caller().db;
        for_each_waited_key(waiter, |key| stores.of(key.hash).leave_wait(db, key, waiter));
        true
    }

    fn has_all_keys(&self, stores: &WriteStores<'_>, waiter: &Waiter) -> bool {
        let shards = self.local.shared.shards();
        let mut has_all = true;
        for_each_key(waiter, |key| {
            let shard = key.hash.shard(shards);
            has_all &= match stores {
                WriteStores::One(_) => shard == self.local.id,
                WriteStores::Many(held) => held.get(shard).is_some(),
            };
        });
        has_all
    }
}

/// The next key at which somebody waits and that has changed.
fn next_ready(stores: &mut WriteStores<'_>) -> Option<(u32, Box<[u8]>)> {
    let mut next = None;
    stores.for_each(|store| {
        if next.is_none() {
            next = store.news.ready.pop_front();
        }
    });
    next
}

/// Hands the keys that a command waits at to `f`: those that it reads.
pub fn for_each_waited_key(waiter: &Waiter, mut f: impl FnMut(Key<'_>)) {
    let args = waiter.args();
    let spec = table().row(waiter.row()).spec;
    spec.for_each_key_part(
        args.count(),
        |at| args.get(at),
        |at, part| {
            if part.flags.contains("access") {
                f(Key::new(args.get(at)));
            }
        },
    );
}

/// Hands the keys of a waiting command to `f`.
pub fn for_each_key(waiter: &Waiter, mut f: impl FnMut(Key<'_>)) {
    let args = waiter.args();
    let spec = table().row(waiter.row()).spec;
    spec.for_each_key(args.count(), |at| args.get(at), |at| f(Key::new(args.get(at))));
}

/// Publishes an event under the name of its key, of the event, or both.
fn publish(hub: &Hub, classes: u32, event: &KeyEvent, mail: &mut Mail) {
    if classes & event.event.class == 0 || hub.is_empty() {
        return;
    }
    let (name, key) = (event.event.name.as_bytes(), &event.key[..]);
    for (way, prefix, subject, text) in
        [(class::BY_KEY, "keyspace", key, name), (class::BY_EVENT, "keyevent", name, key)]
    {
        if classes & way != 0 {
            let channel = [format!("__{prefix}@{}__:", event.db).as_bytes(), subject].concat();
            hub.publish(&channel, text, mail);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::hub::{Kind, Subscriptions};
    use crate::host::mail::{Address, Letter};
    use crate::store::news::Event;

    #[test]
    fn events_are_published_both_ways() {
        let (hub, mut own) = (Hub::default(), Subscriptions::default());
        hub.subscribe(&mut own, Kind::Pattern, b"__key*__:*", Address::default());
        let event = KeyEvent { number: 0, db: 3, event: Event::DEL, key: b"a key"[..].into() };
        let texts = |classes| {
            let mut mail = Mail::new();
            publish(&hub, classes, &event, &mut mail);
            let text = |letter: Letter| match letter {
                Letter::Published(message) => String::from_utf8_lossy(message.push()).replace("\r\n", " "),
                other => panic!("{other:?}"),
            };
            mail.into_iter().map(|(_, letter)| text(letter)).collect::<Vec<_>>()
        };
        let head = ">4 $8 pmessage $10 __key*__:* ";
        let by_key = format!("{head}$20 __keyspace@3__:a key $3 del ");
        let by_event = format!("{head}$18 __keyevent@3__:del $5 a key ");
        assert_eq!(
            texts(class::GENERIC | class::BY_KEY | class::BY_EVENT),
            [by_key.clone(), by_event.clone()]
        );
        assert_eq!(texts(class::GENERIC | class::BY_EVENT), [by_event]);
        assert_eq!(texts(class::GENERIC | class::BY_KEY), [by_key]);
        assert_eq!(texts(class::LIST | class::BY_KEY), [""; 0]);
    }
}
