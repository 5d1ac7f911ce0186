//! NTttcp for Linux 1.4.3, and the dialogue of NTttcp for Windows 5.40 between our own ends.
//!
//! The sender opens a sync connection to the port below the data ports. Both ends agree on a duration, and all
//! data connections are open before the start. Each end then counts by its own timer. The data have no framing.
//! The facts on the Linux tool come from captures and from its sources (MIT), those on the Windows tool from
//! its sources (MIT) alone.
//!
//! The original decodes a number by its value. This receiver decodes it by its position in the dialogue, and
//! this sender avoids durations that an original would mistake for another request. A test whose other end has
//! disconnected ends immediately, with what was measured. A receiver that serves reserves its place before it
//! answers the first query, because data ports are ports of other tools.

mod argv;
mod console;
mod meter;
mod option_table;
mod options;
pub(crate) mod read;
mod receiver;
mod report;
mod run;
mod sender;
mod windows;
mod wire;

#[cfg(test)]
mod tests;

pub use argv::{NtttcpEarlyExit, parse};
pub use options::{NtttcpOptions, NtttcpRole, WindowsOptions};
pub use receiver::NtttcpReceiver;
pub use sender::NtttcpSender;
pub use windows::{WindowsReceiver, WindowsSender};
pub use wire::NumberSplitter;

use linerate_units::Span;

use crate::option_table::OptionGroup;
use crate::stand_in::StandIn;
use crate::{EmbeddedServerConfig, Tool};
use linerate_model::sniff::Match;

/// Default port of the sync connection; the data ports are the 16 above it.
pub const SYNC_PORT: u16 = 5000;

/// NTttcp in the table of tools.
pub static NTTTCP: Tool = Tool {
    name: "ntttcp",
    default_port: SYNC_PORT,
    sniff,
    embedded_server,
    refusal: crate::no_refusal,
    options: &[
        OptionGroup::new("NTttcp for Linux", option_table::LINUX),
        OptionGroup::new("NTttcp for Windows, after `--windows`", option_table::OF_WINDOWS),
    ],
};

/// Creates the end that these options describe, with its dialogue.
#[must_use]
pub fn stand_in(options: NtttcpOptions, time_of_day: Span) -> Box<dyn StandIn> {
    match (options.windows.is_some(), options.role) {
        (false, NtttcpRole::Sender) => Box::new(NtttcpSender::new(options, time_of_day)),
        (false, NtttcpRole::Receiver) => Box::new(NtttcpReceiver::new(options, false, time_of_day)),
        (true, NtttcpRole::Sender) => Box::new(WindowsSender::new(options, time_of_day)),
        (true, NtttcpRole::Receiver) => Box::new(WindowsReceiver::new(options, time_of_day)),
    }
}

/// Detects the request that begins a sync connection, or the data of a test without one.
fn sniff(bytes: &[u8]) -> Match {
    let begins = [[0, 0, 0, b'X'], [b'A'; 4]];
    let known = bytes.get(..4).unwrap_or(bytes);
    if !begins.iter().any(|begin| begin.starts_with(known)) {
        Match::No
    } else if known.len() == 4 {
        Match::Yes
    } else {
        Match::More
    }
}

/// A receiver for any number of senders, one after another; they determine the duration of a test.
fn embedded_server(config: &EmbeddedServerConfig) -> Box<dyn StandIn> {
    let base = config.port.saturating_add(1).max(2);
    let ports = NtttcpOptions::default().ports.min((u16::MAX - base).saturating_add(1));
    let options = NtttcpOptions { base, ports, seconds: 1, quiet: true, ..NtttcpOptions::default() };
    Box::new(NtttcpReceiver::new(options, true, Span::ZERO))
}
