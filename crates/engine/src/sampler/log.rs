//! Samples that the sampler passes to the driver.

use std::sync::{Mutex, MutexGuard, PoisonError};

use linerate_model::Sample;
use linerate_units::Span;

/// Samples taken so far. Only the sampler and the driver lock it, never a pump.
#[derive(Debug, Default)]
pub(crate) struct SampleLog(Mutex<SampleLogContent>);

#[derive(Debug, Default)]
struct SampleLogContent {
    samples: Vec<Sample>,
    handed_out: usize,
    srtt: Option<Span>,
    retransmits: Option<u64>,
}

impl SampleLog {
    fn content(&self) -> MutexGuard<'_, SampleLogContent> {
        // No code panics while it holds the lock, and the content would be consistent even then.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, sample: Sample, srtt: Option<Span>, retransmits: Option<u64>) {
        let mut content = self.content();
        content.samples.push(sample);
        content.srtt = srtt;
        content.retransmits = retransmits;
    }

    /// The samples that were not returned before.
    pub(crate) fn fresh(&self) -> Vec<Sample> {
        let mut content = self.content();
        let fresh = content.samples[content.handed_out..].to_vec();
        content.handed_out = content.samples.len();
        fresh
    }

    /// Smoothed round-trip time and retransmits at the last tick.
    pub(crate) fn latest(&self) -> (Option<Span>, Option<u64>) {
        let content = self.content();
        (content.srtt, content.retransmits)
    }

    /// Removes and returns all samples.
    pub(crate) fn take(&self) -> Vec<Sample> {
        std::mem::take(&mut self.content().samples)
    }
}
