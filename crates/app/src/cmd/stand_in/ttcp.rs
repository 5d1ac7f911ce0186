//! ttcp's command line.

use std::ffi::OsString;

use linerate_compat::ttcp::{Ttcp, parse};

use super::{EarlyExit, PreparedTool, argument_texts};

pub(super) fn prepare(name: &str, arguments: &[OsString]) -> Result<PreparedTool, EarlyExit> {
    let settings = parse(name, &argument_texts(arguments))
        .map_err(|refusal| EarlyExit::error(refusal.text, refusal.code))?;
    let host = settings.host.clone();
    Ok(PreparedTool::new(Box::new(Ttcp::new(settings)), host))
}
