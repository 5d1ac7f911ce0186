//! Whatever is killed at any time, the next call removes the remains.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::{self, Process, RunningLab, TIMEOUT, eventually, kill, pause, signal, switches};

/// The congestion controls that every user may choose: a lab whose hosts use another one extends the list
/// temporarily, and a lab of another test may be doing that until this test has its turn.
fn allowed() -> String {
    support::take_turn();
    std::fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control").unwrap()
}

fn up(lab: &RunningLab) -> Command {
    lab.lab(&["up", "gigabit-switch-4", "--name", &lab.name])
}

/// What to kill.
#[derive(Debug, Clone, Copy)]
enum Victim {
    Command,
    Switch,
    Both,
}

/// Kills at that moment of a command; waits for the command if it is not the victim.
fn kill_at(moment: Duration, victim: Victim, lab: &RunningLab, command: Command) {
    let process = Process::start(command);
    pause(moment);
    if !matches!(victim, Victim::Switch) {
        kill(&[process.pid()]);
    }
    if !matches!(victim, Victim::Command) {
        kill(&switches(&lab.name));
    }
    process.finish(TIMEOUT);
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_hundred_kills_at_any_moment_leave_nothing() {
    let before = allowed();
    let sample = RunningLab::named(&support::unique());
    let up_takes = Process::start(up(&sample)).finish(TIMEOUT).took;
    let down_takes = sample.down().took;
    for round in 0..100_u32 {
        let lab = RunningLab::named(&support::unique());
        // Multiples of the golden ratio spread evenly for any number of rounds.
        let share = (f64::from(round) * 0.618_033_988_749_895).fract() * 1.3;
        let victim = [Victim::Command, Victim::Switch, Victim::Both][round as usize % 3];
        let context = format!("round {round}, {victim:?} at {share:.3}");
        if round % 2 == 0 {
            kill_at(up_takes.mul_f64(share), victim, &lab, up(&lab));
            // A switch whose `up` was killed may survive: either it ends by itself, or the lab is up.
            eventually("the switch has ended or answers", || {
                let settled = switches(&lab.name).is_empty() || answers(&lab);
                settled.then_some(())
            });
        } else {
            assert_eq!(Process::start(up(&lab)).finish(TIMEOUT).code, Some(0), "{context}");
            kill_at(down_takes.mul_f64(share), victim, &lab, lab.lab(&["down", &lab.name]));
        }
        let down = Process::start(lab.lab(&["down", "--all"])).finish(TIMEOUT);
        assert_eq!(down.code, Some(0), "{context}: {down:?}");
        assert_eq!(lab.traces(), Vec::<String>::new(), "{context}");
        assert_eq!(allowed(), before, "{context}");
    }
}

fn answers(lab: &RunningLab) -> bool {
    Process::start(lab.lab(&["status", &lab.name, "--json"])).finish(TIMEOUT).code == Some(0)
}

#[test]
#[ignore = "needs root and network namespaces"]
fn labs_that_come_up_at_once_put_back_what_they_change_together() {
    let before = allowed();
    for _ in 0..5 {
        let labs = [(); 4].map(|()| RunningLab::named(&support::unique()));
        let ups = labs.each_ref().map(|lab| Process::start(up(lab)));
        for up in ups {
            let done = up.finish(TIMEOUT);
            assert_eq!(done.code, Some(0), "{done:?}");
        }
        assert_eq!(allowed(), before);
        for lab in &labs {
            let cubic = lab.done("d", "cat", &["/proc/sys/net/ipv4/tcp_congestion_control"]);
            assert_eq!(cubic.stdout.trim(), "cubic", "{cubic:?}");
            assert_eq!(lab.down().code, Some(0));
        }
    }
}

#[test]
#[ignore = "needs root and network namespaces"]
fn down_waits_for_a_lab_that_is_being_made() {
    for _ in 0..10 {
        let lab = RunningLab::named(&support::unique());
        let up = Process::start(up(&lab));
        let folder = lab.folder.path().join("labs").join(&lab.name).join("lock");
        eventually("the lab is begun", || folder.exists().then_some(()));
        let down = lab.down();
        assert_eq!(down.code, Some(0), "{down:?}");
        up.finish(TIMEOUT);
        assert_eq!(lab.traces(), Vec::<String>::new());
    }
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_lab_whose_up_command_is_gone_when_it_is_ready_is_removed() {
    let lab = RunningLab::named(&support::unique());
    let text = Process::start(lab.lab(&["show", "pair"])).finish(TIMEOUT).stdout;
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    // The process that `up` starts, but without a reader of its messages.
    let mut command = lab.lab(&["switch", "--name", &lab.name]);
    let mut switch = command.stdin(Stdio::piped()).stdout(writer).stderr(Stdio::null()).spawn().unwrap();
    let assignment = serde_json::json!({ "file": "pair", "text": text, "set": [] });
    write!(switch.stdin.take().unwrap(), "{assignment}").unwrap();
    let ended = eventually("it ends by itself", || switch.try_wait().unwrap());
    assert!(ended.success(), "it was not killed: {ended:?}");
    assert_eq!(lab.traces(), Vec::<String>::new());
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_switch_that_hangs_is_named_with_what_to_do() {
    let lab = RunningLab::up("pair", &[]);
    let pid = lab.pid();
    signal(pid, "STOP");
    let down = lab.down();
    assert_eq!(down.code, Some(1), "{down:?}");
    assert!(down.stderr.contains(&format!("kill -9 {pid}")), "{down:?}");
    signal(pid, "KILL");
    assert_eq!(lab.down().code, Some(0));
    assert_eq!(lab.traces(), Vec::<String>::new());
}
