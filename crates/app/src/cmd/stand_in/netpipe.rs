//! NetPIPE's command line.

use std::ffi::OsString;
use std::io::Write;

use linerate_compat::netpipe::{NetpipeCommand, NetpipeReceiver, NetpipeTransmitter};
use linerate_compat::stand_in::StandIn;

use super::{EarlyExit, PreparedTool};

pub(super) fn prepare(_: &str, arguments: &[OsString]) -> Result<PreparedTool, EarlyExit> {
    let command = NetpipeCommand::parse(arguments)
        .map_err(|usage| EarlyExit::both(usage.output, usage.error, usage.code))?;
    let NetpipeCommand { host, options, banner } = command;
    super::report_unwritten(std::io::stdout().write_all(banner.as_bytes()));
    let stand_in: Box<dyn StandIn> = match &host {
        Some(host) => Box::new(NetpipeTransmitter::new(host, options)),
        None => Box::new(NetpipeReceiver::new(options, false)),
    };
    Ok(PreparedTool::new(stand_in, host))
}
