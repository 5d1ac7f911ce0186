//! Our own wire protocols as state machines without I/O: [`native`] for measurements, [`agent`] for a
//! coordinator that controls other hosts, and [`fleet`] for the agents of a fleet and its coordinators.
//!
//! Each protocol has one folder with only its bytes (`message` and below) and its dialogue (a [`Session`] or an
//! [`agent::AgentDialogue`]); `fleet` has no dialogue and needs the feature of its name. Decoders accept any bytes without
//! panic and are fuzzed. Sockets, sleeping and threads are in other crates. Foreign tools are in the crate
//! `linerate-compat`.
//!
//! ```
//! use linerate_model::sniff::Match;
//! use linerate_proto::native::{NATIVE, Preface};
//!
//! let start = Preface::CONTROL.encode();
//! assert_eq!((NATIVE.sniff)(&start), Match::Yes);
//! assert_eq!(Preface::decode(&start), Ok(Some(Preface::CONTROL)));
//! assert_eq!(Preface::decode(&start[..20]), Ok(None), "more bytes are needed");
//! assert_eq!((NATIVE.sniff)(b"GET / HTTP/1.1"), Match::No);
//! ```

pub mod agent;
mod allowance;
mod error;
#[cfg(feature = "fleet")]
pub mod fleet;
pub mod native;
mod protocol;
mod session;
mod ticket;
mod watch;

pub use error::PeerError;
pub use protocol::Protocol;
pub use session::{
    Admission, Ended, FlowOrder, Hello, Progress, QueuePosition, Session, SessionInput, SessionOutput,
    SweepTrial, TrialCount, Welcome,
};
pub use ticket::Ticket;
