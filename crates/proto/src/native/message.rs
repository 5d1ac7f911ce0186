//! The control messages.
//!
//! Fields that a version does not know are passed over, so that a newer peer can say more.

use linerate_model::{Direction, ForeignText, HostInfo, Sample, TestSpec};
use linerate_units::Bytes;
use serde::{Deserialize, Serialize};

use crate::session::{Ended, FlowOrder, Progress, QueuePosition, Trial, TrialCount};
use crate::ticket::Ticket;

/// One control message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Message {
    /// Client: who I am and what I want measured.
    Hello {
        versions: [u8; 2],
        capabilities: Vec<ForeignText>,
        host: HostInfo,
        spec: Box<TestSpec>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ticket: Option<Ticket>,
    },
    /// Server: begin.
    Welcome {
        version: u8,
        capabilities: Vec<ForeignText>,
        host: HostInfo,
        cookie: ForeignText,
        neighbours: u32,
    },
    /// Server: wait.
    Busy(QueuePosition),
    /// Server: no.
    Refused { why: ForeignText },
    /// Client: expect the data sockets of these flows.
    Prepare { flows: Vec<AskedFlow> },
    /// Server: they are expected.
    Prepared,
    /// Server: they are all here.
    FlowsReady,
    /// Client: go.
    Start,
    /// Client: exchange messages of one size now.
    Trial(Trial),
    /// Server: what I counted of that.
    TrialCounted(TrialCount),
    /// Client: stop writing early.
    Stop,
    /// Either: my sender has written everything.
    SenderDone { flow: u16 },
    /// Client: the drain is over.
    Cut,
    /// Either: what my receiver has counted so far.
    Progress(Progress),
    /// Either: intervals of my side.
    Samples { flow: u16, samples: Vec<Sample> },
    /// Either: my final word on a flow.
    Ended(Box<Ended>),
    /// Either: I am here.
    Heartbeat,
    /// Either: I cannot go on.
    Failed { why: ForeignText },
    /// Client: done.
    Bye,
}

/// A flow as a client asks for it. What may be done of it the phase decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AskedFlow {
    pub(super) flow: u16,
    pub(super) direction: Direction,
    pub(super) length_bytes: Bytes,
}

impl From<&FlowOrder> for AskedFlow {
    fn from(order: &FlowOrder) -> Self {
        Self { flow: order.flow(), direction: order.direction(), length_bytes: order.length() }
    }
}

/// Takes the trials of a series over message sizes.
pub(super) const SWEEP: &str = "sweep";

/// What this version can do beyond the bare dialogue.
pub(super) fn capabilities() -> Vec<ForeignText> {
    ["tcp", "udp", "mptcp", "probe_udp", "probe_tcp", SWEEP].map(ForeignText::from).to_vec()
}

/// What this version and a peer that says so can both do.
pub(super) fn both_can(theirs: &[ForeignText]) -> Vec<ForeignText> {
    capabilities().into_iter().filter(|name| theirs.contains(name)).collect()
}

/// A cookie as text.
pub(super) fn cookie_to_text(cookie: &[u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(*cookie))
}

/// A cookie from text.
pub(super) fn cookie_from_text(text: &str) -> Option<[u8; 16]> {
    if text.len() != 32 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    u128::from_str_radix(text, 16).ok().map(u128::to_be_bytes)
}
