//! The control socket of a lab: answers requests in threads of its own, so that no answer delays a frame.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use linerate_sock::clock::{self, Mono};
use linerate_sock::poll::EventFd;
use linerate_sock::thread;

use crate::control_protocol::{Answer, Ask, HostStatus, LinkStatus, PortStatus, Status};
use crate::history::{History, Past};
use crate::host_nic::HostNic;
use crate::switch::{LATE_BOUND_NS, SwitchOrder, SwitchReport};
use linerate_emu::topology::{self, Topology, TopologyLink};

/// The longest request.
const MAX_REQUEST_BYTES: u64 = 64 << 10;
/// How long a client may pause within a request, and the switch may take to answer.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(10);

/// State shared by the control threads.
pub(super) struct ControlState {
    pub(super) name: String,
    pub(super) topology: Mutex<Topology>,
    pub(super) hosts: Vec<HostStatus>,
    pub(super) notes: Vec<String>,
    pub(super) rootless: bool,
    pub(super) epoch: Mono,
    pub(super) orders: Mutex<Sender<SwitchOrder>>,
    pub(super) waker: Arc<EventFd>,
    pub(super) history: Arc<Mutex<History>>,
    /// The NICs of the hosts on links with `nic`.
    pub(super) nics: Vec<HostNic>,
}

/// Pause after a connection that could not be accepted, for example because the process is out of descriptors:
/// another try at once would fail as well.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// Answers every client that connects, until the process ends.
pub(super) fn serve(listener: &UnixListener, state: &Arc<ControlState>) {
    for stream in accepted(listener.incoming()) {
        let state = Arc::clone(state);
        // If no thread can be started for a client, its connection is closed.
        let _ = thread::spawn("lab-desk", move || state.serve_client(&stream));
    }
}

/// The connections, without those that could not be accepted.
fn accepted<S>(incoming: impl Iterator<Item = io::Result<S>>) -> impl Iterator<Item = S> {
    incoming.filter_map(|stream| {
        if stream.is_err() {
            clock::sleep_until(clock::now() + ACCEPT_RETRY_INTERVAL);
        }
        stream.ok()
    })
}

impl ControlState {
    fn serve_client(&self, stream: &UnixStream) {
        let timed =
            stream.set_read_timeout(Some(CLIENT_TIMEOUT)).and(stream.set_write_timeout(Some(CLIENT_TIMEOUT)));
        if timed.is_err() {
            return;
        }
        let mut reader = BufReader::new(stream.take(MAX_REQUEST_BYTES));
        loop {
            let mut line = String::new();
            match reader.read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => reader.get_mut().set_limit(MAX_REQUEST_BYTES),
            }
            let answer = match serde_json::from_str::<Ask>(&line) {
                Ok(ask) => self.answer(&ask),
                Err(error) => Answer::Refused { why: format!("unreadable request: {error}") },
            };
            let Ok(mut text) = serde_json::to_string(&answer) else { return };
            text.push('\n');
            let mut writer = stream;
            if writer.write_all(text.as_bytes()).is_err() {
                return;
            }
        }
    }

    fn answer(&self, ask: &Ask) -> Answer {
        match ask {
            Ask::Status => match self.report() {
                Some(report) => Answer::Status(Box::new(self.status(report))),
                None => Answer::Refused { why: "the switch does not answer".into() },
            },
            Ask::PortHistory { from_ns, to_ns } => {
                let past = self.past(|history| history.between(*from_ns, *to_ns));
                Answer::PortHistory(past.port_history(LATE_BOUND_NS))
            }
            Ask::Set { target, changes } => match self.set(target, changes) {
                Ok(()) => Answer::Done,
                Err(why) => Answer::Refused { why },
            },
            Ask::Down => {
                self.order(SwitchOrder::Stop);
                Answer::Done
            }
        }
    }

    /// A part of the history. The switch writes to it while it works, so the lock is held only to copy the
    /// part.
    fn past(&self, part: impl FnOnce(&History) -> Past) -> Past {
        part(&self.history.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn order(&self, order: SwitchOrder) {
        let orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        // A switch that has ended accepts no orders and needs none.
        let _ = orders.send(order);
        self.waker.wake();
    }

    fn report(&self) -> Option<SwitchReport> {
        let (to, from) = channel();
        self.order(SwitchOrder::Report(to));
        from.recv_timeout(CLIENT_TIMEOUT).ok()
    }

    /// Applies all changes or, at the first mistake, none.
    fn set(&self, target: &str, changes: &[(String, String)]) -> Result<(), String> {
        let mut topology = self.topology.lock().unwrap_or_else(PoisonError::into_inner);
        let target = topology::parse_target(target).map_err(|error| error.to_string())?;
        let (number, sides) = target.find(&topology).map_err(|error| error.to_string())?;
        let mut link = topology.links[number].clone();
        for &side in sides {
            let changes = changes.iter().map(|(key, value)| (key.as_str(), value.as_str()));
            topology::change_direction(&mut link.directions[side], changes)
                .map_err(|error| error.to_string())?;
        }
        // The NICs first: only they can fail.
        self.update_nics(number, sides, &topology.links[number], &link)?;
        for &side in sides {
            let direction = Box::new(link.directions[side].clone());
            self.order(SwitchOrder::Set { link: Box::new(link.clone()), number, side, direction });
        }
        topology.links[number] = link;
        Ok(())
    }

    /// Applies a change of a link to the NICs at it, all or none.
    fn update_nics(
        &self,
        number: usize,
        sides: &[usize],
        from: &TopologyLink,
        to: &TopologyLink,
    ) -> Result<(), String> {
        let nics = self.nics.iter().filter(|nic| nic.link == number && sides.contains(&nic.end));
        for (at, nic) in nics.clone().enumerate() {
            if let Err(error) = nic.follow(to) {
                for changed in nics.take(at) {
                    let _ = changed.follow(from);
                }
                return Err(error.to_string());
            }
        }
        Ok(())
    }

    fn status(&self, report: SwitchReport) -> Status {
        let topology = self.topology.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = self.past(History::last_second).recent();
        let mut keeping_up = report.keeping_up;
        keeping_up.cpu = recent.as_ref().map_or(0.0, |recent| recent.cpu);
        let links = LinkStatus::all_of(&topology);
        let gone = report.gone.iter().map(|gone| gone.describe(&topology));
        let port = |(number, counts): (usize, linerate_emu::fabric::PortCounts)| {
            let last = recent.as_ref().and_then(|r| r.ports.get(number).copied());
            let last = last.unwrap_or_default();
            let link = &links[number / 2];
            PortStatus {
                link: link.name.clone(),
                rate_bps: link.directions[number % 2].rate_bps,
                wire_bps: last.wire_bps,
                pps: last.pps,
                busy: last.busy,
                dropped: counts.dropped(),
                counts: linerate_emu::fabric::PortCounts {
                    queue_max_bytes: linerate_units::Bytes::new(last.queue_max.max(counts.queue_bytes.get())),
                    ..counts
                },
            }
        };
        Status {
            name: self.name.clone(),
            topology: topology.name.clone(),
            seed: topology.seed,
            pid: Some(std::process::id()),
            rootless: self.rootless,
            up_ns: Some(clock::now().as_ns().saturating_sub(self.epoch.as_ns())),
            hosts: self.hosts.clone(),
            switches: topology.switches.iter().map(|switch| switch.name.clone()).collect(),
            ports: report.ports.into_iter().enumerate().map(port).collect(),
            links,
            packet_accounting: report.packet_accounting,
            keeping_up,
            notes: self.notes.iter().cloned().chain(gone).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_out_of_descriptors_does_not_try_to_accept_without_a_pause() {
        let out_of_files = || Err(io::Error::from_raw_os_error(24));
        let began = clock::now();
        let clients: Vec<u32> = accepted([out_of_files(), out_of_files(), Ok(7)].into_iter()).collect();
        assert_eq!(clients, [7]);
        assert!(clock::now().since(began) >= 2 * ACCEPT_RETRY_INTERVAL);
    }
}
