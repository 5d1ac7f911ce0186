//! netserver's command line.

use std::net::IpAddr;

use super::getopt::Getopt;
use crate::netperf::{PORT, VERSION};

/// The options of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetperfServerOptions {
    /// Port of the control connection (`-p`).
    pub port: u16,
    /// Local address (`-L`).
    pub local: Option<IpAddr>,
    /// Use only IPv4 (`-4`).
    pub ipv4: bool,
    /// Use only IPv6 (`-6`).
    pub ipv6: bool,
    /// What clients have to send first (`-Z`).
    pub passphrase: Option<String>,
}

impl Default for NetperfServerOptions {
    fn default() -> Self {
        Self { port: PORT, local: None, ipv4: false, ipv6: false, passphrase: None }
    }
}

impl NetperfServerOptions {
    /// The listener, as netserver prints it.
    pub(in crate::netperf) fn listener(&self) -> String {
        let host = self.local.map_or_else(|| "IN(6)ADDR_ANY".to_owned(), |local| local.to_string());
        let family = match (self.ipv4, self.ipv6) {
            (true, _) => "AF_INET",
            (_, true) => "AF_INET6",
            _ => "AF_UNSPEC",
        };
        format!("host '{host}' port '{}' and family {family}", self.port)
    }
}

/// What a command line of netserver requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerCommand {
    /// Serve.
    Serve(NetperfServerOptions),
    /// Print a text on standard output and exit with 0.
    Print(String),
    /// Print a text on standard error and exit with 1.
    Mistake(String),
}

const USAGE: &str = "
Usage: netserver [options]

Options:
    -h             this text
    -D -f -d -N    accepted: this server stays in the foreground, serves all clients itself, and has no
                   debugging output
    -L address     listen at this address
    -p port        listen at this port [12865]
    -4 -6          only IPv4, only IPv6
    -v level       accepted
    -V             the version
    -Z passphrase  serve only clients that send it

";

impl ServerCommand {
    /// Parses the arguments after the program's name.
    #[must_use]
    pub fn parse(arguments: &[String]) -> Self {
        let mut options = NetperfServerOptions::default();
        let mut reader = Getopt::new("DdfhL:n:Np:v:VZ:46", arguments);
        loop {
            let option = match reader.next() {
                Ok(Some(option)) => option,
                Ok(None) => return Self::Serve(options),
                Err(error) => return Self::Mistake(format!("netserver: {error}\n{USAGE}")),
            };
            match option.letter {
                'h' => return Self::Mistake(USAGE.to_owned()),
                'V' => return Self::Print(format!("Netperf version {VERSION}\n")),
                'p' => match option.value.parse() {
                    Ok(port) => options.port = port,
                    Err(_) => return Self::Mistake(format!("netserver: '{}' is not a port\n", option.value)),
                },
                'L' => {
                    let (address, family) = option.value.split_once(',').unwrap_or((&option.value, ""));
                    match family {
                        "4" | "inet" | "AF_INET" => options.ipv4 = true,
                        "6" | "inet6" | "AF_INET6" => options.ipv6 = true,
                        _ => {}
                    }
                    match address.parse() {
                        Ok(local) => options.local = Some(local),
                        Err(_) if address.is_empty() => {}
                        Err(_) => {
                            let text = format!("netserver: -L takes an IP address here, not '{address}'\n");
                            return Self::Mistake(text);
                        }
                    }
                }
                'Z' => options.passphrase = Some(option.value),
                '4' => options.ipv4 = true,
                '6' => options.ipv6 = true,
                // -D, -f, -d, -N, -n and -v change nothing here.
                _ => {}
            }
        }
    }
}
