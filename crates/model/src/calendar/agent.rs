//! A host that carries out its part of the calendar by itself.

use linerate_units::Span;

use super::UnixTime;
use crate::ForeignText;

/// An agent of a fleet, as the calendar knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetAgent {
    /// Its host.
    pub name: String,
    /// Its public key.
    pub key: String,
    /// When it was enrolled.
    pub enrolled: UnixTime,
    /// When it was revoked; absent if it was not.
    pub revoked: Option<UnixTime>,
    /// The name of its present process; empty before the first one.
    pub session: String,
    /// When it was heard last.
    pub seen: Option<UnixTime>,
    /// Its version of the program.
    pub program: ForeignText,
    /// Why it takes no further runs, or is refused; empty if all is well.
    pub note: ForeignText,
    /// Results that the calendar does not have yet.
    pub waiting: u64,
    /// Version of the calendar that was handed out to it last; 0 for none.
    pub version: u64,
    /// When that calendar ends.
    pub until: UnixTime,
    /// The version that it has confirmed; 0 for none.
    pub acked: u64,
    /// When every calendar has ended that it may still have.
    pub lease_until: UnixTime,
    /// Whether it may have a calendar that the database knows nothing of, because the database lost something.
    pub lost: bool,
}

impl FleetAgent {
    /// An agent that was not heard for this time is silent. It reports every 30 seconds.
    pub const SILENT_AFTER: Span = Span::from_secs(120);

    /// Whether it is silent at `now`, or was never heard.
    #[must_use]
    pub fn is_silent(&self, now: UnixTime) -> bool {
        self.seen.is_none_or(|seen| now.since(seen) >= Self::SILENT_AFTER)
    }
}

/// What an agent says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FleetAgentState {
    /// The name of its present process.
    pub session: String,
    /// Its version of the program.
    pub program: ForeignText,
    /// Why it takes no further runs; empty if it does.
    pub note: ForeignText,
    /// Results that it keeps until the calendar has them.
    pub waiting: u64,
}
