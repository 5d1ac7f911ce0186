//! Two hosts with agents that may change their settings.

use std::collections::BTreeMap;
use std::process::Command;

use linerate_sock::host_setting::HostSetting;
use linerate_sock::netns;

use super::{Folder, LinkSide, Net, ServeProcess};

/// Two hosts with agents, with journals in a folder of the test.
pub(crate) struct AgentPair {
    pub(crate) net: Net,
    pub(crate) folder: Folder,
    pub(crate) agents: BTreeMap<&'static str, ServeProcess>,
}

/// A folder with the token of the tests' agents in a file.
pub(crate) fn token_file() -> (Folder, String) {
    let folder = Folder::new();
    let file = folder.file("token");
    std::fs::write(&file, format!("{}\n", AgentPair::SECRET)).unwrap();
    (folder, file)
}

impl AgentPair {
    /// The token of all agents of tests.
    pub(crate) const SECRET: &str = "a secret that these tests share";

    /// Creates both hosts and starts their agents.
    pub(crate) fn new() -> Self {
        let mut agents = Self { net: Net::pair(), folder: token_file().0, agents: BTreeMap::new() };
        agents.start("a");
        agents.start("b");
        agents
    }

    fn side(host: &str) -> LinkSide {
        if host == "a" { LinkSide::A } else { LinkSide::B }
    }

    /// A command of the program on a host, with the test's folder.
    pub(crate) fn command(&self, host: &str, args: &[&str]) -> Command {
        let mut command = self.net.exec(Self::side(host), env!("CARGO_BIN_EXE_linerate"), args);
        command.env("LINERATE_RUN", self.folder.path());
        command
    }

    /// Starts the agent of a host, as its service does.
    pub(crate) fn start(&mut self, host: &'static str) {
        self.start_with(host, &[]);
    }

    pub(crate) fn start_with(&mut self, host: &'static str, args: &[&str]) {
        let mut command = self.serve(host);
        command.args(args);
        self.agents.insert(host, ServeProcess::from(command));
    }

    /// The command that starts the agent of a host.
    pub(crate) fn serve(&self, host: &str) -> Command {
        let token = self.folder.file("token");
        self.command(host, &["serve", "-p", "5201", "--json", "--agent-token-file", &token])
    }

    /// Runs `work` on a host.
    pub(crate) fn inside<T: Send>(&self, host: &str, work: impl FnOnce() -> T + Send) -> T {
        let file = std::fs::File::open(format!("/run/netns/{}", self.net.name(Self::side(host)))).unwrap();
        netns::with_netns_fd(&file, work).unwrap()
    }

    /// All host settings of both hosts.
    pub(crate) fn state(&self) -> Vec<String> {
        let at = |host| {
            self.inside(host, || HostSetting::ALL.map(|setting| setting.read("veth0").unwrap()).to_vec())
        };
        [at("a"), at("b")].concat()
    }

    /// Whether no journal or lock is left.
    pub(crate) fn is_clean(&self) -> bool {
        let settings = self.folder.path().join("settings");
        std::fs::read_dir(settings).map_or(true, |files| files.count() == 0)
    }
}
