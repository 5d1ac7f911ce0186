//! nuttcp's command line.

use std::ffi::OsString;

use linerate_compat::nuttcp::{Invocation, NuttcpClient, NuttcpServer, invocation};

use super::{Prepared, Refusal, argument_texts};

pub(super) fn prepare(_: &str, arguments: &[OsString]) -> Result<Prepared, Refusal> {
    let (warnings, invocation) = invocation(&argument_texts(arguments));
    for warning in warnings {
        eprintln!("{warning}");
    }
    match invocation {
        Invocation::Print { text, code } => Err(Refusal::both(text, String::new(), code)),
        Invocation::Mistake(text) => Err(Refusal::error(text, 1)),
        Invocation::Client(options) => {
            let host = options.host.clone();
            Ok(Prepared::new(Box::new(NuttcpClient::new(*options)), Some(host)))
        }
        Invocation::Server(options) => Ok(Prepared::new(Box::new(NuttcpServer::new(options)), None)),
    }
}
