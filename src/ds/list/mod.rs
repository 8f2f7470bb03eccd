//! A long list: a deque of nodes, each a listpack of neighbouring elements, or one large element by itself.
//!
//! Which elements share a node is decided exactly as in Redis's quicklist (its `quicklist.c` documents the cases), for
//! it shows: a list goes back to a single listpack only when one node is left, and a snapshot is a row of nodes.
//! - A new element joins the node at its place while [`Limit`] allows it, else the neighbour's node, else it gets a new
//!   one; in the middle of a full node, the node is split there, and small neighbours join each other.
//! - What is taken out leaves its node smaller; only an empty node goes.
//! - A replaced element stays in its node, however large that gets.
//!
//! With a compression depth all nodes but so many at either end are compressed while nobody changes them. A read
//! looks at them through a scratch buffer and leaves them as they are.
//!
//! Must stay true: the length is the sum of the nodes' counts; no node is empty; nodes within the depth are open.
//! Where bytes are counted, a node that grew by pushes has the largest size class that the limit allows, so its room is
//! used up.
mod node;

use std::collections::VecDeque;
use std::ops::ControlFlow;

use smallvec::SmallVec;

use super::listpack::{self, Element, Listpack, Probe};
pub use node::Limit;
use node::{Node, View};

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Where the first element is.
    Front,
    /// Where the last element is.
    Back,
}

/// A list in several nodes.
#[derive(Clone, Debug, Default)]
pub struct Quicklist {
    nodes: VecDeque<Node>,
    len: usize,
    limit: Limit,
    /// Nodes at either end that are never compressed; 0: none is anywhere.
    depth: u16,
}

/// The place of an element.
#[derive(Clone, Copy, Debug)]
struct Spot {
    node: usize,
    /// Within the node.
    index: usize,
}

/// A node as others store it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeBytes<'a> {
    /// The stored bytes of a listpack.
    Packed(&'a [u8]),
    /// One large element.
    Plain(&'a [u8]),
}

impl Quicklist {
    /// A list without elements, which callers must not leave so. `depth` is that of compression.
    pub fn new(limit: Limit, depth: i64) -> Quicklist {
        let depth = depth.clamp(0, i64::from(u16::MAX)) as u16;
        Quicklist { nodes: VecDeque::new(), len: 0, limit, depth }
    }

    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of nodes.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// The limit that it was made under.
    pub fn limit(&self) -> Limit {
        self.limit
    }

    /// How many nodes at each end are never compressed; 0: none is.
    pub fn depth(&self) -> usize {
        self.depth.into()
    }

    /// Bytes of its elements uncompressed, as size limits count them. Takes a walk over the nodes.
    pub fn portable_bytes(&self) -> usize {
        self.nodes.iter().map(Node::portable_bytes).sum()
    }

    /// Heap bytes. Takes a walk over the nodes.
    pub fn heap_bytes(&self) -> usize {
        self.nodes.iter().map(Node::heap_bytes).sum::<usize>() + self.nodes.capacity() * size_of::<Node>()
    }

    /// Appends a node that is the stored bytes of a listpack, however large; nothing if it has no element.
    pub fn append_pack(&mut self, stored: &[u8]) {
        if !Listpack::new(stored).is_empty() {
            self.insert_node(self.nodes.len(), Node::packed(stored));
        }
    }

    /// Appends a node that is one element, however small (but not empty).
    pub fn append_plain(&mut self, text: &[u8]) {
        if !text.is_empty() {
            self.insert_node(self.nodes.len(), Node::plain(text));
        }
    }

    /// Calls `f` with the contents of each node, front to back.
    pub fn for_each_node(&self, f: impl FnMut(NodeBytes<'_>)) {
        self.visit_nodes(0, usize::MAX, f);
    }

    /// Calls `f` with the contents of nodes `from..to`, as far as there are any.
    pub fn visit_nodes(&self, from: usize, to: usize, mut f: impl FnMut(NodeBytes<'_>)) {
        let mut scratch = Vec::new();
        let to = to.min(self.nodes.len());
        for node in self.nodes.range(from.min(to)..to) {
            f(match node.view(&mut scratch) {
                View::Packed(pack) => NodeBytes::Packed(pack.bytes()),
                View::Plain(text) => NodeBytes::Plain(text),
            });
        }
    }

    /// The only node, when it is one and a listpack.
    pub fn sole_pack(&self) -> Option<Listpack<'_>> {
        let node = self.nodes.front().filter(|node| self.nodes.len() == 1 && !node.is_plain())?;
        Some(node.pack())
    }

    // Reading.

    /// The place of the element at `index`, found by the counts of nodes from the nearer end.
    fn spot(&self, index: usize) -> Option<Spot> {
        let from_back = self.len.checked_sub(index)?.checked_sub(1)?;
        let mut left = index.min(from_back);
        let nearer = if index <= from_back { Side::Front } else { Side::Back };
        for step in 0..self.nodes.len() {
            let (node, count) = match nearer {
                Side::Front => (step, self.nodes[step].count()),
                Side::Back => {
                    let node = self.nodes.len() - 1 - step;
                    (node, self.nodes[node].count())
                }
            };
            if left < count {
                let index = if nearer == Side::Front { left } else { count - 1 - left };
                return Some(Spot { node, index });
            }
            left -= count;
        }
        None
    }

    /// Calls `f` with the element at `index`, if there is one.
    pub fn get<R>(&self, index: usize, f: impl FnOnce(Element<'_>) -> R) -> Option<R> {
        let spot = self.spot(index)?;
        let mut scratch = Vec::new();
        Some(match self.nodes[spot.node].view(&mut scratch) {
            View::Plain(text) => f(Element::Bytes(text)),
            View::Packed(pack) => f(pack.get(pack.nth(spot.index as i64)?)),
        })
    }

    /// Calls `f` with the element at `index` and those behind it, as seen from the side that the walk comes from, until
    /// it breaks.
    pub fn walk(&self, index: usize, from: Side, mut f: impl FnMut(Element<'_>) -> ControlFlow<()>) {
        let Some(spot) = self.spot(index) else { return };
        let mut scratch = Vec::new();
        let mut within = Some(spot.index);
        let mut at = spot.node;
        loop {
            let start = within.take();
            let flow = match self.nodes[at].view(&mut scratch) {
                View::Plain(text) => f(Element::Bytes(text)),
                View::Packed(pack) => walk_pack(pack, start, from, &mut f),
            };
            let next = if from == Side::Front { Some(at + 1) } else { at.checked_sub(1) };
            match next.filter(|next| *next < self.nodes.len()) {
                Some(next) if flow.is_continue() => at = next,
                _ => return,
            }
        }
    }

    /// The first element that equals `text`.
    fn find(&self, text: &[u8], probe: &Probe<'_>) -> Option<(Spot, Option<usize>)> {
        let mut scratch = Vec::new();
        self.nodes.iter().enumerate().find_map(|(node, contents)| match contents.view(&mut scratch) {
            View::Plain(own) => (own == text).then_some((Spot { node, index: 0 }, None)),
            View::Packed(pack) => {
                let offset = pack.find(probe, listpack::HEAD_BYTES, 1)?;
                let index = pack.iter_until(offset).count();
                Some((Spot { node, index }, Some(offset)))
            }
        })
    }

    // Changing. Each change ends with `tend`, when it made or took nodes or opened one.

    fn allows(&self, node: usize, text_bytes: usize) -> bool {
        self.nodes.get(node).is_some_and(|node| node.allows(text_bytes, self.limit))
    }

    /// A node for one element.
    fn node_of(&self, text: &[u8]) -> Node {
        if self.limit.is_large(text.len()) { Node::plain(text) } else { Node::of(text) }
    }

    fn insert_node(&mut self, at: usize, node: Node) {
        self.len += node.count();
        self.nodes.insert(at, node);
        self.tend(at);
    }

    fn remove_node(&mut self, at: usize) {
        if let Some(node) = self.nodes.remove(at) {
            self.len -= node.count();
        }
        self.tend(at);
    }

    /// Opens the nodes at the ends and compresses those around `touched` that are not.
    fn tend(&mut self, touched: usize) {
        if self.depth == 0 {
            return;
        }
        let (count, depth) = (self.nodes.len(), usize::from(self.depth));
        for at in 0..depth.min(count) {
            self.nodes[at].open();
            self.nodes[count - 1 - at].open();
        }
        if count <= 2 * depth {
            return;
        }
        let around = touched.saturating_sub(2)..=touched.saturating_add(3);
        for at in [depth, count - 1 - depth].into_iter().chain(around) {
            if (depth..count - depth).contains(&at) {
                self.nodes[at].compress();
            }
        }
    }

    /// Puts an element at an end.
    #[inline]
    pub fn push(&mut self, side: Side, text: &[u8]) {
        let (end, behind) = match side {
            Side::Front => (0, 0),
            Side::Back => (self.nodes.len().wrapping_sub(1), self.nodes.len()),
        };
        if !self.allows(end, text.len()) {
            return self.insert_node(behind, self.node_of(text));
        }
        let node = &mut self.nodes[end];
        match side {
            Side::Front => node.insert(listpack::HEAD_BYTES, text),
            Side::Back => node.push_back(text),
        }
        self.len += 1;
    }

    /// Takes the element at an end out, after `f` has seen it. `None`: there was none.
    pub fn pop<R>(&mut self, side: Side, f: impl FnOnce(Element<'_>) -> R) -> Option<R> {
        let at = if side == Side::Front { 0 } else { self.nodes.len().checked_sub(1)? };
        let node = self.nodes.get_mut(at)?;
        let mut scratch = Vec::new();
        let (result, offset) = match node.view(&mut scratch) {
            View::Plain(text) => (f(Element::Bytes(text)), None),
            View::Packed(pack) => {
                let offset = if side == Side::Front { pack.first()? } else { pack.last()? };
                (f(pack.get(offset)), Some(offset))
            }
        };
        match offset {
            Some(offset) if node.count() > 1 => {
                node.remove(offset, 1);
                self.len -= 1;
            }
            _ => self.remove_node(at),
        }
        Some(result)
    }

    /// Puts another element in the place of the one at `index`. `false`: there is none.
    pub fn set(&mut self, index: usize, text: &[u8]) -> bool {
        let Some(spot) = self.spot(index) else { return false };
        let large = self.limit.is_large(text.len());
        let node = &mut self.nodes[spot.node];
        match (node.is_plain(), large) {
            (true, true) => *node = Node::plain(text),
            (true, false) => {
                self.insert_beside(spot, None, Side::Back, text);
                return {
                    self.remove_node(spot.node);
                    true
                };
            }
            (false, false) => {
                node.open();
                let offset = node.offset(spot.index);
                node.replace(offset, text);
            }
            (false, true) => self.set_large(spot, text),
        }
        self.tend(spot.node);
        true
    }

    /// [`Quicklist::set`] of an element that needs its own node, in a listpack.
    fn set_large(&mut self, spot: Spot, text: &[u8]) {
        let node = &mut self.nodes[spot.node];
        node.open();
        let behind = (spot.index + 1 < node.count()).then(|| node.split_off(spot.index + 1));
        let alone = node.count() == 1;
        if !alone {
            let last = node.offset(spot.index);
            node.remove(last, 1);
        }
        let at = spot.node + 1;
        self.nodes.insert(at, Node::plain(text));
        if let Some(behind) = behind {
            self.nodes.insert(at + 1, behind);
        }
        if alone {
            self.nodes.remove(spot.node);
        } else {
            self.join_around(at);
        }
    }

    /// Puts an element beside the first one that equals `pivot`: before it (`Front`) or behind it. `false`: there is no
    /// such one.
    pub fn insert(&mut self, pivot: &[u8], side: Side, text: &[u8]) -> bool {
        let Some((spot, offset)) = self.find(pivot, &Probe::new(pivot)) else { return false };
        self.insert_beside(spot, offset, side, text);
        true
    }

    /// Puts an element beside the one at `spot`, whose offset within its node is `offset` unless that is plain.
    fn insert_beside(&mut self, spot: Spot, offset: Option<usize>, side: Side, text: &[u8]) {
        let (at, behind) = (spot.node, side == Side::Back);
        let index = spot.index + usize::from(behind);
        let neighbour = if behind { Some(at + 1) } else { at.checked_sub(1) };
        let at_edge = if behind { index == self.nodes[at].count() } else { index == 0 };
        if let (Some(offset), true) = (offset, self.allows(at, text.len())) {
            let node = &mut self.nodes[at];
            node.open();
            let place = if behind { node.pack().skip(offset, 1) } else { offset };
            node.insert(place, text);
            self.len += 1;
            return self.tend(at);
        }
        if !at_edge {
            return self.insert_in_the_middle(at, index, side, text);
        }
        match neighbour.filter(|next| self.allows(*next, text.len())) {
            Some(next) => {
                let node = &mut self.nodes[next];
                node.open();
                if behind {
                    node.insert(listpack::HEAD_BYTES, text)
                } else {
                    node.push_back(text)
                }
                self.len += 1;
                self.tend(next);
            }
            None => self.insert_node(at + usize::from(behind), self.node_of(text)),
        }
    }

    /// Splits the node at `index` and puts an element there: by itself if it is large, else at the end of the new half,
    /// which is the back one for `Back`.
    fn insert_in_the_middle(&mut self, at: usize, index: usize, side: Side, text: &[u8]) {
        let large = self.limit.is_large(text.len());
        let node = &mut self.nodes[at];
        node.open();
        let mut behind = node.split_off(index);
        let center = match side {
            _ if large => at,
            Side::Back => {
                behind.insert(listpack::HEAD_BYTES, text);
                at
            }
            Side::Front => {
                node.push_back(text);
                at + 1
            }
        };
        self.nodes.insert(at + 1, behind);
        self.len += 1;
        if large {
            self.nodes.insert(at + 1, Node::plain(text));
        } else {
            self.join_around(center);
        }
        self.tend(at);
    }

    /// Has the node at `at` and the one behind it become one, if that is allowed.
    fn join(&mut self, at: usize) -> bool {
        let allowed = match (self.nodes.get(at), self.nodes.get(at + 1)) {
            (Some(node), Some(next)) => node.allows_merge(next, self.limit),
            _ => false,
        };
        if allowed && let Some(mut next) = self.nodes.remove(at + 1) {
            next.open();
            let node = &mut self.nodes[at];
            node.open();
            node.append(&next);
        }
        allowed
    }

    /// Joins small nodes: the two before the center, the two behind it, then the center with its neighbours.
    fn join_around(&mut self, mut center: usize) {
        if center >= 2 && self.join(center - 2) {
            center -= 1;
        }
        self.join(center + 1);
        if center >= 1 && self.join(center - 1) {
            center -= 1;
        }
        self.join(center);
    }

    /// Takes out `n` elements from `index` on (all behind it, if there are fewer).
    pub fn remove_range(&mut self, index: usize, n: usize) {
        let n = n.min(self.len.saturating_sub(index));
        let Some(spot) = self.spot(index).filter(|_| n > 0) else { return };
        let (mut at, mut left) = (spot.node, n);
        if spot.index > 0 {
            let cut = left.min(self.nodes[at].count() - spot.index);
            self.cut(at, spot.index, cut);
            left -= cut;
            at += 1;
        }
        let whole = self.nodes.range(at..).take_while(|node| match left.checked_sub(node.count()) {
            Some(less) => {
                left = less;
                true
            }
            None => false,
        });
        let end = at + whole.count();
        drop(self.nodes.drain(at..end));
        if left > 0 {
            self.cut(at, 0, left);
        }
        self.len -= n;
        self.tend(spot.node);
    }

    /// Takes `n` elements, but not all, out of a node.
    fn cut(&mut self, at: usize, index: usize, n: usize) {
        let node = &mut self.nodes[at];
        node.open();
        let offset = node.offset(index);
        node.remove(offset, n);
    }

    /// Takes out at most `max` elements that equal `text`, those nearest to the side first, and tells how many it were.
    pub fn remove_equal(&mut self, text: &[u8], max: usize, from: Side) -> usize {
        let probe = Probe::new(text);
        let (mut left, mut emptied) = (max, false);
        let count = self.nodes.len();
        for step in 0..count {
            if left == 0 {
                break;
            }
            let at = if from == Side::Front { step } else { count - 1 - step };
            let node = &mut self.nodes[at];
            left -= remove_from_node(node, text, &probe, left, from);
            emptied |= node.count() == 0;
        }
        if emptied {
            self.nodes.retain(|node| node.count() > 0);
        }
        let removed = max - left;
        self.len -= removed;
        if removed > 0 {
            self.tend(0);
        }
        removed
    }

    /// Whether everything that must stay true is true.
    #[cfg(test)]
    fn check(&self) -> bool {
        let (count, depth) = (self.nodes.len(), usize::from(self.depth));
        self.nodes.iter().all(Node::check)
            && self.nodes.iter().map(Node::count).sum::<usize>() == self.len
            && self.nodes.iter().enumerate().all(|(at, node)| {
                !node.is_compressed() || (depth > 0 && (depth..count - depth.min(count)).contains(&at))
            })
    }
}

/// The part of a walk that lies within one listpack; `within` is where it begins, if not at the end.
fn walk_pack(
    pack: Listpack<'_>,
    within: Option<usize>,
    from: Side,
    f: &mut impl FnMut(Element<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let start = within.and_then(|index| pack.nth(index as i64));
    match from {
        Side::Front => {
            pack.iter_from(start.unwrap_or(listpack::HEAD_BYTES)).try_for_each(|(_, element)| f(element))
        }
        Side::Back => {
            let end = start.map_or(pack.end(), |start| pack.skip(start, 1));
            pack.iter_until(end).rev().try_for_each(|(_, element)| f(element))
        }
    }
}

/// Where elements of a listpack lie, in ascending order.
pub type Offsets = SmallVec<[u32; 16]>;

/// Where at most `max` elements lie that `probe` looks for, those nearest to the side.
pub fn offsets_of(pack: Listpack<'_>, probe: &Probe<'_>, max: usize, from: Side) -> Offsets {
    let mut found = Offsets::new();
    match from {
        Side::Front => {
            let mut at = listpack::HEAD_BYTES;
            while found.len() < max
                && let Some(offset) = pack.find(probe, at, 1)
            {
                found.push(offset as u32);
                at = pack.skip(offset, 1);
            }
        }
        Side::Back => {
            let equal = pack.iter().rev().filter(|(_, element)| probe.matches(*element));
            found.extend(equal.take(max).map(|(offset, _)| offset as u32));
            found.reverse();
        }
    }
    found
}

/// The entries of a listpack without those at `offsets`.
pub fn entries_without(pack: Listpack<'_>, offsets: &[u32]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(pack.bytes().len());
    let mut from = listpack::HEAD_BYTES;
    for &offset in offsets {
        kept.extend_from_slice(&pack.bytes()[from..offset as usize]);
        from = pack.skip(offset as usize, 1);
    }
    kept.extend_from_slice(&pack.bytes()[from..]);
    kept
}

/// Takes out at most `max` elements that equal `text`; the node may be empty afterwards. It stays compressed if it was.
fn remove_from_node(node: &mut Node, text: &[u8], probe: &Probe<'_>, max: usize, from: Side) -> usize {
    let mut scratch = Vec::new();
    let offsets = match node.view(&mut scratch) {
        View::Plain(own) if own == text => {
            node.clear();
            return 1;
        }
        View::Plain(_) => return 0,
        View::Packed(pack) => offsets_of(pack, probe, max, from),
    };
    if offsets.is_empty() {
        return 0;
    }
    let was_compressed = node.is_compressed();
    node.open();
    match offsets[..] {
        [only] => node.remove(only as usize, 1),
        _ => {
            let (kept, count) = (entries_without(node.pack(), &offsets), node.count() - offsets.len());
            node.refill(&kept, count);
        }
    }
    if was_compressed {
        node.compress();
    }
    offsets.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A text by its number: small integers, short texts that repeat, long and large ones.
    fn text(number: u16) -> Vec<u8> {
        match number % 8 {
            0 => (i32::from(number) - 300).to_string().into_bytes(),
            1..=4 => format!("text:{}", number % 40).into_bytes(),
            5 => vec![b'm'; usize::from(number) % 700],
            6 => vec![b'l'; 3000 + usize::from(number) % 1000],
            _ => vec![b'x'; 4097 + usize::from(number) % 9000],
        }
    }

    /// Tells the texts apart and is short.
    fn label(text: &[u8]) -> String {
        format!("{}:{}", String::from_utf8_lossy(&text[..text.len().min(8)]), text.len())
    }

    fn labels(texts: &[Vec<u8>]) -> Vec<String> {
        texts.iter().map(|text| label(text)).collect()
    }

    fn contents(list: &Quicklist, from: Side) -> Vec<String> {
        let mut found = Vec::new();
        let start = if from == Side::Front { 0 } else { list.len().wrapping_sub(1) };
        list.walk(start, from, |element| {
            found.push(element.with_text(label));
            ControlFlow::Continue(())
        });
        found
    }

    fn side(number: u16) -> Side {
        if number.is_multiple_of(2) { Side::Front } else { Side::Back }
    }

    /// One step to both; what they say of it must be the same.
    fn step(list: &mut Quicklist, model: &mut Vec<Vec<u8>>, (kind, a, b): (u8, u16, u16)) {
        let place = usize::from(a) % (model.len() + 1);
        match kind {
            0..8 => {
                list.push(side(a), &text(b));
                model.insert(if side(a) == Side::Front { 0 } else { model.len() }, text(b));
            }
            8..10 => {
                let popped = list.pop(side(a), |element| element.to_vec());
                let want = (!model.is_empty())
                    .then(|| model.remove(if side(a) == Side::Front { 0 } else { model.len() - 1 }));
                assert_eq!(popped, want);
            }
            10..12 => {
                assert_eq!(list.set(place, &text(b)), place < model.len());
                if place < model.len() {
                    model[place] = text(b);
                }
            }
            12..16 => {
                let pivot = model.get(place).cloned().unwrap_or(b"none".to_vec());
                let at = model.iter().position(|own| *own == pivot);
                assert_eq!(list.insert(&pivot, side(b), &text(b / 2)), at.is_some());
                if let Some(at) = at {
                    model.insert(at + usize::from(side(b) == Side::Back), text(b / 2));
                }
            }
            16 => {
                let n = usize::from(b) % 20;
                list.remove_range(place, n);
                model.drain(place..(place + n).min(model.len()));
            }
            _ => {
                let (gone, max) = (text(a), usize::from(b) % 4 + 1);
                let mut equal: Vec<usize> = (0..model.len()).filter(|at| model[*at] == gone).collect();
                if side(b) == Side::Back {
                    equal.reverse();
                }
                equal.truncate(max);
                assert_eq!(list.remove_equal(&gone, max, side(b)), equal.len());
                let mut at = 0;
                model.retain(|_| {
                    at += 1;
                    !equal.contains(&(at - 1))
                });
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(150))]
        #[test]
        fn lists_model(
            limit in prop_oneof![Just(-1i64), Just(-2), 1i64..9],
            depth in 0i64..3,
            steps in proptest::collection::vec((0u8..18, any::<u16>(), any::<u16>()), 1..150),
        ) {
            let (mut list, mut model) = (Quicklist::new(Limit::new(limit), depth), Vec::new());
            for one in steps {
                step(&mut list, &mut model, one);
                prop_assert!(list.check(), "{one:?}");
                prop_assert_eq!(list.len(), model.len());
            }
            prop_assert_eq!(contents(&list, Side::Front), labels(&model));
            prop_assert_eq!(contents(&list.clone(), Side::Front), labels(&model));
            for (at, want) in model.iter().enumerate() {
                prop_assert_eq!(list.get(at, |element| element.with_text(label)), Some(label(want)));
            }
            prop_assert!(list.get(model.len(), |_| ()).is_none());
            model.reverse();
            prop_assert_eq!(contents(&list, Side::Back), labels(&model));
        }
    }

    #[test]
    fn a_million_pushes_waste_nothing() {
        for from in [Side::Front, Side::Back] {
            let mut list = Quicklist::new(Limit::default(), 0);
            (0..1_000_000).for_each(|n| list.push(from, format!("element:{n:08}").as_bytes()));
            assert_eq!(list.len(), 1_000_000);
            assert!(list.heap_bytes() < 18_300_000, "{}", list.heap_bytes());
        }
    }

    #[test]
    fn nodes_within_the_depth_are_open() {
        let mut list = Quicklist::new(Limit::new(10), 2);
        (0..200).for_each(|n| list.push(Side::Back, format!("a text that repeats itself {n}").as_bytes()));
        let compressed = |list: &Quicklist| list.nodes.iter().filter(|node| node.is_compressed()).count();
        assert_eq!((list.nodes.len(), compressed(&list)), (20, 16));
        assert!(list.set(105, b"other"));
        assert_eq!(compressed(&list), 16);
        list.remove_range(0, 30);
        assert_eq!((list.nodes.len(), compressed(&list)), (17, 13));
        assert!(list.check());
    }

    fn counts(list: &Quicklist) -> Vec<usize> {
        list.nodes.iter().map(Node::count).collect()
    }

    #[test]
    fn nodes_are_filled_split_and_joined() {
        let mut list = Quicklist::new(Limit::new(4), 0);
        ["a", "b", "c", "d", "e", "f", "g", "h", "i"]
            .iter()
            .for_each(|t| list.push(Side::Back, t.as_bytes()));
        assert_eq!(counts(&list), [4, 4, 1]);
        assert!(list.insert(b"d", Side::Back, b"1"));
        assert_eq!(counts(&list), [4, 1, 4, 1], "full on both sides: a node of its own");
        assert!(list.insert(b"d", Side::Back, b"2"));
        assert_eq!(counts(&list), [4, 2, 4, 1], "into the neighbour behind");
        assert!(list.insert(b"b", Side::Back, b"3"));
        assert_eq!(counts(&list), [2, 3, 2, 4, 1], "split; nothing fits together");
        assert!(list.insert(b"f", Side::Back, &[b'x'; 9000]));
        assert_eq!(counts(&list), [2, 3, 2, 2, 1, 2, 1], "large: split, and no joining");
        list.remove_range(0, 4);
        assert_eq!(counts(&list), [1, 2, 2, 1, 2, 1]);
        assert!(list.set(4, &[b'y'; 9000]));
        assert_eq!(counts(&list), [1, 3, 1, 1, 2, 1], "the replaced one's neighbours join");
        assert!(list.set(5, b"small"));
        assert_eq!(counts(&list), [1, 3, 1, 3, 1], "small again: into the node behind");
        assert_eq!(list.remove_equal(b"h", 1, Side::Back), 1);
        assert!(list.check());
    }
}
