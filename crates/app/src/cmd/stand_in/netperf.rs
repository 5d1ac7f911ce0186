//! The command lines of netserver and netperf.

use std::ffi::OsString;

use linerate_compat::netperf::{NetperfServer, ServerCommand};

use super::{Prepared, Refusal, argument_texts};

pub(super) fn prepare_server(_: &str, arguments: &[OsString]) -> Result<Prepared, Refusal> {
    match ServerCommand::parse(&argument_texts(arguments)) {
        ServerCommand::Serve(options) => Ok(Prepared::new(Box::new(NetperfServer::new(options)), None)),
        ServerCommand::Print(text) => Err(Refusal::text(text)),
        ServerCommand::Mistake(text) => Err(Refusal::error(text, 1)),
    }
}
