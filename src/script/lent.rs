//! What is lent to the functions of `redis` while a script runs, by thread. (The macro's own type has no documentation.)
#![allow(missing_docs)]
use super::Bridge;
use super::host::Shared;

scoped_tls_hkt::scoped_thread_local! {
    /// Of the script that runs on this thread.
    pub static mut BRIDGE: for<'a> &'a mut (dyn Bridge + 'a)
}

scoped_tls_hkt::scoped_thread_local! {
    /// Of the engine that runs it.
    pub static SHARED: Shared
}
