//! What is measured again and again.

use linerate_units::Span;
use serde::{Deserialize, Serialize};

use super::{AlarmLimits, QuietHours, UnixTime};
use crate::{ForeignText, TestSpec};

/// When a schedule is due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recurrence {
    /// At the times of a crontab expression: minute, hour, day of month, month, day of week.
    Cron(ForeignText),
    /// Periodically.
    Every {
        /// The period.
        #[serde(rename = "period_ns")]
        period: Span,
        /// Mean of an exponentially distributed delay, which is cut at one period. Without it, other periodic events
        /// of the network may always or never coincide with the measurement (RFC 2330, section 11.1).
        #[serde(rename = "jitter_ns")]
        jitter: Span,
        /// When the first period begins.
        anchor: UnixTime,
    },
    /// Once.
    Once(UnixTime),
}

/// A measurement between two hosts that is repeated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Its name.
    pub name: ForeignText,
    /// The mesh that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<ForeignText>,
    /// The host that is the client.
    pub from: ForeignText,
    /// The host that is the server.
    pub to: ForeignText,
    /// What it measures.
    pub spec: TestSpec,
    /// When it is due.
    pub recurrence: Recurrence,
    /// Time zone of the crontab expression and of the quiet hours, by its IANA name.
    pub zone: ForeignText,
    /// How much later than due it may begin.
    #[serde(rename = "slip_ns")]
    pub slip: Span,
    /// Hours in which it does not measure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quiet: Vec<QuietHours>,
    /// The higher one comes first; 0 to 9.
    pub priority: u8,
    /// Whether other shared measurements may use the same hosts and links at the same time.
    pub shared: bool,
    /// When it ends for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<UnixTime>,
    /// Limits of its results.
    #[serde(default, skip_serializing_if = "AlarmLimits::is_empty")]
    pub alarm: AlarmLimits,
}

/// A schedule in the calendar.
#[derive(Debug, Clone, PartialEq)]
pub struct ScheduleState {
    /// What it is.
    pub schedule: Schedule,
    /// Whether it is due at no time until it is resumed.
    pub paused: bool,
    /// When it is due next; absent if never again.
    pub next_due: Option<UnixTime>,
}
