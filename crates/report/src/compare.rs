//! The document of `linerate compare`: configurations compared with the first one.

mod document;
mod text;

pub use document::CompareDocument;
#[cfg(feature = "schema")]
pub use document::compare_schema;
pub use text::text;
