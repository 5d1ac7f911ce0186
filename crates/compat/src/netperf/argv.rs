//! The command lines of netserver and netperf, with the rules of getopt(3).

mod getopt;
mod server;

pub use server::{ServerCommand, ServerOptions};
