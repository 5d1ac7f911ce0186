//! What a client may request, and what a server refuses.

use linerate_model::flow::FlowId;
use linerate_model::{CheckedSpec, Direction, HostInfo, SizeList, Sweep, TestSpec};
use linerate_units::{Bytes, Span, Timestamp};
use serde_json::{Value, json};

use super::super::{ClientSession, Framer, Preface, ServerSession};
use super::{COOKIE, DRAIN};
use crate::PeerError;
use crate::session::{Admission, FlowOrder, Session, SessionInput, SessionOutput};

const NOW: Timestamp = Timestamp::START;

/// A server that has admitted a client.
struct AdmittedServer(ServerSession);

impl AdmittedServer {
    fn of(spec: &TestSpec) -> Self {
        let mut server = Self(ServerSession::new(NOW));
        server.0.input(NOW, SessionInput::Bytes(&Preface::CONTROL.encode())).unwrap();
        let hello =
            json!({"type": "hello", "versions": [2, 2], "capabilities": [], "host": {}, "spec": spec});
        server.receive(&hello).unwrap();
        let admission = Admission { host: HostInfo::default(), cookie: COOKIE, concurrent_runs: 0 };
        server.0.input(NOW, SessionInput::Admit(Box::new(admission))).unwrap();
        server
    }

    fn receive(&mut self, message: &Value) -> Result<(), PeerError> {
        self.0.input(NOW, SessionInput::Bytes(&Framer::encode(message).unwrap()))
    }

    /// A server during an upload.
    fn running() -> Self {
        let mut server = Self::of(&spec(|spec| spec.traffic.upload = true));
        server.prepare(&[(0, "upload", 1)]).unwrap();
        server.0.input(NOW, SessionInput::FlowsOpen).unwrap();
        server.receive(&json!({"type": "start"})).unwrap();
        while server.0.output().is_some() {}
        server
    }

    /// The flows that the server opens after this request.
    fn prepare(&mut self, flows: &[(u16, &str, u64)]) -> Result<Vec<FlowOrder>, PeerError> {
        let flow = |(flow, direction, length): &(u16, &str, u64)| json!({"flow": flow, "direction": direction, "length_bytes": length});
        let flows: Vec<Value> = flows.iter().map(flow).collect();
        self.receive(&json!({"type": "prepare", "flows": flows}))?;
        let opened = std::iter::from_fn(|| self.0.output()).find_map(|output| match output {
            SessionOutput::Open(flows) => Some(flows),
            _ => None,
        });
        Ok(opened.unwrap_or_default())
    }
}

fn spec(change: impl FnOnce(&mut TestSpec)) -> TestSpec {
    let mut spec = TestSpec::default();
    change(&mut spec);
    spec
}

/// The flows of a request: number, direction, length in bytes.
type Orders<'a> = &'a [(u16, &'a str, u64)];

#[test]
fn a_flow_that_the_greeting_did_not_ask_for_is_refused() {
    let bidir = spec(|spec| spec.traffic.bidir = true);
    let one_byte = spec(|spec| (spec.traffic.upload, spec.traffic.length) = (true, Some(Bytes::new(1))));
    let upload = spec(|spec| spec.traffic.upload = true);
    let udp = spec(|spec| (spec.traffic.upload, spec.traffic.udp) = (true, true));
    let (up, down) = ("upload", "download");
    let cases: [(&TestSpec, Orders<'_>, &str); 12] = [
        (&one_byte, &[(0, up, 1 << 40)], "1TiB"),
        (&one_byte, &[(0, up, 8 << 30)], "8GiB"),
        (&one_byte, &[(0, up, 0)], "0B"),
        (&upload, &[(0, up, (1 << 20) + 1)], "1048577B"),
        (&udp, &[(0, up, 65_508)], "65508B"),
        (&udp, &[(0, up, 31)], "31B"),
        (&upload, &[], "0 flow(s)"),
        (&upload, &[(0, down, 1)], "not requested"),
        (&upload, &[(0, up, 1), (1, up, 1)], "2 flow(s)"),
        (&bidir, &[(0, up, 1)], "1 flow(s)"),
        (&bidir, &[(7, up, 1), (7, down, 1)], "two flows with number 7"),
        (&bidir, &[(0, up, 1), (1, down, u64::MAX)], "does not match the request"),
    ];
    for (spec, flows, why) in cases {
        let mut server = AdmittedServer::of(spec);
        let error = server.prepare(flows).unwrap_err();
        assert!(matches!(&error, PeerError::Misbehaved { what } if what.contains(why)), "{flows:?}: {error}");
        let sent: Vec<u8> = std::iter::from_fn(|| server.0.output())
            .filter_map(|output| if let SessionOutput::Send(bytes) = output { Some(bytes) } else { None })
            .flatten()
            .collect();
        let sent = String::from_utf8_lossy(&sent).into_owned();
        assert!(sent.contains("failed") && sent.contains(why), "{sent}");
    }
}

#[test]
fn a_flow_that_was_asked_for_is_opened_once() {
    let bidir = spec(|spec| spec.traffic.bidir = true);
    let mut server = AdmittedServer::of(&bidir);
    let opened = server.prepare(&[(3, "upload", 65_536), (4, "download", 65_536)]).unwrap();
    assert_eq!(opened.iter().map(FlowOrder::flow).collect::<Vec<_>>(), [FlowId(3), FlowId(4)]);
    assert_eq!(opened[0].length(), Bytes::new(65_536));
    // A second phase was not requested, and must not begin before the first is over.
    assert!(server.prepare(&[(5, "upload", 65_536), (6, "download", 65_536)]).is_err());
}

#[test]
fn a_trial_beyond_its_series_is_refused() {
    let series = |sizes: &[u64]| TestSpec {
        sweep: Some(Sweep {
            sizes: Some(SizeList(sizes.iter().copied().map(Bytes::new).collect())),
            ..Sweep::default()
        }),
        ..TestSpec::default()
    };
    assert!(AdmittedServer::of(&series(&[64])).prepare(&[(0, "upload", 64)]).is_ok());
    assert!(AdmittedServer::of(&series(&[64])).prepare(&[(0, "upload", 65)]).is_err());
    for (bytes, sound) in [(64, true), (65, false), (64 << 20, false)] {
        let mut server = AdmittedServer::of(&series(&[1, 64]));
        server.prepare(&[(0, "upload", 64)]).unwrap();
        server.0.input(NOW, SessionInput::FlowsOpen).unwrap();
        server.receive(&json!({"type": "start"})).unwrap();
        let trial =
            json!({"type": "trial", "trial": 0, "message_bytes": bytes, "repeats": 1, "timeout_ns": 1});
        assert_eq!(server.receive(&trial).is_ok(), sound, "{bytes}");
    }
}

#[test]
fn a_flood_of_any_word_ends_the_dialogue_and_asks_for_little() {
    let sample = json!({"side": "sender", "start_ns": 0, "end_ns": 1, "readings": {}});
    let words = [
        json!({"type": "heartbeat"}),
        json!({"type": "cut"}),
        json!({"type": "stop"}),
        json!({"type": "progress", "flow": 0, "side": "sender", "bytes": 1, "elapsed_ns": 1}),
        json!({"type": "samples", "flow": 0, "samples": vec![sample; 5_000]}),
        json!({"type": "sender_done", "flow": 0}),
    ];
    for word in words {
        let (mut server, mut asked, mut count) = (AdmittedServer::running(), 0, 0);
        let error = loop {
            count += 1;
            let result = server.receive(&word);
            asked += std::iter::from_fn(|| server.0.output()).filter(|output| !is_count(output)).count();
            if let Err(error) = result {
                break error;
            }
            assert!(count < 10_000, "{word} goes on");
        };
        assert!(error.to_string().contains("more than a measurement can contain"), "{error}");
        assert!(asked <= 1, "{word} had {asked} things done");
    }
}

/// Outputs without an effect on the flows.
fn is_count(output: &SessionOutput) -> bool {
    matches!(
        output,
        SessionOutput::PeerProgress(_) | SessionOutput::PeerSamples { .. } | SessionOutput::Send(_)
    )
}

#[test]
fn a_word_about_a_flow_that_there_is_not_is_refused() {
    for word in [
        json!({"type": "progress", "flow": 1, "side": "sender", "bytes": 1, "elapsed_ns": 1}),
        json!({"type": "samples", "flow": 9, "samples": []}),
        json!({"type": "sender_done", "flow": 65_535}),
    ] {
        let error = AdmittedServer::running().receive(&word).unwrap_err();
        assert!(error.to_string().contains("which does not exist"), "{error}");
    }
}

#[test]
fn a_server_that_talks_on_does_not_keep_its_client_beyond_the_time_of_the_test() {
    let mut wanted = TestSpec::default();
    (wanted.traffic.download, wanted.traffic.duration) = (true, Some(Span::from_secs(1)));
    let spec: CheckedSpec = wanted.checked().unwrap();
    let order = FlowOrder::new(&spec, FlowId(0), Direction::Download, Bytes::new(1)).unwrap();
    let mut client = ClientSession::new(NOW, HostInfo::default(), spec, DRAIN);
    let receive = |client: &mut ClientSession, now: Timestamp, word: Value| {
        client.input(now, SessionInput::Bytes(&Framer::encode(&word).unwrap()))
    };
    client.input(NOW, SessionInput::Bytes(&Preface::CONTROL.encode())).unwrap();
    let welcome = json!({"type": "welcome", "version": 2, "capabilities": ["tcp"], "host": {}, "cookie": "0".repeat(32), "concurrent_runs": 0});
    receive(&mut client, NOW, welcome).unwrap();
    client.input(NOW, SessionInput::Measure(vec![order])).unwrap();
    receive(&mut client, NOW, json!({"type": "prepared"})).unwrap();
    client.input(NOW, SessionInput::FlowsOpen).unwrap();
    receive(&mut client, NOW, json!({"type": "flows_ready"})).unwrap();
    let mut now = NOW;
    let error = loop {
        now = now + Span::from_ms(500);
        let result = receive(&mut client, now, json!({"type": "heartbeat"}));
        if let Err(error) = result.and_then(|()| client.input(now, SessionInput::Tick)) {
            break error;
        }
        assert!(now < NOW + Span::from_secs(3_600), "it never ends");
    };
    assert_eq!(error, PeerError::Silent { during: "measuring", waited_s: 31 });
}

#[test]
fn a_specification_that_contradicts_itself_is_refused() {
    let changes: [fn(&mut TestSpec); 3] = [
        |spec| (spec.traffic.upload, spec.traffic.download) = (true, true),
        |spec| (spec.traffic.udp, spec.traffic.mptcp) = (true, true),
        |spec| (spec.traffic.bytes, spec.traffic.duration) = (Some(Bytes::new(1)), Some(Span::from_secs(1))),
    ];
    for change in changes {
        let mut spec = TestSpec::default();
        change(&mut spec);
        let mut server = AdmittedServer(ServerSession::new(NOW));
        server.0.input(NOW, SessionInput::Bytes(&Preface::CONTROL.encode())).unwrap();
        let hello =
            json!({"type": "hello", "versions": [2, 2], "capabilities": [], "host": {}, "spec": spec});
        let refused = server.receive(&hello).unwrap_err();
        assert!(refused.to_string().contains("it cannot be combined with"), "{refused}");
    }
}
