//! The capabilities that linerate tries are those of Linux.

use crate::features::KernelCapability;

/// What a measurement can use beyond plain sockets: nothing is known about this system.
#[must_use]
pub const fn features() -> Vec<KernelCapability> {
    Vec::new()
}
