//! What agents and coordinators say to each other.
//!
//! A message is one line of text, `linerate-fleet 1 SIGNATURE`, and then a document of JSON. The signature (Ed25519,
//! base64url) is over `linerate-fleet 1 agent` or `linerate-fleet 1 centre`, a line feed, and the document. Unknown members
//! are ignored, so that programs of different versions understand each other; a document that cannot be understood is
//! dropped, and its sender repeats what matters.
//!
//! Whoever signs a message may still be hostile, or its host may be: names of runs and processes in a message that was
//! opened are plain, lists are short, and what may be shown is [`ForeignText`]. Names of agents are those under which
//! messages arrive; whoever opens a message compares them.

use std::io::Read;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use linerate_model::calendar::{CalendarRunState, CellResult, UnixTime};
use linerate_model::{ForeignLines, ForeignText, TestSpec};
use linerate_units::Span;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::bounds::{MAX_BEGUN, MAX_PREVIOUS, MAX_RUNS, list};
use super::checked_text::{CalendarProof, PlainName, ResultDigest, ResultPartText};
use super::key::{FleetKey, PublicFleetKey};

/// Version of the protocol. Another one begins when an older program would do something wrong.
pub const PROTOCOL: u32 = 1;
/// The longest message.
const MAX_MESSAGE_BYTES: usize = 1 << 20;
/// The longest document of a result, uncompressed.
pub(super) const MAX_RESULT_BYTES: u64 = 64 << 20;
/// The largest distance at which compressed text may refer to itself, as a power of two: 8 MiB, of which ours uses a
/// quarter. A frame that asks for more would have it before its content is seen.
pub(super) const MAX_WINDOW_LOG: u32 = 23;
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
    seal_document(origin, key, &serde_json::to_vec(message).unwrap_or_default())
}

/// The same for bytes that need not be a document, so that tests get past the signature.
#[doc(hidden)]
#[must_use]
pub fn seal_document(origin: MessageOrigin, key: &FleetKey, document: &[u8]) -> Vec<u8> {
    let signature = URL_SAFE_NO_PAD.encode(key.sign(&origin.signed(document)));
    let mut bytes = format!("linerate-fleet {PROTOCOL} {signature}\n").into_bytes();
    bytes.extend_from_slice(document);
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
pub fn proof(key: &FleetKey, agent: &str, held: HeldCalendar) -> CalendarProof {
    URL_SAFE_NO_PAD.encode(key.sign(&proven(agent, held))).into()
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
    pub agent: ForeignText,
    /// The name of this process.
    pub session: PlainName,
    /// The names of the last processes that used the folder before, the newest one last.
    #[serde(deserialize_with = "list::<_, _, MAX_PREVIOUS>")]
    pub previous: Vec<PlainName>,
    /// Number of this report; the answer has it too.
    pub nonce: u64,
    /// Version of the program.
    pub program: ForeignText,
    /// The calendar that it has and keeps to; absent if it has none.
    pub holds: Option<HeldCalendar>,
    /// The newest calendar that it ever had.
    pub newest: Option<HeldCalendar>,
    /// What the coordinators wrote into that one, to recognise it.
    pub proof: CalendarProof,
    /// Why it takes no further runs; empty if it does.
    pub full: ForeignText,
    /// Results that it keeps until they are stored.
    pub waiting: u64,
    /// Runs that have begun, and when: at most [`MAX_BEGUN`].
    #[serde(deserialize_with = "list::<_, _, MAX_BEGUN>")]
    pub begun: Vec<(PlainName, UnixTime)>,
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
    pub agent: ForeignText,
    /// The run.
    pub run: PlainName,
    /// Number of this part, from 0.
    pub part: u32,
    /// Number of parts.
    pub parts: u32,
    /// The part: base64 of a [`ResultDocument`] compressed by zstd.
    pub content: ResultPartText,
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
    pub log: ForeignLines,
}

impl ResultDocument {
    /// Its parts, as they are sent.
    #[must_use]
    pub fn parts(&self) -> Vec<ResultPartText> {
        let document = serde_json::to_vec(self).unwrap_or_default();
        // Compression into memory only fails without memory.
        let compressed = zstd::bulk::compress(&document, 3).unwrap_or_default();
        let text = STANDARD_NO_PAD.encode(compressed);
        let parts = text.as_bytes().chunks(ResultPartText::MAX_CHARS);
        parts.map(|part| String::from_utf8_lossy(part).into_owned().into()).collect()
    }

    /// The document of all its parts; absent if they are no such document.
    #[must_use]
    pub fn of(parts: &str) -> Option<Self> {
        Self::read(&Self::unpack(parts)?)
    }

    /// The text of a document of which these are all parts; absent if they are none, or of a longer one.
    #[must_use]
    pub fn unpack(parts: &str) -> Option<Vec<u8>> {
        let compressed = STANDARD_NO_PAD.decode(parts).ok()?;
        // No longer than what is there, whatever the frame says of itself.
        let mut document = Vec::new();
        let mut frame = zstd::stream::Decoder::new(compressed.as_slice()).ok()?;
        frame.window_log_max(MAX_WINDOW_LOG).ok()?;
        frame.take(MAX_RESULT_BYTES + 1).read_to_end(&mut document).ok()?;
        (document.len() as u64 <= MAX_RESULT_BYTES).then_some(document)
    }

    /// The document of a text; absent if it is none of an agent.
    #[must_use]
    pub fn read(text: &[u8]) -> Option<Self> {
        serde_json::from_slice::<Self>(text).ok().filter(|document| {
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
    pub agent: ForeignText,
    /// Epoch of the coordinator.
    pub epoch: u64,
    /// Its number, higher than those of all before.
    pub version: u64,
    /// A signature by which the coordinators recognise what they have handed out, if their database has lost it.
    pub proof: CalendarProof,
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
    #[serde(deserialize_with = "list::<_, _, MAX_RUNS>")]
    pub specs: Vec<TestSpec>,
    /// The runs, in the order of their times.
    #[serde(deserialize_with = "list::<_, _, MAX_RUNS>")]
    pub runs: Vec<AgentRun>,
}

/// A run of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRun {
    /// Its name.
    pub id: PlainName,
    /// Its schedule.
    pub schedule: ForeignText,
    /// The host to which it measures.
    pub to: ForeignText,
    /// The name or address of that host.
    pub address: ForeignText,
    /// The address to which it measures, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_address: Option<ForeignText>,
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
    pub agent: ForeignText,
    /// The process that reported.
    pub session: PlainName,
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
    pub agent: ForeignText,
    /// The run.
    pub run: PlainName,
    /// Epoch of the coordinator.
    pub epoch: u64,
    /// The part that has arrived; absent once everything is stored for ever.
    pub part: Option<u32>,
    /// The digest of the text of this part, or of all parts. Two processes with the key of one agent may have different
    /// results of one run, and only one of them is stored.
    pub digest: ResultDigest,
}
