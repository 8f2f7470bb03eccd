//! What growth each documented order permits, and the verdict over measured costs.
//!
//! The thresholds are generous: a wrong order misses them by tens or hundreds, a slow cache by less than two.
use std::fmt::Write as _;

/// How a command's cost may grow with the size of what it works on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    /// O(1), or O(k) for a k that stays.
    Constant,
    /// O(log n), also with a k that stays.
    Log,
    /// O(n) as documented, but by nodes of many elements: a walk over the elements themselves is too slow.
    Nodes,
    /// O(n).
    Linear,
}

/// Growth permitted to [`Order::Constant`]: what was in the cache no longer is.
const CONSTANT_GROWTH_MAX: f64 = 4.0;
/// Growth permitted to [`Order::Log`]: twice as many steps from a thousand to a million, and the cache.
const LOG_GROWTH_MAX: f64 = 6.0;
/// Slack of the orders that grow with the size, for the same reason.
const LINEAR_SLACK: f64 = 2.5;
/// Elements that share one step of [`Order::Nodes`], at least.
const NODE_ELEMENTS_MIN: f64 = 32.0;

/// A command's cost below this counts as this, for each element that it visits: in a small place all of them are in
/// the cache, in a large one each step to one is a miss, so a ratio tells nothing there. A nanosecond for each of a
/// million elements is a thousand times more.
const FLOOR_NS: f64 = 1_000.0;
/// The same for an element of a filling, which shares a command with others.
const FILLING_FLOOR_NS: f64 = 250.0;

impl Order {
    /// The permitted ratio of costs when sizes have the ratio `sizes`.
    pub fn growth_max(self, sizes: f64) -> f64 {
        match self {
            Order::Constant => CONSTANT_GROWTH_MAX,
            Order::Log => LOG_GROWTH_MAX,
            Order::Nodes => LINEAR_SLACK * (sizes / NODE_ELEMENTS_MIN).max(CONSTANT_GROWTH_MAX),
            Order::Linear => LINEAR_SLACK * sizes,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Order::Constant => "O(1)",
            Order::Log => "O(log n)",
            Order::Nodes => "O(n/node)",
            Order::Linear => "O(n)",
        }
    }
}

/// The costs of one case.
#[derive(Clone, Debug)]
pub struct Costs {
    /// What was measured.
    pub name: String,
    /// What is documented.
    pub order: Order,
    /// A cost below this counts as this.
    pub floor_ns: f64,
    /// Size and cost in nanoseconds, by ascending size.
    pub points: Vec<(usize, f64)>,
}

impl Costs {
    /// A command that visits a number of elements, far from each other; not measured yet.
    pub fn of_command(name: &str, order: Order, visits: usize) -> Costs {
        Costs { name: name.into(), order, floor_ns: FLOOR_NS * visits as f64, points: Vec::new() }
    }

    /// An element of a filling; not measured yet.
    pub fn of_filling(command: &str, order: Order) -> Costs {
        Costs { name: format!("filling by {command}"), order, floor_ns: FILLING_FLOOR_NS, points: Vec::new() }
    }

    /// The cost at the largest size over the cost at the smallest.
    pub fn growth(&self) -> f64 {
        let cost = |point: Option<&(usize, f64)>| point.map_or(0.0, |p| p.1).max(self.floor_ns);
        cost(self.points.last()) / cost(self.points.first())
    }

    /// The growth that the order permits.
    pub fn growth_max(&self) -> f64 {
        let size = |point: Option<&(usize, f64)>| point.map_or(1.0, |p| p.0 as f64);
        self.order.growth_max(size(self.points.last()) / size(self.points.first()))
    }

    /// Whether the costs keep to the order.
    pub fn is_fine(&self) -> bool {
        self.growth() <= self.growth_max()
    }
}

/// Costs as a table, the refused ones marked.
pub fn table(all: &[Costs]) -> String {
    let mut text =
        format!("  {:<72} {:<10} {:>8} {:>8}  cost by size\n", "case", "order", "growth", "at most");
    for costs in all {
        let mark = if costs.is_fine() { ' ' } else { '!' };
        let (name, order) = (&costs.name, costs.order.name());
        let _ = write!(
            text,
            "{mark} {name:<72} {order:<10} {:>8.1} {:>8.1} ",
            costs.growth(),
            costs.growth_max()
        );
        for (size, ns) in &costs.points {
            let _ = write!(text, " {size}: {:.2} us", ns / 1e3);
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(order: Order, points: &[(usize, f64)]) -> Costs {
        Costs { points: points.to_vec(), ..Costs::of_command("X", order, 1) }
    }

    fn grows(order: Order, from: f64, to: f64) -> bool {
        costs(order, &[(1_000, from), (32_000, from), (1_000_000, to)]).is_fine()
    }

    #[test]
    fn each_order_is_told_from_the_next() {
        let us = 1e3;
        let linear = 1000.0;
        for order in [Order::Constant, Order::Log, Order::Nodes, Order::Linear] {
            assert!(grows(order, 2.0 * us, 2.0 * us));
            assert!(grows(order, 2.0 * us, us), "getting cheaper is fine");
        }
        let twice_the_steps = 2.0 * 1.5;
        assert!(grows(Order::Log, us, us * twice_the_steps));
        assert!(!grows(Order::Constant, us, us * 5.0));
        let square_root = 31.0;
        assert!(!grows(Order::Log, us, us * square_root));
        assert!(grows(Order::Nodes, us, us * square_root));
        for order in [Order::Constant, Order::Log, Order::Nodes] {
            assert!(!grows(order, us, us * linear), "{order:?}");
        }
        assert!(grows(Order::Linear, us, us * linear));
        let quadratic = linear * linear;
        assert!(!grows(Order::Linear, us, us * quadratic));
    }

    #[test]
    fn below_the_floor_a_ratio_tells_nothing() {
        assert!(grows(Order::Constant, 20.0, 3_900.0));
        assert!(!grows(Order::Constant, 20.0, 4_100.0));
        assert!(!grows(Order::Constant, 1_100.0, 4_600.0));
        let points = vec![(1_000, 20.0), (1_000_000, 39_000.0)];
        let fine = |visits| {
            Costs { points: points.clone(), ..Costs::of_command("X", Order::Constant, visits) }.is_fine()
        };
        assert!(fine(10) && !fine(9));
        let filling = |ns| Costs {
            points: vec![(1_000, 20.0), (1_000_000, ns)],
            ..Costs::of_filling("X", Order::Constant)
        };
        assert!(filling(990.0).is_fine() && !filling(1_010.0).is_fine());
    }

    #[test]
    fn the_refused_are_marked() {
        let fine = costs(Order::Linear, &[(10, 1e3), (100, 1e4)]);
        let slow = costs(Order::Constant, &[(10, 1e3), (100, 1e4)]);
        let table = table(&[fine, slow]);
        let marks: Vec<&str> = table.lines().skip(1).map(|l| &l[..1]).collect();
        assert_eq!(marks, [" ", "!"]);
        assert!(table.contains("10: 1.00 us 100: 10.00 us"), "{table}");
    }
}
