//! The contract of a stand-in: a foreign tool, as it behaves on the wire and on the terminal, without I/O.
//!
//! A stand-in is the whole tool in one role: its dialogue over any number of links, when it measures, what it prints,
//! its exit code. It opens no socket, reads no clock and moves no payload. *After every input, drain
//! [`StandIn::output`] until `None`; then wait for the next input or for [`StandIn::deadline`], at which the input is
//! [`Input::Tick`].* The driver runs it over sockets and hands links to the engine when it asks for a flow; tests run
//! two of them against each other, or one against a transcript, in virtual time; a fuzzer runs it with noise.
//!
//! A bad peer is no error of the driver: the stand-in prints what its tool prints, and ends or goes on as its tool does.

mod cpu;
mod host;
mod link;
mod run;

pub use cpu::{Cpu, Usage};
pub use host::HostCounts;
pub use linerate_model::Transport;
pub use linerate_model::flow::{
    BlockNote, Blocks, EndMark, Exchange, Exchanged, FlowCounts, FlowId, FlowTask, Link, Noted, Pattern,
    Payload, Reason, RunId, Stop, StreamCounts, Transit, TransitCounts,
};
pub use link::{LinkOptions, Opened};
pub use run::Planned;

use std::net::SocketAddr;

use linerate_model::{Caveat, SideSettings, SizePoint, Tally};
use linerate_units::Timestamp;

/// A foreign tool in one role.
pub trait StandIn: Send {
    /// Takes in what happened at `now`.
    fn input(&mut self, now: Timestamp, input: Input<'_>);

    /// The next thing to do; absent when there is nothing to do before the next input.
    fn output(&mut self) -> Option<Output>;

    /// When the stand-in wants an [`Input::Tick`] if nothing else happens.
    fn deadline(&self) -> Option<Timestamp>;
}

/// What happens to a stand-in.
#[derive(Debug)]
#[non_exhaustive]
pub enum Input<'a> {
    /// The first input.
    Begin,
    /// A link that was asked for is open: connected, or listening.
    Opened {
        /// The link.
        link: Link,
        /// What is known about it.
        opened: Opened,
    },
    /// A link that was asked for cannot be had.
    NotOpened {
        /// The link.
        link: Link,
        /// What the system says.
        reason: Reason,
    },
    /// A listener accepted a connection; the driver has chosen its number, from [`Link::FIRST_ACCEPTED`] up.
    Accepted {
        /// The listener.
        listener: Link,
        /// The new link.
        link: Link,
        /// What is known about it.
        opened: Opened,
    },
    /// Bytes arrived on a connection that no flow has.
    Bytes {
        /// The link.
        link: Link,
        /// What arrived.
        bytes: &'a [u8],
    },
    /// A datagram arrived on a socket that no flow has.
    Datagram {
        /// The link.
        link: Link,
        /// From where.
        from: SocketAddr,
        /// Its payload.
        bytes: &'a [u8],
    },
    /// The peer closed its side of a connection that no flow has, or it broke.
    Closed {
        /// The link.
        link: Link,
        /// Why, unless it was closed regularly.
        reason: Option<Reason>,
    },
    /// Everything handed to a connection has left the program.
    Sent {
        /// The link.
        link: Link,
    },
    /// The driver's answer to [`Output::Ask`]: the run may begin.
    Admitted {
        /// The run.
        run: RunId,
    },
    /// The driver's answer to [`Output::Ask`]: another run is under way, or this one is not allowed.
    Refused {
        /// The run.
        run: RunId,
        /// Why.
        why: String,
    },
    /// A flow runs.
    Started {
        /// The flow.
        flow: FlowId,
        /// What its sockets are set to.
        settings: &'a SideSettings,
    },
    /// A flow cannot be started; its links are closed.
    NotStarted {
        /// The flow.
        flow: FlowId,
        /// What the system says.
        reason: Reason,
    },
    /// The answer to [`Output::Look`].
    Counts {
        /// CPU time of this process and of the host since the driver began.
        cpu: Cpu,
        /// Flows that run or have ended but were not forgotten, by number.
        flows: &'a [FlowCounts],
    },
    /// The sender of a flow has written what its limit allows.
    Written {
        /// The flow.
        flow: FlowId,
    },
    /// A flow has ended; its links belong to the stand-in again. The counts are final.
    Ended {
        /// The flow.
        counts: &'a FlowCounts,
    },
    /// The answer to [`Output::Exchange`].
    Exchanged {
        /// The link.
        link: Link,
        /// How it went.
        result: Result<Exchanged, Reason>,
    },
    /// The answer to [`Output::LookHost`].
    Host(&'a HostCounts),
    /// A file that was to be written cannot be.
    NotWritten {
        /// Its name, as in [`Output::WriteFile`].
        name: String,
        /// What the system says.
        reason: Reason,
    },
    /// The deadline has passed.
    Tick,
    /// The user or the system asks the program to end (a signal's number).
    Signal(i32),
    /// A line of standard input (a file's block), for tools that carry it; absent at its end.
    Text(Option<&'a [u8]>),
}

/// What a stand-in wants done.
#[derive(Debug)]
#[non_exhaustive]
pub enum Output {
    /// Connect; TCP answers when the handshake is over, UDP at once.
    Connect {
        /// The number of the new link, chosen by the stand-in, below [`Link::FIRST_ACCEPTED`] and not in use.
        link: Link,
        /// Port of the peer; its host is the driver's own business, or the peer of another link.
        port: u16,
        /// The address to connect to instead of the host that was given on the command line.
        to: Option<SocketAddr>,
        /// Settings.
        options: LinkOptions,
    },
    /// Listen for connections or datagrams.
    Listen {
        /// The number of the listener, chosen as for `Connect`.
        link: Link,
        /// Port; 0 lets the system choose.
        port: u16,
        /// Settings.
        options: LinkOptions,
    },
    /// Make a connected datagram socket on a listener's own port for one peer; answered by `Accepted`.
    Adopt {
        /// The listener.
        listener: Link,
        /// The peer.
        peer: SocketAddr,
        /// Settings.
        options: LinkOptions,
    },
    /// Write these bytes to a connection (send them as one datagram).
    Send {
        /// The link.
        link: Link,
        /// What to write.
        bytes: Vec<u8>,
    },
    /// Send one byte as urgent data of a connection (RFC 9293 §3.8.5), after what was handed to it before.
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
        /// To where.
        to: SocketAddr,
        /// Its payload.
        bytes: Vec<u8>,
    },
    /// Close the writing side after everything was sent.
    FinishWriting {
        /// The link.
        link: Link,
    },
    /// Close a link after everything was sent; nothing is heard of it any more.
    Close {
        /// The link.
        link: Link,
    },
    /// Reset a connection.
    Reset {
        /// The link.
        link: Link,
    },
    /// Read and throw away what arrives on a link that no flow has, until it is closed; nothing is heard of it.
    Discard {
        /// The link.
        link: Link,
    },
    /// Leave what arrives on a link where it is until a flow has it: payload may overtake the word to start.
    Hold {
        /// The link.
        link: Link,
    },
    /// Set a connection that was accepted as far as that is still possible: buffers, type of service, congestion
    /// control, Nagle's algorithm. What the kernel refuses stays as it is. Answered by `Opened`.
    Tune {
        /// The link.
        link: Link,
        /// Settings.
        options: LinkOptions,
    },
    /// Server: may this run begin? Answered by `Admitted` or `Refused`.
    Ask(Box<Planned>),
    /// Client: this run begins.
    Plan(Box<Planned>),
    /// Measure: the links belong to the engine until `Ended`. A sender writes at once.
    Start(Box<FlowTask>),
    /// End a flow.
    Stop {
        /// The flow.
        flow: FlowId,
        /// How.
        how: Stop,
    },
    /// Forget a flow that has ended.
    Forget {
        /// The flow.
        flow: FlowId,
    },
    /// Send and receive messages in turn, as fast as it goes.
    Exchange(Box<Exchange>),
    /// Tell what every flow has counted; answered by `Counts` before anything else.
    Look,
    /// Read the counters of this host; answered by `Host` before anything else.
    LookHost {
        /// Count the interrupts of the lines that contain this name.
        interrupts: Option<String>,
        /// Count the packets of this interface.
        interface: Option<String>,
    },
    /// One size of a series over message sizes has been measured.
    Point {
        /// The run.
        run: RunId,
        /// The flow.
        flow: FlowId,
        /// What was measured.
        point: Box<SizePoint>,
    },
    /// What the peer says it counted of a flow.
    PeerCounted {
        /// The flow.
        flow: FlowId,
        /// Its counts, as far as it tells.
        tally: Box<Tally>,
    },
    /// Something that weakens a run.
    Doubt {
        /// The run.
        run: RunId,
        /// What.
        caveat: Caveat,
    },
    /// A run is over.
    RunOver {
        /// The run.
        run: RunId,
        /// Why it could not be finished, unless it was.
        trouble: Option<String>,
    },
    /// Print on standard output.
    Print(String),
    /// Print on standard error.
    Complain(String),
    /// Ask for the next block of standard input.
    Read,
    /// Write to standard output, byte for byte.
    Write(Vec<u8>),
    /// Write to a file that the user has named on the command line; a server that nobody sees writes none.
    WriteFile {
        /// Its name.
        name: String,
        /// What to write; it is in the file, whole, before anything else is done.
        text: String,
        /// Behind what the file holds; otherwise in place of it.
        append: bool,
    },
    /// End the program.
    Exit(i32),
}
