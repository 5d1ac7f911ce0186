//! The interface between an embedded server's driver and the server.

use linerate_sock::handle::BorrowedFd;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use linerate_compat::stand_in::{Planned, RunId, Transport};
use linerate_engine::ByteAccount;
use linerate_model::FlowOutcome;
use linerate_sock::Mono;
use linerate_units::Bytes;

use super::links::SharedServerPort;
use crate::control_stream::ControlStream;
use crate::memory::Loan;
use crate::shares::Permit;

/// What an embedded server needs from the server.
pub(crate) trait ServerPorts {
    /// Readable when something has arrived.
    fn waker(&self) -> BorrowedFd<'_>;
    /// The next connection or datagram.
    fn take(&mut self) -> Option<Incoming>;
    /// The server's ports for a listener; empty if the stand-in has to open its own.
    fn shared_ports(&self, transport: Transport, port: u16) -> Vec<SharedServerPort>;
    /// Gives a place to a run whose details are not yet known; otherwise why not. Its client's traffic to any
    /// listener of the stand-in belongs to it until the end of the run.
    fn reserve(
        &mut self,
        run: RunId,
        tool: &'static str,
        peer: Option<SocketAddr>,
    ) -> Result<MeasurementPermit, MeasurementRefusal>;
    /// Whether a run, with or without a place, may begin now; otherwise why not.
    fn ask(
        &mut self,
        planned: &Planned,
        peer: Option<SocketAddr>,
    ) -> Result<MeasurementPermit, MeasurementRefusal>;
    /// Releases the place of a run; absent if it has none.
    fn leave(&mut self, run: RunId) -> Option<ReleasedPlace>;
    /// Notes the end of a run that has left its place: its results, or why it failed.
    fn ended(&mut self, client: SocketAddr, result: Result<Vec<FlowOutcome>, String>);
    /// Whether clients of other hosts wait for this run to end, or were recently refused because of it.
    fn others_wait(&self, run: RunId) -> bool;
    /// Reserves memory for a flow; otherwise why there is none.
    fn reserve_memory(&mut self, needed: Bytes) -> Result<Loan, String>;
    /// When the stand-in must have ended, after the signal to end.
    fn end_by(&self) -> Mono;
}

/// Permission to measure.
#[derive(Debug, Clone)]
pub(crate) struct MeasurementPermit {
    /// Number of other runs at the same time.
    pub(crate) concurrent_runs: u32,
    /// When the run must end.
    pub(crate) until: Mono,
    /// Where the bytes of its flows are added; absent if nobody counts them.
    pub(crate) account: Option<Arc<ByteAccount>>,
}

impl MeasurementPermit {
    /// For a stand-in that is no part of a server.
    pub(crate) const ALONE: Self = Self { concurrent_runs: 0, until: Mono::FAR, account: None };
}

/// Why a run may not be measured now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MeasurementRefusal {
    /// The reason, for people.
    pub(crate) why: String,
    /// Whether the server may permit the same run soon.
    pub(crate) may_retry: bool,
}

/// What is known of a run that has left its place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReleasedPlace {
    pub(crate) client: SocketAddr,
    /// Number of other runs at the same time.
    pub(crate) concurrent_runs: u32,
}

/// What arrives at a port of the server.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// A connection, and the bytes that were read to identify its protocol.
    Connection { port: u16, stream: ControlStream, peer: SocketAddr, received: Vec<u8>, permit: Permit },
    /// A datagram, its source address, and the address of this host that it was sent to, if it is known.
    Datagram { port: u16, from: SocketAddr, to: Option<IpAddr>, bytes: Vec<u8> },
}
