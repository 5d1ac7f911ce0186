//! The phases of a test by one end's timer: warm-up, measured part, cool-down.

use std::collections::BTreeMap;

use linerate_units::{Span, Timestamp};

use crate::stand_in::{CpuTime, FlowCounts, FlowId, HostCounts};

/// Interval between two progress lines.
const PROGRESS: Span = Span::from_ms(500);

/// The durations of the phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PhaseDurations {
    pub(super) warmup: Span,
    /// Absent for a test without a time limit.
    pub(super) measured: Option<Span>,
    pub(super) cooldown: Span,
}

impl PhaseDurations {
    /// The phases of a test with `agreed` seconds: what this end did not request is cool-down, and a receiver
    /// of several senders may shorten its test.
    pub(super) fn new(warmup: u32, requested: u32, agreed: u32) -> Self {
        let secs = |seconds: u32| Span::from_secs(u64::from(seconds));
        if agreed == 0 {
            return Self { warmup: secs(warmup), measured: None, cooldown: Span::ZERO };
        }
        let warmup = warmup.min(agreed - 1);
        let rest = agreed - warmup;
        let measured = if requested == 0 { rest } else { requested.min(rest) };
        Self { warmup: secs(warmup), measured: Some(secs(measured)), cooldown: secs(rest - measured) }
    }
}

/// What has just begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NtttcpPhaseChange {
    /// The measured part, after a warm-up.
    Measured,
    /// The measured part is over; `cooldown` states whether a cool-down follows.
    Done { cooldown: bool },
    /// The whole test is over.
    Finished,
    /// Only a progress line is due.
    Progress,
}

/// The purpose of a reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NtttcpCountsReason {
    Before,
    After,
    Progress,
}

/// The counts of the host and the flows at one instant.
#[derive(Debug, Clone, Default)]
struct NtttcpReading {
    at: Timestamp,
    bytes: BTreeMap<(FlowId, usize), u64>,
    process: Span,
    rtt: Vec<Span>,
}

/// The result of a test.
#[derive(Debug, Clone, Default)]
pub(super) struct NtttcpResult {
    pub(super) seconds: f64,
    /// Bytes per thread.
    pub(super) threads: Vec<u64>,
    pub(super) connections: usize,
    /// CPU time of this process.
    pub(super) process: Span,
    pub(super) before: HostCounts,
    pub(super) after: HostCounts,
    /// Mean of the connections' smoothed round-trip times at the end.
    pub(super) rtt: Option<Span>,
}

/// The timer and counts of one test.
#[derive(Debug)]
pub(super) struct NtttcpMeter {
    schedule: PhaseDurations,
    began: Timestamp,
    /// Number of phases that have ended.
    passed: usize,
    progress_at: Timestamp,
    /// The purposes and times of the requested flow counts, and the purposes of the requested host counters.
    looks: Vec<(NtttcpCountsReason, Timestamp)>,
    hosts: Vec<NtttcpCountsReason>,
    host_before: HostCounts,
    host_after: HostCounts,
    before: NtttcpReading,
    after: Option<NtttcpReading>,
    seen: (Timestamp, u64),
}

impl NtttcpMeter {
    /// A test that begins now, with the warm-up unless it is empty.
    pub(super) fn new(now: Timestamp, schedule: PhaseDurations) -> Self {
        let mut meter = Self {
            schedule,
            began: now,
            passed: 0,
            progress_at: now + PROGRESS,
            looks: Vec::new(),
            hosts: Vec::new(),
            host_before: HostCounts::default(),
            host_after: HostCounts::default(),
            before: NtttcpReading { at: now, ..NtttcpReading::default() },
            after: None,
            seen: (now, 0),
        };
        if schedule.warmup == Span::ZERO {
            meter.passed = 1;
            meter.edge(NtttcpCountsReason::Before, now);
        }
        meter
    }

    fn end_of(&self, part: usize) -> Option<Timestamp> {
        let measured_from = self.began + self.schedule.warmup;
        match part {
            0 => Some(measured_from),
            1 => Some(measured_from + self.schedule.measured?),
            2 => Some(measured_from + self.schedule.measured? + self.schedule.cooldown),
            _ => None,
        }
    }

    /// When the whole test ends.
    pub(super) fn end(&self) -> Option<Timestamp> {
        self.end_of(2)
    }

    pub(super) fn is_over(&self) -> bool {
        self.passed > 2
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        if self.is_over() {
            return None;
        }
        Some(self.end_of(self.passed).map_or(self.progress_at, |end| end.min(self.progress_at)))
    }

    /// The next event that is due. Flows and host must be read for all but the last event of a test.
    pub(super) fn turn(&mut self, now: Timestamp) -> Option<NtttcpPhaseChange> {
        if self.is_over() {
            return None;
        }
        if self.end_of(self.passed).is_some_and(|end| now >= end) {
            self.passed += 1;
            return Some(match self.passed {
                1 => {
                    self.edge(NtttcpCountsReason::Before, now);
                    NtttcpPhaseChange::Measured
                }
                2 => {
                    self.edge(NtttcpCountsReason::After, now);
                    NtttcpPhaseChange::Done { cooldown: self.schedule.cooldown > Span::ZERO }
                }
                _ => NtttcpPhaseChange::Finished,
            });
        }
        if now < self.progress_at {
            return None;
        }
        self.progress_at = now + PROGRESS;
        self.looks.push((NtttcpCountsReason::Progress, now));
        Some(NtttcpPhaseChange::Progress)
    }

    /// The test was stopped: what was measured so far is the result.
    pub(super) fn stop_early(&mut self, now: Timestamp) {
        if self.passed == 0 {
            self.before.at = now;
        }
        if self.passed < 2 {
            self.edge(NtttcpCountsReason::After, now);
        }
        self.passed = 3;
    }

    /// Requests a reading of flows and host.
    fn edge(&mut self, look: NtttcpCountsReason, now: Timestamp) {
        self.looks.push((look, now));
        self.hosts.push(look);
    }

    pub(super) fn host(&mut self, host: &HostCounts) {
        if self.hosts.is_empty() {
            return;
        }
        match self.hosts.remove(0) {
            NtttcpCountsReason::Before => self.host_before = host.clone(),
            NtttcpCountsReason::After | NtttcpCountsReason::Progress => self.host_after = host.clone(),
        }
    }

    /// Takes the counts of the flows. Returns the bit rate since the last line if they were requested for one.
    pub(super) fn counts(&mut self, cpu: CpuTime, flows: &[FlowCounts]) -> Option<f64> {
        if self.looks.is_empty() {
            return None;
        }
        let (look, at) = self.looks.remove(0);
        let reading = NtttcpReading {
            at,
            bytes: flows.iter().flat_map(streams).collect(),
            process: cpu.user + cpu.system,
            rtt: flows.iter().flat_map(|flow| flow.streams.iter().filter_map(|stream| stream.rtt)).collect(),
        };
        let total = reading.bytes.values().fold(0_u64, |sum, bytes| sum.saturating_add(*bytes));
        match look {
            NtttcpCountsReason::Before => self.before = reading,
            NtttcpCountsReason::After => self.after = Some(reading),
            NtttcpCountsReason::Progress => {
                let (before, bytes) = std::mem::replace(&mut self.seen, (at, total));
                let seconds = at.since(before).as_secs_f64();
                return Some(total.saturating_sub(bytes) as f64 * 8.0 / seconds.max(1e-9));
            }
        }
        None
    }

    /// The result of the test; `thread_of` has the thread of each stream, `threads` is their number.
    pub(super) fn outcome(
        &self,
        threads: usize,
        thread_of: &BTreeMap<(FlowId, usize), usize>,
    ) -> NtttcpResult {
        let after = self.after.clone().unwrap_or_default();
        let mut bytes = vec![0_u64; threads];
        for (stream, counted) in &after.bytes {
            let counted = counted.saturating_sub(self.before.bytes.get(stream).copied().unwrap_or(0));
            let thread = thread_of.get(stream).copied().unwrap_or(0);
            if let Some(sum) = bytes.get_mut(thread) {
                *sum = sum.saturating_add(counted);
            }
        }
        let times = after.rtt.len() as u64;
        let total = after.rtt.iter().fold(Span::ZERO, |sum, rtt| sum + *rtt);
        NtttcpResult {
            seconds: after.at.since(self.before.at).as_secs_f64(),
            threads: bytes,
            connections: thread_of.len(),
            process: after.process.saturating_sub(self.before.process),
            before: self.host_before.clone(),
            after: self.host_after.clone(),
            rtt: total.as_ns().checked_div(times).map(Span::from_ns),
        }
    }
}

fn streams(flow: &FlowCounts) -> impl Iterator<Item = ((FlowId, usize), u64)> + '_ {
    flow.streams.iter().enumerate().map(|(at, stream)| ((flow.flow, at), stream.bytes))
}

impl NtttcpResult {
    pub(super) fn bytes(&self) -> u64 {
        self.threads.iter().fold(0_u64, |sum, bytes| sum.saturating_add(*bytes))
    }

    /// Bytes per second; 0 for a test without duration.
    pub(super) fn rate(&self, bytes: u64) -> f64 {
        if self.seconds > 0.0 { bytes as f64 / self.seconds } else { 0.0 }
    }
}
