//! The document of `linerate compare`: configurations compared with the first one.

mod document;
mod sentence;
mod text;

pub use document::CompareDocument;
#[cfg(feature = "schema")]
pub use document::compare_schema;
pub(crate) use sentence::sentence;
pub use text::text;
use text::unit;
pub(crate) use text::{
    PRIMARY_QUANTITY, change, dependent, group, is_shown, listed, not_compared, place_name, too_few,
};
