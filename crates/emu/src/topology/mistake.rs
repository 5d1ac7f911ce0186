//! The mistakes in a description, and their positions.

pub use linerate_config::{Mistake, SourcePosition};

/// A file that does not describe a valid network.
pub type TopologyError = linerate_config::FileMistakes;
