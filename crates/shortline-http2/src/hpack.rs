//! HPACK (RFC 7541): header blocks as bytes, and as fields.

mod decoder;
mod encoder;
mod field;
mod huffman;
mod integer;
mod names;

pub use decoder::Decoder;
pub use encoder::Encoder;
pub use field::Field;

/// The size of a table where nothing else is said (RFC 9113 6.5.2). Ours never allow another.
pub const TABLE_BYTES: usize = 4096;
/// What an entry counts in addition to its name and value (RFC 7541 4.1).
const ENTRY_BYTES: usize = 32;

/// The bytes are not a header block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoBlock;
