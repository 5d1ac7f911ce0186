//! Questions that one run leaves open, and the runs that answer them.
//!
//! Pure: [`questions`] lists the questions worth asking after a run, [`Topic::next`] gives the next run after
//! the replies so far, and [`Topic::conclude`] the answer. The caller makes the runs.

mod pacing;
mod policing;
mod ports;
mod reads;
mod sizes;

#[cfg(test)]
mod examples;

use std::collections::BTreeMap;

use linerate_model::{EvidenceKey, Finding, Rule};

use crate::diagnose::Diagnosis;
use crate::evidence::Evidence;

/// Topic of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// UDP above and below the rate: does the path drop or delay the excess?
    Policing,
    /// TCP with pacing: does the loss come from bursts?
    Pacing,
    /// Many connections instead of one: is the path a LAG?
    Ports,
    /// Datagrams of different sizes: above which size are packets lost?
    Sizes,
    /// Reads of different sizes: how many acknowledgements are sent for each?
    Reads,
}

/// A question worth further runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// What it is about.
    pub topic: Topic,
    /// The reason for the question, as text.
    pub because: String,
    /// Possible answers, and the meaning of each.
    pub meanings: [(&'static str, &'static str); 2],
}

/// A run to make. Everything else is as in the first run.
#[derive(Debug, Clone, PartialEq)]
pub struct FurtherRun {
    /// UDP instead of TCP.
    pub udp: bool,
    /// Offered rate, all connections together, bit/s of payload.
    pub offered_bps: Option<f64>,
    /// Pacing rate of each TCP connection, bit/s.
    pub pace_bps: Option<f64>,
    /// Payload of a datagram; over TCP the size of a write and of a read; bytes.
    pub length_bytes: Option<f64>,
    /// Number of connections.
    pub streams: u32,
    /// Duration, s.
    pub seconds: f64,
    /// Whether latency is probed at the same time.
    pub latency: bool,
}

/// Result of a trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The trial.
    pub trial: FurtherRun,
    /// The measured evidence; absent if the run failed.
    pub evidence: Option<Evidence>,
    /// Payload rate of each interval at the receiver, including the first, bit/s.
    pub intervals_bps: Vec<f64>,
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq)]
pub struct Conclusion {
    /// The answer as text, with numbers.
    pub answer: String,
    /// Numbers of the answer.
    pub evidence: BTreeMap<EvidenceKey, f64>,
    /// The verdict that follows; absent if the first verdict is kept.
    pub finding: Option<Finding>,
}

/// The questions worth asking after this run, the most informative first.
#[must_use]
pub fn questions(evidence: &Evidence, diagnosis: &Diagnosis) -> Vec<Question> {
    let asked = [sizes::question, ports::question, policing::question, pacing::question, reads::question];
    asked.into_iter().filter_map(|question| question(evidence, diagnosis)).collect()
}

/// The question on a topic that a user requested, whatever the verdict; `None` if it does not apply to this
/// flow.
#[must_use]
pub fn question_for(topic: Topic, evidence: &Evidence, diagnosis: &Diagnosis) -> Option<Question> {
    match topic {
        Topic::Reads => reads::question_for(evidence),
        _ => questions(evidence, diagnosis).into_iter().find(|question| question.topic == topic),
    }
}

impl Topic {
    /// Name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Policing => "policing",
            Self::Pacing => "pacing",
            Self::Ports => "ports",
            Self::Sizes => "sizes",
            Self::Reads => "reads",
        }
    }

    /// The next run to make; `None` if the replies suffice or no further run would help.
    #[must_use]
    pub fn next(self, evidence: &Evidence, replies: &[Reply]) -> Option<FurtherRun> {
        match self {
            Self::Policing => policing::next(evidence, replies),
            Self::Pacing => pacing::next(evidence, replies),
            Self::Ports => ports::next(evidence, replies),
            Self::Sizes => sizes::next(evidence, replies),
            Self::Reads => reads::next(evidence, replies),
        }
    }

    /// What the replies mean for the flow.
    #[must_use]
    pub fn conclude(self, evidence: &Evidence, replies: &[Reply]) -> Conclusion {
        match self {
            Self::Policing => policing::conclude(evidence, replies),
            Self::Pacing => pacing::conclude(evidence, replies),
            Self::Ports => ports::conclude(evidence, replies),
            Self::Sizes => sizes::conclude(evidence, replies),
            Self::Reads => reads::conclude(evidence, replies),
        }
    }
}

impl Conclusion {
    /// An answer that keeps the verdict.
    fn open(answer: impl Into<String>) -> Self {
        Self { answer: answer.into(), evidence: BTreeMap::new(), finding: None }
    }

    fn with(mut self, key: EvidenceKey, value: Option<f64>) -> Self {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            self.evidence.insert(key, value);
        }
        self
    }

    /// Sets the finding and copies the numbers into it.
    fn found(mut self, finding: Option<Finding>) -> Self {
        self.finding = finding.map(|mut finding| {
            let known = self.evidence.iter().map(|(name, value)| (name.clone(), *value));
            finding.evidence.extend(known);
            finding
        });
        self
    }
}

impl Reply {
    fn loss(&self) -> Option<f64> {
        self.evidence.as_ref()?.loss()
    }

    fn goodput_bps(&self) -> Option<f64> {
        self.evidence.as_ref()?.outcome.goodput_bps.filter(|rate| *rate > 0.0)
    }
}

/// Whether one of these rules gave the verdict.
fn verdict_is(diagnosis: &Diagnosis, rules: &[Rule]) -> bool {
    rules.contains(&diagnosis.primary.rule)
}

#[cfg(test)]
mod tests {
    use super::examples::{long_lossy, stalled};
    use super::*;
    use crate::diagnose;
    use crate::rules::examples::{full_gigabit, long_path, loopback};

    fn topics(evidence: &Evidence) -> Vec<Topic> {
        questions(evidence, &diagnose(evidence)).iter().map(|question| question.topic).collect()
    }

    #[test]
    fn a_verdict_that_stands_asks_nothing() {
        assert_eq!(topics(&full_gigabit()), []);
        assert_eq!(topics(&loopback()), []);
        assert_eq!(topics(&long_path()), []);
    }

    #[test]
    fn an_ambiguous_one_asks_what_could_tell() {
        assert_eq!(topics(&long_lossy()), [Topic::Policing, Topic::Pacing]);
        assert_eq!(topics(&stalled()), [Topic::Sizes]);
        let mut slower = full_gigabit();
        slower.link.link_bps = Some(10e9);
        assert_eq!(topics(&slower), [Topic::Ports]);
        assert_eq!(topics(&crate::rules::examples::shaped(100e6)), [Topic::Ports]);
        slower.outcome.goodput_bps = Some(870e6);
        slower.outcome.intervals_bps = vec![700e6, 900e6, 941e6];
        slower.tcp.retransmits = Some(3.0);
        assert_eq!(
            topics(&slower),
            [Topic::Ports, Topic::Policing, Topic::Pacing],
            "nearly a gigabit, which nobody has named"
        );
    }

    #[test]
    fn failed_runs_and_nonsense_end_every_question() {
        for topic in [Topic::Policing, Topic::Pacing, Topic::Ports, Topic::Sizes, Topic::Reads] {
            for value in [f64::NAN, f64::INFINITY, 0.0, -1.0, 1e-300] {
                let mut evidence = long_lossy();
                evidence.outcome.goodput_bps = Some(value);
                evidence.link.mtu_bytes = Some(value);
                let mut replies = Vec::new();
                while let Some(trial) = topic.next(&evidence, &replies) {
                    let evidence = (replies.len() % 2 == 0).then(|| evidence.clone());
                    replies.push(Reply { trial, evidence, intervals_bps: vec![value; 3] });
                    assert!(replies.len() < 30, "{topic:?} has no end");
                }
                let conclusion = topic.conclude(&evidence, &replies);
                assert!(!conclusion.answer.is_empty());
            }
        }
    }
}
