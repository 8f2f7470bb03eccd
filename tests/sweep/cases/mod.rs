//! The families: how their data are built, and the commands that are measured on them with the documented order.
//!
//! A case leaves a place as large as it was: what adds an element first takes one away, and the other way round.
pub mod hashes;
pub mod lists;
pub mod sets;
pub mod streams;
pub mod strings;
pub mod zsets;

use super::verdict::Order::{self, Constant};

/// The sizes of a family that is quick to build.
pub const MILLION: [usize; 3] = [1_000, 32_000, 1_000_000];
/// The sizes of a family that is slow to build.
pub const QUARTER: [usize; 3] = [1_000, 32_000, 256_000];
/// Sizes enough to tell a linear order.
const SHORT: [usize; 3] = [1_000, 4_000, 32_000];

/// A step of building a place.
pub struct Fill {
    /// The command.
    pub head: &'static str,
    /// What follows for each element; without it the command is given once.
    pub each: Option<&'static str>,
    /// Elements that one command carries.
    pub per_command: usize,
    /// The order of one element's cost, spread over the whole filling.
    pub order: Order,
}

impl Fill {
    /// Adds all elements, many with each command.
    pub const fn many(head: &'static str, each: &'static str) -> Fill {
        Fill { head, each: Some(each), per_command: 500, order: Constant }
    }

    /// Adds all elements, one with each command.
    pub const fn single(head: &'static str, each: &'static str) -> Fill {
        Fill { head, each: Some(each), per_command: 1, order: Constant }
    }

    /// Gives a command once.
    pub const fn once(command: &'static str) -> Fill {
        Fill { head: command, each: None, per_command: 0, order: Constant }
    }

    /// With another order.
    pub const fn of(self, order: Order) -> Fill {
        Fill { order, ..self }
    }
}

/// A command with its order.
pub struct Case {
    /// The documented order.
    pub order: Order,
    /// The command whose cost is taken.
    pub measured: &'static str,
    /// Commands before it in every round, `;` between them.
    pub before: &'static str,
    /// Elements that the command visits, far from each other; a random choice visits two, as a try may miss.
    pub visits: usize,
    /// An empty or zero reply is as good as any.
    pub may_find_nothing: bool,
}

impl Case {
    /// A case without preparations that always finds something.
    pub const fn new(order: Order, measured: &'static str) -> Case {
        Case { order, measured, before: "", visits: 1, may_find_nothing: false }
    }

    /// With commands before it, which must not be the measured one.
    pub const fn after(self, before: &'static str) -> Case {
        Case { before, ..self }
    }

    /// With a number of elements that it visits, far from each other.
    pub const fn visits(self, visits: usize) -> Case {
        Case { visits, ..self }
    }

    /// Nothing may be found.
    pub const fn or_nothing(self) -> Case {
        Case { may_find_nothing: true, ..self }
    }

    /// All commands of a round, the measured one last.
    pub fn lines(&self) -> impl Iterator<Item = &'static str> {
        self.before.split(';').map(str::trim).filter(|l| !l.is_empty()).chain([self.measured])
    }

    /// Whether every round makes a new element.
    pub fn makes_elements(&self) -> bool {
        self.lines().any(|line| line.contains("{next"))
    }

    /// Whether it walks by a cursor.
    pub fn is_scan(&self) -> bool {
        self.measured.contains("{cursor}")
    }
}

/// Data and the cases on them.
pub struct Family {
    /// Its name in reports.
    pub name: &'static str,
    /// Numbers of elements, ascending.
    pub sizes: [usize; 3],
    /// How a place is built.
    pub fills: &'static [Fill],
    /// What is measured.
    pub cases: &'static [Case],
}

/// The linear ones among the cases of the two families below.
pub const WRONG: [&str; 2] = ["BITCOUNT text", "HGETALL hash"];

/// Constant and linear commands on a string, all claimed to be constant.
pub static WRONG_STRINGS: Family = Family {
    name: "wrong orders of strings",
    sizes: SHORT,
    fills: &[Fill::once("SETRANGE text {bytes} x")],
    cases: &[Case::new(Constant, "BITCOUNT text"), Case::new(Constant, "GETRANGE text {byte} {byte+9}")],
};

/// Constant and linear commands on a hash, all claimed to be constant.
pub static WRONG_HASHES: Family = Family {
    name: "wrong orders of hashes",
    sizes: SHORT,
    fills: &[Fill::many("HSET hash", "f{next} 1")],
    cases: &[Case::new(Constant, "HGETALL hash"), Case::new(Constant, "HGET hash f{any}")],
};
