//! Deliberate causes are found, and the same path without them does not show them.

use serde_json::Value;

use crate::support::{
    Cgroup, Folder, LinkSide, Net, Process, ServeProcess, TIMEOUT, flow, linerate, retried_when_busy,
    skipped, test_json, when_idle,
};

/// Verdict of a measurement from A to B: causes and rules, and everything for a failure message.
struct CausesVerdict {
    found: Vec<(String, String)>,
    all: Value,
}

fn verdict(net: &Net, args: &[&str]) -> CausesVerdict {
    verdict_at(&ServeProcess::start_in(net, LinkSide::B, &[]), net, args)
}

fn verdict_at(server: &ServeProcess, net: &Net, args: &[&str]) -> CausesVerdict {
    let all = [&["--upload", "--json", "-C", "cubic"], args].concat();
    let document = test_json(net.test(LinkSide::A, server.port, &all));
    let upload = flow(&document, "upload");
    let (found, also) = (&upload["verdict"], &upload["also"]);
    let of = |finding: &Value| {
        let text = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
        (text("cause"), text("rule"))
    };
    let all = serde_json::json!({
        "verdict": found, "also": also, "receiver": upload["receiver"], "ceilings": upload["ceilings"],
    });
    let found = std::iter::once(found).chain(also.as_array().unwrap()).map(of).collect();
    CausesVerdict { found, all }
}

impl CausesVerdict {
    /// The verdict on the path. Disturbances of the measurement itself by a busy machine come before it,
    /// correctly, and are skipped.
    fn first(&self, rules: &[&str]) -> Option<&(String, String)> {
        let of_the_measurement = |rule: &str| ["V26", "V27", "V01"].contains(&rule) && !rules.contains(&rule);
        self.found.iter().find(|(_, rule)| !of_the_measurement(rule))
    }

    fn is(&self, cause: &str, rules: &[&str]) {
        let right = self.first(rules).is_some_and(|(c, rule)| c == cause && rules.contains(&rule.as_str()));
        assert!(right, "not {cause} {rules:?}: {:#}", self.all);
    }

    fn is_not(&self, rules: &[&str]) {
        let blamed = self.first(rules).is_some_and(|(_, rule)| rules.contains(&rule.as_str()));
        assert!(!blamed, "the control is blamed: {:#}", self.all);
    }
}

/// Measures from A to B and checks the verdict; again if a busy machine disturbed it.
fn judged(net: &Net, args: &[&str], check: impl Fn(&CausesVerdict)) {
    retried_when_busy(|| check(&verdict(net, args)));
}

fn sysctl(net: &Net, side: LinkSide, setting: &str) {
    let done = net.exec(side, "sysctl", &["-qw", setting]).output().unwrap();
    assert!(done.status.success(), "{done:?}");
}

fn without_offloads(net: &Net) {
    for side in [LinkSide::A, LinkSide::B] {
        let args = ["-K", "veth0", "tso", "off", "gso", "off", "gro", "off"];
        let done = net.exec(side, "ethtool", &args).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    }
}

/// Gives A a packet filter of a thousand rules, none of which holds for the packets of a test.
fn filter_with_many_rules(net: &Net) {
    let rule = |number: u32| format!("ip saddr 192.0.2.{} counter\n", number % 256);
    let rules: String = (0..1000).map(rule).collect();
    let table =
        format!("table ip many {{\nchain out {{\ntype filter hook output priority 0;\n{rules}}}\n}}\n");
    let folder = Folder::new();
    let file = folder.file("many.nft");
    std::fs::write(&file, table).unwrap();
    let done = net.exec(LinkSide::A, "nft", &["-f", &file]).output().unwrap();
    assert!(done.status.success(), "{done:?}");
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_small_receive_window() {
    let net = Net::pair();
    judged(&net, &["-t", "3"], |found| found.is_not(&["V04"]));
    sysctl(&net, LinkSide::B, "net.ipv4.tcp_rmem=4096 8192 8192");
    judged(&net, &["-t", "3"], |found| found.is("receiver_window", &["V04"]));
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_small_send_buffer() {
    let net = Net::pair();
    judged(&net, &["-t", "3"], |found| found.is_not(&["V06"]));
    sysctl(&net, LinkSide::A, "net.ipv4.tcp_wmem=4096 8192 8192");
    judged(&net, &["-t", "3"], |found| found.is("sender_window", &["V06"]));
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_slow_reader() {
    let net = Net::pair();
    net.tbf(LinkSide::A, "100mbit", "32kb", "50ms");
    judged(&net, &["-t", "3", "--read-rate", "20M"], |found| found.is("application", &["V05"]));
    // A reader that is fast enough for the path is not the cause.
    judged(&net, &["-t", "3", "--read-rate", "200M"], |found| found.is_not(&["V05"]));
}

#[test]
#[ignore = "needs root and network namespaces"]
fn an_application_that_offers_too_little() {
    let net = Net::pair();
    net.tbf(LinkSide::A, "100mbit", "32kb", "50ms");
    judged(&net, &["-t", "3", "-b", "20M"], |found| found.is("application", &["V03"]));
    judged(&net, &["-t", "3", "-b", "200M"], |found| found.is_not(&["V03"]));
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_shaped_link() {
    let net = Net::pair();
    net.tbf(LinkSide::A, "100mbit", "32kb", "50ms");
    judged(&net, &["-t", "3"], |found| found.is("shaper", &["V14"]));
    judged(&net, &["-t", "3", "-b", "20M"], |found| found.is_not(&["V14", "V02"]));
}

/// The server knows its own shaper, also where the client is another program.
#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn a_shaper_at_the_server_of_a_foreign_client() {
    retried_when_busy(|| {
        let (net, folder) = (Net::pair(), Folder::new());
        net.tbf(LinkSide::B, "50mbit", "32kb", "50ms");
        let archive = folder.file("archive.sqlite");
        let server = ServeProcess::start_in(&net, LinkSide::B, &["--archive", &archive]);
        let port = server.port.to_string();
        for rate in ["0", "10M"] {
            let args = ["-c", LinkSide::B.address(), "-p", &port, "-t", "3", "-R", "-C", "cubic", "-b", rate];
            let done = net.exec(LinkSide::A, "iperf3", &args).output().unwrap();
            assert!(done.status.success(), "{done:?}");
        }
        server.await_events("ended", 2);
        let show = |run: &str| {
            let mut command = linerate();
            command.args(["show", run, "--json", "--archive", &archive]);
            Process::start(command).finish(TIMEOUT).json()
        };
        let mut history = linerate();
        history.args(["history", "--json", "--archive", &archive]);
        let runs = Process::start(history).finish(TIMEOUT).json();
        // The newest first.
        for (run, rule) in [(0, "V03"), (1, "V14")] {
            let document = show(runs["runs"][run]["id"].as_str().unwrap());
            let download = flow(&document, "download");
            assert_eq!(download["verdict"]["rule"], rule, "{download:#}");
            assert_eq!(download["verdict"]["confidence"], "confirmed", "{download:#}");
            let text = download["verdict"]["text"].as_str().unwrap();
            assert_eq!(text.contains("Your own tbf on veth0"), rule == "V14", "{text}");
            assert!(
                !document.to_string().contains("not this test's"),
                "nobody else used the interface: {document:#}"
            );
        }
    });
}

#[test]
#[ignore = "needs root, network namespaces and nft"]
fn a_saturated_core_at_the_sender() {
    let net = Net::pair();
    net.tbf(LinkSide::A, "100mbit", "32kb", "50ms");
    judged(&net, &["-t", "3"], |found| found.is_not(&["V07", "V08"]));
    // The other programs of a busy machine have their part of the core.
    when_idle("a_saturated_core_at_the_sender", || {
        let free = Net::pair();
        // Each write is a packet that passes the rules in the call of the sender's thread. With larger writes,
        // acknowledgements start what waits in the socket buffer, and that is done by the core that the receiver
        // has. The receiver does a third of the work, so that it is not the limit on another kind of machine
        // either.
        without_offloads(&free);
        filter_with_many_rules(&free);
        verdict(&free, &["-t", "3", "-l", "1K", "-N"]).is("cpu_sender", &["V07"]);
    });
}

/// A program that is stopped when its quota is used up is not seen waiting for a processor all of that time.
#[test]
#[ignore = "needs root, network namespaces and cgroup v1 with cpu"]
fn a_cpu_quota_of_the_receiver() {
    let limit = |file, us: u32| (file, us.to_string());
    let limits = [limit("cpu.cfs_period_us", 100_000), limit("cpu.cfs_quota_us", 6_000)];
    let Some(quota) = Cgroup::with_limits("cpu", &limits) else {
        return skipped(
            "a_cpu_quota_of_the_receiver",
            "the kernel limits no processors for groups of processes",
        );
    };
    let says_quota = |found: &CausesVerdict| found.all.to_string().contains("CPU quota was used up in ");
    let net = Net::pair();
    // What passes a slow line takes less than the quota.
    net.tbf(LinkSide::A, "5mbit", "32kb", "50ms");
    // `ip netns exec` hides the groups, which a container sees.
    let see = "mount -t tmpfs groups /sys/fs/cgroup && mkdir /sys/fs/cgroup/cpu && \
               mount -t cgroup -o cpu groups /sys/fs/cgroup/cpu && exec \"$@\"";
    let serve = ["-c", see, "sh", env!("CARGO_BIN_EXE_linerate"), "serve", "-p", "0", "--json"];
    let server = ServeProcess::from(net.exec(LinkSide::B, "sh", &serve));
    quota.take(server.pid());
    let with_quota = |args: &[&str], check: &dyn Fn(&CausesVerdict)| {
        retried_when_busy(|| check(&verdict_at(&server, &net, args)));
    };
    with_quota(&["-t", "3"], &|found| {
        found.is_not(&["V07", "V08"]);
        assert!(!says_quota(found), "{:#}", found.all);
    });
    let done = net.exec(LinkSide::A, "tc", &["qdisc", "del", "dev", "veth0", "root"]).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    with_quota(&["-t", "4"], &|found| {
        found.is("cpu_receiver", &["V08"]);
        assert!(says_quota(found), "{:#}", found.all);
    });
}

#[test]
#[ignore = "needs root and network namespaces"]
fn too_short_a_test() {
    let net = Net::pair();
    net.tbf(LinkSide::A, "100mbit", "32kb", "50ms");
    judged(&net, &["-t", "0.2"], |found| found.is("too_short", &["V01"]));
    judged(&net, &["-t", "3"], |found| found.is_not(&["V01"]));
}
