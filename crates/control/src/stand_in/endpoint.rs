//! Converts the link options of a stand-in to addresses and socket options, and back.

use linerate_sock::handle::{self, AsFd};
use std::net::{IpAddr, SocketAddr};

use linerate_compat::stand_in::{LinkOptions, Opened, SystemError, Transport};
use linerate_model::foreign_text::one_line;
use linerate_sock::open::{AllowedIpVersion, resolve};
use linerate_sock::{KeepAlive, SocketOptions, sockopt};
use linerate_units::Span;

use super::driver_event::{own_reason, reason_of};

/// The host from the command line: NAME or ADDRESS, either with `%DEVICE`.
#[derive(Debug, Default)]
pub(super) struct HostArgument {
    typed: Option<String>,
    /// The first address that answered; all further links use it.
    answered: Option<IpAddr>,
}

impl HostArgument {
    pub(super) fn new(typed: Option<String>) -> Self {
        Self { typed, answered: None }
    }

    /// Notes the remote address of an open link.
    pub(super) fn answered(&mut self, address: Option<SocketAddr>) {
        self.answered = self.answered.or(address.map(|address| address.ip()));
    }

    /// The addresses to connect to, in the order of preference.
    pub(super) fn addresses(
        &self,
        port: u16,
        options: &mut LinkOptions,
    ) -> Result<Vec<SocketAddr>, SystemError> {
        let typed = self.typed.as_deref().ok_or_else(|| own_reason("no host was given"))?;
        let (name, device) = match typed.split_once('%') {
            Some((name, device)) => (name, Some(device)),
            None => (typed, None),
        };
        if options.device.is_none() {
            options.device = device.map(str::to_owned);
        }
        // Only the resolver converts the device of a link-local address to its scope id.
        let scoped = name.parse::<std::net::Ipv6Addr>().is_ok_and(|v6| v6.is_unicast_link_local());
        let version = match (options.ipv4, options.ipv6, options.local) {
            (true, ..) | (_, false, Some(IpAddr::V4(_))) => AllowedIpVersion::V4,
            (_, true, _) | (.., Some(IpAddr::V6(_))) => AllowedIpVersion::V6,
            _ => AllowedIpVersion::Any,
        };
        let mut found =
            resolve(if scoped { typed } else { name }, port, version).map_err(|error| reason_of(&error))?;
        if let Some(answered) = self.answered {
            found.sort_by_key(|address| address.ip() != answered);
        }
        Ok(found)
    }
}

/// Sets the local address of a link for which only a name of this host is known.
pub(super) fn resolve_local(options: &mut LinkOptions) -> Result<(), SystemError> {
    let Some(name) = options.local_name.take().filter(|_| options.local.is_none()) else { return Ok(()) };
    let version = match (options.ipv4, options.ipv6) {
        (true, _) => AllowedIpVersion::V4,
        (false, true) => AllowedIpVersion::V6,
        (false, false) => AllowedIpVersion::Any,
    };
    let found = resolve(&name, 0, version).map_err(|error| {
        let reason = reason_of(&error);
        SystemError { text: format!("local address {}: {}", one_line(&name), reason.text), ..reason }
    })?;
    options.local = found.first().map(SocketAddr::ip);
    Ok(())
}

/// The socket options for the options of a link.
pub(super) fn socket_options(options: &LinkOptions) -> SocketOptions {
    SocketOptions {
        snd_buf: options.snd_buf,
        rcv_buf: options.rcv_buf,
        mss: options.mss,
        congestion: options.congestion.clone(),
        tos: options.tos,
        ttl: options.ttl,
        no_delay: options.no_delay,
        notsent_lowat: options.notsent_lowat,
        fast_open: false,
        busy_poll: None,
        mptcp: options.transport == Transport::Mptcp,
        local: options.local,
        local_port: options.local_port,
        device: options.device.clone(),
        max_pacing_rate: None,
        user_timeout: options.user_timeout.map(Span::as_duration),
        dont_fragment: options.dont_fragment,
        dont_route: options.dont_route,
        reuse_port: false,
        only_v6: options.ipv6,
        flow_label: options.flow_label,
        keep_alive: options.keep_alive.map(|(idle, interval, probes)| KeepAlive {
            idle: idle.map(Span::as_duration),
            interval: interval.map(Span::as_duration),
            probes,
        }),
    }
}

/// The address to listen on: all addresses of this host unless one is given.
pub(super) fn listening_at(port: u16, options: &LinkOptions) -> SocketAddr {
    let any = if options.ipv4 { IpAddr::from([0; 4]) } else { IpAddr::from([0; 16]) };
    SocketAddr::new(options.local.unwrap_or(any), port)
}

/// The address without IPv4 mapping: a dual-stack socket shows IPv4 addresses as mapped IPv6 addresses.
pub(super) fn plain(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
            Some(v4) => SocketAddr::new(IpAddr::V4(v4), v6.port()),
            None => address,
        },
        SocketAddr::V4(_) => address,
    }
}

/// The address in the form that a socket bound to `local` accepts.
pub(super) fn mapped_address(address: SocketAddr, local: SocketAddr) -> SocketAddr {
    match (address, local) {
        (SocketAddr::V4(v4), SocketAddr::V6(_)) => {
            SocketAddr::new(IpAddr::V6(v4.ip().to_ipv6_mapped()), v4.port())
        }
        _ => address,
    }
}

/// The kernel's round-trip time, which it reports as 0 until it has measured one.
fn rtt(socket: &impl AsFd) -> Option<Span> {
    let us = linerate_sock::tcp_info(socket).ok()?.rtt.filter(|us| *us > 0)?;
    Some(Span::from_ns(u64::from(us) * 1000))
}

/// Reads the properties of an open socket.
pub(super) fn opened(
    socket: &impl AsFd,
    local: SocketAddr,
    remote: Option<SocketAddr>,
    handshake: Option<Span>,
) -> Opened {
    Opened {
        local: plain(local),
        remote: remote.map(plain),
        mss: sockopt::snd_mss(socket).ok(),
        handshake,
        snd_buf: sockopt::snd_buf(socket).unwrap_or(0),
        rcv_buf: sockopt::rcv_buf(socket).unwrap_or(0),
        congestion: sockopt::congestion(socket).ok(),
        rtt: rtt(socket),
        descriptor: handle::number(socket),
        unconnected_buffers: None,
        encrypted: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_behind_the_host_is_bound_to_and_is_no_part_of_the_name() {
        let mut options = LinkOptions::default();
        let host = HostArgument::new(Some("127.0.0.1%lo".to_owned()));
        assert_eq!(host.addresses(9, &mut options).unwrap(), ["127.0.0.1:9".parse().unwrap()]);
        assert_eq!(options.device.as_deref(), Some("lo"));
        let scoped = HostArgument::new(Some("fe80::1%lo".to_owned()));
        let SocketAddr::V6(found) = scoped.addresses(9, &mut options).unwrap()[0] else { panic!("IPv6") };
        assert_ne!(found.scope_id(), 0);
    }

    #[test]
    fn the_version_of_ip_follows_the_options_and_the_local_address() {
        let host = HostArgument::new(Some("::1".to_owned()));
        let mut v4 = LinkOptions { ipv4: true, ..LinkOptions::default() };
        assert!(host.addresses(9, &mut v4).unwrap_err().text.contains("no IPv4 address"));
        let mut bound = LinkOptions { local: Some(IpAddr::from([127, 0, 0, 1])), ..LinkOptions::default() };
        assert!(host.addresses(9, &mut bound).is_err());
        assert!(HostArgument::default().addresses(9, &mut bound).unwrap_err().text.contains("no host"));
    }

    #[test]
    fn a_local_name_is_resolved_and_an_unknown_one_is_named() {
        let mut options = LinkOptions { ipv4: true, ..LinkOptions::default() }.at(Some("localhost"));
        assert_eq!((options.local, options.local_name.as_deref()), (None, Some("localhost")));
        resolve_local(&mut options).unwrap();
        assert_eq!((options.local, options.local_name), (Some(IpAddr::from([127, 0, 0, 1])), None));
        for typed in ["10.0.0.300", "nosuch.invalid"] {
            let error = resolve_local(&mut LinkOptions::default().at(Some(typed))).unwrap_err();
            assert!(error.text.starts_with(&format!("local address {typed}: ")), "{}", error.text);
        }
        let mut literal = LinkOptions::default().at(Some("::1"));
        resolve_local(&mut literal).unwrap();
        assert_eq!(literal.local, Some("::1".parse().unwrap()));
    }

    #[test]
    fn addresses_of_version_4_wear_no_disguise_outside() {
        let (v4, mapped): (SocketAddr, SocketAddr) =
            ("192.0.2.1:5".parse().unwrap(), "[::ffff:192.0.2.1]:5".parse().unwrap());
        let (any, v6): (SocketAddr, SocketAddr) =
            ("[::]:1".parse().unwrap(), "[2001:db8::1]:5".parse().unwrap());
        assert_eq!((plain(mapped), plain(v6), plain(v4)), (v4, v6, v4));
        assert_eq!(
            (mapped_address(v4, any), mapped_address(v6, any), mapped_address(v4, v4)),
            (mapped, v6, v4)
        );
    }
}
