//! Wire protocols as state machines without I/O.
//!
//! Each protocol is one folder: its bytes (`wire` and below), its dialogue (a [`Session`]), nothing else. A decoder
//! takes any bytes without panic and is fuzzed. Sockets, sleeping and threads are elsewhere.

mod c_format;
mod error;
pub mod iperf2;
pub mod native;
mod session;
mod stamp;
pub mod stand_in;
pub mod ttcp;
#[cfg(test)]
mod virtual_hosts;

pub use error::PeerError;
pub use session::{Admission, Ended, FlowOrder, Hello, Input, Output, Place, Progress, Session, Welcome};
pub use stamp::{SeqField, StampLayout, TimeField, TimeForm};

/// A protocol as plain data: what a port needs to know to serve it.
#[derive(Debug)]
pub struct Protocol {
    /// Name, as in results.
    pub name: &'static str,
    /// Port when none is given.
    pub default_port: u16,
    /// Whether a connection that begins with these bytes speaks it.
    pub sniff: fn(&[u8]) -> Match,
}

/// What the first bytes of a connection say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    /// It is this protocol.
    Yes,
    /// It is not.
    No,
    /// More bytes are needed.
    More,
}

/// Every protocol this program speaks.
pub static ALL: &[&Protocol] = &[&native::NATIVE, &ttcp::TTCP];
