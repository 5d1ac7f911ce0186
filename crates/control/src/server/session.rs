//! One run on the server.

mod series;

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use linerate_engine::Sockets;
use linerate_model::{Caveat, CaveatKind, CheckedSpec};
use linerate_proto::native::{Preface, ServerSession};
use linerate_proto::{Admission, FlowOrder, Hello, Input, Output, Place, Ticket};
use linerate_sock::{clock, limits};

use super::queue::Turn;
use super::registry::{Arrival, Inbox};
use super::{News, Shared};
use crate::dialogue::{Dialogue, Happening, is_gone};
use crate::error::ControlError;
use crate::setup::{expected_time, flow_setup, socket_options};

/// How often a waiting client's place and the stop flag are looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Open files that a server needs beside the streams of a run.
const SPARE_FILES: u64 = 32;

/// Serves one client until its run is over.
pub(super) fn serve(connection: TcpStream, peer: SocketAddr, preface: Preface, shared: &Shared) {
    let result = Run::begin(connection, peer, preface, shared).and_then(|mut run| {
        let result = run.serve();
        run.leave();
        result
    });
    let trouble = match &result {
        Ok(Served::Measured) => None,
        Ok(Served::Refused(why)) => Some(why.clone()),
        Err(error) => Some(error.to_string()),
    };
    if let Err(error) = &result
        && !is_gone(error)
    {
        tracing::warn!(%peer, %error, "a run failed");
    }
    (shared.news)(News::Ended { client: peer, trouble });
}

enum Served {
    Measured,
    Refused(String),
}

struct Run<'a> {
    dialogue: Dialogue<ServerSession>,
    peer: SocketAddr,
    shared: &'a Shared,
    client: Option<Client>,
    begun: bool,
    told: Option<Place>,
    arrived: BTreeMap<(u16, u32), Arrival>,
    awaited: Vec<FlowOrder>,
    refused: Option<String>,
    deadline: Option<linerate_sock::Mono>,
    warned: bool,
    series: series::Series,
}

/// A client that has said what it wants.
struct Client {
    name: String,
    spec: CheckedSpec,
    /// Its place in the queue.
    ticket: u64,
    /// Shows whose place it is, when that is its coordinator's.
    guest: Option<Ticket>,
    cookie: [u8; 16],
    inbox: Arc<Inbox>,
}

impl<'a> Run<'a> {
    fn begin(
        connection: TcpStream,
        peer: SocketAddr,
        preface: Preface,
        shared: &'a Shared,
    ) -> Result<Self, ControlError> {
        let epoch = clock::now();
        let session = ServerSession::new(linerate_units::Timestamp::START);
        let mut dialogue = Dialogue::new(session, connection, epoch, false)?;
        // The door has read it; the session wants to see it.
        dialogue.input(Input::Bytes(&preface.encode()))?;
        Ok(Self {
            dialogue,
            peer,
            shared,
            client: None,
            begun: false,
            told: None,
            arrived: BTreeMap::new(),
            awaited: Vec::new(),
            refused: None,
            deadline: None,
            warned: false,
            series: series::Series::default(),
        })
    }

    fn serve(&mut self) -> Result<Served, ControlError> {
        loop {
            let happenings = self.turn()?;
            for happening in happenings {
                match happening {
                    Happening::Session(Output::Asked(hello)) => self.asked(*hello)?,
                    Happening::Session(Output::Open(flows)) => {
                        self.dialogue.idle_ends();
                        self.awaited = flows;
                    }
                    Happening::Session(Output::Trial(trial)) => self.begin_trial(trial)?,
                    Happening::Session(Output::PeerEnded(ended)) => self.end_series(&ended)?,
                    Happening::Session(Output::Done) => {
                        self.dialogue.flush_at_end();
                        return Ok(self.refused.take().map_or(Served::Measured, Served::Refused));
                    }
                    _ => {}
                }
            }
            self.admit_in_turn()?;
            self.open_when_complete()?;
            self.look_at_series()?;
            self.notice_neighbours();
            self.leave_with_coordinator()?;
            if self.shared.stopping() {
                let stopped = self.dialogue.input(Input::Stop);
                self.dialogue.flush_at_end();
                stopped?;
            }
            if self.deadline.is_some_and(linerate_sock::Mono::has_passed) {
                let why = "the run took longer than this server allows (--limit-time)".to_owned();
                let _ = self.dialogue.input(Input::FlowsFailed(why.clone()));
                self.dialogue.flush_at_end();
                return Ok(Served::Refused(why));
            }
        }
    }

    fn turn(&mut self) -> Result<Vec<Happening>, ControlError> {
        let until = clock::now() + LOOK;
        let inbox = self.client.as_ref().map(|client| Arc::clone(&client.inbox));
        let bells: Vec<_> = inbox.iter().map(|inbox| inbox.bell.as_fd()).chain(self.series.bell()).collect();
        let happenings = self.dialogue.turn(until, &bells)?;
        for arrival in inbox.iter().flat_map(|inbox| inbox.take()) {
            let key = match &arrival {
                Arrival::Tcp { flow, stream, .. } | Arrival::Udp { flow, stream, .. } => (*flow, *stream),
            };
            // A second one for the same stream is a mistake or an attack: the first stays.
            self.arrived.entry(key).or_insert(arrival);
        }
        Ok(happenings)
    }

    fn asked(&mut self, hello: Hello) -> Result<(), ControlError> {
        let config = &self.shared.config;
        let length = expected_time(&hello.spec);
        let clients = u32::try_from(self.shared.queue.len()).unwrap_or(u32::MAX);
        let place = hello.ticket.map(|ticket| self.shared.passes.place(&ticket));
        if place == Some(None) {
            return self.refuse("the place that the coordinator of this run held here is gone".to_owned());
        }
        if place.is_none() && config.most_clients.is_some_and(|most| clients >= most) {
            return self.refuse(format!(
                "{clients} clients are here already, the limit of this server; try again later"
            ));
        }
        if let Some(longest) = config.longest.filter(|longest| length > *longest) {
            return self.refuse(format!(
                "the run would take {length}, this server allows {longest}; give a shorter -t"
            ));
        }
        let traffic = &hello.spec.traffic;
        let flows_at_once = traffic.phases().iter().map(Vec::len).max().unwrap_or(1) as u64;
        let files = u64::from(traffic.streams) * flows_at_once + SPARE_FILES;
        if let Err(error) = limits::raise_open_files(files) {
            return self.refuse(format!("too few open files there: {}", ControlError::from(error)));
        }
        let mut cookie = [0; 16];
        getrandom::fill(&mut cookie)
            .map_err(|error| ControlError::Local(format!("no random numbers: {error}")))?;
        let inbox = self.shared.registry.open(cookie)?;
        let ticket = place.flatten().unwrap_or_else(|| self.shared.queue.join(length));
        let (name, spec, guest) = (hello.host.name, hello.spec, hello.ticket);
        self.client = Some(Client { name, spec, ticket, guest, cookie, inbox });
        Ok(())
    }

    fn refuse(&mut self, why: String) -> Result<(), ControlError> {
        self.dialogue.input(Input::Refuse(why.clone()))?;
        self.refused = Some(why);
        Ok(())
    }

    fn admit_in_turn(&mut self) -> Result<(), ControlError> {
        let Some(client) = self.client.as_ref().filter(|_| !self.begun) else { return Ok(()) };
        match self.shared.queue.turn(client.ticket) {
            Turn::Now { beside } => {
                self.begun = true;
                self.deadline = self.shared.config.longest.map(|longest| {
                    // What was asked fits; the rest is for opening, draining and the dialogue.
                    clock::now() + longest.as_duration() + Duration::from_secs(10)
                });
                let local = self.dialogue.stream().local_addr().ok().map(|address| address.ip());
                let host = self.shared.config.host(local);
                let admission = Admission { host, cookie: client.cookie, neighbours: beside };
                (self.shared.news)(News::Begun { client: self.peer, name: client.name.clone() });
                self.dialogue.input(Input::Admit(Box::new(admission)))?;
                self.dialogue.idle_begins();
                Ok(())
            }
            Turn::Later { place, wait } => {
                let place = Place { place, wait_ns: wait };
                if self.told.is_none_or(|told| told.place != place.place) {
                    self.told = Some(place);
                    (self.shared.news)(News::Waiting { client: self.peer, place: place.place });
                    self.dialogue.input(Input::Wait(place))?;
                }
                Ok(())
            }
        }
    }

    fn open_when_complete(&mut self) -> Result<(), ControlError> {
        let Some(client) = self.client.as_ref().filter(|_| !self.awaited.is_empty()) else { return Ok(()) };
        let streams = client.spec.traffic.streams;
        let here = |flow: u16| self.arrived.range((flow, 0)..(flow, streams)).count() as u32;
        if self.awaited.iter().any(|order| here(order.flow()) < streams) {
            return Ok(());
        }
        let options = socket_options(&client.spec, false);
        let interface = self
            .dialogue
            .stream()
            .local_addr()
            .ok()
            .and_then(|address| linerate_sock::iface::of_local_address(address.ip()).ok())
            .map(|link| link.name);
        let mut flows = Vec::new();
        for order in std::mem::take(&mut self.awaited) {
            let sockets = take_sockets(&mut self.arrived, order.flow(), client.spec.traffic.udp, &options);
            let mut setup = flow_setup(&client.spec, &order, false, &client.cookie);
            setup.interface.clone_from(&interface);
            match sockets {
                Ok(sockets) if client.spec.sweep.is_some() => return self.begin_series(sockets),
                Ok(sockets) => flows.push((setup, sockets)),
                Err(error) => {
                    let _ = self.dialogue.input(Input::FlowsFailed(format!("the server: {error}")));
                    self.dialogue.flush_at_end();
                    return Err(error);
                }
            }
        }
        self.dialogue.arm(flows)?;
        self.dialogue.begin(None)
    }

    /// A guest stays for as long as its coordinator has the place.
    fn leave_with_coordinator(&mut self) -> Result<(), ControlError> {
        let guest = self.client.as_ref().and_then(|client| client.guest);
        if guest.is_none_or(|ticket| self.shared.passes.place(&ticket).is_some()) {
            return Ok(());
        }
        let why = "the coordinator of this run is gone".to_owned();
        let ended = self.dialogue.input(Input::FlowsFailed(why));
        self.dialogue.flush_at_end();
        ended
    }

    /// Others that came while this run was under way weaken its result.
    fn notice_neighbours(&mut self) {
        let Some(client) = self.client.as_ref().filter(|_| self.begun && !self.warned) else { return };
        if let Turn::Now { beside } = self.shared.queue.turn(client.ticket)
            && beside > 0
        {
            self.warned = true;
            let text = format!("up to {beside} other run(s) on the server at the same time");
            self.dialogue.add_caveat(Caveat { kind: CaveatKind::Neighbour, text });
        }
    }

    fn leave(&mut self) {
        self.series.drop_stream();
        if self.dialogue.flows_running() {
            self.dialogue.salvage();
        }
        if let Some(client) = self.client.take() {
            self.shared.registry.close(&client.cookie);
            if client.guest.is_some() {
                return;
            }
            self.shared.queue.leave(client.ticket);
            if self.begun && self.shared.config.one_off {
                self.shared.switch.turn_off();
            }
        }
    }
}

/// The sockets of a flow in the order of their streams, set as the client asks.
fn take_sockets(
    arrived: &mut BTreeMap<(u16, u32), Arrival>,
    flow: u16,
    udp: bool,
    options: &linerate_sock::SocketOptions,
) -> Result<Sockets, ControlError> {
    let rest = arrived.split_off(&(flow, 0));
    let mut connections: Vec<TcpStream> = Vec::new();
    let mut sockets: Vec<UdpSocket> = Vec::new();
    for (key, arrival) in rest {
        match arrival {
            _ if key.0 != flow => drop(arrived.insert(key, arrival)),
            Arrival::Tcp { connection, .. } if !udp => {
                options.apply_tcp(&connection)?;
                connections.push(connection);
            }
            Arrival::Udp { socket, .. } if udp => {
                options.apply_any(&socket)?;
                sockets.push(socket);
            }
            _ => {}
        }
    }
    Ok(if udp { Sockets::Udp(sockets) } else { Sockets::Tcp(connections) })
}
