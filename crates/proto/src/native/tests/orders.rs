//! What a client may have done, and what no server does.

use linerate_model::{HostInfo, SizeList, Sweep, TestSpec};
use linerate_units::{Bytes, Timestamp};
use serde_json::{Value, json};

use super::super::{Framer, Preface, ServerSession};
use super::COOKIE;
use crate::PeerError;
use crate::session::{Admission, FlowOrder, Input, Output, Session};

const NOW: Timestamp = Timestamp::START;

/// A server that has let a client in.
struct Server(ServerSession);

impl Server {
    fn of(spec: &TestSpec) -> Self {
        let mut server = Self(ServerSession::new(NOW));
        server.0.input(NOW, Input::Bytes(&Preface::CONTROL.encode())).unwrap();
        let hello =
            json!({"type": "hello", "versions": [1, 1], "capabilities": [], "host": {}, "spec": spec});
        server.hear(&hello).unwrap();
        let admission = Admission { host: HostInfo::default(), cookie: COOKIE, neighbours: 0 };
        server.0.input(NOW, Input::Admit(Box::new(admission))).unwrap();
        server
    }

    fn hear(&mut self, message: &Value) -> Result<(), PeerError> {
        self.0.input(NOW, Input::Bytes(&Framer::encode(message).unwrap()))
    }

    /// The flows that are to be opened after this word.
    fn prepare(&mut self, flows: &[(u16, &str, u64)]) -> Result<Vec<FlowOrder>, PeerError> {
        let flow = |(flow, direction, length): &(u16, &str, u64)| json!({"flow": flow, "direction": direction, "length_bytes": length});
        let flows: Vec<Value> = flows.iter().map(flow).collect();
        self.hear(&json!({"type": "prepare", "flows": flows}))?;
        let opened = std::iter::from_fn(|| self.0.output()).find_map(|output| match output {
            Output::Open(flows) => Some(flows),
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

#[test]
fn a_flow_that_the_greeting_did_not_ask_for_is_refused() {
    let bidir = spec(|spec| spec.traffic.bidir = true);
    let one_byte = spec(|spec| (spec.traffic.upload, spec.traffic.length) = (true, Some(Bytes::new(1))));
    let upload = spec(|spec| spec.traffic.upload = true);
    let udp = spec(|spec| (spec.traffic.upload, spec.traffic.udp) = (true, true));
    let (up, down) = ("upload", "download");
    let cases: [(&TestSpec, &[(u16, &str, u64)], &str); 12] = [
        (&one_byte, &[(0, up, 1 << 40)], "1TiB"),
        (&one_byte, &[(0, up, 8 << 30)], "8GiB"),
        (&one_byte, &[(0, up, 0)], "0B"),
        (&upload, &[(0, up, (1 << 20) + 1)], "1048577B"),
        (&udp, &[(0, up, 65_508)], "65508B"),
        (&udp, &[(0, up, 31)], "31B"),
        (&upload, &[], "0 flow(s)"),
        (&upload, &[(0, down, 1)], "not asked for"),
        (&upload, &[(0, up, 1), (1, up, 1)], "2 flow(s)"),
        (&bidir, &[(0, up, 1)], "1 flow(s)"),
        (&bidir, &[(7, up, 1), (7, down, 1)], "two flows of number 7"),
        (&bidir, &[(0, up, 1), (1, down, u64::MAX)], "not asked for"),
    ];
    for (spec, flows, why) in cases {
        let mut server = Server::of(spec);
        let error = server.prepare(flows).unwrap_err();
        assert!(matches!(&error, PeerError::Misbehaved { what } if what.contains(why)), "{flows:?}: {error}");
        let told: Vec<u8> = std::iter::from_fn(|| server.0.output())
            .filter_map(|output| if let Output::Send(bytes) = output { Some(bytes) } else { None })
            .flatten()
            .collect();
        let told = String::from_utf8_lossy(&told).into_owned();
        assert!(told.contains("failed") && told.contains(why), "{told}");
    }
}

#[test]
fn a_flow_that_was_asked_for_is_opened_once() {
    let bidir = spec(|spec| spec.traffic.bidir = true);
    let mut server = Server::of(&bidir);
    let opened = server.prepare(&[(3, "upload", 65_536), (4, "download", 65_536)]).unwrap();
    assert_eq!(opened.iter().map(FlowOrder::flow).collect::<Vec<_>>(), [3, 4]);
    assert_eq!(opened[0].length(), Bytes::new(65_536));
    // A second phase was not asked for, nor may it come before the first is over.
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
    assert!(Server::of(&series(&[64])).prepare(&[(0, "upload", 64)]).is_ok());
    assert!(Server::of(&series(&[64])).prepare(&[(0, "upload", 65)]).is_err());
    for (bytes, sound) in [(64, true), (65, false), (64 << 20, false)] {
        let mut server = Server::of(&series(&[1, 64]));
        server.prepare(&[(0, "upload", 64)]).unwrap();
        server.0.input(NOW, Input::FlowsOpen).unwrap();
        server.hear(&json!({"type": "start"})).unwrap();
        let trial =
            json!({"type": "trial", "trial": 0, "message_bytes": bytes, "repeats": 1, "patience_ns": 1});
        assert_eq!(server.hear(&trial).is_ok(), sound, "{bytes}");
    }
}
