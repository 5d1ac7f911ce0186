//! Decides who is measured when.
//!
//! Hosts take turns: each is served once before any is served again, however many places it has in the queue.
//! Therefore the position of a client may increase when another host arrives, by one for each round.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use linerate_engine::ByteAccount;

use linerate_sock::thread::locked;
use linerate_sock::{Mono, clock};
use linerate_units::Span;

use super::quota::{PendingTests, QuotaExceeded, UsageLedger, network_of};
use super::{Policy, QueueLoad, ServerLimits};
use crate::shares::AddressGroup;

/// Clients that cannot wait, such as those of foreign tools, are refused and will retry. For this time after
/// the refusal they count as waiting.
const RETRY_WINDOW: Duration = Duration::from_secs(10);

/// Most refused hosts that are remembered.
const MAX_REMEMBERED_HOSTS: usize = 64;

/// The running and waiting clients.
#[derive(Debug)]
pub(super) struct ClientQueue {
    policy: Policy,
    state: Mutex<QueueState>,
}

#[derive(Debug)]
struct QueueState {
    next: u64,
    limits: ServerLimits,
    usage: UsageLedger,
    /// By ticket, in the order of arrival.
    clients: BTreeMap<u64, QueuedClient>,
    /// For each host with clients here: value of `let_in` before its last admission.
    served: BTreeMap<AddressGroup, u64>,
    let_in: u64,
    /// Hosts whose clients were refused because another one was running, and until when they count as waiting.
    sent_away: BTreeMap<AddressGroup, Mono>,
}

#[derive(Debug)]
struct QueuedClient {
    host: AddressGroup,
    /// Whose quotas it uses; absent if it has none.
    network: Option<AddressGroup>,
    /// Where the bytes of its flows are added, once it runs.
    account: Option<Arc<ByteAccount>>,
    length: Span,
    began: Option<Mono>,
    /// Largest number of other clients that ran at the same time.
    concurrent_runs: u32,
    /// Whether a client of another host has displaced it.
    displaced: bool,
}

/// What a client may do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueDecision {
    /// It may run; the number of other running clients is `concurrent_runs`.
    Now { concurrent_runs: u32 },
    /// It waits at position `position`.
    Later { position: u32, wait: Span },
    /// It was displaced by a host that had no position in the full queue.
    Displaced,
}

/// Why a client gets no place in the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoPlace {
    /// The queue is full, with this number of clients.
    Full(usize),
    /// Its network may not measure more for some time.
    Quota(QuotaExceeded),
}

impl NoPlace {
    /// Whether it makes sense to ask again soon.
    pub(super) fn may_retry(&self) -> bool {
        matches!(self, Self::Full(_))
    }
}

impl std::fmt::Display for NoPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Full(here) => {
                write!(f, "{here} clients are already connected, the limit of this server; try again later")
            }
            Self::Quota(exceeded) => exceeded.fmt(f),
        }
    }
}

impl ClientQueue {
    pub(super) fn new(policy: Policy, limits: ServerLimits) -> Self {
        let state = QueueState {
            next: 0,
            limits,
            usage: UsageLedger::new(limits.quotas, clock::now()),
            clients: BTreeMap::new(),
            served: BTreeMap::new(),
            let_in: 0,
            sent_away: BTreeMap::new(),
        };
        Self { policy, state: Mutex::new(state) }
    }

    /// Replaces the limits; nobody who waits is sent away.
    pub(super) fn set_limits(&self, limits: ServerLimits) {
        let mut state = locked(&self.state);
        state.limits = limits;
        state.usage.set_quotas(limits.quotas);
    }

    /// The longest run that is allowed; absent for no limit.
    pub(super) fn longest(&self) -> Option<Span> {
        locked(&self.state).limits.longest
    }

    /// Adds a client from `address` with an expected duration of `length`; returns its ticket. If the queue is
    /// full, the last waiting client of the host with the most places is displaced in favour of a host that has
    /// none.
    pub(super) fn join(&self, address: IpAddr, length: Span) -> Result<u64, NoPlace> {
        self.enter(address, length, network_of(address))
    }

    /// Adds a client that has shown a token: quotas are for strangers.
    pub(super) fn join_known(&self, address: IpAddr, length: Span) -> Result<u64, NoPlace> {
        self.enter(address, length, None)
    }

    fn enter(&self, address: IpAddr, length: Span, network: Option<AddressGroup>) -> Result<u64, NoPlace> {
        let mut state = locked(&self.state);
        let host = AddressGroup::host(address);
        if let Some(network) = network {
            let pending = state.pending(network);
            state.usage.check(network, length, pending, clock::now()).map_err(NoPlace::Quota)?;
        }
        let here = state.clients.values().filter(|client| !client.displaced).count();
        let is_full = state.limits.most_clients.is_some_and(|most| here >= most as usize);
        if is_full && !state.make_room_for(host) {
            return Err(NoPlace::Full(here));
        }
        let ticket = state.next;
        state.next += 1;
        let client = QueuedClient {
            host,
            network,
            account: None,
            length,
            began: None,
            concurrent_runs: 0,
            displaced: false,
        };
        state.clients.insert(ticket, client);
        Ok(ticket)
    }

    pub(super) fn leave(&self, ticket: u64) {
        let mut state = locked(&self.state);
        let Some(gone) = state.clients.remove(&ticket) else { return };
        if let (Some(network), Some(began)) = (gone.network, gone.began) {
            state.usage.ended(network, Span::from(clock::now().since(began)));
        }
        if !state.clients.values().any(|client| client.host == gone.host) {
            state.served.remove(&gone.host);
        }
    }

    /// Where the bytes of a running client's flows are to be added; absent if it has no quota.
    pub(super) fn account(&self, ticket: u64) -> Option<Arc<ByteAccount>> {
        locked(&self.state).clients.get(&ticket)?.account.clone()
    }

    /// The running and waiting clients.
    pub(super) fn load(&self) -> QueueLoad {
        let state = locked(&self.state);
        let here = || state.clients.values().filter(|client| !client.displaced);
        let running = here().filter(|client| client.began.is_some()).count();
        QueueLoad { running, waiting: here().count() - running }
    }

    /// Like [`ClientQueue::leave`], for a client that cannot wait and will retry.
    pub(super) fn leave_for_retry(&self, ticket: u64) {
        {
            let mut state = locked(&self.state);
            let host = state.clients.get(&ticket).map(|client| client.host);
            state.sent_away.retain(|_, until| !until.has_passed());
            if let Some(host) = host
                && (state.sent_away.len() < MAX_REMEMBERED_HOSTS || state.sent_away.contains_key(&host))
            {
                state.sent_away.insert(host, clock::now() + RETRY_WINDOW);
            }
        }
        self.leave(ticket);
    }

    /// Whether clients of other hosts wait for this one to end.
    pub(super) fn others_wait(&self, ticket: u64) -> bool {
        let state = locked(&self.state);
        let host = state.clients.get(&ticket).map(|client| client.host);
        let waits =
            |other: &QueuedClient| other.began.is_none() && !other.displaced && Some(other.host) != host;
        let will_come = |(other, until): (&AddressGroup, &Mono)| Some(*other) != host && !until.has_passed();
        self.policy == Policy::Exclusive
            && host.is_some()
            && (state.clients.values().any(waits) || state.sent_away.iter().any(will_come))
    }

    /// Whether the client may run now. Once admitted, it stays so until it leaves.
    pub(super) fn turn(&self, ticket: u64) -> QueueDecision {
        let now = clock::now();
        let mut state = locked(&self.state);
        let at_work = state.clients.values().filter(|client| client.began.is_some()).count() as u32;
        let begun = match state.clients.get(&ticket) {
            Some(client) if client.displaced => return QueueDecision::Displaced,
            client => client.is_some_and(|client| client.began.is_some()),
        };
        let line = if begun { Vec::new() } else { state.line() };
        let free = self.policy == Policy::Shared || (at_work == 0 && line.first() == Some(&ticket));
        if !begun && free {
            state.admit_client(ticket, now, at_work);
        }
        if begun || free {
            return QueueDecision::Now {
                concurrent_runs: state.clients.get(&ticket).map_or(0, |client| client.concurrent_runs),
            };
        }
        let (position, wait) = state.position(&line, ticket, now);
        QueueDecision::Later { position, wait }
    }

    /// Position of a waiting client, and its longest expected wait. Unlike [`ClientQueue::turn`], this admits nobody.
    pub(super) fn position(&self, ticket: u64) -> Option<(u32, Span)> {
        let state = locked(&self.state);
        let waits = |client: &QueuedClient| client.began.is_none() && !client.displaced;
        state.clients.get(&ticket).filter(|client| waits(client))?;
        Some(state.position(&state.line(), ticket, clock::now()))
    }
}

impl QueueState {
    /// The waiting clients, the next one first. They are served in rounds with one client per host; within a
    /// round, the hosts that were served longest ago come first.
    fn line(&self) -> Vec<u64> {
        let mut rounds: BTreeMap<AddressGroup, u32> = BTreeMap::new();
        let waiting = self.clients.iter().filter(|(_, client)| client.began.is_none() && !client.displaced);
        let mut line: Vec<(u32, u64, u64)> = waiting
            .map(|(ticket, client)| {
                let round = rounds.entry(client.host).or_default();
                let position = (*round, self.served.get(&client.host).copied().unwrap_or(0), *ticket);
                *round += 1;
                position
            })
            .collect();
        line.sort_unstable();
        line.into_iter().map(|(_, _, ticket)| ticket).collect()
    }

    /// The clients of a network that are here.
    fn pending(&self, network: AddressGroup) -> PendingTests {
        let mut pending = PendingTests::default();
        let own = |client: &&QueuedClient| client.network == Some(network) && !client.displaced;
        for client in self.clients.values().filter(own) {
            pending.waiting += u32::from(client.began.is_none());
            pending.time = pending.time + client.length;
        }
        pending
    }

    /// Position of a client in the line, and its longest expected wait.
    fn position(&self, line: &[u64], ticket: u64, now: Mono) -> (u32, Span) {
        let mut wait = Span::ZERO;
        for client in self.clients.values().filter(|client| client.began.is_some()) {
            wait = wait + client.left(now);
        }
        let mut position = 1;
        for ahead in line.iter().take_while(|other| **other != ticket) {
            wait = wait + self.clients.get(ahead).map_or(Span::ZERO, |client| client.length);
            position += 1;
        }
        (position, wait)
    }

    fn admit_client(&mut self, ticket: u64, now: Mono, at_work: u32) {
        self.let_in += 1;
        if let Some(client) = self.clients.get_mut(&ticket) {
            client.began = Some(now);
            client.account = client.network.map(|network| self.usage.begin(network, now));
            self.served.insert(client.host, self.let_in);
        }
        for client in self.clients.values_mut().filter(|client| client.began.is_some()) {
            client.concurrent_runs = client.concurrent_runs.max(at_work);
        }
    }

    /// Displaces the last waiting client of the host with the most places, if that has several and `host` has
    /// none.
    fn make_room_for(&mut self, host: AddressGroup) -> bool {
        let mut places: BTreeMap<AddressGroup, u32> = BTreeMap::new();
        for client in self.clients.values().filter(|client| !client.displaced) {
            *places.entry(client.host).or_default() += 1;
        }
        if places.contains_key(&host) {
            return false;
        }
        let waits = |client: &QueuedClient| client.began.is_none() && !client.displaced;
        let several = |client: &QueuedClient| places.get(&client.host).copied().filter(|places| *places > 1);
        let waiting = self.clients.iter_mut().filter(|(_, client)| waits(client));
        let last = waiting.filter_map(|(ticket, client)| Some((several(client)?, *ticket, client)));
        match last.max_by_key(|(places, ticket, _)| (*places, *ticket)) {
            Some((_, _, client)) => {
                client.displaced = true;
                true
            }
            None => false,
        }
    }
}

impl QueuedClient {
    fn left(&self, now: Mono) -> Span {
        match self.began {
            Some(began) => self.length.saturating_sub(Span::from(now.since(began))),
            None => self.length,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Quotas;

    const MINUTE: Span = Span::from_secs(60);

    fn exclusive(most: Option<u32>) -> ClientQueue {
        ClientQueue::new(Policy::Exclusive, ServerLimits { most_clients: most, ..ServerLimits::default() })
    }

    fn join(queue: &ClientQueue, host: u8) -> u64 {
        queue.join(IpAddr::from([192, 0, 2, host]), MINUTE).unwrap()
    }

    fn position(queue: &ClientQueue, ticket: u64) -> u32 {
        match queue.turn(ticket) {
            QueueDecision::Now { .. } => 0,
            QueueDecision::Later { position, .. } => position,
            QueueDecision::Displaced => panic!("displaced"),
        }
    }

    #[test]
    fn one_at_a_time_in_the_order_of_arrival() {
        let queue = exclusive(None);
        let (a, b, c) = (join(&queue, 1), join(&queue, 1), join(&queue, 1));
        // Polling out of order does not change the position.
        let QueueDecision::Later { position, wait } = queue.turn(c) else { panic!("c came last") };
        assert_eq!((position, wait), (3, Span::from_secs(120)));
        assert_eq!(queue.turn(a), QueueDecision::Now { concurrent_runs: 0 });
        let QueueDecision::Later { position, wait } = queue.turn(b) else { panic!("a is at work") };
        assert!(position == 1 && wait <= MINUTE && wait > Span::from_secs(50));
        queue.leave(a);
        assert_eq!(queue.turn(b), QueueDecision::Now { concurrent_runs: 0 });
        queue.leave(b);
        assert_eq!(queue.turn(c), QueueDecision::Now { concurrent_runs: 0 });
    }

    #[test]
    fn a_host_with_a_hundred_places_is_served_once_before_each_of_the_others() {
        let queue = exclusive(None);
        let hog: Vec<u64> = (0..100).map(|_| join(&queue, 1)).collect();
        assert_eq!(position(&queue, hog[0]), 0);
        let (b, c) = (join(&queue, 2), join(&queue, 3));
        let b_again = join(&queue, 2);
        assert_eq!([b, c, hog[1], b_again, hog[2]].map(|ticket| position(&queue, ticket)), [1, 2, 3, 4, 5]);
        let served: Vec<u64> = std::iter::successors(Some(hog[0]), |last| {
            queue.leave(*last);
            [b, c, b_again].into_iter().chain(hog.iter().copied()).find(|next| position(&queue, *next) == 0)
        })
        .take(6)
        .collect();
        assert_eq!(served, [hog[0], b, c, hog[1], b_again, hog[2]]);
    }

    #[test]
    fn whoever_comes_again_and_again_does_not_get_ahead_of_who_waits() {
        let queue = exclusive(None);
        let (a, b) = (join(&queue, 1), join(&queue, 2));
        assert_eq!(position(&queue, a), 0);
        queue.leave(a);
        let a_again = join(&queue, 1);
        assert_eq!((position(&queue, b), position(&queue, a_again)), (0, 1));
        queue.leave(a_again);
        queue.leave(b);
        assert!(locked(&queue.state).served.is_empty(), "nothing is remembered of those who left");
    }

    #[test]
    fn in_a_full_queue_a_host_with_several_places_gives_its_last_one_to_a_host_with_none() {
        let queue = exclusive(Some(3));
        let (a, b, c) = (join(&queue, 1), join(&queue, 1), join(&queue, 1));
        assert_eq!(position(&queue, a), 0);
        assert_eq!(queue.join(IpAddr::from([192, 0, 2, 1]), MINUTE), Err(NoPlace::Full(3)));
        let other = join(&queue, 2);
        assert_eq!(queue.turn(c), QueueDecision::Displaced);
        assert_eq!((position(&queue, other), position(&queue, b)), (1, 2));
        // The next arrival takes the position of the second. Then every host has one position, and the queue is full
        // for everyone.
        let third = join(&queue, 3);
        assert_eq!(queue.turn(b), QueueDecision::Displaced);
        assert_eq!(queue.join(IpAddr::from([192, 0, 2, 4]), MINUTE), Err(NoPlace::Full(3)));
        queue.leave(c);
        queue.leave(b);
        queue.leave(a);
        assert_eq!((position(&queue, other), position(&queue, third)), (0, 1));
    }

    #[test]
    fn who_is_at_work_is_never_displaced() {
        let queue = ClientQueue::new(
            Policy::Shared,
            ServerLimits { most_clients: Some(2), ..ServerLimits::default() },
        );
        let (a, b) = (join(&queue, 1), join(&queue, 1));
        assert_eq!((position(&queue, a), position(&queue, b)), (0, 0));
        assert_eq!(queue.join(IpAddr::from([192, 0, 2, 2]), MINUTE), Err(NoPlace::Full(2)));
    }

    #[test]
    fn who_is_at_work_knows_whether_another_host_waits() {
        let queue = exclusive(None);
        let (a, a_again) = (join(&queue, 1), join(&queue, 1));
        assert_eq!(position(&queue, a), 0);
        assert!(!queue.others_wait(a), "its own next run may wait");
        let b = join(&queue, 2);
        assert!(queue.others_wait(a));
        queue.leave(b);
        assert!(!queue.others_wait(a));
        queue.leave(a_again);
        assert!(!queue.others_wait(a_again), "who has left keeps nobody waiting");
    }

    #[test]
    fn a_client_that_was_sent_away_waits_too_but_not_for_its_own_host() {
        let queue = exclusive(None);
        let a = join(&queue, 1);
        assert_eq!(position(&queue, a), 0);
        queue.leave_for_retry(join(&queue, 1));
        assert!(!queue.others_wait(a), "its own next run may come again");
        queue.leave_for_retry(join(&queue, 2));
        assert!(queue.others_wait(a));
        for host in 3..=255 {
            queue.leave_for_retry(join(&queue, host));
        }
        assert!(locked(&queue.state).sent_away.len() <= MAX_REMEMBERED_HOSTS, "many hosts cost nothing");
    }

    #[test]
    fn a_client_that_gives_up_does_not_block_the_line() {
        let queue = exclusive(None);
        let (a, b) = (join(&queue, 1), join(&queue, 2));
        queue.leave(a);
        assert_eq!(queue.turn(b), QueueDecision::Now { concurrent_runs: 0 });
    }

    #[test]
    fn shared_runs_know_of_each_other() {
        let queue = ClientQueue::new(Policy::Shared, ServerLimits::default());
        let (a, b) = (join(&queue, 1), join(&queue, 1));
        assert_eq!(queue.turn(a), QueueDecision::Now { concurrent_runs: 0 });
        assert_eq!(queue.turn(b), QueueDecision::Now { concurrent_runs: 1 });
        // The first learns of the second and keeps that information after the second has ended.
        assert_eq!(queue.turn(a), QueueDecision::Now { concurrent_runs: 1 });
        queue.leave(b);
        assert_eq!(queue.turn(a), QueueDecision::Now { concurrent_runs: 1 });
    }

    #[test]
    fn quotas_count_who_ran_who_runs_and_who_waits() {
        let quotas = Quotas { tests: Some(2), time: Some(Span::from_secs(150)), ..Quotas::default() };
        let queue = ClientQueue::new(Policy::Exclusive, ServerLimits { quotas, ..ServerLimits::default() });
        let (a, b) = (join(&queue, 1), join(&queue, 2));
        let refused = |host: u8| match queue.join(IpAddr::from([192, 0, 2, host]), MINUTE) {
            Err(NoPlace::Quota(why)) => why.to_string(),
            other => panic!("{other:?}"),
        };
        assert!(refused(3).contains("192.0.2.0/24 has made the 2 tests"), "{}", refused(3));
        assert!(queue.join_known(IpAddr::from([192, 0, 2, 3]), MINUTE).is_ok(), "it has a token");
        assert!(queue.join(IpAddr::from([198, 51, 100, 1]), MINUTE).is_ok(), "another network");
        assert!(queue.join(IpAddr::from([127, 0, 0, 1]), MINUTE).is_ok(), "this host");
        assert_eq!(queue.account(a).map(|account| account.total()), None, "it does not run yet");
        assert_eq!(position(&queue, a), 0);
        assert!(queue.account(a).is_some());
        // Who gives up has not made a test.
        queue.leave(b);
        let c = join(&queue, 3);
        queue.leave(a);
        assert!(position(&queue, c) > 0 && !refused(4).is_empty());
    }
}
