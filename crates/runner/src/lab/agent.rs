//! Agents on the hosts of a lab.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::Ipv6Addr;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;

use linerate_control::{Guardians, Server, ServerConfig, ServerEvent, ServerHandle, Token};
use linerate_lab::{LabHandle, enter};

use super::{LabPrograms, LabRunError};
use crate::LabPortObserver;

const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// More is not a token.
const MAX_TOKEN_BYTES: u64 = 64 << 10;

/// A process that is an agent on a host of the lab, terminated on drop.
pub(super) struct LabAgent {
    host: String,
    child: Child,
}

impl LabAgent {
    pub(super) fn start(
        programs: &dyn LabPrograms,
        lab: &LabHandle,
        host: &str,
        port: u16,
        secret: &str,
    ) -> Result<Self, LabRunError> {
        let failed = |error| LabRunError::AgentNotStarted { host: host.to_owned(), error };
        let mut child = programs
            .agent(lab, host, port)
            .map_err(failed)?
            // In its own process group, as the coordinator still needs its agents after Ctrl-C.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        // End of file marks the token as complete.
        let written = child.stdin.take().map(|mut input| input.write_all(secret.as_bytes()));
        let agent = Self { host: host.to_owned(), child };
        written.transpose().map_err(failed)?;
        Ok(agent)
    }

    /// Waits for the first line of output, which means that it listens. Later output is not read, which the
    /// agent tolerates.
    pub(super) fn listens(&mut self) -> Result<(), LabRunError> {
        let mut line = String::new();
        let read = self.child.stdout.take().map(|out| BufReader::new(out).read_line(&mut line));
        match read {
            Some(Ok(1..)) => Ok(()),
            _ => Err(LabRunError::AgentEnded(self.host.clone())),
        }
    }
}

impl Drop for LabAgent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Serves as the agent of a host at `port`, in the process that [`LabPrograms::agent`] started. The process must
/// have a single thread, which moves to the host. The token is read from standard input, and one line is written
/// to standard output when the agent listens. `guardians` restore the host's settings if the agent is killed;
/// without them they disappear with the host.
///
/// # Errors
/// The lab has no such host, the token cannot be read, or the port is taken. Otherwise the agent serves until it is
/// killed.
pub fn serve_on_host(
    lab: &LabHandle,
    host: &str,
    port: u16,
    guardians: Option<Arc<dyn Guardians>>,
) -> Result<(), LabRunError> {
    let status = lab.status(ANSWER_TIMEOUT)?;
    let found = status.hosts.iter().find(|known| known.name == host);
    enter(lab, found.ok_or_else(|| LabRunError::NoHost(host.to_owned()))?, &status)?;
    let mut secret = String::new();
    let read = std::io::stdin().take(MAX_TOKEN_BYTES).read_to_string(&mut secret);
    read.map_err(|error| LabRunError::Token(error.into()))?;
    let token = Token::new(&secret).map_err(|error| LabRunError::Token(error.into()))?;
    let config = ServerConfig {
        addresses: vec![(Ipv6Addr::UNSPECIFIED, port).into()],
        agent_token: Some(token),
        settings: Some(lab.folder().join("settings")),
        guardians,
        observer: Some(Arc::new(LabPortObserver::at(lab.socket()))),
        ..ServerConfig::default()
    };
    Server::bind(config)?.run(Arc::new(ServerHandle::new()?), |event| {
        if let ServerEvent::Listening(address) = event {
            // A starter that is gone kills this process.
            let mut out = std::io::stdout().lock();
            let _ = writeln!(out, "{address}").and_then(|()| out.flush());
        }
    })?;
    Ok(())
}
