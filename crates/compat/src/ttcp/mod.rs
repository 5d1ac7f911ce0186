//! ttcp: the first tool of its kind (BRL, 1984), and three variants that descend from it.
//!
//! Only payload crosses the network: there is no handshake, no control connection and no version. A TCP test
//! ends with the connection, a UDP test with the second datagram of at most four bytes. Therefore both ends
//! must be started with the same options, and a receiver knows nothing about loss. The variants differ in their
//! defaults and output: see [`TtcpVariant`].
//!
//! # Source
//! Outputs and captures of the 1987 BRL program, of the SGI variant (revision 1.12) and of the Ohio University
//! variant; published outputs of PCATTCP 2.01.01.

mod argv;
mod count;
mod option_table;
mod pipe;
pub(crate) mod read;
mod report;
mod settings;
#[cfg(test)]
mod tests;
mod tool;
mod transfer;

pub use argv::{TtcpEarlyExit, parse};
pub use settings::{RateUnit, TtcpSettings, TtcpVariant};
pub use tool::Ttcp;

use crate::Tool;
use crate::option_table::OptionGroup;
use linerate_model::sniff::Match;

/// ttcp in the table.
pub static TTCP: Tool = Tool {
    name: "ttcp",
    default_port: 5001,
    sniff,
    embedded_server: Ttcp::embedded_server,
    refusal: crate::no_refusal,
    options: &[OptionGroup::only(option_table::OPTIONS)],
};

/// Datagrams of at most this length mark the start and the end of a UDP test.
const MARK_BYTES: usize = 4;

/// Number of extra end marks, in case the end mark is lost.
const EXTRA_END_MARKS: usize = 4;

/// The beginning of every buffer of PCATTCP that is longer.
const PCATTCP_PREAMBLE: &[u8] = b"PCAUSA PCATTCP Pattern";

/// The beginning of every buffer of the Unix variants.
const UNIX_START: &[u8] = b" !\"#$%&'";

/// A connection is recognized only by the pattern of sink mode, because piped data may be anything.
fn sniff(start: &[u8]) -> Match {
    for known in [UNIX_START, PCATTCP_PREAMBLE] {
        let length = start.len().min(known.len());
        if start.get(..length) == known.get(..length) {
            // UDP marks are the first four bytes of the pattern.
            return if length < MARK_BYTES { Match::More } else { Match::Yes };
        }
    }
    Match::No
}
