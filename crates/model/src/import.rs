//! What the result of another program says, figure by figure, as that program says it.
//!
//! A reader (in `proto`, beside the protocol of its program) turns a file or a text into a [`Reading`] and judges
//! nothing. `linerate check` compares its figures with what can be, `linerate import` makes an event log of it.

use linerate_units::Span;

use crate::foreign_text::ForeignText;
use crate::metrics::Side;
use crate::spec::{Direction, TestSpec};

/// A result of another program, as read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading {
    /// The program, by the name of its protocol folder: `iperf3`.
    pub tool: ForeignText,
    /// Its version, as far as it says: `3.12`.
    pub version: Option<ForeignText>,
    /// Its tests, in the order of the file.
    pub tests: Vec<ForeignTest>,
    /// What could not be read; the rest was.
    pub unread: Vec<Unread>,
}

/// A piece of a file that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1, where it is known.
    pub column: Option<u32>,
    /// What is wrong with it and what was expected, for a person.
    pub why: ForeignText,
}

/// One test of another program.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ForeignTest {
    /// Wall-clock time of its start, RFC 3339; absent where the file does not tell.
    pub started_at: Option<ForeignText>,
    /// The other end, as the file names it.
    pub target: Option<ForeignText>,
    /// Which end wrote the file.
    pub written_by: Option<End>,
    /// What was asked, as far as the file tells and our words can say it.
    pub spec: TestSpec,
    /// What the kernel granted or the connection used, as far as the file tells.
    pub effective: Vec<Figure>,
    /// What the file claims.
    pub claims: Vec<Claim>,
    /// The error with which the test ended, in the words of the file.
    pub error: Option<ForeignText>,
}

/// Who opened the control connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Who opened it.
    Client,
    /// Who waited for it.
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
    pub scope: Scope,
    /// The stream, by the number that the file gives it; absent for the sum of all.
    pub stream: Option<u32>,
    /// Which way the data went, seen from the client; absent where the file does not tell.
    pub direction: Option<Direction>,
    /// Whose count it is; absent where the file does not tell.
    pub side: Option<Side>,
    /// Begin of the interval, from the start of the test.
    pub start: Option<Span>,
    /// End of the interval.
    pub end: Option<Span>,
    /// Whether the program left it out of its summary (`-O`).
    pub omitted: bool,
    /// The figures.
    pub figures: Vec<Figure>,
}

/// What a line of a result covers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scope {
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
    /// Its value in the unit of the quantity, with the unit that the program means: a `MB/sec` that is 2^20 counts as 2^20.
    pub value: f64,
    /// What one more in its last printed digit would add, in the same unit; 0 where it is printed exactly.
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
    /// Packets each second, 1/s.
    PacketRate,
    /// Datagrams that did not arrive.
    Lost,
    /// Lost over sent datagrams, as a ratio.
    LossRatio,
    /// Datagrams that came after a later one.
    OutOfOrder,
    /// Interarrival jitter (RFC 3550 §6.4.1), s.
    Jitter,
    /// Segments sent again.
    Retransmits,
    /// Congestion window, bytes.
    CongestionWindow,
    /// Round-trip time, s.
    RoundTrip,
    /// Its variation, s.
    RoundTripVariation,
    /// One-way delay or time of one message in one direction, s.
    OneWay,
    /// Calls of the system that read or wrote.
    Calls,
    /// Calls each second, 1/s.
    CallRate,
    /// Time of one call, s.
    CallTime,
    /// Bytes of one message or block.
    MessageSize,
    /// Busy share of the CPUs of the end that wrote the file, as a ratio; above 1 where several cores are added.
    CpuLocal,
    /// The same of the other end.
    CpuRemote,
    /// The busy share of the CPUs of the end that sends, where the program tells it by that.
    CpuSender,
    /// The same of the end that receives.
    CpuReceiver,
    /// Processor cycles for each byte.
    CyclesPerByte,
    /// Packets for each interrupt.
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
