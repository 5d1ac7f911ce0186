//! ttcp's command line.

use std::ffi::OsString;

use linerate_compat::ttcp::{Ttcp, parse};

use super::{Prepared, Refusal, argument_texts};

pub(super) fn prepare(name: &str, arguments: &[OsString]) -> Result<Prepared, Refusal> {
    let settings = parse(name, &argument_texts(arguments))
        .map_err(|refusal| Refusal::error(refusal.text, refusal.code))?;
    let host = settings.host.clone();
    Ok(Prepared::new(Box::new(Ttcp::new(settings)), host))
}
