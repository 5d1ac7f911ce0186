//! Resources used by the process of a stand-in.

use linerate_units::Span;

/// CPU time since the driver's start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// Time of the reading, from the driver's start.
    pub elapsed: Span,
    /// CPU time of this process in user mode.
    pub user: Span,
    /// CPU time of this process in the kernel.
    pub system: Span,
    /// Other resources that this process has used; absent if they are not counted.
    pub usage: Option<ResourceUsage>,
}

/// Resources other than CPU time that this process has used since its start.
///
/// # Source
/// getrusage(2)
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResourceUsage {
    /// Largest resident set, KiB.
    pub max_resident_kib: u64,
    /// Page faults without I/O.
    pub minor_faults: u64,
    /// Page faults with I/O.
    pub major_faults: u64,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
}

impl CpuTime {
    /// The resources used since `before`; for memory, the maximum so far. Absent if they are not counted.
    #[must_use]
    pub fn usage_since(&self, before: &Self) -> Option<ResourceUsage> {
        let (now, then) = self.usage.zip(before.usage)?;
        Some(ResourceUsage {
            max_resident_kib: now.max_resident_kib,
            minor_faults: now.minor_faults.saturating_sub(then.minor_faults),
            major_faults: now.major_faults.saturating_sub(then.major_faults),
            voluntary_switches: now.voluntary_switches.saturating_sub(then.voluntary_switches),
            involuntary_switches: now.involuntary_switches.saturating_sub(then.involuntary_switches),
        })
    }
}

impl ResourceUsage {
    /// The end of the line that ttcp and its descendants print from getrusage(2) on Linux. Shared text and
    /// unshared data (`0i+0d`) are always 0 there, and the memory is halved as if pages had 512 bytes.
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
