//! The dialogue between a coordinator and an agent: a `linerate serve` that executes runs towards other
//! servers.
//!
//! It uses one connection to the same port as everything else, distinguished by its first 8 bytes. Both ends
//! send [`MAGIC`], then frames as in the native protocol (32-bit length, JSON). Before any request, the
//! coordinator proves to the agent, and the agent to the coordinator, that it has the agent's token, by
//! HMAC-SHA256 (RFC 2104) over numbers that both ends chose for this connection. The normative text is
//! `docs/reference/agent-protocol.md`.

mod agent_end;
mod coordinator_end;
mod dialogue;
mod link;
mod message;
mod proof;
mod settings;
#[cfg(test)]
mod settings_tests;
#[cfg(test)]
mod tests;

pub use agent_end::AgentEnd;
pub use coordinator_end::CoordinatorEnd;
pub use dialogue::{
    About, AgentDialogue, AgentInput, AgentOutput, ClockExchange, Interface, Job, JobEnd, JobEvent, MAX_JOBS,
};
pub use proof::{ChannelBinding, Nonce, Token, TokenError};
pub use settings::{MAX_SETTINGS, SettingInForce, SettingsAnswer, SettingsOrder, SettingsRequest};

use crate::Protocol;
use crate::native::Framer;
use linerate_model::sniff::Match;

/// Version of the dialogue.
pub const VERSION: u8 = 2;

/// First bytes of a connection, in both directions.
pub const MAGIC: [u8; 8] = *b"LR-AGENT";

/// The protocol's entry for a port.
pub static AGENT: Protocol = Protocol { default_port: 5201, sniff, refusal };

/// The refusal of an agent before any other message.
fn refusal(why: &str) -> Vec<u8> {
    let message = message::AgentMessage::Refused { why: why.into() };
    [MAGIC.to_vec(), Framer::encode(&message).unwrap_or_default()].concat()
}

fn sniff(start: &[u8]) -> Match {
    Match::magic(start, &MAGIC)
}
