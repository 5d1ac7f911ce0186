//! A direction that sends what the stand-in reads from a file or standard input.

use linerate_units::Timestamp;

use super::{Iperf2Direction, Iperf2DirectionState};
use crate::iperf2::load::Iperf2Load;
use crate::iperf2::output_queue::OutputQueue;
use crate::iperf2::track::Iperf2Stream;
use crate::stand_in::{Output, StreamCounts};

impl Iperf2Direction {
    /// A direction that sends what the stand-in reads.
    pub(in super::super) fn piped(
        queue: &OutputQueue,
        now: Timestamp,
        load: Iperf2Load,
        streams: Vec<Iperf2Stream>,
    ) -> Self {
        let mut direction = Self::new(now, load, streams);
        direction.phase = Iperf2DirectionState::Piping;
        direction.track.counts.streams = vec![StreamCounts::default()];
        direction.due = queue.settings.interval.map(|interval| now + interval);
        direction
    }

    pub(in super::super) fn is_piping(&self) -> bool {
        self.phase == Iperf2DirectionState::Piping
    }

    /// Sends a block of the input.
    pub(in super::super) fn pass_on(&mut self, queue: &mut OutputQueue, now: Timestamp, block: &[u8]) {
        let Some(link) = self.track.streams.first().map(|stream| stream.link) else { return };
        if let Some(stream) = self.track.counts.streams.first_mut() {
            stream.bytes = stream.bytes.saturating_add(block.len() as u64);
            stream.calls = stream.calls.saturating_add(1);
        }
        self.track.counts.first_at.get_or_insert(now);
        self.track.counts.last_at = Some(now);
        queue.put(Output::Send { link, bytes: block.to_vec() });
    }

    /// Everything was read, or the time is over.
    pub(in super::super) fn end_of_input(&mut self, queue: &mut OutputQueue, now: Timestamp) {
        if self.is_piping() {
            self.show_intervals(queue, now);
            self.close(queue, now);
        }
    }
}
