//! The `perigee` binary: flags, then `server::boot`.
fn main() {}
