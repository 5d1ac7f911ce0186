//! A host of the test: a network namespace with only loopback.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;
use std::process::Command;

use linerate_sock::netns;

use super::net::{exec, ip};
use super::{eventually, unique};

/// The namespace; removed on drop. All ports are free, and its counters include no other packets.
pub(crate) struct Netns {
    name: String,
    namespace: OwnedFd,
    /// Prefix of every command.
    prefix: &'static [&'static str],
}

impl Netns {
    pub(crate) fn new() -> Self {
        Self::with_prefix(&[])
    }

    /// A host whose programs have real-time priority (SCHED_FIFO), so that their timing does not depend on the
    /// machine's load. They must not wait in a busy loop, as the kernel would throttle them.
    pub(crate) fn prompt() -> Self {
        Self::with_prefix(&["chrt", "-f", "10"])
    }

    fn with_prefix(prefix: &'static [&'static str]) -> Self {
        let name = unique();
        ip(&["netns", "add", &name]);
        let namespace = std::fs::File::open(format!("/run/netns/{name}")).unwrap().into();
        let netns = Self { name, namespace, prefix };
        ip(&["-n", &netns.name, "link", "set", "lo", "up"]);
        netns
    }

    /// A program there. It is the child itself, so that signals reach it.
    pub(crate) fn exec(&self, program: &str, args: &[&str]) -> Command {
        exec(&self.name, program, args, self.prefix)
    }

    /// Limits loopback to this rate (such as `200mbit`) with the MTU of Ethernet, so that the link is the
    /// bottleneck.
    pub(crate) fn narrow(&self, rate: &str) {
        ip(&["-n", &self.name, "link", "set", "lo", "mtu", "1500"]);
        let bucket = ["dev", "lo", "root", "tbf", "rate", rate, "burst", "20kb", "limit", "1mb"];
        ip(&[&["netns", "exec", &self.name, "tc", "qdisc", "add"][..], &bucket].concat());
    }

    /// Runs `work` there. Sockets and threads that it creates stay there.
    pub(crate) fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        netns::with_netns_fd(&self.namespace, work).unwrap()
    }

    /// Waits until a TCP port has a listener.
    pub(crate) fn await_listener(&self, port: u16) {
        eventually("somebody listens", || self.inside(|| listens(port)).then_some(()));
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.name]).output();
    }
}

/// Whether a wildcard address or 127.0.0.1 has a listener on a port, according to proc_net_tcp(5).
pub(super) fn listens(port: u16) -> bool {
    const LISTEN: &str = "0A";
    let any = [format!("{:032X}", u128::from(Ipv6Addr::UNSPECIFIED)), "00000000".to_owned()];
    let loopback = format!("{:08X}", u32::from_le_bytes(Ipv4Addr::LOCALHOST.octets()));
    let tables = ["tcp", "tcp6"].map(|name| std::fs::read_to_string(format!("/proc/thread-self/net/{name}")));
    tables.into_iter().flatten().any(|table| {
        table.lines().any(|line| {
            let mut words = line.split_whitespace().skip(1);
            let (local, state) = (words.next().unwrap_or_default(), words.nth(1).unwrap_or_default());
            let Some((address, found)) = local.split_once(':') else { return false };
            let here = any.iter().any(|any| any == address) || address == loopback;
            here && state == LISTEN && found == format!("{port:04X}")
        })
    })
}
