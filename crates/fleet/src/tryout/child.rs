//! The servers and agents of a fleet for trying out, as processes that this one has started.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use linerate_runner::whole_private_file;
use linerate_sock::process::{PidFd, Signal};
use linerate_sock::{clock, thread};

use super::error::{TryOutError, TryOutWarning};
use super::{START_TIMEOUT, TOKEN_FILE};

/// How long a server or an agent may take to end. What it has not sent then, it has kept.
pub(super) const CHILD_GRACE: Duration = Duration::from_secs(4);

/// A server or an agent.
#[derive(Debug)]
struct HostProcess {
    name: String,
    child: Child,
    log: PathBuf,
    /// Whether its end was reported.
    reported: bool,
}

/// All servers and agents. They end when this is dropped.
#[derive(Debug, Default)]
pub(super) struct HostProcesses(Vec<HostProcess>);

impl HostProcesses {
    /// What should be known about those that have ended by themselves, once.
    pub(super) fn ended(&mut self) -> Vec<TryOutWarning> {
        let mut warnings = Vec::new();
        for one in self.0.iter_mut().filter(|one| !one.reported) {
            one.reported = one.child.try_wait().is_ok_and(|status| status.is_some());
            if one.reported {
                warnings.push(TryOutWarning::Ended { name: one.name.clone(), log: one.log.clone() });
            }
        }
        warnings
    }

    /// Starts the server of a host on a port of this machine, the preferred one if no other program has it; its number
    /// and its port.
    pub(super) fn serve(
        &mut self,
        program: &Path,
        folder: &Path,
        host: &str,
        preferred: Option<u16>,
    ) -> Result<(u32, u16), TryOutError> {
        let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
        let kept = preferred.filter(is_free).and_then(|port| start_server(program, folder, host, port).ok());
        let (server, port) = kept.map_or_else(|| start_server(program, folder, host, 0), Ok)?;
        let process = server.child.id();
        self.0.push(server);
        Ok((process, port))
    }

    /// Starts the agent of a host with the server of the host; its number.
    pub(super) fn enrolled(
        &mut self,
        program: &Path,
        folder: &Path,
        (host, enrollment): (&str, &Path),
        port: u16,
    ) -> Result<u32, TryOutError> {
        let mut command = Command::new(program);
        command.args(["agent", "run"]).arg(enrollment).arg("--agent-token-file").arg(folder.join(TOKEN_FILE));
        command.arg("--server").arg(format!("127.0.0.1:{port}"));
        command.arg("--dir").arg(agent_folder(folder, host)).stdout(Stdio::null());
        let agent = start(command, folder, "agent", host)?;
        let process = agent.child.id();
        self.0.push(agent);
        Ok(process)
    }
}

impl Drop for HostProcesses {
    fn drop(&mut self) {
        let is_running = |one: &mut HostProcess| matches!(one.child.try_wait(), Ok(None));
        self.0.retain_mut(is_running);
        // None of them has been waited for, so their numbers are still their own.
        let ends: Vec<_> = self.0.iter().map(|one| PidFd::open(one.child.id())).collect();
        for end in ends.iter().flatten() {
            // Fails if it has ended in the meantime.
            let _ = end.signal(Signal::Terminate);
        }
        let until = clock::now() + CHILD_GRACE;
        for (one, end) in self.0.iter_mut().zip(ends) {
            if !end.is_ok_and(|end| end.wait(until).unwrap_or(false)) {
                let _ = one.child.kill();
            }
            let _ = one.child.wait();
        }
    }
}

/// Where the agent of a host keeps what it must not forget.
pub(super) fn agent_folder(folder: &Path, host: &str) -> PathBuf {
    folder.join(format!("agent-{host}"))
}

/// An empty file for the messages of a process.
pub(super) fn message_file(path: &Path) -> io::Result<File> {
    whole_private_file(path, b"")?;
    OpenOptions::new().append(true).open(path)
}

/// The last message in such a file.
pub(super) fn last_message(path: &Path) -> String {
    let said = fs::read_to_string(path).unwrap_or_default();
    let last = said.lines().rfind(|line| !line.is_empty()).unwrap_or("it said nothing");
    last.trim_start_matches("error: ").to_owned()
}

/// Starts a process of a host: in a group of its own, so that Ctrl-C on a terminal does not end it before the coordinator.
fn start(mut command: Command, folder: &Path, kind: &str, host: &str) -> Result<HostProcess, TryOutError> {
    let name = format!("the {kind} of {host}");
    let log = folder.join(format!("{kind}-{host}.log"));
    let failed = |error: io::Error| TryOutError::Child { name: name.clone(), why: error.to_string().into() };
    command.env("LINERATE_ARCHIVE", folder.join(format!("{host}.sqlite")));
    command.process_group(0).stdin(Stdio::null()).stderr(message_file(&log).map_err(failed)?);
    let child = command.spawn().map_err(failed)?;
    Ok(HostProcess { name, child, log, reported: false })
}

/// Starts a server on a port, or with 0 on a free one; the port that it listens on.
fn start_server(
    program: &Path,
    folder: &Path,
    host: &str,
    port: u16,
) -> Result<(HostProcess, u16), TryOutError> {
    let mut command = Command::new(program);
    command.args(["serve", "--bind", "127.0.0.1", "--port", &port.to_string()]);
    command.args(["--no-settings", "--json", "--agent-token-file"]).arg(folder.join(TOKEN_FILE));
    command.stdout(Stdio::piped());
    let mut server = start(command, folder, "server", host)?;
    match server.child.stdout.take().ok_or_else(String::new).and_then(listening_port) {
        Ok(port) => Ok((server, port)),
        Err(why) => {
            let _ = server.child.kill();
            let _ = server.child.wait();
            let why = if why.is_empty() { last_message(&server.log) } else { why };
            Err(TryOutError::Child { name: server.name, why: why.into() })
        }
    }
}

/// The port that a server says it listens on; otherwise, why it is not known, empty if the server has ended.
fn listening_port(out: ChildStdout) -> Result<u16, String> {
    let (send, port) = channel();
    // Reads on afterwards, so that the server is never blocked by its output.
    let read = move || {
        for line in BufReader::new(out).lines() {
            let Ok(line) = line else { return };
            if let Some(port) = port_in(&line) {
                let _ = send.send(port);
            }
        }
    };
    thread::spawn("server-output", read).map_err(|error| error.to_string())?;
    port.recv_timeout(START_TIMEOUT).map_err(|error| match error {
        RecvTimeoutError::Disconnected => String::new(),
        RecvTimeoutError::Timeout => format!("it does not listen after {} s", START_TIMEOUT.as_secs()),
    })
}

/// The port in the line of JSON with which a server says that it listens.
fn port_in(line: &str) -> Option<u16> {
    let event: serde_json::Value = serde_json::from_str(line).ok()?;
    (event.get("event")? == "listening").then(|| event.get("port")?.as_u64()?.try_into().ok())?
}
