//! How much of an archive a user keeps.

use linerate_archive::RetentionLimits;
use linerate_model::ArchiveLimitOptions;
use linerate_units::{Bytes, Span};

use crate::naming::time_ago;

/// A run without an end may be active for this long.
const ACTIVE: Span = Span::from_secs(86_400);

/// What is kept of an archive: a run is too much if it exceeds one of the limits that are given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// Number of days.
    pub days: Option<u32>,
    /// Number of runs.
    pub runs: Option<u32>,
    /// Size of the logs together, as stored.
    pub bytes: Option<Bytes>,
}

impl From<&ArchiveLimitOptions> for Retention {
    fn from(options: &ArchiveLimitOptions) -> Self {
        Self {
            runs: Some(options.limit_archive_runs),
            bytes: Some(options.limit_archive_bytes),
            days: Some(options.limit_archive_days),
        }
    }
}

impl Retention {
    /// The limits at this moment.
    #[must_use]
    pub fn limits(&self) -> RetentionLimits {
        RetentionLimits {
            runs: self.runs,
            bytes: self.bytes.map(Bytes::get),
            oldest: self.days.map(|days| time_ago(Span::from_secs(u64::from(days) * 86_400))),
            under_way: time_ago(ACTIVE),
        }
    }
}
