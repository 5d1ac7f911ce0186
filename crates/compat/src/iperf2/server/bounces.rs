//! Bounce-back clients: each needs a place like any other test, and leaves it when it is silent.

use linerate_units::Timestamp;

use super::Iperf2Server;
use crate::iperf2::bounce::Bounce;
use crate::iperf2::report::Iperf2Addresses;
use crate::iperf2::track::Iperf2Stream;
use crate::stand_in::{Link, Output, RunId};

impl Iperf2Server {
    /// Asks for a place for a client whose requests begin with these bytes.
    pub(super) fn begin_bounce(&mut self, now: Timestamp, link: Link, ends: Iperf2Addresses, start: Vec<u8>) {
        if self.is_busy() {
            // Its client waits for each answer, and what has been read cannot be given back.
            return self.queue.put(Output::Reset { link });
        }
        let (run, id) = (self.take_run(), self.take_id());
        self.queue.put(Output::Reserve { run, tool: "iperf2", link });
        self.bounces.insert(link, Bounce::new(now, run, Iperf2Stream::new(id, link, ends), start));
    }

    pub(super) fn admit_bounce(&mut self, now: Timestamp, run: RunId) {
        if let Some(bounce) = self.bounces.values_mut().find(|bounce| bounce.run == run) {
            bounce.admitted(&mut self.queue, now);
        }
    }

    pub(super) fn refuse_bounce(&mut self, run: RunId) {
        let link = self.bounces.iter().find(|(_, bounce)| bounce.run == run).map(|(link, _)| *link);
        if let Some(link) = link {
            self.bounces.remove(&link);
            self.queue.put(Output::Reset { link });
        }
    }

    /// The client has left, or was silent for too long.
    pub(super) fn end_bounce(&mut self, now: Timestamp, link: Link) {
        if let Some(bounce) = self.bounces.remove(&link) {
            bounce.finish(&mut self.queue, now);
            self.served += 1;
        }
    }

    pub(super) fn end_silent_bounces(&mut self, now: Timestamp) {
        let is_late = |bounce: &Bounce| bounce.due() <= now;
        let late: Vec<Link> =
            self.bounces.iter().filter(|(_, bounce)| is_late(bounce)).map(|(link, _)| *link).collect();
        late.into_iter().for_each(|link| self.end_bounce(now, link));
    }
}
