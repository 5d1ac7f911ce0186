//! The dialogue of a sweep over message sizes, between two ends without a path.

use linerate_model::flow::FlowId;
use linerate_model::{CheckedSpec, Direction, HostInfo, Side, SideSettings, Sweep, Tally, TestSpec};
use linerate_units::{Bytes, Span, Timestamp};

use super::super::message::NativeMessage;
use super::super::{ClientSession, Framer, Preface, ServerSession};
use super::{COOKIE, DRAIN};
use crate::PeerError;
use crate::session::{
    Admission, Ended, FlowOrder, Session, SessionInput, SessionOutput, SweepTrial, TrialCount,
};

fn spec() -> CheckedSpec {
    TestSpec { sweep: Some(Sweep::default()), ..TestSpec::default() }.checked().unwrap()
}

/// A test that is not a sweep.
fn uploads() -> CheckedSpec {
    let mut spec = TestSpec::default();
    spec.traffic.upload = true;
    spec.checked().unwrap()
}

fn trial(trial: u32) -> SweepTrial {
    SweepTrial { trial, message_bytes: Bytes::new(64), repeats: 10, timeout_ns: Span::from_secs(20) }
}

fn counted(trial: u32) -> TrialCount {
    let (read_bytes, written_bytes) = (Bytes::new(640), Bytes::new(640));
    TrialCount { trial, read_bytes, written_bytes, elapsed_ns: Span::from_ns(5000), ..TrialCount::default() }
}

fn last_word(side: Side) -> SessionInput<'static> {
    SessionInput::FlowEnded(Box::new(Ended {
        flow: FlowId(0),
        side,
        settings: SideSettings::default(),
        tally: Tally::default(),
        caveats: Vec::new(),
    }))
}

/// Both ends; what one sends reaches the other immediately.
struct SweepEnds {
    now: Timestamp,
    client: ClientSession,
    server: ServerSession,
    /// The outputs of each end: true is the client.
    outputs: Vec<(bool, SessionOutput)>,
}

impl SweepEnds {
    /// Both ends after the client's start message.
    fn started(spec: &CheckedSpec) -> Result<Self, PeerError> {
        let now = Timestamp::START;
        let client = ClientSession::new(now, HostInfo::default(), spec.clone(), DRAIN);
        let mut pair = Self { now, client, server: ServerSession::new(now), outputs: Vec::new() };
        pair.settle()?;
        let admission = Admission { host: HostInfo::default(), cookie: COOKIE, concurrent_runs: 0 };
        pair.feed(false, SessionInput::Admit(Box::new(admission)))?;
        let order = FlowOrder::new(spec, FlowId(0), Direction::Upload, Bytes::new(64)).unwrap();
        pair.feed(true, SessionInput::Measure(vec![order]))?;
        pair.feed(true, SessionInput::FlowsOpen)?;
        pair.feed(false, SessionInput::FlowsOpen)?;
        pair.outputs.clear();
        Ok(pair)
    }

    fn feed(&mut self, client: bool, input: SessionInput<'_>) -> Result<(), PeerError> {
        if client { self.client.input(self.now, input) } else { self.server.input(self.now, input) }?;
        self.settle()
    }

    fn settle(&mut self) -> Result<(), PeerError> {
        loop {
            let (of_client, output) = match self.client.output() {
                Some(output) => (true, output),
                None => match self.server.output() {
                    Some(output) => (false, output),
                    None => return Ok(()),
                },
            };
            match output {
                SessionOutput::Send(bytes) if of_client => {
                    self.server.input(self.now, SessionInput::Bytes(&bytes))?
                }
                SessionOutput::Send(bytes) => self.client.input(self.now, SessionInput::Bytes(&bytes))?,
                other => self.outputs.push((of_client, other)),
            }
        }
    }

    /// Lets time pass while both ends are alive, until one of them gives up.
    fn wait(&mut self, most: Span) -> Result<(), PeerError> {
        let until = self.now + most;
        while self.now < until {
            let next = [self.client.deadline(), self.server.deadline()].into_iter().flatten().min();
            self.now = next.unwrap_or(until).max(self.now).min(until);
            self.feed(true, SessionInput::Tick)?;
            self.feed(false, SessionInput::Tick)?;
        }
        Ok(())
    }
}

#[test]
fn trials_run_one_after_another_and_the_series_ends_in_the_regular_way() {
    let mut pair = SweepEnds::started(&spec()).unwrap();
    for number in 0..3 {
        pair.feed(true, SessionInput::Trial(trial(number))).unwrap();
        assert!(
            matches!(pair.outputs.pop(), Some((false, SessionOutput::Trial(got))) if got == trial(number))
        );
        pair.feed(false, SessionInput::TrialCounted(counted(number))).unwrap();
        assert!(
            matches!(pair.outputs.pop(), Some((true, SessionOutput::PeerTrial(got))) if got == counted(number))
        );
    }
    pair.feed(true, last_word(Side::Sender)).unwrap();
    assert!(matches!(pair.outputs.pop(), Some((false, SessionOutput::PeerEnded(_)))));
    pair.feed(false, last_word(Side::Receiver)).unwrap();
    let over =
        pair.outputs.drain(..).filter(|(_, output)| matches!(output, SessionOutput::PhaseDone)).count();
    assert_eq!(over, 2);
    pair.feed(true, SessionInput::Finish(Vec::new())).unwrap();
    assert!(pair.outputs.iter().any(|entry| matches!(entry, (false, SessionOutput::Done))));
}

#[test]
fn a_count_that_crosses_the_last_word_does_no_harm() {
    let mut pair = SweepEnds::started(&spec()).unwrap();
    pair.feed(true, SessionInput::Trial(trial(0))).unwrap();
    // The client gives up while the server's counts are in transit.
    pair.server.input(pair.now, SessionInput::TrialCounted(counted(0))).unwrap();
    pair.client.input(pair.now, last_word(Side::Sender)).unwrap();
    pair.settle().unwrap();
    pair.feed(false, last_word(Side::Receiver)).unwrap();
    assert!(pair.outputs.iter().any(|entry| matches!(entry, (true, SessionOutput::PhaseDone))));
}

#[test]
fn a_count_that_crosses_the_last_word_leaves_its_deadline_as_it_is() {
    let mut pair = SweepEnds::started(&spec()).unwrap();
    pair.feed(true, SessionInput::Trial(trial(0))).unwrap();
    pair.server.input(pair.now, SessionInput::TrialCounted(counted(0))).unwrap();
    pair.client.input(pair.now, last_word(Side::Sender)).unwrap();
    pair.settle().unwrap();
    // The server is alive but never sends its final report: the timeout is 5 s plus the drain of 1 s.
    assert_eq!(pair.wait(Span::from_ms(5900)), Ok(()));
    let error = pair.wait(Span::from_secs(1)).unwrap_err();
    assert_eq!(error, PeerError::Silent { during: "waiting for the server's counts", waited_s: 6 });
}

#[test]
fn what_cannot_be_is_refused_at_either_end() {
    for wrong in [
        SweepTrial { message_bytes: Bytes::new(0), ..trial(0) },
        SweepTrial { message_bytes: Bytes::new((64 << 20) + 1), ..trial(0) },
        SweepTrial { repeats: 0, ..trial(0) },
        SweepTrial { repeats: 100_001, ..trial(0) },
        SweepTrial { timeout_ns: Span::from_secs(601), ..trial(0) },
    ] {
        let mut pair = SweepEnds::started(&spec()).unwrap();
        assert!(
            matches!(pair.feed(true, SessionInput::Trial(wrong)), Err(PeerError::Local { .. })),
            "{wrong:?}"
        );
        let bytes = Framer::encode(&NativeMessage::Trial(wrong)).unwrap();
        let error = pair.server.input(pair.now, SessionInput::Bytes(&bytes)).unwrap_err();
        assert!(matches!(error, PeerError::Misbehaved { .. }), "{error:?}");
    }
    // One trial at a time.
    let mut pair = SweepEnds::started(&spec()).unwrap();
    pair.feed(true, SessionInput::Trial(trial(0))).unwrap();
    assert!(pair.feed(true, SessionInput::Trial(trial(1))).is_err());
    // The counts of another trial.
    assert!(pair.feed(false, SessionInput::TrialCounted(counted(1))).is_err());
    // A test that is not a sweep has no trials.
    let mut pair = SweepEnds::started(&uploads()).unwrap();
    assert!(pair.feed(true, SessionInput::Trial(trial(0))).is_err());
}

#[test]
fn a_server_that_lives_and_never_counts_is_given_up() {
    let mut pair = SweepEnds::started(&spec()).unwrap();
    pair.feed(true, SessionInput::Trial(trial(0))).unwrap();
    assert_eq!(pair.wait(Span::from_secs(24)), Ok(()));
    let error = pair.wait(Span::from_secs(2)).unwrap_err();
    assert_eq!(
        error,
        PeerError::Silent { during: "waiting for the server's count of a trial", waited_s: 25 }
    );
}

#[test]
fn a_client_that_lives_and_asks_for_nothing_is_given_up() {
    let mut pair = SweepEnds::started(&spec()).unwrap();
    pair.feed(true, SessionInput::Trial(trial(0))).unwrap();
    pair.feed(false, SessionInput::TrialCounted(counted(0))).unwrap();
    assert_eq!(pair.wait(Span::from_secs(59)), Ok(()));
    let error = pair.wait(Span::from_secs(2)).unwrap_err();
    assert_eq!(error, PeerError::Silent { during: "waiting for the client's next trial", waited_s: 60 });
}

#[test]
fn a_server_of_an_older_version_is_named() {
    let now = Timestamp::START;
    let mut client = ClientSession::new(now, HostInfo::default(), spec(), DRAIN);
    client.input(now, SessionInput::Bytes(&Preface::CONTROL.encode())).unwrap();
    let welcome = NativeMessage::Welcome {
        version: super::VERSION,
        capabilities: ["tcp", "udp"].map(str::to_owned).to_vec().into_iter().map(Into::into).collect(),
        host: HostInfo::default(),
        cookie: "00".repeat(16).into(),
        concurrent_runs: 0,
    };
    let error = client.input(now, SessionInput::Bytes(&Framer::encode(&welcome).unwrap())).unwrap_err();
    assert_eq!(error, PeerError::Lacks { what: "sweep", can: "tcp, udp".into() });
    assert!(error.to_string().contains("'sweep'"), "{error}");
}
