//! nuttcp's command line.

use std::ffi::OsString;

use linerate_compat::nuttcp::{NuttcpClient, NuttcpInvocation, NuttcpServer, invocation};

use super::{EarlyExit, PreparedTool, argument_texts};

pub(super) fn prepare(_: &str, arguments: &[OsString]) -> Result<PreparedTool, EarlyExit> {
    let (warnings, invocation) = invocation(&argument_texts(arguments));
    for warning in warnings {
        eprintln!("{warning}");
    }
    match invocation {
        NuttcpInvocation::Print { text, code } => Err(EarlyExit::both(text, String::new(), code)),
        NuttcpInvocation::Usage(text) => Err(EarlyExit::both(text.to_owned(), String::new(), 1)),
        NuttcpInvocation::Mistake(text) => Err(EarlyExit::error(text, 1)),
        NuttcpInvocation::Client(options) => {
            let host = options.host.clone();
            Ok(PreparedTool::new(Box::new(NuttcpClient::new(*options)), Some(host)))
        }
        NuttcpInvocation::Server(options) => {
            Ok(PreparedTool::new(Box::new(NuttcpServer::new(options)), None))
        }
    }
}
