//! What a finished command, transaction or script did, told to whoever wants to hear of it.
//!
//! Must stay true: this is the only place where news leave a store; nothing is told before the whole is done.
use super::exec::Door;
use crate::cmd::cx::WriteStores;
use crate::store::Store;

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
        stores.for_each(|store| {
            store.has_news = false;
            store.news.events.clear();
        });
    }
}
