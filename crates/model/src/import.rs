//! The result of another program, figure by figure, as reported by that program.
//!
//! A reader (in `proto`, next to the protocol of its program) turns a file or a text into a [`ForeignResult`]
//! without judging it. `linerate check` compares its figures with what is possible; `linerate import` makes
//! an event log from it.

use linerate_units::Span;

use crate::foreign_text::ForeignText;
use crate::metrics::Side;
use crate::run_labels::RunLabels;
use crate::spec::{Direction, TestSpec};

/// A result of another program, as read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ForeignResult {
    /// The program, by the name of its protocol folder: `iperf3`.
    pub tool: ForeignText,
    /// Its version, as far as reported: `3.12`.
    pub version: Option<ForeignText>,
    /// Its tests, in the order of the file.
    pub tests: Vec<ForeignTest>,
    /// The parts that could not be read.
    pub unread: Vec<Unread>,
}

/// A part of a file that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1, where it is known.
    pub column: Option<u32>,
    /// What is wrong with it and what was expected, for the user.
    pub why: ForeignText,
}

/// One test of another program.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ForeignTest {
    /// Wall-clock time of its start, RFC 3339; absent if the file does not contain it.
    pub started_at: Option<ForeignText>,
    /// The other end, by its name in the file.
    pub target: Option<ForeignText>,
    /// The end that wrote the file.
    pub written_by: Option<ControlEnd>,
    /// The name and notes that a user gave it; only our own files have them.
    pub labels: RunLabels,
    /// The requested settings, as far as the file reports them and a [`TestSpec`] can express them.
    pub spec: TestSpec,
    /// What the kernel granted or the connection used, as far as the file reports it.
    pub effective: Vec<Figure>,
    /// The results in the file.
    pub claims: Vec<Claim>,
    /// The error that ended the test, in the words of the file.
    pub error: Option<ForeignText>,
}

/// An end of the control connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlEnd {
    /// The end that opened it.
    Client,
    /// The end that accepted it.
    Server,
}

/// One line of a result: figures that belong together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Claim {
    /// Line of the file, from 1.
    pub line: u32,
    /// The line itself, or the path of the JSON value.
    pub quote: ForeignText,
    /// What it covers.
    pub scope: ClaimScope,
    /// The stream, by its number in the file; absent for the sum of all.
    pub stream: Option<u32>,
    /// Direction of the data as seen from the client; absent if the file does not report it.
    pub direction: Option<Direction>,
    /// The side that counted; absent if the file does not report it.
    pub side: Option<Side>,
    /// Start of the interval, from the start of the test.
    pub start: Option<Span>,
    /// End of the interval.
    pub end: Option<Span>,
    /// Whether the program excluded it from its summary (`-O`).
    pub omitted: bool,
    /// The figures.
    pub figures: Vec<Figure>,
}

/// What a line of a result covers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ClaimScope {
    /// A part of a test.
    Interval,
    /// A whole test.
    #[default]
    Total,
    /// All trials of one message size (NetPIPE).
    Size,
}

/// One figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// What it is.
    pub quantity: Quantity,
    /// Its value in the unit of the quantity, converted by the program's meaning of its own unit: a `MB/sec` of
    /// 2^20 bytes counts as 2^20.
    pub value: f64,
    /// Value of one unit in the last printed digit, in the same unit; 0 if it is printed exactly.
    pub step: f64,
    /// As printed: `93.02 MB/sec`.
    pub printed: ForeignText,
}

/// What a figure is, and its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Quantity {
    /// Application bytes.
    Bytes,
    /// Time of the measurement, s.
    Seconds,
    /// Application bits over that time, bit/s.
    Bitrate,
    /// Datagrams or packets.
    Packets,
    /// Packets per second, 1/s.
    PacketRate,
    /// Datagrams that did not arrive.
    Lost,
    /// Lost datagrams divided by sent datagrams, as a ratio.
    LossRatio,
    /// Datagrams that arrived after a later one.
    OutOfOrder,
    /// Interarrival jitter (RFC 3550 §6.4.1), s.
    Jitter,
    /// Segments retransmitted.
    Retransmits,
    /// Congestion window, bytes.
    CongestionWindow,
    /// Round-trip time, s.
    RoundTrip,
    /// Its variation, s.
    RoundTripVariation,
    /// One-way delay or time of one message in one direction, s.
    OneWay,
    /// System calls that read or wrote.
    Calls,
    /// Calls per second, 1/s.
    CallRate,
    /// Time of one call, s.
    CallTime,
    /// Bytes of one message or block.
    MessageSize,
    /// Busy share of the CPUs of the end that wrote the file, as a ratio; above 1 if several cores are added
    /// up.
    CpuLocal,
    /// The same for the other end.
    CpuRemote,
    /// Busy share of the CPUs of the sending end, if the program reports it by direction.
    CpuSender,
    /// The same for the receiving end.
    CpuReceiver,
    /// Processor cycles per byte.
    CyclesPerByte,
    /// Packets per interrupt.
    PacketsPerInterrupt,
    /// Maximum segment size, bytes.
    Mss,
    /// Path MTU, bytes.
    Mtu,
    /// Send buffer, bytes.
    SendBuffer,
    /// Receive buffer, bytes.
    ReceiveBuffer,
}

impl Claim {
    /// The figure of that kind, if the line has one.
    #[must_use]
    pub fn figure(&self, quantity: Quantity) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.quantity == quantity)
    }
}
