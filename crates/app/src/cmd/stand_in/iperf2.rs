//! iperf 2's command line.

use std::ffi::OsString;

use linerate_proto::iperf2::{Client, Server, parse};
use linerate_proto::stand_in::StandIn;

use super::{Prepared, Refusal, words};

pub(super) fn prepare(_: &str, arguments: &[OsString]) -> Result<Prepared, Refusal> {
    let settings = parse(&words(arguments)).map_err(|refusal| {
        if refusal.to_stdout {
            Refusal::both(refusal.text, String::new(), refusal.code)
        } else {
            Refusal::error(refusal.text, refusal.code)
        }
    })?;
    let host = settings.host.clone();
    let stand_in: Box<dyn StandIn> = match &host {
        Some(_) => Box::new(Client::new(settings)),
        None => Box::new(Server::new(settings)),
    };
    Ok(Prepared::new(stand_in, host))
}
