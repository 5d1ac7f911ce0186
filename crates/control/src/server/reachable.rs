//! Addresses at which other hosts may reach a server.

use std::net::{IpAddr, SocketAddr};

use linerate_sock::iface::{self, InterfaceAddress};

use super::ServerConfig;

/// More addresses than this are not listed; hosts of containers have hundreds.
const MAX_LISTED_ADDRESSES: usize = 8;

/// Addresses at which other hosts may reach a server that listens on `bound`, IPv4 first. Loopback addresses are
/// only used by this host, and link-local ones need the name of the other host's interface.
fn reachable_addresses(bound: IpAddr) -> Vec<IpAddr> {
    reachable(bound, &iface::addresses().unwrap_or_default())
}

fn reachable(bound: IpAddr, all: &[InterfaceAddress]) -> Vec<IpAddr> {
    let bound = bound.to_canonical();
    if !bound.is_unspecified() {
        return vec![bound];
    }
    let usable = |ip: &IpAddr| match ip {
        IpAddr::V4(ip) => !ip.is_loopback() && !ip.is_link_local(),
        IpAddr::V6(ip) => bound.is_ipv6() && !ip.is_loopback() && !ip.is_unicast_link_local(),
    };
    let mut found: Vec<IpAddr> = all.iter().map(|entry| entry.address).filter(usable).collect();
    found.sort_by_key(IpAddr::is_ipv6);
    found.dedup();
    found.truncate(MAX_LISTED_ADDRESSES);
    found
}

/// Where a server listens, with the commands that measure from another host. `own` has its
/// [own addresses](super::Server::own_addresses).
#[must_use]
pub fn listening_text(address: SocketAddr, own: &[SocketAddr]) -> String {
    if !own.contains(&address)
        && let Some(tools) = tools_of_port(address.port())
    {
        return format!("listening on {address} (TCP and UDP) for {tools}");
    }
    let default = linerate_proto::native::NATIVE.default_port;
    let port = if address.port() == default { String::new() } else { format!(" -p {}", address.port()) };
    let reachable = reachable_addresses(address.ip());
    let commands: Vec<String> = reachable.iter().map(|ip| format!("linerate test {ip}{port}")).collect();
    let listening = format!("listening on {address} (TCP and UDP); measure");
    match commands.as_slice() {
        [] => format!("{listening} with: linerate test HOST{port}"),
        [command] => format!("{listening} from another host with: {command}"),
        commands => format!("{listening} from another host with one of:\n  {}", commands.join("\n  ")),
    }
}

/// Where a server listens for clients that measure responsiveness, with a command of theirs.
pub(super) fn responsiveness_text(address: SocketAddr) -> String {
    let host = match reachable_addresses(address.ip()).first() {
        Some(ip) => SocketAddr::new(*ip, address.port()).to_string(),
        None => format!("HOST:{}", address.port()),
    };
    format!(
        "listening on {address} (HTTPS) for clients that measure responsiveness; on a Mac: networkQuality -k -C \
         https://{host}/.well-known/nq"
    )
}

/// Addresses of IPv4 clients of a dual-stack socket, in IPv4 form.
#[must_use]
pub fn canonical_address(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Names of the tools that expect this port; absent for a port that none expects.
fn tools_of_port(port: u16) -> Option<String> {
    let classic = ServerConfig::classic_ports().into_iter().find(|classic| classic.port == port)?;
    Some(classic.tools.iter().map(|tool| tool.name).collect::<Vec<_>>().join(" and "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_that_another_host_can_use_are_listed() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let all: Vec<InterfaceAddress> =
            ["127.0.0.1", "::1", "2001:db8::7", "192.0.2.7", "fe80::1", "169.254.0.9", "192.0.2.7"]
                .iter()
                .map(|address| InterfaceAddress { name: "eth0".to_owned(), address: ip(address) })
                .collect();
        assert_eq!(reachable(ip("::"), &all), [ip("192.0.2.7"), ip("2001:db8::7")]);
        assert_eq!(reachable(ip("0.0.0.0"), &all), [ip("192.0.2.7")]);
        assert_eq!(reachable(ip("127.0.0.1"), &all), [ip("127.0.0.1")]);
        assert_eq!(reachable(ip("::ffff:192.0.2.7"), &all), [ip("192.0.2.7")]);
        assert_eq!(reachable(ip("::"), &all[..2]), Vec::<IpAddr>::new());
    }

    #[test]
    fn a_port_that_other_tools_expect_is_described_by_what_is_served_there() {
        let address: SocketAddr = "127.0.0.1:5001".parse().unwrap();
        assert!(listening_text(address, &[]).contains("(TCP and UDP) for iperf"), "a classic port");
        let own = listening_text(address, &[address]);
        assert!(own.ends_with("from another host with: linerate test 127.0.0.1 -p 5001"), "{own}");
    }
}
