//! Where the sampler leaves its samples for the driver.

use std::sync::{Mutex, MutexGuard, PoisonError};

use linerate_model::Sample;
use linerate_units::Span;

/// Samples taken so far. Only the sampler and the driver meet here, never a pump.
#[derive(Debug, Default)]
pub(crate) struct SampleLog(Mutex<Content>);

#[derive(Debug, Default)]
struct Content {
    samples: Vec<Sample>,
    handed_out: usize,
    srtt: Option<Span>,
    retransmits: Option<u64>,
}

impl SampleLog {
    fn content(&self) -> MutexGuard<'_, Content> {
        // Nobody panics while holding it, and its content would be whole all the same.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, sample: Sample, srtt: Option<Span>, retransmits: Option<u64>) {
        let mut content = self.content();
        content.samples.push(sample);
        content.srtt = srtt;
        content.retransmits = retransmits;
    }

    /// Those that were not handed out yet.
    pub(crate) fn fresh(&self) -> Vec<Sample> {
        let mut content = self.content();
        let fresh = content.samples[content.handed_out..].to_vec();
        content.handed_out = content.samples.len();
        fresh
    }

    /// Round-trip time and retransmissions at the last tick.
    pub(crate) fn latest(&self) -> (Option<Span>, Option<u64>) {
        let content = self.content();
        (content.srtt, content.retransmits)
    }

    /// All of them, and none left.
    pub(crate) fn take(&self) -> Vec<Sample> {
        std::mem::take(&mut self.content().samples)
    }
}
