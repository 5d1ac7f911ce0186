//! What the process of a stand-in has used.

use linerate_units::Span;

/// CPU time since the driver began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cpu {
    /// When it was read, from the driver's start.
    pub elapsed: Span,
    /// Of this process, in user mode.
    pub user: Span,
    /// Of this process, in the kernel.
    pub system: Span,
    /// What else this process has used; absent where nobody counts it.
    pub usage: Option<Usage>,
}

/// Resources other than CPU time that this process has used since it began.
///
/// # Source
/// getrusage(2)
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Most memory that was resident, KiB.
    pub max_resident_kib: u64,
    /// Page faults that needed no reading.
    pub minor_faults: u64,
    /// Page faults that needed reading.
    pub major_faults: u64,
    /// Switches to other threads because this one waited.
    pub voluntary_switches: u64,
    /// Switches to other threads because their turn came.
    pub involuntary_switches: u64,
}

impl Cpu {
    /// What was used after `before`; of memory the most until now. Absent where nobody counts it.
    #[must_use]
    pub fn usage_since(&self, before: &Self) -> Option<Usage> {
        let (now, then) = self.usage.zip(before.usage)?;
        Some(Usage {
            max_resident_kib: now.max_resident_kib,
            minor_faults: now.minor_faults.saturating_sub(then.minor_faults),
            major_faults: now.major_faults.saturating_sub(then.major_faults),
            voluntary_switches: now.voluntary_switches.saturating_sub(then.voluntary_switches),
            involuntary_switches: now.involuntary_switches.saturating_sub(then.involuntary_switches),
        })
    }
}

impl Usage {
    /// The end of the line that ttcp and its descendants print of getrusage(2) on Linux, where shared text and unshared
    /// data (`0i+0d`) are always 0, and memory is halved, as if pages had 512 bytes.
    #[must_use]
    pub(crate) fn line(&self) -> String {
        format!(
            "0i+0d {}maxrss {}+{}pf {}+{}csw",
            self.max_resident_kib / 2,
            self.major_faults,
            self.minor_faults,
            self.voluntary_switches,
            self.involuntary_switches
        )
    }
}
