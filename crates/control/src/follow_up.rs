//! Further runs that answer what a run leaves open. `linerate_theory` decides which runs are needed and what
//! they mean.

use std::sync::atomic::Ordering;

use linerate_model::flow::FlowId;
use linerate_model::{
    Body, CaveatKind, Direction, Finding, FollowUp, Outcome, Rule, RunRecord, TestSpec, Variation,
};
use linerate_theory::follow_up::{Conclusion, FurtherRun, Question, Reply, Topic, questions};
use linerate_theory::{Evidence, diagnose, follow_up};
use linerate_units::{Bitrate, Bytes, Span};

use crate::client::{TestRequest, measure_then};
use crate::error::ControlError;
use crate::judge;
use crate::log::Log;

/// A follow-up run: its own log, and its wall-clock start, RFC 3339.
pub struct FollowUpRun<'a> {
    /// The log of the run.
    pub log: Log<'a>,
    /// Wall-clock start, RFC 3339.
    pub started_at: String,
}

/// Like [`crate::measure`], followed by the runs for questions that the result leaves open, or only for those
/// of the topic `wanted`. The final verdict takes them into account. `open` receives the question and returns
/// the log of each further run; after `None` no more runs are made.
///
/// Each is an ordinary run of the same client, and the server admits it like any other.
///
/// # Errors
/// As for [`crate::measure`]. A further run that fails leaves its question open.
pub fn investigate<'f>(
    request: &TestRequest<'_>,
    log: &mut Log<'_>,
    wanted: Option<Topic>,
    open: &mut dyn FnMut(&Question) -> Option<FollowUpRun<'f>>,
) -> Result<Outcome, ControlError> {
    measure_then(request, log, &mut |log| {
        let flows: Vec<FlowId> = log.record().flows.iter().map(|flow| flow.plan.flow).collect();
        for flow in flows {
            ask_all(request, flow, log, wanted, open);
        }
    })
}

/// Works through the questions that the verdict on a flow leaves open, until an answer gives a verdict.
fn ask_all<'f>(
    request: &TestRequest<'_>,
    flow: FlowId,
    log: &mut Log<'_>,
    wanted: Option<Topic>,
    open: &mut dyn FnMut(&Question) -> Option<FollowUpRun<'f>>,
) {
    let Some(evidence) = judge::evidence(log.record(), flow) else { return };
    let Some(direction) = log.record().flow(flow).map(|flow| flow.plan.direction) else { return };
    let diagnosis = diagnose(&evidence);
    let asked = match wanted {
        Some(topic) => follow_up::question_for(topic, &evidence, &diagnosis).into_iter().collect(),
        None => questions(&evidence, &diagnosis),
    };
    for question in asked {
        if request.stop.load(Ordering::Relaxed) {
            return;
        }
        let asked = FlowQuestion {
            request,
            question: &question,
            evidence: &evidence,
            direction,
            run: &log.record().run,
        };
        let (runs, conclusion) = asked.answer(open);
        let found = conclusion.finding.clone();
        let count = runs.len();
        let follow_up = FollowUp {
            question: question.topic.name().into(),
            because: question.because.into(),
            runs: runs.into_iter().map(Into::into).collect(),
            answer: conclusion.answer.into(),
            evidence: conclusion.evidence,
        };
        log.note(Body::FollowUp { flow, follow_up });
        if let Some(finding) = found {
            conclude(flow, finding, count, log);
            return;
        }
    }
}

/// A question about one flow.
struct FlowQuestion<'a> {
    request: &'a TestRequest<'a>,
    question: &'a Question,
    evidence: &'a Evidence,
    direction: Direction,
    /// Id of the run that left the question open.
    run: &'a str,
}

impl FlowQuestion<'_> {
    /// Makes runs until they suffice; returns their ids and the conclusion.
    fn answer<'f>(
        &self,
        open: &mut dyn FnMut(&Question) -> Option<FollowUpRun<'f>>,
    ) -> (Vec<String>, Conclusion) {
        let (mut runs, mut replies) = (Vec::new(), Vec::new());
        while let Some(trial) = self.question.topic.next(self.evidence, &replies) {
            let stopped = self.request.stop.load(Ordering::Relaxed);
            let Some(follow_up) = (!stopped).then(|| open(self.question)).flatten() else { break };
            let (run, reply) = self.make(trial, follow_up);
            runs.push(run);
            replies.push(reply);
        }
        (runs, self.question.topic.conclude(self.evidence, &replies))
    }

    /// Makes one further run; returns its id and its result.
    fn make(&self, trial: FurtherRun, follow_up: FollowUpRun<'_>) -> (String, Reply) {
        let FollowUpRun { mut log, started_at } = follow_up;
        let request = TestRequest {
            host: self.request.host.clone(),
            port: self.request.port,
            spec: spec_of(&self.request.spec, self.direction, &trial),
            tls: self.request.tls.clone(),
            world: self.request.world,
            started_at,
            calibration: self.request.calibration.clone(),
            observer: self.request.observer,
            file: None,
            stop: self.request.stop,
        };
        let text = format!("asked by run {}: {}", self.run, self.question.because);
        let done = measure_then(&request, &mut log, &mut |log| {
            log.warn(None, CaveatKind::FollowUp, text.clone());
        });
        let record = log.into_record();
        (record.run.to_string(), reply(trial, &record, matches!(done, Ok(Outcome::Completed))))
    }
}

fn reply(trial: FurtherRun, record: &RunRecord, completed: bool) -> Reply {
    let flow = record.flows.first();
    let evidence = flow.filter(|_| completed).and_then(|flow| judge::evidence(record, flow.plan.flow));
    let intervals_bps = flow.map(judge::intervals).unwrap_or_default();
    Reply { trial, evidence, intervals_bps }
}

/// The specification of a further run: that of the first run, with the variations of the trial.
fn spec_of(first: &TestSpec, direction: Direction, trial: &FurtherRun) -> TestSpec {
    first.varied(&Variation {
        udp: trial.udp,
        direction,
        streams: trial.streams,
        duration: Span::from_secs_f64(trial.seconds).unwrap_or(Span::from_secs(1)),
        each: trial.offered_bps.and_then(|rate| Bitrate::from_bps(rate / f64::from(trial.streams))),
        pace: trial.pace_bps.and_then(Bitrate::from_bps),
        length: trial.length_bytes.map(|bytes| Bytes::new(bytes as u64)),
        latency: trial.latency,
    })
}

/// Records the verdict after the further runs. Its text states their number, and the first verdict is kept in
/// `also`.
fn conclude(flow: FlowId, mut finding: Finding, runs: usize, log: &mut Log<'_>) {
    let Some(record) = log.record().flow(flow) else { return };
    finding.text.push_str(&format!(" Based on {runs} further run(s)."));
    let before = record.verdict.iter().chain(&record.also);
    let also = before
        .filter(|known| known.rule != finding.rule && known.rule != Rule::Unexplained)
        .cloned()
        .collect();
    log.note(Body::Verdict { flow, verdict: finding, also });
}

#[cfg(test)]
mod tests {
    use linerate_model::{Cause, Confidence, FlowPlan, Transport};

    use super::*;

    fn trial(udp: bool) -> FurtherRun {
        FurtherRun {
            udp,
            offered_bps: udp.then_some(8e6),
            pace_bps: None,
            length_bytes: udp.then_some(700.0),
            streams: 4,
            seconds: 0.5,
            latency: false,
        }
    }

    #[test]
    fn a_trial_keeps_what_it_does_not_ask_and_always_makes_sense() {
        let mut first = TestSpec::default();
        first.traffic.bidir = true;
        first.traffic.blocks = Some(7);
        first.traffic.length = Some(Bytes::new(1 << 20));
        first.socket.congestion = Some("reno".into());
        first.socket.no_delay = true;
        first.socket.source_port = Some(4000);
        first.socket.dscp = "ef".parse().ok();
        let tcp = spec_of(&first, Direction::Download, &trial(false));
        assert!(tcp.traffic.download && !tcp.traffic.bidir && !tcp.traffic.udp);
        assert_eq!((tcp.traffic.blocks, tcp.traffic.rate, tcp.socket.source_port), (None, None, None));
        assert_eq!((tcp.socket.congestion.as_deref(), tcp.socket.dscp), (Some("reno"), "ef".parse().ok()));
        let udp = spec_of(&first, Direction::Upload, &trial(true));
        assert_eq!(udp.traffic.rate.map(Bitrate::bps), Some(2e6));
        assert_eq!(udp.traffic.length.map(Bytes::get), Some(700));
        for spec in [tcp, udp] {
            assert_eq!((spec.check(), spec.agree()), (Ok(()), Ok(())));
        }
    }

    #[test]
    fn the_later_verdict_has_the_first_one_among_the_others() {
        let finding = |rule: Rule| Finding {
            cause: Cause::Unknown,
            rule,
            confidence: Confidence::Probable,
            share_of_time: None,
            text: "So.".into(),
            evidence: std::collections::BTreeMap::new(),
            remedy: None,
        };
        let mut log = Log::owning("r".to_owned(), Vec::new());
        log.note(Body::FlowPlanned(FlowPlan {
            flow: FlowId(0),
            name: "upload".into(),
            from: "a".into(),
            to: "b".into(),
            transport: Transport::Tcp,
            direction: Direction::Upload,
            streams: 1,
        }));
        log.note(Body::Verdict {
            flow: FlowId(0),
            verdict: finding(Rule::Unexplained),
            also: vec![finding(Rule::Bufferbloat), finding(Rule::Policer)],
        });
        conclude(FlowId(0), finding(Rule::Policer), 2, &mut log);
        let flow = log.record().flow(FlowId(0)).unwrap();
        assert_eq!(flow.verdict.as_ref().unwrap().text, "So. Based on 2 further run(s).");
        let also: Vec<&Rule> = flow.also.iter().map(|finding| &finding.rule).collect();
        assert_eq!(also, [&Rule::Bufferbloat]);
    }
}
