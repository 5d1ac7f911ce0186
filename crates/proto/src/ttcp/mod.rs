//! ttcp: the first of its kind (BRL, 1984), and three lines of descendants.
//!
//! Nothing but payload crosses the network: no handshake, no control connection, no version. A TCP test ends with the
//! connection, a UDP test with the second datagram of at most four bytes. So both ends must be started alike, and a
//! receiver knows nothing about loss. The lines differ in defaults and in what they print: see [`Line`].
//!
//! # Source
//! Outputs and captures of the 1987 BRL program, of the SGI line (revision 1.12) and of the Ohio University line;
//! published outputs of PCATTCP 2.01.01.

mod argv;
mod count;
mod pipe;
pub(crate) mod read;
mod report;
mod settings;
#[cfg(test)]
mod tests;
mod tool;
mod transfer;

pub use argv::{Refusal, parse};
pub use settings::{Line, RateUnit, Settings};
pub use tool::Ttcp;

use crate::{Match, Protocol};

/// ttcp in the table.
pub static TTCP: Protocol = Protocol {
    name: "ttcp",
    default_port: 5001,
    sniff,
    embedded_server: Some(Ttcp::embedded_server),
    refusal: crate::no_refusal,
};

/// Datagrams of at most so many bytes mark the start and the end of a UDP test.
const MARK_BYTES: usize = 4;

/// Datagrams after the end mark, in case that it is lost.
const EXTRA_END_MARKS: usize = 4;

/// What every buffer of PCATTCP begins with, if it is longer.
const PCATTCP_PREAMBLE: &[u8] = b"PCAUSA PCATTCP Pattern";

/// What every buffer of the Unix lines begins with.
const UNIX_START: &[u8] = b" !\"#$%&'";

/// A connection is known only by the pattern of sink mode; piped data can be anything.
fn sniff(start: &[u8]) -> Match {
    for known in [UNIX_START, PCATTCP_PREAMBLE] {
        let length = start.len().min(known.len());
        if start.get(..length) == known.get(..length) {
            // The marks of UDP are the first four bytes of the pattern.
            return if length < MARK_BYTES { Match::More } else { Match::Yes };
        }
    }
    Match::No
}
