//! Unions, intersections and differences of sets, member by member and without copies of members, except for those
//! that a store command keeps.
//!
//! Must stay true: an intersection costs the smallest set, a difference the cheaper of two ways; the results of the
//! store commands go through the same forms as in Redis 8.0, which depend on the order in which members come.
use std::ops::ControlFlow;

use smallvec::SmallVec;

use super::{Limits, NewSet, SetRef, build, int_of};
use crate::ds::listpack::Element;
use crate::ds::table::{Layout, PackedTable};

/// Sets to compute with.
pub type Sets<'a> = SmallVec<[SetRef<'a>; 8]>;

/// Sets up to which a union looks members up in the sets before instead of noting what it has seen.
const UNION_LOOKUPS_MAX: usize = 4;

/// Visits the members that all sets have, until `f` breaks. Costs the smallest set, times the number of sets.
///
/// Of equally small sets the first one gives the order.
pub fn intersect<'a>(mut sets: Sets<'a>, f: &mut dyn FnMut(Element<'a>) -> ControlFlow<()>) {
    sets.sort_by_key(|set| set.len());
    let Some((first, others)) = sets.split_first() else { return };
    let others: Sets<'_> = others.iter().copied().filter(|other| !other.is_same(*first)).collect();
    for member in first.iter() {
        if others.iter().all(|other| other.contains_element(member)) && f(member).is_break() {
            break;
        }
    }
}

/// Visits the members of any of the sets, each once.
pub fn unite<'a>(mut sets: Sets<'a>, f: &mut dyn FnMut(Element<'a>)) {
    // The largest first: nothing is looked up for its members.
    sets.sort_by_key(|set| std::cmp::Reverse(set.len()));
    if sets.len() <= UNION_LOOKUPS_MAX {
        for (at, set) in sets.iter().enumerate() {
            set.for_each(&mut |member| {
                if !sets[..at].iter().any(|before| before.contains_element(member)) {
                    f(member);
                }
            });
        }
        return;
    }
    let Some((first, others)) = sets.split_first() else { return };
    first.for_each(f);
    let mut seen = PackedTable::new(Layout::Keys);
    for set in others {
        set.for_each(&mut |member| {
            if !first.contains_element(member) && build::add_to_table(&mut seen, member) {
                f(member);
            }
        });
    }
}

/// How a difference is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// There is nothing in it.
    Empty,
    /// Each member of the first set is looked up in the others.
    Lookups,
    /// The members of the others are taken from those of the first.
    Removals,
}

/// The cheaper way, with an advantage for lookups, which cost less than removals; as Redis chooses it.
fn way(first: SetRef<'_>, others: &[SetRef<'_>]) -> Way {
    if others.iter().any(|other| other.is_same(first)) {
        return Way::Empty;
    }
    let lookups = first.len().saturating_mul(others.len() + 1) / 2;
    let removals = others.iter().fold(first.len(), |sum, other| sum.saturating_add(other.len()));
    if lookups <= removals { Way::Lookups } else { Way::Removals }
}

/// The largest first, in which a member is found soonest.
fn by_size<'a>(sets: &[SetRef<'a>]) -> Sets<'a> {
    let mut sets = Sets::from_slice(sets);
    sets.sort_by_key(|set| std::cmp::Reverse(set.len()));
    sets
}

fn subtract_by_lookups<'a>(first: SetRef<'a>, others: &[SetRef<'_>], f: &mut dyn FnMut(Element<'a>)) {
    let others = by_size(others);
    first.for_each(&mut |member| {
        if !others.iter().any(|other| other.contains_element(member)) {
            f(member);
        }
    });
}

/// Visits the members of `first` that none of the others has.
pub fn subtract<'a>(first: SetRef<'a>, others: &[SetRef<'_>], f: &mut dyn FnMut(Element<'a>)) {
    match way(first, others) {
        Way::Empty => {}
        Way::Lookups => subtract_by_lookups(first, others, f),
        Way::Removals => {
            // What is to be removed is noted instead of copying the first set, which is the larger one.
            let mut removed = PackedTable::new(Layout::Keys);
            for other in others {
                other.for_each(&mut |member| {
                    if first.contains_element(member) {
                        build::add_to_table(&mut removed, member);
                    }
                });
            }
            subtract_by_lookups(first, &[SetRef::Table(&removed)], f);
        }
    }
}

/// The union as a new set.
pub fn union_of(sets: &[SetRef<'_>], limits: &Limits) -> NewSet {
    let largest = sets.iter().max_by_key(|set| set.len());
    if let Some(largest) = largest.filter(|set| limits.exceeded_by(set.len())) {
        // A table in any order of members: it starts from what is most of it.
        let mut union = NewSet::table_of(*largest);
        for set in sets.iter().filter(|set| !set.is_same(*largest)) {
            set.for_each(&mut |member| {
                union.add(member, limits);
            });
        }
        return union;
    }
    let mut union = NewSet::of_ints();
    for set in sets {
        set.for_each(&mut |member| {
            union.add(member, limits);
        });
    }
    union
}

/// The intersection as a new set.
pub fn intersection_of(sets: Sets<'_>, limits: &Limits) -> NewSet {
    let smallest = sets.iter().min_by_key(|set| set.len());
    let mut result = match smallest {
        Some(SetRef::Ints(_)) => NewSet::of_ints(),
        _ => NewSet::of_pack(),
    };
    let mut all_ints = true;
    intersect(sets, &mut |member| {
        all_ints = all_ints && int_of(member).is_some();
        result.add_new(member, limits);
        ControlFlow::Continue(())
    });
    if all_ints { result.as_ints_if_possible(limits) } else { result }
}

/// The difference as a new set.
pub fn difference_of(first: SetRef<'_>, others: &[SetRef<'_>], limits: &Limits) -> NewSet {
    let mut result = NewSet::of_ints();
    match way(first, others) {
        Way::Empty => {}
        Way::Lookups => subtract_by_lookups(first, others, &mut |member| result.add_new(member, limits)),
        Way::Removals => {
            result = NewSet::copy_of(first, limits);
            for other in others {
                if result.view().is_empty() {
                    break;
                }
                other.for_each(&mut |member| {
                    result.remove(member);
                });
            }
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::types::set::tests::{LIMITS, set_of, texts};

    /// Small numbers and texts; now and then so many that the set is a table.
    fn members() -> impl Strategy<Value = Vec<String>> {
        let member = || {
            prop_oneof![
                3 => (0..60_i32).prop_map(|n| n.to_string()),
                1 => "[ab]{0,3}",
            ]
        };
        prop_oneof![
            3 => proptest::collection::vec(member(), 1..40),
            2 => proptest::collection::vec((0..60_i32).prop_map(|n| n.to_string()), 1..40),
            1 => (0..400_i32).prop_map(|from| (from..from + 200).map(|n| format!("m{n}")).collect()),
            1 => (0..60_i32).prop_map(|from| (from..from + 600).map(|n| n.to_string()).collect()),
        ]
    }

    fn seen(visit: impl FnOnce(&mut dyn FnMut(Element<'_>))) -> BTreeSet<String> {
        let (mut seen, mut count) = (BTreeSet::new(), 0);
        visit(&mut |member| {
            seen.insert(String::from_utf8(member.to_vec()).unwrap());
            count += 1;
        });
        assert_eq!(seen.len(), count, "each member once");
        seen
    }

    proptest! {
        #[test]
        fn results_agree_with_a_model(lists in proptest::collection::vec(members(), 1..8)) {
            let sets: Vec<NewSet> = lists.iter().map(|list| set_of(list, &LIMITS)).collect();
            let models: Vec<BTreeSet<String>> = sets.iter().map(|set| texts(set.view())).collect();
            let views: Sets<'_> = sets.iter().map(NewSet::view).collect();
            let fold = |f: fn(&BTreeSet<String>, &BTreeSet<String>) -> BTreeSet<String>| {
                models[1..].iter().fold(models[0].clone(), |sum, model| f(&sum, model))
            };
            let (union, common, rest) = (fold(|a, b| a | b), fold(|a, b| a & b), fold(|a, b| a - b));
            prop_assert_eq!(seen(|f| unite(views.clone(), f)), union.clone());
            prop_assert_eq!(texts(union_of(&views, &LIMITS).view()), union);
            let all = |f: &mut dyn FnMut(Element<'_>)| {
                intersect(views.clone(), &mut |member| {
                    f(member);
                    ControlFlow::Continue(())
                });
            };
            prop_assert_eq!(seen(all), common.clone());
            prop_assert_eq!(texts(intersection_of(views.clone(), &LIMITS).view()), common);
            prop_assert_eq!(seen(|f| subtract(views[0], &views[1..], f)), rest.clone());
            prop_assert_eq!(texts(difference_of(views[0], &views[1..], &LIMITS).view()), rest);
        }
    }

    fn numbers(range: std::ops::Range<i32>) -> NewSet {
        set_of(&range.map(|n| n.to_string()).collect::<Vec<_>>(), &LIMITS)
    }

    #[test]
    fn intersections_cost_the_smallest_set_and_end_early() {
        let (small, large) = (numbers(5..9), numbers(0..5_000));
        for sets in [[small.view(), large.view()], [large.view(), small.view()]] {
            let mut seen = Vec::new();
            intersect(Sets::from_slice(&sets), &mut |member| {
                seen.push(member.to_i64());
                if seen.len() == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            assert_eq!(seen, [Some(5), Some(6)], "the small one's order");
        }
        intersect(Sets::new(), &mut |_| panic!("no set has no members"));
    }

    #[test]
    fn differences_go_the_cheaper_way() {
        let (large, small) = (numbers(0..1_000), numbers(0..10));
        let (large, small) = (large.view(), small.view());
        assert_eq!(way(large, &[small]), Way::Lookups);
        assert_eq!(way(large, &[small, small]), Way::Removals);
        assert_eq!(way(small, &[large, large, large]), Way::Lookups);
        assert_eq!(way(small, &[large, small]), Way::Empty);
        assert_eq!(difference_of(small, &[small], &LIMITS).view().len(), 0);
    }

    fn form(set: &NewSet) -> &'static str {
        match set {
            NewSet::Ints(_) => "intset",
            NewSet::Pack(_) => "listpack",
            NewSet::Table(_) => "hashtable",
        }
    }

    #[test]
    fn results_have_the_forms_of_redis() {
        let (few, many, more) = (numbers(0..10), numbers(0..400), numbers(0..600));
        let text = set_of(&["x"], &LIMITS);
        let pack = set_of(&["x", "1", "2"], &LIMITS);
        let half = |n: i32| if n < 300 { n.to_string() } else { format!("m{n}") };
        let large = set_of(&(0..600).map(half).collect::<Vec<_>>(), &LIMITS);
        let union = |sets: &[SetRef<'_>]| form(&union_of(sets, &LIMITS));
        assert_eq!(union(&[few.view(), many.view()]), "intset");
        assert_eq!(union(&[few.view(), text.view()]), "listpack");
        assert_eq!(union(&[many.view(), text.view()]), "hashtable");
        assert_eq!(union(&[more.view()]), "hashtable");
        let common = |sets: &[SetRef<'_>]| form(&intersection_of(Sets::from_slice(sets), &LIMITS));
        assert_eq!(common(&[few.view(), large.view()]), "intset");
        assert_eq!(common(&[large.view(), more.view()]), "intset", "integers of tables are found out");
        assert_eq!(common(&[pack.view(), pack.view()]), "listpack");
        assert_eq!(common(&[pack.view(), few.view()]), "intset");
        assert_eq!(common(&[large.view(), large.view()]), "hashtable");
        let rest =
            |first: &NewSet, others: &[SetRef<'_>]| form(&difference_of(first.view(), others, &LIMITS));
        assert_eq!(rest(&many, &[few.view()]), "intset");
        assert_eq!(rest(&large, &[more.view()]), "hashtable");
        assert_eq!(rest(&pack, &[few.view()]), "listpack");
        // By removals the result keeps the form that the first set needed.
        let nearly: Vec<String> = (0..600).filter(|n| *n != 7).map(|n| n.to_string()).collect();
        let (nearly, others) = (set_of(&nearly, &LIMITS), numbers(0..3));
        assert_eq!(rest(&more, &[nearly.view()]), "intset");
        assert_eq!(rest(&more, &[[others.view(); 5].as_slice(), &[nearly.view()]].concat()), "hashtable");
    }
}
