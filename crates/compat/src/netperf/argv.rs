//! The command lines of netserver and netperf, with the rules of getopt(3).

mod client;
mod getopt;
mod server;
mod test_options;
mod values;

pub use client::{ClientCommand, NetperfSurroundings, ReadFile};
pub use server::{NetperfServerOptions, ServerCommand};
