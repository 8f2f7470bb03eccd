//! The size sweep: a command's cost may not grow faster with the size of the data than is documented.
//!
//! Every case is measured over a thousand, 32 thousand and a million elements (some families stop at a quarter of a
//! million, which is quicker to build), in three databases of one server. Costs that grow too fast are measured again,
//! up to three times, before the test fails with the table of costs. Commands that the server does not know are
//! skipped, and named on the standard error.
//!
//! `PERIGEE_SWEEP_SERVER` names another server, such as a `redis-server`: what the thresholds refuse there, they
//! refuse wrongly. `PERIGEE_SWEEP_TABLE=1` prints the tables always.
#[path = "../support/mod.rs"]
mod support;

mod cases;
mod measure;
mod template;
mod verdict;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cases::{Case, Family, Fill};
use measure::{Bench, Unknown};
use support::Server;
use template::Place;
use verdict::{Costs, table};

/// How often costs are measured again before they are refused.
const SECOND_LOOKS: u64 = 3;

/// One family at a time: they would disturb each other.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn start() -> Server {
    match std::env::var_os("PERIGEE_SWEEP_SERVER").filter(|path| !path.is_empty()) {
        Some(path) => {
            Server::of(Path::new(&path), &["--save", "", "--appendonly", "no", "--bind", "127.0.0.1"])
        }
        None => Server::start(1, &[]),
    }
}

/// Says something that the test harness does not hide.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// A family with its data on a server.
struct Sweep {
    family: &'static Family,
    bench: Bench,
    places: Vec<Place>,
    skipped: BTreeSet<String>,
}

impl Sweep {
    /// Fills the places. `None`: the server does not know how.
    fn build(family: &'static Family) -> Option<(Sweep, Vec<Costs>)> {
        let places = family.sizes.iter().enumerate().map(|(db, size)| Place::new(db, *size)).collect();
        let mut sweep = Sweep { family, bench: Bench::new(start()), places, skipped: BTreeSet::new() };
        match sweep.fill_all() {
            Ok(costs) => Some((sweep, costs)),
            Err(Unknown(command)) => {
                say(&format!("*** sweep: {} skipped, the server does not know {command}", family.name));
                None
            }
        }
    }

    fn fill_all(&mut self) -> Result<Vec<Costs>, Unknown> {
        let costs = |f: &Fill| Costs::of_filling(f.head, f.order);
        let mut all: Vec<Costs> = self.family.fills.iter().map(costs).collect();
        for place in &mut self.places {
            self.bench.clear(place);
            for (fill, costs) in self.family.fills.iter().zip(&mut all) {
                costs.points.push((place.size, self.bench.fill(place, fill)?));
            }
        }
        // The smallest place is filled within a few commands, which tells little about one element.
        for costs in &mut all {
            costs.points.remove(0);
        }
        all.retain(|costs| costs.points.iter().any(|p| p.1 > 0.0));
        Ok(all)
    }

    fn measure(&mut self, case: &Case) -> Result<Costs, Unknown> {
        let mut costs = Costs::of_command(case.measured, case.order, case.visits);
        for place in &mut self.places {
            costs.points.push((place.size, self.bench.cost_ns(place, case)?));
        }
        for look in 0..SECOND_LOOKS {
            if costs.is_fine() {
                break;
            }
            std::thread::sleep(Duration::from_millis(100 * look));
            for (place, point) in self.places.iter_mut().zip(&mut costs.points) {
                point.1 = point.1.min(self.bench.cost_ns(place, case)?);
            }
        }
        Ok(costs)
    }

    /// Measures cases; those that the server knows.
    fn measure_all(&mut self, cases: &[Case]) -> Vec<Costs> {
        let mut all = Vec::new();
        for case in cases {
            match self.measure(case) {
                Ok(costs) => all.push(costs),
                Err(Unknown(command)) => drop(self.skipped.insert(command)),
            }
        }
        all
    }

    /// Fills again while a filling seems too slow.
    fn look_again_at_fills(&mut self, fills: &mut [Costs]) {
        for _ in 0..SECOND_LOOKS {
            if fills.iter().all(Costs::is_fine) {
                break;
            }
            let again = self.fill_all().unwrap_or_else(|e| panic!("{e:?} was known before"));
            for (costs, again) in fills.iter_mut().zip(again) {
                for (point, again) in costs.points.iter_mut().zip(again.points) {
                    point.1 = point.1.min(again.1);
                }
            }
        }
    }
}

fn sweep(family: &'static Family) {
    let _turn = alone();
    let Some((mut sweep, mut all)) = Sweep::build(family) else { return };
    sweep.look_again_at_fills(&mut all);
    all.extend(sweep.measure_all(family.cases));
    if !sweep.skipped.is_empty() {
        let names: Vec<&str> = sweep.skipped.iter().map(String::as_str).collect();
        say(&format!("*** sweep: {}: skipped, the server does not know {}", family.name, names.join(", ")));
    }
    let table = table(&all);
    if std::env::var("PERIGEE_SWEEP_TABLE").is_ok_and(|v| v == "1") {
        say(&format!("{}\n{table}", family.name));
    }
    let refused = all.iter().filter(|costs| !costs.is_fine()).count();
    assert!(refused == 0, "{}: costs grow faster than documented:\n{table}", family.name);
}

#[test]
fn strings() {
    sweep(&cases::strings::STRINGS);
}

#[test]
fn keyspace() {
    sweep(&cases::strings::KEYSPACE);
}

#[test]
fn lists() {
    sweep(&cases::lists::LISTS);
}

#[test]
fn hashes() {
    sweep(&cases::hashes::HASHES);
}

#[test]
fn hashes_whose_fields_expire() {
    sweep(&cases::hashes::EXPIRING);
}

#[test]
fn sets() {
    sweep(&cases::sets::SETS);
}

#[test]
fn sorted_sets() {
    sweep(&cases::zsets::BY_SCORE);
}

#[test]
fn sorted_sets_by_text() {
    sweep(&cases::zsets::BY_TEXT);
}

#[test]
fn geo() {
    sweep(&cases::zsets::GEO);
}

#[test]
fn streams() {
    sweep(&cases::streams::STREAMS);
}

#[test]
fn groups() {
    sweep(&cases::streams::GROUPS);
}

#[test]
fn hyperloglogs() {
    sweep(&cases::strings::HYPERLOGLOGS);
}

/// Commands that are linear, claimed to be constant: the sweep must refuse each of them, and nothing else.
#[test]
fn a_wrong_order_is_caught() {
    let _turn = alone();
    for family in [&cases::WRONG_STRINGS, &cases::WRONG_HASHES] {
        let Some((mut sweep, _)) = Sweep::build(family) else { continue };
        for costs in sweep.measure_all(family.cases) {
            let is_wrong = cases::WRONG.contains(&costs.name.as_str());
            assert_eq!(costs.is_fine(), !is_wrong, "\n{}", table(&[costs]));
        }
    }
}
