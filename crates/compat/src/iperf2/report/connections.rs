//! The lines of connections.

use std::net::SocketAddr;

use linerate_units::Span;

use super::{Iperf2Report, label};
use crate::iperf2::csv;
use crate::iperf2::settings::Iperf2Mode;

impl Iperf2Report {
    /// The lines of connections whose test starts after `wait`; both times in seconds since 1970.
    pub(in super::super) fn starts_later(
        &self,
        connections: usize,
        wait: Span,
        then: u32,
        now: u32,
    ) -> String {
        if self.hides('C') {
            return String::new();
        }
        let (then, now) = (csv::readable_date(then), csv::readable_date(now));
        let seconds = wait.as_secs_f64().ceil();
        let line = |id| {
            let label = label(Some(id), false);
            format!(
                "{label} Client traffic to start in {seconds} seconds at {then} current time is {now} (UTC)\n"
            )
        };
        (1..=connections as u32).map(line).collect()
    }

    /// The text after the addresses of a connection: parts in parentheses, and the date.
    pub(in super::super) fn notes(&self, mode: Iperf2Mode, details: &ConnectionDetails) -> String {
        let mut notes = Vec::new();
        match mode {
            Iperf2Mode::Reverse => notes.push("reverse".to_owned()),
            Iperf2Mode::FullDuplex => notes.push("full-duplex".to_owned()),
            _ => {}
        }
        if details.no_udp_fin {
            notes.push("no-udp-fin".to_owned());
        }
        if details.trip_times {
            notes.push("trip-times".to_owned());
        }
        if details.starts_later {
            notes.push("epoch-start".to_owned());
        }
        let enhanced = self.settings.enhanced || details.trip_times && self.settings.server;
        if enhanced {
            notes.push(format!("sock={}", details.descriptor));
        }
        if details.tos > 0 {
            let sends = mode != Iperf2Mode::Reverse || self.settings.server;
            notes.push(format!("tos {}=0x{:x}", if sends { "rx" } else { "tx" }, details.tos));
        }
        if let Some(peer) = details.peer.as_ref().filter(|_| enhanced) {
            notes.push(format!("peer {peer}"));
        }
        if let (Some(mss), Some(rtt)) = (details.mss, details.rtt.or(details.handshake)) {
            // The initial window is ten segments (RFC 6928); nothing has been sent yet.
            let first = u64::from(mss) * 10 / 1024;
            notes.push(format!("icwnd/mss/irtt={first}/{mss}/{}", rtt.as_ns() / 1000));
        }
        let dated = enhanced || self.settings.connect_only.is_some();
        if let Some(handshake) = details.handshake.filter(|_| self.settings.enhanced || dated) {
            notes.push(format!("ct={:.2} ms", handshake.as_secs_f64() * 1e3));
        }
        let mut text: String = notes.iter().map(|note| format!(" ({note})")).collect();
        if dated {
            text += &format!(" on {} (UTC)", csv::readable_date(details.opened_at));
        }
        text
    }
}

/// The two addresses of a connection.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Iperf2Addresses {
    pub(in super::super) local: SocketAddr,
    pub(in super::super) remote: SocketAddr,
}

/// The properties of a connection that are printed in parentheses.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct ConnectionDetails {
    pub(in super::super) no_udp_fin: bool,
    pub(in super::super) trip_times: bool,
    pub(in super::super) descriptor: i32,
    pub(in super::super) peer: Option<String>,
    pub(in super::super) mss: Option<u32>,
    /// The kernel's round-trip time, and how long connecting took; absent at the other end.
    pub(in super::super) rtt: Option<Span>,
    pub(in super::super) handshake: Option<Span>,
    pub(in super::super) starts_later: bool,
    /// The type-of-service byte of the client.
    pub(in super::super) tos: u16,
    /// Seconds since 1970.
    pub(in super::super) opened_at: u32,
}
