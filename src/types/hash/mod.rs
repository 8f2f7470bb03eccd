//! Hashes: pairs in a listpack (`listpack`), the same with deadlines (`listpackex`), a table beyond the limits
//! (`hashtable`).
//!
//! A field whose deadline has come is there until it is deleted: whoever reads for a client skips it. It still counts
//! in [`HashRef::len`], as in Redis.
//!
//! Must stay true: the form changes when Redis changes it, and only towards the table; `edit` alone changes anything.
mod edit;
mod pick;

pub use edit::{Condition, HashMut, Outcome, clear_due};

use crate::base::hash::KeyHash;
use crate::base::num;
use crate::ds::dated;
use crate::ds::listpack::{Element, HEAD_BYTES, Listpack, Probe};
use crate::ds::object::{Object, Packing};
use crate::ds::raw::block::{BlockRef, Value};
use crate::ds::table::{PackedTable, Record};
use crate::wire::Error;

/// A hash to read.
#[derive(Clone, Copy)]
pub enum HashRef<'a> {
    /// A small one.
    Pairs(Listpack<'a>),
    /// A small one that has, or had, deadlines.
    Dated(Listpack<'a>),
    /// A large one.
    Table(&'a PackedTable),
}

/// A field as it is stored. Its texts come as elements to be written out; those of a table are never integers, whatever
/// they say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Field<'a> {
    /// Its name.
    pub name: Element<'a>,
    /// Its value.
    pub value: Element<'a>,
    /// When it is due, in milliseconds since the epoch.
    pub deadline_ms: Option<u64>,
}

impl<'a> Field<'a> {
    /// Whether its time has come.
    #[inline]
    pub fn is_due(&self, now_ms: u64) -> bool {
        self.deadline_ms.is_some_and(|at| at <= now_ms)
    }

    fn of_record(record: Record<'a>) -> Field<'a> {
        let (name, value) = (Element::Bytes(record.key()), Element::Bytes(record.value()));
        Field { name, value, deadline_ms: record.deadline_ms() }
    }

    fn of_pair(pack: Listpack<'a>, at: usize) -> Field<'a> {
        Field { name: pack.get(at), value: pack.get(pack.skip(at, 1)), deadline_ms: None }
    }

    fn of_place(pack: Listpack<'a>, place: &dated::Place) -> Field<'a> {
        Field { name: pack.get(place.at), value: pack.get(place.value_at), deadline_ms: place.deadline_ms }
    }
}

/// The integer that a value is in canonical form.
#[inline]
pub fn integer(value: Element<'_>) -> Option<i64> {
    match value {
        Element::Int(int) => Some(int),
        Element::Bytes(text) => num::parse_i64(text),
    }
}

impl<'a> HashRef<'a> {
    /// The hash in a block; WRONGTYPE when it holds something else.
    #[inline]
    pub fn of(block: BlockRef<'a>) -> Result<HashRef<'a>, Error> {
        HashRef::of_value(block.value()).ok_or(Error::WrongType)
    }

    /// The hash, when the value is one.
    #[inline]
    pub fn of_value(value: Value<'a>) -> Option<HashRef<'a>> {
        match value {
            Value::Packed(Packing::Hash, stored) => Some(HashRef::Pairs(Listpack::new(stored))),
            Value::Packed(Packing::HashDeadlines, stored) => Some(HashRef::Dated(Listpack::new(stored))),
            Value::Object(Object::Hash(table)) => Some(HashRef::Table(table)),
            _ => None,
        }
    }

    /// Number of fields, those whose time has come included.
    #[inline]
    #[allow(clippy::len_without_is_empty, reason = "a stored hash is never empty")]
    pub fn len(self) -> usize {
        match self {
            HashRef::Pairs(pack) => pack.len() / 2,
            HashRef::Dated(pack) => pack.len() / dated::STRIDE,
            HashRef::Table(table) => table.len(),
        }
    }

    /// The earliest deadline.
    #[inline]
    pub fn earliest_ms(self) -> Option<u64> {
        match self {
            HashRef::Pairs(_) => None,
            HashRef::Dated(pack) => dated::earliest_ms(pack),
            HashRef::Table(table) => table.earliest_deadline_ms(),
        }
    }

    /// Whether a field's time has come.
    #[inline]
    pub fn has_due(self, now_ms: u64) -> bool {
        self.earliest_ms().is_some_and(|at| at <= now_ms)
    }

    /// Number of fields whose time has not come. Visits all, when that of any has.
    pub fn live_len(self, now_ms: u64) -> usize {
        if !self.has_due(now_ms) {
            return self.len();
        }
        let mut live = 0;
        self.for_each_live(now_ms, |_| live += 1);
        live
    }

    /// A field by its name, due or not.
    #[inline]
    pub fn find(self, name: &[u8]) -> Option<Field<'a>> {
        match self {
            HashRef::Pairs(pack) => {
                let at = pack.find(&Probe::new(name), HEAD_BYTES, 2)?;
                Some(Field::of_pair(pack, at))
            }
            HashRef::Dated(pack) => {
                let place = dated::find(pack, &Probe::new(name))?;
                Some(Field::of_place(pack, &place))
            }
            HashRef::Table(table) => table.get(KeyHash::of(name), name).map(Field::of_record),
        }
    }

    /// Visits all fields, due or not.
    #[inline]
    pub fn for_each(self, mut f: impl FnMut(Field<'a>)) {
        match self {
            HashRef::Pairs(pack) => {
                let mut elements = pack.iter();
                while let (Some((_, name)), Some((_, value))) = (elements.next(), elements.next()) {
                    f(Field { name, value, deadline_ms: None });
                }
            }
            HashRef::Dated(pack) => {
                dated::entries(pack).for_each(|place| f(Field::of_place(pack, &place)));
            }
            HashRef::Table(table) => table.for_each(|record| f(Field::of_record(record))),
        }
    }

    /// Visits the fields whose time has not come.
    #[inline]
    pub fn for_each_live(self, now_ms: u64, mut f: impl FnMut(Field<'a>)) {
        self.for_each(|field| {
            if !field.is_due(now_ms) {
                f(field);
            }
        });
    }

    /// Visits some fields from `cursor` on, due or not, and gives the cursor to go on from: 0 at the end. A small hash
    /// is visited as a whole.
    pub fn scan(self, cursor: u64, count: usize, mut f: impl FnMut(Field<'a>)) -> u64 {
        match self {
            HashRef::Table(table) => table.scan(cursor, count, |record| f(Field::of_record(record))),
            small => {
                small.for_each(f);
                0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::config::Settings;
    use crate::host::Counters;
    use crate::store::Store;
    use crate::store::db::Found;
    use crate::wire::Key;

    /// Limits of small hashes in these tests.
    const ENTRIES_MAX: usize = 5;
    const TEXT_BYTES_MAX: usize = 8;

    type Model = BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>;

    #[derive(Clone, Debug)]
    enum Step {
        SetAll(Vec<(usize, usize)>),
        Put(usize, usize, bool),
        Increment(usize, i64),
        Remove(Vec<usize>),
        Date(usize, u64, Condition),
        Persist(usize),
        DropDue(usize),
        ReplaceDue(usize, usize),
        Later(u64),
        Expire,
        Delete,
    }

    fn name(number: usize) -> Vec<u8> {
        ["f", "7", "-12", "012", "", "field-8b", "other", "x", "yy", "a long name"][number % 10].into()
    }

    fn value(number: usize) -> Vec<u8> {
        ["v", "5", "-300", "05", "", "value-8b", "9223372036854775807", "a long value"][number % 8].into()
    }

    fn step() -> impl Strategy<Value = Step> {
        // The long name is rare, or all hashes would be tables.
        let field = || prop_oneof![60 => 0_usize..9, 1 => Just(9_usize)];
        let text = || prop_oneof![30 => 0_usize..6, 1 => 6_usize..8];
        let condition = prop::sample::select(vec![
            Condition::Always,
            Condition::Absent,
            Condition::Present,
            Condition::Later,
            Condition::Earlier,
        ]);
        prop_oneof![
            6 => prop::collection::vec((field(), text()), 1..4).prop_map(Step::SetAll),
            2 => (field(), text(), any::<bool>()).prop_map(|(f, v, keep)| Step::Put(f, v, keep)),
            2 => (field(), -3_i64..300).prop_map(|(f, by)| Step::Increment(f, by)),
            3 => prop::collection::vec(field(), 1..4).prop_map(Step::Remove),
            6 => (field(), 0_u64..8, condition).prop_map(|(f, at, when)| Step::Date(f, at, when)),
            2 => field().prop_map(Step::Persist),
            2 => field().prop_map(Step::DropDue),
            1 => (field(), text()).prop_map(|(f, v)| Step::ReplaceDue(f, v)),
            3 => (0_u64..3).prop_map(Step::Later),
            1 => Just(Step::Expire),
            1 => Just(Step::Delete),
        ]
    }

    struct Fixture {
        store: Store,
        model: Model,
    }

    const KEY: &[u8] = b"key";

    impl Fixture {
        fn new() -> Fixture {
            let mut settings = Settings::default();
            let mut set = |name: &str, value: usize| {
                settings.set(name.as_bytes(), &[value.to_string().as_bytes()]).unwrap();
            };
            set("hash-max-listpack-entries", ENTRIES_MAX);
            set("hash-max-listpack-value", TEXT_BYTES_MAX);
            let mut store = Store::new(Arc::new(settings), Arc::new(Counters::new(0)));
            store.now.ms = 1_000;
            Fixture { store, model: Model::new() }
        }

        fn change<T>(&mut self, change: impl FnOnce(&mut HashMut<'_, '_>) -> T) -> T {
            self.store.edit(0, Key::new(KEY), |editor| {
                let mut hash = HashMut::of(editor).unwrap();
                let result = change(&mut hash);
                hash.finish();
                result
            })
        }

        fn is_due(&self, name: &[u8]) -> bool {
            self.model.get(name).is_some_and(|field| field.1.is_some_and(|at| at <= self.store.now.ms))
        }

        fn drop_due(&mut self, name: &[u8]) {
            if self.is_due(name) {
                self.model.remove(name);
            }
        }

        fn put(&mut self, name: Vec<u8>, value: Vec<u8>, keep: bool) -> bool {
            let old = self.model.get(&name).and_then(|field| field.1);
            self.model.insert(name, (value, old.filter(|_| keep))).is_none()
        }

        fn date(&mut self, name: &[u8], at: u64, condition: Condition) -> Outcome {
            let now_ms = self.store.now.ms;
            let Some(field) = self.model.get_mut(name) else { return Outcome::NoField };
            let allowed = match (condition, field.1) {
                (Condition::Always, _) => true,
                (Condition::Absent, old) => old.is_none(),
                (Condition::Present, old) => old.is_some(),
                (Condition::Later, old) => old.is_some_and(|old| at > old),
                (Condition::Earlier, old) => old.is_none_or(|old| at < old),
            };
            if !allowed {
                return Outcome::Unchanged;
            }
            field.1 = Some(at);
            if at > now_ms {
                return Outcome::Changed;
            }
            self.model.remove(name);
            Outcome::Deleted
        }

        fn apply(&mut self, step: Step) {
            match step {
                Step::SetAll(pairs) => {
                    let pairs: Vec<_> = pairs.into_iter().map(|(f, v)| (name(f), value(v))).collect();
                    let new = self.change(|hash| {
                        hash.set_all(pairs.len(), pairs.iter().map(|(name, value)| (&name[..], &value[..])))
                    });
                    let want = pairs
                        .into_iter()
                        .filter(|(name, value)| self.put(name.clone(), value.clone(), false));
                    assert_eq!(new, want.count());
                }
                Step::Put(f, v, keep) => {
                    let new = self.change(|hash| hash.put(&name(f), &value(v), keep));
                    assert_eq!(new, self.put(name(f), value(v), keep));
                }
                Step::Increment(f, by) => {
                    let sum = self.change(|hash| hash.increment(&name(f), by));
                    self.drop_due(&name(f));
                    let old = self.model.get(&name(f)).map_or(Some(0), |field| num::parse_i64(&field.0));
                    let want = old.and_then(|old| old.checked_add(by));
                    assert_eq!(sum.ok(), want);
                    if let Some(sum) = want {
                        self.put(name(f), sum.to_string().into_bytes(), true);
                    }
                }
                Step::Remove(fields) => {
                    let names: Vec<_> = fields.into_iter().map(name).collect();
                    let removed = self.change(|hash| names.iter().filter(|name| hash.remove(name)).count());
                    assert_eq!(
                        removed,
                        names.iter().filter(|name| self.model.remove(*name).is_some()).count()
                    );
                }
                Step::Date(f, at, condition) => {
                    let outcome = self.change(|hash| {
                        if hash.view().is_some() {
                            hash.admit_deadlines();
                        }
                        hash.set_deadline(&name(f), 998 + at, condition)
                    });
                    assert_eq!(outcome, self.date(&name(f), 998 + at, condition));
                }
                Step::Persist(f) => {
                    let outcome = self.change(|hash| hash.persist(&name(f)));
                    let want = match self.model.get_mut(&name(f)).map(|field| field.1.take()) {
                        None => Outcome::NoField,
                        Some(None) => Outcome::Unchanged,
                        Some(Some(_)) => Outcome::Changed,
                    };
                    assert_eq!(outcome, want);
                }
                Step::DropDue(f) => {
                    let (name, other) = (name(f), name(f + 1));
                    clear_due(&mut self.store, 0, Key::new(KEY), [&name[..], &other[..]].into_iter());
                    self.drop_due(&name);
                    self.drop_due(&other);
                }
                Step::ReplaceDue(f, v) => {
                    self.change(|hash| {
                        hash.replace_due(&name(f));
                        hash.put(&name(f), &value(v), true)
                    });
                    self.drop_due(&name(f));
                    self.put(name(f), value(v), true);
                }
                Step::Later(ms) => self.store.now.ms += ms,
                Step::Expire => {
                    while self.store.expire_step() {}
                    let now_ms = self.store.now.ms;
                    self.model.retain(|_, field| field.1.is_none_or(|at| at > now_ms));
                }
                Step::Delete => {
                    self.store.remove(0, Key::new(KEY));
                    self.model.clear();
                }
            }
        }

        fn check(&mut self) {
            let now_ms = self.store.now.ms;
            let Found::Live(block) = self.store.find(0, Key::new(KEY), now_ms) else {
                assert!(self.model.is_empty());
                return;
            };
            let hash = HashRef::of(block).unwrap();
            check_reads(hash, &self.model, now_ms);
            let small = |text: &Vec<u8>| text.len() <= TEXT_BYTES_MAX;
            match hash {
                HashRef::Table(table) => table.check(),
                HashRef::Pairs(_) | HashRef::Dated(_) => {
                    assert!(self.model.len() <= ENTRIES_MAX);
                    assert!(self.model.iter().all(|(name, field)| small(name) && small(&field.0)));
                }
            }
            if let HashRef::Pairs(_) = hash {
                assert_eq!(hash.earliest_ms(), None);
            }
            let wake_ms = self.model.values().filter_map(|field| field.1).min();
            assert_eq!((hash.earliest_ms(), block.wake_ms()), (wake_ms, wake_ms));
            let dated = self.store.db(0).unwrap().dated_parts;
            assert_eq!(dated, usize::from(wake_ms.is_some()));
        }
    }

    fn check_reads(hash: HashRef<'_>, model: &Model, now_ms: u64) {
        let stored = |field: Field<'_>| (field.name.to_vec(), (field.value.to_vec(), field.deadline_ms));
        let mut all = Model::new();
        hash.for_each(|field| assert!(all.insert(stored(field).0, stored(field).1).is_none()));
        assert_eq!((&all, hash.len()), (model, model.len()));
        for number in 0..10 {
            let found = hash.find(&name(number)).map(stored);
            assert_eq!(found.map(|field| field.1), model.get(&name(number)).cloned());
        }
        let live: BTreeSet<Vec<u8>> = model
            .iter()
            .filter(|(_, field)| field.1.is_none_or(|at| at > now_ms))
            .map(|(name, _)| name.clone())
            .collect();
        assert_eq!((hash.live_len(now_ms), hash.has_due(now_ms)), (live.len(), live.len() < model.len()));
        let (mut scanned, mut cursor) = (BTreeSet::new(), 0);
        loop {
            cursor = hash.scan(cursor, 2, |field| {
                scanned.insert(field.name.to_vec());
            });
            if cursor == 0 {
                break;
            }
        }
        assert_eq!(scanned.len(), model.len());
        for count in [1, 3, 20] {
            let (mut distinct, mut repeated) = (BTreeSet::new(), 0);
            hash.random_distinct(now_ms, count, |field| assert!(distinct.insert(field.name.to_vec())));
            assert!(distinct.is_subset(&live) && distinct.len() == count.min(live.len()));
            hash.random(now_ms, count as u64, |field| {
                repeated += 1;
                assert!(live.contains(&field.name.to_vec()));
                true
            });
            assert_eq!(repeated, if live.is_empty() { 0 } else { count });
        }
    }

    proptest! {
        #[test]
        fn a_hash_is_its_model(steps in prop::collection::vec(step(), 1..40)) {
            let mut fixture = Fixture::new();
            for step in steps {
                fixture.apply(step);
                fixture.check();
            }
        }
    }

    /// The form of the hash under [`KEY`].
    fn form(fixture: &Fixture) -> &'static str {
        let Found::Live(block) = fixture.store.find(0, Key::new(KEY), 0) else { return "none" };
        match HashRef::of(block).unwrap() {
            HashRef::Pairs(_) => "pairs",
            HashRef::Dated(_) => "dated",
            HashRef::Table(_) => "table",
        }
    }

    #[test]
    fn forms_change_as_in_redis() {
        let set = |fixture: &mut Fixture, names: &[usize], text: usize| {
            let pairs: Vec<_> = names.iter().map(|n| (name(*n), value(text))).collect();
            fixture.change(|hash| {
                hash.set_all(pairs.len(), pairs.iter().map(|(name, value)| (&name[..], &value[..])))
            });
            form(fixture)
        };
        let mut fixture = Fixture::new();
        assert_eq!(set(&mut fixture, &[0, 1, 2, 3, 4], 5), "pairs");
        assert_eq!(set(&mut fixture, &[4], 0), "pairs");
        // As many arguments as that make a table, even if they name the same field.
        assert_eq!(set(&mut fixture, &[0; 6], 0), "table");
        fixture.change(|hash| (0..9).filter(|n| hash.remove(&name(*n))).count());
        assert_eq!((form(&fixture), set(&mut fixture, &[0], 0)), ("none", "pairs"));
        assert_eq!(set(&mut fixture, &[1], 7), "table");
        fixture.store.remove(0, Key::new(KEY));
        set(&mut fixture, &[0, 1], 0);
        fixture.change(|hash| hash.admit_deadlines());
        assert_eq!(form(&fixture), "dated");
        assert_eq!(set(&mut fixture, &[0, 1, 2, 3, 4], 0), "dated");
        assert_eq!(set(&mut fixture, &[5], 0), "table");
    }

    #[test]
    fn fresh_fields_stand_in_the_order_of_the_arguments() {
        let mut fixture = Fixture::new();
        let pairs: [(&[u8], &[u8]); 4] = [(b"b", b"1"), (b"a", b"2"), (b"b", b"three"), (b"c", b"4")];
        assert_eq!(fixture.change(|hash| hash.set_all(4, pairs.into_iter())), 3);
        let Found::Live(block) = fixture.store.find(0, Key::new(KEY), 0) else { panic!("the key is made") };
        let mut shown = Vec::new();
        HashRef::of(block).unwrap().for_each(|field| {
            shown.extend([field.name.to_vec(), field.value.to_vec()]);
        });
        let want: [&[u8]; 6] = [b"b", b"three", b"a", b"2", b"c", b"4"];
        assert_eq!(shown, want);
    }

    #[test]
    fn a_large_table_of_due_fields_gives_only_live_ones() {
        let mut fixture = Fixture::new();
        let names: Vec<Vec<u8>> = (0..2_000).map(|n| format!("n{n}").into_bytes()).collect();
        fixture.change(|hash| {
            hash.set_all(names.len(), names.iter().map(|name| (&name[..], &b"v"[..])));
            for name in &names[20..] {
                hash.set_deadline(name, 1_500, Condition::Always);
            }
        });
        let Found::Live(block) = fixture.store.find(0, Key::new(KEY), 0) else { panic!("the key is made") };
        let hash = HashRef::of(block).unwrap();
        for (now_ms, live) in [(1_499, 2_000), (1_500, 20)] {
            for count in [1, 7, 20, 600, 3_000] {
                let mut seen = BTreeSet::new();
                hash.random_distinct(now_ms, count, |field| assert!(seen.insert(field.name.to_vec())));
                assert_eq!(seen.len(), count.min(live), "{count} at {now_ms}");
            }
            let mut drawn = BTreeSet::new();
            hash.random(now_ms, 400, |field| {
                drawn.insert(field.name.to_vec());
                true
            });
            assert!(drawn.len() <= live && drawn.len() > 10, "{} at {now_ms}", drawn.len());
        }
    }
}
