//! The document of `linerate plan`: what a plan would do.

mod document;
mod text;

pub use document::{BundledPlans, PlanMistakes, PlanPreview};
pub use text::{announcement, describe, estimated_time, long_time};
