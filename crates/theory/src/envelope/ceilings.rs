//! Ceilings of a described path: the rate that each single property would allow.

use linerate_model::{Ceiling, Limit};

use super::{Frames, LayerRates, Path, at_most_bps, hosts};
use crate::bdp::{self, LinuxBuffer};
use crate::ceilings::new_ceiling;
use crate::encapsulation::Encapsulation;
use crate::framing::Headers;
use crate::{ethernet, format, lag};

/// From this loss ratio on, the link's rate less the loss is a ceiling.
const VISIBLE_LOSS: f64 = 1e-3;

/// Every ceiling of a described path, ascending.
pub(super) fn ascending(path: &Path, headers: &Headers, frames: &Frames, rates: &LayerRates) -> Vec<Ceiling> {
    let mut all = vec![link(path, headers, rates)];
    all.extend(lag_ceiling(path, rates));
    all.extend(
        path.offered_bps
            .map(|rate| new_ceiling(Limit::Application, rate, "the test offers no more".to_owned())),
    );
    if !path.udp {
        all.extend(windows(path));
        all.extend(loss(path, frames, rates));
    }
    all.extend(hosts::ceilings(path, frames));
    all.sort_by(|a, b| a.bitrate_bps.total_cmp(&b.bitrate_bps));
    all
}

fn link(path: &Path, headers: &Headers, rates: &LayerRates) -> Ceiling {
    let name =
        ethernet::standard_name(path.link_bps).map_or_else(|| format::rate(path.link_bps), str::to_owned);
    let size = match path.datagram_bytes.filter(|_| path.udp) {
        Some(_) => format!("packets of {:.0} bytes", path.packet_bytes()),
        None => format!("MTU {:.0}", path.mtu_bytes),
    };
    let mut because = vec![name, size, path.ip_version.name().to_owned()];
    because.extend(path.udp.then(|| "UDP".to_owned()));
    because.extend((headers.option_bytes > 0.0).then(|| "TCP timestamps".to_owned()));
    because.extend((path.tags > 0).then(|| format!("{} VLAN tag(s)", path.tags)));
    because.extend((path.encapsulation != Encapsulation::None).then(|| path.encapsulation.name().to_owned()));
    let used = path.streams.min(path.lag_links);
    because.extend((used > 1).then(|| format!("{used} links of the LAG at most")));
    new_ceiling(Limit::Link, at_most_bps(path, rates), because.join(", "))
}

/// Mean ceiling of a LAG whose hash does not use all links; `None` if it uses all.
fn lag_ceiling(path: &Path, rates: &LayerRates) -> Option<Ceiling> {
    let (streams, links) = (f64::from(path.streams), f64::from(path.lag_links));
    let rate = lag::used_share(streams, links)? * links * rates.payload_bps;
    let because = format!("{streams} streams hashed onto {links} links, mean");
    (path.streams > 1 && path.lag_links > 1).then(|| new_ceiling(Limit::Lag, rate, because))
}

/// Ceilings of the receive window and the send buffer, if known.
fn windows(path: &Path) -> impl Iterator<Item = Ceiling> {
    let receive = path.rmem_max_bytes.and_then(|buffer| LinuxBuffer::Receive.window_bytes(buffer));
    let receive = match path.window_bytes {
        Some(window) => Some((window, "window")),
        None => receive.map(|window| (window, "window from tcp_rmem")),
    };
    let send = path.wmem_max_bytes.and_then(|buffer| LinuxBuffer::Send.window_bytes(buffer));
    let ceilings =
        [(Limit::ReceiverWindow, receive), (Limit::SendBuffer, send.map(|window| (window, "send buffer")))];
    ceilings.into_iter().filter_map(|(limit, window)| {
        let (bytes, what) = window?;
        let rate = bdp::window_rate_bps(bytes, path.rtt_s)? * f64::from(path.streams);
        let round = format::time(path.rtt_s);
        Some(new_ceiling(limit, rate, format!("{what} of {}, RTT {round}", format::size(bytes))))
    })
}

fn loss(path: &Path, frames: &Frames, rates: &LayerRates) -> Option<Ceiling> {
    let loss = path.loss?;
    let model = super::loss::models(path, frames, rates, loss).of(path.congestion);
    // Lost packets reduce the link's rate, whatever the congestion control.
    let arrives = (loss > VISIBLE_LOSS).then(|| at_most_bps(path, rates) * (1.0 - loss));
    let model = model.map(|model| model * f64::from(path.streams));
    let rate = [arrives, model].into_iter().flatten().reduce(f64::min)?;
    let because = format!(
        "{} at a loss of {}, RTT {}",
        path.congestion.name(),
        format::percent(loss),
        format::time(path.rtt_s)
    );
    Some(new_ceiling(Limit::Loss, rate, because))
}
