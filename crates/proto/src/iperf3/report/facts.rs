//! What a report is told: plain facts, in the order in which a test goes.

use std::net::SocketAddr;

use linerate_units::Span;

use crate::iperf3::settings::{EndCondition, Settings};

/// What this host is called and does, for the head of a report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Host {
    /// System name, node name, release, version and machine, as uname(1) says them.
    pub system: String,
}

/// What is known about the control connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Control {
    /// The server as the user called it (client), or the client's address (server).
    pub host: String,
    /// Port of the peer.
    pub port: u16,
    /// Cookie of the test, 36 characters.
    pub cookie: String,
    /// Segment size of the control connection, bytes; 0 when the system does not say, and at a server.
    pub mss: u32,
    /// Milliseconds since the Unix epoch.
    pub unix_ms: u64,
}

/// What is tested, as both ends know it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Test {
    /// UDP instead of TCP.
    pub udp: bool,
    /// Streams in each direction.
    pub streams: u32,
    /// Bytes of a block or datagram.
    pub block_bytes: u64,
    /// Seconds left out at the start.
    pub omit: u32,
    /// Seconds of the test; 0 when it ends otherwise.
    pub seconds: u32,
    /// Bytes after which it ends; 0 when it ends otherwise.
    pub bytes: u64,
    /// Blocks after which it ends; 0 when it ends otherwise.
    pub blocks: u64,
    /// The server sends.
    pub reverse: bool,
    /// Both send.
    pub bidir: bool,
    /// Type-of-service byte.
    pub tos: u8,
    /// Rate of each stream, bit/s; 0 for no limit.
    pub bitrate: u64,
    /// Rate to which the kernel paces each stream, bit/s; 0 for none.
    pub fq_rate: u64,
    /// Segment size that was asked for.
    pub mss: Option<u32>,
    /// Socket buffers that were asked for, bytes.
    pub window: Option<u64>,
    /// Datagrams leave in bundles.
    pub gso: bool,
    /// Datagrams arrive in bundles.
    pub gro: bool,
    /// Title.
    pub title: Option<String>,
    /// Text of the user for the JSON object.
    pub extra_data: Option<String>,
    /// The client wants the server's report.
    pub get_server_output: bool,
}

impl Test {
    /// What a client asks for; the size of a block is known only when the control connection is open.
    #[must_use]
    pub fn asked(settings: &Settings, block_bytes: u64) -> Self {
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

/// A stream that was opened; they are told in the order of their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    /// The number shown: the descriptor of its socket.
    pub socket: i32,
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// This end sends.
    pub sends: bool,
    /// Send buffer as read back, bytes.
    pub snd_buf: u64,
    /// Receive buffer as read back, bytes.
    pub rcv_buf: u64,
}

/// What one stream did in one interval.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct StreamInterval {
    /// Start, since the test or since the end of the omitted part.
    pub start: Span,
    /// End, likewise.
    pub end: Span,
    /// It belongs to the part that is left out.
    pub omitted: bool,
    /// Bytes sent or received in it.
    pub bytes: u64,
    /// Segments sent again in it; absent at a receiver and where nobody knows.
    pub retransmits: Option<u64>,
    /// Congestion window at its end, bytes; this and the following only at a sender of TCP.
    pub snd_cwnd: Option<u64>,
    /// The peer's window, bytes.
    pub snd_wnd: Option<u64>,
    /// Smoothed round-trip time.
    pub rtt: Option<Span>,
    /// Its variance.
    pub rttvar: Option<Span>,
    /// Path MTU, bytes.
    pub pmtu: Option<u32>,
    /// Reordering that the kernel has met.
    pub reorder: Option<u32>,
    /// Datagrams sent in it, or by how much the highest number grew.
    pub packets: u64,
    /// Datagrams lost in it; negative when more came late that were counted as lost before.
    pub lost: i64,
    /// Jitter at its end.
    pub jitter: Span,
}

/// What one end of a stream has counted over the whole test, without the omitted part.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Half {
    /// Bytes sent or received.
    pub bytes: u64,
    /// Length of this end's measurement.
    pub duration: Span,
    /// Segments sent again; absent at a receiver and where nobody knows.
    pub retransmits: Option<u64>,
    /// Datagrams sent, or highest number seen less those of the omitted part.
    pub packets: u64,
    /// Datagrams lost.
    pub lost: i64,
    /// Datagrams that came after a later one; known only to a receiver that is this host.
    pub out_of_order: u64,
    /// Jitter.
    pub jitter: Span,
}

/// Both ends of a stream; absent is what was not exchanged.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct StreamEnd {
    /// What the sender counted.
    pub sent: Option<Half>,
    /// What the receiver counted.
    pub received: Option<Half>,
}

/// Share of one CPU that a process used, percent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CpuShare {
    /// In all.
    pub total: f64,
    /// In user mode.
    pub user: f64,
    /// In the kernel.
    pub system: f64,
}

/// How a test ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct End {
    /// Length of this host's measurement, without the omitted part.
    pub duration: Span,
    /// One for each stream, in the order in which they were opened.
    pub streams: Vec<StreamEnd>,
    /// CPU of this process.
    pub local_cpu: CpuShare,
    /// CPU of the peer; absent before the exchange.
    pub remote_cpu: Option<CpuShare>,
    /// Congestion control of this end; TCP only.
    pub local_congestion: Option<String>,
    /// Congestion control of the peer; TCP only.
    pub remote_congestion: Option<String>,
}

/// A server's report, as it goes to the client (`--get-server-output`).
#[derive(Debug, Clone, PartialEq)]
pub enum ServerOutput {
    /// What it printed.
    Text(String),
    /// Its JSON object.
    Json(serde_json::Value),
}

/// What is printed at an end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words {
    /// On standard output.
    pub out: String,
    /// On standard error.
    pub err: String,
}
