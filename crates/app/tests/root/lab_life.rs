//! The life of a lab, with and without faults: nothing of it remains.

use std::collections::BTreeSet;
use std::process::Command;

use crate::support::{
    self, Process, RunningLab, ServeProcess, TIMEOUT, caveats, eventually, linerate, signal, unique, world,
};

#[test]
#[ignore = "needs root and network namespaces"]
fn four_hosts_come_up_talk_by_name_and_go_without_a_trace() {
    let lab = RunningLab::up("gigabit-switch-4", &[]);
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
    assert_eq!(lab.traces(), Vec::<String>::new());
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_program_in_the_lab_keeps_its_exit_status_and_its_signals() {
    let lab = RunningLab::up("pair", &[]);
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
    let lab = RunningLab::up("pair", &[]);
    let page = lab.folder.file("page");
    std::fs::write(&page, vec![b'x'; 3_000_000]).unwrap();
    let folder = lab.folder.path().to_str().unwrap();
    let _server =
        Process::start(lab.exec("b", "python3", &["-m", "http.server", "8000", "--directory", folder]));
    let got = eventually("the web server answers", || {
        let done = lab.done(
            "a",
            "curl",
            &["-s", "--noproxy", "*", "-w", "%{size_download}", "-o", "/dev/null", "http://b:8000/page"],
        );
        (done.code == Some(0)).then_some(done.stdout)
    });
    assert_eq!(got, "3000000");
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_link_is_changed_while_it_runs() {
    let lab = RunningLab::up("pair", &[]);
    let round_trip = || {
        let done = lab.done("a", "ping", &["-c", "10", "-i", "0.2", "-q", "b"]);
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
fn packets_above_the_mtu_are_dropped_silently_or_with_an_icmp_error() {
    let ping =
        |lab: &RunningLab| lab.done("a", "ping", &["-c", "2", "-W", "1", "-M", "do", "-s", "1472", "b"]);
    let hole = RunningLab::up("black-hole", &[]);
    let done = ping(&hole);
    assert!(done.code == Some(1) && !done.stdout.contains("needed"), "{done:?}");
    let small = hole.done("a", "ping", &["-c", "1", "-W", "5", "b"]);
    assert_eq!(small.code, Some(0), "{small:?}");
    let ports = hole.status()["ports"].as_array().unwrap().clone();
    assert!(ports.iter().any(|port| port["dropped_too_big"].as_u64() >= Some(2)), "{ports:?}");
    let links: BTreeSet<String> =
        ports.iter().map(|port| format!("link.{}.too_big=icmp", port["link"].as_str().unwrap())).collect();
    let lab = RunningLab::up("black-hole", &links.iter().map(String::as_str).collect::<Vec<_>>());
    let done = ping(&lab);
    assert!(done.stdout.contains("rag needed") || done.stderr.contains("essage too long"), "{done:?}");
    // TCP learns the MTU from the ICMP message and succeeds.
    let server = ServeProcess::from(lab.linerate("b", &["serve", "-p", "0", "--json"]));
    let port = server.port.to_string();
    let test = lab.linerate("a", &["test", "b", "-p", &port, "--upload", "-t", "1", "--json"]);
    let done = Process::start(test).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_killed_switch_is_a_caveat_and_down_cleans_up_after_it() {
    let lab = RunningLab::up("pair", &[]);
    let server = ServeProcess::from(lab.linerate("b", &["serve", "-p", "0", "--json"]));
    let port = server.port.to_string();
    let test =
        Process::start(lab.linerate("a", &["test", "b", "-p", &port, "--upload", "-t", "30", "--json"]));
    let pid = lab.pid();
    eventually("data flows", || (lab.port("s>b")["packets"].as_u64()? > 10_000).then_some(()));
    signal(pid, "KILL");
    let done = test.finish(TIMEOUT);
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
    assert_eq!(lab.traces(), Vec::<String>::new());
}

#[test]
#[ignore = "needs root and network namespaces"]
fn programs_in_a_lab_end_with_it() {
    let lab = RunningLab::up("pair", &[]);
    let mut willing = Process::start(lab.exec("a", "sh", &["-c", "echo ready; exec sleep 600"]));
    // A program that ignores SIGTERM.
    let deaf = "trap '' TERM; echo ready; while :; do sleep 1; done";
    let mut stubborn = Process::start(lab.exec("b", "sh", &["-c", deaf]));
    for program in [&willing, &stubborn] {
        eventually("it runs", || program.stdout().contains("ready").then_some(()));
    }
    assert!(willing.running() && stubborn.running());
    assert_eq!(lab.down().code, Some(0));
    eventually("both have ended", || (!willing.running() && !stubborn.running()).then_some(()));
    assert_eq!(lab.traces(), Vec::<String>::new());
}

#[test]
#[ignore = "needs root, network namespaces and script(1)"]
fn a_program_in_a_lab_keeps_its_terminal() {
    let lab = RunningLab::up("pair", &[]);
    // Not a shell: one that starts a command when the signal arrives may miss it (dash, between vfork and
    // exec).
    let inside = r#"$| = 1; $SIG{INT} = sub { print "cau" . "ght\n"; exit 7 }; print "rea" . "dy\n" if -t STDIN && -t STDOUT; select undef, undef, undef, 0.1 while 1"#;
    let exec = lab.exec("a", "perl", &["-e", inside]);
    let words: Vec<String> = std::iter::once(exec.get_program())
        .chain(exec.get_args())
        .map(|word| format!("'{}'", word.to_str().unwrap().replace('\'', r"'\''")))
        .collect();
    // script(1) provides a terminal, and writes the command first; Ctrl-C is typed when the program is ready.
    let typing = lab.folder.file("typescript");
    let keys = format!("until grep -qs ready {typing}; do sleep 0.05; done; printf '\\003'");
    let terminal = r#"sh -c "$0" | script --quiet --flush --return --command "$1" "$2""#;
    let mut command = Command::new("sh");
    let program = format!("exec {}", words.join(" "));
    command.args(["-c", terminal, &keys, &program, &typing]);
    command.env("LINERATE_RUN", lab.folder.path()).env("SHELL", "/bin/sh");
    let done = Process::start(command).finish(TIMEOUT);
    let typescript = std::fs::read_to_string(&typing).unwrap();
    assert_eq!(done.code, Some(7), "{done:?} {typescript:?}");
    assert!(typescript.contains("caught"), "{typescript:?}");
}

#[test]
#[ignore = "needs root and network namespaces"]
fn the_program_of_exec_needs_no_dashes_and_keeps_its_own() {
    let lab = RunningLab::up("pair", &[]);
    let exec = |words: &[&str]| Process::start(lab.lab(&[&["exec"], words].concat())).finish(TIMEOUT);
    let echo = ["sh", "-c", "echo $0 $*", "-x", "--", "--lab"];
    for head in [&["a"][..], &["a", "--"], &["--lab", &lab.name, "a"], &["a", "--lab", &lab.name, "--"]] {
        let done = exec(&[head, &echo].concat());
        assert_eq!(done.stdout, "-x -- --lab\n", "{done:?}");
    }
    let nothing = exec(&["a"]);
    assert!(
        nothing.code == Some(2) && nothing.stderr.contains("exec [OPTIONS] <HOST> -- <CMD>"),
        "{nothing:?}"
    );
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_lab_is_listed_and_not_made_twice() {
    let mut lab = RunningLab::up("pair", &[]);
    let first = lab.name.clone();
    assert_eq!(listed(&lab), serde_json::json!([{ "name": first, "up": true }]));
    let again = lab.try_up("pair", &[]);
    assert_eq!(again.code, Some(1), "{again:?}");
    for part in [format!("linerate lab down {first}"), "--name".to_owned()] {
        assert!(again.stderr.contains(&part), "{part}: {again:?}");
    }
    assert_eq!(lab.done("a", "ping", &["-c", "1", "-W", "5", "b"]).code, Some(0), "it has not noticed");
    signal(lab.pid(), "KILL");
    eventually("it is listed as killed", || (listed(&lab)[0]["up"] == false).then_some(()));
    // The next `up` of any name removes the remains.
    lab.name = unique();
    let next = lab.try_up("pair", &[]);
    assert!(next.code == Some(0) && next.stderr.contains(&first), "{next:?}");
    assert_eq!(listed(&lab), serde_json::json!([{ "name": lab.name, "up": true }]));
}

fn listed(lab: &RunningLab) -> serde_json::Value {
    Process::start(lab.lab(&["list", "--json"])).finish(TIMEOUT).json()["labs"].clone()
}

#[test]
#[ignore = "needs root and network namespaces"]
fn the_demonstration_shows_a_verdict_and_leaves_nothing() {
    let before = world();
    let folder = support::Folder::new();
    let mut command = linerate();
    command.env("LINERATE_RUN", folder.path()).args(["lab", "demo"]);
    let done = Process::start(command).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stdout.contains("94") && done.stdout.contains("s>b"), "{done:?}");
    let left: Vec<String> =
        world().difference(&before).filter(|thing| thing.contains("demo")).cloned().collect();
    assert!(left.is_empty(), "{left:?}");
    let files = std::fs::read_dir(folder.path().join("labs")).unwrap().count();
    assert_eq!(files, 0);
}
