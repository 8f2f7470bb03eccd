//! What a finished command, transaction or script did, told to whoever wants to hear of it.
//!
//! Must stay true: this is the only place where news leave a store; nothing is told before the whole is done.
use super::exec::Door;
use crate::cmd::cx::WriteStores;
use crate::host::hub::Hub;
use crate::host::mail::Mail;
use crate::store::Store;
use crate::store::news::{KeyEvent, class};

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
