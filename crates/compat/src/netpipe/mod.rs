//! NetPIPE's TCP module, NPtcp 3.7.2: measures the time of messages of many sizes.
//!
//! One connection, one series: both ends step through the same sizes without announcing them. Each message has
//! a known length, so the whole dialogue uses [`Exchange`](crate::stand_in::Exchange). Only the number of
//! repeats is transferred, and in stream mode the receiver's time. The 5.x versions start through MPI and use
//! another protocol.
//!
//! The facts come from captures of Debian's netpipe-tcp 3.7.2 and from its behaviour on the command line. In
//! some cases two originals would wait for each other forever (different options, or a connection to a listener
//! that is about to close). These stand-ins end with a message or reconnect.

mod argv;
mod option_table;
pub(crate) mod read;
mod receiver;
mod report;
mod series;
mod sizes;
mod transmitter;
mod wire;

#[cfg(test)]
mod tests;

pub use argv::{NetpipeCommand, NetpipeEarlyExit, NetpipeMode, NetpipeOptions};
pub use receiver::NetpipeReceiver;
pub use sizes::{NetpipeSizes, repeats};
pub use transmitter::NetpipeTransmitter;
pub use wire::{check_integrity, decode_time, encode_time, integrity};

use crate::option_table::OptionGroup;
use crate::stand_in::StandIn;
use crate::{EmbeddedServerConfig, Tool};
use linerate_model::sniff::Match;

/// Default port.
pub const PORT: u16 = 5002;

/// NetPIPE over TCP in the table of tools.
pub static NETPIPE: Tool = Tool {
    name: "netpipe",
    default_port: PORT,
    sniff,
    embedded_server,
    refusal: crate::no_refusal,
    options: &[OptionGroup::only(option_table::OPTIONS)],
};

/// A receiver of series with the default options, for any number of transmitters.
fn embedded_server(config: &EmbeddedServerConfig) -> Box<dyn StandIn> {
    Box::new(NetpipeReceiver::new(NetpipeOptions { port: config.port, ..NetpipeOptions::default() }, true))
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
