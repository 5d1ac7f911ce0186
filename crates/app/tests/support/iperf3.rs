//! iperf3 twice, the real one and ours, on a host of a test's own.

use std::process::Command;

use serde_json::Value;

use super::{Done, Netns, Process, TIMEOUT};

/// iperf3's own port, which is free on every [`Netns`].
pub(crate) const PORT: u16 = 5201;

/// Whose iperf3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Iperf3 {
    /// The program of that name.
    Real,
    /// `linerate iperf3`.
    Ours,
}

impl Iperf3 {
    /// Its command line.
    pub(crate) fn command(self, on: &Netns, args: &[&str]) -> Command {
        match self {
            Self::Real => on.exec("iperf3", args),
            Self::Ours => on.exec(env!("CARGO_BIN_EXE_linerate"), &[&["iperf3"], args].concat()),
        }
    }

    /// A server that listens; `-s` is added.
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

    /// A client of 127.0.0.1 that runs; `-c` is added.
    pub(crate) fn start(self, on: &Netns, args: &[&str]) -> Process {
        Process::start(self.command(on, &[&["-c", "127.0.0.1"], args].concat()))
    }

    /// The same, run to its end.
    pub(crate) fn ask(self, on: &Netns, args: &[&str]) -> Done {
        self.start(on, args).finish(TIMEOUT)
    }
}

/// What both ends of one test said.
#[derive(Debug)]
pub(crate) struct Both {
    pub(crate) client: Done,
    pub(crate) server: Done,
}

/// One test between a client and a server of one run, which both have to succeed.
pub(crate) fn both(client: Iperf3, client_args: &[&str], server: Iperf3, server_args: &[&str]) -> Both {
    both_on(&Netns::new(), client, client_args, server, server_args)
}

/// The same on a host that is there already.
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

/// The same with `-J` at both ends: their documents, the client's first.
pub(crate) fn both_json(client: Iperf3, args: &[&str], server: Iperf3) -> (Value, Value) {
    both_json_on(&Netns::new(), client, args, server)
}

/// The same on a host that is there already.
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
