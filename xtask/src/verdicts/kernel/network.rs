//! The path of a situation: four namespaces, three links, and the planted cause.

use std::path::PathBuf;

use linerate_sock::netns::with_netns;

use super::forwarder::Forwarder;
use super::situation::{Means, PathHost, Situation};
use crate::netns::{Namespaces, enter, ip, output};

/// Prefix of the names of namespaces and groups.
pub(super) const TASK: &str = "verdicts";

/// Address of the server.
pub(super) const SERVER_ADDRESS: &str = "10.91.3.2";
/// Address of the client.
pub(super) const CLIENT_ADDRESS: &str = "10.91.1.1";

/// The kernel's folder of CPU groups (cgroup v1).
const GROUPS: &str = "/sys/fs/cgroup/cpu";
/// Period of a quota, µs.
const QUOTA_PERIOD_US: u32 = 20_000;

/// Host, device, address with prefix.
const ADDRESSES: [(PathHost, &str, &str); 6] = [
    (PathHost::A, "eth0", "10.91.1.1/24"),
    (PathHost::West, "left", "10.91.1.2/24"),
    (PathHost::West, "right", "10.91.2.1/24"),
    (PathHost::East, "left", "10.91.2.2/24"),
    (PathHost::East, "right", "10.91.3.1/24"),
    (PathHost::B, "eth0", "10.91.3.2/24"),
];

/// Host, destination, gateway, device.
const ROUTES: [(PathHost, &str, &str, &str); 4] = [
    (PathHost::A, "default", "10.91.1.2", "eth0"),
    (PathHost::West, "10.91.3.0/24", "10.91.2.2", "right"),
    (PathHost::East, "10.91.1.0/24", "10.91.2.1", "left"),
    (PathHost::B, "default", "10.91.3.1", "eth0"),
];

/// A path that is up, removed on drop.
pub(super) struct KernelNetwork {
    // Before the namespaces, so that its devices are removed first.
    _forwarder: Option<Forwarder>,
    namespaces: Namespaces,
    groups: Vec<HostQuota>,
}

impl KernelNetwork {
    /// Creates the path and plants the situation in it.
    pub(super) fn make(worker: usize, situation: &Situation, seed: u32) -> Result<Self, String> {
        let names = PathHost::ALL.map(PathHost::name);
        let namespaces = Namespaces::make(TASK, worker, &names)?;
        let forwarding = situation.means.iter().find_map(|means| match means {
            Means::Forwarder(what) => Some(*what),
            _ => None,
        });
        let [west, east] =
            [PathHost::West, PathHost::East].map(|host| namespaces.name(host as usize).to_owned());
        let mut network = Self { _forwarder: None, namespaces, groups: Vec::new() };
        network.cable(PathHost::A, "eth0", PathHost::West, "left")?;
        match forwarding {
            Some(what) => network._forwarder = Some(Forwarder::start(&west, &east, what, seed.into())?),
            None => network.cable(PathHost::West, "right", PathHost::East, "left")?,
        }
        network.cable(PathHost::East, "right", PathHost::B, "eth0")?;
        network.address()?;
        for means in situation.means {
            network.plant(worker, means)?;
        }
        Ok(network)
    }

    fn name(&self, host: PathHost) -> &str {
        self.namespaces.name(host as usize)
    }

    /// Prefix of a command that runs on a host. The command dies with us, also if we are killed.
    pub(super) fn on(&self, host: PathHost) -> Vec<String> {
        let group = self.groups.iter().find(|group| group.host == host);
        let inside = ["setpriv", "--pdeathsig", "KILL", "--"].map(str::to_owned);
        // Join first, as `ip netns exec` hides the folder of groups.
        let join = group.map_or_else(Vec::new, HostQuota::join);
        let see = group.map_or_else(Vec::new, |_| run_after(SEE_CPU_GROUPS));
        [join, enter(self.name(host)), see, inside.to_vec()].concat()
    }

    fn cable(&self, from: PathHost, device: &str, to: PathHost, peer: &str) -> Result<(), String> {
        let (from, to) = (self.name(from), self.name(to));
        ip(&["link", "add", device, "netns", from, "type", "veth", "peer", "name", peer, "netns", to])
    }

    fn address(&self) -> Result<(), String> {
        for (host, device, address) in ADDRESSES {
            let name = self.name(host);
            ip(&["-n", name, "address", "add", address, "dev", device])?;
            // A TAP drops frames that its reader does not take in time; a cable does not.
            ip(&["-n", name, "link", "set", device, "txqueuelen", "10000", "up"])?;
        }
        for (host, to, gateway, device) in ROUTES {
            ip(&["-n", self.name(host), "route", "add", to, "via", gateway, "dev", device])?;
        }
        for host in [PathHost::West, PathHost::East] {
            self.sysctl(host, "net.ipv4.ip_forward=1")?;
        }
        // TCP metrics of one trial must not affect the next.
        PathHost::ALL.iter().try_for_each(|host| self.sysctl(*host, "net.ipv4.tcp_no_metrics_save=1"))
    }

    fn plant(&mut self, worker: usize, means: &Means) -> Result<(), String> {
        match *means {
            // These need a separate TAP, or processes that the trial starts.
            Means::Forwarder(_)
            | Means::Loops(..)
            | Means::Neighbour(_)
            | Means::NeighbourBack(_)
            | Means::Blackout(..)
            | Means::Pause(..) => Ok(()),
            Means::Qdisc(host, device, words) => self.tc(host, "qdisc", device, words),
            Means::Class(host, device, words) => self.tc(host, "class", device, words),
            Means::Ingress(host, device, words) => self.ingress(host, device, words),
            Means::Filter(rule) => self.filter("daddr", rule),
            Means::FilterBack(rule) => self.filter("saddr", rule),
            Means::Sysctl(host, setting) => self.sysctl(host, setting),
            Means::Route(host, words) => self.route(host, words),
            Means::Mtu(host, device, bytes) => {
                ip(&["-n", self.name(host), "link", "set", device, "mtu", &bytes.to_string()])
            }
            Means::SinglePackets => self.single_packets(),
            Means::Quota(host, percent) => {
                self.groups.push(HostQuota::make(worker, host, percent)?);
                Ok(())
            }
        }
    }

    fn inside(&self, host: PathHost, program: &str, words: &[&str]) -> Result<String, String> {
        let enter = enter(self.name(host));
        let head: Vec<&str> = enter[1..].iter().map(String::as_str).collect();
        output("ip", &[&head[..], &[program], words].concat())
    }

    fn tc(&self, host: PathHost, kind: &str, device: &str, words: &str) -> Result<(), String> {
        let words: Vec<&str> = words.split(' ').collect();
        self.inside(host, "tc", &[&[kind, "replace", "dev", device], &words[..]].concat()).map(drop)
    }

    fn sysctl(&self, host: PathHost, setting: &str) -> Result<(), String> {
        self.inside(host, "sysctl", &["-qw", setting]).map(drop)
    }

    /// Redirects arriving packets through an interface with a discipline, before the host receives them.
    fn ingress(&self, host: PathHost, device: &str, words: &str) -> Result<(), String> {
        ip(&["-n", self.name(host), "link", "add", "ifb0", "type", "ifb"])?;
        ip(&["-n", self.name(host), "link", "set", "ifb0", "up"])?;
        self.inside(host, "tc", &["qdisc", "add", "dev", device, "ingress"])?;
        let to = "parent ffff: protocol all u32 match u32 0 0 action mirred egress redirect dev ifb0";
        let to: Vec<&str> = to.split(' ').collect();
        self.inside(host, "tc", &[&["filter", "add", "dev", device], &to[..]].concat())?;
        self.tc(host, "qdisc", "ifb0", words)
    }

    /// A rule for packets forwarded to (`daddr`) or from (`saddr`) the server.
    fn filter(&self, which: &str, rule: &str) -> Result<(), String> {
        self.nft("add table ip planted")?;
        self.nft("add chain ip planted path { type filter hook forward priority 0; policy accept; }")?;
        self.nft(&format!("add rule ip planted path ip {which} {SERVER_ADDRESS} {rule}"))
    }

    fn nft(&self, words: &str) -> Result<(), String> {
        self.inside(PathHost::East, "nft", &[words]).map(drop)
    }

    /// Blocks all packets in the eastern router, or unblocks them.
    pub(super) fn block(&self, blocked: bool) -> Result<(), String> {
        if !blocked {
            return self.nft("delete table ip blackout");
        }
        self.nft("add table ip blackout")?;
        self.nft("add chain ip blackout path { type filter hook forward priority -1; policy drop; }")
    }

    fn route(&self, host: PathHost, words: &str) -> Result<(), String> {
        let Some((_, to, gateway, device)) = ROUTES.iter().find(|route| route.0 == host) else {
            return Err(format!("{} has no route", host.name()));
        };
        let mut all = vec!["-n", self.name(host), "route", "change", to, "via", gateway, "dev", device];
        all.extend(words.split(' '));
        ip(&all)
    }

    fn single_packets(&self) -> Result<(), String> {
        for (host, device, _) in ADDRESSES {
            let off = ["-K", device, "tso", "off", "gso", "off", "gro", "off", "tx-udp-segmentation", "off"];
            self.inside(host, "ethtool", &off)?;
        }
        Ok(())
    }

    /// Counters of the disciplines and filters, as text.
    pub(super) fn counts(&self) -> String {
        let mut text = String::new();
        for host in PathHost::ALL {
            let counted = self.inside(host, "tc", &["-s", "qdisc", "show"]).unwrap_or_default();
            text.push_str(&format!("{}\n{counted}", host.name()));
        }
        text.push_str(&self.inside(PathHost::East, "nft", &["list", "ruleset"]).unwrap_or_default());
        text
    }

    /// Whether the server's kernel answers.
    pub(super) fn is_reachable(&self) -> bool {
        // Also resolves the neighbours on the path for the first packet of a test.
        let asked = with_netns(self.name(PathHost::A), || {
            std::net::UdpSocket::bind(("0.0.0.0", 0))
                .and_then(|socket| socket.send_to(&[0], (SERVER_ADDRESS, 9)))
                .is_ok()
        });
        asked.unwrap_or(false)
    }
}

/// Makes groups visible again that `ip netns exec` has hidden, as a container has them.
const SEE_CPU_GROUPS: &str = "mount -t tmpfs groups /sys/fs/cgroup && mkdir /sys/fs/cgroup/cpu && \
                              mount -t cgroup -o cpu groups /sys/fs/cgroup/cpu";

/// Prefix of a command that should run after a shell's commands, in the same process.
fn run_after(commands: &str) -> Vec<String> {
    ["sh", "-c", &format!("{commands} && exec \"$@\""), "sh"].map(str::to_owned).to_vec()
}

/// A group of processes with a quota, removed on drop.
struct HostQuota {
    host: PathHost,
    folder: PathBuf,
}

impl HostQuota {
    fn make(worker: usize, host: PathHost, percent: u32) -> Result<Self, String> {
        let name = format!("{TASK}-{}-{worker}-{}", std::process::id(), host.name());
        let group = Self { host, folder: PathBuf::from(GROUPS).join(name) };
        let fail = |e| format!("cannot make {}: {e}", group.folder.display());
        std::fs::create_dir(&group.folder).map_err(fail)?;
        let quota = QUOTA_PERIOD_US / 100 * percent;
        for (file, value) in [("cpu.cfs_period_us", QUOTA_PERIOD_US), ("cpu.cfs_quota_us", quota)] {
            std::fs::write(group.folder.join(file), value.to_string()).map_err(fail)?;
        }
        Ok(group)
    }

    /// Prefix of a command that should join it.
    fn join(&self) -> Vec<String> {
        run_after(&format!("echo $$ > {}/cgroup.procs", self.folder.display()))
    }
}

impl Drop for HostQuota {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.folder);
    }
}

/// Removes the groups of this task whose creator is gone.
pub(super) fn remove_left_groups() {
    let entries = std::fs::read_dir(GROUPS).into_iter().flatten().flatten();
    for entry in entries {
        if crate::netns::is_left_over(&entry.file_name().to_string_lossy(), TASK) {
            // The next call removes a group that still has a process.
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}
