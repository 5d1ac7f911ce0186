//! The command lines of netserver and netperf.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;

use linerate_compat::netperf::{
    ClientCommand, NetperfClient, NetperfServer, NetperfSurroundings, ServerCommand,
};
use linerate_sock::clock::wall_ns;
use linerate_sock::open::{AllowedIpVersion, resolve};
use linerate_units::Span;

use super::{EarlyExit, PreparedTool, argument_texts};

pub(super) fn prepare_server(_: &str, arguments: &[OsString]) -> Result<PreparedTool, EarlyExit> {
    match ServerCommand::parse(&argument_texts(arguments)) {
        ServerCommand::Serve(options) => Ok(PreparedTool::new(Box::new(NetperfServer::new(options)), None)),
        ServerCommand::Print(text) => Err(EarlyExit::text(text)),
        ServerCommand::Mistake(text) => Err(EarlyExit::error(text, 1)),
    }
}

pub(super) fn prepare_client(_: &str, arguments: &[OsString]) -> Result<PreparedTool, EarlyExit> {
    let mut seed = [0; 16];
    getrandom::fill(&mut seed)
        .map_err(|error| EarlyExit::error(format!("netperf: no random numbers: {error}\n"), 1))?;
    let surroundings = NetperfSurroundings {
        wall: Span::from_ns(wall_ns()),
        seed: u128::from_ne_bytes(seed),
        read: &start_of_file,
    };
    match ClientCommand::parse(&argument_texts(arguments), &surroundings) {
        ClientCommand::Test(mut options) => {
            if let Some(host) = options.other_data_host() {
                let found = resolve(host, 0, AllowedIpVersion::Any)
                    .map_err(|error| EarlyExit::error(format!("netperf: {error}\n"), 255))?;
                if let Some(address) = found.first() {
                    options.set_data_address(address.ip());
                }
            }
            let host = options.host().to_owned();
            Ok(PreparedTool::new(Box::new(NetperfClient::new(*options)), Some(host)))
        }
        ClientCommand::Print(text, code) => Err(EarlyExit::both(text, String::new(), code)),
        ClientCommand::Mistake(text) => Err(EarlyExit::error(text, 1)),
    }
}

/// The first bytes of a file.
fn start_of_file(name: &str, most: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(name)?.take(most as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}
