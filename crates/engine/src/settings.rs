//! Socket settings of one side, read back from the kernel.

use linerate_sock::handle::AsFd;
use std::net::TcpStream;

use linerate_model::{Effective, SendMethod, SideSettings, SocketKnobs, Transport};
use linerate_sock::departure::DepartureClock;
use linerate_sock::sockopt::{self, congestion, max_pacing_rate, snd_mss, tos};
use linerate_sock::{iface, tcp_info};
use linerate_units::{Bitrate, Bytes, Span};

use crate::flow::FlowSide;

/// Reads the settings of the first stream. The caller adds those of the sending method.
pub(crate) fn read(flow: &FlowSide) -> SideSettings {
    let (setup, knobs) = (&flow.setup, &flow.setup.socket);
    let mut settings = asked(knobs, setup.affinity);
    settings.pacing_bps.asked = setup.fq_rate;
    settings.txtime.asked = setup.txtime.filter(|_| flow.writes()).map(|_| true);
    settings.file = setup.file.as_ref().map(|file| file.about.clone());
    let (local, remote) = flow.sockets.addresses();
    (settings.local, settings.remote) = (text(local).into(), text(remote).into());
    let Some(socket) = flow.sockets.iter().next() else { return settings };
    granted(&mut settings, &socket);
    if setup.transport != Transport::Udp || paces_datagrams(setup.interface.as_deref()) {
        settings.pacing_bps.effective = max_pacing_rate(&socket)
            .ok()
            .filter(|&rate| rate != u64::MAX)
            .and_then(|rate| Bitrate::from_bps(rate as f64 * 8.0));
    }
    if setup.transport == Transport::Udp {
        settings.length = Bytes::new(setup.datagram_length() as u64);
        settings.pmtu = sockopt::path_mtu(&socket).ok();
        return settings;
    }
    settings.length = Bytes::new(flow.plan.block as u64);
    granted_tcp(&mut settings, &socket);
    settings.mptcp = (setup.transport == Transport::Mptcp).then(|| sockopt::uses_mptcp(&socket));
    settings
}

/// Requested and effective settings of one connection, for a stream that exchanges messages.
#[must_use]
pub fn stream_settings(socket: &TcpStream, knobs: &SocketKnobs, affinity: Option<u32>) -> SideSettings {
    let mut settings = asked(knobs, affinity);
    (settings.local, settings.remote) =
        (text(socket.local_addr().ok()).into(), text(socket.peer_addr().ok()).into());
    granted(&mut settings, socket);
    granted_tcp(&mut settings, socket);
    settings
}

/// Whether the queues of an interface pace datagrams. TCP paces itself; only fq paces datagrams
/// (linux/net/sched/sch_fq.c).
fn paces_datagrams(interface: Option<&str>) -> bool {
    let index = interface.and_then(|name| iface::link(name).ok()).map(|link| link.index);
    let kinds = index.and_then(|index| iface::queue_kinds(index).ok()).unwrap_or_default();
    DepartureClock::of_disciplines(&kinds) == Some(DepartureClock::Monotonic)
}

fn text(address: Option<std::net::SocketAddr>) -> String {
    address.map(|a| a.to_string()).unwrap_or_default()
}

fn asked(knobs: &SocketKnobs, affinity: Option<u32>) -> SideSettings {
    SideSettings {
        window: knobs.window,
        mss: Effective { asked: knobs.mss, effective: None },
        congestion: Effective { asked: knobs.congestion.clone(), effective: None },
        tos: Effective { asked: knobs.tos_byte(), effective: None },
        notsent_lowat: Effective { asked: knobs.notsent_lowat, effective: None },
        fast_open: Effective { asked: knobs.fast_open.then_some(true), effective: None },
        busy_poll: Effective { asked: knobs.busy_poll, effective: None },
        io: Effective { asked: asked_method(knobs).map(Into::into), effective: None },
        affinity,
        ..SideSettings::default()
    }
}

/// Reads a setting that a log only has if it was asked for.
fn read_if_asked<T>(setting: &mut Effective<T>, read: impl FnOnce() -> Option<T>) {
    if setting.asked.is_some() {
        setting.effective = read();
    }
}

fn granted(settings: &mut SideSettings, socket: &impl AsFd) {
    settings.snd_buf = sockopt::snd_buf(socket).ok().map(Bytes::new);
    settings.rcv_buf = sockopt::rcv_buf(socket).ok().map(Bytes::new);
    settings.tos.effective = tos(socket).ok();
    read_if_asked(&mut settings.busy_poll, || {
        Some(Span::from_us(u64::from(sockopt::busy_poll(socket).ok()?)))
    });
}

/// Payload of a full segment that this side sends. TCP_MAXSEG is the last resort: Linux 6.18 returns the
/// requested value.
pub(crate) fn segment(socket: &impl AsFd) -> Option<u32> {
    let sampled = tcp_info(socket).ok().and_then(|info| info.snd_mss).filter(|bytes| *bytes > 0);
    sampled.or_else(|| snd_mss(socket).ok())
}

fn granted_tcp(settings: &mut SideSettings, socket: &impl AsFd) {
    settings.mss.effective = segment(socket);
    settings.congestion.effective = congestion(socket).ok().map(Into::into);
    read_if_asked(&mut settings.notsent_lowat, || {
        Some(Bytes::new(u64::from(sockopt::notsent_lowat(socket).ok()?)))
    });
    if let Ok(info) = tcp_info(socket) {
        settings.pmtu = info.pmtu;
        if let Some(options) = info.options() {
            read_if_asked(&mut settings.fast_open, || Some(options.fast_open));
            let all = [
                ("timestamps", options.timestamps),
                ("sack", options.sack),
                ("wscale", options.wscale),
                ("ecn", options.ecn),
            ];
            settings.tcp_options =
                all.into_iter().filter(|(_, on)| *on).map(|(name, _)| name.into()).collect();
        }
    }
}

/// The requested way of sending.
fn asked_method(knobs: &SocketKnobs) -> Option<&'static str> {
    if knobs.zerocopy { Some("copy-free") } else { knobs.io.map(SendMethod::name) }
}
