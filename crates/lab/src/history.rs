//! The port counters, interval by interval: the history of a running lab, the older the coarser.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::control_protocol::{HistoryInterval, Lateness, PacketRate, PortHistory, PortSeries};
use linerate_emu::fabric::PortCounts;

/// Number of the latest intervals that are kept as they were sampled: ten minutes at ten a second.
const FINE_INTERVALS: usize = 6000;

/// Number of intervals that are kept of each further length. Each length is twice the one before, so an hour is kept in
/// intervals of up to 3.2 s and takes 2800 of them.
const COARSE_INTERVALS: usize = 600;

/// One sample of all counters.
#[derive(Debug, Clone)]
pub(super) struct CounterSample {
    /// On the monotonic clock.
    pub(super) at_ns: u64,
    /// The counters of the ports since the start.
    pub(super) ports: Vec<PortCounts>,
    /// Frames delivered to hosts since the start.
    pub(super) frames: u64,
    /// Frames later than the bound since the start.
    pub(super) late: u64,
    /// The maximum lateness in this interval.
    pub(super) worst_ns: u64,
    /// CPU time of the switch since the start.
    pub(super) cpu_ns: u64,
    /// Packets that the kernel dropped before they were read, since the start.
    pub(super) overrun: u64,
}

/// The values kept of one port in one sample.
#[derive(Debug, Clone, Copy, Default)]
struct PortCounterSample {
    packets: u64,
    bytes: u64,
    wire_bytes: u64,
    dropped: u64,
    marked: u64,
    queue: u64,
    queue_max: u64,
    busy_ns: u64,
}

#[derive(Debug)]
struct RetainedInterval {
    at_ns: u64,
    ports: Vec<PortCounterSample>,
    frames: u64,
    late: u64,
    worst_ns: u64,
    cpu_ns: u64,
    overrun: u64,
}

impl RetainedInterval {
    /// This interval and the one before it as one.
    fn after(&self, first: &Self) -> Self {
        let port = |(number, now): (usize, &PortCounterSample)| {
            let before = first.ports.get(number).map_or(0, |port| port.queue_max);
            PortCounterSample { queue_max: now.queue_max.max(before), ..*now }
        };
        Self {
            ports: self.ports.iter().enumerate().map(port).collect(),
            worst_ns: self.worst_ns.max(first.worst_ns),
            ..*self
        }
    }
}

/// The history of all ports since the start.
#[derive(Debug, Default)]
pub(super) struct History {
    names: Arc<[String]>,
    /// The first sample, with which the first interval begins, and then the ends of the intervals.
    readings: VecDeque<Arc<RetainedInterval>>,
    /// Number of intervals of each length; the shortest and latest come first.
    lengths: Vec<usize>,
}

impl History {
    /// Adds a sample, and joins the oldest intervals of a length if there are too many.
    pub(super) fn add(&mut self, reading: &CounterSample) {
        if self.names.is_empty() {
            self.names = reading.ports.iter().map(|port| port.name.clone()).collect();
        }
        let totals = |port: &PortCounts| PortCounterSample {
            packets: port.packets,
            bytes: port.bytes.get(),
            wire_bytes: port.wire_bytes.get(),
            dropped: port.dropped(),
            marked: port.marked,
            queue: port.queue_bytes.get(),
            queue_max: port.queue_max_bytes.get(),
            busy_ns: port.busy.as_ns() / port.members.len().max(1) as u64,
        };
        self.readings.push_back(Arc::new(RetainedInterval {
            at_ns: reading.at_ns,
            ports: reading.ports.iter().map(totals).collect(),
            frames: reading.frames,
            late: reading.late,
            worst_ns: reading.worst_ns,
            cpu_ns: reading.cpu_ns,
            overrun: reading.overrun,
        }));
        if self.readings.len() > 1 {
            self.lengthen(0);
        }
    }

    /// Counts one more interval of a length. Counters are those since the start, so that a joined interval has the sum of
    /// both.
    fn lengthen(&mut self, length: usize) {
        if self.lengths.len() <= length {
            self.lengths.push(0);
        }
        self.lengths[length] += 1;
        let most = if length == 0 { FINE_INTERVALS } else { COARSE_INTERVALS };
        if self.lengths[length] <= most {
            return;
        }
        let longer: usize = self.lengths[length + 1..].iter().sum();
        let Some(first) = self.readings.remove(1 + longer) else { return };
        if let Some(second) = self.readings.get_mut(1 + longer) {
            *second = Arc::new(second.after(&first));
        }
        self.lengths[length] -= 2;
        self.lengthen(length + 1);
    }

    /// The intervals of a time range, as a whole: the first may start before it, the last may end after it.
    pub(super) fn between(&self, from_ns: u64, to_ns: u64) -> Past {
        let begin = self.readings.partition_point(|kept| kept.at_ns <= from_ns).saturating_sub(1);
        let end = self.readings.partition_point(|kept| kept.at_ns < to_ns) + 1;
        let end = end.min(self.readings.len()).max(begin);
        self.part(begin, end)
    }

    /// The last second, or as much of it as there is.
    pub(super) fn last_second(&self) -> Past {
        let start = self.readings.back().map_or(0, |last| last.at_ns.saturating_sub(1_000_000_000));
        self.part(self.readings.partition_point(|kept| kept.at_ns < start), self.readings.len())
    }

    fn part(&self, begin: usize, end: usize) -> Past {
        Past {
            names: Arc::clone(&self.names),
            readings: self.readings.range(begin..end).map(Arc::clone).collect(),
        }
    }
}

/// Consecutive samples, and the results derived from them.
#[derive(Debug)]
pub(super) struct Past {
    names: Arc<[String]>,
    readings: Vec<Arc<RetainedInterval>>,
}

impl Past {
    /// The counters of the ports with traffic, interval by interval.
    pub(super) fn port_history(&self, bound_ns: u64) -> PortHistory {
        let ports = self.names.iter().enumerate().map(|(number, name)| PortSeries {
            name: name.clone(),
            intervals: self.pairs().filter_map(|(before, after)| interval(number, before, after)).collect(),
        });
        PortHistory {
            ports: ports.filter(|port| port.intervals.iter().any(|i| i.packets + i.dropped > 0)).collect(),
            late: Some(Lateness {
                count: self.change(|kept| kept.late),
                frames: Some(self.change(|kept| kept.frames)),
                worst_ns: self.pairs().map(|(_, after)| after.worst_ns).max().unwrap_or(0),
                bound_ns,
            }),
            packet_rate: Some(PacketRate { overrun: self.change(|kept| kept.overrun), ..self.busiest() }),
        }
    }

    /// Averages over the whole part.
    pub(super) fn recent(&self) -> Option<Recent> {
        let (first, last) = (self.readings.first()?, self.readings.last()?);
        let seconds = last.at_ns.saturating_sub(first.at_ns) as f64 / 1e9;
        let per_second = |amount: u64| if seconds > 0.0 { amount as f64 / seconds } else { 0.0 };
        let queue_max = |number: usize| {
            let ports = self.readings.iter().skip(1).filter_map(|kept| kept.ports.get(number));
            ports.map(|port| port.queue_max).max().unwrap_or(0)
        };
        let ports = last.ports.iter().zip(&first.ports).enumerate().map(|(number, (now, then))| RecentPort {
            wire_bps: 8.0 * per_second(now.wire_bytes.saturating_sub(then.wire_bytes)),
            pps: per_second(now.packets.saturating_sub(then.packets)),
            busy: per_second(now.busy_ns.saturating_sub(then.busy_ns)) / 1e9,
            queue_max: queue_max(number),
        });
        Some(Recent {
            ports: ports.collect(),
            cpu: per_second(last.cpu_ns.saturating_sub(first.cpu_ns)) / 1e9,
        })
    }

    fn pairs(&self) -> impl Iterator<Item = (&RetainedInterval, &RetainedInterval)> {
        self.readings.windows(2).filter_map(|pair| match pair {
            [before, after] => Some((&**before, &**after)),
            _ => None,
        })
    }

    /// The increase of a counter.
    fn change(&self, of: fn(&RetainedInterval) -> u64) -> u64 {
        match (self.readings.first(), self.readings.last()) {
            (Some(first), Some(last)) => of(last).saturating_sub(of(first)),
            _ => 0,
        }
    }

    /// The second with the highest CPU use: what the core forwarded, and what it could forward at full use.
    fn busiest(&self) -> PacketRate {
        let mut found = PacketRate { max_pps: 0.0, limit_pps: 0.0, overrun: 0 };
        let mut most = 0.0;
        for (number, before) in self.readings.iter().enumerate() {
            let later = &self.readings[number..];
            let end = later.partition_point(|after| after.at_ns.saturating_sub(before.at_ns) < BUSY_SPAN_NS);
            // What is shorter as a whole counts as it is.
            let whole = (number == 0).then_some(later.len() - 1);
            let Some(after) = later.get(end).or_else(|| later.get(whole?)) else { break };
            let length = after.at_ns.saturating_sub(before.at_ns).max(1) as f64;
            let cpu = after.cpu_ns.saturating_sub(before.cpu_ns) as f64 / length;
            let pps = after.frames.saturating_sub(before.frames) as f64 / length * 1e9;
            if cpu > most && pps > 0.0 {
                most = cpu;
                found = PacketRate { max_pps: pps, limit_pps: pps / cpu.min(1.0), overrun: 0 };
            }
        }
        found
    }
}

/// Rates over the last second.
#[derive(Debug, Clone)]
pub(super) struct Recent {
    pub(super) ports: Vec<RecentPort>,
    /// Share of one core.
    pub(super) cpu: f64,
}

/// A port over the last second.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RecentPort {
    pub(super) wire_bps: f64,
    pub(super) pps: f64,
    pub(super) busy: f64,
    pub(super) queue_max: u64,
}

fn interval(number: usize, before: &RetainedInterval, after: &RetainedInterval) -> Option<HistoryInterval> {
    let (then, now) = (before.ports.get(number)?, after.ports.get(number)?);
    let length = after.at_ns.saturating_sub(before.at_ns).max(1);
    Some(HistoryInterval {
        start_ns: before.at_ns,
        end_ns: after.at_ns,
        packets: now.packets.saturating_sub(then.packets),
        bytes: now.bytes.saturating_sub(then.bytes),
        wire_bytes: now.wire_bytes.saturating_sub(then.wire_bytes),
        dropped: now.dropped.saturating_sub(then.dropped),
        marked: now.marked.saturating_sub(then.marked),
        queue_bytes: now.queue,
        queue_max_bytes: now.queue_max,
        busy: (now.busy_ns > 0 || now.packets == 0)
            .then_some(now.busy_ns.saturating_sub(then.busy_ns) as f64 / length as f64),
    })
}

/// Time over which CPU use is averaged: ten intervals, of which one may be short. Shorter times are occasionally at
/// 100 %, when the switch catches up after it was preempted.
const BUSY_SPAN_NS: u64 = 950_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_units::{Bytes, Span};

    fn reading(tenths: u64, packets: u64) -> CounterSample {
        CounterSample {
            at_ns: tenths * 100_000_000,
            ports: vec![
                PortCounts {
                    name: "a>s".into(),
                    packets,
                    wire_bytes: Bytes::new(packets * 1538),
                    queue_max_bytes: Bytes::new(tenths),
                    busy: Span::from_ns(packets * 12_304),
                    dropped_queue: packets / 10,
                    ..PortCounts::default()
                },
                PortCounts { name: "b>s".into(), ..PortCounts::default() },
            ],
            frames: packets,
            late: packets / 100,
            worst_ns: tenths,
            cpu_ns: tenths * 50_000_000,
            overrun: 0,
        }
    }

    #[test]
    fn an_observer_reports_the_intervals_that_touch_the_span_and_the_ports_that_were_used() {
        let mut history = History::default();
        for tenths in 0..10 {
            history.add(&reading(tenths, tenths * 1000));
        }
        let read = history.between(250_000_000, 500_000_000).port_history(1000);
        assert_eq!(read.ports.len(), 1, "the silent port is left out");
        let intervals = &read.ports[0].intervals;
        assert_eq!(
            intervals.iter().map(|i| i.start_ns / 100_000_000).collect::<Vec<_>>(),
            [2, 3, 4],
            "the first begins before the span"
        );
        assert!(intervals.iter().all(|i| i.packets == 1000 && i.dropped == 100 && i.wire_bytes == 1_538_000));
        assert!((intervals[0].busy.unwrap() - 0.12304).abs() < 1e-9);
        let late = Lateness { count: 30, frames: Some(3000), worst_ns: 5, bound_ns: 1000 };
        assert_eq!(read.late, Some(late));
        // Half of a core for 10000 frames a second: 20000 with all of it.
        let rate = read.packet_rate.unwrap();
        assert!((rate.max_pps - 10_000.0).abs() < 1e-6 && (rate.limit_pps - 20_000.0).abs() < 1e-6);
        assert!(history.between(5_000_000_000, 6_000_000_000).port_history(1000).ports.is_empty());
    }

    #[test]
    fn the_last_second_is_a_second_long_and_the_past_is_bounded() {
        const TENTHS: u64 = 10 * FINE_INTERVALS as u64;
        let mut history = History::default();
        for tenths in 0..TENTHS {
            history.add(&reading(tenths, tenths * 1000));
        }
        let kept = history.readings.len();
        assert!(kept < FINE_INTERVALS + 7 * COARSE_INTERVALS, "{kept}");
        let recent = history.last_second().recent().unwrap();
        assert!((recent.ports[0].pps - 10_000.0).abs() < 1e-6);
        assert!((recent.cpu - 0.5).abs() < 1e-9);
        assert_eq!(recent.ports[0].queue_max, TENTHS - 1);
        assert!(History::default().last_second().recent().is_none());
    }

    /// An hour and a half: the counts of its first minutes are there at its end, and none is counted twice.
    #[test]
    fn a_long_run_has_the_counts_of_its_whole_time() {
        const TENTHS: u64 = 54_000;
        let mut history = History::default();
        for tenths in 0..=TENTHS {
            history.add(&reading(tenths, tenths * 1000));
        }
        let seen = history.between(0, TENTHS * 100_000_000).port_history(1000);
        let intervals = &seen.ports[0].intervals;
        assert_eq!((intervals[0].start_ns, intervals.last().unwrap().end_ns), (0, TENTHS * 100_000_000));
        assert!(intervals.windows(2).all(|pair| pair[0].end_ns == pair[1].start_ns));
        assert_eq!(intervals.iter().map(|interval| interval.packets).sum::<u64>(), TENTHS * 1000);
        assert_eq!(intervals.iter().map(|interval| interval.dropped).sum::<u64>(), TENTHS * 100);
        assert!(intervals.iter().all(|i| i.queue_max_bytes == i.end_ns / 100_000_000), "the longest of both");
        let span = |interval: &HistoryInterval| (interval.end_ns - interval.start_ns) / 100_000_000;
        assert!(
            intervals.iter().map(span).is_sorted_by(|before, after| before >= after),
            "the older the longer"
        );
        assert_eq!((span(&intervals[0]), span(&intervals[intervals.len() - FINE_INTERVALS])), (64, 1));
        // The busiest second is one, however long the intervals are.
        let rate = seen.packet_rate.unwrap();
        assert!((rate.max_pps - 10_000.0).abs() < 1e-6 && (rate.limit_pps - 20_000.0).abs() < 1e-6);
    }

    #[test]
    fn a_joined_interval_has_the_longest_queue_and_the_worst_lateness_of_both() {
        let mut history = History::default();
        for (tenths, worst) in [(0, 0), (1, 90), (2, 20)] {
            let mut sample = reading(tenths, tenths * 1000);
            sample.worst_ns = worst;
            sample.ports[0].queue_max_bytes = Bytes::new(worst);
            history.add(&sample);
        }
        let [_, first, second] = [0, 1, 2].map(|number| Arc::clone(&history.readings[number]));
        let joined = second.after(&first);
        assert_eq!((joined.worst_ns, joined.ports[0].queue_max), (90, 90));
        assert_eq!((joined.at_ns, joined.frames, joined.ports[0].packets), (200_000_000, 2000, 2000));
    }
}
