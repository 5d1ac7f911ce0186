//! How much each network may measure here in 24 hours.
//!
//! A network is the /24 of an IPv4 address, or the /56 of an IPv6 address, which is what a site gets from its
//! provider. Its 24 hours begin with its first test. Usage is not kept over a restart of the server.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use linerate_engine::ByteAccount;
use linerate_sock::Mono;
use linerate_units::{Bytes, Span};

use crate::shares::AddressGroup;

/// The period of all quotas.
const PERIOD: Duration = Duration::from_secs(24 * 3600);

/// Most networks whose usage is remembered. Beyond that, those that measured least are forgotten.
const MAX_NETWORKS: usize = 16_384;

/// Limits on what clients may measure in 24 hours. Absent: no limit. Clients on this host itself have none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quotas {
    /// Tests of each network.
    pub tests: Option<u32>,
    /// Time that tests of each network take in total.
    pub time: Option<Span>,
    /// Payload that tests of each network move in total, in both directions.
    pub bytes: Option<Bytes>,
    /// The same of all networks together.
    pub total_bytes: Option<Bytes>,
}

impl Quotas {
    /// Quotas for a test host that strangers may use, if its owner sets none: those of M-Lab's hosts for tests, which
    /// are 40 a day for each client, at half a minute each.
    pub const OF_A_PUBLIC_HOST: Self =
        Self { tests: Some(40), time: Some(Span::from_secs(20 * 60)), bytes: None, total_bytes: None };

    /// The quotas that an owner set, of which 0 stands for no limit, and otherwise these.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        Self {
            tests: self.tests.or(others.tests).filter(|tests| *tests > 0),
            time: self.time.or(others.time).filter(|time| *time > Span::ZERO),
            bytes: self.bytes.or(others.bytes).filter(|bytes| bytes.get() > 0),
            total_bytes: self.total_bytes.or(others.total_bytes).filter(|bytes| bytes.get() > 0),
        }
    }

    /// The quotas in words; absent if there are none.
    #[must_use]
    pub fn in_words(&self) -> Option<String> {
        let of_each = [
            self.tests.map(|tests| format!("make {tests} tests")),
            self.time.map(|time| format!("measure for {time}")),
            self.bytes.map(|bytes| format!("move {bytes}")),
        ];
        let of_each: Vec<String> = of_each.into_iter().flatten().collect();
        let of_each =
            (!of_each.is_empty()).then(|| format!("each network (/24, /56) may {}", of_each.join(" and ")));
        let of_all = self.total_bytes.map(|bytes| format!("all together may move {bytes}"));
        let all: Vec<String> = [of_each, of_all].into_iter().flatten().collect();
        (!all.is_empty()).then(|| format!("in 24 hours, {}", all.join(", and ")))
    }
}

/// A quota is used up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct QuotaExceeded {
    /// What was used up, by whom.
    used: String,
    /// Whether a shorter test may be within the quota.
    shorter_may_fit: bool,
    /// Until the 24 hours of that usage are over.
    left: Duration,
}

impl fmt::Display for QuotaExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let minutes = self.left.as_secs().div_ceil(60);
        let shorter = if self.shorter_may_fit { "make it shorter, or " } else { "" };
        write!(f, "{}; {shorter}try again in {} h {} min", self.used, minutes / 60, minutes % 60)
    }
}

/// Clients of the same network that are here, and have not been charged yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PendingTests {
    /// Those that wait.
    pub(super) waiting: u32,
    /// How long those that wait and those that run are expected to take.
    pub(super) time: Span,
}

/// What a network has used in its day.
#[derive(Debug)]
struct Usage {
    since: Mono,
    tests: u32,
    time: Span,
    bytes: Arc<ByteAccount>,
}

/// What each network has used.
#[derive(Debug)]
pub(super) struct UsageLedger {
    quotas: Quotas,
    networks: BTreeMap<AddressGroup, Usage>,
    total: TotalUsage,
}

/// What all networks together have used in a day of their own.
#[derive(Debug)]
struct TotalUsage {
    since: Mono,
    /// What was moved since the server began. One account for all days, as the days of networks whose traffic it counts
    /// begin at other times.
    bytes: Arc<ByteAccount>,
    /// The same before this day.
    before: Bytes,
}

/// What is left of a day that began at `since`; absent after it.
fn left_of_day(since: Mono, now: Mono) -> Option<Duration> {
    PERIOD.checked_sub(now.since(since)).filter(|left| !left.is_zero())
}

impl Usage {
    fn new(since: Mono, bytes: ByteAccount) -> Self {
        Self { since, tests: 0, time: Span::ZERO, bytes: Arc::new(bytes) }
    }

    fn left(&self, now: Mono) -> Option<Duration> {
        left_of_day(self.since, now)
    }
}

impl TotalUsage {
    fn new(since: Mono) -> Self {
        Self { since, bytes: Arc::default(), before: Bytes::default() }
    }

    fn left(&self, now: Mono) -> Option<Duration> {
        left_of_day(self.since, now)
    }

    /// Bytes of this day.
    fn today(&self) -> Bytes {
        Bytes::new(self.bytes.total().get().saturating_sub(self.before.get()))
    }

    /// Begins a new day if the former one is over.
    fn follow(&mut self, now: Mono) {
        if self.left(now).is_none() {
            (self.since, self.before) = (now, self.bytes.total());
        }
    }
}

/// The network of an address; absent for this host itself.
pub(super) fn network_of(address: IpAddr) -> Option<AddressGroup> {
    let address = address.to_canonical();
    (!address.is_loopback()).then(|| AddressGroup::site(address))
}

impl UsageLedger {
    pub(super) fn new(quotas: Quotas, now: Mono) -> Self {
        Self { quotas, networks: BTreeMap::new(), total: TotalUsage::new(now) }
    }

    /// Replaces the quotas; what was used still counts.
    pub(super) fn set_quotas(&mut self, quotas: Quotas) {
        self.quotas = quotas;
    }

    /// Whether a test of `length` is within the quotas of its network, with those of the network that are here.
    pub(super) fn check(
        &self,
        network: AddressGroup,
        length: Span,
        here: PendingTests,
        now: Mono,
    ) -> Result<(), QuotaExceeded> {
        let quotas = &self.quotas;
        if let (Some(most), Some(left)) = (quotas.total_bytes, self.total.left(now))
            && self.total.today() >= most
        {
            let used = format!("clients have moved the {most} that this server allows in 24 hours");
            return Err(QuotaExceeded { used, shorter_may_fit: false, left });
        }
        let usage = self.networks.get(&network);
        let left = usage.map_or(Some(PERIOD), |usage| usage.left(now));
        // What was used more than a day ago does not count.
        let usage = usage.filter(|_| left.is_some());
        let left = left.unwrap_or(PERIOD);
        let exceeded = |used: String| {
            Err(QuotaExceeded { used: format!("{network} {used}"), shorter_may_fit: false, left })
        };
        let tests = usage.map_or(0, |usage| usage.tests).saturating_add(here.waiting);
        if quotas.tests.is_some_and(|most| tests >= most) {
            return exceeded(format!(
                "has made the {tests} tests that this server allows a network in 24 hours"
            ));
        }
        let time = usage.map_or(Span::ZERO, |usage| usage.time) + here.time;
        if let Some(most) = quotas.time.filter(|most| time + length > *most) {
            let used = format!(
                "{network} has measured for {time} of the {most} that this server allows a network in 24 hours, and \
                 this test would take {length}"
            );
            return Err(QuotaExceeded { used, shorter_may_fit: time < most, left });
        }
        let bytes = usage.map_or(Bytes::default(), |usage| usage.bytes.total());
        if quotas.bytes.is_some_and(|most| bytes >= most) {
            return exceeded(format!(
                "has moved {bytes}, and this server allows a network no more in 24 hours"
            ));
        }
        Ok(())
    }

    /// Charges a test that begins, and returns the account for its bytes.
    pub(super) fn begin(&mut self, network: AddressGroup, now: Mono) -> Arc<ByteAccount> {
        self.total.follow(now);
        if !self.networks.contains_key(&network) && self.networks.len() >= MAX_NETWORKS {
            self.forget(now);
        }
        let fresh = || Usage::new(now, ByteAccount::within(&self.total.bytes));
        let usage = self.networks.entry(network).or_insert_with(fresh);
        if usage.left(now).is_none() {
            *usage = fresh();
        }
        usage.tests = usage.tests.saturating_add(1);
        Arc::clone(&usage.bytes)
    }

    /// Charges the time of a test that has ended.
    pub(super) fn ended(&mut self, network: AddressGroup, took: Span) {
        if let Some(usage) = self.networks.get_mut(&network) {
            usage.time = usage.time + took;
        }
    }

    /// Makes room: removes networks whose day is over, otherwise the half with the fewest tests.
    fn forget(&mut self, now: Mono) {
        self.networks.retain(|_, usage| usage.left(now).is_some());
        if self.networks.len() >= MAX_NETWORKS {
            let mut tests: Vec<u32> = self.networks.values().map(|usage| usage.tests).collect();
            tests.sort_unstable();
            let median = tests[tests.len() / 2];
            let mut room = MAX_NETWORKS / 2;
            self.networks.retain(|_, usage| {
                let goes = usage.tests <= median && room > 0;
                room -= usize::from(goes);
                !goes
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Mono = Mono(1 << 40);
    const NONE: PendingTests = PendingTests { waiting: 0, time: Span::ZERO };
    const TEN: Span = Span::from_secs(10);

    fn network(address: &str) -> AddressGroup {
        network_of(address.parse().unwrap()).unwrap()
    }

    fn ledger(quotas: Quotas) -> UsageLedger {
        UsageLedger::new(quotas, NOW)
    }

    fn later(seconds: u64) -> Mono {
        NOW + Duration::from_secs(seconds)
    }

    #[test]
    fn tests_are_counted_by_network_and_a_day_after_the_first_one_anew() {
        let mut ledger = ledger(Quotas { tests: Some(2), ..Quotas::default() });
        let site = network("192.0.2.1");
        assert_eq!(site, network("::ffff:192.0.2.200"));
        assert_ne!(site, network("192.0.3.1"));
        ledger.begin(site, NOW);
        // One that waits counts like one that ran.
        let waits = PendingTests { waiting: 1, time: Span::ZERO };
        assert!(ledger.check(site, TEN, NONE, NOW).is_ok() && ledger.check(site, TEN, waits, NOW).is_err());
        ledger.begin(site, later(3600));
        let why = ledger.check(site, TEN, NONE, later(7200 + 1)).unwrap_err().to_string();
        assert_eq!(
            why,
            "192.0.2.0/24 has made the 2 tests that this server allows a network in 24 hours; try again in 22 h 0 min"
        );
        assert!(ledger.check(network("192.0.3.1"), TEN, NONE, NOW).is_ok());
        assert!(ledger.check(site, TEN, NONE, later(86_400)).is_ok());
        ledger.begin(site, later(86_400));
        assert!(
            ledger.check(site, TEN, NONE, later(86_400)).is_ok(),
            "the former tests are not counted any more"
        );
    }

    #[test]
    fn time_includes_what_runs_and_what_is_asked_for() {
        let mut ledger = ledger(Quotas { time: Some(Span::from_secs(60)), ..Quotas::default() });
        let site = network("2001:db8:0:0100::1");
        assert_eq!(site, network("2001:db8:0:01ff:9::1"), "a /56");
        assert_ne!(site, network("2001:db8:0:0200::1"));
        ledger.begin(site, NOW);
        ledger.ended(site, Span::from_secs(45));
        assert!(ledger.check(site, Span::from_secs(15), NONE, NOW).is_ok());
        let why = ledger.check(site, Span::from_secs(16), NONE, NOW).unwrap_err().to_string();
        assert!(why.contains("2001:db8:0:100::/56 has measured for 45 s of the 60 s"), "{why}");
        assert!(why.ends_with("make it shorter, or try again in 24 h 0 min"), "{why}");
        let here = PendingTests { waiting: 0, time: TEN };
        assert!(ledger.check(site, TEN, here, NOW).is_err());
    }

    #[test]
    fn bytes_are_those_that_flows_moved_also_of_all_networks_together() {
        let quotas = Quotas {
            bytes: Some(Bytes::new(1000)),
            total_bytes: Some(Bytes::new(1500)),
            ..Quotas::default()
        };
        let mut ledger = ledger(quotas);
        let (one, other) = (network("192.0.2.1"), network("198.51.100.1"));
        ledger.begin(one, NOW).add(Bytes::new(999));
        assert!(ledger.check(one, TEN, NONE, NOW).is_ok());
        ledger.begin(one, NOW).add(Bytes::new(1));
        assert!(ledger.check(one, TEN, NONE, NOW).is_err());
        assert!(ledger.check(other, TEN, NONE, NOW).is_ok());
        ledger.begin(other, NOW).add(Bytes::new(500));
        let why = ledger.check(network("203.0.113.1"), TEN, NONE, NOW).unwrap_err().to_string();
        assert!(why.starts_with("clients have moved"), "{why}");
        assert!(ledger.check(one, TEN, NONE, later(86_400)).is_ok());
    }

    #[test]
    fn a_network_whose_day_goes_on_counts_in_the_next_day_of_all() {
        let mut ledger = ledger(Quotas { total_bytes: Some(Bytes::new(1000)), ..Quotas::default() });
        let (one, other) = (network("192.0.2.1"), network("198.51.100.1"));
        // The day of the network begins an hour after that of all.
        ledger.begin(one, later(3600)).add(Bytes::new(900));
        assert!(ledger.check(other, TEN, NONE, later(86_399)).is_ok());
        ledger.begin(one, later(86_400)).add(Bytes::new(999));
        assert!(
            ledger.check(other, TEN, NONE, later(86_401)).is_ok(),
            "what was moved before does not count"
        );
        ledger.begin(one, later(86_402)).add(Bytes::new(1));
        assert!(ledger.check(other, TEN, NONE, later(86_403)).is_err());
        assert!(ledger.check(other, TEN, NONE, later(2 * 86_400)).is_ok(), "a day later");
    }

    #[test]
    fn many_networks_cost_little_and_the_busiest_are_remembered() {
        let mut ledger = ledger(Quotas { tests: Some(2), ..Quotas::default() });
        let busy = network("192.0.2.1");
        ledger.begin(busy, NOW);
        ledger.begin(busy, NOW);
        for number in 0..3 * MAX_NETWORKS as u128 {
            let address = std::net::Ipv6Addr::from_bits((0x2001_0db8 << 96) | (number << 72));
            ledger.begin(network_of(address.into()).unwrap(), NOW);
            assert!(ledger.networks.len() <= MAX_NETWORKS);
        }
        assert!(ledger.check(busy, TEN, NONE, NOW).is_err());
    }

    #[test]
    fn an_owner_may_change_and_remove_each_quota_of_a_public_host() {
        let given = Quotas { tests: Some(0), bytes: Some(Bytes::new(1 << 30)), ..Quotas::default() };
        let all = given.or(Quotas::OF_A_PUBLIC_HOST);
        assert_eq!(all, Quotas { tests: None, time: Quotas::OF_A_PUBLIC_HOST.time, ..given });
        let words = all.in_words().unwrap();
        assert_eq!(words, "in 24 hours, each network (/24, /56) may measure for 1200 s and move 1 GiB");
        assert_eq!(Quotas::default().in_words(), None);
    }

    #[test]
    fn this_host_has_no_quota() {
        assert_eq!(network_of("127.0.0.1".parse().unwrap()), None);
        assert_eq!(network_of("::ffff:127.0.0.1".parse().unwrap()), None);
    }
}
