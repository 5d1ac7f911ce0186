//! A running test or plan for many viewers: one serialised frame at a time, shared by all of them.
//!
//! A viewer that reads slowly gets the newest frame and misses those in between, so nothing is queued for it.

mod lab;
mod plan;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use axum::body::Bytes;
use linerate_control::{Sink, SinkError};
use linerate_model::flow::FlowId;
use linerate_model::{Body, Event, Outcome};
use linerate_report::live::{
    LiveFlowState, LiveFrame, LiveHistory, LiveSeries, LiveSize, LiveStateName, LiveStreams,
    LiveStreamsHistory, LiveStreamsMoment,
};
use linerate_report::{Live, PlanFrame};
use linerate_sock::thread::locked;
use linerate_sock::{Mono, clock};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::watch;

pub(crate) use lab::{LabFrame, LabSnapshot, LabState};
use plan::PlanSnapshot;
pub(crate) use plan::{LivePlan, PlanWatcher};

/// Shortest time between two frames.
const MIN_INTERVAL: Duration = Duration::from_millis(200);
/// Longest time between two frames, however many viewers there are.
const MAX_INTERVAL: Duration = Duration::from_secs(5);
/// Largest share of the measured rate that frames may use.
const MAX_SHARE: f64 = 0.002;

/// What a viewer gets first, also after its connection was lost.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LiveSnapshot {
    /// The latest state.
    frame: LiveFrame,
    /// The course until now.
    series: Vec<LiveSeries>,
    /// The message sizes that were measured until now, the smallest first.
    sizes: Vec<LiveSize>,
}

impl LiveSnapshot {
    fn new(live: &Live, history: &LiveHistory) -> Self {
        Self {
            frame: live.frame(),
            series: history.series().cloned().collect(),
            sizes: history.sizes().collect(),
        }
    }
}

/// What a viewer of the single streams gets first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StreamsSnapshot {
    /// The course until now of each flow with several streams.
    flows: Vec<LiveStreams>,
}

impl StreamsSnapshot {
    fn new(history: &LiveStreamsHistory) -> Self {
        Self { flows: history.flows().cloned().collect() }
    }
}

/// The latest counts of the flows that run.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StreamsFrame {
    flows: Vec<LiveStreamsMoment>,
}

/// The data of the messages about the single streams of a run.
#[derive(Debug, JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes messages that are written one by one")]
pub(crate) enum StreamsMessage {
    /// Of `snapshot`.
    Snapshot(StreamsSnapshot),
    /// Of `frame`.
    Frame(StreamsFrame),
    /// Of `end`.
    End(End),
}

/// The end of a run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct End {
    /// How it ended.
    pub(crate) outcome: Outcome,
    /// Why, unless it was completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

/// The data of the messages of a run's stream.
#[derive(Debug, JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes messages that are written one by one")]
pub(crate) enum RunMessage {
    /// Of `snapshot` of a test.
    Snapshot(LiveSnapshot),
    /// Of `snapshot` of a plan: also after each trial.
    PlanSnapshot(PlanSnapshot),
    /// Of `frame` of a test.
    Frame(LiveFrame),
    /// Of `frame` of a plan.
    PlanFrame(PlanFrame),
    /// Of `end`.
    End(End),
}

/// The newest message for viewers, as bytes of an event stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct Message {
    /// The frame.
    pub(crate) frame: Bytes,
    /// The end of the stream, after the last frame.
    pub(crate) end: Option<Bytes>,
    /// How often there was something that no frame has: whoever has seen fewer needs a snapshot.
    pub(crate) snapshots: u64,
}

/// What viewers see of a run.
#[derive(Debug)]
pub(crate) enum WebLive {
    /// A test.
    Test(LiveRun),
    /// A plan.
    Plan(LivePlan),
}

impl WebLive {
    pub(crate) fn of_test() -> Self {
        Self::Test(LiveRun::new())
    }

    pub(crate) fn of_plan() -> Self {
        Self::Plan(LivePlan::new())
    }

    /// Messages from now on. Subscribe before taking the snapshot, so that nothing is missed in between.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Message> {
        match self {
            Self::Test(run) => run.newest.subscribe(),
            Self::Plan(plan) => plan.subscribe(),
        }
    }

    /// The state and course until now, as a message of an event stream.
    pub(crate) fn snapshot(&self) -> Bytes {
        match self {
            Self::Test(run) => run.snapshot(),
            Self::Plan(plan) => plan.snapshot(),
        }
    }

    /// Messages about the single streams from now on; absent for a plan.
    pub(crate) fn subscribe_streams(&self) -> Option<watch::Receiver<Message>> {
        match self {
            Self::Test(run) => Some(run.newest_streams.subscribe()),
            Self::Plan(_) => None,
        }
    }

    /// The course of the single streams until now, as a message of an event stream.
    pub(crate) fn streams_snapshot(&self) -> Bytes {
        match self {
            Self::Test(run) => {
                // Written after the lock, which the test needs.
                let snapshot = StreamsSnapshot::new(&locked(&run.state).streams.history);
                message("snapshot", None, &snapshot)
            }
            Self::Plan(_) => Bytes::new(),
        }
    }

    /// How long the run has waited in the queue of the other host.
    pub(crate) fn queued_for(&self, now: Mono) -> Option<Duration> {
        match self {
            Self::Test(run) => run.queued_for(now),
            Self::Plan(_) => None,
        }
    }

    /// Ends the stream of all viewers.
    pub(crate) fn end(&self, end: &End) {
        let bytes = message("end", None, end);
        let ends = |newest: &watch::Sender<Message>| {
            newest.send_modify(|newest| newest.end = Some(bytes.clone()));
        };
        match self {
            Self::Test(run) => {
                run.end_streams();
                ends(&run.newest);
                ends(&run.newest_streams);
            }
            Self::Plan(plan) => ends(plan.newest()),
        }
    }
}

/// A test that viewers watch.
#[derive(Debug)]
pub(crate) struct LiveRun {
    state: Mutex<LiveRunState>,
    newest: watch::Sender<Message>,
    /// For viewers of the single streams.
    newest_streams: watch::Sender<Message>,
}

#[derive(Debug, Default)]
struct LiveRunState {
    live: Live,
    history: LiveHistory,
    /// The latest event.
    seq: u64,
    /// Whether something was added since the last frame that frames do not have.
    has_more: bool,
    /// The last frame that was sent, and when.
    sent: Option<(LiveFrame, Mono)>,
    /// Since when the run waits in the queue of the other host.
    queued_since: Option<Mono>,
    streams: LiveRunStreams,
}

/// The single streams of the flows.
#[derive(Debug, Default)]
struct LiveRunStreams {
    history: LiveStreamsHistory,
    /// The latest counts of each flow since the last frame.
    news: BTreeMap<FlowId, LiveStreamsMoment>,
    /// When the last frame was sent.
    sent: Option<Mono>,
}

impl LiveRun {
    pub(crate) fn new() -> Self {
        let newest = || watch::Sender::new(Message::default());
        Self { state: Mutex::default(), newest: newest(), newest_streams: newest() }
    }

    /// A run that is over, from its log.
    pub(crate) fn replay(events: &[Event]) -> LiveSnapshot {
        let (mut live, mut history) = (Live::new(), LiveHistory::default());
        for event in events {
            live.on(event);
            if matches!(event.body, Body::Progress { .. } | Body::Size { .. }) {
                history.add(event, &live.frame());
            }
        }
        LiveSnapshot::new(&live, &history)
    }

    /// The single streams of a run that is over, from its log.
    pub(crate) fn replay_streams(events: &[Event]) -> StreamsSnapshot {
        let mut history = LiveStreamsHistory::default();
        events.iter().filter_map(LiveStreamsMoment::of).for_each(|moment| history.add(moment));
        StreamsSnapshot::new(&history)
    }

    fn snapshot(&self) -> Bytes {
        let state = locked(&self.state);
        message("snapshot", Some(state.seq), &LiveSnapshot::new(&state.live, &state.history))
    }

    fn queued_for(&self, now: Mono) -> Option<Duration> {
        locked(&self.state).queued_since.map(|since| now.since(since))
    }

    fn on(&self, event: &Event, now: Mono) {
        let mut state = locked(&self.state);
        state.live.on(event);
        state.seq = event.seq;
        match &event.body {
            Body::Queued { .. } => {
                state.queued_since.get_or_insert(now);
            }
            Body::Host { .. } | Body::FlowPlanned(_) | Body::Latency { .. } => state.queued_since = None,
            // Most of a log, and nothing of it is in a frame.
            Body::Sample { .. } | Body::Port { .. } => return,
            Body::Streams { .. } => {
                self.on_streams(&mut state.streams, event);
                return;
            }
            _ => {}
        }
        self.send_streams(&mut state, now);
        let frame = state.live.frame();
        // The course is that of the run, however late its events come.
        state.history.add(event, &frame);
        state.has_more |= matches!(event.body, Body::Size { .. });
        let due = match &state.sent {
            None => true,
            Some((last, at)) => is_news(last, &frame) || now.since(*at) >= self.interval(&frame),
        };
        if !due {
            return;
        }
        let bytes = message("frame", Some(event.seq), &frame);
        state.sent = Some((frame, now));
        // A frame has no sizes. The last ones are in the snapshot at the end of the run, which is news too.
        let has_more = std::mem::take(&mut state.has_more);
        self.newest.send_modify(|newest| {
            newest.frame = bytes;
            newest.snapshots += u64::from(has_more);
        });
    }

    fn on_streams(&self, streams: &mut LiveRunStreams, event: &Event) {
        let Some(moment) = LiveStreamsMoment::of(event) else { return };
        if self.newest_streams.receiver_count() > 0 {
            streams.news.insert(moment.flow, moment.clone());
        }
        streams.history.add(moment);
    }

    /// Sends what was counted of the streams since the last frame, if a frame is due.
    fn send_streams(&self, state: &mut LiveRunState, now: Mono) {
        let gap = state.sent.as_ref().map_or(MIN_INTERVAL, |(frame, _)| self.interval(frame));
        if state.streams.sent.is_none_or(|sent| now.since(sent) >= gap) && self.send_news(&mut state.streams)
        {
            state.streams.sent = Some(now);
        }
    }

    /// Whether there was something to send.
    fn send_news(&self, streams: &mut LiveRunStreams) -> bool {
        if streams.news.is_empty() {
            return false;
        }
        let flows = std::mem::take(&mut streams.news).into_values().collect();
        let bytes = message("frame", None, &StreamsFrame { flows });
        self.newest_streams.send_modify(|newest| newest.frame = bytes);
        true
    }

    /// Sends the last counts. The log has the course from now on.
    fn end_streams(&self) {
        let mut state = locked(&self.state);
        self.send_news(&mut state.streams);
        state.streams = LiveRunStreams::default();
    }

    /// Time between two frames for all viewers.
    fn interval(&self, frame: &LiveFrame) -> Duration {
        let bytes = [&self.newest, &self.newest_streams]
            .map(|newest| newest.receiver_count() * newest.borrow().frame.len());
        interval(bytes.iter().sum(), frame)
    }
}

/// Whether viewers should see the frame at once.
fn is_news(last: &LiveFrame, frame: &LiveFrame) -> bool {
    let states = |frame: &LiveFrame| frame.flows.iter().map(|flow| flow.state).collect::<Vec<_>>();
    (last.state, last.position) != (frame.state, frame.position) || states(last) != states(frame)
}

/// Time between frames of `bytes` for all viewers together, so that they use at most a small share of the measured rate.
fn interval(bytes: usize, frame: &LiveFrame) -> Duration {
    let running = frame.flows.iter().filter(|flow| flow.state == LiveFlowState::Running);
    let measured: f64 = running.filter_map(|flow| flow.bitrate_bps).sum();
    if frame.state != LiveStateName::Measuring || measured <= 0.0 {
        return MIN_INTERVAL;
    }
    let bits = (bytes * 8) as f64;
    let seconds = (bits / (MAX_SHARE * measured)).min(MAX_INTERVAL.as_secs_f64());
    Duration::from_secs_f64(seconds).max(MIN_INTERVAL)
}

/// A message of an event stream (the HTML standard, "Server-sent events").
pub(crate) fn message(kind: &str, id: Option<u64>, data: &impl Serialize) -> Bytes {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    // JSON of one line has no line feed.
    let data = serde_json::to_string(data).unwrap_or_default();
    Bytes::from(format!("{id}event: {kind}\ndata: {data}\n\n"))
}

/// The sink that gets the events of a run.
pub(crate) struct LiveSink<'a>(pub(crate) &'a LiveRun);

impl Sink for LiveSink<'_> {
    fn on(&mut self, event: &Event) -> Result<(), SinkError> {
        self.0.on(event, clock::now());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::{Direction, FlowPlan, SizePoint, StreamCounting, Transport};
    use linerate_units::{Bytes as Amount, Span, Timestamp};

    fn event(seq: u64, body: Body) -> Event {
        let at = Timestamp::START + Span::from_ms(seq * 100);
        Event { run: "r".into(), host: 0, seq, at, body }
    }

    fn planned() -> Body {
        Body::FlowPlanned(FlowPlan {
            flow: FlowId(0),
            name: "download".into(),
            from: "b".into(),
            to: "a".into(),
            transport: Transport::Tcp,
            direction: Direction::Download,
            streams: 1,
        })
    }

    fn progress(tenths: u64) -> Body {
        Body::Progress {
            flow: FlowId(0),
            bytes: Amount::new(tenths * 1_250_000),
            elapsed: Span::from_ms(tenths * 100),
            srtt: None,
            retransmits: None,
        }
    }

    fn text(bytes: &Bytes) -> String {
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[test]
    fn viewers_get_changes_at_once_and_figures_a_few_times_a_second() {
        let run = LiveRun::new();
        let mut viewer = run.newest.subscribe();
        let start = clock::now();
        run.on(&event(0, Body::Queued { position: 2, wait: Span::ZERO }), start);
        assert!(viewer.has_changed().unwrap());
        assert!(text(&viewer.borrow_and_update().frame).contains("\"position\":2"));
        run.on(&event(1, planned()), start);
        run.on(&event(2, progress(1)), start);
        assert!(viewer.has_changed().unwrap(), "the flow runs");
        viewer.mark_unchanged();
        run.on(&event(3, progress(2)), start + Duration::from_millis(100));
        assert!(!viewer.has_changed().unwrap(), "too early");
        run.on(&event(4, progress(4)), start + Duration::from_millis(300));
        let frame = text(&viewer.borrow_and_update().frame);
        assert!(frame.starts_with("id: 4\nevent: frame\ndata: {") && frame.ends_with("}\n\n"), "{frame}");
        assert_eq!(frame.matches('\n').count(), 4);
    }

    #[test]
    fn whoever_comes_late_gets_the_course_until_now_and_the_end_after_it() {
        let run = LiveRun::new();
        let start = clock::now();
        run.on(&event(0, planned()), start);
        for tenth in 1..=20 {
            run.on(&event(tenth, progress(tenth)), start + Duration::from_millis(tenth * 250));
        }
        let snapshot = text(&run.snapshot());
        let data = snapshot.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        let series = &data["series"][0];
        assert_eq!(series["at_seconds"].as_array().unwrap().len(), 19, "a rate needs two counts: {series}");
        assert!((series["bitrate_bps"][18].as_f64().unwrap() - 100e6).abs() < 1.0, "{series}");
        let live = WebLive::Test(run);
        live.end(&End { outcome: Outcome::Completed, reason: None });
        let viewer = live.subscribe();
        assert_eq!(
            text(viewer.borrow().end.as_ref().unwrap()),
            "event: end\ndata: {\"outcome\":\"completed\"}\n\n"
        );
    }

    #[test]
    fn a_size_is_in_the_next_snapshot_and_viewers_know_that_there_is_one() {
        let run = LiveRun::new();
        let viewer = run.newest.subscribe();
        let start = clock::now();
        let size = |bytes: u64| {
            let point = SizePoint {
                message_bytes: Amount::new(bytes),
                trials: Some(7),
                repeats: Some(10),
                best: Span::from_us(9),
                median: Some(Span::from_us(10)),
                interval: None,
                bitrate: None,
                buffered: false,
            };
            Body::Size { flow: FlowId(0), point }
        };
        run.on(&event(0, planned()), start);
        run.on(&event(1, size(64)), start + Duration::from_millis(250));
        // Too early for a frame; the next one tells of both.
        run.on(&event(2, size(1)), start + Duration::from_millis(260));
        assert_eq!(viewer.borrow().snapshots, 1);
        run.on(&event(3, size(128)), start + Duration::from_millis(500));
        assert_eq!(viewer.borrow().snapshots, 2);
        let snapshot = text(&run.snapshot());
        let sizes = "\"sizes\":[{\"message_bytes\":1,\"one_way_ns\":10000},{\"message_bytes\":64,";
        assert!(snapshot.contains(sizes), "{snapshot}");
    }

    #[test]
    fn single_streams_are_sent_only_to_their_viewers_who_first_get_the_course_until_then() {
        let run = LiveRun::new();
        let start = clock::now();
        let streams = |seq: u64, bytes: [u64; 2]| {
            let bytes = bytes.map(Amount::new).to_vec();
            event(seq, Body::Streams { flow: FlowId(0), counted: StreamCounting::Received, bytes })
        };
        run.on(&event(0, planned()), start);
        run.on(&streams(1, [7, 8]), start + Duration::from_millis(100));
        assert_eq!(run.newest_streams.borrow().frame.len(), 0, "for no viewer");
        let live = WebLive::Test(run);
        let mut viewer = live.subscribe_streams().unwrap();
        let snapshot = r#"data: {"flows":[{"flow":0,"at_seconds":[0.1],"bytes":[[7,8]]}]}"#;
        assert!(text(&live.streams_snapshot()).contains(snapshot), "{}", text(&live.streams_snapshot()));
        let WebLive::Test(run) = &live else { unreachable!() };
        let tell = |seq: u64, bytes: [u64; 2], ms: u64| {
            run.on(&streams(seq, bytes), start + Duration::from_millis(ms));
            run.on(&event(seq + 1, progress(seq)), start + Duration::from_millis(ms));
        };
        tell(2, [9, 9], 200);
        let frame = r#"data: {"flows":[{"flow":0,"at_seconds":0.2,"bytes":[9,9]}]}"#;
        assert!(text(&viewer.borrow_and_update().frame).contains(frame));
        tell(4, [10, 9], 250);
        assert!(!viewer.has_changed().unwrap(), "too early");
        live.end(&End { outcome: Outcome::Completed, reason: None });
        assert!(text(&viewer.borrow().frame).contains("[10,9]"), "the last counts");
        assert!(viewer.borrow_and_update().end.is_some());
    }

    #[test]
    fn many_viewers_of_a_slow_path_get_fewer_frames() {
        let run = LiveRun::new();
        run.on(&event(0, planned()), clock::now());
        run.on(&event(1, progress(1)), clock::now());
        let mut frame = locked(&run.state).live.frame();
        frame.flows[0].bitrate_bps = Some(1e9);
        assert_eq!(interval(10 * 500, &frame), MIN_INTERVAL);
        // 200 viewers x 500 bytes are 0.8 Mbit, and 0.2 % of 1 Gb/s are 2 Mb/s.
        assert_eq!(interval(200 * 500, &frame), Duration::from_millis(400));
        frame.flows[0].bitrate_bps = Some(1e6);
        assert_eq!(interval(200 * 500, &frame), MAX_INTERVAL);
        assert_eq!(interval(0, &frame), MIN_INTERVAL);
    }

    #[test]
    fn a_wait_in_the_other_hosts_queue_is_timed() {
        let run = LiveRun::new();
        let start = clock::now();
        assert_eq!(run.queued_for(start), None);
        run.on(&event(0, Body::Queued { position: 2, wait: Span::ZERO }), start);
        run.on(&event(1, Body::Queued { position: 1, wait: Span::ZERO }), start + Duration::from_secs(5));
        assert_eq!(run.queued_for(start + Duration::from_secs(9)), Some(Duration::from_secs(9)));
        run.on(&event(2, planned()), start + Duration::from_secs(10));
        assert_eq!(run.queued_for(start + Duration::from_secs(11)), None);
    }
}
