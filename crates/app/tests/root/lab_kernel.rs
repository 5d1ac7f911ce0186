//! Labs on the kernel backend: veth, bridges and tbf instead of our own switch.

use std::process::Command;

use crate::support::{self, Done, Process, RunningLab, TIMEOUT, eventually, unique};

/// `up --backend kernel`.
fn up(lab: &RunningLab, topology: &str, set: &[&str]) -> Done {
    let mut command = lab.lab(&["up", topology, "--backend", "kernel", "--name", &lab.name, "--json"]);
    for change in set {
        command.args(["--set", change]);
    }
    Process::start(command).finish(TIMEOUT)
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_lab_of_the_kernel_is_used_like_any_other_and_goes_without_a_trace() {
    let lab = RunningLab::named(&unique());
    let done = up(&lab, "pair", &["host.a.congestion=cubic"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let status = lab.status();
    assert_eq!(status, done.json());
    assert_eq!(status["hosts"][1]["netns"], format!("linerate-{}-b", lab.name));
    assert_eq!(status["pid"], serde_json::Value::Null, "no process of ours carries it");
    for to in ["b", "b6"] {
        let ping = lab.done("a", "ping", &["-c", "1", "-W", "5", to]);
        assert_eq!(ping.code, Some(0), "{ping:?}");
    }
    let congestion = lab.done("a", "cat", &["/proc/sys/net/ipv4/tcp_congestion_control"]);
    assert_eq!(congestion.stdout.trim(), "cubic");
    // 1 Gb/s minus the overhead of 1448 bytes on the wire.
    let server = support::ServeProcess::from(lab.linerate("b", &["serve", "-p", "0", "--json"]));
    let port = server.port.to_string();
    let test = lab.linerate("a", &["test", "b", "-p", &port, "--upload", "-t", "2", "--json"]);
    let document = support::test_json(test);
    let got = support::flow(&document, "upload")["receiver"]["bitrate_bps"].as_f64().unwrap();
    assert!(got > 1e8 && got < 1e9 * 1448.0 / 1538.0 * 1.01, "tbf holds it back: {got}");
    drop(server);

    let set = lab.set("link.a", &["delay=1ms"]);
    assert_eq!(set.code, Some(1), "{set:?}");
    assert!(set.stderr.contains("runs in the kernel"), "{set:?}");
    let again = up(&lab, "pair", &[]);
    let own = lab.try_up("pair", &[]);
    for refused in [again, own] {
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains(&format!("lab down {}", lab.name)), "{refused:?}");
    }
    let mut stubborn = Process::start(lab.exec("a", "sh", &["-c", "trap '' TERM; echo ready; sleep 600"]));
    eventually("it runs", || stubborn.stdout().contains("ready").then_some(()));
    let down = lab.down();
    assert_eq!(down.code, Some(0), "{down:?}");
    eventually("its programs have ended", || (!stubborn.running()).then_some(()));
    assert_eq!(lab.traces(), Vec::<String>::new());
}

#[test]
#[ignore = "needs root and network namespaces"]
fn another_lab_that_comes_up_leaves_it_alone() {
    let mut lab = RunningLab::named(&unique());
    assert_eq!(up(&lab, "pair", &[]).code, Some(0));
    let first = std::mem::replace(&mut lab.name, unique());
    let next = lab.try_up("pair", &[]);
    assert!(next.code == Some(0) && !next.stderr.contains(&first), "{next:?}");
    let ping = Process::start(lab.lab(&["exec", "--lab", &first, "a", "ping", "-c", "1", "-W", "5", "b"]));
    assert_eq!(ping.finish(TIMEOUT).code, Some(0));
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_command_that_the_kernel_refuses_is_reported_and_nothing_is_left() {
    let lab = RunningLab::named(&unique());
    let refused = up(&lab, "pair", &["host.b.sysctl.ipv4.no_such_setting=1"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("no_such_setting") && refused.stderr.contains("removed"), "{refused:?}");
    assert_eq!(lab.traces(), Vec::<String>::new());
}

#[test]
#[ignore = "needs root and network namespaces"]
fn delay_is_the_kernels_netem_or_it_is_missing_and_named() {
    let lab = RunningLab::named(&unique());
    let done = up(&lab, "long-haul", &[]);
    if has_netem() {
        assert_eq!(done.code, Some(0), "{done:?}");
        let ping = lab.done("a", "ping", &["-c", "1", "-W", "5", "b"]);
        assert_eq!(ping.code, Some(0), "{ping:?}");
        assert_eq!(lab.down().code, Some(0));
    } else {
        assert_eq!(done.code, Some(1), "{done:?}");
        assert!(done.stderr.contains("netem") && done.stderr.contains("leave out --backend"), "{done:?}");
    }
    assert_eq!(lab.traces(), Vec::<String>::new());
}

fn has_netem() -> bool {
    let netns = unique();
    let ip = |words: &[&str]| Command::new("ip").args(words).output().unwrap().status.success();
    assert!(ip(&["netns", "add", &netns]));
    let tried =
        Command::new("tc").args(["-n", &netns, "qdisc", "add", "dev", "lo", "root", "netem"]).output();
    assert!(ip(&["netns", "del", &netns]));
    tried.unwrap().status.success()
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_kill_in_the_middle_leaves_nothing_to_the_next_call() {
    let sample = RunningLab::named(&unique());
    let takes = up(&sample, "pair", &[]).took;
    for round in 0..20_u32 {
        let lab = RunningLab::named(&unique());
        let command = lab.lab(&["up", "pair", "--backend", "kernel", "--name", &lab.name]);
        let process = Process::start(command);
        support::pause(takes.mul_f64(f64::from(round) / 20.0));
        // As after SIGKILL: drop kills the process. Commands of iproute2 that it has started end by themselves.
        drop(process);
        let children = format!("linerate-{}-", lab.name);
        eventually("its commands have ended", || (!is_named_by_a_process(&children)).then_some(()));
        let down = Process::start(lab.lab(&["down", "--all"])).finish(TIMEOUT);
        assert_eq!(down.code, Some(0), "round {round}: {down:?}");
        assert_eq!(lab.traces(), Vec::<String>::new(), "round {round}");
    }
}

fn is_named_by_a_process(word: &str) -> bool {
    let lines = std::fs::read_dir("/proc").unwrap().flatten();
    let mut lines = lines.map(|entry| std::fs::read(entry.path().join("cmdline")).unwrap_or_default());
    lines.any(|line| String::from_utf8_lossy(&line).contains(word))
}
