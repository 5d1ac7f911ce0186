//! Tests that begin later than their connections (--txdelay-time, --txstart-time).

use linerate_units::{Span, Timestamp};

use super::{Iperf2Client, Iperf2ClientState};

impl Iperf2Client {
    /// Starts the test now, or when the user wants.
    pub(super) fn start_when_due(&mut self, now: Timestamp) {
        let settings = &self.queue.settings;
        let delayed = now + settings.start_delay.unwrap_or(Span::ZERO);
        let at = settings.start_at.map_or(delayed, |wall| delayed.max(settings.at_wall(wall)));
        if at <= now {
            return self.start(now);
        }
        self.stage = Iperf2ClientState::Delaying;
        self.due = Some(at);
        let (then, wait) = (settings.wall(at).0, at.since(now));
        let text = self.queue.report.starts_later(self.streams.len(), wait, then, settings.wall(now).0);
        self.queue.print(text);
    }
}
