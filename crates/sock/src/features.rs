//! Capabilities of this kernel, found by trying them instead of by its version.

pub use crate::system::features::features;

/// A capability that a kernel may have.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelCapability {
    /// Name, in the kernel's terms.
    pub name: &'static str,
    /// Whether this process can use it now.
    pub available: bool,
    /// Additional information: a length, a list, or why it is missing.
    pub detail: Option<String>,
}
