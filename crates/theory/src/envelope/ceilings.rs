//! Every rate that one property of a described path alone would allow.

use linerate_model::Ceiling;

use super::{Congestion, Frames, LayerRates, Path, hosts};
use crate::bdp::{self, LinuxBuffer};
use crate::encapsulation::Encapsulation;
use crate::framing::Headers;
use crate::ladder::rung;
use crate::{ethernet, phrase, tcp_rate};

/// Every ceiling of a described path, ascending.
pub(super) fn ascending(path: &Path, headers: &Headers, frames: &Frames, rates: &LayerRates) -> Vec<Ceiling> {
    let mut all = vec![link(path, headers, rates)];
    all.extend(path.offered_bps.map(|rate| rung("application", rate, "no more is offered".to_owned())));
    if !path.udp {
        all.extend(windows(path));
        all.extend(loss(path, frames));
    }
    all.extend(hosts::ceilings(path, frames));
    all.sort_by(|a, b| a.bitrate_bps.total_cmp(&b.bitrate_bps));
    all
}

fn link(path: &Path, headers: &Headers, rates: &LayerRates) -> Ceiling {
    let name =
        ethernet::standard_name(path.link_bps).map_or_else(|| phrase::rate(path.link_bps), str::to_owned);
    let size = match path.datagram_bytes.filter(|_| path.udp) {
        Some(_) => format!("packets of {:.0} bytes", path.packet_bytes()),
        None => format!("MTU {:.0}", path.mtu_bytes),
    };
    let mut because = vec![name, size, path.ip_version.name().to_owned()];
    because.extend(path.udp.then(|| "UDP".to_owned()));
    because.extend((headers.option_bytes > 0.0).then(|| "TCP timestamps".to_owned()));
    because.extend((path.tags > 0).then(|| format!("{} VLAN tag(s)", path.tags)));
    because.extend((path.encapsulation != Encapsulation::None).then(|| path.encapsulation.name().to_owned()));
    rung("link", rates.payload_bps, because.join(", "))
}

/// Of the receiver's window and the send buffer, what is known.
fn windows(path: &Path) -> impl Iterator<Item = Ceiling> {
    let receive = path.rmem_max_bytes.and_then(|buffer| LinuxBuffer::Receive.window_bytes(buffer));
    let receive = match path.window_bytes {
        Some(window) => Some((window, "window")),
        None => receive.map(|window| (window, "window from tcp_rmem")),
    };
    let send = path.wmem_max_bytes.and_then(|buffer| LinuxBuffer::Send.window_bytes(buffer));
    let rungs = [("receiver_window", receive), ("send_buffer", send.map(|window| (window, "send buffer")))];
    rungs.into_iter().filter_map(|(limit, window)| {
        let (bytes, what) = window?;
        let rate = bdp::window_rate_bps(bytes, path.rtt_s)? * f64::from(path.streams);
        let round = phrase::time(path.rtt_s);
        Some(rung(limit, rate, format!("{what} of {}, RTT {round}", phrase::size(bytes))))
    })
}

fn loss(path: &Path, frames: &Frames) -> Option<Ceiling> {
    let loss = path.loss?;
    let (mss, rtt) = (frames.payload_bytes, path.rtt_s);
    let rate = match path.congestion {
        Congestion::Reno => tcp_rate::mathis_bps(mss, rtt, loss, tcp_rate::MATHIS_PER_SEGMENT),
        Congestion::Cubic => tcp_rate::cubic_bps(tcp_rate::CUBIC, mss, rtt, loss),
        // It does not answer to loss in a way that a formula gives.
        Congestion::Bbr => None,
    }?;
    let because = format!(
        "{} at a loss of {}, RTT {}",
        path.congestion.name(),
        phrase::percent(loss),
        phrase::time(rtt)
    );
    Some(rung("loss", rate * f64::from(path.streams), because))
}
