//! Places where threads meet: where what other threads do meanwhile can make a difference.
//!
//! A simulation runs the threads of a server on one, each on a fiber, and switches between them at these places. Only
//! builds with debug assertions look for it; in others nothing is left of this file.
use std::cell::Cell;

thread_local! {
    static HOOK: Cell<Option<fn()>> = const { Cell::new(None) };
}

/// Other threads may run here.
#[inline(always)]
pub fn meet() {
    if cfg!(debug_assertions)
        && let Some(hook) = HOOK.get()
    {
        hook();
    }
}

/// Has `hook` called wherever the calling thread meets others.
#[doc(hidden)]
pub fn on_meet(hook: Option<fn()>) {
    HOOK.set(hook);
}

#[cfg(test)]
mod tests {
    use super::*;

    thread_local! {
        static MET: Cell<u32> = const { Cell::new(0) };
    }

    #[test]
    fn the_hook_is_called_until_it_is_taken_away() {
        meet();
        on_meet(Some(|| MET.set(MET.get() + 1)));
        meet();
        meet();
        on_meet(None);
        meet();
        assert_eq!(MET.get(), 2);
    }
}
