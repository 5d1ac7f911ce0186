//! A client of LibreSpeed or Cloudflare: the bodies of its requests, which the engine moves.
//!
//! Such a client has no dialogue. It sends requests over connections that it keeps, in parallel or in turn, so every
//! body is a flow of its own, and a client's bodies are the parts of one run: it begins with the first body, and is
//! over when none has been requested for a while. The rate of a direction is that of the bytes that the server read,
//! or that the client's kernel acknowledged, in the time in which the client moved bodies (`body_totals`).

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use linerate_model::{BrowserNote, Direction, ForeignText, SideSettings};
use linerate_units::{Span, Timestamp};

use super::body::{BodyPhase, FILLER, HttpBody, head_of_body};
use super::body_totals::BodyRun;
use super::endpoint::CLOUDFLARE;
use super::request::{self, HttpRequest};
use super::transfer::{Encryption, is_due};
use crate::sessions::ToolSession;
use crate::stand_in::{FlowCounts, FlowId, Input, Link, Output, RunId, Stop, SystemError};

/// Most bodies of a client in transit.
const MAX_BODIES: u16 = 32;

/// Flows of bodies have numbers from here on, after those in results.
const FIRST_BODY_FLOW: u16 = 1_000;

/// A run is over if no body was in transit for this time. LibreSpeed pauses for less between its directions.
const IDLE_TIMEOUT: Span = Span::from_secs(4);

/// Time between two readings of the counts.
const READ_INTERVAL: Span = Span::from_ms(100);

/// Time between two readings while a download waits to be acknowledged.
const ACKNOWLEDGE_INTERVAL: Span = Span::from_ms(5);

/// A download that was not acknowledged for this time is given up.
const ACKNOWLEDGE_TIMEOUT: Span = Span::from_secs(10);

/// A client of LibreSpeed or Cloudflare.
#[derive(Debug)]
pub(super) struct BodySession {
    number: u16,
    tool: &'static str,
    address: Option<IpAddr>,
    /// Distinguishes clients of one address.
    user_agent: ForeignText,
    program: String,
    browser: Option<BrowserNote>,
    run: Option<BodyRun>,
    bodies: BTreeMap<Link, HttpBody>,
    /// Connections whose response is complete, with what the client has sent since; absent if they are closed.
    free: Vec<(Link, Option<Vec<u8>>)>,
    next_look: Option<Timestamp>,
    /// Whether counts were requested; those that others have requested arrive too.
    looks: bool,
    /// When the run is over unless a body is requested.
    due: Option<Timestamp>,
    out: VecDeque<Output>,
}

impl BodySession {
    pub(super) fn new(
        number: u16,
        tool: &'static str,
        address: Option<IpAddr>,
        request: &HttpRequest,
    ) -> Self {
        Self {
            number,
            tool,
            address,
            user_agent: request.user_agent.clone(),
            program: request.browser().unwrap_or_else(|| "a program".to_owned()),
            browser: request.browser().map(|name| BrowserNote::named(&name)),
            run: None,
            bodies: BTreeMap::new(),
            free: Vec::new(),
            next_look: None,
            looks: false,
            due: None,
            out: VecDeque::new(),
        }
    }

    /// Whether it is this client.
    pub(super) fn is_of(&self, tool: &str, address: Option<IpAddr>, request: &HttpRequest) -> bool {
        self.tool == tool && self.address == address && self.user_agent == request.user_agent
    }

    /// Takes the connections whose response is complete, with what the client has sent since; absent if they are closed.
    pub(super) fn take_free(&mut self) -> Vec<(Link, Option<Vec<u8>>)> {
        std::mem::take(&mut self.free)
    }

    /// Whether there is room for another body.
    pub(super) fn has_room(&self) -> bool {
        self.bodies.len() < usize::from(MAX_BODIES) && !self.is_ending()
    }

    /// Begins a body of this length, or returns the response that refuses it; `received` are the bytes after the head.
    pub(super) fn begin(
        &mut self,
        now: Timestamp,
        (link, encryption): (Link, Encryption),
        request: &HttpRequest,
        (direction, length): (Direction, Option<u64>),
        received: &[u8],
    ) -> Result<(), Vec<u8>> {
        let flow = self.free_flow();
        let body = HttpBody::new(now, (flow, encryption), request, (direction, length), received)?;
        if body.is_short() {
            self.probe(now);
            self.respond(now, link, &body);
            return Ok(());
        }
        if direction == Direction::Upload {
            // The body belongs to the flow.
            self.out.push_back(Output::Hold { link });
        }
        self.bodies.insert(link, body);
        self.due = None;
        match &self.run {
            None => self.ask(link),
            Some(run) if run.is_admitted => self.start(now, link),
            Some(_) => {}
        }
        Ok(())
    }

    /// The client has sent a request that moves nothing, by which it measures latency.
    pub(super) fn probe(&mut self, now: Timestamp) {
        if let Some(run) = &mut self.run {
            run.probe(now);
        }
    }

    fn free_flow(&self) -> FlowId {
        let first = FIRST_BODY_FLOW + self.number * MAX_BODIES;
        let is_used = |flow: u16| self.bodies.values().any(|body| body.flow == FlowId(flow));
        FlowId((first..first + MAX_BODIES).find(|flow| !is_used(*flow)).unwrap_or(first))
    }

    /// The number of the run.
    fn run_id(&self) -> RunId {
        BodyRun::id_of(self.number)
    }

    fn ask(&mut self, link: Link) {
        let peer = format!("{} in {}", self.tool, self.program);
        let (run, asked) = BodyRun::ask(self.number, self.tool, peer, link);
        self.run = Some(run);
        self.out.push_back(asked);
    }

    /// Passes a body to the engine.
    fn start(&mut self, now: Timestamp, link: Link) {
        let (run, tool) = (self.run_id(), self.tool);
        let Some(direction) = self.bodies.get(&link).map(|body| body.direction) else { return };
        let others = |(other, body): (&Link, &HttpBody)| {
            *other != link && body.direction == direction && body.phase != BodyPhase::Waiting
        };
        let is_alone = !self.bodies.iter().any(others);
        let Some((body, totals)) =
            self.bodies.get_mut(&link).zip(self.run.as_mut().map(|run| run.totals(direction)))
        else {
            return;
        };
        if is_alone {
            totals.resume(now);
        }
        match direction {
            Direction::Download => {
                let length = body.length.unwrap_or_default();
                let mut bytes = head_of_body(tool, now - body.requested, length, body.is_persistent);
                let rest = usize::try_from(body.blocks().1).unwrap_or(0);
                bytes.resize(bytes.len() + rest, FILLER);
                self.out.push_back(Output::Send { link, bytes });
            }
            Direction::Upload if body.expects_continue => {
                self.out.push_back(Output::Send { link, bytes: b"HTTP/1.1 100 Continue\r\n\r\n".to_vec() });
            }
            Direction::Upload => {}
        }
        self.out.push_back(Output::Start(Box::new(body.task(run, link))));
        (body.phase, body.is_returned) = (BodyPhase::Moving, false);
        self.next_look.get_or_insert(now + READ_INTERVAL);
    }

    fn look(&mut self) {
        self.looks = true;
        self.out.push_back(Output::Look);
    }

    /// The whole response to an upload, or to a download without the engine.
    fn respond(&mut self, now: Timestamp, link: Link, body: &HttpBody) {
        let length = body.length.unwrap_or_default();
        let bytes = match body.direction {
            Direction::Download => {
                let mut response = head_of_body(self.tool, now - body.requested, length, body.is_persistent);
                response.resize(response.len() + usize::try_from(length).unwrap_or(0), FILLER);
                response
            }
            Direction::Upload => head_of_body(self.tool, now - body.requested, 0, body.is_persistent),
        };
        self.out.push_back(Output::Send { link, bytes });
        self.release(link, body.is_persistent, Vec::new());
    }

    fn close(&mut self, link: Link) {
        self.out.push_back(Output::Close { link });
        self.free.push((link, None));
    }

    /// Returns a connection to the server, or closes it.
    fn release(&mut self, link: Link, is_persistent: bool, received: Vec<u8>) {
        match is_persistent {
            true => self.free.push((link, Some(received))),
            false => {
                self.out.push_back(Output::Discard { link });
                self.close(link);
            }
        }
    }

    fn admitted(&mut self, now: Timestamp) {
        let Some(run) = &mut self.run else { return };
        run.is_admitted = true;
        let links: Vec<Link> = self.bodies.keys().copied().collect();
        links.into_iter().for_each(|link| self.start(now, link));
        self.idle_since(now);
    }

    fn refused(&mut self, why: &str, may_retry: bool) {
        let response = match (may_retry, self.tool) {
            // Cloudflare's engine tries again after no other status.
            (true, CLOUDFLARE) => request::come_again("429 Too Many Requests", why),
            (true, _) => request::busy(why),
            (false, _) => request::not_allowed(why),
        };
        for link in std::mem::take(&mut self.bodies).into_keys() {
            self.out.push_back(Output::Send { link, bytes: response.clone() });
            self.release(link, false, Vec::new());
        }
        self.run = None;
    }

    fn link_of(&self, flow: FlowId) -> Option<Link> {
        self.bodies.iter().find(|(_, body)| body.flow == flow).map(|(link, _)| *link)
    }

    fn started(&mut self, link: Link, settings: &SideSettings) {
        let Some((body, run)) = self.bodies.get(&link).zip(self.run.as_mut()) else { return };
        run.totals(body.direction).settings.get_or_insert_with(|| settings.clone());
        self.look();
    }

    fn counted(&mut self, now: Timestamp, flows: &[FlowCounts]) {
        if !std::mem::replace(&mut self.looks, false) {
            return;
        }
        for counts in flows {
            if let Some(body) = self.bodies.values_mut().find(|body| body.flow == counts.flow) {
                body.update(now, counts);
            }
        }
        let delivered = |body: &HttpBody| body.is_written() && body.is_complete() && body.is_returned;
        let links: Vec<Link> =
            self.bodies.iter().filter(|(_, body)| delivered(body)).map(|(link, _)| *link).collect();
        links.into_iter().for_each(|link| self.finish_body(now, link, Some(Vec::new())));
        if let Some(run) = &mut self.run {
            for direction in [Direction::Download, Direction::Upload] {
                let moving = self.bodies.values().filter(|body| body.direction == direction);
                run.totals(direction).sample(now, moving.filter_map(HttpBody::reading));
            }
        }
    }

    /// All of a download is in the socket.
    fn written(&mut self, now: Timestamp, link: Link) {
        let Some(body) = self.bodies.get_mut(&link) else { return };
        body.phase = BodyPhase::Delivering(now + ACKNOWLEDGE_TIMEOUT);
        self.out.push_back(Output::Stop { flow: body.flow, how: Stop::AtOnce });
    }

    /// The driver has no room for a flow, and has closed the connection.
    fn not_started(&mut self, now: Timestamp, link: Link, why: &str) {
        self.bodies.remove(&link);
        self.free.push((link, None));
        if let Some(run) = &mut self.run {
            run.trouble.get_or_insert_with(|| why.to_owned());
        }
        self.idle_since(now);
    }

    /// Bytes after the head of a request; false if they belong to no body.
    fn received(&mut self, now: Timestamp, link: Link, bytes: &[u8]) -> bool {
        let Some(body) = self.bodies.get_mut(&link) else { return false };
        if body.is_written() {
            // Another request: a client sends none before it has the response.
            body.delivered(now);
            self.finish_body(now, link, Some(bytes.to_vec()));
        } else {
            self.finish_body(now, link, None);
        }
        true
    }

    /// A connection is lost, or this end ends the run; false if it is not one of this client.
    fn closed(&mut self, now: Timestamp, link: Link, reason: Option<&SystemError>) -> bool {
        if let Some(own) = reason.filter(|reason| reason.errno == 0)
            && self.run.as_ref().is_some_and(|run| run.link == link)
        {
            self.end(now, &own.text);
            return true;
        }
        let Some(body) = self.bodies.get_mut(&link) else { return false };
        if body.is_written() && reason.is_none() {
            body.delivered(now);
        }
        self.finish_body(now, link, None);
        true
    }

    fn ended(&mut self, now: Timestamp, link: Link, counts: &FlowCounts) {
        let is_ending = self.is_ending();
        let Some(body) = self.bodies.get_mut(&link) else { return };
        body.is_returned = true;
        let is_complete = body.is_written() && !is_ending;
        match body.direction {
            Direction::Upload => {
                body.update(now, counts);
                let is_complete = body.is_complete() && counts.trouble.is_none() && !is_ending;
                self.finish_body(now, link, is_complete.then(Vec::new));
            }
            Direction::Download if is_complete && counts.trouble.is_none() => {
                body.update(now, counts);
                match body.is_complete() {
                    true => self.finish_body(now, link, Some(Vec::new())),
                    false => self.next_look = Some(now + ACKNOWLEDGE_INTERVAL),
                }
            }
            // The client has left, as LibreSpeed's page does at the end of its time.
            Direction::Download => self.finish_body(now, link, None),
        }
    }

    /// Adds a body to the totals. `received` is what the client has sent since; absent if the connection is lost.
    fn finish_body(&mut self, now: Timestamp, link: Link, received: Option<Vec<u8>>) {
        let Some(body) = self.bodies.remove(&link) else { return };
        if let Some(run) = &mut self.run {
            run.totals(body.direction).add(body.reading());
        }
        self.out.push_back(Output::Forget { flow: body.flow });
        match (received, body.direction) {
            (Some(_), Direction::Upload) => self.respond(now, link, &body),
            (Some(received), Direction::Download) => self.release(link, body.is_persistent, received),
            (None, _) => self.close(link),
        }
        self.idle_since(now);
    }

    fn idle_since(&mut self, now: Timestamp) {
        if self.bodies.is_empty() {
            self.next_look = None;
            self.due = Some(now + IDLE_TIMEOUT);
            if self.is_ending() {
                self.finish();
            }
        }
    }

    /// Whether the run has failed, and only waits for its flows.
    fn is_ending(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.trouble.is_some())
    }

    /// Ends the run, which has failed.
    pub(super) fn end(&mut self, now: Timestamp, why: &str) {
        if let Some(run) = &mut self.run {
            run.trouble.get_or_insert_with(|| why.to_owned());
        }
        let (returned, running): (Vec<_>, Vec<_>) = self
            .bodies
            .iter()
            .map(|(link, body)| (*link, body.flow, body.is_returned))
            .partition(|body| body.2);
        for (_, flow, _) in running {
            self.out.push_back(Output::Stop { flow, how: Stop::Abort });
        }
        returned.into_iter().for_each(|(link, ..)| self.finish_body(now, link, None));
        self.idle_since(now);
    }

    /// Ends the run and gives its place back.
    fn finish(&mut self) {
        (self.due, self.next_look) = (None, None);
        let Some(run) = self.run.take().filter(|run| run.is_admitted) else { return };
        self.out.extend(run.finish(self.number, self.browser.as_ref()));
    }

    fn tick(&mut self, now: Timestamp) {
        if is_due(self.due, now) {
            self.finish();
        }
        if is_due(self.next_look, now) {
            let is_written = self.bodies.values().any(HttpBody::is_written);
            self.next_look = Some(now + if is_written { ACKNOWLEDGE_INTERVAL } else { READ_INTERVAL });
            self.look();
        }
        let mut late = Vec::new();
        for (link, body) in &mut self.bodies {
            match body.phase {
                BodyPhase::Delivering(until) if until <= now && body.is_returned => late.push(*link),
                BodyPhase::Delivering(until) if until <= now => {
                    body.phase = BodyPhase::Delivering(now + ACKNOWLEDGE_TIMEOUT);
                    self.out.push_back(Output::Stop { flow: body.flow, how: Stop::Abort });
                }
                _ => {}
            }
        }
        late.into_iter().for_each(|link| self.finish_body(now, link, None));
    }
}

impl ToolSession for BodySession {
    fn input(&mut self, now: Timestamp, input: &Input<'_>) -> bool {
        let flow = match input {
            Input::Started { flow, .. } | Input::NotStarted { flow, .. } | Input::Written { flow } => {
                Some(*flow)
            }
            Input::Ended { counts } => Some(counts.flow),
            _ => None,
        };
        let own = flow.and_then(|flow| self.link_of(flow));
        match (input, own) {
            (Input::Admitted { run }, _) if *run == self.run_id() && self.run.is_some() => self.admitted(now),
            (Input::Refused { run, why, may_retry }, _) if *run == self.run_id() && self.run.is_some() => {
                self.refused(why, *may_retry);
            }
            (Input::Counts { flows, .. }, _) => self.counted(now, flows),
            (Input::Started { settings, .. }, Some(link)) => self.started(link, settings),
            (Input::NotStarted { reason, .. }, Some(link)) => self.not_started(now, link, &reason.text),
            (Input::Written { .. }, Some(link)) => self.written(now, link),
            (Input::Ended { counts }, Some(link)) => self.ended(now, link, counts),
            (Input::Bytes { link, bytes }, _) => return self.received(now, *link, bytes),
            (Input::Closed { link, reason }, _) => return self.closed(now, *link, reason.as_ref()),
            (Input::Tick, _) => self.tick(now),
            _ => return false,
        }
        true
    }

    fn output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    fn deadline(&self) -> Option<Timestamp> {
        let late = self.bodies.values().filter_map(|body| match body.phase {
            BodyPhase::Delivering(until) => Some(until),
            _ => None,
        });
        late.chain(self.due).chain(self.next_look).min()
    }

    fn is_over(&self) -> bool {
        self.run.is_none() && self.bodies.is_empty() && self.free.is_empty()
    }
}
