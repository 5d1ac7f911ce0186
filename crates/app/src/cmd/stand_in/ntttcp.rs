//! NTttcp's command line.

use std::ffi::OsString;

use linerate_proto::ntttcp::{Receiver, Role, Sender, parse};
use linerate_proto::stand_in::StandIn;
use linerate_units::Span;

use super::{Prepared, Refusal};

pub(super) fn prepare(_: &str, arguments: &[OsString]) -> Result<Prepared, Refusal> {
    let options = parse(arguments).map_err(|usage| Refusal::both(usage.output, usage.error, usage.code))?;
    let host = options.address.clone().filter(|_| options.role == Role::Sender);
    let stand_in: Box<dyn StandIn> = match options.role {
        Role::Sender => Box::new(Sender::new(options, time_of_day())),
        Role::Receiver => Box::new(Receiver::new(options, false, time_of_day())),
    };
    Ok(Prepared::new(stand_in, host))
}

/// Since midnight, for the times before its lines.
fn time_of_day() -> Span {
    let now = jiff::Zoned::now();
    let time = now.time();
    let seconds = [(time.hour(), 3600), (time.minute(), 60), (time.second(), 1)];
    Span::from_secs(seconds.into_iter().map(|(count, each)| u64::from(count.unsigned_abs()) * each).sum())
}
