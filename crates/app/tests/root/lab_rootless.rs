//! A lab of an ordinary user: in a user namespace, with a `/dev/net/tun` that is accessible to everybody.

use std::os::unix::fs::chown;
use std::process::Command;

use serde_json::Value;

use crate::support::{Done, Process, RunningLab, TIMEOUT, eventually, signal, switches, unique};

/// The user `nobody`.
const USER: u32 = 65534;

/// A user with a folder, a program, and a lab that is not running yet.
struct User {
    lab: RunningLab,
    program: String,
}

impl User {
    fn new() -> Self {
        let lab = RunningLab::named(&unique());
        // The build directory may be inaccessible to other users.
        let program = lab.folder.file("linerate");
        std::fs::copy(env!("CARGO_BIN_EXE_linerate"), &program).unwrap();
        std::fs::create_dir(lab.folder.file("run")).unwrap();
        chown(lab.folder.file("run"), Some(USER), Some(USER)).unwrap();
        std::fs::create_dir(lab.folder.file("dev")).unwrap();
        Self { lab, program }
    }

    /// `linerate lab` of this user, with a `/dev/net/tun` of that mode.
    fn lab_with(&self, mode: &str, args: &[&str]) -> Command {
        const ENTER: &str = r#"
            set -e
            mount -t tmpfs none "$1"
            mknod -m "$2" "$1/tun" c 10 200
            mount --bind "$1/tun" /dev/net/tun
            shift 2
            exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@""#;
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", ENTER, "sh", &self.lab.folder.file("dev"), mode]);
        command.arg(&self.program).arg("lab").args(args);
        command.env("LINERATE_RUN", self.lab.folder.file("run")).env("LINERATE_ARCHIVE", ":memory:");
        command.env("NO_COLOR", "1");
        command
    }

    fn done(&self, args: &[&str]) -> Done {
        Process::start(self.lab_with("666", args)).finish(TIMEOUT)
    }

    fn up(&self) -> Value {
        let done = self.done(&["up", "pair", "--name", &self.lab.name, "--json"]);
        assert_eq!(done.code, Some(0), "{done:?}");
        done.json()
    }

    fn down(&self) {
        let done = self.done(&["down", &self.lab.name]);
        assert_eq!(done.code, Some(0), "{done:?}");
        assert_eq!(self.lab.traces(), Vec::<String>::new());
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let _ = self.done(&["down", "--all"]);
    }
}

#[test]
#[ignore = "needs root and network namespaces"]
fn an_ordinary_user_has_a_lab_too() {
    let user = User::new();
    let status = user.up();
    assert_eq!(status["rootless"], true);
    let pid = u32::try_from(status["pid"].as_u64().unwrap()).unwrap();
    let about = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    assert!(about.contains("\nUid:\t65534\t65534\t65534\t65534\n"), "its switch is no root: {about}");
    let ping = user.done(&["exec", "a", "--", "ping", "-c", "1", "-W", "5", "b"]);
    assert_eq!(ping.code, Some(0), "{ping:?}");
    let sys = user.done(&["exec", "b", "--", "cat", "/sys/class/net/eth0/speed"]);
    assert_eq!(sys.stdout.trim(), "1000", "{sys:?}");
    let set = user.done(&["set", "link.a", "delay=25ms"]);
    assert_eq!(set.code, Some(0), "{set:?}");
    let netns = std::fs::read_dir("/run/netns").unwrap().flatten();
    let mut names = netns.map(|entry| entry.file_name().into_string().unwrap());
    assert!(!names.any(|name| name.contains(&user.lab.name)), "its namespaces have no names");
    user.down();
}

#[test]
#[ignore = "needs root and network namespaces"]
fn the_programs_of_a_killed_switch_are_ended_by_down() {
    let user = User::new();
    user.up();
    let program = user.lab_with("666", &["exec", "a", "--", "sh", "-c", "echo ready; exec sleep 600"]);
    let mut program = Process::start(program);
    eventually("it runs", || program.stdout().contains("ready").then_some(()));
    for pid in switches(&user.lab.name) {
        signal(pid, "KILL");
    }
    eventually("the switch is gone", || switches(&user.lab.name).is_empty().then_some(()));
    assert!(program.running());
    user.down();
    eventually("the program has ended", || (!program.running()).then_some(()));
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_closed_device_is_reported_with_the_remedy() {
    let user = User::new();
    let command = user.lab_with("600", &["up", "pair", "--name", &user.lab.name]);
    let done = Process::start(command).finish(TIMEOUT);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("sudo chmod 666 /dev/net/tun"), "{done:?}");
    assert_eq!(user.lab.traces(), Vec::<String>::new());
}

#[test]
#[ignore = "needs root and network namespaces"]
fn refused_user_namespaces_are_reported_with_the_remedy() {
    let user = User::new();
    // A user namespace that permits no further one: the setting belongs to the namespace, not to the machine.
    let close = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-user", "65534", "--keep-caps", "sh", "-c", close, "sh", &user.program]);
    command.args(["lab", "up", "pair", "--name", &user.lab.name]);
    command.env("LINERATE_RUN", user.lab.folder.path());
    let done = Process::start(command).finish(TIMEOUT);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("sudo sysctl user.max_user_namespaces=10000"), "{done:?}");
    assert_eq!(user.lab.traces(), Vec::<String>::new());
}
