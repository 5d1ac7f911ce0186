//! Before the preparation: reserves places in the queues and compares the clocks.

use linerate_proto::agent::{AgentInput, AgentOutput, ClockExchange};
use linerate_units::Span;

use super::check::ends;
use super::clocks::AgentClockOffset;
use super::group::{POLL_INTERVAL, RunningGroup};
use super::host::CoordinatorHostEvent;

/// Number of clock exchanges before a group if the clocks were compared before.
const PINGS: usize = 8;

/// Timeout of an exchange. An unanswered request is not repeated.
const PONG: Span = Span::from_secs(2);

impl RunningGroup<'_, '_> {
    /// Reserves a place in the queue of every host that the group needs, one after another. All coordinators
    /// use the same order, so no two of them wait for each other.
    pub(super) fn reserve_places(&mut self) {
        let expected = ends(self.group).into_iter().max().unwrap_or_default();
        let mut hosts = self.group.hosts();
        hosts.sort_by_key(|at| self.hosts[*at].about().map(|about| about.identity.clone()));
        for at in hosts {
            if !self.hosts[at].connected() || self.flows_at(at).is_empty() {
                continue;
            }
            if self.hosts[at].ticket().is_some() {
                continue;
            }
            self.ask(at, AgentInput::Hold { expected });
            while self.hosts[at].ticket().is_none()
                && self.hosts[at].connected()
                && !self.flows_at(at).is_empty()
            {
                self.turn(self.now() + POLL_INTERVAL);
            }
        }
    }

    /// Compares the clocks again that may have drifted since the last comparison.
    pub(super) fn compare_clocks(&mut self) {
        let now = self.now();
        let mut hosts = self.group.hosts();
        hosts.retain(|at| self.hosts[*at].offset.is_stale(now));
        let mut seen: Vec<Vec<ClockExchange>> = vec![Vec::new(); self.hosts.len()];
        for round in 1..=PINGS {
            let asked: Vec<usize> = hosts.iter().copied().filter(|at| self.hosts[*at].connected()).collect();
            asked.iter().for_each(|at| self.ask(*at, AgentInput::Ping));
            let until = self.now() + PONG;
            while self.now() < until && !self.is_over() {
                if asked.iter().all(|at| seen[*at].len() >= round || !self.hosts[*at].connected()) {
                    break;
                }
                for (at, event) in self.listen(until) {
                    match event {
                        CoordinatorHostEvent::Message(AgentOutput::Pong(exchange)) => {
                            self.start_lead.trip(exchange.back.since(exchange.sent));
                            seen[at].push(exchange);
                        }
                        CoordinatorHostEvent::Message(message) => self.handle(at, message),
                        CoordinatorHostEvent::Gone(why) => self.host_lost(at, &why),
                    }
                }
            }
        }
        for (host, seen) in self.hosts.iter_mut().zip(&seen) {
            host.offset = AgentClockOffset::of(seen).unwrap_or(host.offset);
        }
    }
}
