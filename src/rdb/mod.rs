//! The bytes of Redis's snapshot format (RDB), the format of DUMP payloads and of snapshot files.
//!
//! Above `store`, of which only `file` knows. Whatever is read is taken for hostile: no panic, and nothing reserved in
//! proportion to a claim that the input cannot back. `reader` and `writer` have the scalars, `crc64` its checksum
//! (compression is `ds::lzf`), `payload` the envelope of DUMP, `legacy` the packed blobs of old servers, `types` the
//! numbers and layouts of all value types, `value` the values as they are in memory, `file` what stands around them in a
//! file.
pub mod crc64;
pub mod file;
pub mod legacy;
pub mod payload;
pub mod reader;
pub mod skip;
pub mod types;
pub mod value;
pub mod writer;

pub use reader::{Corrupt, Reader};
pub use types::ValueType;
pub use writer::Writer;
