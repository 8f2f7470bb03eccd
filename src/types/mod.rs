//! What lists, hashes, sets, sorted sets and streams are, whatever form their values have: views to read a key's value,
//! and editors that keep its form within the configured limits.
//!
//! A small container is packed bytes in its key's block, a large one an object (`ds::object`). Each module here has a
//! view (`ListRef`) made from a block, which refuses a value of another kind, and a way to change it (`ListMut`) on top
//! of the store's editor.
//!
//! Must stay true: only an edit changes a form, never a read; a container that becomes empty takes its key along, unless
//! it is a stream; the limits are those of Redis, so that OBJECT ENCODING tells the same.
pub mod hash;
pub mod list;
pub mod set;
pub mod sorted_set;
pub mod stream;

/// Bytes of a packed value, whatever the settings allow; longer ones become objects.
const PACK_BYTES_MAX: usize = 1 << 30;
