//! The messages.
//!
//! Fields that a version does not know are passed over, so that a newer end can say more.

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
pub(super) enum Message {
    /// Coordinator: who I am, and my number for this connection.
    Hello { versions: [u8; 2], name: ForeignText, nonce: ForeignText },
    /// Agent: the version to speak, and my number; prove that you have the token.
    Challenge { version: u8, nonce: ForeignText },
    /// Coordinator: the proof.
    Proof { proof: ForeignText },
    /// Agent: you have it, and here is mine.
    Welcome { proof: ForeignText, about: Box<About> },
    /// Agent: no; the connection ends.
    Refused { why: ForeignText },
    /// Coordinator: what time is it with you?
    Ping { number: u64, sent_ns: Timestamp },
    /// Agent: it was this when the question came, and is this now.
    Pong { number: u64, sent_ns: Timestamp, received_ns: Timestamp, replied_ns: Timestamp },
    /// Coordinator: keep a place in your queue for me, for about so long.
    Hold { expected_ns: Span },
    /// Agent: others are before you.
    Waiting(QueuePosition),
    /// Agent: it is your turn until you release it; who shows this ticket is measured for you.
    Held { ticket: Ticket },
    /// Agent: not you.
    NotHeld { why: ForeignText },
    /// Coordinator: I am done with the place.
    Release,
    /// Coordinator: could these be set?
    CheckSettings(Box<SettingsOrder>),
    /// Coordinator: set exactly these.
    ApplySettings(Box<SettingsOrder>),
    /// Coordinator: put back all that was set for me.
    RestoreSettings,
    /// Agent: what became of it.
    Settings(Box<SettingsAnswer>),
    /// Coordinator: open everything for this, and wait.
    Prepare(Box<Job>),
    /// Agent: I begin; the job's own time counts from here on my clock.
    Accepted { job: u32, epoch_ns: Timestamp },
    /// Agent: everything is open.
    Ready { job: u32 },
    /// Coordinator: begin at this time of your clock.
    Start { job: u32, at_ns: Timestamp },
    /// Coordinator: end early, keep what was measured.
    Stop { job: u32 },
    /// Agent: something happened; the body as in the event log, unread, since a newer agent may know more kinds.
    Event { job: u32, host: u16, at_ns: Timestamp, body: serde_json::Value },
    /// Agent: the job is over.
    Ended {
        job: u32,
        outcome: Outcome,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<ForeignText>,
    },
    /// Either: I am here.
    Heartbeat,
    /// Either: I cannot go on.
    Failed { why: ForeignText },
    /// Coordinator: done.
    Bye,
}

impl Message {
    /// The name on the wire, for errors.
    pub(super) fn name(&self) -> String {
        let value = serde_json::to_value(self).ok();
        let name = value.as_ref().and_then(|value| value.get("type")?.as_str());
        name.unwrap_or_default().to_owned()
    }
}
