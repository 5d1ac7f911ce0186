//! Hosts of a lab: their names, their NICs, and how many there may be.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::support::{
    Process, RunningLab, ServeProcess, TIMEOUT, eventually, flow, pause, retried_when_busy, started_by,
    test_json, unique,
};

/// A topology file of these hosts at one switch.
fn star(lab: &RunningLab, hosts: &[String]) -> String {
    let mut text = "name = \"star\"\nswitch.s = {}\n".to_owned();
    for host in hosts {
        text.push_str(&format!("host.{host} = {{}}\nlink.{host}.ends = [\"{host}\", \"s\"]\n"));
    }
    let file = lab.folder.file("star.toml");
    std::fs::write(&file, text).unwrap();
    file
}

fn serve_on_b(lab: &RunningLab) -> (ServeProcess, String) {
    let server = ServeProcess::from(lab.linerate("b", &["serve", "-p", "0", "--json"]));
    let port = server.port.to_string();
    (server, port)
}

#[test]
#[ignore = "needs root and network namespaces"]
fn the_name_of_a_host_never_means_another_one() {
    let lab = RunningLab::named(&unique());
    let file = star(&lab, &["h1", "h16"].map(str::to_owned));
    assert_eq!(lab.try_up(&file, &[]).code, Some(0));
    for (name, address) in [("h1", "10.77.0.1"), ("h16", "10.77.0.2"), ("h166", "fd77::2")] {
        let found = lab.done("h1", "getent", &["ahosts", name]);
        let addresses: BTreeSet<&str> =
            found.stdout.lines().filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(addresses, BTreeSet::from([address]), "{name}: {found:?}");
    }
}

/// Regression: such a host had the NIC of one member.
#[test]
#[ignore = "needs root and network namespaces"]
fn a_host_on_a_lag_sends_at_the_rate_of_all_members() {
    retried_when_busy(|| {
        let lab = RunningLab::up("pair", &["link.a.rate=50M", "link.a.members=2"]);
        assert_eq!(lab.done("a", "cat", &["/sys/class/net/eth0/speed"]).stdout.trim(), "100");
        let (_server, port) = serve_on_b(&lab);
        let args = ["test", "b", "-p", &port, "--upload", "-P", "8", "-t", "3", "-O", "1", "--json"];
        let document = test_json(lab.linerate("a", &args));
        let got = flow(&document, "upload")["receiver"]["bitrate_bps"].as_f64().unwrap();
        // One member carries 47 Mb/s. That all eight streams hash to it happens in one of 128 runs.
        assert!((65e6..95e6).contains(&got), "{got}");
    });
}

/// What tc shows of the token bucket of host a.
fn bucket(lab: &RunningLab) -> String {
    let shown = lab.done("a", "tc", &["qdisc", "show", "dev", "eth0"]);
    shown.stdout.split_once(" rate ").unwrap_or_else(|| panic!("{shown:?}")).1.to_owned()
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_link_that_was_changed_has_the_nic_of_a_new_one() {
    let changed = RunningLab::up("pair", &[]);
    let new = RunningLab::up("pair", &["link.a.rate=10M"]);
    assert_ne!(bucket(&changed), bucket(&new));
    assert_eq!(changed.set("link.a", &["rate=10M"]).code, Some(0));
    assert_eq!(bucket(&changed), bucket(&new));
}

/// The super-packets that wait at 1 Gb/s are longer than the token bucket of a slow line, which never has the
/// tokens for such a packet.
#[test]
#[ignore = "needs root and network namespaces"]
fn what_waits_in_a_host_whose_line_becomes_slow_is_still_sent() {
    let lab = RunningLab::up("pair", &[]);
    let (_server, port) = serve_on_b(&lab);
    let args = ["test", "b", "-p", &port, "--upload", "-P", "4", "-t", "60", "--json"];
    let test = Process::start(lab.linerate("a", &args));
    eventually("data flows", || (lab.port("a>s")["packets"].as_u64()? > 20_000).then_some(()));
    assert_eq!(lab.set("link.a", &["rate=5M"]).code, Some(0));
    drop(test);
    let ping = lab.done("a", "ping", &["-c", "1", "-W", "30", "b"]);
    assert_eq!(ping.code, Some(0), "{ping:?}");
}

/// Regression: the switch polled the deleted interface without a pause, at the highest priority.
#[test]
#[ignore = "needs root and network namespaces"]
fn a_deleted_interface_cuts_off_its_host_and_costs_nothing() {
    let lab = RunningLab::up("gigabit-switch-4", &[]);
    let deleted = lab.done("b", "ip", &["link", "delete", "eth0"]);
    assert_eq!(deleted.code, Some(0), "{deleted:?}");
    // The share of the core is that of the last second.
    pause(Duration::from_secs(2));
    let status = lab.status();
    assert!(status["keeping_up"]["cpu"].as_f64().unwrap() < 0.3, "{status}");
    assert!(status["notes"].to_string().contains("eth0 of host b was deleted"), "{status}");
    let others = lab.done("a", "ping", &["-c", "1", "-W", "5", "c"]);
    assert_eq!(others.code, Some(0), "{others:?}");
    assert_eq!(lab.down().code, Some(0));
    assert_eq!(lab.traces(), Vec::<String>::new());
}

/// Regression: `doctor` called the shaper of such a NIC a fault, with a remedy that removed the emulated line rate.
#[test]
#[ignore = "needs root and network namespaces"]
fn doctor_finds_no_fault_in_the_nic_of_a_host() {
    let lab = RunningLab::up("pair", &["link.a.rate=100M"]);
    let document = Process::start(lab.linerate("a", &["doctor", "--json"])).finish(TIMEOUT).json();
    let checks = document["checks"].as_array().unwrap();
    let of_nic = || checks.iter().filter(|check| check["id"].as_str().unwrap().starts_with("eth0."));
    assert!(of_nic().any(|check| check["id"] == "eth0.qdisc" && check["value"] == "tbf"), "{document}");
    assert!(of_nic().all(|check| check["status"] == "good"), "{document}");
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_lab_may_have_more_hosts_than_files_may_be_open_at_first() {
    let lab = RunningLab::named(&unique());
    let names: Vec<String> = (1..=30).map(|number| format!("h{number}")).collect();
    let file = star(&lab, &names);
    let limited = ["-c", "ulimit -S -n 60 && exec \"$0\" \"$@\""];
    let up = started_by("sh", &limited, &lab.lab(&["up", &file, "--name", &lab.name]));
    let done = Process::start(up).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
    let ping = lab.done("h1", "ping", &["-c", "1", "-W", "5", "h30"]);
    assert_eq!(ping.code, Some(0), "{ping:?}");
}
