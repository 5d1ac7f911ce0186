//! The hosts of a page: two, connected by a link of 100 Mb/s, each with a home of its own.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::Duration;

use super::page::workspace;
use crate::support::{Done, Folder, LinkSide, Net, Process, eventually, linerate, signal, started_by};

/// Time for a command.
const TIMEOUT: Duration = Duration::from_secs(180);

/// The only address of each host, so that pages show one command for it.
const ADDRESSES: [(LinkSide, &str); 2] = [(LinkSide::A, "10.84.0.2/24"), (LinkSide::B, "10.84.0.1/24")];

/// Names of the far host on every page.
const FAR_NAMES: [&str; 5] = ["server", "far", "b", "c", "far.example.org"];

/// Where a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum GuideHost {
    Near,
    Far,
    /// The machine itself.
    Outside,
}

impl GuideHost {
    /// The host with this name in a page's comments.
    pub(super) fn named(name: &str) -> Self {
        match name {
            "near" => Self::Near,
            "far" => Self::Far,
            "outside" => Self::Outside,
            _ => panic!("no host {name:?}: near, far, outside"),
        }
    }

    fn folder(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Far => "far",
            Self::Outside => "outside",
        }
    }
}

pub(super) struct GuideHosts {
    /// Commands that stay.
    staying: Vec<(GuideHost, Process)>,
    net: Net,
    folder: Folder,
    names: BTreeMap<String, GuideHost>,
}

impl GuideHosts {
    pub(super) fn new() -> Self {
        let hosts = Self {
            staying: Vec::new(),
            net: Net::pair(),
            folder: Folder::new(),
            names: FAR_NAMES.into_iter().map(|name| (name.to_owned(), GuideHost::Far)).collect(),
        };
        for side in [LinkSide::A, LinkSide::B] {
            hosts.net.tbf(side, "100mbit", "32k", "50ms");
        }
        for (side, address) in ADDRESSES {
            for args in
                [&["address", "flush", "dev", "veth0"][..], &["address", "add", address, "dev", "veth0"]]
            {
                assert!(hosts.net.exec(side, "ip", args).status().unwrap().success());
            }
        }
        for name in ["near", "far", "outside", "work", "bin"] {
            std::fs::create_dir(hosts.path(name)).unwrap();
        }
        symlink(env!("CARGO_BIN_EXE_linerate"), hosts.folder.path().join("bin/linerate")).unwrap();
        hosts.show_names();
        hosts
    }

    fn path(&self, name: &str) -> String {
        self.folder.file(name)
    }

    /// A file in the working folder of all commands.
    pub(super) fn work(&self, name: &str) -> String {
        format!("{}/{name}", self.path("work"))
    }

    /// Gives a host a name.
    pub(super) fn name(&mut self, name: &str, host: GuideHost) {
        self.names.insert(name.to_owned(), host);
        self.show_names();
    }

    /// The host whose name is a prompt; the near one for other names.
    pub(super) fn prompted(&self, prompt: &str) -> GuideHost {
        self.names.get(prompt).copied().unwrap_or(GuideHost::Near)
    }

    /// Writes the names in the form of hosts(5).
    fn show_names(&self) {
        let address = |host| if host == GuideHost::Far { "10.84.0.1" } else { "10.84.0.2" };
        let lines = self.names.iter().map(|(name, host)| format!("{} {name}\n", address(*host)));
        let text = format!("127.0.0.1 localhost\n{}", lines.collect::<String>());
        std::fs::write(self.path("hosts"), text).unwrap();
    }

    /// The shell on a host with a script, started through `unshare` with these flags.
    fn shell(&self, host: GuideHost, unshare: &[&str], script: &str) -> Command {
        let script = format!("cd \"$GUIDE_WORK\" && {script}");
        // The names of the page, in a mount namespace of the command.
        let named = format!("mount --bind \"$GUIDE_HOSTS\" /etc/hosts && {script}");
        let shell = [&["--mount"], unshare, &["sh", "-c", &named]].concat();
        let mut command = match host {
            GuideHost::Near => self.net.exec(LinkSide::A, "unshare", &shell),
            GuideHost::Far => self.net.exec(LinkSide::B, "unshare", &shell),
            GuideHost::Outside => started_by("sh", &["-c", &script], &linerate()),
        };
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.path("bin")));
        command.env("HOME", self.path(host.folder())).env("GUIDE_HOSTS", self.path("hosts"));
        command.env("GUIDE_WORK", self.path("work")).env("WORKSPACE", workspace());
        command.env("LINERATE_RUN", self.path("run"));
        command.env_remove("LINERATE_ARCHIVE").env_remove("LINERATE_CALIBRATION");
        for folder in ["XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"] {
            command.env_remove(folder);
        }
        command
    }

    /// Runs a command to its end, with standard error in its output.
    pub(super) fn run(&self, host: GuideHost, text: &str) -> Done {
        // What it leaves in the background ends with it.
        let unshare = ["--pid", "--fork", "--kill-child"];
        Process::start(self.shell(host, &unshare, &format!("exec 2>&1; {text}"))).finish(TIMEOUT)
    }

    /// Starts a command that stays; its port is open when it is ready. One that stays on this host already is ended.
    pub(super) fn start(&mut self, host: GuideHost, text: &str, port: u16) {
        self.end(host);
        let mut process = Process::start(self.shell(host, &[], &format!("exec 2>&1; exec {text}")));
        let side = match host {
            GuideHost::Near => LinkSide::A,
            GuideHost::Far => LinkSide::B,
            GuideHost::Outside => panic!("nothing stays outside"),
        };
        eventually("a command that stays is ready", || {
            assert!(process.running(), "{text}: {}", process.stdout());
            let ready =
                if port == 0 { !process.stdout().is_empty() } else { self.net.has_port(side, port, false) };
            ready.then_some(())
        });
        self.staying.push((host, process));
    }

    /// What the command that stays on a host has printed so far.
    pub(super) fn printed(&self, host: GuideHost) -> String {
        let found = self.staying.iter().rev().find(|(where_, _)| *where_ == host);
        found.map_or_else(String::new, |(_, process)| process.stdout())
    }

    fn end(&mut self, host: GuideHost) {
        let (ending, staying) =
            std::mem::take(&mut self.staying).into_iter().partition(|(at, _)| *at == host);
        self.staying = staying;
        let ending: Vec<(GuideHost, Process)> = ending;
        for (_, process) in ending {
            signal(process.pid(), "TERM");
            process.finish(TIMEOUT);
        }
    }
}
