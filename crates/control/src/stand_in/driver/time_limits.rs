//! When a run that was let in has to end: at the server's limit, or sooner where others wait only because its client says
//! nothing, or stays longer than it said.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use linerate_proto::stand_in::{Link, Planned, RunId};
use linerate_sock::{Mono, clock};

use super::super::driver_event::{DriverEvent, own_reason};
use super::super::server_ports::MeasurementPermit;
use super::Driver;

/// How often runs are looked at.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// How long a client may say nothing while others wait: as long as one that leaves something unanswered. Longer than what a
/// path takes that lost a segment three times.
const MAX_SILENCE: Duration = Duration::from_secs(8);

/// How much longer than it said a run may take while others wait: as long as the last bytes of our own may, which a slow
/// path empties its queues of.
const MAX_OVERTIME: Duration = Duration::from_secs(30);

/// A run that was let in.
pub(super) struct Admitted {
    /// When it has to be over in any case.
    pub(super) until: Mono,
    /// A link to its peer.
    link: Link,
    peer: Option<IpAddr>,
    /// When it should be over, as its client said; absent when it did not.
    expected_end: Option<Mono>,
    /// Bytes of its flows, and when there were more of them, or something was said, for the last time.
    moved: u64,
    active: Mono,
    /// Why this end ended it, once it has.
    pub(super) ended_for: Option<&'static str>,
    /// Its messages are being exchanged, of which nothing is seen before the end.
    exchanging: bool,
}

impl Admitted {
    /// Why it has to make room for others at `now`, if it has to.
    fn overstays(&self, now: Mono) -> Option<&'static str> {
        if self.ended_for.is_some() {
            return None;
        }
        let silent = || now >= self.active + MAX_SILENCE;
        match self.expected_end {
            // It may send as seldom as it likes, for as long as it said.
            Some(end) if now < end => None,
            Some(end) if now >= end + MAX_OVERTIME => Some("it takes longer than it said, and others wait"),
            _ if self.exchanging => None,
            _ => silent().then_some("it says nothing, and others wait"),
        }
    }
}

impl Driver<'_> {
    /// A run was let in.
    pub(super) fn admit(&mut self, planned: &Planned, peer: Option<SocketAddr>, leave: MeasurementPermit) {
        let now = clock::now();
        let admitted = Admitted {
            until: leave.until,
            link: planned.link,
            peer: peer.map(|peer| peer.ip().to_canonical()),
            expected_end: planned.expected.map(|expected| now + expected.as_duration()),
            moved: 0,
            active: now,
            ended_for: None,
            exchanging: false,
        };
        self.admitted.insert(planned.run, admitted);
        if self.ports.is_some() {
            self.next_courtesy = now + POLL_INTERVAL;
        }
    }

    /// Something came from a host: its runs live.
    pub(super) fn note_activity(&mut self, events: &DriverEvent) {
        if self.admitted.is_empty() {
            return;
        }
        let host =
            |link: &Link| self.links.ends(*link).and_then(|(_, remote)| remote).map(|remote| remote.ip());
        let (from, exchanged) = match events {
            DriverEvent::Bytes { link, .. } => (host(link), false),
            DriverEvent::Exchanged { link, .. } => (host(link), true),
            DriverEvent::Datagram { from, .. } => (Some(from.ip()), false),
            _ => return,
        };
        let from = from.map(|from| from.to_canonical());
        for run in self.admitted.values_mut().filter(|run| run.peer == from) {
            run.active = clock::now();
            run.exchanging &= !exchanged;
        }
    }

    /// Messages are exchanged over a link, by somebody else.
    pub(super) fn exchange_begins(&mut self, link: Link) {
        let peer =
            self.links.ends(link).and_then(|(_, remote)| remote).map(|remote| remote.ip().to_canonical());
        for run in self.admitted.values_mut().filter(|run| run.peer == peer) {
            run.exchanging = true;
        }
    }

    /// Ends runs that take longer than the server allows.
    pub(super) fn end_late_runs(&mut self) {
        let late: Vec<RunId> =
            self.admitted.iter().filter(|(_, run)| run.until.has_passed()).map(|(run, _)| *run).collect();
        for run in late {
            self.end_run(run, "the run took longer than this server allows (--limit-time)");
        }
    }

    /// Ends runs that others wait for only because their clients say nothing, or stay longer than they said.
    pub(super) fn end_overstaying_runs(&mut self) {
        if !self.next_courtesy.has_passed() {
            return;
        }
        self.next_courtesy = if self.admitted.is_empty() { Mono::FAR } else { clock::now() + POLL_INTERVAL };
        let now = clock::now();
        let mut overstaying = Vec::new();
        for (number, run) in &mut self.admitted {
            let moved = self.flows.moved(*number);
            if moved != run.moved {
                (run.moved, run.active) = (moved, now);
            }
            let wait = || self.ports.as_ref().is_some_and(|ports| ports.others_wait(*number));
            if let Some(why) = run.overstays(now).filter(|_| wait()) {
                overstaying.push((*number, why));
            }
        }
        for (run, why) in overstaying {
            self.end_run(run, why);
        }
    }

    fn end_run(&mut self, number: RunId, why: &'static str) {
        let Some(run) = self.admitted.get_mut(&number) else { return };
        run.until = Mono::FAR;
        // Told once: what is left of it ends by itself.
        run.ended_for = Some(why);
        let link = run.link;
        self.flows.abort(number);
        self.links.reset(link);
        self.events.push_back(DriverEvent::Closed { link, reason: Some(own_reason(why)) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Mono = Mono(1 << 40);

    /// A run that was let in at the start and was last active then.
    fn run(expected: Option<u64>) -> Admitted {
        Admitted {
            until: Mono::FAR,
            link: Link(1),
            peer: None,
            expected_end: expected.map(|seconds| START + Duration::from_secs(seconds)),
            moved: 0,
            active: START,
            ended_for: None,
            exchanging: false,
        }
    }

    /// After how many seconds it has to make room, of the first hundred.
    fn makes_room(run: &mut Admitted, active: impl Fn(u64) -> bool) -> Option<u64> {
        (0..100).find(|second| {
            let now = START + Duration::from_secs(*second);
            if active(*second) {
                run.active = now;
            }
            run.overstays(now).is_some()
        })
    }

    #[test]
    fn a_silent_client_makes_room_when_it_has_not_said_how_long_it_stays_or_stays_longer() {
        assert_eq!(makes_room(&mut run(None), |_| false), Some(8));
        assert_eq!(makes_room(&mut run(Some(20)), |_| false), Some(20));
        assert_eq!(makes_room(&mut run(Some(20)), |second| second < 20), Some(27));
    }

    #[test]
    fn a_client_that_sends_seldom_or_empties_a_queue_stays() {
        assert_eq!(makes_room(&mut run(None), |second| second % 7 == 0), None);
        assert_eq!(makes_room(&mut run(Some(99)), |_| false), Some(99));
        // The queue of a slow path goes on for half a minute, and no longer.
        assert_eq!(makes_room(&mut run(Some(20)), |_| true), Some(50));
        let mut exchanging = run(None);
        exchanging.exchanging = true;
        assert_eq!(makes_room(&mut exchanging, |_| false), None);
    }

    #[test]
    fn a_run_is_ended_once() {
        let mut ended = run(None);
        ended.ended_for = Some("it says nothing, and others wait");
        assert_eq!(makes_room(&mut ended, |_| false), None);
    }
}
