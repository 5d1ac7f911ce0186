//! One step on the way of the bytes down to the wire and up again: what was counted there, and what explains it.

use linerate_units::Bytes;
use serde::{Deserialize, Serialize};

use crate::foreign_text::ForeignText;

/// Where on the way something was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
#[cfg_attr(feature = "schema", schemars(rename = "Place"))]
pub enum AccountingPoint {
    /// The sending kernel's connections: payload sent for the first time.
    SenderSocket,
    /// The queue above the sender's interface.
    SenderQdisc,
    /// The sender's interface, outwards.
    SenderInterface,
    /// A port of the emulated network.
    Port,
    /// The receiver's interface, inwards.
    ReceiverInterface,
    /// The receiving kernel's connections: payload received in order.
    ReceiverSocket,
    /// The receiver's interface, outwards: acknowledgements.
    ReturnSent,
    /// The sender's interface, inwards: acknowledgements.
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

    /// Whether others' bytes pass there too.
    #[must_use]
    pub const fn is_shared(self) -> bool {
        !matches!(self, Self::SenderSocket | Self::ReceiverSocket)
    }
}

/// What was counted at one place, beside what the counts above it and the headers explain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BookStep {
    /// Where.
    pub place: AccountingPoint,
    /// The host; of a port of the emulated network the host that it leads from or to.
    pub host: ForeignText,
    /// What was read there: `socket`, an interface, a queueing discipline, a port.
    pub counter: ForeignText,
    /// What it counted.
    pub counted_bytes: Bytes,
    /// The least that the flows of the phase explain.
    pub least_bytes: Bytes,
    /// The most that they explain, with what others sent before the load.
    pub most_bytes: Bytes,
    /// What is outside of that range: positive where more was counted, negative where less was.
    pub residual_bytes: i64,
    /// Whether that is more than 0.1 % of the flow.
    pub open: bool,
    /// What the expectation is made of, for a person.
    pub because: ForeignText,
}
