//! Time limits of admitted runs: the limit of the server, and earlier if others wait while its client is silent
//! or exceeds its announced duration.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use linerate_compat::stand_in::{Link, RunId};
use linerate_engine::ByteAccount;
use linerate_sock::{Mono, clock};
use linerate_units::{Bytes, Span};

use super::super::driver_event::{DriverEvent, own_reason};
use super::super::server_ports::MeasurementPermit;
use super::Driver;

/// How often the runs are checked.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// How long a client may be silent while others wait: as long as `UNANSWERED_TIMEOUT` for unacknowledged data,
/// and longer than a path needs to recover a segment that was lost three times.
const MAX_SILENCE: Duration = Duration::from_secs(8);

/// How much longer than announced a run may take while others wait: as long as the last bytes of our own flow
/// may need to leave the queues of a slow path.
const MAX_OVERTIME: Duration = Duration::from_secs(30);

/// An admitted run.
pub(super) struct Admitted {
    /// When it must end in any case.
    pub(super) until: Mono,
    /// Where the bytes of its flows are added.
    pub(super) account: Option<Arc<ByteAccount>>,
    /// The link to its peer.
    link: Link,
    peer: Option<IpAddr>,
    /// When it should end according to its client; absent if the client announced no duration.
    expected_end: Option<Mono>,
    /// Bytes moved by its flows, and when these last increased or a message last arrived.
    moved: u64,
    active: Mono,
    /// Why this end has ended it; absent while it runs.
    pub(super) ended_for: Option<&'static str>,
    /// Whether a thread exchanges its messages; there are no counts before the end then.
    exchanging: bool,
}

impl Admitted {
    /// Why it must end at `now` for the benefit of others; absent if it may continue.
    fn overstays(&self, now: Mono) -> Option<&'static str> {
        if self.ended_for.is_some() {
            return None;
        }
        let silent = || now >= self.active + MAX_SILENCE;
        match self.expected_end {
            // Within its announced duration a client may be silent.
            Some(end) if now < end => None,
            Some(end) if now >= end + MAX_OVERTIME => Some(
                "it takes longer than announced, and other \
                                                            clients are waiting",
            ),
            _ if self.exchanging => None,
            _ => silent().then_some("it is silent, and other clients are waiting"),
        }
    }
}

impl Driver<'_> {
    /// Notes an admitted run.
    pub(super) fn admit(
        &mut self,
        run: RunId,
        link: Link,
        expected: Option<Span>,
        peer: Option<SocketAddr>,
        leave: MeasurementPermit,
    ) {
        let now = clock::now();
        let admitted = Admitted {
            until: leave.until,
            account: leave.account,
            link,
            peer: peer.map(|peer| peer.ip().to_canonical()),
            expected_end: expected.map(|expected| now + expected.as_duration()),
            moved: 0,
            active: now,
            ended_for: None,
            exchanging: false,
        };
        self.admitted.insert(run, admitted);
        if self.ports.is_some() {
            self.next_courtesy = now + POLL_INTERVAL;
        }
    }

    /// Notes that something arrived from a host, so its runs are active.
    pub(super) fn note_activity(&mut self, events: &DriverEvent) {
        if self.admitted.is_empty() {
            return;
        }
        let host = |link: &Link| {
            self.core.links.ends(*link).and_then(|(_, remote)| remote).map(|remote| remote.ip())
        };
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

    /// Adds what a stand-in has moved itself to the quotas of its run.
    pub(super) fn moved(&mut self, run: RunId, bytes: Bytes) {
        if let Some(run) = self.admitted.get_mut(&run) {
            run.active = clock::now();
            if let Some(account) = &run.account {
                account.add(bytes);
            }
        }
    }

    /// Notes that another thread exchanges messages over a link.
    pub(super) fn exchange_begins(&mut self, link: Link) {
        let peer = self
            .core
            .links
            .ends(link)
            .and_then(|(_, remote)| remote)
            .map(|remote| remote.ip().to_canonical());
        for run in self.admitted.values_mut().filter(|run| run.peer == peer) {
            run.exchanging = true;
        }
    }

    /// Ends runs that exceed the server's limit.
    pub(super) fn end_late_runs(&mut self) {
        let late: Vec<RunId> =
            self.admitted.iter().filter(|(_, run)| run.until.has_passed()).map(|(run, _)| *run).collect();
        for run in late {
            self.end_run(run, "the run took longer than this server allows (--limit-time)");
        }
    }

    /// Ends runs that keep others waiting although their clients are silent or exceed their announced
    /// durations.
    pub(super) fn end_overstaying_runs(&mut self) {
        if !self.next_courtesy.has_passed() {
            return;
        }
        self.next_courtesy = if self.admitted.is_empty() { Mono::FAR } else { clock::now() + POLL_INTERVAL };
        let now = clock::now();
        let mut overstaying = Vec::new();
        for (number, run) in &mut self.admitted {
            let moved = self.core.flows.moved(*number);
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
        // Set before the end, so that a run is ended only once.
        run.ended_for = Some(why);
        let link = run.link;
        self.core.flows.abort(number);
        self.core.links.reset(link);
        self.events.push_back(DriverEvent::Closed { link, reason: Some(own_reason(why)) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Mono = Mono(1 << 40);

    /// A run that was admitted at [`START`] and last active then.
    fn run(expected: Option<u64>) -> Admitted {
        Admitted {
            account: None,
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

    /// The second, below 100, at which it must end for the benefit of others.
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
    fn a_silent_client_loses_its_place_without_an_announced_duration_or_after_it() {
        assert_eq!(makes_room(&mut run(None), |_| false), Some(8));
        assert_eq!(makes_room(&mut run(Some(20)), |_| false), Some(20));
        assert_eq!(makes_room(&mut run(Some(20)), |second| second < 20), Some(27));
    }

    #[test]
    fn a_client_that_sends_seldom_or_empties_a_queue_stays() {
        assert_eq!(makes_room(&mut run(None), |second| second % 7 == 0), None);
        assert_eq!(makes_room(&mut run(Some(99)), |_| false), Some(99));
        // The queue of a slow path may need half a minute, but no more.
        assert_eq!(makes_room(&mut run(Some(20)), |_| true), Some(50));
        let mut exchanging = run(None);
        exchanging.exchanging = true;
        assert_eq!(makes_room(&mut exchanging, |_| false), None);
    }

    #[test]
    fn a_run_is_ended_once() {
        let mut ended = run(None);
        ended.ended_for = Some("it is silent, and other clients are waiting");
        assert_eq!(makes_room(&mut ended, |_| false), None);
    }
}
