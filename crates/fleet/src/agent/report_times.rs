//! When an agent says how it is.

use linerate_units::Span;
use rand::Rng;

/// How often an agent reports, and how much sooner or later.
const REPORT_INTERVAL: Span = Span::from_secs(30);
/// How soon after a change.
const SOON: Span = Span::from_secs(1);
/// When a report without an answer is repeated; after twice the time if that has none either. Nobody may have heard it: a
/// coordinator comes back to the broker at another moment than its agents.
const REPEAT_AFTER: Span = Span::from_secs(4);

/// The times of reports, on the clock that nobody sets.
#[derive(Debug, Default)]
pub(super) struct ReportTimes {
    next: Span,
    /// When the last report is repeated; absent once it has an answer.
    repeat: Option<Span>,
    /// Reports in a row without an answer.
    unanswered: u32,
}

impl ReportTimes {
    /// When it reports next.
    pub(super) fn next(&self) -> Span {
        self.repeat.map_or(self.next, |repeat| repeat.min(self.next))
    }

    /// There is news.
    pub(super) fn at_once(&mut self) {
        self.next = Span::ZERO;
    }

    /// There is a connection again, as for many others at the same moment.
    pub(super) fn connected(&mut self, now: Span, random: &mut impl Rng) {
        self.unanswered = 0;
        self.next = self.next.min(now + Span::from_ns(random.random_range(0..=SOON.as_ns())));
    }

    pub(super) fn answered(&mut self) {
        (self.repeat, self.unanswered) = (None, 0);
    }

    pub(super) fn reported(&mut self, now: Span, random: &mut impl Rng) {
        let repeat = REPEAT_AFTER.saturating_mul(1 << self.unanswered.min(3)).min(REPORT_INTERVAL);
        self.unanswered = self.unanswered.saturating_add(1);
        self.repeat = Some(now + about(repeat, random));
        self.next = now + about(REPORT_INTERVAL, random);
    }
}

/// This time, or up to a fifth less or more.
fn about(time: Span, random: &mut impl Rng) -> Span {
    let fifth = time.as_ns() / 5;
    Span::from_ns(time.as_ns() - fifth + random.random_range(0..=2 * fifth))
}
