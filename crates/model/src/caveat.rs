//! What weakens a result, as part of the result.

use serde::{Deserialize, Serialize};

use crate::foreign_text::ForeignText;

/// One weakness of a result, with advice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Caveat {
    /// Which weakness.
    pub kind: CaveatKind,
    /// What happened and what to do, for a person, with the numbers in it.
    pub text: ForeignText,
}

/// The weaknesses that a result can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CaveatKind {
    /// The kernel gave a smaller send buffer than asked.
    SndBufClamped,
    /// The kernel gave a smaller receive buffer than asked.
    RcvBufClamped,
    /// A core was full, so the figure may be the host's.
    CpuSaturated,
    /// The sender offered less than was asked.
    SenderLimited,
    /// A wall clock jumped during the run.
    ClockStepped,
    /// The clock offset between the hosts is not known well enough for one-way figures.
    OffsetUncertain,
    /// The pace asked for was not kept.
    PacingMissed,
    /// Events were lost before they were written.
    EventsDropped,
    /// Another test ran on the same host at the same time.
    Neighbour,
    /// Latency was probed over TCP because UDP did not come through.
    UdpBlocked,
    /// A setting had no effect.
    SettingIneffective,
    /// The interval sampler was late: the host was paused.
    TimerLate,
    /// The test ended early; the figures cover what was measured.
    Partial,
    /// The drain ended before every byte had arrived.
    DrainCut,
    /// Datagrams were dropped by the receiving host, not by the network.
    ReceiverDrops,
    /// The receiver discarded the bytes in the kernel: not a full data transfer.
    RxCopySkipped,
    /// The test ran over a TCP where MPTCP was asked.
    MptcpFallback,
    /// The archive could not be written.
    NotArchived,
    /// The link rate was inferred, not read from an interface.
    LinkInferred,
    /// The emulated network fell behind: packets left later than their time by more than its bound.
    LabLate,
    /// The packet rate came near what the emulated network can carry on this machine: the figure may be its own.
    LabPacketLimit,
    /// The emulated network did not answer, so what its ports counted is missing: it died, or was never there.
    LabGone,
    /// The other end is a program of others: its counters were not read, only what it says of itself.
    ForeignPeer,
    /// The rate is near what a host of the run can do at most, so that it may be the host's and not the path's.
    RigLimited,
    /// What a host was measured to do at most was exceeded, so that it is no ceiling: it was left out.
    CeilingDisproved,
    /// The mean is not known as well as `--until` asked.
    UntilMissed,
    /// Counts on the way to the wire differ by more than 0.1 % of the flow: others used an interface of the run, or a
    /// count is wrong.
    BooksOpen,
    /// A host has changed since its limits were measured, so that they say nothing.
    CalibrationStale,
    /// Other programs used much of a host's processors.
    HostBusy,
    /// The run was made to answer a question about another one, which the text names: it is short, and paced, sized or
    /// spread for that question.
    FollowUp,
    /// Nothing was measured here: the figures are those that another program wrote into a file. Counts that it did not
    /// tell are 0 in the log.
    Imported,
}
