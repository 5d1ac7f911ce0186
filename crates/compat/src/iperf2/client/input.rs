//! Sends a file or standard input (-F, -I) on the only connection, without the engine.

use linerate_units::Timestamp;

use super::{Iperf2Client, Iperf2ClientState};
use crate::iperf2::direction::Iperf2Direction;
use crate::iperf2::settings::Iperf2Amount;
use crate::stand_in::Output;

impl Iperf2Client {
    pub(super) fn start_input(&mut self, now: Timestamp) {
        self.stage = Iperf2ClientState::Piping;
        if let Iperf2Amount::Time(time) = self.queue.settings.amount {
            self.due = Some(now + time);
        }
        let load = self.load(true, false);
        self.directions.push(Iperf2Direction::piped(&self.queue, now, load, self.streams.clone()));
        self.queue.put(Output::Read);
    }

    /// The next block, or the end of the input.
    pub(super) fn input_block(&mut self, now: Timestamp, block: Option<&[u8]>) {
        let amount = self.queue.settings.amount;
        let Some(direction) = self.directions.first_mut().filter(|direction| direction.is_piping()) else {
            return;
        };
        let left = match amount {
            Iperf2Amount::Bytes(bytes) => bytes.saturating_sub(direction.track.moved()),
            Iperf2Amount::Time(_) => u64::MAX,
        };
        let block =
            block.map(|block| block.get(..usize::try_from(left).unwrap_or(usize::MAX)).unwrap_or(block));
        match block.filter(|block| !block.is_empty()) {
            Some(block) => direction.pass_on(&mut self.queue, now, block),
            None => {
                direction.end_of_input(&mut self.queue, now);
                self.due = None;
            }
        }
    }

    /// The last block has left.
    pub(super) fn input_sent(&mut self) {
        let sends = self.directions.first().is_some_and(Iperf2Direction::is_piping);
        if self.stage == Iperf2ClientState::Piping && sends {
            self.queue.put(Output::Read);
        }
    }
}
