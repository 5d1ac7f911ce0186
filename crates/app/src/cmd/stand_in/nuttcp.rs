//! nuttcp's command line.

use std::ffi::OsString;

use linerate_compat::nuttcp::{NuttcpClient, NuttcpInvocation, NuttcpServer, invocation};

use super::{Prepared, Refusal, argument_texts};

pub(super) fn prepare(_: &str, arguments: &[OsString]) -> Result<Prepared, Refusal> {
    let (warnings, invocation) = invocation(&argument_texts(arguments));
    for warning in warnings {
        eprintln!("{warning}");
    }
    match invocation {
        NuttcpInvocation::Print { text, code } => Err(Refusal::both(text, String::new(), code)),
        NuttcpInvocation::Mistake(text) => Err(Refusal::error(text, 1)),
        NuttcpInvocation::Client(options) => {
            let host = options.host.clone();
            Ok(Prepared::new(Box::new(NuttcpClient::new(*options)), Some(host)))
        }
        NuttcpInvocation::Server(options) => Ok(Prepared::new(Box::new(NuttcpServer::new(options)), None)),
    }
}
