//! The document of `linerate compare`: configurations compared with the first one.

mod document;
mod text;

use linerate_plan::{Candidate, ComparisonTable};

pub use document::CompareDocument;
#[cfg(feature = "schema")]
pub use document::compare_schema;
pub use text::text;

/// The compared configurations and the result.
#[derive(Debug)]
pub struct Compared {
    /// The configuration that the others are compared with.
    pub base: Candidate,
    /// The others, which `table` numbers in this order.
    pub others: Vec<Candidate>,
    /// The comparisons.
    pub table: ComparisonTable,
}
