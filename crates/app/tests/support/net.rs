//! Two hosts connected by a veth pair between network namespaces.

use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::OwnedFd;
use std::process::Command;

use linerate_sock::netns;

use super::netns::listens;
use super::{eventually, linerate, unique};

/// An end of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkSide {
    A,
    B,
}

impl LinkSide {
    /// Its IPv4 address.
    pub(crate) fn address(self) -> &'static str {
        if self == Self::A { "10.77.0.1" } else { "10.77.0.2" }
    }

    /// Its IPv6 address.
    pub(crate) fn address6(self) -> &'static str {
        if self == Self::A { "fd77::1" } else { "fd77::2" }
    }
}

/// Two network namespaces, removed on drop. In both, the interface is `veth0`. All tests can use the same
/// addresses, because their networks are separate.
pub(crate) struct Net {
    /// Name of the namespace of side A.
    pub(crate) a: String,
    /// Name of the namespace of side B.
    pub(crate) b: String,
}

impl Net {
    /// Creates both namespaces, the link and the addresses.
    pub(crate) fn pair() -> Self {
        let name = unique();
        // Created before the first command, so that drop cleans up after a failure.
        let net = Self { a: format!("{name}-a"), b: format!("{name}-b") };
        ip(&["netns", "add", &net.a]);
        ip(&["netns", "add", &net.b]);
        ip(&["-n", &net.a, "link", "add", "veth0", "type", "veth", "peer", "name", "veth0", "netns", &net.b]);
        for side in [LinkSide::A, LinkSide::B] {
            let inside = |args: &[&str]| ip(&[&["-n", net.name(side)], args].concat());
            inside(&["address", "add", &format!("{}/24", side.address()), "dev", "veth0"]);
            inside(&["address", "add", &format!("{}/64", side.address6()), "dev", "veth0", "nodad"]);
            inside(&["link", "set", "lo", "up"]);
            inside(&["link", "set", "veth0", "up"]);
        }
        net
    }

    /// The namespace of a side.
    pub(crate) fn name(&self, side: LinkSide) -> &str {
        if side == LinkSide::A { &self.a } else { &self.b }
    }

    /// Shapes the traffic from a side with a token bucket; arguments in tc's syntax, such as `50mbit`, `32kb`,
    /// `50ms`.
    pub(crate) fn tbf(&self, side: LinkSide, rate: &str, burst: &str, latency: &str) {
        let device = ["qdisc", "replace", "dev", "veth0", "root"];
        let bucket = ["tbf", "rate", rate, "burst", burst, "latency", latency];
        done(self.exec(side, "tc", &[&device[..], &bucket[..]].concat()));
    }

    /// Waits until a port on a side is in use: a TCP listener, or a UDP socket.
    pub(crate) fn await_port(&self, side: LinkSide, port: u16, udp: bool) {
        eventually("somebody has the port", || self.has_port(side, port, udp).then_some(()));
    }

    /// Whether a port on a side is in use: a TCP listener, or a UDP socket.
    pub(crate) fn has_port(&self, side: LinkSide, port: u16, udp: bool) -> bool {
        let namespace: OwnedFd =
            std::fs::File::open(format!("/run/netns/{}", self.name(side))).unwrap().into();
        let taken =
            || if udp { UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).is_err() } else { listens(port) };
        netns::with_netns_fd(&namespace, taken).unwrap()
    }

    /// Sets the link of a side down or up.
    pub(crate) fn link(&self, side: LinkSide, up: bool) {
        ip(&["-n", self.name(side), "link", "set", "veth0", if up { "up" } else { "down" }]);
    }

    /// A command on a side; for the program itself see [`Self::test`].
    pub(crate) fn exec(&self, side: LinkSide, program: &str, args: &[&str]) -> Command {
        exec(self.name(side), program, args, &[])
    }

    /// `linerate test` from a side to a port of the other side.
    pub(crate) fn test(&self, from: LinkSide, port: u16, args: &[&str]) -> Command {
        let to = if from == LinkSide::A { LinkSide::B } else { LinkSide::A };
        let port = port.to_string();
        let head = ["test", to.address(), "-p", &port];
        self.exec(from, env!("CARGO_BIN_EXE_linerate"), &[&head[..], args].concat())
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for name in [&self.a, &self.b] {
            let _ = Command::new("ip").args(["netns", "del", name]).output();
        }
    }
}

/// A command in a network namespace, optionally with a prefix, with the environment of [`linerate`]. The
/// command is the child itself and not a grandchild, so that signals reach it.
pub(super) fn exec(netns: &str, program: &str, args: &[&str], before: &[&str]) -> Command {
    let mut command = Command::new("ip");
    for (name, value) in linerate().get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.args(["netns", "exec", netns]).args(before).arg(program).args(args);
    command
}

pub(super) fn ip(args: &[&str]) {
    let mut command = Command::new("ip");
    command.args(args);
    done(command);
}

fn done(mut command: Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
