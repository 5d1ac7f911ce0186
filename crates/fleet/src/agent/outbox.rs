//! Results that an agent keeps until the calendar has them, and for a while after.

use std::collections::BTreeMap;

use linerate_proto::fleet::{
    FleetAgentMessage, PlainName, ResultDigest, ResultDocument, ResultPart, ResultPartText,
};
use linerate_units::Span;

use super::folder::{AgentFolder, AgentFolderError};

/// How files of results begin that are not stored.
const WAITING: &str = "result-";
/// How files of results begin that are stored.
const KEPT: &str = "kept-";
/// How long a result is kept after it was stored: the database may lose what it wrote last.
const KEEP: Span = Span::from_secs(2 * 3600);
/// How long a part may be on its way before it is sent again.
const AGAIN_AFTER: Span = Span::from_secs(10);
/// Results that are sent at the same time. Others are only on the disk.
const RESULTS_AT_ONCE: usize = 2;
/// Parts of a result that are on their way at the same time.
const PARTS_AT_ONCE: usize = 4;

/// A result that is being sent.
#[derive(Debug)]
struct SendingResult {
    parts: Vec<ResultPartText>,
    /// When each part was sent last; absent for one that was not.
    sent: Vec<Option<Span>>,
    /// Which parts have arrived.
    arrived: Vec<bool>,
}

impl SendingResult {
    fn of(document: &ResultDocument) -> Self {
        let parts = document.parts();
        let count = parts.len();
        Self { parts, sent: vec![None; count], arrived: vec![false; count] }
    }

    fn has_begun(&self) -> bool {
        self.sent.iter().any(Option::is_some)
    }
}

/// A result that is not stored yet.
#[derive(Debug, Default)]
struct WaitingResult {
    bytes: u64,
    /// Absent while it is only on the disk.
    sending: Option<SendingResult>,
}

/// The results of an agent.
#[derive(Debug, Default)]
pub(super) struct ResultOutbox {
    waiting: BTreeMap<PlainName, WaitingResult>,
    /// When those that are stored were found to be.
    kept: BTreeMap<PlainName, Span>,
}

impl ResultOutbox {
    /// Notes a result that was found as a file of the folder.
    pub(super) fn found(&mut self, file: &str, bytes: u64) {
        // The names of other files are none of runs.
        let run_of = |kind: &str| PlainName::checked(file.strip_prefix(kind)?.to_owned());
        if let Some(run) = run_of(WAITING) {
            self.waiting.insert(run, WaitingResult { bytes, sending: None });
        } else if let Some(run) = run_of(KEPT) {
            self.kept.insert(run, Span::ZERO);
        }
    }

    /// Keeps a result. If it cannot be written, it is kept in memory.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn keep(
        &mut self,
        run: &str,
        document: &ResultDocument,
        folder: &mut dyn AgentFolder,
    ) -> Result<(), AgentFolderError> {
        if document.begun.is_none() && self.has(run) {
            // What was measured is worth more than that it did not begin.
            return Ok(());
        }
        let content = serde_json::to_vec(document).unwrap_or_default();
        let written = folder.write(&file(WAITING, run), &content);
        let sending = written.is_err().then(|| SendingResult::of(document));
        self.waiting.insert(run.into(), WaitingResult { bytes: content.len() as u64, sending });
        written
    }

    pub(super) fn len(&self) -> u64 {
        self.waiting.len() as u64
    }

    pub(super) fn bytes(&self) -> u64 {
        self.waiting.values().map(|one| one.bytes).sum()
    }

    pub(super) fn has(&self, run: &str) -> bool {
        self.waiting.contains_key(run) || self.kept.contains_key(run)
    }

    /// A part has arrived, or everything is stored. What is stored may be from another process with the same key, which
    /// its digest shows; and of what was not sent by this process, nothing is known until it is.
    pub(super) fn stored(
        &mut self,
        run: &str,
        (part, digest): (Option<u32>, &ResultDigest),
        now: Span,
        folder: &mut dyn AgentFolder,
    ) {
        let Some(sending) = self.waiting.get_mut(run).and_then(|one| one.sending.as_mut()) else { return };
        match part.map(|part| part as usize) {
            Some(part) => {
                let is_it = |text: &ResultPartText| ResultDigest::of([text.as_str()]) == *digest;
                if sending.parts.get(part).is_some_and(is_it) {
                    sending.arrived[part] = true;
                }
            }
            None if ResultDigest::of(sending.parts.iter().map(ResultPartText::as_str)) == *digest => {
                self.waiting.remove(run);
                self.kept.insert(run.into(), now);
                folder.rename(&file(WAITING, run), &file(KEPT, run));
            }
            None => {}
        }
    }

    /// The database may have lost what it wrote last: these results are sent once more.
    pub(super) fn send_kept(&mut self, which: impl Fn(&str) -> bool, folder: &mut dyn AgentFolder) {
        let (again, kept) = std::mem::take(&mut self.kept).into_iter().partition(|(run, _)| which(run));
        self.kept = kept;
        let again: BTreeMap<PlainName, Span> = again;
        for (run, _) in again {
            folder.rename(&file(KEPT, &run), &file(WAITING, &run));
            self.waiting.insert(run, WaitingResult::default());
        }
    }

    /// What is to be sent now.
    pub(super) fn due(
        &mut self,
        agent: &str,
        now: Span,
        folder: &mut dyn AgentFolder,
    ) -> Vec<FleetAgentMessage> {
        self.kept.retain(|run, since| {
            // Those of an earlier process are kept anew.
            *since = if *since == Span::ZERO { now } else { *since };
            let keep = now.saturating_sub(*since) < KEEP;
            if !keep {
                folder.remove(&file(KEPT, run));
            }
            keep
        });
        let mut gone = Vec::new();
        let mut messages = Vec::new();
        // Those that have begun come first: the calendar keeps the parts of a few results only.
        let mut next: Vec<_> = self.waiting.iter_mut().collect();
        next.sort_by_key(|(_, one)| !one.sending.as_ref().is_some_and(SendingResult::has_begun));
        for (run, one) in next.into_iter().take(RESULTS_AT_ONCE) {
            let sending = match &mut one.sending {
                Some(sending) => sending,
                None => {
                    let read = folder.read_one(&file(WAITING, run));
                    let document =
                        read.and_then(|content| serde_json::from_slice::<ResultDocument>(&content).ok());
                    let Some(document) = document else {
                        gone.push(run.clone());
                        continue;
                    };
                    one.sending.insert(SendingResult::of(&document))
                }
            };
            messages.extend(sending.due(agent, run, now));
        }
        for run in gone {
            self.waiting.remove(&run);
            folder.remove(&file(WAITING, &run));
        }
        messages
    }
}

impl SendingResult {
    fn due(&mut self, agent: &str, run: &PlainName, now: Span) -> Vec<FleetAgentMessage> {
        let last = self.sent.iter().flatten().max().copied();
        if self.arrived.iter().all(|arrived| *arrived)
            && last.is_some_and(|last| now.saturating_sub(last) >= AGAIN_AFTER)
        {
            // All parts arrived, but the whole was not stored: whoever had them may be gone.
            self.arrived.fill(false);
        }
        let missing: Vec<usize> = (0..self.parts.len()).filter(|part| !self.arrived[*part]).collect();
        let mut messages = Vec::new();
        for part in missing.into_iter().take(PARTS_AT_ONCE) {
            if self.sent[part].is_some_and(|sent| now.saturating_sub(sent) < AGAIN_AFTER) {
                continue;
            }
            self.sent[part] = Some(now);
            messages.push(FleetAgentMessage::Result(ResultPart {
                agent: agent.into(),
                run: run.clone(),
                part: part as u32,
                parts: self.parts.len() as u32,
                content: self.parts[part].clone(),
            }));
        }
        messages
    }
}

fn file(kind: &str, run: &str) -> String {
    format!("{kind}{run}")
}

#[cfg(test)]
mod tests {
    use linerate_model::calendar::{CalendarRunState, UnixTime};

    use super::super::DiskFolder;
    use super::*;

    /// A result in several parts: its log cannot be compressed much.
    fn large_result(seed: u64) -> ResultDocument {
        let mut random = seed;
        let mut letter = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b'0' + (random >> 58) as u8)
        };
        let log: String = (0..2_000_000).map(|_| letter()).collect();
        ResultDocument {
            state: CalendarRunState::Finished,
            reason: "".into(),
            result: None,
            begun: Some(UnixTime::from_ms(1)),
            ended: UnixTime::from_ms(2),
            log: log.into(),
        }
    }

    #[test]
    fn results_that_have_begun_are_sent_before_others() {
        let path = tempfile::tempdir().unwrap();
        let mut folder = DiskFolder::open(path.path()).unwrap();
        let mut outbox = ResultOutbox::default();
        let keep = |outbox: &mut ResultOutbox, run: &str, folder: &mut DiskFolder| {
            outbox.keep(run, &large_result(1), folder).unwrap();
        };
        let sent = |outbox: &mut ResultOutbox, seconds: u64, folder: &mut DiskFolder| {
            let messages = outbox.due("a", Span::from_secs(seconds), folder);
            let runs = messages.into_iter().filter_map(|message| match message {
                FleetAgentMessage::Result(part) => Some(part.run.to_string()),
                FleetAgentMessage::Report(_) => None,
            });
            let mut runs: Vec<String> = runs.collect();
            runs.dedup();
            runs
        };
        for run in ["8", "9"] {
            keep(&mut outbox, run, &mut folder);
        }
        assert_eq!(sent(&mut outbox, 1, &mut folder), ["8", "9"]);
        for run in ["1", "2"] {
            keep(&mut outbox, run, &mut folder);
        }
        assert_eq!(sent(&mut outbox, 1 + 10, &mut folder), ["8", "9"]);
        // One is stored, and the next one begins.
        let parts = outbox.waiting.get("8").unwrap().sending.as_ref().unwrap().parts.clone();
        assert!(parts.len() > PARTS_AT_ONCE, "{}", parts.len());
        let digest = ResultDigest::of(parts.iter().map(ResultPartText::as_str));
        outbox.stored("8", (None, &digest), Span::from_secs(12), &mut folder);
        assert_eq!(sent(&mut outbox, 1 + 20, &mut folder), ["9", "1"]);
    }
}
