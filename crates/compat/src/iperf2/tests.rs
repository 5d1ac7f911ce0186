//! iperf 2 in virtual time, and its messages compared with captures of the real programs.

mod bounces;
mod command_lines;
mod dialogue;
mod intervals;
mod one_at_a_time;
mod options;
mod times;
mod transcript;

use linerate_units::Span;

use super::{Iperf2Client, Iperf2Server, Iperf2Settings, parse};
use crate::virtual_hosts::{VirtualHosts, WALL_SECONDS};

/// The arguments of a command line.
fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// The settings of a command line, at the wall-clock time of the virtual hosts.
fn settings(line: &str) -> Iperf2Settings {
    let mut settings = parse(&words(line)).unwrap_or_else(|refusal| panic!("{line}: {}", refusal.text));
    settings.epoch = Span::from_secs(WALL_SECONDS);
    settings
}

/// A client and the server that it connects to, with these options besides the role.
fn hosts(client: &str, server: &str) -> VirtualHosts {
    let client = Iperf2Client::new(settings(&format!("-c 10.0.0.2 {client}")));
    VirtualHosts::new(Box::new(client), Box::new(Iperf2Server::new(settings(&format!("-s {server}")))))
}
