//! One step of the byte accounting down to the wire and up again: the count at one point, and what explains it.

use linerate_units::Bytes;
use serde::{Deserialize, Serialize};

use crate::foreign_text::ForeignText;

/// Where on the way the bytes were counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AccountingPoint {
    /// The sending kernel's connections: payload sent for the first time.
    SenderSocket,
    /// The queueing discipline of the sender's interface.
    SenderQdisc,
    /// The sender's interface, outgoing.
    SenderInterface,
    /// A port of the emulated network.
    Port,
    /// The receiver's interface, incoming.
    ReceiverInterface,
    /// The receiving kernel's connections: payload received in order.
    ReceiverSocket,
    /// The receiver's interface, outgoing: acknowledgements.
    ReturnSent,
    /// The sender's interface, incoming: acknowledgements.
    ReturnReceived,
}

impl AccountingPoint {
    /// The name used in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SenderSocket => "sender_socket",
            Self::SenderQdisc => "sender_qdisc",
            Self::SenderInterface => "sender_interface",
            Self::Port => "port",
            Self::ReceiverInterface => "receiver_interface",
            Self::ReceiverSocket => "receiver_socket",
            Self::ReturnSent => "return_sent",
            Self::ReturnReceived => "return_received",
        }
    }

    /// Whether cross traffic is counted there too.
    #[must_use]
    pub const fn is_shared(self) -> bool {
        !matches!(self, Self::SenderSocket | Self::ReceiverSocket)
    }
}

/// The count at one point, compared with what the counts above it and the headers explain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AccountingStep {
    /// The point.
    pub point: AccountingPoint,
    /// The host; for a port of the emulated network the host that it connects.
    pub host: ForeignText,
    /// The counter: `socket`, an interface, a queueing discipline, a port.
    pub counter: ForeignText,
    /// The bytes counted.
    pub counted_bytes: Bytes,
    /// The minimum that the flows of the phase explain.
    pub min_bytes: Bytes,
    /// The maximum that they explain, including cross traffic as measured before the load.
    pub max_bytes: Bytes,
    /// The difference from that range: positive if more was counted, negative if less.
    pub residual_bytes: i64,
    /// Whether the difference is more than 0.1 % of the flow.
    pub unaccounted: bool,
    /// The terms of the expected value, for the user.
    pub because: ForeignText,
}
