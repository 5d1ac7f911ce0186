//! The contract of a stand-in: a foreign tool with its behaviour on the wire and on the terminal, without I/O.
//!
//! A stand-in is a whole tool in one role: its dialogue over any number of links, its measurements, its printed
//! output and its exit code. It opens no socket, reads no clock and moves no payload. *After every input, drain
//! [`StandIn::output`] until `None`; then wait for the next input, or for [`StandIn::deadline`], at which the
//! input is [`Input::Tick`].* The driver runs it over sockets and hands links to the engine when it requests a
//! flow. Tests run two stand-ins against each other, or one against a transcript, in virtual time. A fuzzer
//! runs it with noise.
//!
//! A misbehaving peer is not an error of the driver: the stand-in prints what its tool prints, and ends or
//! continues as its tool does.

mod cpu;
mod host;
mod link;
mod run;

pub use cpu::{CpuTime, ResourceUsage};
pub use host::HostCounts;
pub use linerate_model::Transport;
pub use linerate_model::flow::{
    BlockNote, Blocks, ConnectionCounts, EndMark, Exchange, Exchanged, FlowCounts, FlowId, FlowTask, Link,
    Noted, Pattern, Payload, PayloadFraming, RunId, Stop, StreamCounts, SystemError, Transit, TransitCounts,
};
pub use link::{LinkOptions, Opened};
pub use run::{CountedFlow, Planned};

use std::net::SocketAddr;

use linerate_model::{BrowserNote, ResponsivenessReport, SideSettings, SizePoint, Tally};
use linerate_units::{Bytes, Span, Timestamp};

/// A foreign tool in one role.
pub trait StandIn: Send {
    /// Handles what happened at `now`.
    fn input(&mut self, now: Timestamp, input: Input<'_>);

    /// The next action; absent if there is nothing to do before the next input.
    fn output(&mut self) -> Option<Output>;

    /// When the stand-in needs an [`Input::Tick`] if nothing else happens.
    fn deadline(&self) -> Option<Timestamp>;
}

impl<S: StandIn + ?Sized> StandIn for Box<S> {
    fn input(&mut self, now: Timestamp, input: Input<'_>) {
        (**self).input(now, input);
    }

    fn output(&mut self) -> Option<Output> {
        (**self).output()
    }

    fn deadline(&self) -> Option<Timestamp> {
        (**self).deadline()
    }
}

/// What happens to a stand-in.
#[derive(Debug)]
#[non_exhaustive]
pub enum Input<'a> {
    /// The first input.
    Begin,
    /// A requested link is open: connected, or listening.
    Opened {
        /// The link.
        link: Link,
        /// The properties of the link.
        opened: Opened,
    },
    /// A requested link cannot be opened.
    NotOpened {
        /// The link.
        link: Link,
        /// The error of the operating system.
        reason: SystemError,
    },
    /// A listener accepted a connection; the driver has chosen its number, from [`Link::FIRST_ACCEPTED`] up.
    Accepted {
        /// The listener.
        listener: Link,
        /// The new link.
        link: Link,
        /// The properties of the link.
        opened: Opened,
    },
    /// Bytes arrived on a connection that is not used by a flow.
    Bytes {
        /// The link.
        link: Link,
        /// The received bytes.
        bytes: &'a [u8],
    },
    /// A datagram arrived on a socket that is not used by a flow.
    Datagram {
        /// The link.
        link: Link,
        /// Its source address.
        from: SocketAddr,
        /// Its payload.
        bytes: &'a [u8],
    },
    /// The peer closed its side of a connection that is not used by a flow, or the connection broke.
    Closed {
        /// The link.
        link: Link,
        /// The error; absent after a normal close.
        reason: Option<SystemError>,
    },
    /// All bytes queued on a connection have been passed to the kernel.
    Sent {
        /// The link.
        link: Link,
    },
    /// The driver's answer to [`Output::Ask`]: the run may begin; or to [`Output::Reserve`]: it has a place.
    Admitted {
        /// The run.
        run: RunId,
    },
    /// After [`Input::Admitted`]: the event log of the run was opened.
    Logged {
        /// The run.
        run: RunId,
        /// The id of its log.
        id: &'a str,
    },
    /// The driver's answer to [`Output::Ask`] or [`Output::Reserve`]: another run is in progress, or this one is
    /// not allowed.
    Refused {
        /// The run.
        run: RunId,
        /// The reason.
        why: String,
        /// Whether the same run may be admitted soon.
        may_retry: bool,
    },
    /// A flow has started.
    Started {
        /// The flow.
        flow: FlowId,
        /// The settings of its sockets.
        settings: &'a SideSettings,
    },
    /// A flow cannot be started; its links are closed.
    NotStarted {
        /// The flow.
        flow: FlowId,
        /// The error of the operating system.
        reason: SystemError,
    },
    /// The answer to [`Output::Look`].
    Counts {
        /// CPU time of this process and of the host since the driver began.
        cpu: CpuTime,
        /// Flows that are running, or have ended and were not forgotten, by number.
        flows: &'a [FlowCounts],
    },
    /// The sender of a flow has written everything that its limit allows.
    Written {
        /// The flow.
        flow: FlowId,
    },
    /// A flow has ended. Its links belong to the stand-in again, and its counts are final.
    Ended {
        /// The counts of the flow.
        counts: &'a FlowCounts,
    },
    /// The answer to [`Output::Exchange`].
    Exchanged {
        /// The link.
        link: Link,
        /// The result of the exchange.
        result: Result<Exchanged, SystemError>,
    },
    /// The answer to [`Output::LookLink`].
    LinkCounts {
        /// The link.
        link: Link,
        /// What the kernel has counted since the connection was opened; absent for a link that is no connection.
        counts: Option<&'a StreamCounts>,
    },
    /// The answer to [`Output::LookHost`].
    Host(&'a HostCounts),
    /// A file could not be written.
    NotWritten {
        /// Its name, as in [`Output::WriteFile`].
        name: String,
        /// The error of the operating system.
        reason: SystemError,
    },
    /// The deadline has passed.
    Tick,
    /// The user or the system asks the program to end; the number of the signal.
    Signal(i32),
    /// A line (a block of a file) of standard input, for tools that transfer it; absent at its end.
    Text(Option<&'a [u8]>),
}

/// A request of a stand-in to its driver.
#[derive(Debug)]
#[non_exhaustive]
pub enum Output {
    /// Connect. A TCP link is reported after the handshake, a UDP link immediately.
    Connect {
        /// The number of the new link, chosen by the stand-in: unused and below [`Link::FIRST_ACCEPTED`].
        link: Link,
        /// Port of the peer. The driver knows the host, or it is the peer of another link.
        port: u16,
        /// The address to connect to; absent for the host from the command line.
        to: Option<SocketAddr>,
        /// Options of the link.
        options: LinkOptions,
    },
    /// Listen for connections or datagrams.
    Listen {
        /// The number of the listener, chosen as for `Connect`.
        link: Link,
        /// Port; 0 lets the kernel choose.
        port: u16,
        /// Options of the link.
        options: LinkOptions,
    },
    /// Open a connected datagram socket for one peer on the port of a listener; answered by `Accepted`.
    Adopt {
        /// The listener.
        listener: Link,
        /// The peer.
        peer: SocketAddr,
        /// Options of the link.
        options: LinkOptions,
    },
    /// Send these bytes on a connection, or as one datagram.
    Send {
        /// The link.
        link: Link,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Send one byte as urgent data of a connection (RFC 9293 §3.8.5), after the bytes that were queued before.
    Urgent {
        /// The link.
        link: Link,
        /// The byte.
        byte: u8,
    },
    /// Send one datagram from a listener.
    SendTo {
        /// The listener.
        link: Link,
        /// The destination.
        to: SocketAddr,
        /// Its payload.
        bytes: Vec<u8>,
    },
    /// Half-close a connection after all bytes have been sent.
    FinishWriting {
        /// The link.
        link: Link,
    },
    /// Close a link after all bytes have been sent. No further input mentions it.
    Close {
        /// The link.
        link: Link,
    },
    /// Reset a connection.
    Reset {
        /// The link.
        link: Link,
    },
    /// Read and discard what arrives on a link that is not used by a flow, until it is closed; no input reports
    /// it.
    Discard {
        /// The link.
        link: Link,
    },
    /// Leave what arrives on a link in its socket until a flow uses it: payload may arrive before the message
    /// that starts the flow.
    Hold {
        /// The link.
        link: Link,
    },
    /// Set options of an accepted connection, as far as that is still possible: buffers, type of service,
    /// congestion control, Nagle's algorithm. Options that the kernel refuses stay unchanged. Answered by
    /// `Opened`.
    Tune {
        /// The link.
        link: Link,
        /// Options of the link.
        options: LinkOptions,
    },
    /// Server: request a place for a run whose details are not yet known. Answered by `Admitted` or `Refused`.
    /// From then on, connections and datagrams of the peer that arrive at a listener of this stand-in belong to
    /// it, even if another tool has that port. `Ask` for the same run begins it; `RunOver` gives the place back.
    Reserve {
        /// The run.
        run: RunId,
        /// Name of the tool, as in results.
        tool: &'static str,
        /// A link to the peer.
        link: Link,
    },
    /// Server: request permission for a run. Answered by `Admitted` or `Refused`.
    Ask(Box<Planned>),
    /// Client: this run begins.
    Plan(Box<Planned>),
    /// Start a flow: the engine uses its links until `Ended`. A sender starts immediately.
    Start(Box<FlowTask>),
    /// End a flow.
    Stop {
        /// The flow.
        flow: FlowId,
        /// How to end it.
        how: Stop,
    },
    /// Write bytes, which do not count, between two blocks of a TCP sender with a single stream.
    Insert {
        /// The flow.
        flow: FlowId,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Forget a flow that has ended.
    Forget {
        /// The flow.
        flow: FlowId,
    },
    /// Send and receive messages in turn, as fast as possible.
    Exchange(Box<Exchange>),
    /// Tell what every flow has counted; answered by `Counts` before anything else.
    Look,
    /// Read what the kernel has counted on a connection that is not used by a flow; answered by `LinkCounts` before
    /// any other input.
    LookLink {
        /// The link.
        link: Link,
    },
    /// Read the counters of this host; answered by `Host` before any other input.
    LookHost {
        /// Count the interrupts of the lines that contain this name.
        interrupts: Option<String>,
        /// Count the packets of this interface.
        interface: Option<String>,
    },
    /// One size of a sweep over message sizes has been measured.
    Point {
        /// The run.
        run: RunId,
        /// The flow.
        flow: FlowId,
        /// The result.
        point: Box<SizePoint>,
    },
    /// Latency was measured over the connections of a run.
    Latency {
        /// The run.
        run: RunId,
        /// The flow during which it was measured; absent for the idle path.
        flow: Option<FlowId>,
        /// When each probe was sent, and its round-trip time; absent if it was never answered.
        probes: Vec<(Timestamp, Option<Span>)>,
    },
    /// The responsiveness under load was measured.
    Responsiveness {
        /// The run.
        run: RunId,
        /// What was found.
        report: Box<ResponsivenessReport>,
    },
    /// The other end of a flow is a browser.
    Browser {
        /// The flow.
        flow: FlowId,
        /// What its page said.
        note: Box<BrowserNote>,
    },
    /// The result of a flow whose parts the engine moved, under other numbers than this one. It need not have been
    /// planned.
    Counted {
        /// The run.
        run: RunId,
        /// The flow in the result.
        flow: FlowId,
        /// What was counted.
        counted: Box<CountedFlow>,
    },
    /// This number of bytes of payload was moved by the stand-in itself, for the quotas of its run.
    Moved {
        /// The run.
        run: RunId,
        /// Bytes since the last time.
        bytes: Bytes,
    },
    /// The peer's counts of a flow.
    PeerCounted {
        /// The flow.
        flow: FlowId,
        /// Its counts, as far as the protocol transfers them.
        tally: Box<Tally>,
    },
    /// A run is over.
    RunOver {
        /// The run.
        run: RunId,
        /// Why it failed; absent if it completed.
        trouble: Option<String>,
    },
    /// Print on standard output.
    Print(String),
    /// Print on standard error.
    PrintError(String),
    /// Request the next block of standard input.
    Read,
    /// Write bytes to standard output.
    Write(Vec<u8>),
    /// Write to a file that the user named on the command line. An embedded server writes no files.
    WriteFile {
        /// Its name.
        name: String,
        /// The content. It is written completely before the next output is executed.
        text: String,
        /// Whether to append to the file instead of replacing it.
        append: bool,
    },
    /// End the program.
    Exit(i32),
}
