//! Port observations of an emulated network's switch, for programs that run in the network: a client of its
//! control socket.

mod answer;

use std::io::{ErrorKind, Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use linerate_control::{PortObservations, PortObserver, PortObserverError};
use linerate_lab::control_protocol::{self, Ask};
use linerate_sock::{Mono, clock, local};
use linerate_units::Span;

use answer::observations;

/// The environment variable with the control socket of the emulated network; set by `linerate lab exec`.
const VARIABLE: &str = "LINERATE_LAB";

/// Timeout for an answer, including the connection.
const ANSWER_TIMEOUT: Span = Span::from_secs(2);

/// Longest answer: about a hundred ports with an interval every 100 ms for minutes.
const MAX_ANSWER_BYTES: u64 = 32 << 20;

/// The switch at a control socket. Each question uses a new connection, so that a failed one does not affect
/// the next.
#[derive(Debug)]
pub struct LabPortObserver {
    socket: PathBuf,
}

impl LabPortObserver {
    /// The switch of the emulated network that this program runs in; absent on a real host.
    #[must_use]
    pub fn from_environment() -> Option<Self> {
        let socket = std::env::var_os(VARIABLE).filter(|value| !value.is_empty())?;
        Some(Self { socket: socket.into() })
    }

    /// The switch whose control socket is at this path.
    #[must_use]
    pub fn at(socket: PathBuf) -> Self {
        Self { socket }
    }

    /// Sends one line and reads one line, within [`ANSWER_TIMEOUT`].
    fn ask(&self, question: &str) -> Result<Vec<u8>, PortObserverError> {
        let deadline = clock::now() + ANSWER_TIMEOUT.as_duration();
        let mut stream = local::connect(&self.socket, ANSWER_TIMEOUT.as_duration())
            .map_err(|error| socket_error(&error.source, &format!("{}: ", self.socket.display())))?;
        stream.write_all(format!("{question}\n").as_bytes()).map_err(|error| socket_error(&error, ""))?;
        let mut line = Vec::new();
        let mut piece = vec![0; 64 << 10];
        loop {
            if deadline.has_passed() {
                return Err(PortObserverError::Silent(ANSWER_TIMEOUT));
            }
            // Zero would mean no timeout.
            let left = deadline.remaining().max(Duration::from_millis(1));
            stream.set_read_timeout(Some(left)).map_err(|error| socket_error(&error, ""))?;
            let read = match stream.read(&mut piece) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                read => read.map_err(|error| socket_error(&error, ""))?,
            };
            if read == 0 {
                return Err(PortObserverError::Gone(
                    "it disconnected before its answer was complete".to_owned(),
                ));
            }
            let fresh = &piece[..read];
            let end = fresh.iter().position(|byte| *byte == b'\n');
            line.extend_from_slice(&fresh[..end.unwrap_or(read)]);
            if line.len() as u64 > MAX_ANSWER_BYTES {
                return Err(PortObserverError::Garbled(format!(
                    "it is longer than {} MiB",
                    MAX_ANSWER_BYTES >> 20
                )));
            }
            if end.is_some() {
                return Ok(line);
            }
        }
    }
}

/// Converts a socket error; a timeout is not an error of the system.
fn socket_error(error: &std::io::Error, place: &str) -> PortObserverError {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => PortObserverError::Silent(ANSWER_TIMEOUT),
        _ => PortObserverError::Gone(format!("{place}{error}")),
    }
}

impl PortObserver for LabPortObserver {
    fn observe(&self, from: Mono, to: Mono) -> Result<PortObservations, PortObserverError> {
        let garbled = |error: serde_json::Error| PortObserverError::Garbled(error.to_string());
        let question = Ask::PortHistory { from_ns: from.as_ns(), to_ns: to.as_ns() };
        let line = self.ask(&serde_json::to_string(&question).map_err(garbled)?)?;
        // Not decoded as an `Answer`: the expected type is known, and other versions may name their answers
        // differently.
        let seen: control_protocol::PortHistory = serde_json::from_slice(&line).map_err(garbled)?;
        observations(seen)
    }
}
