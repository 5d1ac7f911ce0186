//! What a list of archived runs shows of each.

use crate::flow::FlowId;
use linerate_units::Bitrate;

use crate::event::Outcome;
use crate::foreign_text::ForeignText;

/// An archived run, as in a list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunHead {
    /// Its name.
    pub id: ForeignText,
    /// Wall-clock time of its start, RFC 3339; absent if the start of the log is lost.
    pub started_at: Option<ForeignText>,
    /// The name that the user gave it.
    pub name: Option<ForeignText>,
    /// The server as typed; for a plan, its name.
    pub target: Option<ForeignText>,
    /// Whether this is an executed plan, whose trials are runs of their own.
    pub is_plan: bool,
    /// The plan's run that contains it.
    pub part_of: Option<ForeignText>,
    /// Where it ran.
    pub world: Option<ForeignText>,
    /// Version of linerate.
    pub linerate: Option<ForeignText>,
    /// How it ended; absent while it runs and if it was killed.
    pub outcome: Option<Outcome>,
    /// Number of events in its log.
    pub event_count: u64,
    /// What users say about it afterwards, in order.
    pub tags: Vec<ForeignText>,
    /// Its flows.
    pub flows: Vec<FlowHead>,
}

/// A flow of an archived run, as in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowHead {
    /// Number of the flow in its run.
    pub flow: FlowId,
    /// Its name for users.
    pub name: ForeignText,
    /// Direction, seen from the client, by its name in results.
    pub direction: ForeignText,
    /// Transport, by its name in results.
    pub transport: ForeignText,
    /// Goodput at the receiver; absent if not measured.
    pub bitrate: Option<Bitrate>,
    /// Cause of the verdict, by its name in results; absent without a verdict.
    pub cause: Option<ForeignText>,
}
