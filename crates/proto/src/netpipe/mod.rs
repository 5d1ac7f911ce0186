//! NetPIPE's TCP module, NPtcp 3.7.2: how fast messages of every size go to and fro.
//!
//! One connection, one series: both ends walk through the same sizes, which nobody announces. Each step is said once
//! and read exactly, so the whole dialogue goes through [`Exchange`](crate::stand_in::Exchange). Only the number of
//! repeats travels, and where messages go one way the receiver's time. The 5.x line starts through MPI and is another
//! protocol.
//!
//! Facts are from captures of Debian's netpipe-tcp 3.7.2 and from its behaviour on the command line. Where two
//! originals would wait for each other for ever (options that differ, a connection made to a listener that is about
//! to close), these two end with a message or connect again.

mod argv;
pub(crate) mod read;
mod receiver;
mod report;
mod series;
mod sizes;
mod transmitter;
mod wire;

#[cfg(test)]
mod tests;

pub use argv::{Command, Mode, Options, Usage};
pub use receiver::Receiver;
pub use sizes::{Sizes, repeats};
pub use transmitter::Transmitter;
pub use wire::{check_integrity, decode_time, encode_time, integrity};

use crate::stand_in::StandIn;
use crate::{Match, Protocol, ServantConfig};

/// Port when none is given.
pub const PORT: u16 = 5002;

/// NetPIPE over TCP, as the table of protocols sees it.
pub static NETPIPE: Protocol = Protocol {
    name: "netpipe",
    default_port: PORT,
    sniff,
    embedded_server: Some(embedded_server),
    refusal: crate::no_refusal,
};

/// A receiver of series with the default options, for any number of transmitters.
fn embedded_server(config: &ServantConfig) -> Box<dyn StandIn> {
    Box::new(Receiver::new(Options { port: config.port, ..Options::default() }, true))
}

fn sniff(bytes: &[u8]) -> Match {
    if bytes.len() >= wire::SYNC.len() {
        if bytes.starts_with(wire::SYNC) { Match::Yes } else { Match::No }
    } else if wire::SYNC.starts_with(bytes) {
        Match::More
    } else {
        Match::No
    }
}
