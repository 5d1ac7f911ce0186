//! Rules that turn evidence into findings. Each file has the rule for one finding.
//!
//! A rule returns a finding only when its conditions hold. [`PRIMARY`] gives the order in which causes are
//! remedied: first what invalidates the measurement, then full links, then the hosts, then the path.

mod black_hole;
mod browser;
mod bufferbloat;
mod clock_fault;
mod congestion;
mod cpu_receiver;
mod cpu_sender;
mod damaged_link;
mod disturbance;
mod ecn;
mod host_busy;
mod impossible;
mod lag_share;
mod link_full;
mod local_drops;
mod offered_rate;
mod own_queue;
mod pacing;
mod policer;
mod premature_exit;
mod random_loss;
mod receiver_window;
mod reordering;
mod return_path;
mod send_buffer;
mod shaper;
mod slow_reader;
mod slow_start;
mod source_starved;
mod standard_rates;
mod timeouts;
mod too_short;
mod unexplained;
mod window_regrowth;

#[cfg(test)]
pub(crate) mod examples;
#[cfg(test)]
mod laws;

use linerate_model::{Confidence, EvidenceKey, Finding, ForeignText, Rule};

use crate::bdp;
use crate::evidence::{Evidence, HostEvidence};

/// One row of the decision table.
pub(crate) type RuleFn = fn(&Evidence) -> Option<Finding>;

/// The first of these rules that returns a finding gives the verdict.
pub(crate) const PRIMARY: [RuleFn; 33] = [
    impossible::rule,
    clock_fault::rule,
    black_hole::stalled,
    unexplained::nothing_arrived,
    too_short::rule,
    offered_rate::rule,
    slow_reader::rule,
    own_queue::rule,
    return_path::rule,
    link_full::rule,
    browser::rule,
    receiver_window::rule,
    send_buffer::rule,
    host_busy::starved,
    cpu_receiver::rule,
    cpu_sender::rule,
    source_starved::rule,
    pacing::rule,
    slow_start::rule,
    local_drops::rule,
    damaged_link::rule,
    policer::rule,
    timeouts::rule,
    lag_share::rule,
    shaper::rule,
    reordering::rule,
    ecn::rule,
    congestion::rule,
    random_loss::rule,
    host_busy::suspected,
    premature_exit::rule,
    window_regrowth::rule,
    too_short::inexact,
];

/// Rules whose findings are listed with a verdict but are never the verdict themselves.
pub(crate) const ADDITIONAL: [RuleFn; 3] = [black_hole::probed, bufferbloat::rule, disturbance::rule];

pub(crate) use local_drops::holds as sender_dropped;
pub(crate) use own_queue::shaper as own_queue_shaper;
pub(crate) use policer::rtt_is_flat;
pub(crate) use unexplained::finding as unexplained;

/// Builds a [`Finding`].
pub(crate) struct FindingBuilder(Finding);

impl FindingBuilder {
    pub(crate) fn new(rule: Rule, confidence: Confidence, text: String) -> Self {
        Self(Finding {
            cause: rule.cause(),
            rule,
            confidence,
            share_of_time: None,
            text: text.into(),
            evidence: std::collections::BTreeMap::new(),
            remedy: None,
        })
    }

    /// Adds a number that the rule used. `None` and non-finite values are left out.
    pub(crate) fn with(mut self, key: EvidenceKey, value: Option<f64>) -> Self {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            self.0.evidence.insert(key, value);
        }
        self
    }

    /// Adds a time. Findings carry times in nanoseconds.
    pub(crate) fn with_time(self, key: EvidenceKey, seconds: Option<f64>) -> Self {
        self.with(key, seconds.map(|seconds| (seconds * 1e9).round()))
    }

    pub(crate) fn share(mut self, share: Option<f64>) -> Self {
        self.0.share_of_time = share.map(|share| share.clamp(0.0, 1.0));
        self
    }

    pub(crate) fn remedy(mut self, remedy: impl Into<ForeignText>) -> Self {
        self.0.remedy = Some(remedy.into());
        self
    }

    pub(crate) fn finish(self) -> Option<Finding> {
        Some(self.0)
    }
}

/// Combines two signs: both make a cause confirmed, one makes it probable, none is no finding.
pub(crate) fn confidence(near_ceiling: bool, counters_agree: bool) -> Option<Confidence> {
    match (near_ceiling, counters_agree) {
        (true, true) => Some(Confidence::Confirmed),
        (false, false) => None,
        _ => Some(Confidence::Probable),
    }
}

/// Whether `rate` lies within `tolerance` of `ceiling`.
pub(crate) fn near(rate: f64, ceiling: Option<f64>, tolerance: f64) -> bool {
    ceiling.is_some_and(|ceiling| (rate / ceiling - 1.0).abs() <= tolerance)
}

/// The disk is what limits a flow if its rate alone is near that of the flow. It is measured for two seconds only, and other
/// programs use it too.
const DISK_TOLERANCE: f64 = 0.25;

/// The rate of the disk alone, if the flow is about as fast.
pub(crate) fn disk_limits(evidence: &Evidence, host: &HostEvidence) -> Option<f64> {
    let goodput = evidence.outcome.goodput_bps?;
    host.disk_bps.filter(|_| near(goodput, host.disk_bps, DISK_TOLERANCE))
}

/// A thread with at least this share of a core counts as filling the core.
pub(crate) const FULL_CORE_SHARE: f64 = 0.95;

/// A thread that waits for a processor for at least this share of the time is starved.
const STARVED_SHARE: f64 = 0.2;

/// A thread that runs or waits for this share of the time is never idle; the rest is sampling error.
const NEVER_IDLE_SHARE: f64 = 0.85;

/// On a crowded host, a thread with at least this share of a core is affected by the crowding.
const CROWDED_THREAD_SHARE: f64 = 0.2;

/// Share of a core that a hypervisor leaves to the host. Unknown steal time counts as none.
pub(crate) fn granted(host: &HostEvidence) -> f64 {
    1.0 - host.steal_share.unwrap_or(0.0).clamp(0.0, 0.5)
}

/// Whether a thread of the host had a whole core for most of the time, or interrupts used a whole core.
pub(crate) fn core_is_full(host: &HostEvidence) -> bool {
    let thread = host.thread_share.is_some_and(|share| share >= FULL_CORE_SHARE * granted(host))
        || host.thread_full_share.is_some_and(|share| share > 0.5);
    let waits = (is_starved(host) || is_never_idle(host) || is_crowded(host)) && !host_busy::by_others(host);
    thread || waits || uses_up_its_quota(host) || host.softirq_share.is_some_and(|share| share >= 0.9)
}

/// Whether a thread was never idle although it did not have a whole core. Another program runs there, or a CPU
/// quota limits it.
pub(crate) fn is_starved(host: &HostEvidence) -> bool {
    let waits = host.thread_wait_share.filter(|wait| *wait >= STARVED_SHARE);
    host.thread_share.zip(waits).is_some_and(|(runs, waits)| runs + waits >= NEVER_IDLE_SHARE)
}

/// What helps against a CPU quota.
const QUOTA_REMEDY: &str =
    "Raise the CPU limit of the container or service that the program runs in (cpu.max of its cgroup).";

/// Whether the program had used up its CPU quota in nearly every period, and was stopped for the rest of it. Its share of a core
/// and its waiting time show only a part of this: the kernel does not count all of the time in which a thread is
/// stopped as waiting.
pub(crate) fn uses_up_its_quota(host: &HostEvidence) -> bool {
    host.quota_throttled_share.is_some_and(|share| share >= NEVER_IDLE_SHARE)
}

/// Whether a thread ran or waited for a processor all the time, however little it waited.
fn is_never_idle(host: &HostEvidence) -> bool {
    let ready = host.thread_share.zip(host.thread_wait_share).map(|(runs, waits)| runs + waits);
    ready.is_some_and(|ready| ready >= FULL_CORE_SHARE * granted(host))
}

/// Buffers and windows smaller than this limit a flow at every round trip, however short: the sender waits
/// every few segments.
pub(crate) const TINY_BUFFER_BYTES: f64 = 65_536.0;

/// Whether the sender or the receiver had a full core.
pub(crate) fn any_core_is_full(evidence: &Evidence) -> bool {
    core_is_full(&evidence.sender) || core_is_full(&evidence.receiver)
}

/// Whether every core of the host is busy, so that its thread gets less CPU time than it needs.
pub(crate) fn is_crowded(host: &HostEvidence) -> bool {
    host.all_cores_share.is_some_and(|share| share >= FULL_CORE_SHARE)
        && host.thread_share.is_some_and(|share| share >= CROWDED_THREAD_SHARE)
}

/// Whether the busiest threads of both hosts stay below `share` of a core; unknown counts as idle.
pub(crate) fn hosts_have_room(evidence: &Evidence, share: f64) -> bool {
    let threads = [evidence.sender.thread_share, evidence.receiver.thread_share];
    !any_core_is_full(evidence) && threads.into_iter().flatten().all(|thread| thread < share)
}

/// Whether the windows do not limit the flow: they held it for less than 10 % of the time (unknown counts as
/// none), or they are larger than the path and only bound the queue.
pub(crate) fn windows_are_open(evidence: &Evidence) -> bool {
    let below = |share: Option<f64>| share.is_none_or(|share| share < 0.1);
    evidence.has_standing_queue()
        || (below(evidence.tcp.receiver_window_share) && below(evidence.tcp.send_buffer_share))
}

/// A window that allows more than this multiple of the goodput is not the limit.
const AMPLE_WINDOW_FACTOR: f64 = 1.5;
/// Largest factor by which the goodput may exceed what a window allows.
const MAX_WINDOW_EXCESS: f64 = 1.15;

/// Time that the hosts may add to a round trip before a window moves on: the receiver wakes and reads, the
/// sender wakes and writes. The kernel's own RTT does not contain it, which matters only on very short paths.
pub(crate) const TURNAROUND_S: f64 = 50e-6;

/// The measured round trips that a full window may have waited for: the base, the mean, and the median of the
/// probes under load.
pub(crate) fn known_round_trips(evidence: &Evidence) -> impl Iterator<Item = f64> {
    [evidence.base_rtt_s(), evidence.rtt.mean_s, evidence.rtt.loaded_p50_s].into_iter().flatten()
}

/// The rate that a window allows, bit/s, and the round trip, s. The round trip is the measured one at which the
/// rate fits the goodput best. If none fits, it is one between the base and the base plus [`TURNAROUND_S`].
/// `None` if the window allows too much at each of them to be the limit, or less than the goodput.
pub(crate) fn window_allows_bps(evidence: &Evidence, window_bytes: f64) -> Option<(f64, f64)> {
    let goodput = evidence.outcome.goodput_bps.filter(|rate| *rate > 0.0)?;
    let allowed = known_round_trips(evidence)
        .filter_map(|rtt| Some((bdp::window_rate_bps(window_bytes, rtt)? * evidence.streams(), rtt)));
    let distance = |rate: f64| (rate / goodput).ln().abs();
    let known = allowed
        .filter(|(rate, _)| (goodput / MAX_WINDOW_EXCESS..=AMPLE_WINDOW_FACTOR * goodput).contains(rate))
        .min_by(|a, b| distance(a.0).total_cmp(&distance(b.0)));
    known.or_else(|| {
        let base = evidence.base_rtt_s()?;
        let needed = 8.0 * window_bytes * evidence.streams() / goodput;
        (base..=base + TURNAROUND_S).contains(&needed).then_some((goodput, needed))
    })
}

/// Whether the test itself set the rate: offered rate, read rate or pacing.
pub(crate) fn rate_was_asked_for(evidence: &Evidence) -> bool {
    offered_rate::holds(evidence) || slow_reader::read_rate_holds(evidence) || pacing::holds(evidence)
}
