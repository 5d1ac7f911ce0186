//! Errors of dialogues. Each names the end at fault: the peer misbehaved, is another program or version, or
//! timed out.

use linerate_model::ForeignText;
use thiserror::Error;

/// Why a dialogue failed, and which end is at fault.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PeerError {
    /// The port belongs to another service.
    #[error("{what} answers on this port, not a linerate server; give the port of `linerate serve` with -p")]
    NotOurs {
        /// The service that it appears to be.
        what: ForeignText,
    },
    /// The peer speaks another version of the protocol.
    #[error(
        "the peer uses protocol version {theirs} and this program {ours}; install the same version at both \
         ends"
    )]
    Version {
        /// The peer's version.
        theirs: ForeignText,
        /// Our version.
        ours: String,
    },
    /// The peer cannot do what the test needs.
    #[error("the server does not support '{what}', only {can}; install the same version there")]
    Lacks {
        /// What the test needs.
        what: &'static str,
        /// The capabilities that the peer announced.
        can: ForeignText,
    },
    /// The peer broke the protocol.
    #[error("the peer broke the protocol: {what}")]
    Misbehaved {
        /// The violation.
        what: ForeignText,
    },
    /// The peer refused.
    #[error("the server refused: {why}")]
    Refused {
        /// The peer's reason.
        why: ForeignText,
    },
    /// The peer gave up.
    #[error("the peer gave up: {why}")]
    GaveUp {
        /// The peer's reason.
        why: ForeignText,
    },
    /// The control connection ended in the middle.
    #[error("the control connection was closed while {during}")]
    Closed {
        /// The step of the dialogue.
        during: &'static str,
    },
    /// The peer did not answer in time.
    #[error("no answer from the peer for {waited_s} s while {during}")]
    Silent {
        /// The step of the dialogue.
        during: &'static str,
        /// How long we waited, seconds.
        waited_s: u64,
    },
    /// This end could not do its part.
    #[error("{why}")]
    Local {
        /// The error.
        why: String,
    },
}
