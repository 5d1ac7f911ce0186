//! What the machine or another program prevents when a lab comes up: the message names it, and nothing is left.

use std::process::Command;

use crate::support::{Done, Process, RunningLab, TIMEOUT, unique, world};

/// `up` of a pair in a new mount namespace that a script prepares before it executes its arguments.
fn up_where(script: &str, lab: &RunningLab) -> Done {
    let mut command = Command::new("unshare");
    let up = lab.lab(&["up", "pair", "--name", &lab.name]);
    command.args(["--mount", "sh", "-c", &format!("set -e; {script}; exec \"$@\""), "sh"]);
    command.arg(up.get_program()).args(up.get_args()).env("LINERATE_RUN", lab.folder.path());
    Process::start(command).finish(TIMEOUT)
}

#[test]
#[ignore = "needs root and network namespaces"]
fn what_the_host_forbids_is_reported_with_the_remedy_and_nothing_is_left() {
    for (script, remedy) in [
        ("mount -t tmpfs none /dev/net", "modprobe tun"),
        // Root in a container with few capabilities.
        ("exec setpriv --bounding-set -sys_admin,-net_admin \"$@\"", "CAP_SYS_ADMIN"),
        ("exec setpriv --bounding-set -net_admin \"$@\"", "CAP_NET_ADMIN"),
    ] {
        let lab = RunningLab::named(&unique());
        let done = up_where(script, &lab);
        assert!(done.code == Some(1) && done.stderr.contains(remedy), "{script}: {done:?}");
        assert_eq!(lab.traces(), Vec::<String>::new(), "{script}");
    }
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_name_that_is_somebody_elses_is_never_touched() {
    for backend in ["own", "kernel"] {
        let lab = RunningLab::named(&unique());
        let theirs = format!("linerate-{}-b", lab.name);
        assert!(Command::new("ip").args(["netns", "add", &theirs]).status().unwrap().success());
        let up = lab.lab(&["up", "pair", "--name", &lab.name, "--backend", backend]);
        let done = Process::start(up).finish(TIMEOUT);
        let still = world().contains(&theirs);
        let _ = lab.down();
        let after = world().contains(&theirs);
        Command::new("ip").args(["netns", "del", &theirs]).status().unwrap();
        assert!(done.code == Some(1) && done.stderr.contains(&theirs), "{done:?}");
        assert!(done.stderr.contains("--name"), "the remedy: {done:?}");
        assert!(still && after, "{backend}");
        assert_eq!(lab.traces(), Vec::<String>::new(), "{backend}");
    }
}
