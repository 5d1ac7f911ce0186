//! What the coordinators of a fleet and its agents say to each other through a broker: signed documents.
//!
//! A message ([`seal`], [`open`]) is from an agent or from the coordinators, which is the centre of a fleet, and says so in
//! what is signed. There is no dialogue: every message may be lost, repeated or late, and what follows from it is decided
//! in `linerate-fleet`.
//!
//! ```
//! use linerate_proto::fleet::{CentreMessage, FleetKey, MessageOrigin, ResultDigest, StoredResult, open, seal};
//!
//! let key = FleetKey::from_bytes([1; 32]).unwrap();
//! let digest = ResultDigest::of(["the parts"]);
//! let stored = StoredResult { agent: "a".into(), run: "5e7f".into(), epoch: 1, part: None, digest };
//! let message = CentreMessage::Stored(stored);
//! let bytes = seal(MessageOrigin::Centre, &key, &message);
//! assert_eq!(open(MessageOrigin::Centre, &key.public(), &bytes), Some(message));
//! // Nobody can play it back as what an agent says.
//! assert_eq!(open::<CentreMessage>(MessageOrigin::Agent, &key.public(), &bytes), None);
//! ```

mod bounds;
mod checked_text;
mod key;
mod message;
#[cfg(test)]
mod message_tests;

pub use bounds::MAX_BEGUN;
pub use checked_text::{CalendarProof, PlainName, ResultDigest, ResultPartText};
pub use key::{FleetKey, FleetKeyError, PublicFleetKey};
pub use message::{
    AgentCalendar, AgentReport, AgentRun, CentreAnswer, CentreMessage, FleetAgentMessage, HeldCalendar,
    MAX_PARTS, MessageOrigin, PROTOCOL, ResultDocument, ResultPart, StoredResult, is_proven, open, proof,
    seal, seal_document,
};
