//! Final reports of flows that have ended, and the samples that a server sends before each.
//!
//! They wait here until the connection has taken what was sent before: a long run has many samples, which take more memory
//! once they are encoded.

use std::collections::VecDeque;
use std::vec::IntoIter;

use linerate_model::Sample;
use linerate_proto::{Ended, SessionInput};

/// Samples in one message: some 10 KB, which arrive within seconds on any path, as the peer waits for the next one.
const SAMPLES_PER_MESSAGE: usize = 16;

/// While this many bytes wait in front of the socket, nothing is added to them.
pub(super) const ENOUGH_UNSENT_BYTES: usize = 1 << 20;

/// Reports that wait, in the order in which their flows ended.
#[derive(Debug, Default)]
pub(super) struct WaitingReports {
    waiting: VecDeque<WaitingReport>,
}

#[derive(Debug)]
struct WaitingReport {
    samples: IntoIter<Sample>,
    ended: Box<Ended>,
}

impl WaitingReports {
    /// Adds the report of a flow, and samples that are sent before it.
    pub(super) fn add(&mut self, samples: Vec<Sample>, ended: Box<Ended>) {
        self.waiting.push_back(WaitingReport { samples: samples.into_iter(), ended });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// What the session sends next.
    pub(super) fn next(&mut self) -> Option<SessionInput<'static>> {
        let first = self.waiting.front_mut()?;
        let samples: Vec<Sample> = first.samples.by_ref().take(SAMPLES_PER_MESSAGE).collect();
        if samples.is_empty() {
            return self.waiting.pop_front().map(|report| SessionInput::FlowEnded(report.ended));
        }
        Some(SessionInput::Samples { flow: first.ended.flow, samples })
    }
}
