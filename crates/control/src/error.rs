//! Why a run could not be made, and which party is at fault.

use linerate_engine::EngineError;
use linerate_proto::PeerError;
use linerate_sock::SockError;
use thiserror::Error;

use crate::tls::TlsError;

/// Why a run could not be made or finished.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ControlError {
    /// A system call failed.
    #[error("{}", describe(.0))]
    Sock(#[from] SockError),
    /// The peer failed or violated the protocol.
    #[error("{0}")]
    Peer(#[from] PeerError),
    /// The data plane could not start.
    #[error("{0}")]
    Engine(#[from] EngineError),
    /// The control connection could not be encrypted.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The server cannot be measured with.
    #[error("{0}")]
    Server(String),
    /// This end was stopped by its user.
    #[error("stopped")]
    Stopped,
    /// Another error on this host.
    #[error("{0}")]
    Local(String),
}

/// A system error with its cause and remedy in one line.
fn describe(error: &SockError) -> String {
    let mut text = format!("{error}: {}", error.source);
    if let Some(remedy) = error.remedy() {
        text.push_str("; ");
        text.push_str(remedy);
    }
    text
}
