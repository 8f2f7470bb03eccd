//! Lists: a listpack in the key's block within `list-max-listpack-size`, a quicklist beyond.
//!
//! Must stay true: the form changes when Redis changes it. What is added is counted with the lengths of its texts before
//! it is encoded, so a listpack may grow a little beyond the limit, until the next element comes; a quicklist that
//! shrank to one node and half the limit becomes a listpack again.
use std::ops::ControlFlow;

use smallvec::SmallVec;

use crate::config::{P, Settings};
use crate::ds::list::{Limit, Quicklist, Side, entries_without, offsets_of};
use crate::ds::listpack::{self, Element, Entries, Listpack, Probe};
use crate::ds::object::{Object, Packing};
use crate::ds::packed::PackedBytes;
use crate::ds::raw::block::{BlockRef, NewValue, Value};
use crate::store::edit::Editor;
use crate::wire::Error;

/// An element on its way from one list to another.
pub type Text = SmallVec<[u8; 64]>;

/// A list to read.
#[derive(Clone, Copy)]
pub enum ListRef<'a> {
    /// A short one.
    Packed(Listpack<'a>),
    /// A long one.
    Quick(&'a Quicklist),
}

impl<'a> ListRef<'a> {
    /// The list in a block; WRONGTYPE when it holds something else.
    #[inline]
    pub fn of(block: BlockRef<'a>) -> Result<ListRef<'a>, Error> {
        ListRef::of_value(block.value()).ok_or(Error::WrongType)
    }

    /// The list, when the value is one.
    #[inline]
    pub fn of_value(value: Value<'a>) -> Option<ListRef<'a>> {
        match value {
            Value::Packed(Packing::List, stored) => Some(ListRef::Packed(Listpack::new(stored))),
            Value::Object(Object::List(quick)) => Some(ListRef::Quick(quick)),
            _ => None,
        }
    }

    /// Number of elements.
    #[inline]
    #[allow(clippy::len_without_is_empty, reason = "a stored list is never empty")]
    pub fn len(self) -> usize {
        match self {
            ListRef::Packed(pack) => pack.len(),
            ListRef::Quick(quick) => quick.len(),
        }
    }

    /// Calls `f` with the element at `index` (negative: counted from the end), if there is one.
    #[inline]
    pub fn get<R>(self, index: i64, f: impl FnOnce(Element<'_>) -> R) -> Option<R> {
        match self {
            ListRef::Packed(pack) => Some(f(pack.get(pack.nth(index)?))),
            ListRef::Quick(quick) => quick.get(listpack::place(index, quick.len())?, f),
        }
    }

    /// The element at an end, to be given to [`ListMut::push_moved`].
    pub fn moved(self, side: Side) -> Option<Moved> {
        let is_quick = matches!(self, ListRef::Quick(_));
        self.get(if side == Side::Front { 0 } else { -1 }, |element| Moved {
            text: element.with_text(Text::from_slice),
            counts: !is_quick || matches!(element, Element::Bytes(_)),
        })
    }

    /// Calls `f` with the element at `index` and those behind it, as seen from the side that the walk comes from, until
    /// it breaks.
    #[inline]
    pub fn walk(self, index: usize, from: Side, mut f: impl FnMut(Element<'_>) -> ControlFlow<()>) {
        match self {
            ListRef::Packed(pack) => {
                let Some(start) = pack.nth(index as i64) else { return };
                let _ = match from {
                    Side::Front => pack.iter_from(start).try_for_each(|(_, element)| f(element)),
                    Side::Back => {
                        let end = pack.skip(start, 1);
                        pack.iter_until(end).rev().try_for_each(|(_, element)| f(element))
                    }
                };
            }
            ListRef::Quick(quick) => quick.walk(index, from, f),
        }
    }

    /// Calls `f` with `n` elements (with all there are, if there are fewer) from `index` on, seen from a side.
    #[inline]
    pub fn for_some(self, index: usize, n: usize, from: Side, mut f: impl FnMut(Element<'_>)) {
        let mut left = n;
        if left == 0 {
            return;
        }
        self.walk(index, from, |element| {
            f(element);
            left -= 1;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }

    /// Calls `f` with every element, front to back.
    pub fn for_each(self, f: impl FnMut(Element<'_>)) {
        self.for_some(0, usize::MAX, Side::Front, f);
    }
}

/// A list to change. The key may be missing; then only [`ListMut::push`] does anything.
pub struct ListMut<'e, 'a> {
    editor: &'e mut Editor<'a>,
}

impl<'e, 'a> ListMut<'e, 'a> {
    /// The list under a key; WRONGTYPE when it holds something else.
    #[inline]
    pub fn of(editor: &'e mut Editor<'a>) -> Result<ListMut<'e, 'a>, Error> {
        match editor.value() {
            Some(value) if ListRef::of_value(value).is_none() => Err(Error::WrongType),
            _ => Ok(ListMut { editor }),
        }
    }

    /// The list as it is now; `None`: no such key.
    #[inline]
    pub fn view(&self) -> Option<ListRef<'_>> {
        self.editor.value().and_then(ListRef::of_value)
    }

    #[inline]
    fn limit(&self) -> Limit {
        Limit::new(self.editor.settings().int(P::LIST_MAX_LISTPACK_SIZE))
    }

    #[inline]
    fn quick(&mut self) -> Option<&mut Quicklist> {
        match self.editor.object_mut()? {
            Object::List(quick) => Some(quick),
            _ => None,
        }
    }

    fn set_packed(&mut self, stored: &[u8]) {
        self.editor.set(NewValue::Packed(Packing::List, stored));
    }

    /// Makes the value a quicklist with these stored elements.
    #[cold]
    fn set_quick(&mut self, stored: &[u8]) {
        let depth = self.editor.settings().int(P::LIST_COMPRESS_DEPTH);
        let mut quick = Quicklist::new(self.limit(), depth);
        quick.append_pack(stored);
        self.editor.set(NewValue::Object(Box::new(Object::List(quick))));
    }

    /// Makes room for so many elements whose texts have so many bytes.
    #[inline]
    fn grow(&mut self, text_bytes: usize, elements: usize) {
        let limit = self.limit();
        if let Some(ListRef::Packed(pack)) = self.view()
            && limit.is_exceeded(pack.portable_bytes() + text_bytes, pack.len() + elements)
        {
            let stored = pack.bytes().to_vec();
            self.set_quick(&stored);
        }
    }

    /// Ends a change that took elements out: an empty list goes, a small one gets its small form.
    #[inline]
    fn shrink(&mut self) {
        let limit = self.limit();
        match self.view() {
            Some(ListRef::Packed(pack)) if pack.is_empty() => self.editor.remove(),
            Some(ListRef::Quick(quick)) if quick.is_empty() => self.editor.remove(),
            Some(ListRef::Quick(quick)) => {
                let small = quick
                    .sole_pack()
                    .filter(|pack| limit.is_half_free(pack.portable_bytes(), quick.len()))
                    .map(|pack| pack.bytes().to_vec());
                if let Some(stored) = small {
                    self.set_packed(&stored);
                }
            }
            _ => {}
        }
    }

    /// Puts elements at an end, one after the other, so that the last one is outermost; makes the key when it is
    /// missing. Returns the new length.
    #[inline]
    pub fn push<'t>(
        &mut self,
        side: Side,
        texts: impl DoubleEndedIterator<Item = &'t [u8]> + ExactSizeIterator + Clone,
    ) -> usize {
        let text_bytes = texts.clone().map(<[u8]>::len).sum();
        self.push_counted(side, texts, text_bytes)
    }

    /// [`ListMut::push`] where the texts count as so many bytes.
    #[inline]
    fn push_counted<'t>(
        &mut self,
        side: Side,
        texts: impl DoubleEndedIterator<Item = &'t [u8]> + ExactSizeIterator + Clone,
        text_bytes: usize,
    ) -> usize {
        let added = texts.len();
        if added == 0 {
            return self.view().map_or(0, ListRef::len);
        }
        self.editor.changed(added);
        if self.editor.value().is_none() {
            return self.make(side, texts, text_bytes);
        }
        self.grow(text_bytes, added);
        if let Some((_, mut packed)) = self.editor.packed() {
            push_packed(&mut packed, side, texts);
            Listpack::new(packed.bytes()).len()
        } else {
            self.push_quick(side, texts)
        }
    }

    fn make<'t>(
        &mut self,
        side: Side,
        texts: impl DoubleEndedIterator<Item = &'t [u8]> + ExactSizeIterator,
        text_bytes: usize,
    ) -> usize {
        let count = texts.len();
        let empty = Listpack::new(&listpack::EMPTY);
        if self.limit().is_exceeded(empty.portable_bytes() + text_bytes, count) {
            self.set_quick(empty.bytes());
            return self.push_quick(side, texts);
        }
        let mut stored = Entries::from_slice(empty.bytes());
        push_packed(&mut stored, side, texts);
        self.set_packed(&stored);
        count
    }

    fn push_quick<'t>(&mut self, side: Side, texts: impl Iterator<Item = &'t [u8]>) -> usize {
        let Some(quick) = self.quick() else { return 0 };
        texts.for_each(|text| quick.push(side, text));
        quick.len()
    }

    /// Takes the element at an end out, after `f` has seen it. `None`: no such key.
    #[inline]
    pub fn pop<R>(&mut self, side: Side, f: impl FnOnce(Element<'_>) -> R) -> Option<R> {
        let result = match self.view()? {
            ListRef::Packed(pack) => {
                let offset = outermost(pack, side)?;
                let result = f(pack.get(offset));
                if pack.next(listpack::HEAD_BYTES).is_none() {
                    self.editor.remove();
                } else if let Some((_, mut packed)) = self.editor.packed() {
                    listpack::remove(&mut packed, offset, 1);
                }
                result
            }
            ListRef::Quick(_) => {
                let result = self.quick()?.pop(side, f)?;
                self.shrink();
                result
            }
        };
        self.editor.changed(1);
        Some(result)
    }

    /// Puts an element of another list at an end.
    pub fn push_moved(&mut self, side: Side, moved: &Moved) -> usize {
        let text_bytes = if moved.counts { moved.text.len() } else { 0 };
        self.push_counted(side, std::iter::once(&moved.text[..]), text_bytes)
    }

    /// Moves the element at an end of the list to an end of the same list, after `f` has seen it. `None`: no such key.
    pub fn rotate<R>(&mut self, from: Side, to: Side, f: impl FnOnce(Element<'_>) -> R) -> Option<R> {
        let limit = self.limit();
        let (result, text) = match self.view()? {
            ListRef::Packed(pack) => {
                let offset = outermost(pack, from)?;
                let (entry_bytes, element) = (pack.skip(offset, 1) - offset, pack.get(offset));
                let bytes = pack.portable_bytes() - entry_bytes + element.text_len();
                if !limit.is_exceeded(bytes, pack.len()) {
                    let result = f(element);
                    self.turn(from, to, entry_bytes);
                    self.editor.changed(1);
                    return Some(result);
                }
                let text = element.with_text(Text::from_slice);
                let result = f(element);
                if let Some((_, mut packed)) = self.editor.packed() {
                    listpack::remove(&mut packed, offset, 1);
                }
                self.grow(text.len(), 1);
                (result, text)
            }
            ListRef::Quick(_) => self
                .quick()?
                .pop(from, |element| (element.with_text(Text::from_slice), f(element)))
                .map(|(text, result)| (result, text))?,
        };
        self.push_quick(to, std::iter::once(&text[..]));
        self.shrink();
        self.editor.changed(1);
        Some(result)
    }

    /// Moves the entry of so many bytes at an end of a listpack.
    fn turn(&mut self, from: Side, to: Side, entry_bytes: usize) {
        let Some((_, mut packed)) = self.editor.packed() else { return };
        let entries = &mut packed.bytes_mut()[listpack::HEAD_BYTES..];
        match (from, to) {
            (Side::Back, Side::Front) => entries.rotate_right(entry_bytes),
            (Side::Front, Side::Back) => entries.rotate_left(entry_bytes),
            _ => {}
        }
    }

    /// Takes elements out without settling the form.
    fn cut(&mut self, index: usize, n: usize) {
        if n == 0 {
            return;
        }
        if let Some((_, mut packed)) = self.editor.packed() {
            listpack::remove_range(&mut packed, index as i64, n);
        } else if let Some(quick) = self.quick() {
            quick.remove_range(index, n);
        }
    }

    /// Leaves `n` elements from `index` on and takes out all others. Both must lie within the list.
    pub fn keep(&mut self, index: usize, n: usize) {
        let Some(len) = self.view().map(ListRef::len) else { return };
        if n == 0 {
            self.editor.remove();
        } else {
            self.cut(index + n, len - index - n);
            self.cut(0, index);
            self.shrink();
        }
        self.editor.changed(len - n);
    }

    /// Puts another element in the place of the one at `index` (negative: counted from the end). `false`: there is none.
    pub fn set(&mut self, index: i64, text: &[u8]) -> bool {
        self.grow(text.len(), 1);
        let found = match self.view() {
            None => false,
            Some(ListRef::Packed(pack)) => match (pack.nth(index), self.editor.packed()) {
                (Some(offset), Some((_, mut packed))) => {
                    listpack::replace(&mut packed, offset, Element::Bytes(text));
                    true
                }
                _ => false,
            },
            Some(ListRef::Quick(quick)) => match (listpack::place(index, quick.len()), self.quick()) {
                (Some(place), Some(quick)) => quick.set(place, text),
                _ => false,
            },
        };
        if found {
            self.shrink();
            self.editor.changed(1);
        }
        found
    }

    /// Puts an element beside the first one that equals `pivot`: before it (`Front`) or behind it. Returns the new
    /// length; `None`: there is no such one.
    pub fn insert(&mut self, pivot: &[u8], side: Side, text: &[u8]) -> Option<usize> {
        self.grow(text.len(), 1);
        let inserted = match self.view()? {
            ListRef::Packed(pack) => {
                let pivot = pack.find(&Probe::new(pivot), listpack::HEAD_BYTES, 1)?;
                let offset = if side == Side::Front { pivot } else { pack.skip(pivot, 1) };
                let (_, mut packed) = self.editor.packed()?;
                listpack::insert_before(&mut packed, offset, Element::Bytes(text));
                true
            }
            ListRef::Quick(_) => self.quick()?.insert(pivot, side, text),
        };
        inserted.then(|| {
            self.editor.changed(1);
            self.view().map_or(0, ListRef::len)
        })
    }

    /// Takes out at most `max` elements that equal `text`, those nearest to the side first, and tells how many it were.
    pub fn remove_equal(&mut self, text: &[u8], max: usize, from: Side) -> usize {
        let removed = match self.view() {
            None => 0,
            Some(ListRef::Packed(_)) => self.remove_equal_packed(text, max, from),
            Some(ListRef::Quick(_)) => self.quick().map_or(0, |quick| quick.remove_equal(text, max, from)),
        };
        if removed > 0 {
            self.shrink();
            self.editor.changed(removed);
        }
        removed
    }

    fn remove_equal_packed(&mut self, text: &[u8], max: usize, from: Side) -> usize {
        let Some(ListRef::Packed(pack)) = self.view() else { return 0 };
        let offsets = offsets_of(pack, &Probe::new(text), max, from);
        match offsets[..] {
            [] => {}
            [only] => {
                if let Some((_, mut packed)) = self.editor.packed() {
                    listpack::remove(&mut packed, only as usize, 1);
                }
            }
            _ => {
                let (kept, count) = (entries_without(pack, &offsets), pack.len() - offsets.len());
                let mut stored = listpack::EMPTY.to_vec();
                listpack::insert_encoded(&mut stored, listpack::HEAD_BYTES, &kept, count);
                self.set_packed(&stored);
            }
        }
        offsets.len()
    }
}

/// Hands a list of these elements to `put`, as a value to be stored: in the form of a list that grew to this size and
/// was then measured as it is encoded.
pub fn store<'t, R>(
    settings: &Settings,
    texts: impl Iterator<Item = &'t [u8]>,
    put: impl FnOnce(NewValue<'_>) -> R,
) -> R {
    let limit = Limit::new(settings.int(P::LIST_MAX_LISTPACK_SIZE));
    let mut quick = Quicklist::new(limit, settings.int(P::LIST_COMPRESS_DEPTH));
    texts.for_each(|text| quick.push(Side::Back, text));
    let fits = |pack: &Listpack<'_>| !limit.is_exceeded(pack.portable_bytes(), pack.len());
    match quick.sole_pack().filter(fits) {
        Some(pack) => put(NewValue::Packed(Packing::List, pack.bytes())),
        None => put(NewValue::Object(Box::new(Object::List(quick)))),
    }
}

/// An element between two lists.
pub struct Moved {
    /// Its text.
    pub text: Text,
    /// Whether its length counts where it goes. That of an integer out of a quicklist does not: there Redis hands over
    /// a number.
    counts: bool,
}

#[inline]
fn outermost(pack: Listpack<'_>, side: Side) -> Option<usize> {
    if side == Side::Front { pack.first() } else { pack.last() }
}

/// Puts elements at an end of a listpack, one after the other, in one splice.
#[inline]
fn push_packed<'t>(
    pack: &mut impl PackedBytes,
    side: Side,
    texts: impl DoubleEndedIterator<Item = &'t [u8]> + ExactSizeIterator,
) {
    let elements = texts.map(Element::Bytes);
    match side {
        Side::Front => listpack::insert_many(pack, listpack::HEAD_BYTES, elements.rev()),
        Side::Back => listpack::append_many(pack, elements),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::host::Counters;
    use crate::store::Store;
    use crate::store::db::Found;
    use crate::wire::Key;

    fn store(limit: &str) -> Store {
        let mut settings = Settings::default();
        settings.set(b"list-max-listpack-size", &[limit.as_bytes()]).unwrap();
        Store::new(Arc::new(settings), Arc::new(Counters::new(0)))
    }

    fn edit<R>(store: &mut Store, f: impl FnOnce(ListMut<'_, '_>) -> R) -> R {
        store.edit(0, Key::new(b"key"), |editor| f(ListMut::of(editor).unwrap()))
    }

    fn push(store: &mut Store, side: Side, texts: &[&str]) -> usize {
        edit(store, |mut list| list.push(side, texts.iter().map(|text| text.as_bytes())))
    }

    /// Its form and elements; empty when there is no such key.
    fn state(store: &Store) -> String {
        let Found::Live(block) = store.find(0, Key::new(b"key"), 0) else { return String::new() };
        let list = ListRef::of(block).unwrap();
        let mut shown = String::from(if matches!(list, ListRef::Packed(_)) { "packed" } else { "quick" });
        list.for_each(|element| {
            shown.push(' ');
            shown.push_str(&String::from_utf8(element.to_vec()).unwrap());
        });
        shown
    }

    fn dirty(store: &Store) -> u64 {
        store.counters.dirty.get()
    }

    #[test]
    fn forms_follow_the_limit() {
        let mut store = store("4");
        assert_eq!(push(&mut store, Side::Back, &["1", "2", "3"]), 3);
        assert_eq!(push(&mut store, Side::Front, &["a", "b"]), 5);
        assert_eq!(state(&store), "quick b a 1 2 3");
        assert_eq!(edit(&mut store, |mut list| list.remove_equal(b"a", 1, Side::Front)), 1);
        assert_eq!(state(&store), "quick b 1 2 3", "two nodes are left");
        edit(&mut store, |mut list| list.keep(1, 3));
        assert_eq!(state(&store), "quick 1 2 3", "more than half the limit");
        assert!(edit(&mut store, |mut list| list.pop(Side::Back, |_| ())).is_some());
        assert_eq!(state(&store), "packed 1 2");
        assert_eq!(dirty(&store), 3 + 2 + 1 + 1 + 1);
        assert_eq!(push(&mut store, Side::Back, &["3", "4"]), 4);
        assert!(!edit(&mut store, |mut list| list.set(9, b"x")));
        assert_eq!(state(&store), "quick 1 2 3 4", "there was to be room for another");
        assert_eq!(dirty(&store), 8 + 2);
    }

    #[test]
    fn empty_lists_go() {
        let takes: [fn(&mut ListMut<'_, '_>); 4] = [
            |list| assert!(list.pop(Side::Front, |_| ()).is_some()),
            |list| list.keep(0, 0),
            |list| assert_eq!(list.remove_equal(b"1", 1, Side::Back), 1),
            |list| {
                list.pop(Side::Back, |_| ());
            },
        ];
        for limit in ["1", "-2"] {
            for take in takes {
                let mut store = store(limit);
                push(&mut store, Side::Back, &["1"]);
                edit(&mut store, |mut list| take(&mut list));
                assert_eq!((state(&store), dirty(&store), store.key_count(0)), (String::new(), 2, 0));
                edit(&mut store, |mut list| take_nothing(&mut list));
                assert_eq!(dirty(&store), 2);
            }
        }
    }

    fn take_nothing(list: &mut ListMut<'_, '_>) {
        assert!(list.view().is_none() && list.pop(Side::Front, |_| ()).is_none());
        assert!(list.rotate(Side::Front, Side::Back, |_| ()).is_none());
        assert!(!list.set(0, b"x") && list.insert(b"x", Side::Back, b"x").is_none());
        list.keep(0, 0);
    }

    #[test]
    fn rotation_keeps_the_key() {
        for limit in ["-2", "2"] {
            let mut store = store(limit);
            push(&mut store, Side::Back, &["a", "2", "a longer text"]);
            let mut turn = |from, to| {
                let text = edit(&mut store, |mut list| list.rotate(from, to, |element| element.to_vec()));
                (
                    String::from_utf8(text.unwrap()).unwrap(),
                    state(&store).split_once(' ').unwrap().1.to_string(),
                )
            };
            let pair = |text: &str, state: &str| (text.to_string(), state.to_string());
            assert_eq!(turn(Side::Back, Side::Front), pair("a longer text", "a longer text a 2"));
            assert_eq!(turn(Side::Front, Side::Back), pair("a longer text", "a 2 a longer text"));
            assert_eq!(turn(Side::Front, Side::Front), pair("a", "a 2 a longer text"));
            assert_eq!(dirty(&store), 3 + 3);
        }
    }

    #[test]
    fn an_integer_out_of_a_quicklist_has_no_length() {
        let mut store = store("1");
        push(&mut store, Side::Back, &["1", "2", "x"]);
        let mut counts = |side| edit(&mut store, |list| list.view().unwrap().moved(side).unwrap().counts);
        assert_eq!([counts(Side::Front), counts(Side::Back)], [false, true]);
    }

    #[test]
    fn reads_find_places_from_both_ends() {
        for limit in ["-2", "2"] {
            let mut store = store(limit);
            push(&mut store, Side::Back, &["a", "1", "c", "-4", "e"]);
            let Found::Live(block) = store.find(0, Key::new(b"key"), 0) else { panic!("it was made") };
            let list = ListRef::of(block).unwrap();
            let get = |index| list.get(index, |element| element.to_vec());
            assert_eq!([get(0), get(-1), get(3)].map(Option::unwrap), [&b"a"[..], b"e", b"-4"]);
            assert_eq!([get(5), get(-6), get(i64::MAX), get(i64::MIN)], [const { None }; 4]);
            let some = |index, n, side| {
                let mut shown = Vec::new();
                list.for_some(index, n, side, |element| shown.extend(element.to_vec()));
                String::from_utf8(shown).unwrap()
            };
            assert_eq!(some(1, 3, Side::Front), "1c-4");
            assert_eq!(some(3, 3, Side::Back), "-4c1");
            assert_eq!(some(3, 9, Side::Front), "-4e");
            assert_eq!(some(3, 0, Side::Front), "");
        }
    }
}
