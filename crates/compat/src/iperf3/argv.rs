//! iperf3's command line, with the options and errors of iperf3 3.21.
//!
//! Options are parsed like GNU getopt_long(3): unambiguous prefixes of long options, `--option=value`, bundles
//! of short options, and `--` at the end. Other arguments are ignored. Numbers that iperf3 parses with atoi(3)
//! are parsed in the same way. Options that set another option by mistake in iperf3 (`--nstreams`) do not do so
//! here.

mod both;
mod client;
mod getopt;
mod server;
mod table;
#[cfg(test)]
mod tests;
mod values;

use self::table::ParsedSettings;
use super::errors::{Iperf3Error, Iperf3ErrorNumber};
use super::report::VERSION;
use super::settings::{EndCondition, Iperf3Settings};
use crate::option_table::OptionGroup;

/// Default rate of a UDP stream, bit/s: 1024², as in iperf3.
pub const UDP_BITRATE: u64 = 1 << 20;

/// Every option, in groups: of both roles, of a server, of a client.
pub const OPTIONS: &[OptionGroup] = table::GROUPS;

/// The action that a command line requests.
#[derive(Debug, Clone, PartialEq)]
pub enum Iperf3Command {
    /// Run as a client.
    Client(Box<Iperf3Settings>),
    /// Run as a server.
    Server(Box<Iperf3Settings>),
    /// Print [`help`] and exit with 0.
    Help,
    /// Print [`version`] and exit with 0.
    Version,
}

/// Why a command line is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Iperf3UsageError {
    /// Complete text for standard error.
    pub text: String,
    /// Exit code.
    pub code: i32,
}

/// Parses the arguments after the program's name.
///
/// # Errors
/// The text and the exit code of iperf3.
pub fn parse<S: AsRef<str>>(args: &[S]) -> Result<Iperf3Command, Iperf3UsageError> {
    let mut draft = ParsedSettings::default();
    for given in getopt::Given::all(args, table::options()) {
        let (option, value) = given
            .map_err(|text| Iperf3UsageError { text: format!("iperf3: {text}\n{}", usage()), code: 1 })?;
        if option.long() == "help" {
            return Ok(Iperf3Command::Help);
        }
        if option.long() == "version" {
            return Ok(Iperf3Command::Version);
        }
        draft.note(option);
        (option.set)(&mut draft, value).map_err(parameter_error)?;
    }
    complete(draft).map_err(parameter_error)
}

#[expect(clippy::needless_pass_by_value, reason = "the signature is that of map_err")]
fn parameter_error(trouble: Iperf3Error) -> Iperf3UsageError {
    Iperf3UsageError { text: format!("iperf3: parameter error - {trouble}\n\n{}", usage()), code: 1 }
}

fn usage() -> &'static str {
    "Usage: iperf3 [-s|-c host] [options]\nTry `iperf3 --help' for more information.\n"
}

/// Checks combinations of options in iperf3's order, and sets defaults.
fn complete(draft: ParsedSettings) -> Result<Iperf3Command, Iperf3Error> {
    let refuse = |number| Err(Iperf3Error::new(number));
    let ParsedSettings {
        mut settings, server, client_only, server_only, time, bytes, blocks, bitrate, ..
    } = draft;
    let is_client = settings.is_client();
    if server && client_only {
        return refuse(Iperf3ErrorNumber::CLIENT_ONLY);
    }
    if is_client && server_only {
        return refuse(Iperf3ErrorNumber::SERVER_ONLY);
    }
    let client = &mut settings.client;
    if is_client && draft.rcv_timeout && !client.reverse && !client.bidir {
        return refuse(Iperf3ErrorNumber::RCV_TIMEOUT_SENDING);
    }
    if client.username.is_some() != client.rsa_public_key.is_some() {
        return refuse(Iperf3ErrorNumber::CLIENT_AUTH);
    }
    if settings.server.rsa_private_key.is_some() != settings.server.authorized_users.is_some() {
        return refuse(Iperf3ErrorNumber::SERVER_AUTH);
    }
    match client.length {
        Some(bytes) if client.udp && !(16..=65_507).contains(&bytes) => {
            return refuse(Iperf3ErrorNumber::UDP_BLOCK_SIZE);
        }
        Some(bytes) if !client.udp && bytes > 1 << 20 => return refuse(Iperf3ErrorNumber::BLOCK_SIZE),
        _ => {}
    }
    client.bitrate = bitrate.unwrap_or(if client.udp { UDP_BITRATE } else { 0 });
    client.end_given = time.is_some() || bytes.is_some() || blocks.is_some();
    client.end = match (time, bytes, blocks) {
        (None, None, None) => EndCondition::Time(10),
        (Some(seconds), None, None) => EndCondition::Time(seconds),
        (None, Some(bytes), None) => EndCondition::Bytes(bytes),
        (None, None, Some(blocks)) => EndCondition::Blocks(blocks),
        _ => return refuse(Iperf3ErrorNumber::END_CONDITIONS),
    };
    if client.udp && is_client && settings.common.file.is_some() {
        return refuse(Iperf3ErrorNumber::UDP_FILE);
    }
    if !is_client && !server {
        return refuse(Iperf3ErrorNumber::NO_ROLE);
    }
    warn(&mut settings);
    let settings = Box::new(settings);
    Ok(if is_client { Iperf3Command::Client(settings) } else { Iperf3Command::Server(settings) })
}

fn warn(settings: &mut Iperf3Settings) {
    let common = &mut settings.common;
    if !common.json {
        return;
    }
    let mut warn = |text: &str| common.warnings.push(format!("warning: {text}"));
    if common.format.is_some() {
        warn("Report format (-f) flag ignored with JSON output (-J)");
    }
    if common.verbose {
        warn("Verbose output (-v) may interfere with JSON output (-J)");
    }
    if common.debug.is_some() {
        warn("Debug output (-d) may interfere with JSON output (-J)");
    }
}

/// The output of `--help`.
#[must_use]
pub fn help() -> String {
    let mut text = String::from(
        "Usage: iperf3 [-s|-c host] [options]\n       iperf3 [-h|--help] [-v|--version]\n\n\
         linerate in the place of iperf3 3.21: the same wire protocol, options and output.\n",
    );
    for (title, options) in
        [("Both roles", both::OPTIONS), ("Server", server::OPTIONS), ("Client", client::OPTIONS)]
    {
        text += &format!("\n{title}:\n");
        text += &options.iter().map(table::Iperf3Option::help).collect::<String>();
    }
    text + "\nSizes take K, M, G or T for powers of 1024, rates for powers of 1000.\n"
}

/// The output of `--version`; `system` is the output of uname(1).
#[must_use]
pub fn version(system: &str) -> String {
    format!(
        "{VERSION}\n{system}\nOptional features available: CPU affinity setting, IPv6 flow label, \
         TCP congestion algorithm setting, sendfile / zerocopy, socket pacing, authentication, bind to device, \
         support IPv4 don't fragment, MPTCP\n"
    )
}
