//! The command lines of netserver and netperf, with the rules of getopt(3).

mod client;
mod getopt;
mod server;
mod test_options;
mod values;

pub use client::{ClientCommand, ReadFile, Surroundings};
pub use server::{ServerCommand, ServerOptions};
