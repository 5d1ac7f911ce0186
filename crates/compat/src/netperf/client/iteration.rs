//! One iteration of a test, between two exchanges with the server.

use linerate_units::{Span, Timestamp};

use super::transactions::Requests;
use crate::netperf::figures::NetperfFigures;
use crate::netperf::wire::NetperfResults;
use crate::stand_in::HostCounts;

/// One iteration of the test.
#[derive(Debug)]
pub(super) struct Iteration {
    /// When the data began, and how long they took.
    pub(super) began: Timestamp,
    pub(super) elapsed: Option<Span>,
    /// When the time of the test is over.
    pub(super) until: Option<Timestamp>,
    pub(super) figures: NetperfFigures,
    pub(super) requests: Option<Requests>,
    pub(super) results: Option<NetperfResults>,
    pub(super) before: Option<HostCounts>,
    /// When the data link was requested, and whether it is open.
    pub(super) opening_at: Timestamp,
    pub(super) open: bool,
    /// Interim results: the end of the last one, and what was moved until then.
    pub(super) interim_end: Timestamp,
    pub(super) interim_units: u64,
}

impl Iteration {
    pub(super) fn new(now: Timestamp) -> Self {
        Self {
            began: now,
            elapsed: None,
            until: None,
            figures: NetperfFigures::default(),
            requests: None,
            results: None,
            before: None,
            opening_at: now,
            open: false,
            interim_end: now,
            interim_units: 0,
        }
    }

    pub(super) fn complete(&self) -> u64 {
        self.requests.as_ref().map_or(0, |requests| requests.complete)
    }
}
