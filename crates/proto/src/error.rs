//! Errors assign blame: the other end misbehaved, is another program, is of another version, or gave up.

use linerate_model::ForeignText;
use thiserror::Error;

/// Why a dialogue failed, and whose doing it was.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PeerError {
    /// The port belongs to another service.
    #[error(
        "the port answers as {what}, not as a linerate server; give the port of `linerate serve` with -p"
    )]
    NotOurs {
        /// What it looks like.
        what: ForeignText,
    },
    /// The peer speaks another version of the protocol.
    #[error(
        "the peer speaks protocol version {theirs}, this program {ours}; install the same version at both ends"
    )]
    Version {
        /// As the peer says.
        theirs: ForeignText,
        /// As we speak.
        ours: String,
    },
    /// The peer cannot do what the test needs.
    #[error("the server cannot do '{what}', only {can}; install the same version there")]
    Lacks {
        /// What the test needs.
        what: &'static str,
        /// What the peer says it can do.
        can: ForeignText,
    },
    /// The peer broke the protocol.
    #[error("the peer broke the protocol: {what}")]
    Misbehaved {
        /// How.
        what: ForeignText,
    },
    /// The peer refused.
    #[error("the server refused: {why}")]
    Refused {
        /// In its own words.
        why: ForeignText,
    },
    /// The peer gave up, in its own words.
    #[error("the peer gave up: {why}")]
    GaveUp {
        /// In its own words.
        why: ForeignText,
    },
    /// The control connection ended in the middle.
    #[error("the control connection was closed while {during}")]
    Closed {
        /// What was going on.
        during: &'static str,
    },
    /// The peer did not answer in time.
    #[error("no answer from the peer for {waited_s} s while {during}")]
    Silent {
        /// What was going on.
        during: &'static str,
        /// How long we waited.
        waited_s: u64,
    },
    /// This end could not do its part.
    #[error("{why}")]
    Local {
        /// What failed here.
        why: String,
    },
}
