//! Whether anybody answers an agent.

use linerate_units::Span;

/// How long nobody may answer while the broker is connected: four reports of an agent.
const SILENT_AFTER: Span = Span::from_secs(120);

/// Notices that nobody answers. Times are those of a clock that nobody sets.
#[derive(Debug, Default)]
pub(crate) struct AnswerWatch {
    /// When the connection was made or an answer came; absent without a connection.
    since: Option<Span>,
    reported: bool,
}

impl AnswerWatch {
    /// The broker is connected.
    pub(crate) fn connected(&mut self, now: Span) {
        self.since = Some(now);
    }

    /// The broker is not connected any more, which is reported by itself.
    pub(crate) fn disconnected(&mut self) {
        self.since = None;
    }

    /// The coordinators said something; whether it was reported that they did not.
    pub(crate) fn answered(&mut self, now: Span) -> bool {
        self.since = Some(now);
        std::mem::take(&mut self.reported)
    }

    /// Whether it is to be reported now that nobody answers: once until somebody does.
    pub(crate) fn is_news(&mut self, now: Span) -> bool {
        let silent = self.since.is_some_and(|since| now.saturating_sub(since) >= SILENT_AFTER);
        silent && !std::mem::replace(&mut self.reported, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_told_once_until_somebody_answers() {
        let (mut watch, at) = (AnswerWatch::default(), Span::from_secs);
        assert!(!watch.is_news(at(1000)), "without a connection nobody can answer");
        watch.connected(at(1000));
        assert!(!watch.is_news(at(1119)));
        assert!(watch.is_news(at(1120)));
        assert!(!watch.is_news(at(9000)), "once");
        watch.disconnected();
        watch.connected(at(9001));
        assert!(!watch.is_news(at(9999)), "nobody has answered since");
        assert!(watch.answered(at(10_000)));
        assert!(!watch.answered(at(10_030)));
        assert!(!watch.is_news(at(10_149)));
        assert!(watch.is_news(at(10_150)));
    }
}
