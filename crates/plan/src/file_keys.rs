//! Tables of keys, for files whose values are written as those of plans: one declaration gives the reader, its messages,
//! the JSON Schema and the reference page.

pub use crate::keys::{Fields, PlanKey, key, named_tables};
pub use crate::kind::{PlanValueKind, texts};
pub use crate::knobs::read_test;
pub use crate::reference::section;
pub use crate::schema::{NAME_PATTERN, object, properties, test_schema};
