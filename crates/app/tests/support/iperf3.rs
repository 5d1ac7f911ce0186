//! iperf3, the real one and ours, on a host of the test.

use std::process::Command;

use serde_json::Value;

use super::{Done, Netns, Process, TIMEOUT};

/// iperf3's default port, which is free in every [`Netns`].
pub(crate) const PORT: u16 = 5201;

/// The implementation of iperf3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Iperf3 {
    /// The real program.
    Real,
    /// A newer real program, of `scripts/newer-iperf3.sh`.
    Newer,
    /// `linerate iperf3`.
    Ours,
}

/// A newer iperf3 than the installed one.
const NEWER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/peers/iperf3");

impl Iperf3 {
    /// Whether this program is on this machine.
    pub(crate) fn is_there(self) -> bool {
        self != Self::Newer || std::path::Path::new(NEWER).exists()
    }

    /// Its command line.
    pub(crate) fn command(self, on: &Netns, args: &[&str]) -> Command {
        match self {
            Self::Real => on.exec("iperf3", args),
            Self::Newer => on.exec(NEWER, args),
            Self::Ours => on.exec(env!("CARGO_BIN_EXE_linerate"), &[&["iperf3"], args].concat()),
        }
    }

    /// Starts a server, with `-s`, and waits until it listens.
    pub(crate) fn serve(self, on: &Netns, args: &[&str]) -> Process {
        self.serve_with(on, args, &[])
    }

    /// The same, with environment variables.
    pub(crate) fn serve_with(self, on: &Netns, args: &[&str], environment: &[(&str, &str)]) -> Process {
        let mut command = self.command(on, &[&["-s"], args].concat());
        command.envs(environment.iter().copied());
        let server = Process::start(command);
        on.await_listener(PORT);
        server
    }

    /// Starts a client of 127.0.0.1, with `-c`.
    pub(crate) fn start(self, on: &Netns, args: &[&str]) -> Process {
        Process::start(self.command(on, &[&["-c", "127.0.0.1"], args].concat()))
    }

    /// Runs a client to its end.
    pub(crate) fn ask(self, on: &Netns, args: &[&str]) -> Done {
        self.start(on, args).finish(TIMEOUT)
    }
}

/// Output of both ends of one test.
#[derive(Debug)]
pub(crate) struct Both {
    pub(crate) client: Done,
    pub(crate) server: Done,
}

/// Runs one test between a client and a one-off server, which must both succeed.
pub(crate) fn both(client: Iperf3, client_args: &[&str], server: Iperf3, server_args: &[&str]) -> Both {
    both_on(&Netns::new(), client, client_args, server, server_args)
}

/// The same on an existing host.
pub(crate) fn both_on(
    netns: &Netns,
    client: Iperf3,
    client_args: &[&str],
    server: Iperf3,
    server_args: &[&str],
) -> Both {
    let serving = server.serve(netns, &[&["-1"], server_args].concat());
    let client = client.ask(netns, client_args);
    assert_eq!(client.code, Some(0), "{client:?}");
    let server = serving.finish(TIMEOUT);
    assert_eq!(server.code, Some(0), "{server:?}");
    Both { client, server }
}

/// The same with `-J` at both ends; returns their documents, the client's first.
pub(crate) fn both_json(client: Iperf3, args: &[&str], server: Iperf3) -> (Value, Value) {
    both_json_on(&Netns::new(), client, args, server)
}

/// The same on an existing host.
pub(crate) fn both_json_on(netns: &Netns, client: Iperf3, args: &[&str], server: Iperf3) -> (Value, Value) {
    let both = both_on(netns, client, &[args, &["-J"]].concat(), server, &["-J"]);
    let documents = (both.client.json(), both.server.json());
    assert_eq!(documents.0.get("error"), None, "{both:?}");
    assert_eq!(documents.1.get("error"), None, "{both:?}");
    documents
}

/// The number at a path like `/end/sum/bytes`.
pub(crate) fn number(document: &Value, path: &str) -> u64 {
    let found = document.pointer(path).and_then(Value::as_u64);
    assert!(found.is_some(), "no count {path} in {document}");
    found.unwrap_or_default()
}

/// Elements of the list at a path.
pub(crate) fn list<'a>(document: &'a Value, path: &str) -> &'a [Value] {
    let found = document.pointer(path).and_then(Value::as_array);
    assert!(found.is_some(), "no list {path} in {document}");
    found.map_or(&[], Vec::as_slice)
}
