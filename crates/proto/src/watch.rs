//! The timeouts of a dialogue: peer silence, steps that must end in time, and our own heartbeats.

use linerate_units::{Span, Timestamp};

use crate::PeerError;

/// Interval of heartbeats from an end that has nothing else to send: longer than the progress interval of a slow
/// path, so that progress makes them unnecessary there.
const HEARTBEAT: Span = Span::from_secs(2);

/// How long a peer may be silent: longer than the queueing delay of a badly bloated path, which a measurement
/// fills, but short enough for a waiting user.
const MAX_SILENCE: Span = Span::from_secs(6);

/// The timers of one connection.
#[derive(Debug)]
pub(crate) struct Watch {
    last_received: Timestamp,
    last_sent: Timestamp,
    step: Option<Deadline>,
    /// Whether both ends send heartbeats.
    heartbeats: bool,
    /// The current step, for errors.
    during: &'static str,
}

/// A deadline for the current step.
#[derive(Debug, Clone, Copy)]
struct Deadline {
    by: Timestamp,
    allowed: Span,
}

impl Watch {
    /// Begins without a deadline.
    pub(crate) const fn new(now: Timestamp, during: &'static str) -> Self {
        Self { last_received: now, last_sent: now, step: None, heartbeats: false, during }
    }

    /// Begins heartbeats, once the peer is known.
    pub(crate) const fn start_heartbeats(&mut self, now: Timestamp) {
        self.heartbeats = true;
        self.last_received = now;
    }

    /// Notes that the peer is alive.
    pub(crate) const fn note_received(&mut self, now: Timestamp) {
        self.last_received = now;
    }

    /// Notes that this end has sent a message.
    pub(crate) const fn note_sent(&mut self, now: Timestamp) {
        self.last_sent = now;
    }

    /// Begins a step with a deadline.
    pub(crate) fn begin_step(&mut self, now: Timestamp, during: &'static str, allowed: Span) {
        self.during = during;
        self.step = Some(Deadline { by: now + allowed, allowed });
    }

    /// Begins a step without a deadline, which only heartbeats guard.
    pub(crate) const fn begin_untimed_step(&mut self, during: &'static str) {
        self.during = during;
        self.step = None;
    }

    /// Whether a heartbeat is due.
    ///
    /// # Errors
    /// The peer is silent, or a step has exceeded its deadline.
    pub(crate) fn check(&self, now: Timestamp) -> Result<bool, PeerError> {
        if let Some(step) = self.step.filter(|step| now >= step.by) {
            return Err(silent(self.during, step.allowed));
        }
        if self.heartbeats && now.since(self.last_received) >= MAX_SILENCE {
            return Err(silent(self.during, MAX_SILENCE));
        }
        Ok(self.heartbeats && now.since(self.last_sent) >= HEARTBEAT)
    }

    /// When to check next; absent if nothing can become due.
    pub(crate) fn deadline(&self) -> Option<Timestamp> {
        let heartbeat =
            self.heartbeats.then(|| (self.last_sent + HEARTBEAT).min(self.last_received + MAX_SILENCE));
        earliest(self.step.map(|step| step.by), heartbeat)
    }

    /// The error when the peer has closed the connection.
    pub(crate) const fn closed(&self) -> PeerError {
        PeerError::Closed { during: self.during }
    }
}

/// The earlier one of two deadlines.
pub(crate) fn earliest(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// The error when the peer was silent for `allowed`.
pub(crate) const fn silent(during: &'static str, allowed: Span) -> PeerError {
    PeerError::Silent { during, waited_s: allowed.as_ns() / 1_000_000_000 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGUN: Timestamp = Timestamp::START;

    #[test]
    fn a_heartbeat_is_due_two_seconds_after_the_last_message_and_silence_ends_it_after_six() {
        let mut watch = Watch::new(BEGUN, "greeting");
        assert_eq!(
            (watch.check(BEGUN + MAX_SILENCE).unwrap(), watch.deadline()),
            (false, None),
            "nobody is known yet"
        );
        watch.start_heartbeats(BEGUN);
        assert_eq!(watch.deadline(), Some(BEGUN + HEARTBEAT));
        assert!(!watch.check(BEGUN + Span::from_ms(1_999)).unwrap());
        assert!(watch.check(BEGUN + HEARTBEAT).unwrap());
        watch.note_sent(BEGUN + Span::from_ms(5_900));
        assert_eq!(watch.deadline(), Some(BEGUN + MAX_SILENCE));
        let error = watch.check(BEGUN + MAX_SILENCE).unwrap_err();
        assert!(matches!(error, PeerError::Silent { during: "greeting", waited_s: 6 }), "{error:?}");
        watch.note_received(BEGUN + MAX_SILENCE);
        assert!(watch.check(BEGUN + MAX_SILENCE).is_ok());
    }

    #[test]
    fn a_step_that_does_not_end_in_time_is_named_and_one_that_has_ended_is_not() {
        let mut watch = Watch::new(BEGUN, "greeting");
        watch.begin_step(BEGUN, "opening", Span::from_secs(2));
        assert_eq!(watch.deadline(), Some(BEGUN + Span::from_secs(2)));
        let error = watch.check(BEGUN + Span::from_secs(2)).unwrap_err();
        assert!(matches!(error, PeerError::Silent { during: "opening", waited_s: 2 }), "{error:?}");
        watch.begin_untimed_step("measuring");
        assert!(!watch.check(BEGUN + Span::from_secs(2)).unwrap());
        assert!(matches!(watch.closed(), PeerError::Closed { during: "measuring" }));
    }
}
