//! What a finished command, transaction or script did, told to whoever wants to hear of it; and clients that waited for
//! it, served.
//!
//! Must stay true: this is the only place where news leave a store; nothing is told before the whole is done. Those who
//! wait at a key are served in the order in which they came: when one of them cannot be served on the spot, because its
//! command needs other shards, too, which are not free, its own connection runs it, and nobody behind it is served
//! before.
use std::sync::Arc;

use smallvec::SmallVec;

use super::cell::Holder;
use super::exec::Door;
use super::logged::write_unit;
use super::msg::Control;
use crate::cmd::cx::{Held, WriteStores};
use crate::cmd::table::table;
use crate::host::hub::Hub;
use crate::host::mail::{Letter, Mail};
use crate::store::news::{KeyEvent, class};
use crate::store::wait::Waiter;
use crate::store::{Now, Store};
use crate::wire::{Key, Out};

impl Door<'_> {
    /// Tells what is new of these stores.
    #[inline]
    pub fn spread(&self, mut stores: WriteStores<'_>) {
        let (mut has_news, mut is_logged) = (false, false);
        stores.for_each(|store| {
            has_news |= store.has_news;
            is_logged |= store.is_logged();
        });
        if is_logged {
            self.end_unit(&mut stores);
        }
        if has_news {
            self.spread_news(&mut stores);
        }
    }

    /// [`Door::spread`] of one store.
    #[inline]
    pub fn spread_one(&self, store: &mut Store) {
        if store.has_news | store.has_records {
            self.spread_all(store);
        }
    }

    #[inline(never)]
    fn spread_all(&self, store: &mut Store) {
        store.end_unit();
        if store.has_news {
            self.spread_news(&mut WriteStores::One(store));
        }
    }

    /// What was recorded on these stores is a unit. Those of this thread alone are written before the thread's next
    /// reply leaves, others at once.
    #[cold]
    fn end_unit(&self, stores: &mut WriteStores<'_>) {
        let own = self.local.id;
        match stores {
            WriteStores::One(store) => store.end_unit(),
            WriteStores::Many(held) => {
                let is_own = |shard| held.get(shard).is_some() == (shard == own);
                match (0..held.shards()).all(is_own) {
                    true => held.get_mut(own).into_iter().for_each(Store::end_unit),
                    false => write_unit(&self.host.journal, *held),
                }
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn spread_news(&self, stores: &mut WriteStores<'_>) {
        // Who is served now is served at the time that it is by now.
        let door = self.local.door(self.now.later());
        let mut reach = Reach { door: &door, held: stores.reborrow(), taken: SmallVec::new() };
        reach.set_now(door.now);
        // Serving one may make news for others.
        while let Some((db, key)) = reach.next_ready() {
            door.serve_at(&mut reach, db, Key::new(&key));
        }
        reach.set_now(self.now);
        let mut mail = Mail::new();
        self.tell_trackers(&mut WriteStores::Many(&mut reach), &mut mail);
        let (mut events, mut classes) = (Vec::new(), 0);
        let mut has_cut = false;
        WriteStores::Many(&mut reach).for_each(|store| {
            store.has_news = false;
            has_cut |= std::mem::take(&mut store.news.has_cut);
            classes = store.news.classes;
            events.append(&mut store.news.events);
        });
        // A command over several shards noted its events here and there.
        events.sort_by_key(|event| event.number);
        for event in &events {
            publish(&self.host.hub, classes, event, &mut mail);
        }
        self.local.send_mail(&mut mail);
        if has_cut {
            // A cut is taken of all shards at once.
            (0..self.local.shared.shards()).for_each(|shard| self.local.shared.control(shard, Control::Walk));
        }
    }

    /// Serves those who wait at a key, the first first.
    fn serve_at(&self, reach: &mut Reach<'_, '_>, db: u32, key: Key<'_>) {
        let mut from = 0;
        while let Some((at, waiter)) = reach.store(key).next_waiter(db, key, from) {
            if !waiter.claim.claim() {
                if waiter.is_over() {
                    continue;
                }
                // Its connection tries; whoever comes behind it waits for that.
                return;
            }
            if !reach.take_all(&waiter) {
                return self.local.send_letter(waiter.caller().address, Letter::Retry);
            }
            let mut out = Out::new(waiter.caller().protocol);
            let is_served = self.serve(&mut WriteStores::Many(reach), &waiter, &mut out);
            self.end_unit(&mut WriteStores::Many(reach));
            // Who is served has left the place to the next.
            from = if is_served { at } else { at + 1 };
            let letter = if is_served { Letter::Served(out.buf) } else { Letter::Rung };
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
}

/// What is held while news are spread, and the shards that were free and have been taken besides. Nobody waits for a
/// shard here, so taking them in any order blocks nobody.
struct Reach<'d, 's> {
    door: &'d Door<'d>,
    held: WriteStores<'s>,
    taken: SmallVec<[(usize, Holder<'d, Store>); 4]>,
}

impl Reach<'_, '_> {
    /// The next key at which somebody waits and that has changed: the one that changed first, on whichever shard.
    fn next_ready(&mut self) -> Option<(u32, Box<[u8]>)> {
        let first = |shard: usize| Some((self.get(shard)?.news.ready.front()?.number, shard));
        let (_, shard) = (0..self.shards()).filter_map(first).min()?;
        let ready = self.get_mut(shard)?.news.ready.pop_front()?;
        Some((ready.db, ready.key))
    }

    /// The store of a key that is held.
    fn store(&self, key: Key<'_>) -> &Store {
        self.get(key.hash.shard(self.shards())).expect("it is held")
    }

    /// Sets the time of what was held from the beginning.
    fn set_now(&mut self, now: Now) {
        self.held.for_each(|store| store.now = now);
    }

    /// Takes what is missing of the shards of a waiter's keys. `false`: not all of them are free.
    fn take_all(&mut self, waiter: &Waiter) -> bool {
        let (shards, mut has_all) = (self.shards(), true);
        for_each_key(waiter, |key| has_all = has_all && self.take(key.hash.shard(shards)));
        has_all
    }

    fn take(&mut self, shard: usize) -> bool {
        if self.get(shard).is_some() {
            return true;
        }
        let local = self.door.local;
        let Some(mut holder) = local.shared.cells[shard].hold() else { return false };
        holder.now = self.door.now;
        local.heed_settings(&mut holder);
        self.taken.push((shard, holder));
        true
    }
}

impl Held for Reach<'_, '_> {
    fn shards(&self) -> usize {
        self.door.local.shared.shards()
    }

    fn get(&self, shard: usize) -> Option<&Store> {
        let held = match &self.held {
            WriteStores::One(store) => (shard == self.door.local.id).then_some(&**store),
            WriteStores::Many(held) => held.get(shard),
        };
        held.or_else(|| self.taken.iter().find(|(other, _)| *other == shard).map(|(_, holder)| &**holder))
    }

    fn get_mut(&mut self, shard: usize) -> Option<&mut Store> {
        let held = match &mut self.held {
            WriteStores::One(store) => (shard == self.door.local.id).then_some(&mut **store),
            WriteStores::Many(held) => held.get_mut(shard),
        };
        held.or_else(|| {
            self.taken.iter_mut().find(|(other, _)| *other == shard).map(|(_, holder)| &mut **holder)
        })
    }
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
fn for_each_key(waiter: &Waiter, mut f: impl FnMut(Key<'_>)) {
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
