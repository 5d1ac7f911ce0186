//! iperf 2's command line.

use std::ffi::OsString;
use std::path::Path;

use linerate_compat::iperf2::{Iperf2Client, Iperf2Server, parse};
use linerate_compat::stand_in::StandIn;
use linerate_sock::clock::wall_ns;
use linerate_units::Span;

use super::printer::log_file;
use super::{EarlyExit, PreparedTool, argument_texts};

pub(super) fn prepare(_: &str, arguments: &[OsString]) -> Result<PreparedTool, EarlyExit> {
    let mut settings = parse(&argument_texts(arguments)).map_err(|refusal| {
        if refusal.to_stdout {
            EarlyExit::both(refusal.text, String::new(), refusal.code)
        } else {
            EarlyExit::error(refusal.text, refusal.code)
        }
    })?;
    settings.epoch = Span::from_ns(wall_ns());
    settings.pid = std::process::id();
    let host = settings.host.clone();
    let path = settings.output.clone();
    let stand_in: Box<dyn StandIn> = match &host {
        Some(_) => Box::new(Iperf2Client::new(settings)),
        None => Box::new(Iperf2Server::new(settings)),
    };
    let output = match &path {
        None => None,
        Some(path) => Some(
            log_file(Path::new(path))
                .map_err(|error| EarlyExit::error(format!("{path} cannot be opened: {error}\n"), 1))?,
        ),
    };
    Ok(PreparedTool { output, ..PreparedTool::new(stand_in, host) })
}
