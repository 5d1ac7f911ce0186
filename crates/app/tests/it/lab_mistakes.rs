//! Labs that cannot be created, because of a wrong description or missing permissions: which error, and what
//! helps.

use crate::support::{Done, Process, RunningLab, TIMEOUT, unique};

/// Two hosts and two switches; links are appended.
const NODES: &str = "[host.a]\n[host.b]\n[switch.s]\n[switch.t]\n";

/// `up` of a file with these links, which start at line 5.
fn up(links: &str) -> (String, Done) {
    let lab = RunningLab::named(&unique());
    let file = lab.folder.file("bad.toml");
    std::fs::write(&file, format!("{NODES}{links}")).unwrap();
    let done = lab.try_up(&file, &[]);
    assert_eq!(lab.traces(), Vec::<String>::new());
    (file, done)
}

#[test]
fn a_mistake_in_a_topology_is_named_with_its_place_and_what_to_do() {
    let link = |name: &str, ends: [&str; 2], rest: &str| {
        format!("[link.{name}]\nends = [\"{}\", \"{}\"]\n{rest}", ends[0], ends[1])
    };
    let (a, b, joint) = (link("a", ["a", "s"], ""), link("b", ["b", "t"], ""), link("st", ["s", "t"], ""));
    let with = |rest: &str| format!("{}{b}{joint}", link("a", ["a", "s"], rest));
    // Links, position after the file name, and parts of the message: the error and the remedy.
    for (links, place, parts) in [
        (format!("{}{b}{joint}", link("a", ["a", "zz"], "")), "6:14", ["'zz'", "a, b, s, t"]),
        (
            format!("{a}{b}{joint}{}", link("c", ["t", "a"], "")),
            "12:14",
            ["host 'a' is already used", "put a switch"],
        ),
        (with("rate = \"-1G\"\n"), "7:8", ["negative", "example: 100M"]),
        (with("rate = \"fast\"\n"), "7:8", ["'fast'", "100M"]),
        (with("buffer = \"1000B\"\n"), "7:10", ["1000 B", "at least 1518"]),
        (with("mtu = 9000\n"), "8:7", ["9000", "make them equal"]),
        (with("dealy = \"1ms\"\n"), "7:1", ["dealy", "delay"]),
        (format!("{a}{b}{joint}{}", link("c", ["t", "s"], "")), "12:8", ["joins", "members = 2"]),
        (
            format!("{a}{b}{joint}[switch.u]\n{}{}", link("su", ["s", "u"], ""), link("tu", ["t", "u"], "")),
            "15:8",
            ["loop", "remove one"],
        ),
        (with("rate = \n"), "7:8", ["", ""]),
    ] {
        let (file, done) = up(&links);
        assert_eq!(done.code, Some(2), "{links}: {done:?}");
        let found = done.stderr.lines().find(|line| line.contains(&format!("{file}:{place}: ")));
        let line = found.unwrap_or_default();
        assert!(
            found.is_some() && parts.iter().all(|part| line.contains(part)),
            "{links}: {place}: {done:?}"
        );
    }
}

#[test]
fn every_mistake_is_reported_at_once() {
    let (file, done) =
        up("[link.x]\nends = [\"a\", \"zz\"]\nrate = \"-1G\"\n[link.y]\nends = [\"b\", \"s\"]\n");
    assert_eq!(done.code, Some(2), "{done:?}");
    for line in [6, 7] {
        assert!(done.stderr.contains(&format!("{file}:{line}:")), "{line}: {done:?}");
    }
}

#[test]
fn an_unknown_name_is_reported_with_the_known_ones() {
    let lab = RunningLab::named(&unique());
    let unknown = lab.try_up("no-such-topology", &[]);
    assert!(unknown.code == Some(2) && unknown.stderr.contains("science-dmz"), "{unknown:?}");
    let missing = lab.try_up("no/such/file.toml", &[]);
    assert!(missing.code == Some(2) && missing.stderr.contains("no/such/file.toml"), "{missing:?}");
    for (change, part) in [("link.zz.rate=1G", "zz"), ("link.a.rate=-1", "negative"), ("rate", "=")] {
        let set = lab.try_up("pair", &[change]);
        assert!(set.code == Some(2) && set.stderr.contains(part), "{change}: {set:?}");
    }
    let name = RunningLab::named("Not A Name").try_up("pair", &[]);
    assert!(name.code == Some(2) && name.stderr.contains("a-z, 0-9"), "{name:?}");
    for command in [&["status"][..], &["down"], &["exec", "a", "--", "true"], &["set", "link.a", "loss=0"]] {
        let nothing = Process::start(lab.lab(command)).finish(TIMEOUT);
        assert!(nothing.code == Some(1) && nothing.stderr.contains("linerate lab up"), "{nothing:?}");
    }
}

#[test]
fn the_kernels_commands_are_printed_with_what_they_cannot_do() {
    let lab = RunningLab::named(&unique());
    let args = ["up", "long-haul", "--backend", "kernel", "--dry-run", "--name", "x"];
    let done = Process::start(lab.lab(&args)).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
    for part in ["ip netns add linerate-x-a", "netem", "tbf", "# differs", "ip netns delete linerate-x-a"] {
        assert!(done.stdout.contains(part), "{part}: {}", done.stdout);
    }
    assert!(std::fs::read_dir(lab.folder.path()).unwrap().next().is_none(), "nothing was done");
}
