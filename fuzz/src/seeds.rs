//! Inputs that cover much of the code: well-formed examples from which a search starts.

use std::sync::LazyLock;

use linerate_model::flow::FlowId;
use linerate_model::{HostInfo, Sweep, TestSpec};
use linerate_proto::native::{ConnectionPurpose, DatagramKind, Preface, ProbeDatagram};
use serde_json::json;

use crate::dialogue::frame;

pub(crate) fn prefaces() -> Vec<Vec<u8>> {
    let data = Preface { connection: ConnectionPurpose::Data, flow: FlowId(1), stream: 3, cookie: [9; 16] };
    let foreign: [&[u8]; 3] = [b"HTTP/1.1 400", b"SSH-2.0-x", b"\x09"];
    let ours = [Preface::CONTROL, data].map(|preface| preface.encode().to_vec());
    ours.into_iter().chain(foreign.map(<[u8]>::to_vec)).collect()
}

pub(crate) fn datagrams() -> Vec<Vec<u8>> {
    let kinds = [DatagramKind::Open, DatagramKind::Echo, DatagramKind::Probe];
    let of = |kind| ProbeDatagram {
        kind,
        flow: FlowId(1),
        stream: 2,
        cookie: [9; 16],
        number: 3,
        times: [4, 5, 6],
    };
    kinds.map(|kind| of(kind).encode().to_vec()).to_vec()
}

/// Every control message of the protocol, in the order in which they occur in a run.
pub(crate) fn messages() -> &'static [Vec<u8>] {
    static MESSAGES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(write_messages);
    &MESSAGES
}

fn write_messages() -> Vec<Vec<u8>> {
    let host = json!(HostInfo::default());
    let spec = json!({"traffic": {"upload": true}});
    let series = json!(TestSpec { sweep: Some(Sweep::default()), ..TestSpec::default() });
    let count =
        json!({"type": "trial_counted", "trial": 0, "read_bytes": 640, "elapsed_ns": 9, "first_ns": 1});
    let cookie = "30313233343536373839616263646566";
    let can = json!(["tcp", "udp", "mptcp", "probe_udp", "probe_tcp", "sweep"]);
    let ended = |side: &str| json!({"type": "ended", "flow": 0, "side": side, "tally": {"total_bytes": 77}});
    let all = [
        json!({"type": "hello", "versions": [2, 2], "capabilities": can, "host": host, "spec": spec}),
        json!({"type": "busy", "position": 1, "wait_ns": 1_000_000_000}),
        json!({"type": "welcome", "version": 2, "capabilities": can, "host": host, "cookie": cookie, "concurrent_runs": 0}),
        json!({"type": "prepare", "flows": [{"flow": 0, "direction": "upload", "length_bytes": 1}]}),
        json!({"type": "prepared"}),
        json!({"type": "flows_ready"}),
        json!({"type": "start"}),
        json!({"type": "progress", "flow": 0, "side": "receiver", "bytes": 5, "elapsed_ns": 7}),
        json!({"type": "samples", "flow": 0, "samples": []}),
        json!({"type": "sender_done", "flow": 0}),
        ended("receiver"),
        ended("sender"),
        json!({"type": "cut"}),
        json!({"type": "stop"}),
        json!({"type": "heartbeat"}),
        json!({"type": "refused", "why": "version 2"}),
        json!({"type": "failed", "why": "no"}),
        json!({"type": "bye"}),
        json!({"type": "hello", "versions": [2, 2], "capabilities": can, "host": host, "spec": series}),
        json!({"type": "trial", "trial": 0, "message_bytes": 64, "repeats": 10, "timeout_ns": 1_000_000_000}),
        count,
        json!({"type": "hello", "versions": [2, 2], "capabilities": can, "host": host, "spec": {"traffic": {"upload": true, "length_bytes": 1}}}),
        json!({"type": "prepare", "flows": [{"flow": 0, "direction": "upload", "length_bytes": 1_u64 << 40}]}),
        json!({"type": "hello", "versions": [2, 2], "capabilities": can, "host": host, "spec": {"traffic": {"bidir": true, "udp": true}}}),
        json!({"type": "prepare", "flows": [
            {"flow": 0, "direction": "upload", "length_bytes": 1448},
            {"flow": 1, "direction": "download", "length_bytes": 65_507},
        ]}),
        json!({"type": "bye", "results": [
            {"name": "up\u{1b}[2J\nload", "bitrate_bps": 1e300, "verdict": {
                "cause": "shaper", "rule": "V14", "confidence": "confirmed", "text": "held\r\nby",
                "evidence": {"shaper_bps": 1e300, "other\n": -1.0},
            }},
            {"name": "download", "verdict": {"cause": "of a newer version"}},
            {"name": "one too many"},
        ]}),
    ];
    all.iter().map(|message| message.to_string().into_bytes()).collect()
}

pub(crate) fn frames() -> Vec<Vec<u8>> {
    let framed: Vec<Vec<u8>> = messages().iter().map(|message| frame(message)).collect();
    vec![framed.concat(), framed[0].clone(), frame(b"[1, 2]"), vec![0, 0, 0, 0]]
}

/// Scripts of `dialogue`: regular runs, with and without a queue, for a client.
pub(crate) fn client_dialogues() -> Vec<Vec<u8>> {
    let (preface, message) = (0, 1);
    let until_running = [preface, message, 2, 6, 1, 0, message, 4, message, 5, 5];
    let regular = [&until_running[..], &[message, 7, 7, 0, 0, message, 10, 7, 2, 0, 9, 0]].concat();
    let queued = [&[preface, message, 1][..], &regular[1..]].concat();
    let series = [&until_running[..], &[7, 4, 0, message, 20, 7, 2, 0, message, 10, 9, 0]].concat();
    let cut = [&until_running[..], &[7, 0, 0, 4, 60, 7, 2, 0, 4, 200]].concat();
    vec![regular, queued, series, cut]
}

/// The same for a server.
pub(crate) fn server_dialogues() -> Vec<Vec<u8>> {
    let (preface, message) = (0, 1);
    let until_running = [preface, message, 0, 8, 2, message, 3, 5, message, 6];
    let moved = [&until_running[..], &[message, 9, message, 11, 7, 2, 1]].concat();
    let regular = [&moved[..], &[message, 17]].concat();
    let with_results = [&moved[..], &[message, 25]].concat();
    let queued = [&[preface, message, 0, 8, 0][..], &regular[3..]].concat();
    let opened = [preface, message, 18, 8, 2, message, 3, 5, message, 6];
    let series = [&opened[..], &[message, 19, 7, 3, 0, message, 11, 7, 2, 1, message, 17]].concat();
    let cut = [&until_running[..], &[message, 12, message, 13, 4, 200]].concat();
    let absurd = vec![preface, message, 21, 8, 2, message, 22, 5, message, 6];
    let datagrams = vec![preface, message, 23, 8, 2, message, 24, 5, message, 6];
    vec![regular, queued, series, with_results, cut, absurd, datagrams]
}

pub(crate) fn tcp_infos() -> Vec<Vec<u8>> {
    vec![vec![1; 104], vec![1; 256], (0..=255).collect()]
}

/// Layout of `struct cmsghdr` on 64-bit Linux: length, level, type, data, padding.
pub(crate) fn control_messages() -> Vec<Vec<u8>> {
    let one = |level: i32, kind: i32, data: &[u8]| {
        let mut bytes = (16 + data.len()).to_ne_bytes().to_vec();
        bytes.extend(level.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    };
    let stamp: Vec<u8> = [7_i64, 9, 0, 0, 0, 0].iter().flat_map(|word| word.to_ne_bytes()).collect();
    // SOL_UDP/UDP_GRO, SOL_SOCKET/SO_RXQ_OVFL, SOL_SOCKET/SCM_TIMESTAMPING, IPPROTO_IP/IP_RECVERR.
    let error = [42, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0];
    let of = [
        one(17, 104, &1448_i32.to_ne_bytes()),
        one(1, 40, &[1, 0, 0, 0]),
        one(1, 37, &stamp),
        one(0, 11, &error),
    ];
    vec![of.concat(), of[..3].concat(), of[2..].concat()]
}

pub(crate) fn proc_files() -> Vec<Vec<u8>> {
    let texts = [
        "cpu  12 7 11 118 5 3 7 5 2 0\ncpu0 6 3 5 59 2 1 2 2 1 0\n",
        "4711 (a) b) S 1 2 3 4 5 6 7 8 9 10 111 222 15 16 20 0 1 0 9 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 3 0",
        "0000272d 00000001 00000002 00000000 0 0 0 0 0 0 0 0 00000000\n",
        "Tcp: RtoMin RtoMax InSegs\nTcp: 200 120000 33\nUdp: InDatagrams\nUdp: 18446744073709551615\n",
        "Udp6InDatagrams 12\nUdp6RcvbufErrors 3\n",
        "Inter-|   Receive\n face |bytes\n  eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n",
        "model name\t: A processor\nVmRSS:\t    1234 kB\n",
    ];
    texts.map(|text| text.as_bytes().to_vec()).to_vec()
}

pub(crate) fn event_logs() -> Vec<Vec<u8>> {
    let event = |seq: u64, body: serde_json::Value| {
        json!({"run": "r", "host": 0, "seq": seq, "at_ns": seq * 1000, "body": body}).to_string() + "\n"
    };
    let bodies = [
        json!({"kind": "host", "info": HostInfo::default()}),
        json!({"kind": "queued", "position": 1, "wait_ns": 5}),
        json!({"kind": "progress", "flow": 1, "bytes": 5, "elapsed_ns": 7, "srtt_ns": 3}),
        json!({"kind": "flow_ended", "flow": 1, "side": "receiver", "tally": {"total_bytes": 5}}),
    ];
    let lines: Vec<String> = (0..).zip(bodies).map(|(seq, body)| event(seq, body)).collect();
    let mut seeds: Vec<Vec<u8>> = lines.iter().map(|line| line.as_bytes().to_vec()).collect();
    seeds.push(lines.concat().into_bytes());
    seeds
}

pub(crate) fn specs() -> Vec<Vec<u8>> {
    vec![json!(TestSpec::default()).to_string().into_bytes(), b"{}".to_vec()]
}

pub(crate) fn quantities() -> Vec<Vec<u8>> {
    let texts =
        ["1.5M", "64KiB", "1e3", "10 Gb/s", "2.5ms", "1h", "12.5%", "0.1", "18446744073709551615", "-1"];
    texts.map(|text| text.as_bytes().to_vec()).to_vec()
}
