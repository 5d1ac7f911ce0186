//! A client: its run, and what its connections come to.

use std::net::IpAddr;

use linerate_model::{Direction, ForeignText};
use linerate_units::{Bytes, Span, Timestamp};

use super::super::body_totals::{BodyReading, BodyRun};
use super::TOOL;
use crate::stand_in::{Link, Output, RunId};

/// A run is over if no body was in transit for this time: goresponsiveness pauses for 4 s between its directions.
const IDLE_TIMEOUT: Span = Span::from_secs(6);

/// Most letters of the name of a program.
const MAX_NAME: usize = 32;

/// The name of a program, which is the first word of what it says of itself.
fn program(user_agent: &ForeignText) -> String {
    let letters =
        user_agent.as_str().chars().take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '-');
    let name: String = letters.take(MAX_NAME).collect();
    if name.is_empty() { "a program".to_owned() } else { name }
}

/// A client.
#[derive(Debug)]
pub(super) struct ResponsivenessClient {
    pub(super) number: u16,
    pub(super) address: Option<IpAddr>,
    /// Distinguishes clients of one address.
    user_agent: ForeignText,
    run: Option<BodyRun>,
    /// Payload since it was last told.
    moved: u64,
    /// When the run is over unless a body is requested.
    pub(super) due: Option<Timestamp>,
}

impl ResponsivenessClient {
    pub(super) fn new(number: u16, address: Option<IpAddr>, user_agent: &ForeignText) -> Self {
        Self { number, address, user_agent: user_agent.clone(), run: None, moved: 0, due: None }
    }

    /// Whether it is this client.
    pub(super) fn is_of(&self, address: Option<IpAddr>, user_agent: &ForeignText) -> bool {
        self.address == address && self.user_agent == *user_agent
    }

    /// Whether its run was asked for over this link.
    pub(super) fn asked_over(&self, link: Link) -> bool {
        self.run.as_ref().is_some_and(|run| run.link == link)
    }

    pub(super) fn run_id(&self) -> RunId {
        BodyRun::id_of(self.number)
    }

    /// Whether its run has a place; absent if none was asked for.
    pub(super) fn is_admitted(&self) -> Option<bool> {
        self.run.as_ref().map(|run| run.is_admitted)
    }

    /// Whether its run has failed, and only waits for its bodies.
    pub(super) fn is_ending(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.trouble.is_some())
    }

    /// Asks for a place.
    pub(super) fn ask(&mut self, link: Link) -> Output {
        let (run, asked) = BodyRun::ask(self.number, TOOL, program(&self.user_agent), link);
        self.run = Some(run);
        asked
    }

    pub(super) fn admitted(&mut self) {
        if let Some(run) = &mut self.run {
            run.is_admitted = true;
        }
    }

    /// It begins to move bodies in this direction.
    pub(super) fn resume(&mut self, now: Timestamp, direction: Direction) {
        if let Some(run) = &mut self.run {
            run.totals(direction).resume(now);
        }
    }

    /// Adds payload that was moved over one of its connections.
    pub(super) fn moved(&mut self, bytes: u64) {
        self.moved += bytes;
    }

    /// Tells what was moved since the last time, for the quotas.
    pub(super) fn take_moved(&mut self) -> Option<Output> {
        let bytes = Bytes::new(std::mem::take(&mut self.moved));
        (bytes > Bytes::new(0)).then(|| Output::Moved { run: self.run_id(), bytes })
    }

    /// It has measured latency.
    pub(super) fn probe(&mut self, now: Timestamp) {
        if let Some(run) = &mut self.run {
            run.probe(now);
        }
    }

    /// Adds what was moved over a connection, which moves nothing in this direction any more.
    pub(super) fn add(&mut self, direction: Direction, body: BodyReading) {
        if let Some(run) = &mut self.run {
            run.totals(direction).add(Some(body));
        }
    }

    pub(super) fn sample(&mut self, now: Timestamp, loads: &[(Direction, BodyReading)]) {
        let Some(run) = &mut self.run else { return };
        for direction in [Direction::Download, Direction::Upload] {
            let moving = loads.iter().filter(|(of, _)| *of == direction).map(|(_, body)| *body);
            run.totals(direction).sample(now, moving);
        }
    }

    /// Notes why the run ends early.
    pub(super) fn fail(&mut self, why: &str) {
        if let Some(run) = &mut self.run {
            run.trouble.get_or_insert_with(|| why.to_owned());
        }
    }

    /// Notes whether it moves nothing; true if that ends the run.
    pub(super) fn idle(&mut self, now: Timestamp, is_idle: bool) -> bool {
        match (is_idle, self.due) {
            (false, _) => self.due = None,
            (true, None) => self.due = Some(now + IDLE_TIMEOUT),
            (true, Some(_)) => {}
        }
        is_idle && (self.is_ending() || self.run.is_none())
    }

    /// The results of its run.
    pub(super) fn finish(mut self) -> Vec<Output> {
        let Some(run) = self.run.take().filter(|run| run.is_admitted) else { return Vec::new() };
        self.take_moved().into_iter().chain(run.finish(self.number, None)).collect()
    }
}
