//! SORT and SORT_RO: the elements of a list, a set or a sorted set in another order, by themselves or by what other keys
//! say, replied or stored as a list.
//!
//! The elements are copied first, so nothing that is looked up or stored on the way can disturb them, not even when the
//! result replaces its source.
//!
//! Must stay true: elements that compare equal keep the order in which they came; what is not asked for is not sorted.
use std::cmp::Ordering;
use std::ops::Range;

use smallvec::SmallVec;

use crate::cmd::cx::{Caller, ReadCx, WriteCx};
use crate::cmd::element::put_element;
use crate::cmd::spec::Done;
use crate::ds::list::Side;
use crate::ds::listpack::Element;
use crate::ds::object::Kind;
use crate::ds::raw::block::{BlockRef, Payload, Value};
use crate::store::db::Ttl;
use crate::types::hash::HashRef;
use crate::types::list::{self, ListRef};
use crate::types::set::SetRef;
use crate::types::sorted_set::{SortedSetRef, Way};
use crate::wire::args::option_word;
use crate::wire::{Args, Error, Key, Out};

/// Where keys are looked up as a read does it.
trait Keys {
    fn find(&mut self, key: Key<'_>) -> Option<BlockRef<'_>>;

    fn now_ms(&self) -> u64;

    fn caller(&self) -> &Caller;
}

impl Keys for &ReadCx<'_> {
    fn find(&mut self, key: Key<'_>) -> Option<BlockRef<'_>> {
        ReadCx::find(self, key)
    }

    fn now_ms(&self) -> u64 {
        self.now.ms
    }

    fn caller(&self) -> &Caller {
        self.caller
    }
}

impl Keys for WriteCx<'_> {
    fn find(&mut self, key: Key<'_>) -> Option<BlockRef<'_>> {
        self.find_counted(key)
    }

    fn now_ms(&self) -> u64 {
        self.now.ms
    }

    fn caller(&self) -> &Caller {
        self.caller
    }
}

/// What an element stands for.
#[derive(Debug, PartialEq)]
enum Pattern<'a> {
    /// `#`: itself.
    Itself,
    /// Nothing: the pattern has no place for the element.
    Nothing,
    /// The string under the key with this name around the element, or a field of the hash there.
    Key { front: &'a [u8], back: &'a [u8], field: Option<&'a [u8]> },
}

impl<'a> Pattern<'a> {
    fn parse(text: &'a [u8]) -> Pattern<'a> {
        if text == b"#" {
            return Pattern::Itself;
        }
        let Some(star) = memchr::memchr(b'*', text) else { return Pattern::Nothing };
        let (front, back) = (&text[..star], &text[star + 1..]);
        match back.windows(2).position(|pair| pair == b"->") {
            Some(arrow) if arrow + 2 < back.len() => {
                Pattern::Key { front, back: &back[..arrow], field: Some(&back[arrow + 2..]) }
            }
            _ => Pattern::Key { front, back, field: None },
        }
    }

    /// Hands what the element with this text stands for to `f`. `name` is room for a key's name.
    fn look<R>(
        &self,
        keys: &mut impl Keys,
        text: &[u8],
        name: &mut Vec<u8>,
        f: impl FnOnce(Option<Element<'_>>) -> R,
    ) -> R {
        let (front, back, field) = match *self {
            Pattern::Itself => return f(Some(Element::Bytes(text))),
            Pattern::Nothing => return f(None),
            Pattern::Key { front, back, field } => (front, back, field),
        };
        name.clear();
        [front, text, back].into_iter().for_each(|part| name.extend_from_slice(part));
        let now_ms = keys.now_ms();
        let value = keys.find(Key::new(name)).map(BlockRef::value);
        f(match (value, field) {
            (Some(Value::String(Payload::Int(int))), None) => Some(Element::Int(int)),
            (Some(Value::String(Payload::Bytes(text))), None) => Some(Element::Bytes(text)),
            (Some(value), Some(field)) => HashRef::of_value(value)
                .and_then(|hash| hash.find(field))
                .filter(|field| !field.is_due(now_ms))
                .map(|field| field.value),
            _ => None,
        })
    }
}

/// What a call asks for.
struct Options<'a> {
    descending: bool,
    /// By text, not by number.
    alpha: bool,
    /// BY without a place for the element: in the order in which the elements come.
    unsorted: bool,
    /// What the elements are sorted by, if not by themselves.
    by: Option<Pattern<'a>>,
    offset: i64,
    /// Negative: all.
    count: i64,
    get: SmallVec<[Pattern<'a>; 4]>,
    store: Option<Key<'a>>,
}

impl<'a> Options<'a> {
    fn parse(args: &mut Args<'a>, read_only: bool) -> Result<Options<'a>, Error> {
        const ASC: u64 = option_word(b"ASC");
        const DESC: u64 = option_word(b"DESC");
        const ALPHA: u64 = option_word(b"ALPHA");
        const LIMIT: u64 = option_word(b"LIMIT");
        const STORE: u64 = option_word(b"STORE");
        const BY: u64 = option_word(b"BY");
        const GET: u64 = option_word(b"GET");
        let mut options = Options {
            descending: false,
            alpha: false,
            unsorted: false,
            by: None,
            offset: 0,
            count: -1,
            get: SmallVec::new(),
            store: None,
        };
        while !args.is_done() {
            let option = args.option();
            args.skip();
            match option {
                ASC | DESC => options.descending = option == DESC,
                ALPHA => options.alpha = true,
                LIMIT if args.left() >= 2 => (options.offset, options.count) = (args.int()?, args.int()?),
                STORE if !read_only => options.store = Some(args.key()?),
                BY => {
                    let by = Pattern::parse(args.bytes()?);
                    options.unsorted |= !matches!(by, Pattern::Key { .. });
                    options.by = Some(by);
                }
                GET => options.get.push(Pattern::parse(args.bytes()?)),
                _ => return Err(Error::Syntax),
            }
        }
        Ok(options)
    }

    /// The part of `len` elements that LIMIT leaves.
    fn window(&self, len: usize) -> Range<usize> {
        let at_most = |n: i64| usize::try_from(n).map_or(len, |n| n.min(len));
        let start = at_most(self.offset.max(0));
        start..start.saturating_add(at_most(self.count)).min(len)
    }
}

/// A text in a buffer with many.
#[derive(Clone, Copy)]
struct Piece {
    at: usize,
    len: usize,
}

impl Piece {
    fn add(texts: &mut Vec<u8>, element: Element<'_>) -> Piece {
        let at = texts.len();
        element.with_text(|text| texts.extend_from_slice(text));
        Piece { at, len: texts.len() - at }
    }

    #[inline]
    fn of(self, texts: &[u8]) -> &[u8] {
        &texts[self.at..self.at + self.len]
    }
}

/// What an element is sorted by.
#[derive(Clone, Copy)]
enum Weight {
    /// Its own text, byte by byte.
    Own,
    /// A number, then its own text.
    Number(f64),
    /// Another text; elements without one come first.
    Text(Option<Piece>),
}

#[derive(Clone, Copy)]
struct Item {
    text: Piece,
    weight: Weight,
}

/// Elements and their texts.
#[derive(Default)]
struct Elements {
    items: Vec<Item>,
    texts: Vec<u8>,
    /// An element that should be one is no number.
    no_number: bool,
}

impl Elements {
    fn add(&mut self, element: Element<'_>, numeric: bool) {
        let weight = if numeric { self.weight_of(element) } else { Weight::Own };
        self.items.push(Item { text: Piece::add(&mut self.texts, element), weight });
    }

    fn weight_of(&mut self, element: Element<'_>) -> Weight {
        let number = number(element);
        self.no_number |= number.is_none();
        Weight::Number(number.unwrap_or(0.0))
    }

    /// The elements of a value: all, or only the wanted ones when the value is in the wanted order already. Returns
    /// which of them are wanted.
    fn load(&mut self, value: Value<'_>, options: &Options<'_>) -> Result<Range<usize>, Error> {
        let numeric = !options.unsorted && !options.alpha && options.by.is_none();
        let all = |len| options.window(len);
        if let Some(list) = ListRef::of_value(value) {
            if !options.unsorted {
                list.for_each(|element| self.add(element, numeric));
                return Ok(all(list.len()));
            }
            let (window, from) = (all(list.len()), if options.descending { Side::Back } else { Side::Front });
            let index =
                if options.descending { list.len().saturating_sub(1 + window.start) } else { window.start };
            list.for_some(index, window.len(), from, |element| self.add(element, numeric));
        } else if let Some(set) = SortedSetRef::of_value(value) {
            let window = if options.unsorted { all(set.len()) } else { 0..set.len() };
            let (run, way) = match options.unsorted && options.descending {
                true => (set.len() - window.end..set.len() - window.start, Way::Down),
                false => (window, Way::Up),
            };
            set.for_run(run, way, |member, _| self.add(member, numeric));
            if !options.unsorted {
                return Ok(all(set.len()));
            }
        } else {
            SetRef::of_value(value)?.for_each(&mut |member| self.add(member, numeric));
            return Ok(all(self.items.len()));
        }
        Ok(0..self.items.len())
    }

    /// Weighs the elements by what they stand for. Returns the texts of the weights.
    fn weigh(&mut self, keys: &mut impl Keys, by: &Pattern<'_>, alpha: bool) -> Vec<u8> {
        let (mut weights, mut name, mut no_number) = (Vec::new(), Vec::new(), false);
        for item in &mut self.items {
            item.weight = by.look(keys, item.text.of(&self.texts), &mut name, |found| match found {
                found if alpha => Weight::Text(found.map(|element| Piece::add(&mut weights, element))),
                None => Weight::Number(0.0),
                Some(element) => {
                    let number = number(element);
                    no_number |= number.is_none();
                    Weight::Number(number.unwrap_or(0.0))
                }
            });
        }
        self.no_number = no_number;
        weights
    }

    /// Brings what belongs into `window` there.
    fn sort(&mut self, weights: &[u8], descending: bool, window: Range<usize>) {
        if window.is_empty() {
            return;
        }
        let texts = &self.texts;
        let compare = |a: &Item, b: &Item| {
            let by_text = || a.text.of(texts).cmp(b.text.of(texts));
            let order = match (a.weight, b.weight) {
                (Weight::Number(x), Weight::Number(y)) => {
                    x.partial_cmp(&y).unwrap_or(Ordering::Equal).then_with(by_text)
                }
                (Weight::Text(x), Weight::Text(y)) => {
                    x.map(|piece| piece.of(weights)).cmp(&y.map(|piece| piece.of(weights)))
                }
                _ => by_text(),
            };
            let order = if descending { order.reverse() } else { order };
            order.then_with(|| (a.text.at, a.text.len).cmp(&(b.text.at, b.text.len)))
        };
        let items = &mut self.items[..];
        if window.end < items.len() {
            items.select_nth_unstable_by(window.end - 1, compare);
        }
        if window.start > 0 {
            items[..window.end].select_nth_unstable_by(window.start, compare);
        }
        items[window].sort_unstable_by(compare);
    }
}

/// The number that a text begins with up to a zero byte; `None` when it is no number or NaN. No text at all is 0.
fn number(element: Element<'_>) -> Option<f64> {
    match element {
        Element::Int(int) => Some(int as f64),
        Element::Bytes(text) => match text.split(|byte| *byte == 0).next().unwrap_or_default() {
            [] => Some(0.0),
            text => std::str::from_utf8(text).ok()?.parse().ok().filter(|number: &f64| !number.is_nan()),
        },
    }
}

/// The wanted elements under a key, in the wanted order.
fn sorted(keys: &mut impl Keys, key: Key<'_>, options: &mut Options<'_>) -> Result<Elements, Error> {
    let mut elements = Elements::default();
    let is_kept = options.store.is_some() || keys.caller().is_script;
    let Some(block) = keys.find(key) else { return Ok(elements) };
    if options.unsorted && is_kept && block.kind() == Kind::Set {
        // A set has no order of its own, and what is stored or what a script does must not depend on how it is kept.
        (options.unsorted, options.alpha, options.by) = (false, true, None);
    }
    let window = elements.load(block.value(), options)?;
    if !options.unsorted {
        let weights = match &options.by {
            Some(by) => elements.weigh(keys, by, options.alpha),
            None => Vec::new(),
        };
        if elements.no_number {
            return Err(Error::err("One or more scores can't be converted into double"));
        }
        elements.sort(&weights, options.descending, window.clone());
    }
    elements.items.truncate(window.end);
    elements.items.drain(..window.start);
    Ok(elements)
}

fn reply(keys: &mut impl Keys, elements: &Elements, get: &[Pattern<'_>], out: &mut Out) {
    out.array(elements.items.len() * get.len().max(1));
    let mut name = Vec::new();
    for item in &elements.items {
        let text = item.text.of(&elements.texts);
        if get.is_empty() {
            out.bulk(text);
        }
        for pattern in get {
            pattern.look(keys, text, &mut name, |found| match found {
                Some(element) => put_element(out, element),
                None => out.null(),
            });
        }
    }
}

/// What the elements stand for, as elements; what is missing is an empty text.
fn gotten(keys: &mut impl Keys, elements: &Elements, get: &[Pattern<'_>]) -> Elements {
    let (mut found, mut name) = (Elements::default(), Vec::new());
    for item in &elements.items {
        for pattern in get {
            pattern.look(keys, item.text.of(&elements.texts), &mut name, |element| {
                found.add(element.unwrap_or(Element::Bytes(b"")), false);
            });
        }
    }
    found
}

/// Makes a list of the elements, or deletes the key when there are none.
fn store(cx: &mut WriteCx<'_>, to: Key<'_>, elements: &Elements) {
    if elements.items.is_empty() {
        cx.remove(to);
        return;
    }
    let settings = cx.store(to.hash).settings.clone();
    let texts = elements.items.iter().map(|item| item.text.of(&elements.texts));
    list::store(&settings, texts, |value| cx.put(to, value, Ttl::Clear, 0));
    // Each element counts as a change; the key was counted as one.
    cx.store(to.hash).counters.dirty.add(elements.items.len() as u64 - 1);
}

/// SORT key [BY pattern] [LIMIT offset count] [GET pattern ...] [ASC|DESC] [ALPHA] [STORE destination]
pub fn sort(cx: &mut WriteCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let key = args.key()?;
    let mut options = Options::parse(args, false)?;
    let mut elements = sorted(cx, key, &mut options)?;
    let Some(to) = options.store else {
        reply(cx, &elements, &options.get, out);
        return Ok(());
    };
    if !options.get.is_empty() {
        elements = gotten(cx, &elements, &options.get);
    }
    store(cx, to, &elements);
    out.count(elements.items.len());
    Ok(())
}

/// SORT_RO key [BY pattern] [LIMIT offset count] [GET pattern ...] [ASC|DESC] [ALPHA]
pub fn sort_ro(cx: &ReadCx<'_>, args: &mut Args<'_>, out: &mut Out) -> Done {
    let key = args.key()?;
    let mut options = Options::parse(args, true)?;
    let mut keys = cx;
    let elements = sorted(&mut keys, key, &mut options)?;
    reply(&mut keys, &elements, &options.get, out);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let key = |front: &'static str, back: &'static str, field: Option<&'static str>| Pattern::Key {
            front: front.as_bytes(),
            back: back.as_bytes(),
            field: field.map(str::as_bytes),
        };
        let cases = [
            ("#", Pattern::Itself),
            ("##", Pattern::Nothing),
            ("", Pattern::Nothing),
            ("nosort", Pattern::Nothing),
            ("h->f", Pattern::Nothing),
            ("*", key("", "", None)),
            ("w_*", key("w_", "", None)),
            ("a*b*c", key("a", "b*c", None)),
            ("h_*->f", key("h_", "", Some("f"))),
            ("h->*x->y->z", key("h->", "x", Some("y->z"))),
            ("h_*->", key("h_", "->", None)),
            ("h_*-", key("h_", "-", None)),
        ];
        for (text, pattern) in cases {
            assert_eq!(Pattern::parse(text.as_bytes()), pattern, "{text}");
        }
    }

    #[test]
    fn numbers_are_those_of_redis() {
        let good = [
            ("", 0.0),
            ("1.", 1.0),
            (".5", 0.5),
            ("-2e3", -2000.0),
            ("-inf", f64::NEG_INFINITY),
            ("7\0x", 7.0),
            ("+1", 1.0),
        ];
        for (text, number_) in good {
            assert_eq!(number(Element::Bytes(text.as_bytes())), Some(number_), "{text}");
        }
        for text in ["x", "+-1", " 1", "1 ", "0x10", "nan", "-nan", "1e", "-", ".", "\u{ff}"] {
            assert_eq!(number(Element::Bytes(text.as_bytes())), None, "{text}");
        }
    }

    #[test]
    fn windows() {
        let window = |offset, count, len| {
            let (buf, spans) = (Vec::new(), Vec::new());
            let mut args = Args::new(&buf, &spans, (0, crate::base::hash::KeyHash::of(b"")));
            let options = Options { offset, count, ..Options::parse(&mut args, true).unwrap() };
            options.window(len)
        };
        assert_eq!(window(0, -1, 5), 0..5);
        assert_eq!(window(2, 2, 5), 2..4);
        assert_eq!(window(-3, 2, 5), 0..2);
        assert_eq!(window(3, i64::MAX, 5), 3..5);
        assert_eq!(window(i64::MAX, i64::MAX, 5), 5..5);
        assert_eq!(window(0, i64::MIN, 5), 0..5);
        assert_eq!(window(1, 0, 5), 1..1);
        assert_eq!(window(0, -1, 0), 0..0);
    }

    #[test]
    fn a_window_has_what_sorting_all_puts_there() {
        let mut elements = Elements::default();
        let mut seed = 1_u32;
        for _ in 0..200 {
            seed = seed.wrapping_mul(1_103_515_245).wrapping_add(12_345);
            elements.add(Element::Int(i64::from(seed >> 16) % 50), true);
        }
        let texts = |elements: &Elements, window: Range<usize>| -> Vec<(usize, String)> {
            let item = |item: &Item| {
                (item.text.at, String::from_utf8(item.text.of(&elements.texts).to_vec()).unwrap())
            };
            elements.items[window].iter().map(item).collect()
        };
        for descending in [false, true] {
            let mut all = Elements {
                items: elements.items.clone(),
                texts: elements.texts.clone(),
                ..Elements::default()
            };
            all.sort(b"", descending, 0..200);
            let wanted = texts(&all, 0..200);
            assert!(wanted.windows(2).all(|pair| pair[0].1 != pair[1].1 || pair[0].0 < pair[1].0), "stable");
            for window in [0..1, 0..200, 5..9, 100..200, 199..200, 7..7] {
                let mut part = Elements {
                    items: elements.items.clone(),
                    texts: elements.texts.clone(),
                    ..Elements::default()
                };
                part.sort(b"", descending, window.clone());
                assert_eq!(texts(&part, window.clone()), wanted[window], "{descending}");
            }
        }
    }
}
