//! The messages of the dialogue.
//!
//! Unknown fields are ignored, so that a newer end may send more.

use linerate_model::{ForeignText, Outcome};
use linerate_units::{Span, Timestamp};
use serde::{Deserialize, Serialize};

use super::dialogue::{About, Job};
use super::settings::{SettingsAnswer, SettingsOrder};
use crate::session::QueuePosition;
use crate::ticket::Ticket;

/// One message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum AgentMessage {
    /// Coordinator: its name and its nonce for this connection.
    Hello { versions: [u8; 2], name: ForeignText, nonce: ForeignText },
    /// Agent: the version to use and its nonce; requests the proof.
    Challenge { version: u8, nonce: ForeignText },
    /// Coordinator: its proof.
    Proof { proof: ForeignText },
    /// Agent: accepts the proof and sends its own.
    Welcome { proof: ForeignText, about: Box<About> },
    /// Agent: refuses; the connection ends.
    Refused { why: ForeignText },
    /// Coordinator: requests the agent's time.
    Ping { number: u64, sent_ns: Timestamp },
    /// Agent: its times at the arrival of the request and at the departure of this answer.
    Pong { number: u64, sent_ns: Timestamp, received_ns: Timestamp, replied_ns: Timestamp },
    /// Coordinator: requests a place in the queue for about this time.
    Hold { expected_ns: Span },
    /// Agent: others are ahead in the queue.
    Waiting(QueuePosition),
    /// Agent: the place is held until the release; runs that present this ticket may use it.
    Held { ticket: Ticket },
    /// Agent: there is no place.
    NotHeld { why: ForeignText },
    /// Coordinator: releases the place.
    Release,
    /// Coordinator: requests a check of settings.
    CheckSettings(Box<SettingsOrder>),
    /// Coordinator: requests exactly these settings.
    ApplySettings(Box<SettingsOrder>),
    /// Coordinator: requests that all its settings be restored.
    RestoreSettings,
    /// Agent: the result of a settings request.
    Settings(Box<SettingsAnswer>),
    /// Coordinator: requests that a job open everything and then wait.
    Prepare(Box<Job>),
    /// Agent: a job has begun; its own time counts from here on the agent's clock.
    Accepted { job: u32, epoch_ns: Timestamp },
    /// Agent: the job has opened everything.
    Ready { job: u32 },
    /// Coordinator: starts a job at this time of the agent's clock.
    Start { job: u32, at_ns: Timestamp },
    /// Coordinator: ends a job early; what was measured is kept.
    Stop { job: u32 },
    /// Agent: an event of a job. The body is as in the event log, and not decoded, because a newer agent may
    /// know more kinds.
    Event { job: u32, host: u16, at_ns: Timestamp, body: serde_json::Value },
    /// Agent: the job has ended.
    Ended {
        job: u32,
        outcome: Outcome,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<ForeignText>,
    },
    /// Either end: it is alive.
    Heartbeat,
    /// Either end: it cannot continue.
    Failed { why: ForeignText },
    /// Coordinator: ends the dialogue.
    Bye,
}

impl AgentMessage {
    /// The name on the wire, for errors.
    pub(super) fn name(&self) -> String {
        let value = serde_json::to_value(self).ok();
        let name = value.as_ref().and_then(|value| value.get("type")?.as_str());
        name.unwrap_or_default().to_owned()
    }
}
