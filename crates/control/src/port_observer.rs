//! What an emulated network observed of a run that takes place in it.
//!
//! The observer is queried after the flows of a phase have ended and before they are judged. Its counts are
//! logged as events of the client. If it does not answer, a caveat is added; the run never ends because of it.

use std::fmt;

use linerate_model::flow::FlowId;
use linerate_model::{Body, CaveatKind, FlowRecord, PortSample, Readings, RunRecord};
use linerate_sock::{Mono, clock};
use linerate_units::{Span, Timestamp};
use thiserror::Error;

use crate::log::Log;

/// Above this share of the packet rate that an emulated network can carry, the result may show the limit of the
/// emulation.
const NEAR_LIMIT_SHARE: f64 = 0.8;
/// One late frame in this number is tolerated.
const FRAMES_PER_TOLERATED_LATE: u64 = 1000;

/// Observes the packets of a run between its hosts.
pub trait PortObserver: fmt::Debug {
    /// The counts of the intervals that overlap the time between two instants. The measured hosts wait for the
    /// answer, so one that takes longer than two seconds counts as none.
    ///
    /// # Errors
    /// There is no answer.
    fn observe(&self, from: Mono, to: Mono) -> Result<PortObservations, PortObserverError>;
}

/// Why an observer did not answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PortObserverError {
    /// It cannot be reached, or closed the connection.
    #[error("no connection: {0}")]
    Gone(String),
    /// It is reachable but does not answer.
    #[error("no answer within {0}")]
    Silent(Span),
    /// Its answer is invalid.
    #[error("invalid answer: {0}")]
    Garbled(String),
}

/// What an observer counted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PortObservations {
    /// Intervals of all ports; those of one port are in order.
    pub intervals: Vec<PortInterval>,
    /// Packets that left too late; absent if the observer does not measure lateness.
    pub late: Option<ObservedLateness>,
    /// The packet rate; absent if the observer does not know the limit of its machine.
    pub packet_rate: Option<ObservedPacketRate>,
}

/// What one port counted in one interval.
#[derive(Debug, Clone, PartialEq)]
pub struct PortInterval {
    /// Name of the port, such as `s>b`.
    pub port: String,
    /// Start of the interval.
    pub start: Mono,
    /// End of the interval.
    pub end: Mono,
    /// The counters of the interval.
    pub readings: Readings,
}

/// Packets that left an emulated network later than its description requires.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ObservedLateness {
    /// Number of packets that were later than the bound.
    pub count: u64,
    /// Total number of packets; absent if unknown.
    pub of: Option<u64>,
    /// The largest lateness.
    pub worst: Span,
    /// The largest lateness that is in time.
    pub bound: Span,
}

/// Frames per second of all ports together; one frame may represent many packets.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ObservedPacketRate {
    /// The highest rate that occurred.
    pub max_pps: f64,
    /// The approximate rate that this machine can carry.
    pub limit_pps: f64,
    /// Packets that the kernel dropped because the network did not read them in time.
    pub overrun: u64,
}

/// Logs what the observer counted for the flows that have run since `since`.
pub(crate) fn record_observations(
    observer: &dyn PortObserver,
    since: Mono,
    flows: &[FlowId],
    log: &mut Log<'_>,
) {
    let observations = match observer.observe(since, clock::now()) {
        Ok(observations) => observations,
        Err(error) => return gone(&error, log),
    };
    let epoch = log.epoch();
    for body in on_run_clock(observations.intervals, epoch, flows, log.record()) {
        log.note(body);
    }
    let caveats = [observations.late.and_then(late), observations.packet_rate.and_then(near_its_limit)];
    for (kind, text) in caveats.into_iter().flatten() {
        flows.iter().for_each(|flow| log.warn(Some(*flow), kind, text.clone()));
    }
}

/// Converts the intervals to events with times relative to `epoch`, without those that are already in the
/// record.
fn on_run_clock(
    intervals: Vec<PortInterval>,
    epoch: Mono,
    flows: &[FlowId],
    record: &RunRecord,
) -> Vec<Body> {
    let run_time = |at: Mono| Timestamp::from_ns(at.0.saturating_sub(epoch.0));
    let windows = measured_parts(record, flows);
    let logged_until = last_logged_end(record);
    let bodies = intervals.into_iter().filter_map(|interval| {
        let (start_ns, end_ns) = (run_time(interval.start), run_time(interval.end));
        // The interval between two phases was logged with the first of them.
        if start_ns < logged_until {
            return None;
        }
        let inside = windows.iter().any(|(opens, closes)| *opens <= start_ns && end_ns <= *closes);
        let outside = !windows.is_empty() && !inside;
        let sample = PortSample { start_ns, end_ns, outside, readings: interval.readings };
        Some(Body::Port { flows: flows.to_vec(), port: interval.port.into(), sample })
    });
    bodies.collect()
}

/// After a failed run: adds a caveat if the emulated network has died, which then is the cause.
pub(crate) fn check_network(observer: &dyn PortObserver, log: &mut Log<'_>) {
    let now = clock::now();
    if let Err(error) = observer.observe(now, now) {
        gone(&error, log);
    }
}

fn gone(error: &PortObserverError, log: &mut Log<'_>) {
    if log.record().caveats.iter().any(|caveat| caveat.kind == CaveatKind::LabGone) {
        return;
    }
    let text = format!(
        "the port counters of the emulated network could not be read: {error}; check with linerate lab \
         status whether it is up, and start it with linerate lab up"
    );
    log.warn(None, CaveatKind::LabGone, text);
}

fn late(late: ObservedLateness) -> Option<(CaveatKind, String)> {
    // On any machine a frame in a thousand may be late, which does not weaken a result.
    let many = late.of.map_or(late.count > 0, |of| late.count.saturating_mul(FRAMES_PER_TOLERATED_LATE) > of);
    let text = format!(
        "{} frames left the emulated network more than {} late, the latest by {}: the machine was too busy, \
         and delays and rates may be wrong; stop other programs, or emulate a slower network",
        late.count, late.bound, late.worst
    );
    many.then_some((CaveatKind::LabLate, text))
}

fn near_its_limit(rate: ObservedPacketRate) -> Option<(CaveatKind, String)> {
    if rate.overrun > 0 {
        let text = format!(
            "{} packets were lost before they entered the emulated network, and no port counts them: this \
             machine can emulate about {:.0} frames/s; use larger packets or a lower rate",
            rate.overrun, rate.limit_pps
        );
        return Some((CaveatKind::LabPacketLimit, text));
    }
    let text = format!(
        "up to {:.0} frames/s passed through the emulated network, and this machine can emulate about \
         {:.0}: the emulation may limit the result; use larger packets or a lower rate",
        rate.max_pps, rate.limit_pps
    );
    let near = rate.limit_pps > 0.0 && rate.max_pps >= NEAR_LIMIT_SHARE * rate.limit_pps;
    near.then_some((CaveatKind::LabPacketLimit, text))
}

/// The measured parts of these flows, by the receivers' times.
fn measured_parts(record: &RunRecord, flows: &[FlowId]) -> Vec<(Timestamp, Timestamp)> {
    let omit = record.start.as_ref().and_then(|start| start.spec.traffic.omit).unwrap_or_default();
    let part = |flow: &FlowRecord| {
        let opens = flow.first_read? + omit;
        Some((opens, opens + flow.receiver.as_ref()?.elapsed))
    };
    flows.iter().filter_map(|flow| record.flow(*flow)).filter_map(part).collect()
}

/// The end of the last port interval in the log.
fn last_logged_end(record: &RunRecord) -> Timestamp {
    let ends = record.ports.iter().flat_map(|port| &port.samples).map(|sample| sample.end_ns);
    ends.max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::metrics::port;
    use linerate_model::{Direction, Event, FlowPlan, RunStart, Side, Tally, Transport, World};
    use linerate_units::Bytes;

    /// Gives the same answer to every query.
    #[derive(Debug)]
    struct FixedAnswer(PortObservations);

    impl PortObserver for FixedAnswer {
        fn observe(&self, from: Mono, to: Mono) -> Result<PortObservations, PortObserverError> {
            assert!(from <= to);
            Ok(self.0.clone())
        }
    }

    #[derive(Debug)]
    struct Mute;

    impl PortObserver for Mute {
        fn observe(&self, _: Mono, _: Mono) -> Result<PortObservations, PortObserverError> {
            Err(PortObserverError::Silent(Span::from_secs(2)))
        }
    }

    const EPOCH: Mono = Mono(7_000_000_000);

    fn planned(number: u16) -> Body {
        Body::FlowPlanned(FlowPlan {
            flow: FlowId(number),
            name: "upload".into(),
            from: "a".into(),
            to: "b".into(),
            transport: Transport::Tcp,
            direction: Direction::Upload,
            streams: 1,
        })
    }

    /// A flow whose receiver read for 1 s, starting 300 ms after the start of the run.
    fn flow(number: u16) -> Vec<Event> {
        let (bytes, elapsed) = (Bytes::new(1), Span::from_ms(400));
        let tally = Tally { elapsed: Span::from_secs(1), ..Tally::default() };
        let bodies = [
            (0, planned(number)),
            (700, Body::Progress { flow: FlowId(number), bytes, elapsed, srtt: None, retransmits: None }),
            (1400, Body::FlowEnded { flow: FlowId(number), side: Side::Receiver, tally }),
        ];
        let event = |(at_ms, body)| {
            let at = Timestamp::START + Span::from_ms(at_ms);
            Event { run: "r".into(), host: 0, seq: 0, at, body }
        };
        bodies.into_iter().map(event).collect()
    }

    fn intervals(bounds_ms: &[(u64, u64)]) -> Vec<PortInterval> {
        let interval = |(start_ms, end_ms): &(u64, u64)| {
            let mut readings = Readings::default();
            readings.put(port::PACKETS, *end_ms);
            let at = |ms: &u64| EPOCH + Span::from_ms(*ms).as_duration();
            PortInterval { port: "a>s".into(), start: at(start_ms), end: at(end_ms), readings }
        };
        bounds_ms.iter().map(interval).collect()
    }

    /// Start, end, whether outside, and packets of each interval.
    fn seen(bodies: &[Body]) -> Vec<(u64, u64, bool, Option<u64>)> {
        let seen = bodies.iter().map(|body| {
            let Body::Port { sample, .. } = body else { panic!("{body:?}") };
            let ms = |at: Timestamp| at.as_ns() / 1_000_000;
            (ms(sample.start_ns), ms(sample.end_ns), sample.outside, sample.readings.get(port::PACKETS))
        });
        seen.collect()
    }

    #[test]
    fn intervals_stand_on_the_clock_of_the_run_and_know_whether_they_were_measured() {
        let record = RunRecord::fold(&flow(0));
        // The first interval began before the run.
        let early = PortInterval { start: Mono(EPOCH.0 - 1), ..intervals(&[(0, 100)]).remove(0) };
        let later = intervals(&[(200, 301), (300, 400), (1200, 1300), (1250, 1350)]);
        let bodies = on_run_clock([vec![early], later].concat(), EPOCH, &[FlowId(0)], &record);
        let expected = [
            (0, 100, true, Some(100)),
            (200, 301, true, Some(301)),
            (300, 400, false, Some(400)),
            (1200, 1300, false, Some(1300)),
            (1250, 1350, true, Some(1350)),
        ];
        assert_eq!(seen(&bodies), expected);
        assert!(
            matches!(&bodies[0], Body::Port { flows, port, .. } if flows == &[FlowId(0)] && port == "a>s")
        );
    }

    #[test]
    fn the_omitted_beginning_is_outside() {
        let mut spec = linerate_model::TestSpec::default();
        spec.traffic.omit = Some(Span::from_ms(100));
        let mut record = RunRecord::fold(&flow(0));
        record.start = Some(RunStart {
            schema: "".into(),
            started_at: "".into(),
            world: World::Lab,
            linerate: "".into(),
            target: "".into(),
            spec,
        });
        let bodies = on_run_clock(intervals(&[(300, 400), (400, 500)]), EPOCH, &[FlowId(0)], &record);
        assert_eq!(seen(&bodies), [(300, 400, true, Some(400)), (400, 500, false, Some(500))]);
    }

    #[test]
    fn an_interval_between_two_phases_is_logged_once() {
        let mut record = RunRecord::fold(&flow(0));
        for body in on_run_clock(intervals(&[(300, 400), (400, 500)]), EPOCH, &[FlowId(0)], &record) {
            record.apply(&Event { run: "r".into(), host: 0, seq: 0, at: Timestamp::START, body });
        }
        let second = on_run_clock(intervals(&[(400, 500), (500, 600)]), EPOCH, &[FlowId(1)], &record);
        assert_eq!(
            seen(&second),
            [(500, 600, false, Some(600))],
            "and before the first read nothing is outside"
        );
    }

    #[test]
    fn lateness_and_nearness_to_the_limit_weaken_every_flow_of_the_phase() {
        let caveats_for = |count, max_pps| {
            let mut log = Log::new("r".into(), Vec::new());
            log.note(planned(0));
            log.note(planned(1));
            let late = ObservedLateness {
                count,
                of: Some(16_000),
                worst: Span::from_ms(3),
                bound: Span::from_ns(100_000),
            };
            let packet_rate =
                ObservedPacketRate { max_pps, limit_pps: 400_000.0, overrun: u64::from(max_pps < 0.0) };
            let observations = PortObservations {
                late: Some(late),
                packet_rate: Some(packet_rate),
                ..PortObservations::default()
            };
            let epoch = log.epoch();
            record_observations(&FixedAnswer(observations), epoch, &[FlowId(0), FlowId(1)], &mut log);
            let of_flow = |number: u16| {
                let caveats = &log.record().flow(FlowId(number)).unwrap().caveats;
                caveats.iter().map(|caveat| (caveat.kind, caveat.text.clone())).collect::<Vec<_>>()
            };
            assert_eq!(of_flow(0), of_flow(1));
            of_flow(0)
        };
        assert_eq!(caveats_for(16, 319_999.0), [], "one in a thousand is late anywhere");
        let lost = caveats_for(0, -1.0);
        assert!(
            lost.len() == 1 && lost[0].0 == CaveatKind::LabPacketLimit && lost[0].1.contains("1 packets")
        );
        let caveats = caveats_for(17, 320_000.0);
        let kinds: Vec<_> = caveats.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [CaveatKind::LabLate, CaveatKind::LabPacketLimit]);
        for number in ["17 frames", "100 us", "3 ms"] {
            assert!(caveats[0].1.contains(number), "{number}: {}", caveats[0].1);
        }
        assert!(
            caveats[1].1.contains("320000 frames/s") && caveats[1].1.contains("400000"),
            "{}",
            caveats[1].1
        );
    }

    #[test]
    fn a_silent_observer_is_one_caveat_however_often_it_is_asked() {
        let mut log = Log::new("r".into(), Vec::new());
        let epoch = log.epoch();
        record_observations(&Mute, epoch, &[FlowId(0)], &mut log);
        record_observations(&Mute, epoch, &[FlowId(1)], &mut log);
        check_network(&Mute, &mut log);
        let caveats = &log.record().caveats;
        assert_eq!(caveats.len(), 1);
        assert_eq!(caveats[0].kind, CaveatKind::LabGone);
        assert!(caveats[0].text.contains("no answer within 2 s"), "{}", caveats[0].text);
    }
}
