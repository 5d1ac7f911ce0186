//! A host, a router with a token bucket on its egress interface, and another host.

use crate::netns::{Namespaces, ip, output};

/// Prefix of the namespaces of this task.
pub(super) const TASK: &str = "intervals";

/// Address of the server.
pub(super) const SERVER_ADDRESS: &str = "10.91.2.2";

/// The router's interface towards the server, with the bucket on it.
pub(super) const OUT_INTERFACE: &str = "out";

/// Size of the bucket as a time at its rate, s, and its minimum in bytes: a few frames.
const BURST_S: f64 = 0.002;
const MIN_BURST_BYTES: f64 = 5000.0;
/// Size of the queue before it as a time at its rate, s, and its minimum.
const QUEUE_S: f64 = 0.05;
const MIN_QUEUE_BYTES: f64 = 30_000.0;

/// The path with its bottleneck; removed on drop.
pub(super) struct Bottleneck {
    namespaces: Namespaces,
    /// Rate of the bucket, bit/s; it counts frames from their Ethernet header on.
    pub(super) rate_bps: f64,
}

impl Bottleneck {
    /// Creates the path; `number` distinguishes several.
    pub(super) fn make(number: usize, rate_bps: f64) -> Result<Self, String> {
        let namespaces = Namespaces::make(TASK, number, &["a", "r", "b"])?;
        let made = Self { namespaces, rate_bps };
        let (a, r, b) = (made.client(), made.router(), made.server());
        for (near, far, name, peer) in [(a, r, "eth0", "in"), (r, b, OUT_INTERFACE, "eth0")] {
            ip(&["link", "add", name, "netns", near, "type", "veth", "peer", "name", peer, "netns", far])?;
        }
        let addresses = [
            (a, "10.91.1.1", "eth0"),
            (r, "10.91.1.2", "in"),
            (r, "10.91.2.1", OUT_INTERFACE),
            (b, SERVER_ADDRESS, "eth0"),
        ];
        for (namespace, address, device) in addresses {
            ip(&["-n", namespace, "address", "add", &format!("{address}/24"), "dev", device])?;
            ip(&["-n", namespace, "link", "set", device, "up"])?;
        }
        ip(&["-n", a, "route", "add", "default", "via", "10.91.1.2"])?;
        ip(&["-n", b, "route", "add", "default", "via", "10.91.2.1"])?;
        output("ip", &["netns", "exec", r, "sysctl", "-qw", "net.ipv4.ip_forward=1"])?;
        let burst = (rate_bps / 8.0 * BURST_S).max(MIN_BURST_BYTES);
        let limit = (rate_bps / 8.0 * QUEUE_S).max(MIN_QUEUE_BYTES);
        let bucket = [
            format!("{rate_bps:.0}bit"),
            "burst".to_owned(),
            format!("{burst:.0}"),
            "limit".to_owned(),
            format!("{limit:.0}"),
        ];
        let words = ["-n", r, "qdisc", "add", "dev", OUT_INTERFACE, "root", "tbf", "rate"];
        let words: Vec<&str> = words.into_iter().chain(bucket.iter().map(String::as_str)).collect();
        output("tc", &words)?;
        Ok(made)
    }

    pub(super) fn client(&self) -> &str {
        self.namespaces.name(0)
    }

    pub(super) fn router(&self) -> &str {
        self.namespaces.name(1)
    }

    pub(super) fn server(&self) -> &str {
        self.namespaces.name(2)
    }
}
