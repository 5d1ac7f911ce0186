//! TOML files that people write: a tree in which every key and value knows its place, so that every mistake has one.
//!
//! [`parse`] makes a [`Table`] of a text. Who reads it notes what is wrong in [`Mistakes`], each with its [`SourcePosition`], and
//! goes on; [`hint`] names the known word that was probably meant. Topologies and plans are read this way.

mod bundled;
mod mistake;
mod name;
mod suggest;
mod tree;

pub use bundled::Bundled;
pub use mistake::{Lines, Mistake, Mistakes, SourcePosition};
pub use name::check_name;
pub use suggest::hint;
pub use tree::{Content, Entry, MAX_FILE_BYTES, Table, Value, parse};
