//! The input of a report: plain data, in the order of the events of a test.

use std::net::SocketAddr;

use linerate_units::Span;

use crate::iperf3::settings::{EndCondition, Iperf3Settings};

/// The description of this host for the header of a report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Iperf3SystemInfo {
    /// System name, node name, release, version and machine, as in uname(1).
    pub system: String,
}

/// The properties of the control connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Iperf3Control {
    /// Host of the server as the user typed it (client), or address of the client (server).
    pub host: String,
    /// Port of the peer.
    pub port: u16,
    /// Cookie of the test, 36 characters.
    pub cookie: String,
    /// Segment size of the control connection, bytes; 0 at a server, and if the kernel does not report it.
    pub mss: u32,
    /// Milliseconds since the Unix epoch.
    pub unix_ms: u64,
}

/// The parameters of the test, as both ends know them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Iperf3TestParameters {
    /// UDP instead of TCP.
    pub udp: bool,
    /// Number of streams in each direction.
    pub streams: u32,
    /// Length of a block or datagram, bytes.
    pub block_bytes: u64,
    /// Omitted seconds at the start.
    pub omit: u32,
    /// Duration in seconds; 0 for another end condition.
    pub seconds: u32,
    /// Bytes after which it ends; 0 for another end condition.
    pub bytes: u64,
    /// Blocks after which it ends; 0 for another end condition.
    pub blocks: u64,
    /// Whether the server sends.
    pub reverse: bool,
    /// Whether both ends send.
    pub bidir: bool,
    /// Type-of-service byte.
    pub tos: u8,
    /// Rate of each stream, bit/s; 0 for no limit.
    pub bitrate: u64,
    /// Rate to which the kernel paces each stream, bit/s; 0 for none.
    pub fq_rate: u64,
    /// Requested segment size, bytes.
    pub mss: Option<u32>,
    /// Requested socket buffers, bytes.
    pub window: Option<u64>,
    /// Whether datagrams are sent with GSO.
    pub gso: bool,
    /// Whether datagrams are received with GRO.
    pub gro: bool,
    /// Title.
    pub title: Option<String>,
    /// Text of the user that is copied to the JSON object.
    pub extra_data: Option<String>,
    /// Whether the client requests the server's report.
    pub get_server_output: bool,
}

impl Iperf3TestParameters {
    /// The test as a client requests it. The length of a block may depend on the control connection.
    #[must_use]
    pub fn asked(settings: &Iperf3Settings, block_bytes: u64) -> Self {
        let client = &settings.client;
        let (seconds, bytes, blocks) = match client.end {
            EndCondition::Time(seconds) => (seconds, 0, 0),
            EndCondition::Bytes(bytes) => (0, bytes, 0),
            EndCondition::Blocks(blocks) => (0, 0, blocks),
        };
        Self {
            udp: client.udp,
            streams: client.parallel,
            block_bytes,
            omit: client.omit,
            seconds,
            bytes,
            blocks,
            reverse: client.reverse,
            bidir: client.bidir,
            tos: client.tos,
            bitrate: client.bitrate,
            fq_rate: client.fq_rate,
            mss: client.mss,
            window: client.window,
            gso: client.gsro,
            gro: client.gsro,
            title: client.title.clone(),
            extra_data: client.extra_data.clone(),
            get_server_output: client.get_server_output,
        }
    }
}

/// An open stream; streams are reported in the order of their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Iperf3Stream {
    /// The printed number: the file descriptor of its socket.
    pub socket: i32,
    /// Local address.
    pub local: SocketAddr,
    /// Remote address.
    pub remote: SocketAddr,
    /// Whether this end sends.
    pub sends: bool,
    /// Send buffer as read back, bytes.
    pub snd_buf: u64,
    /// Receive buffer as read back, bytes.
    pub rcv_buf: u64,
}

/// The counts of one stream in one interval.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct StreamInterval {
    /// Start, relative to the test or to the end of the omitted part.
    pub start: Span,
    /// End, relative to the same.
    pub end: Span,
    /// Whether it belongs to the omitted part.
    pub omitted: bool,
    /// Bytes sent or received.
    pub bytes: u64,
    /// Retransmitted segments; absent at a receiver and if unknown.
    pub retransmits: Option<u64>,
    /// Congestion window at the end, bytes; this and the following only at a TCP sender.
    pub snd_cwnd: Option<u64>,
    /// The peer's window, bytes.
    pub snd_wnd: Option<u64>,
    /// Smoothed round-trip time.
    pub rtt: Option<Span>,
    /// Its variance.
    pub rttvar: Option<Span>,
    /// Path MTU, bytes.
    pub pmtu: Option<u32>,
    /// Times that the kernel saw segments reordered.
    pub reorder: Option<u32>,
    /// Datagrams sent, or increase of the highest received number.
    pub packets: u64,
    /// Lost datagrams; negative if more datagrams arrived late that had been counted as lost.
    pub lost: i64,
    /// Jitter at the end.
    pub jitter: Span,
}

/// The counts of one end of a stream over the whole test without the omitted part.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct StreamEndCounts {
    /// Bytes sent or received.
    pub bytes: u64,
    /// Duration of this end's measurement.
    pub duration: Span,
    /// Retransmitted segments; absent at a receiver and if unknown.
    pub retransmits: Option<u64>,
    /// Datagrams sent, or highest received number minus those of the omitted part.
    pub packets: u64,
    /// Lost datagrams.
    pub lost: i64,
    /// Datagrams that arrived after a later one; known only if this host is the receiver.
    pub out_of_order: u64,
    /// Jitter.
    pub jitter: Span,
}

/// The counts of both ends of a stream; absent if they were not exchanged.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Iperf3StreamEnd {
    /// The sender's counts.
    pub sent: Option<StreamEndCounts>,
    /// The receiver's counts.
    pub received: Option<StreamEndCounts>,
}

/// Share of one CPU that a process used, percent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CpuShare {
    /// Total.
    pub total: f64,
    /// In user mode.
    pub user: f64,
    /// In the kernel.
    pub system: f64,
}

/// The results at the end of a test.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Iperf3EndResults {
    /// Duration of this host's measurement without the omitted part.
    pub duration: Span,
    /// One entry per stream, in the order in which they were opened.
    pub streams: Vec<Iperf3StreamEnd>,
    /// Most bytes that this host has received on a stream, including the omitted part: the size of the file of
    /// `-F` at a receiver.
    pub most_received: u64,
    /// CPU share of this process.
    pub local_cpu: CpuShare,
    /// CPU share of the peer; absent before the exchange.
    pub remote_cpu: Option<CpuShare>,
    /// Congestion control algorithm of this end; TCP only.
    pub local_congestion: Option<String>,
    /// Congestion control algorithm of the peer; TCP only.
    pub remote_congestion: Option<String>,
}

/// A server's report that is sent to the client (`--get-server-output`).
#[derive(Debug, Clone, PartialEq)]
pub enum ServerOutput {
    /// Its text output.
    Text(String),
    /// Its JSON object.
    Json(serde_json::Value),
}

/// Output at the end of a test.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutputText {
    /// Text for standard output.
    pub out: String,
    /// Text for standard error.
    pub err: String,
}
