//! When a schedule is due, and what keeps it from measuring.

use linerate_model::ForeignText;
use linerate_units::Span;
use serde::Serialize;

use super::ReservationEntry;

/// When a schedule is due.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum WhenEntry {
    /// By a crontab expression.
    Cron {
        /// Minute, hour, day of month, month, day of week.
        cron: ForeignText,
    },
    /// Periodically.
    Every {
        /// The period.
        #[serde(rename = "every_ns")]
        period: Span,
        /// Mean of a random delay.
        #[serde(rename = "jitter_ns")]
        jitter: Span,
    },
    /// Once.
    Once {
        /// The time.
        at: String,
    },
}

/// What keeps a schedule from measuring.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ObstacleEntry {
    /// It is paused.
    Paused,
    /// It is not due.
    NotDue {
        /// When it is; absent if never again.
        #[serde(skip_serializing_if = "Option::is_none")]
        due: Option<String>,
    },
    /// The hour is quiet.
    QuietHours {
        /// Until when.
        until: String,
    },
    /// Something is in use.
    Busy {
        /// By whom.
        reservation: ReservationEntry,
    },
    /// No coordinator carries out the calendar.
    NoCoordinator {
        /// When the newest run began or ended.
        #[serde(skip_serializing_if = "Option::is_none")]
        last_run: Option<String>,
    },
    /// The agent that would measure takes no runs.
    Agent {
        /// Why.
        reason: ForeignText,
    },
    /// The database lost what was written last, and not all agents have confirmed new calendars.
    AfterLoss {
        /// When booking goes on at the latest.
        until: String,
    },
    /// Agents have not given back what was booked before the fleet was changed.
    AfterChange {
        /// When booking goes on at the latest.
        until: String,
    },
    /// A test of before a loss or a change may still be on the wire.
    Unsettled {
        /// When booking goes on.
        until: String,
    },
}
