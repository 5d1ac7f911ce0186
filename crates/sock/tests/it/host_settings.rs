//! Host settings, in a namespace with a veth pair: each is set, read with other tools, and restored.
use std::os::fd::OwnedFd;
use std::process::Command;

use linerate_sock::discipline::RootDiscipline;
use linerate_sock::host_setting::{HostSetting, HostSettingRequest};
use linerate_sock::netns;

/// A namespace with the veth pair `v0`-`v1`, removed when dropped.
struct VethNamespace {
    name: String,
    inside: OwnedFd,
}

impl VethNamespace {
    fn new(test: &str) -> Self {
        let name = format!("lr-{}-{test}", std::process::id());
        ip(&["netns", "add", &name]);
        let inside = std::fs::File::open(format!("/run/netns/{name}")).unwrap().into();
        let host = Self { name, inside };
        host.ip(&["link", "add", "v0", "type", "veth", "peer", "name", "v1"]);
        for end in ["v0", "v1"] {
            host.ip(&["link", "set", end, "up"]);
        }
        host
    }

    fn ip(&self, args: &[&str]) -> String {
        ip(&[&["-n", &self.name], args].concat())
    }

    /// Output of a program in the namespace.
    fn ask(&self, command: &str) -> String {
        let words: Vec<&str> = command.split(' ').collect();
        ip(&[&["netns", "exec", &self.name], &words[..]].concat())
    }

    fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        netns::with_netns_fd(&self.inside, work).unwrap()
    }

    /// Applies a change that has no obstacles; returns the previous state.
    fn set(&self, request: &HostSettingRequest) -> String {
        self.run(|| {
            assert_eq!(request.obstacles("v0"), []);
            let setting = request.setting();
            let found = setting.read("v0").unwrap();
            let becoming = request.becomes("v0", &found).unwrap();
            assert!(!setting.is_same(&found, &becoming), "the test changes nothing: {found}");
            request.set("v0", &becoming).unwrap();
            let now = setting.read("v0").unwrap();
            assert!(setting.is_same(&now, &becoming), "{now} is not {becoming}");
            found
        })
    }

    fn put_back(&self, setting: HostSetting, found: &str) {
        self.run(|| {
            setting.put_back("v0", found).unwrap();
            assert_eq!(setting.read("v0").unwrap(), found);
        });
    }

    fn obstacles(&self, request: &HostSettingRequest) -> String {
        self.run(|| request.obstacles("v0"))
            .into_iter()
            .map(|obstacle| obstacle.0)
            .collect::<Vec<_>>()
            .join("\n")
    }
}

impl Drop for VethNamespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.name]).status();
    }
}

fn ip(args: &[&str]) -> String {
    let done = Command::new("ip").args(args).output().unwrap();
    assert!(done.status.success(), "{args:?}: {done:?}");
    String::from_utf8(done.stdout).unwrap()
}

#[test]
#[ignore = "needs root and network namespaces"]
fn the_mtu_is_set_and_put_back_and_one_that_the_card_refuses_is_found_before() {
    let host = VethNamespace::new("mtu");
    let found = host.set(&HostSettingRequest::Mtu(9000));
    assert!(host.ip(&["link", "show", "v0"]).contains("mtu 9000"));
    host.put_back(HostSetting::Mtu, &found);
    assert!(host.ip(&["link", "show", "v0"]).contains("mtu 1500"));
    assert!(host.obstacles(&HostSettingRequest::Mtu(65_536)).contains("68 to 65535"));
    host.ip(&["address", "add", "2001:db8::1/64", "dev", "v0"]);
    assert!(host.obstacles(&HostSettingRequest::Mtu(1279)).contains("IPv6"));
    assert_eq!(host.obstacles(&HostSettingRequest::Mtu(1280)), "");
    // The kernel reduces the MTU of a stacked interface too, and does not raise it again.
    host.ip(&["link", "add", "link", "v0", "name", "v0.5", "type", "macvlan"]);
    assert!(host.obstacles(&HostSettingRequest::Mtu(1400)).contains("v0.5"));
    assert_eq!(host.obstacles(&HostSettingRequest::Mtu(9000)), "");
}

#[test]
#[ignore = "needs root and network namespaces"]
fn an_mtu_without_ipv6_is_put_back_with_the_address_that_the_kernel_makes() {
    let host = VethNamespace::new("mtu-v6");
    let addresses = || host.ip(&["-6", "address", "show", "dev", "v0"]).matches("inet6").count();
    assert_eq!(addresses(), 1, "the kernel gives every cable one");
    let found = host.set(&HostSettingRequest::Mtu(576));
    assert_eq!(addresses(), 0);
    host.put_back(HostSetting::Mtu, &found);
    assert_eq!(addresses(), 1);
}

#[test]
#[ignore = "needs root and network namespaces"]
fn offloads_are_switched_and_put_back_feature_by_feature() {
    let host = VethNamespace::new("offloads");
    // A mixture that a single switch for all features would not restore.
    host.ask("ethtool -K v0 tx-tcp6-segmentation off");
    let before = host.ask("ethtool -k v0");
    assert!(before.contains("tx-tcp-segmentation: on") && before.contains("tx-tcp6-segmentation: off"));
    let mut put_back = Vec::new();
    for (setting, on, line) in [
        (HostSetting::Tso, false, "tcp-segmentation-offload: off"),
        (HostSetting::Gso, false, "generic-segmentation-offload: off"),
        (HostSetting::Gro, true, "generic-receive-offload: on"),
    ] {
        put_back.push((setting, host.set(&HostSettingRequest::Offload(setting, on))));
        let now = host.ask("ethtool -k v0");
        assert!(now.contains(line), "{now}");
    }
    for (setting, found) in put_back.into_iter().rev() {
        host.put_back(setting, &found);
    }
    assert_eq!(host.ask("ethtool -k v0"), before);
    // A veth has no LRO: it is already off and cannot be turned on.
    assert_eq!(host.obstacles(&HostSettingRequest::Offload(HostSetting::Lro, false)), "");
    assert!(host.obstacles(&HostSettingRequest::Offload(HostSetting::Lro, true)).contains("fixed to off"));
    host.ask("ethtool -K v0 sg off");
    assert!(host.obstacles(&HostSettingRequest::Offload(HostSetting::Tso, true)).contains("sg on"));
    let refused = host.run(|| HostSettingRequest::Offload(HostSetting::Tso, true).set("v0", ""));
    assert!(refused.is_err(), "what the kernel leaves off is not reported as on");
}

#[test]
#[ignore = "needs root and network namespaces"]
fn settings_of_tcp_are_those_of_the_namespace() {
    let host = VethNamespace::new("tcp");
    let ours = HostSetting::TcpRmem.read("").unwrap();
    let available = host.ask("sysctl -n net.ipv4.tcp_available_congestion_control");
    let current = HostSetting::Congestion;
    let now = host.run(|| current.read("").unwrap());
    let other = available.split_whitespace().find(|name| *name == "reno" && *name != now).unwrap();
    let requests = [
        HostSettingRequest::Congestion(other.to_owned()),
        HostSettingRequest::Buffers(HostSetting::TcpRmem, [8192, 262_144, 8_388_608]),
        HostSettingRequest::Buffers(HostSetting::TcpWmem, [8192, 32_768, 4_194_304]),
    ];
    let found: Vec<String> = requests.iter().map(|request| host.set(request)).collect();
    assert_eq!(host.ask("sysctl -n net.ipv4.tcp_congestion_control").trim(), "reno");
    assert_eq!(host.ask("sysctl -n net.ipv4.tcp_rmem").trim(), "8192\t262144\t8388608");
    assert_eq!(HostSetting::TcpRmem.read("").unwrap(), ours, "another namespace has its own");
    for (request, found) in requests.iter().zip(&found) {
        host.put_back(request.setting(), found);
    }
    assert!(host.obstacles(&HostSettingRequest::Congestion("vegas-7".to_owned())).contains("modprobe"));
}

/// The list applies to the whole system and names the algorithms that may be the default of a namespace.
#[test]
#[ignore = "needs root and network namespaces"]
fn a_congestion_control_that_a_namespace_may_not_have_is_found_before() {
    let host = VethNamespace::new("allowed");
    let words = |name| linerate_sock::proc::sysctl(name).unwrap();
    let allowed = words("net.ipv4.tcp_allowed_congestion_control");
    let available = words("net.ipv4.tcp_available_congestion_control");
    let is_allowed = |name: &str| allowed.split_whitespace().any(|other| other == name);
    for name in available.split_whitespace() {
        let found = host.obstacles(&HostSettingRequest::Congestion(name.to_owned()));
        assert_eq!(found.is_empty(), is_allowed(name), "{name}: {found}");
    }
}

#[test]
#[ignore = "needs root and network namespaces"]
fn the_discipline_of_the_kernel_comes_back_and_so_does_a_configured_one() {
    let host = VethNamespace::new("qdisc");
    let parse = |text| HostSettingRequest::Discipline(RootDiscipline::parse(text).unwrap());
    let found = host.set(&parse("pfifo limit 77"));
    assert_eq!(found, "default noqueue");
    assert!(host.ask("tc qdisc show dev v0").contains("pfifo 6c72: root refcnt 3 limit 77p"));
    // A second one of ours replaces the first; restoring brings back the original state.
    let second = host.set(&parse("bfifo limit 5000"));
    assert!(second.starts_with("pfifo 6c72:"), "{second}");
    host.put_back(HostSetting::RootDiscipline, &found);
    for configured in
        ["tbf rate 100mbit burst 32kb limit 100kb", "pfifo limit 12", "bfifo limit 9999", "pfifo_fast"]
    {
        host.ask(&format!("tc qdisc replace dev v0 root handle 8001: {configured}"));
        let before = host.ask("tc qdisc show dev v0");
        let found = host.set(&parse("tbf rate 10mbit burst 16k limit 64k"));
        assert!(host.ask("tc qdisc show dev v0").contains("tbf 6c72: root refcnt 3 rate 10Mbit burst 16Kb"));
        host.put_back(HostSetting::RootDiscipline, &found);
        assert_eq!(host.ask("tc qdisc show dev v0"), before, "{configured}");
        host.ask("tc qdisc del dev v0 root");
    }
    host.ask("tc qdisc replace dev v0 root handle 8001: tbf rate 100mbit burst 32kb limit 100kb");
    host.ask("tc qdisc replace dev v0 parent 8001: handle 8002: pfifo limit 5");
    assert!(host.obstacles(&parse("pfifo")).contains("contains a pfifo"));
    host.ask("tc qdisc del dev v0 root");
    host.ask("tc qdisc replace dev v0 root handle 8001: htb");
    assert!(host.obstacles(&parse("pfifo")).contains("htb"));
}

/// Kernels without netem refuse before anything changes; those with it accept the same bytes as from tc.
#[test]
#[ignore = "needs root and network namespaces"]
fn a_discipline_that_the_kernel_does_not_have_is_found_before() {
    let host = VethNamespace::new("netem");
    let request =
        HostSettingRequest::Discipline(RootDiscipline::netem(std::time::Duration::from_millis(25), 0.01));
    let tc = Command::new("ip")
        .args([
            "netns", "exec", &host.name, "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms",
        ])
        .output()
        .unwrap();
    if tc.status.success() {
        let found = host.set(&request);
        let shown = host.ask("tc qdisc show dev v0");
        assert!(shown.contains("delay 25ms") && shown.contains("loss 1%"), "{shown}");
        host.put_back(HostSetting::RootDiscipline, &found);
    } else {
        let found = host.obstacles(&request);
        assert!(found.contains("modprobe sch_netem"), "{found}");
    }
}
