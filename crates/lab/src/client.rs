//! Requests to the switch of a running lab.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::time::Duration;

use linerate_sock::local;

use crate::control_protocol::{Answer, Ask};

/// The longest answer that is read: the whole time of a large network.
const MAX_ANSWER_BYTES: u64 = 256 << 20;

/// Why a switch did not answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// No process listens on the socket any more.
    #[error(
        "the lab's switch does not answer; `linerate lab down` removes what is left of the lab, and \
         `linerate lab up` starts a new one"
    )]
    Gone(#[source] std::io::Error),
    /// The lab has no switch.
    #[error(
        "this lab runs in the kernel and cannot be changed while it is up; start it again with --set, use \
         tc in its namespaces, or leave out --backend kernel"
    )]
    Kernel,
    /// It refused the request.
    #[error("{0}")]
    Refused(String),
    /// Another version of linerate, or not a switch at all.
    #[error("the answer of the lab's switch cannot be read; another version of linerate may have started it")]
    Strange,
}

/// Sends a request to the switch whose control socket is at `path` and waits for its answer, at most
/// `timeout`.
///
/// # Errors
/// The switch is gone or does not answer, refuses, or its answer is not understood.
pub fn ask(path: &Path, question: &Ask, timeout: Duration) -> Result<Answer, AskError> {
    let mut stream = local::connect(path, timeout).map_err(|error| AskError::Gone(error.source))?;
    stream.set_read_timeout(Some(timeout)).map_err(AskError::Gone)?;
    stream.set_write_timeout(Some(timeout)).map_err(AskError::Gone)?;
    let mut line = serde_json::to_string(question).map_err(|_| AskError::Strange)?;
    line.push('\n');
    stream.write_all(line.as_bytes()).map_err(AskError::Gone)?;
    let mut text = String::new();
    BufReader::new(stream).take(MAX_ANSWER_BYTES).read_line(&mut text).map_err(AskError::Gone)?;
    if text.is_empty() {
        return Err(AskError::Gone(std::io::ErrorKind::UnexpectedEof.into()));
    }
    match serde_json::from_str(&text) {
        Ok(Answer::Refused { why }) => Err(AskError::Refused(why)),
        Ok(answer) => Ok(answer),
        Err(_) => Err(AskError::Strange),
    }
}
