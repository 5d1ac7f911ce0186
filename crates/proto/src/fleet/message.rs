//! What agents and coordinators say to each other.
//!
//! A message is one line of text, `linerate-fleet 1 SIGNATURE`, and then a document of JSON. The signature (Ed25519,
//! base64url) is over `linerate-fleet 1 agent` or `linerate-fleet 1 centre`, a line feed, and the document. Unknown members
//! are ignored, so that programs of different versions understand each other; a document that cannot be understood is
//! dropped, and its sender repeats what matters.

use std::io::Read;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use linerate_model::calendar::{CalendarRunState, CellResult, UnixTime};
use linerate_model::{ForeignText, TestSpec};
use linerate_units::Span;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::key::{FleetKey, PublicFleetKey};

/// Version of the protocol. Another one begins when an older program would do something wrong.
pub const PROTOCOL: u32 = 1;
/// The longest message.
const MAX_MESSAGE_BYTES: usize = 1 << 20;
/// The longest document of a result, uncompressed.
const MAX_RESULT_BYTES: u64 = 64 << 20;
/// Characters of a result in one message.
const PART_CHARS: usize = 256 << 10;
/// Parts of a result at most.
pub const MAX_PARTS: u32 = 512;

/// Who says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageOrigin {
    /// An agent, with its own key.
    Agent,
    /// The coordinators of the fleet, with the key that they share.
    Centre,
}

impl MessageOrigin {
    fn signed(self, document: &[u8]) -> Vec<u8> {
        let who = match self {
            Self::Agent => "agent",
            Self::Centre => "centre",
        };
        let mut bytes = format!("linerate-fleet {PROTOCOL} {who}\n").into_bytes();
        bytes.extend_from_slice(document);
        bytes
    }
}

/// A message as it is sent.
#[must_use]
pub fn seal<T: Serialize>(origin: MessageOrigin, key: &FleetKey, message: &T) -> Vec<u8> {
    // Our own messages have nothing that JSON cannot express.
    let document = serde_json::to_vec(message).unwrap_or_default();
    let signature = URL_SAFE_NO_PAD.encode(key.sign(&origin.signed(&document)));
    let mut bytes = format!("linerate-fleet {PROTOCOL} {signature}\n").into_bytes();
    bytes.extend_from_slice(&document);
    bytes
}

/// The document of a message; absent if it is too long, of another protocol, not signed with this key, or unknown.
#[must_use]
pub fn open<T: DeserializeOwned>(origin: MessageOrigin, key: &PublicFleetKey, bytes: &[u8]) -> Option<T> {
    if bytes.len() > MAX_MESSAGE_BYTES {
        return None;
    }
    let end = bytes.iter().take(256).position(|byte| *byte == b'\n')?;
    let (head, document) = (std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 1..]);
    let signature = head.strip_prefix("linerate-fleet ")?.strip_prefix(&format!("{PROTOCOL} "))?;
    let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
    if !key.has_signed(&origin.signed(document), &signature) {
        return None;
    }
    serde_json::from_slice(document).ok()
}

/// The proof in a calendar.
#[must_use]
pub fn proof(key: &FleetKey, agent: &str, held: HeldCalendar) -> String {
    URL_SAFE_NO_PAD.encode(key.sign(&proven(agent, held)))
}

/// Whether a proof is that of this calendar.
#[must_use]
pub fn is_proven(key: &PublicFleetKey, agent: &str, held: HeldCalendar, proof: &str) -> bool {
    URL_SAFE_NO_PAD.decode(proof).is_ok_and(|signature| key.has_signed(&proven(agent, held), &signature))
}

fn proven(agent: &str, held: HeldCalendar) -> Vec<u8> {
    let document = format!("{} {} {agent}", held.epoch, held.version);
    format!("linerate-fleet {PROTOCOL} calendar\n{document}").into_bytes()
}

/// What an agent says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FleetAgentMessage {
    /// How it is.
    Report(AgentReport),
    /// A part of a result.
    Result(ResultPart),
}

/// How an agent is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentReport {
    /// Its name.
    pub agent: String,
    /// The name of this process.
    pub session: String,
    /// The names of the last processes that used the folder before, the newest one last.
    pub previous: Vec<String>,
    /// Number of this report; the answer has it too.
    pub nonce: u64,
    /// Version of the program.
    pub program: ForeignText,
    /// The calendar that it has and keeps to; absent if it has none.
    pub holds: Option<HeldCalendar>,
    /// The newest calendar that it ever had.
    pub newest: Option<HeldCalendar>,
    /// What the coordinators wrote into that one, to recognise it.
    pub proof: String,
    /// Why it takes no further runs; empty if it does.
    pub full: ForeignText,
    /// Results that it keeps until they are stored.
    pub waiting: u64,
    /// Runs that have begun, and when.
    pub begun: Vec<(String, UnixTime)>,
}

/// A version of a calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HeldCalendar {
    /// Epoch of the coordinator that signed it.
    pub epoch: u64,
    /// Its number.
    pub version: u64,
}

/// A part of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultPart {
    /// The name of the agent.
    pub agent: String,
    /// The run.
    pub run: String,
    /// Number of this part, from 0.
    pub part: u32,
    /// Number of parts.
    pub parts: u32,
    /// The part: base64 of a [`ResultDocument`] compressed by zstd.
    pub content: String,
}

/// What became of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultDocument {
    /// How it ended.
    pub state: CalendarRunState,
    /// Why, if it did not finish.
    pub reason: ForeignText,
    /// What it measured.
    pub result: Option<CellResult>,
    /// When it began; absent if it did not.
    pub begun: Option<UnixTime>,
    /// When it ended.
    pub ended: UnixTime,
    /// The log of the run, a JSON document on each line; empty if it did not begin.
    pub log: String,
}

impl ResultDocument {
    /// Its parts, as they are sent.
    #[must_use]
    pub fn parts(&self) -> Vec<String> {
        let document = serde_json::to_vec(self).unwrap_or_default();
        // Compression into memory only fails without memory.
        let compressed = zstd::bulk::compress(&document, 3).unwrap_or_default();
        let text = STANDARD_NO_PAD.encode(compressed);
        let parts = text.as_bytes().chunks(PART_CHARS);
        parts.map(|part| String::from_utf8_lossy(part).into_owned()).collect()
    }

    /// The document of all its parts; absent if they are no such document.
    #[must_use]
    pub fn of(parts: &str) -> Option<Self> {
        let compressed = STANDARD_NO_PAD.decode(parts).ok()?;
        // No longer than what is there, whatever the frame says of itself.
        let mut document = Vec::new();
        let frame = zstd::stream::Decoder::new(compressed.as_slice()).ok()?;
        frame.take(MAX_RESULT_BYTES + 1).read_to_end(&mut document).ok()?;
        if document.len() as u64 > MAX_RESULT_BYTES {
            return None;
        }
        serde_json::from_slice::<Self>(&document).ok().filter(|document| {
            // Other ends are not an agent's to decide.
            matches!(
                document.state,
                CalendarRunState::Finished
                    | CalendarRunState::Failed
                    | CalendarRunState::Cancelled
                    | CalendarRunState::Missed
            )
        })
    }
}

/// What a coordinator says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum CentreMessage {
    /// A calendar.
    Calendar(AgentCalendar),
    /// The answer to a report.
    Answer(CentreAnswer),
    /// A result is stored.
    Stored(StoredResult),
}

/// The calendar of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentCalendar {
    /// The agent.
    pub agent: String,
    /// Epoch of the coordinator.
    pub epoch: u64,
    /// Its number, higher than those of all before.
    pub version: u64,
    /// A signature by which the coordinators recognise what they have handed out, if their database has lost it.
    pub proof: String,
    /// Whether the database may have lost results that were stored, so that they have to be sent once more.
    #[serde(default)]
    pub lost: bool,
    /// Nothing may be on the wire by it from then on.
    pub until: UnixTime,
    /// Time before the traffic for connecting and preparing.
    #[serde(rename = "set_up_ns")]
    pub set_up: Span,
    /// Time after the traffic for what still arrives, and for clocks that differ.
    #[serde(rename = "settle_ns")]
    pub settle: Span,
    /// What the runs measure.
    pub specs: Vec<TestSpec>,
    /// The runs, in the order of their times.
    pub runs: Vec<AgentRun>,
}

/// A run of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRun {
    /// Its name.
    pub id: String,
    /// Its schedule.
    pub schedule: String,
    /// The host to which it measures.
    pub to: String,
    /// The name or address of that host.
    pub address: String,
    /// The address to which it measures, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_address: Option<String>,
    /// Its port.
    pub port: u16,
    /// What it measures: which of [`AgentCalendar::specs`].
    pub spec: usize,
    /// When its reservations begin.
    pub starts: UnixTime,
    /// When they end.
    pub ends: UnixTime,
}

/// The answer to a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CentreAnswer {
    /// The agent.
    pub agent: String,
    /// The process that reported.
    pub session: String,
    /// The number of its report.
    pub nonce: u64,
    /// Epoch of the coordinator.
    pub epoch: u64,
    /// What its clock said.
    pub now: UnixTime,
    /// Why the agent may not take part; empty if it may.
    pub refused: ForeignText,
}

/// A result is in the calendar and in the archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredResult {
    /// The agent.
    pub agent: String,
    /// The run.
    pub run: String,
    /// Epoch of the coordinator.
    pub epoch: u64,
    /// The part that has arrived; absent once everything is stored for ever.
    pub part: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(first: u8) -> FleetKey {
        FleetKey::from_bytes([first; 32]).unwrap()
    }

    fn stored(run: &str) -> CentreMessage {
        CentreMessage::Stored(StoredResult {
            agent: "a".to_owned(),
            run: run.to_owned(),
            epoch: 1,
            part: None,
        })
    }

    fn document(log: String) -> ResultDocument {
        ResultDocument {
            state: CalendarRunState::Failed,
            reason: "why".into(),
            result: None,
            begun: Some(UnixTime::from_ms(1)),
            ended: UnixTime::from_ms(2),
            log,
        }
    }

    #[test]
    fn a_message_is_opened_by_whom_it_is_for_and_by_nobody_else() {
        let bytes = seal(MessageOrigin::Centre, &key(1), &stored("r"));
        let open_as =
            |origin, first, bytes: &[u8]| open::<CentreMessage>(origin, &key(first).public(), bytes);
        assert_eq!(open_as(MessageOrigin::Centre, 1, &bytes), Some(stored("r")));
        assert_eq!(open_as(MessageOrigin::Centre, 2, &bytes), None, "another key");
        // An agent whose key is that of a coordinator cannot play back what it said.
        assert_eq!(open_as(MessageOrigin::Agent, 1, &bytes), None, "another origin");
        let text = String::from_utf8(bytes.clone()).unwrap();
        let later = text.replacen("linerate-fleet 1", "linerate-fleet 2", 1);
        assert_eq!(open_as(MessageOrigin::Centre, 1, later.as_bytes()), None, "another protocol");
        let changed = text.replace("\"r\"", "\"s\"");
        assert_eq!(open_as(MessageOrigin::Centre, 1, changed.as_bytes()), None, "another document");
    }

    #[test]
    fn members_of_later_versions_are_ignored() {
        let later = serde_json::json!({"type": "stored", "agent": "a", "run": "r", "epoch": 1, "part": null, "new": [1]});
        let bytes = seal(MessageOrigin::Centre, &key(1), &later);
        assert_eq!(open(MessageOrigin::Centre, &key(1).public(), &bytes), Some(stored("r")));
        let unknown = seal(MessageOrigin::Centre, &key(1), &serde_json::json!({"type": "later"}));
        assert_eq!(open::<CentreMessage>(MessageOrigin::Centre, &key(1).public(), &unknown), None);
    }

    #[test]
    fn a_long_result_comes_in_parts_and_whole_again() {
        // Text that does not compress well.
        let log: String =
            (0..600_000u64).map(|at| format!("{:x}", at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40)).collect();
        let whole = document(log);
        let parts = whole.parts();
        assert!(parts.len() > 2, "{}", parts.len());
        assert!(parts.iter().all(|part| part.len() <= PART_CHARS));
        assert_eq!(ResultDocument::of(&parts.concat()), Some(whole));
        assert_eq!(ResultDocument::of(&parts[..parts.len() - 1].concat()), None);
    }

    #[test]
    fn a_result_that_becomes_too_long_or_has_no_end_is_refused() {
        let bomb = zstd::bulk::compress(&vec![b' '; MAX_RESULT_BYTES as usize + 10], 3).unwrap();
        assert_eq!(ResultDocument::of(&STANDARD_NO_PAD.encode(bomb)), None);
        let open = ResultDocument { state: CalendarRunState::Running, ..document(String::new()) };
        assert_eq!(ResultDocument::of(&open.parts().concat()), None);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_no_message(bytes: Vec<u8>, text in "[A-Za-z0-9+/]{0,400}") {
            prop_assert_eq!(open::<CentreMessage>(MessageOrigin::Centre, &key(1).public(), &bytes), None);
            prop_assert_eq!(ResultDocument::of(&text), None);
        }

        #[test]
        fn a_changed_byte_is_noticed(at: prop::sample::Index, to: u8) {
            let bytes = seal(MessageOrigin::Centre, &key(1), &stored("r"));
            let mut changed = bytes.clone();
            let at = at.index(bytes.len());
            prop_assume!(changed[at] != to);
            changed[at] = to;
            prop_assert_eq!(open::<CentreMessage>(MessageOrigin::Centre, &key(1).public(), &changed), None);
        }
    }
}
