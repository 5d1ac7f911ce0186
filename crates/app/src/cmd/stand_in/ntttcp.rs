//! NTttcp's command line.

use std::ffi::OsString;

use linerate_compat::ntttcp::{NtttcpRole, parse, stand_in};
use linerate_units::Span;

use super::{EarlyExit, PreparedTool};

pub(super) fn prepare(_: &str, arguments: &[OsString]) -> Result<PreparedTool, EarlyExit> {
    let options = parse(arguments).map_err(|usage| EarlyExit::both(usage.output, usage.error, usage.code))?;
    let host = options.address.clone().filter(|_| options.role == NtttcpRole::Sender);
    Ok(PreparedTool::new(stand_in(options, time_of_day()), host))
}

/// Time since midnight, for the timestamps of its output.
fn time_of_day() -> Span {
    let now = jiff::Zoned::now();
    let time = now.time();
    let seconds = [(time.hour(), 3600), (time.minute(), 60), (time.second(), 1)];
    Span::from_secs(seconds.into_iter().map(|(count, each)| u64::from(count.unsigned_abs()) * each).sum())
}
