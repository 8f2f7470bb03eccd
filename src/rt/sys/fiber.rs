//! Fibers: code on a stack of its own that can be set aside in the middle and taken up again later, on the same thread.
//!
//! Must stay true: a fiber is resumed on the thread that made it; what it has on its stack stays alive as long as it is
//! not done. A fiber that is dropped before it is done leaks its stack and everything on it.
use std::cell::{Cell, RefCell};
use std::ptr;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

/// Bytes of a fiber's stack; only what is used takes memory. What scripts can do to it decides how many: Lua nests 200
/// calls through C functions, of which `gsub` takes more than eight KiB, and matches patterns by recursion.
pub const STACK_BYTES: usize = 4 << 20;
/// Stacks that a thread keeps for use again.
const STACKS_KEEP: usize = 4;

thread_local! {
    /// The running fiber's way back to its resumer; null outside of fibers.
    static CURRENT: Cell<*const Yielder<(), ()>> = const { Cell::new(ptr::null()) };
    static STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

/// A piece of work on a stack of its own.
pub struct Fiber<T: 'static>(Option<Coroutine<(), (), T>>);

impl<T: 'static> Fiber<T> {
    /// Work that begins with the first [`Fiber::resume`].
    ///
    /// # Panics
    /// When the system has no memory for a stack.
    pub fn new(work: impl FnOnce() -> T + 'static) -> Fiber<T> {
        let stack = STACKS.with_borrow_mut(Vec::pop);
        let stack =
            stack.unwrap_or_else(|| DefaultStack::new(STACK_BYTES).expect("there is memory for a stack"));
        Fiber(Some(Coroutine::with_stack(stack, |yielder: &Yielder<(), ()>, ()| {
            CURRENT.set(yielder);
            work()
        })))
    }

    /// Runs on until the work is done or set aside (`None`).
    pub fn resume(&mut self) -> Option<T> {
        let outer = CURRENT.get();
        let result = self.0.as_mut()?.resume(());
        CURRENT.set(outer);
        let CoroutineResult::Return(value) = result else { return None };
        if let Some(done) = self.0.take() {
            STACKS.with_borrow_mut(|stacks| {
                if stacks.len() < STACKS_KEEP {
                    stacks.push(done.into_stack());
                }
            });
        }
        Some(value)
    }
}

impl<T: 'static> Drop for Fiber<T> {
    fn drop(&mut self) {
        // To run its destructors it would have to be unwound, which this process does not do.
        std::mem::forget(self.0.take());
    }
}

/// Sets the running fiber aside until it is resumed. `false`, at once: this is no fiber.
pub fn set_aside() -> bool {
    let yielder = CURRENT.get();
    if yielder.is_null() {
        return false;
    }
    // SAFETY: CURRENT is not null only while the fiber that set it runs, and its yielder lives on its stack until it is
    // done. Checked by: `fibers_take_turns`.
    unsafe { (*yielder).suspend(()) };
    CURRENT.set(yielder);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    #[test]
    fn fibers_take_turns() {
        let log = Rc::new(RefCell::new(Vec::new()));
        let make = |name: &'static str| {
            let log = log.clone();
            Fiber::new(move || {
                for step in 0..3 {
                    log.borrow_mut().push((name, step));
                    assert!(set_aside());
                }
                name
            })
        };
        let (mut a, mut b) = (make("a"), make("b"));
        let mut done = Vec::new();
        for _ in 0..4 {
            done.extend(a.resume());
            done.extend(b.resume());
            assert!(!set_aside(), "this is no fiber");
        }
        assert_eq!(done, ["a", "b"]);
        let steps: Vec<usize> = log.borrow().iter().map(|(_, step)| *step).collect();
        assert_eq!(steps, [0, 0, 1, 1, 2, 2]);
        assert_eq!(a.resume(), None, "it is done");
    }

    #[test]
    fn fibers_may_be_made_in_fibers_and_left_alone() {
        let mut outer = Fiber::new(|| {
            let mut inner = Fiber::new(set_aside);
            assert_eq!(inner.resume(), None);
            assert!(set_aside(), "the outer one");
            inner.resume()
        });
        assert_eq!(outer.resume(), None);
        assert_eq!(outer.resume(), Some(Some(true)));
        let mut left = Fiber::new(set_aside);
        assert_eq!(left.resume(), None);
        drop(left);
    }
}
