//! The server behind whose ports a stand-in serves, as its driver sees it.

use std::net::{SocketAddr, TcpStream};
use std::os::fd::BorrowedFd;

use linerate_proto::stand_in::{Planned, RunId, Transport};
use linerate_sock::Mono;
use linerate_units::Bytes;

use super::links::Door;
use crate::memory::Loan;
use crate::server::Permit;

/// What a stand-in needs of the server that it is a part of.
pub(crate) trait ServerPorts {
    /// Readable when something has arrived.
    fn waker(&self) -> BorrowedFd<'_>;
    /// The next thing that has arrived.
    fn take(&mut self) -> Option<Incoming>;
    /// The server's ports that take the place of a listener; none when the stand-in has to open one.
    fn doors(&self, transport: Transport, port: u16) -> Vec<Door>;
    /// Whether a run may begin now; else why not.
    fn ask(&mut self, planned: &Planned, peer: Option<SocketAddr>) -> Result<MeasurementPermit, String>;
    /// A run is over; how many others there were at the same time.
    fn over(&mut self, run: RunId, trouble: Option<&str>) -> u32;
    /// Whether clients of other hosts wait for this run to end, or were sent away because of it a moment ago.
    fn others_wait(&self, run: RunId) -> bool;
    /// Memory for a flow; else why there is none.
    fn reserve_memory(&mut self, needed: Bytes) -> Result<Loan, String>;
    /// When the stand-in has to end, having been told.
    fn end_by(&self) -> Mono;
}

/// Leave to measure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MeasurementPermit {
    /// Other runs at the same time.
    pub(crate) neighbours: u32,
    /// When the run has to be over.
    pub(crate) until: Mono,
}

/// Something that has arrived at a port of the server.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// A connection, and what was read of it to see whose it is.
    Connection { port: u16, stream: TcpStream, peer: SocketAddr, said: Vec<u8>, permit: Permit },
    /// A datagram.
    Datagram { port: u16, from: SocketAddr, bytes: Vec<u8> },
}
