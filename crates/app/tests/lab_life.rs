//! A lab from its first namespace to its last, in good weather and in bad: nothing may be left of it.

#![expect(clippy::unwrap_used, reason = "a test that cannot look fails")]

mod support;

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use support::{Lab, PATIENCE, Process, Server, caveats, eventually, linerate, pause, signal, unique};

/// Namespaces and interfaces of this machine.
fn world() -> BTreeSet<String> {
    let text = |program: &str, args: &[&str]| {
        let output = Command::new(program).args(args).output().unwrap();
        String::from_utf8_lossy(&output.stdout).lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>()
    };
    let mut found: BTreeSet<String> = text("ip", &["netns", "list"]).into_iter().collect();
    found.extend(
        text("ip", &["-brief", "link"]).iter().filter_map(|l| l.split(' ').next()).map(str::to_owned),
    );
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    found.extend(mounts.lines().filter(|line| line.contains("/netns/")).map(str::to_owned));
    found
}

/// What of the world bears a lab's name.
fn traces(name: &str) -> Vec<String> {
    let mut found: Vec<String> = world().into_iter().filter(|thing| thing.contains(name)).collect();
    if let Ok(folder) = std::fs::read_dir("/run/netns") {
        found.extend(
            folder
                .flatten()
                .map(|e| e.file_name().to_string_lossy().into_owned())
                .filter(|n| n.contains(name)),
        );
    }
    found
}

#[test]
#[ignore = "needs root and network namespaces"]
fn four_hosts_come_up_talk_by_name_and_go_without_a_trace() {
    let lab = Lab::up("gigabit-switch-4", &[]);
    let status = lab.status();
    let hosts = status["hosts"].as_array().unwrap();
    assert_eq!(hosts.len(), 4);
    assert!(hosts.iter().all(|host| host["address"].as_str().unwrap().starts_with("10.")), "{status}");
    let netns = hosts[0]["netns"].as_str().unwrap();
    let inside = Command::new("ip").args(["netns", "exec", netns, "true"]).status().unwrap();
    assert!(inside.success(), "the namespace has a name that other programs can use");
    for to in ["b", "c", "d"] {
        let done = lab.done("a", "ping", &["-c", "1", "-W", "5", to]);
        assert_eq!(done.code, Some(0), "{done:?}");
    }
    let six = lab.done("b", "ping", &["-6", "-c", "1", "-W", "5", "fd77::1"]);
    assert_eq!(six.code, Some(0), "{six:?}");
    assert_eq!(lab.down().code, Some(0));
    assert_eq!(traces(&lab.name), Vec::<String>::new());
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_program_in_the_lab_keeps_its_exit_status_and_its_signals() {
    let lab = Lab::up("pair", &[]);
    assert_eq!(lab.done("a", "sh", &["-c", "exit 42"]).code, Some(42));
    assert_eq!(lab.done("a", "sh", &["-c", "kill -9 $$"]).code, None, "killed is killed");
    assert_eq!(lab.done("a", "/no/such/program", &[]).code, Some(127));
    assert_eq!(lab.done("a", "/etc/passwd", &[]).code, Some(126));
    let unknown = lab.done("nobody", "true", &[]);
    assert!(unknown.code == Some(2) && unknown.stderr.contains("a, b"), "{unknown:?}");
    let speed = lab.done("a", "cat", &["/sys/class/net/eth0/speed"]);
    assert_eq!(speed.stdout.trim(), "1000", "/sys is that of the host: {speed:?}");
}

#[test]
#[ignore = "needs root, network namespaces and curl"]
fn other_peoples_programs_run_in_it() {
    let lab = Lab::up("pair", &[]);
    let page = lab.folder.file("page");
    std::fs::write(&page, vec![b'x'; 3_000_000]).unwrap();
    let folder = lab.folder.path().to_str().unwrap();
    let _server =
        Process::start(lab.exec("b", "python3", &["-m", "http.server", "8000", "--directory", folder]));
    let got = eventually("the web server answers", || {
        let done =
            lab.done("a", "curl", &["-s", "-w", "%{size_download}", "-o", "/dev/null", "http://b:8000/page"]);
        (done.code == Some(0)).then_some(done.stdout)
    });
    assert_eq!(got, "3000000");
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_link_is_changed_while_it_runs() {
    let lab = Lab::up("pair", &[]);
    let round_trip = || {
        let done = lab.done("a", "ping", &["-c", "3", "-i", "0.2", "-q", "b"]);
        let line = done.stdout.lines().last().unwrap_or_default().to_owned();
        line.split(['=', '/']).nth(4).and_then(|ms| ms.trim().parse::<f64>().ok()).unwrap()
    };
    assert!(round_trip() < 20.0);
    assert_eq!(lab.set("link.a", &["delay=25ms", "loss=0"]).code, Some(0));
    assert!(round_trip() >= 50.0, "25 ms each way");
    assert_eq!(lab.set("link.a.from.a", &["delay=0"]).code, Some(0));
    let one_way = round_trip();
    assert!((25.0..45.0).contains(&one_way), "{one_way}: one direction alone");
    for (target, change, culprit) in [
        ("link.zz", "delay=1ms", "zz"),
        ("link.a", "delay=-1ms", "delay"),
        ("link.a", "dleay=1ms", "delay"),
        ("link.a", "loss=2", "loss"),
        ("link.a", "delay", "KEY=VALUE"),
    ] {
        let done = lab.set(target, &[change]);
        assert!(done.code == Some(2) && done.stderr.contains(culprit), "{target} {change}: {done:?}");
    }
    let done = lab.set("link.a", &["delay=5ms", "loss=7"]);
    assert_eq!(done.code, Some(2));
    assert!(round_trip() < 45.0, "a change that fails changes nothing");
}

#[test]
#[ignore = "needs root and network namespaces"]
fn packets_above_the_mtu_vanish_or_are_told_of() {
    let ping = |lab: &Lab| lab.done("a", "ping", &["-c", "2", "-W", "1", "-M", "do", "-s", "1472", "b"]);
    let hole = Lab::up("black-hole", &[]);
    let done = ping(&hole);
    assert!(done.code == Some(1) && !done.stdout.contains("needed"), "{done:?}");
    let small = hole.done("a", "ping", &["-c", "1", "-W", "5", "b"]);
    assert_eq!(small.code, Some(0), "{small:?}");
    let ports = hole.status()["ports"].as_array().unwrap().clone();
    assert!(ports.iter().any(|port| port["dropped_too_big"].as_u64() >= Some(2)), "{ports:?}");
    let links: BTreeSet<String> =
        ports.iter().map(|port| format!("link.{}.too_big=icmp", port["link"].as_str().unwrap())).collect();
    let told = Lab::up("black-hole", &links.iter().map(String::as_str).collect::<Vec<_>>());
    let done = ping(&told);
    assert!(done.stdout.contains("rag needed") || done.stderr.contains("essage too long"), "{done:?}");
    // TCP learns the size from the notice and gets through.
    let server = Server::from(told.linerate("b", &["serve", "-p", "0", "--json"]));
    let port = server.port.to_string();
    let test = told.linerate("a", &["test", "b", "-p", &port, "--upload", "-t", "1", "--json"]);
    let done = Process::start(test).finish(PATIENCE);
    assert_eq!(done.code, Some(0), "{done:?}");
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_killed_switch_is_a_caveat_and_down_cleans_up_after_it() {
    let lab = Lab::up("pair", &[]);
    let server = Server::from(lab.linerate("b", &["serve", "-p", "0", "--json"]));
    let port = server.port.to_string();
    let test =
        Process::start(lab.linerate("a", &["test", "b", "-p", &port, "--upload", "-t", "6", "--json"]));
    let pid = lab.pid();
    eventually("data flows", || (lab.port("s>b")["packets"].as_u64()? > 10_000).then_some(()));
    signal(pid, "KILL");
    let done = test.finish(PATIENCE);
    assert!(caveats(&done.json()).contains(&"lab_gone".to_owned()), "{done:?}");
    let carrier = Command::new("ip")
        .args(["netns", "exec", &format!("linerate-{}-a", lab.name), "cat", "/sys/class/net/eth0/carrier"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&carrier.stdout).trim(), "0", "the cable is pulled");
    let refused = lab.done("a", "true", &[]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    drop(server);
    assert_eq!(lab.down().code, Some(0));
    assert_eq!(traces(&lab.name), Vec::<String>::new());
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_hundred_kills_at_any_moment_leave_nothing() {
    let allowed = || std::fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control").unwrap();
    let before = allowed();
    for round in 0..100_u64 {
        let lab = Lab::named(&unique());
        let command = lab.lab(&["up", "gigabit-switch-4", "--name", &lab.name]);
        let up = Process::start(command);
        // From the first moment to well after the network stands, in steps that no period divides.
        pause(Duration::from_micros(round * round * 61 % 400_000));
        for pid in switches(&lab.name) {
            signal(pid, "KILL");
        }
        signal(up.pid(), "KILL");
        drop(up);
        // A switch that the killed one had just started is found only now.
        for pid in switches(&lab.name) {
            signal(pid, "KILL");
        }
        eventually("the switch is gone", || switches(&lab.name).is_empty().then_some(()));
        let down = Process::start(lab.lab(&["down", "--all"])).finish(PATIENCE);
        assert_eq!(down.code, Some(0), "round {round}: {down:?}");
        assert_eq!(traces(&lab.name), Vec::<String>::new(), "round {round}");
    }
    assert_eq!(allowed(), before);
}

/// Processes that are the switch of this lab.
fn switches(name: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        if words.contains(&b"switch".as_slice()) && words.contains(&name.as_bytes()) {
            found.push(pid);
        }
    }
    found
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_name_that_is_somebody_elses_is_never_touched() {
    let lab = Lab::named(&unique());
    let theirs = format!("linerate-{}-b", lab.name);
    assert!(Command::new("ip").args(["netns", "add", &theirs]).status().unwrap().success());
    let done = lab.try_up("pair", &[]);
    let still = world().iter().any(|thing| thing.starts_with(&theirs));
    let _ = lab.down();
    let after = world().iter().any(|thing| thing.starts_with(&theirs));
    Command::new("ip").args(["netns", "del", &theirs]).status().unwrap();
    assert!(done.code == Some(1) && done.stderr.contains(&theirs), "{done:?}");
    assert!(done.stderr.contains("--name"), "the remedy: {done:?}");
    assert!(still && after);
    assert_eq!(traces(&lab.name), Vec::<String>::new());
}

#[test]
#[ignore = "needs root and network namespaces"]
fn programs_in_a_lab_end_with_it() {
    let lab = Lab::up("pair", &[]);
    let mut sleeper = Process::start(lab.exec("a", "sleep", &["600"]));
    // A program that does not want to go.
    let mut stubborn =
        Process::start(lab.exec("b", "sh", &["-c", "trap '' TERM; while :; do sleep 1; done"]));
    pause(Duration::from_millis(300));
    assert!(sleeper.running() && stubborn.running());
    assert_eq!(lab.down().code, Some(0));
    eventually("both have ended", || (!sleeper.running() && !stubborn.running()).then_some(()));
    assert_eq!(traces(&lab.name), Vec::<String>::new());
}

#[test]
#[ignore = "needs root and network namespaces"]
fn the_demonstration_shows_a_verdict_and_leaves_nothing() {
    let before = world();
    let folder = support::Folder::new();
    let mut command = linerate();
    command.env("LINERATE_RUN", folder.path()).args(["lab", "demo"]);
    let done = Process::start(command).finish(PATIENCE);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stdout.contains("94") && done.stdout.contains("s>b"), "{done:?}");
    let left: Vec<String> =
        world().difference(&before).filter(|thing| thing.contains("demo")).cloned().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_topology_with_mistakes_is_refused_with_their_places() {
    let lab = Lab::named(&unique());
    let file = lab.folder.file("bad.toml");
    std::fs::write(
        &file,
        "name = \"bad\"\n[host.a]\n[host.b]\n[link.x]\nends = [\"a\", \"zz\"]\nrate = \"-1G\"\n",
    )
    .unwrap();
    let done = lab.try_up(&file, &[]);
    assert_eq!(done.code, Some(2), "{done:?}");
    for part in [format!("{file}:5:"), format!("{file}:6:"), "zz".into(), "rate".into()] {
        assert!(done.stderr.contains(&part), "{part}: {done:?}");
    }
    let unknown = lab.try_up("no-such-topology", &[]);
    assert!(unknown.code == Some(2) && unknown.stderr.contains("science-dmz"), "{unknown:?}");
    let set = lab.try_up("pair", &["link.zz.rate=1G"]);
    assert!(set.code == Some(2) && set.stderr.contains("zz"), "{set:?}");
    let nothing = Process::start(lab.lab(&["status"])).finish(PATIENCE);
    assert!(nothing.code == Some(1) && nothing.stderr.contains("linerate lab up"), "{nothing:?}");
}

#[test]
fn the_kernels_commands_are_printed_with_what_they_cannot_do() {
    let lab = Lab::named(&unique());
    let mut command = lab.lab(&["up", "long-haul", "--backend", "kernel", "--dry-run"]);
    command.args(["--name", "x"]);
    let done = Process::start(command).finish(PATIENCE);
    assert_eq!(done.code, Some(0), "{done:?}");
    for part in ["ip netns add linerate-x-a", "netem", "tbf", "#"] {
        assert!(done.stdout.contains(part), "{part}: {}", done.stdout);
    }
}
