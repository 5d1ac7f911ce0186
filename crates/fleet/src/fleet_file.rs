//! The file that describes a fleet: its hosts, what they share, and its meshes.

mod check;
mod keys;
mod load;
mod read;
mod reference;

/// The text of a file, with its name for messages.
pub use linerate_plan::Source;
pub use load::{FleetFileError, load};
pub use read::{TopologyPath, read};
pub use reference::{reference, schema};
