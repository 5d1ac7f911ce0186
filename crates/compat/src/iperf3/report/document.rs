//! The JSON object of a test, with the keys of iperf3 3.21 in their order.

use serde::Serialize;

use super::facts::{
    CpuShare, Iperf3Control, Iperf3Stream, Iperf3SystemInfo, Iperf3TestParameters, ServerOutput,
};
use super::records::Iperf3Record;
use crate::iperf3::calendar::gmt;
use crate::iperf3::settings::Iperf3Settings;

/// Name and version in reports. The imitated version of iperf3 comes first, as parsers expect it.
pub const VERSION: &str = concat!("iperf 3.21 (linerate ", env!("CARGO_PKG_VERSION"), ")");

/// The complete object.
#[derive(Debug, Default, Serialize)]
pub(super) struct Iperf3Document {
    pub(super) start: Iperf3Start,
    pub(super) intervals: Vec<IntervalObject>,
    pub(super) end: EndObject,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) extra_data: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) server_output_json: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) server_output_text: Option<String>,
}

impl Iperf3Document {
    pub(super) fn take_server_output(&mut self, output: ServerOutput) {
        match output {
            ServerOutput::Text(text) => self.server_output_text = Some(text),
            ServerOutput::Json(object) => self.server_output_json = Some(object),
        }
    }
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Iperf3Start {
    connected: Vec<ConnectedStream>,
    version: &'static str,
    pub(super) system_info: String,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    agreed: Option<Agreed>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    buffers: Option<Buffers>,
    #[serde(skip_serializing_if = "Option::is_none")]
    test_start: Option<TestStart>,
}

#[derive(Debug, Serialize)]
struct ConnectedStream {
    socket: i32,
    local_host: String,
    local_port: u16,
    remote_host: String,
    remote_port: u16,
}

/// What is known after the parameter exchange.
#[derive(Debug, Serialize)]
struct Agreed {
    timestamp: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    connecting_to: Option<Iperf3Peer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted_connection: Option<Iperf3Peer>,
    cookie: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tcp_mss: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tcp_mss_default: Option<u32>,
    target_bitrate: u64,
    fq_rate: u64,
}

#[derive(Debug, Serialize)]
struct Time {
    time: String,
    timesecs: u64,
    timemillisecs: u64,
}

#[derive(Debug, Serialize)]
struct Iperf3Peer {
    host: String,
    port: u16,
}

#[derive(Debug, Serialize)]
struct Buffers {
    sock_bufsize: u64,
    sndbuf_actual: u64,
    rcvbuf_actual: u64,
}

#[derive(Debug, Serialize)]
struct TestStart {
    protocol: &'static str,
    num_streams: u32,
    blksize: u64,
    omit: u32,
    duration: u32,
    bytes: u64,
    blocks: u64,
    reverse: u8,
    tos: u8,
    target_bitrate: u64,
    bidir: u8,
    fqrate: u64,
    interval: f64,
    gso: u8,
    gro: u8,
}

impl Iperf3Start {
    pub(super) fn new(host: &Iperf3SystemInfo) -> Self {
        Self { version: VERSION, system_info: host.system.clone(), ..Self::default() }
    }

    pub(super) fn agree(
        &mut self,
        settings: &Iperf3Settings,
        control: &Iperf3Control,
        test: &Iperf3TestParameters,
    ) {
        let peer = || Some(Iperf3Peer { host: control.host.clone(), port: control.port });
        let client = settings.is_client();
        self.agreed = Some(Agreed {
            timestamp: Time {
                time: gmt(control.unix_ms),
                timesecs: control.unix_ms / 1000,
                timemillisecs: control.unix_ms,
            },
            connecting_to: if client { peer() } else { None },
            accepted_connection: if client { None } else { peer() },
            cookie: control.cookie.clone(),
            tcp_mss: test.mss.filter(|_| !test.udp),
            tcp_mss_default: (!test.udp && test.mss.is_none()).then_some(control.mss),
            target_bitrate: test.bitrate,
            fq_rate: test.fq_rate,
        });
    }

    pub(super) fn connect(&mut self, stream: &Iperf3Stream, test: &Iperf3TestParameters) {
        if self.connected.is_empty() {
            self.buffers = Some(Buffers {
                sock_bufsize: test.window.unwrap_or_default(),
                sndbuf_actual: stream.snd_buf,
                rcvbuf_actual: stream.rcv_buf,
            });
        }
        self.connected.push(ConnectedStream {
            socket: stream.socket,
            local_host: stream.local.ip().to_canonical().to_string(),
            local_port: stream.local.port(),
            remote_host: stream.remote.ip().to_canonical().to_string(),
            remote_port: stream.remote.port(),
        });
    }

    pub(super) fn begin(&mut self, settings: &Iperf3Settings, test: &Iperf3TestParameters) {
        self.test_start = Some(TestStart {
            protocol: if test.udp { "UDP" } else { "TCP" },
            num_streams: test.streams,
            blksize: test.block_bytes,
            omit: test.omit,
            duration: test.seconds,
            bytes: test.bytes,
            blocks: test.blocks,
            reverse: test.reverse.into(),
            tos: test.tos,
            target_bitrate: test.bitrate,
            bidir: test.bidir.into(),
            fqrate: test.fq_rate,
            interval: settings.common.interval.as_secs_f64(),
            gso: test.gso.into(),
            gro: test.gro.into(),
        });
    }
}

/// One element of `intervals`.
#[derive(Debug, Clone, Serialize)]
pub(super) struct IntervalObject {
    pub(super) streams: Vec<Iperf3Record>,
    pub(super) sum: Iperf3Record,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sum_bidir_reverse: Option<Iperf3Record>,
}

/// The `end` object; empty until the results are known.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct EndObject {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) streams: Vec<EndStream>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sum: Option<Iperf3Record>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sum_sent: Option<Iperf3Record>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sum_received: Option<Iperf3Record>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sum_bidir_reverse: Option<Iperf3Record>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sum_sent_bidir_reverse: Option<Iperf3Record>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sum_received_bidir_reverse: Option<Iperf3Record>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cpu_utilization_percent: Option<Iperf3Cpu>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sender_tcp_congestion: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) receiver_tcp_congestion: Option<String>,
}

/// One element of `end.streams`.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub(super) enum EndStream {
    Tcp {
        sender: Box<Iperf3Record>,
        #[serde(skip_serializing_if = "Option::is_none")]
        diskfile: Option<DiskFile>,
        receiver: Box<Iperf3Record>,
    },
    Udp {
        udp: Box<Iperf3Record>,
    },
}

/// What was sent or received of the file of `-F`, bytes.
#[derive(Debug, Clone, Serialize)]
pub(super) struct DiskFile {
    pub(super) sent: u64,
    pub(super) received: u64,
    pub(super) size: u64,
    pub(super) percent_sent: u64,
    pub(super) percent_received: u64,
    pub(super) filename: String,
}

impl DiskFile {
    /// The file of a stream that sent and received these bytes.
    pub(super) fn new(filename: String, size: u64, sent: u64, received: u64) -> Self {
        // A file without size counts as complete.
        let percent = |bytes: u64| bytes.saturating_mul(100).checked_div(size).unwrap_or(100);
        let (percent_sent, percent_received) = (percent(sent), percent(received));
        Self { sent, received, size, percent_sent, percent_received, filename }
    }
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Iperf3Cpu {
    host_total: f64,
    host_user: f64,
    host_system: f64,
    remote_total: f64,
    remote_user: f64,
    remote_system: f64,
}

impl Iperf3Cpu {
    pub(super) fn new(local: CpuShare, remote: CpuShare) -> Self {
        Self {
            host_total: local.total,
            host_user: local.user,
            host_system: local.system,
            remote_total: remote.total,
            remote_user: remote.user,
            remote_system: remote.system,
        }
    }
}
