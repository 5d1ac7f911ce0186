//! Weaknesses of a result, stored as part of the result.

use serde::{Deserialize, Serialize};

use crate::foreign_text::ForeignText;

/// One weakness of a result, with advice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Caveat {
    /// Which weakness.
    pub kind: CaveatKind,
    /// What happened and what to do, for the user, with the relevant numbers.
    pub text: ForeignText,
}

/// The possible weaknesses of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CaveatKind {
    /// The kernel granted a smaller send buffer than requested.
    SndBufClamped,
    /// The kernel granted a smaller receive buffer than requested.
    RcvBufClamped,
    /// A core was fully used, so the host may be what limited the result.
    CpuSaturated,
    /// The sender offered less than requested.
    SenderLimited,
    /// A wall clock jumped during the run.
    ClockStepped,
    /// The clock offset between the hosts is too uncertain for one-way figures.
    OffsetUncertain,
    /// The requested pace was not kept.
    PacingMissed,
    /// Events were lost before they were written.
    EventsDropped,
    /// Another test ran on the same host at the same time.
    ConcurrentRun,
    /// Latency was probed over TCP because UDP did not get through.
    UdpBlocked,
    /// No datagram to a multicast group reached this receiver.
    MulticastBlocked,
    /// A setting had no effect.
    SettingIneffective,
    /// The interval sampler ran late because the host was paused.
    TimerLate,
    /// The test ended early; the figures cover what was measured.
    Partial,
    /// The drain timed out before every byte had arrived.
    DrainCut,
    /// Datagrams were dropped by the receiving host, not by the network.
    ReceiverDrops,
    /// The receiver discarded the bytes in the kernel, so this was not a full data transfer.
    RxCopySkipped,
    /// The test ran over TCP although MPTCP was requested.
    MptcpFallback,
    /// The received file was still in memory when the test ended, so the rate is not that of its disk.
    FileWrittenLate,
    /// The archive could not be written.
    NotArchived,
    /// The link rate was inferred, not read from an interface.
    LinkInferred,
    /// The emulated network was late: packets left after their due time by more than its bound.
    LabLate,
    /// The packet rate was close to the limit of the emulated network on this machine, which may have limited
    /// the result.
    LabPacketLimit,
    /// The emulated network did not answer, so its port counts are missing: it exited or never ran.
    LabGone,
    /// The other end is a foreign program: its counters were not read, only its own report.
    ForeignPeer,
    /// What was measured was encrypted (TLS), which takes time of the CPU at both ends and some bytes of the path.
    Encrypted,
    /// The rate is close to the limit of a host of the run, so the host may be the limit, not the path.
    HostLimited,
    /// The flow exceeded a measured limit of a host, which is therefore not a ceiling and was ignored.
    CeilingDisproved,
    /// The mean is less well known than `--until` requires.
    UntilMissed,
    /// Counts on the way to the wire differ by more than 0.1 % of the flow: there was cross traffic on an
    /// interface of the run, or a count is wrong.
    BytesUnaccounted,
    /// A host has changed since its limits were measured, so they no longer apply.
    CalibrationStale,
    /// Other programs used much of a host's CPU time.
    HostBusy,
    /// The run was a follow-up of another run to answer the question named in the text. It is short, and paced,
    /// sized or spread for that question.
    FollowUp,
    /// Nothing was measured here: the figures come from a file written by another program. Counts that the file
    /// lacks are 0 in the log.
    Imported,
}
