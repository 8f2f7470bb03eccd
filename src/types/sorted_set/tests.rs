use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::algebra::{Aggregate, Source, Sources, Weighted};
use super::*;
use crate::host::Counters;
use crate::store::Store;
use crate::store::db::Found;
use crate::types::set::{Limits as SetLimits, NewSet};
use crate::wire::Key;

const KEY: &[u8] = b"key";

/// A store where sorted sets are large beyond 8 members, or with a member above 5 bytes.
fn store() -> Store {
    let mut settings = Settings::default();
    for (name, value) in [("zset-max-listpack-entries", "8"), ("zset-max-listpack-value", "5")] {
        settings.set(name.as_bytes(), &[value.as_bytes()]).unwrap();
    }
    Store::new(Arc::new(settings), Arc::new(Counters::new(0)))
}

fn edit<T>(store: &mut Store, f: impl FnOnce(&mut SortedSetMut<'_, '_>) -> T) -> T {
    store.edit(0, Key::new(KEY), |editor| f(&mut SortedSetMut::of(editor).unwrap()))
}

fn add(store: &mut Store, member: &str, score: f64) -> Outcome {
    edit(store, |set| set.add(member.as_bytes(), score, Rules::default()).unwrap())
}

/// Calls `f` with the sorted set; `None`: no such key.
fn with_view<T>(store: &Store, f: impl FnOnce(SortedSetRef<'_>) -> T) -> Option<T> {
    match store.find(0, Key::new(KEY), 0) {
        Found::Live(block) => Some(f(SortedSetRef::of(block).unwrap())),
        _ => None,
    }
}

fn is_small(store: &Store) -> Option<bool> {
    with_view(store, |set| matches!(set, SortedSetRef::Pack(_)))
}

fn listing(set: SortedSetRef<'_>) -> Vec<(String, f64)> {
    set.iter().map(|(member, score)| (String::from_utf8(member.to_vec()).unwrap(), score)).collect()
}

/// Members in their order.
fn in_order(model: &BTreeMap<String, f64>) -> Vec<(String, f64)> {
    let mut all: Vec<(String, f64)> = model.iter().map(|(member, score)| (member.clone(), *score)).collect();
    all.sort_by(|a, b| a.1.partial_cmp(&b.1).unwrap().then_with(|| a.0.as_bytes().cmp(b.0.as_bytes())));
    all
}

/// A new sorted set with these members.
fn made(members: &[(String, f64)], limits: Limits) -> NewSortedSet {
    let scored = members.iter().map(|(member, score)| (Element::of(member.as_bytes()), *score)).collect();
    NewSortedSet::of(&scored, limits)
}

const SMALL: Limits = Limits { entries: 1000, value_bytes: 1000 };
const LARGE: Limits = Limits { entries: 0, value_bytes: 0 };

fn member() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-c]{0,2}",
        3 => (-12_i64..40).prop_map(|n| n.to_string()),
        1 => proptest::sample::select(vec!["01", "-0", "longer than five bytes", "1.5", "99999999999"])
            .prop_map(String::from),
    ]
}

fn score() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => (-3_i32..4).prop_map(f64::from),
        2 => (-8_i32..8).prop_map(|n| f64::from(n) / 4.0),
        1 => proptest::sample::select(vec![f64::INFINITY, f64::NEG_INFINITY, 0.1, 1e17, 1e20, -1e-7, 5e18]),
    ]
}

fn rules() -> impl Strategy<Value = Rules> {
    prop_oneof![
        4 => Just(Rules::default()),
        1 => any::<(bool, bool, bool, bool, bool)>()
            .prop_map(|(nx, xx, gt, lt, incr)| Rules { nx, xx, gt, lt, incr }),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    Add(String, f64, Rules),
    Remove(String),
    RemoveRun(usize, usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (member(), score(), rules()).prop_map(|(member, score, rules)| Step::Add(member, score, rules)),
        2 => member().prop_map(Step::Remove),
        1 => (0_usize..20, 0_usize..4).prop_map(|(start, count)| Step::RemoveRun(start, count)),
    ]
}

/// What an addition does to a model.
fn add_to_model(
    model: &mut BTreeMap<String, f64>,
    member: &str,
    score: f64,
    rules: Rules,
) -> Result<Outcome, NotANumber> {
    let old = model.get(member).copied();
    let allowed = match old {
        None => !rules.xx,
        Some(_) => !rules.nx,
    };
    if !allowed {
        return Ok(Outcome::Refused);
    }
    let new = if rules.incr { old.unwrap_or(0.0) + score } else { score };
    if new.is_nan() {
        return Err(NotANumber);
    }
    match old {
        Some(old) if rules.gt && new <= old || rules.lt && new >= old => Ok(Outcome::Refused),
        Some(old) if new == old => Ok(Outcome::Same(new)),
        old => {
            model.insert(member.to_string(), new);
            Ok(if old.is_none() { Outcome::Added(new) } else { Outcome::Changed(new) })
        }
    }
}

fn apply(store: &mut Store, model: &mut BTreeMap<String, f64>, step: &Step) {
    match step {
        Step::Add(member, score, rules) => {
            let done = edit(store, |set| set.add(member.as_bytes(), *score, *rules));
            assert_eq!(done, add_to_model(model, member, *score, *rules), "{step:?}");
        }
        Step::Remove(member) => {
            let removed = edit(store, |set| set.remove(member.as_bytes()));
            assert_eq!(removed, model.remove(member).is_some());
        }
        Step::RemoveRun(start, count) => {
            let start = *start.min(&model.len());
            let run = start..(start + count).min(model.len());
            for (member, _) in in_order(model)[run.clone()].iter() {
                model.remove(member);
            }
            edit(store, |set| set.remove_run(run));
        }
    }
}

/// Everything that a view tells, against the members in order.
fn compare(set: SortedSetRef<'_>, all: &[(String, f64)]) {
    assert_eq!(listing(set), all);
    assert_eq!((set.len(), set.is_empty()), (all.len(), all.is_empty()));
    for (rank, (member, score)) in all.iter().enumerate() {
        assert_eq!(set.rank(member.as_bytes()), Some((rank, *score)));
        assert_eq!(set.score(member.as_bytes()), Some(*score));
        assert_eq!(set.score_of_element(Element::of(member.as_bytes())), Some(*score));
    }
    assert_eq!((set.rank(b"nobody"), set.score(b"nobody")), (None, None));
    for run in [0..all.len(), 1..all.len(), all.len() / 2..all.len(), 1..all.len() / 2, 0..0] {
        for way in [Way::Up, Way::Down] {
            let mut seen = Vec::new();
            set.for_run(run.clone(), way, |member, score| {
                seen.push((String::from_utf8(member.to_vec()).unwrap(), score.value()));
            });
            let mut wanted = all.get(run.clone()).unwrap_or_default().to_vec();
            if way == Way::Down {
                wanted.reverse();
            }
            assert_eq!(seen, wanted, "{run:?} {way:?}");
        }
    }
}

fn compare_ranges(set: SortedSetRef<'_>, all: &[(String, f64)], min: f64, max: f64) {
    for (min_open, max_open) in [(false, false), (true, false), (false, true), (true, true)] {
        let range = ScoreRange { min, min_open, max, max_open };
        let within = |score: f64| range.is_above_min(score) && range.is_below_max(score);
        let wanted = all.iter().filter(|(_, score)| within(*score)).count();
        let run = set.score_run(&range);
        assert_eq!(run.len(), wanted, "{range:?}");
        assert!(all[run].iter().all(|(_, score)| within(*score)));
    }
    let mut seen = Vec::new();
    let _ = set.walk_from_score(min, &mut |_, score| {
        seen.push(score);
        ControlFlow::Continue(())
    });
    let wanted: Vec<f64> = all.iter().map(|(_, score)| *score).filter(|score| *score >= min).collect();
    assert_eq!(seen, wanted);
}

proptest! {
    #[test]
    fn edits_agree_with_a_model(
        steps in proptest::collection::vec(step(), 1..40),
        min in score(),
        max in score(),
    ) {
        let (mut store, mut model) = (store(), BTreeMap::new());
        let mut large = false;
        for step in &steps {
            apply(&mut store, &mut model, step);
            large |= model.len() > 8 || model.keys().any(|member| member.len() > 5);
            large &= !model.is_empty();
            prop_assert_eq!(is_small(&store), (!model.is_empty()).then_some(!large));
            let all = in_order(&model);
            if let Some(()) = with_view(&store, |set| compare(set, &all)) {
                with_view(&store, |set| compare_ranges(set, &all, min, max));
            }
        }
    }

    #[test]
    fn both_forms_find_ranges_of_members(
        members in proptest::collection::btree_set(member(), 0..20),
        min in member(),
        max in member(),
    ) {
        let all: Vec<(String, f64)> = members.iter().map(|member| (member.clone(), 7.0)).collect();
        let (small, large) = (made(&all, SMALL), made(&all, LARGE));
        for (min, max) in [
            (format!("[{min}"), format!("[{max}")),
            (format!("({min}"), format!("({max}")),
            ("-".to_string(), format!("({max}")),
            (format!("[{min}"), "+".to_string()),
            ("+".to_string(), "-".to_string()),
        ] {
            let range = LexRange::parse(min.as_bytes(), max.as_bytes()).unwrap();
            let within = |member: &str| {
                let member = Element::of(member.as_bytes());
                range.is_above_min(member) && range.is_below_max(member)
            };
            let wanted: Vec<&String> = members.iter().filter(|member| within(member)).collect();
            for set in [small.view(), large.view()] {
                for way in [Way::Up, Way::Down] {
                    let run = set.lex_run(&range, way);
                    let found: Vec<&String> = all[run].iter().map(|(member, _)| member).collect();
                    prop_assert_eq!(&found, &wanted);
                }
            }
        }
    }

    #[test]
    fn algebra_agrees_with_a_model(
        sets in proptest::collection::vec((proptest::collection::btree_map(member(), score(), 0..12), score(), 0..3), 1..5),
        aggregate in proptest::sample::select(vec![Aggregate::Sum, Aggregate::Min, Aggregate::Max]),
    ) {
        check_algebra(&sets, aggregate);
    }
}

type Model = BTreeMap<String, f64>;

fn check_algebra(sets: &[(Model, f64, i32)], aggregate: Aggregate) {
    let limits = SetLimits { ints: 4, entries: 6, value_bytes: 5 };
    let plain: Vec<NewSet> = sets
        .iter()
        .map(|(members, ..)| {
            let mut set = NewSet::of_ints();
            for member in members.keys() {
                set.add(Element::of(member.as_bytes()), &limits);
            }
            set
        })
        .collect();
    let sorted: Vec<NewSortedSet> = sets
        .iter()
        .map(|(members, _, form)| made(&in_order(members), if *form == 1 { LARGE } else { SMALL }))
        .collect();
    let sources: Sources<'_> = (0..sets.len())
        .map(|at| {
            let (_, weight, form) = &sets[at];
            let source = match form {
                0 => Source::Set(plain[at].view()),
                _ => Source::Sorted(sorted[at].view()),
            };
            Weighted { source, weight: *weight }
        })
        .collect();
    // The models, scores 1 for sets, the smallest first.
    let mut models: Vec<(Model, f64)> = sets
        .iter()
        .map(|(members, weight, form)| {
            let score = |score: f64| if *form == 0 { 1.0 } else { score };
            (members.iter().map(|(member, own)| (member.clone(), score(*own))).collect(), *weight)
        })
        .collect();
    let first = models[0].clone();
    let others: Vec<Model> = models[1..].iter().map(|(model, _)| model.clone()).collect();
    models.sort_by_key(|(model, _)| model.len());
    let (mut union, mut common): (Model, Model) = (Model::new(), Model::new());
    for (model, weight) in &models {
        for (member, score) in model {
            let weighted = if (score * weight).is_nan() { 0.0 } else { score * weight };
            let joined = match (union.get(member), aggregate) {
                (None, _) => weighted,
                (Some(so_far), Aggregate::Sum) if (so_far + weighted).is_nan() => 0.0,
                (Some(so_far), Aggregate::Sum) => so_far + weighted,
                (Some(so_far), Aggregate::Min) => so_far.min(weighted),
                (Some(so_far), Aggregate::Max) => so_far.max(weighted),
            };
            union.insert(member.clone(), joined);
        }
    }
    for member in first.0.keys().filter(|member| models.iter().all(|(model, _)| model.contains_key(*member)))
    {
        common.insert(member.clone(), union[member]);
    }
    let difference: Model = first
        .0
        .iter()
        .filter(|(m, _)| others.iter().all(|o| !o.contains_key(*m)))
        .map(|(m, s)| (m.clone(), *s))
        .collect();
    let texts = |found: algebra::Scored<'_>| -> Vec<(String, f64)> {
        found.into_iter().map(|(m, s)| (String::from_utf8(m.to_vec()).unwrap(), s)).collect()
    };
    assert_eq!(texts(algebra::union(sources.clone(), aggregate)), in_order(&union));
    // A score without a value joins differently in an intersection, where only sums are repaired.
    let repaired = models.iter().any(|(m, w)| m.values().any(|s| (s * w).is_nan()));
    if !repaired {
        assert_eq!(texts(algebra::intersection(sources.clone(), aggregate)), in_order(&common));
    }
    for limit in [0, 1, 3] {
        let wanted = if limit == 0 { common.len() } else { common.len().min(limit) };
        assert_eq!(algebra::intersection_len(sources.clone(), limit), wanted);
    }
    assert_eq!(texts(algebra::difference(&sources)), in_order(&difference));
}

#[test]
fn a_small_set_has_the_bytes_of_a_dump() {
    let mut store = store();
    for (member, score) in
        [("a", 1.0), ("b", 0.1), ("7", -0.0), ("c", f64::INFINITY), ("d", 1e18), ("e", 1e19)]
    {
        add(&mut store, member, score);
    }
    let Found::Live(block) = store.find(0, Key::new(KEY), 0) else { panic!("there is a key") };
    let Value::Packed(Packing::SortedSet, stored) = block.value() else { panic!("it is small") };
    let texts: Vec<Element<'_>> = Listpack::new(stored).iter().map(|(_, element)| element).collect();
    let bytes = |text: &'static str| Element::Bytes(text.as_bytes());
    assert_eq!(
        texts,
        [
            Element::Int(7),
            Element::Int(0),
            bytes("b"),
            bytes("0.1"),
            bytes("a"),
            Element::Int(1),
            bytes("d"),
            Element::Int(1_000_000_000_000_000_000),
            bytes("e"),
            bytes("1e+19"),
            bytes("c"),
            bytes("inf"),
        ]
    );
}

#[test]
fn forms_change_when_they_do_in_redis() {
    // A member that is too long, or one too many.
    let mut sets = store();
    add(&mut sets, "12345", 1.0);
    assert_eq!(is_small(&sets), Some(true));
    add(&mut sets, "123456", 1.0);
    assert_eq!(is_small(&sets), Some(false));
    // Never back.
    edit(&mut sets, |set| set.remove(b"123456"));
    assert_eq!(is_small(&sets), Some(false));
    edit(&mut sets, |set| set.remove(b"12345"));
    assert_eq!(is_small(&sets), None);
    add(&mut sets, "x", 1.0);
    assert_eq!(is_small(&sets), Some(true));
    // Many additions of one member.
    edit(&mut sets, |set| set.expect(9));
    assert_eq!(is_small(&sets), Some(false));
    let mut sets = store();
    edit(&mut sets, |set| {
        set.expect(9);
        set.add(b"x", 1.0, Rules::default())
    })
    .unwrap();
    assert_eq!(is_small(&sets), Some(false));
    // What is stored as a whole.
    let members =
        |count: usize| -> Vec<(String, f64)> { (0..count).map(|n| (n.to_string(), n as f64)).collect() };
    let limits = Limits { entries: 8, value_bytes: 5 };
    assert!(matches!(made(&members(8), limits).view(), SortedSetRef::Pack(_)));
    assert!(matches!(made(&members(9), limits).view(), SortedSetRef::Table(_)));
    assert!(matches!(made(&[("123456".into(), 1.0)], limits).view(), SortedSetRef::Table(_)));
}

#[test]
fn minus_zero_lives_in_large_sets_alone() {
    let is_minus = |set: &NewSortedSet| set.view().score(b"a").unwrap().is_sign_negative();
    let limits = Limits { entries: 1, value_bytes: 5 };
    let zero = vec![(Element::Bytes(b"a"), -0.0)];
    assert!(!is_minus(&NewSortedSet::of(&zero, limits)));
    assert!(is_minus(&NewSortedSet::of(&zero, LARGE)));
    // Small first, then large.
    let mut set = NewSortedSet::new(limits, 0);
    set.push(zero[0].0, zero[0].1);
    set.push(Element::Bytes(b"b"), 1.0);
    assert!(matches!(set.view(), SortedSetRef::Table(_)) && !is_minus(&set));
    let long = vec![zero[0], (Element::Bytes(b"longer"), 1.0)];
    assert!(is_minus(&NewSortedSet::of(&long, limits)));
}

#[test]
fn only_changes_are_reported() {
    let mut store = store();
    let dirty = |store: &Store| store.counters.dirty.get();
    add(&mut store, "a", 1.0);
    add(&mut store, "a", 1.0);
    add(&mut store, "a", 2.0);
    edit(&mut store, |set| set.remove(b"nobody"));
    let refused = edit(&mut store, |set| set.add(b"b", 1.0, Rules { xx: true, ..Rules::default() }));
    assert_eq!((refused, dirty(&store)), (Ok(Outcome::Refused), 2));
    add(&mut store, "b", 1.0);
    edit(&mut store, |set| set.remove_run(0..2));
    assert_eq!((is_small(&store), dirty(&store)), (None, 5));
}

#[test]
fn random_members_are_members_all_likely() {
    let all: Vec<(String, f64)> = (0..40).map(|n| (format!("{:02}", n), f64::from(n))).collect();
    for limits in [SMALL, LARGE] {
        let set = made(&all, limits);
        let view = set.view();
        let mut counts = BTreeMap::new();
        let mut note = |member: Element<'_>, score: Score<'_>| {
            assert_eq!(member.with_text(|text| view.score(text)), Some(score.value()));
            *counts.entry(member.to_vec()).or_insert(0) += 1;
        };
        view.random_repeated(8_000, &mut note);
        (0..2_000).for_each(|_| view.random_repeated(1, &mut note));
        (0..500).for_each(|_| view.random_distinct(10, &mut note));
        (0..250).for_each(|_| view.random_distinct(20, &mut note));
        // 500 are expected of each; ten standard deviations.
        assert!(counts.len() == 40 && counts.values().all(|n| (280..720).contains(n)), "{counts:?}");
        for count in [0, 1, 12, 13, 39, 40, 41, usize::MAX] {
            let mut seen = std::collections::BTreeSet::new();
            view.random_distinct(count, &mut |member, _| assert!(seen.insert(member.to_vec())));
            assert_eq!(seen.len(), count.min(40));
        }
    }
}

#[test]
fn walks_meet_every_member() {
    let all: Vec<(String, f64)> = (0..300).map(|n| (format!("{:03}", n), f64::from(n))).collect();
    for limits in [SMALL, LARGE] {
        let set = made(&all, limits);
        let (mut cursor, mut seen) = (0, BTreeMap::new());
        loop {
            cursor = set.view().scan(cursor, 5, &mut |member, score| {
                seen.insert(String::from_utf8(member.to_vec()).unwrap(), score.value());
            });
            if cursor == 0 {
                break;
            }
        }
        assert_eq!(in_order(&seen), all);
    }
}

#[test]
fn limits_follow_the_settings() {
    let mut settings = Settings::default();
    let limits = Limits::of(&settings);
    assert_eq!((limits.entries, limits.value_bytes), (128, 64));
    settings.set(b"zset-max-ziplist-entries", &[b"7"]).unwrap();
    settings.set(b"zset-max-listpack-value", &[b"1kb"]).unwrap();
    let limits = Limits::of(&settings);
    assert_eq!((limits.entries, limits.value_bytes), (7, 1024));
}

#[test]
fn other_values_are_refused() {
    assert!(SortedSetRef::of_value(Value::Packed(Packing::Set, &[0, 0])).is_none());
    let list = Value::Packed(Packing::List, &[0, 0]);
    assert!(matches!(Source::of(Some(list)), Err(Error::WrongType)));
    assert!(matches!(Source::of(None), Ok(Source::Missing)));
    assert!(matches!(Source::of(Some(Value::Packed(Packing::Set, &[0, 0]))), Ok(Source::Set(_))));
}
