//! The control messages.
//!
//! Unknown fields are ignored, so that a newer peer may send more.

use linerate_model::flow::FlowId;
use linerate_model::{Direction, FlowOutcome, ForeignText, HostInfo, Sample, TestSpec};
use linerate_units::Bytes;
use serde::{Deserialize, Serialize};

use crate::session::{Ended, FlowOrder, Progress, QueuePosition, SweepTrial, TrialCount};
use crate::ticket::Ticket;

/// One control message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum NativeMessage {
    /// Client: identifies itself and requests a measurement.
    Hello {
        versions: [u8; 2],
        capabilities: Vec<ForeignText>,
        host: HostInfo,
        spec: Box<TestSpec>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ticket: Option<Ticket>,
    },
    /// Server: admits the client.
    Welcome {
        version: u8,
        capabilities: Vec<ForeignText>,
        host: HostInfo,
        cookie: ForeignText,
        concurrent_runs: u32,
    },
    /// Server: the client has to wait.
    Busy(QueuePosition),
    /// Server: refuses the client.
    Refused { why: ForeignText },
    /// Client: announces the data sockets of these flows.
    Prepare { flows: Vec<AskedFlow> },
    /// Server: is ready for them.
    Prepared,
    /// Server: all of them have arrived.
    FlowsReady,
    /// Client: starts the flows.
    Start,
    /// Client: starts an exchange of messages of one size.
    Trial(SweepTrial),
    /// Server: its counts of that trial.
    TrialCounted(TrialCount),
    /// Client: stops the senders early.
    Stop,
    /// Either end: its sender has written everything.
    SenderDone { flow: FlowId },
    /// Client: ends the drain.
    Cut,
    /// Either end: progress of its receiver.
    Progress(Progress),
    /// Either end: samples of its side.
    Samples { flow: FlowId, samples: Vec<Sample> },
    /// Either end: its final report of a flow.
    Ended(Box<Ended>),
    /// Either end: it is alive.
    Heartbeat,
    /// Either end: it cannot continue.
    Failed { why: ForeignText },
    /// Client: ends the dialogue, and tells what the run came to.
    Bye {
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        results: Vec<FlowOutcome>,
    },
}

/// A flow as requested by a client. The phase decides whether it is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AskedFlow {
    pub(super) flow: FlowId,
    pub(super) direction: Direction,
    pub(super) length_bytes: Bytes,
}

impl From<&FlowOrder> for AskedFlow {
    fn from(order: &FlowOrder) -> Self {
        Self { flow: order.flow(), direction: order.direction(), length_bytes: order.length() }
    }
}

/// Capability: executes the trials of a sweep over message sizes.
pub(super) const SWEEP: &str = "sweep";

/// Capability: makes and answers requests.
pub(super) const TRANSACTIONS: &str = "transactions";

/// The ways to send, bursts, and the later options of sockets.
pub(super) const SENDING: &str = "sending";

/// Capability: receives datagrams that are sent to a multicast group.
pub(super) const MULTICAST: &str = "multicast";

/// Capability: gives datagrams their times of departure.
pub(super) const TXTIME: &str = "txtime";

/// The capabilities of this version beyond the basic dialogue.
pub(super) fn capabilities() -> Vec<ForeignText> {
    ["tcp", "udp", "mptcp", "probe_udp", "probe_tcp", SWEEP, TRANSACTIONS, SENDING, MULTICAST, TXTIME]
        .map(ForeignText::from)
        .to_vec()
}

/// The capabilities that both this version and the peer have.
pub(super) fn both_can(theirs: &[ForeignText]) -> Vec<ForeignText> {
    capabilities().into_iter().filter(|name| theirs.contains(name)).collect()
}

/// Formats a cookie as text.
pub(super) fn cookie_to_text(cookie: &[u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(*cookie))
}

/// Parses a cookie.
pub(super) fn cookie_from_text(text: &str) -> Option<[u8; 16]> {
    if text.len() != 32 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    u128::from_str_radix(text, 16).ok().map(u128::to_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goodbye_without_results_is_that_of_an_older_client() {
        let bye: NativeMessage = serde_json::from_str(r#"{"type":"bye"}"#).unwrap();
        assert_eq!(bye, NativeMessage::Bye { results: Vec::new() });
        assert_eq!(serde_json::to_string(&bye).unwrap(), r#"{"type":"bye"}"#);
    }
}
