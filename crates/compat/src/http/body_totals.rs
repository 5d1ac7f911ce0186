//! What the bodies of one direction come to: bytes, the time in which the client moved them, and what the kernel counted.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::flow::StreamCounts;
use linerate_model::metrics::{Readings, flow, tcp};
use linerate_model::{BrowserNote, Direction, Sample, Side, SideSettings, Tally, TestSpec};
use linerate_units::{Bitrate, Bytes, Span, Timestamp};

use crate::stand_in::{CountedFlow, FlowId, Link, Output, Planned, RunId};

/// Shortest interval of a sample.
const MIN_INTERVAL: Span = Span::from_ms(90);

/// Longest pause between two bodies that belongs to the time: the client and the path need it to get from one to the
/// next.
const MAX_PAUSE: Span = Span::from_secs(1);

/// Most requests of a run that are remembered because they measure latency.
const MAX_PROBES: usize = 10_000;

/// Most samples of a direction; what follows is in the totals alone.
const MAX_SAMPLES: usize = 36_000;

/// What is known of one body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct BodyReading {
    pub(super) first_at: Timestamp,
    pub(super) last_at: Timestamp,
    pub(super) sums: BodySums,
    /// Smoothed round-trip time at the end.
    pub(super) rtt: Option<Span>,
}

/// Counts that are added over bodies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct BodySums {
    /// Bytes that were read, or acknowledged.
    pub(super) bytes: u64,
    retransmits: u64,
    /// The time in transit.
    transit_ns: u64,
    busy_ns: u64,
    rwnd_limited_ns: u64,
    sndbuf_limited_ns: u64,
}

impl BodySums {
    /// The bytes of a body that was in transit for this time, and what the kernel counted on its connection between two
    /// readings.
    pub(super) fn new(bytes: u64, transit: Span, before: &StreamCounts, now: &StreamCounts) -> Self {
        let (was, is) = (before.connection.unwrap_or_default(), now.connection.unwrap_or_default());
        let since = |now: Span, before: Span| now.as_ns().saturating_sub(before.as_ns());
        Self {
            bytes,
            retransmits: now.retransmits.unwrap_or_default(),
            transit_ns: transit.as_ns(),
            busy_ns: since(is.busy, was.busy),
            rwnd_limited_ns: since(is.rwnd_limited, was.rwnd_limited),
            sndbuf_limited_ns: since(is.sndbuf_limited, was.sndbuf_limited),
        }
    }

    fn combine(self, other: Self, of: fn(u64, u64) -> u64) -> Self {
        Self {
            bytes: of(self.bytes, other.bytes),
            retransmits: of(self.retransmits, other.retransmits),
            transit_ns: of(self.transit_ns, other.transit_ns),
            busy_ns: of(self.busy_ns, other.busy_ns),
            rwnd_limited_ns: of(self.rwnd_limited_ns, other.rwnd_limited_ns),
            sndbuf_limited_ns: of(self.sndbuf_limited_ns, other.sndbuf_limited_ns),
        }
    }
}

/// The run of a client's bodies.
#[derive(Debug)]
pub(super) struct BodyRun {
    pub(super) link: Link,
    pub(super) is_admitted: bool,
    pub(super) download: BodyTotals,
    pub(super) upload: BodyTotals,
    /// Why it ended early.
    pub(super) trouble: Option<String>,
}

impl BodyRun {
    /// The number of the run of a client.
    pub(super) fn id_of(client: u16) -> RunId {
        RunId(u32::from(client))
    }

    /// The run of a client over this link, and the request for its place. How many streams there are is known at its
    /// end.
    pub(super) fn ask(client: u16, tool: &'static str, peer: String, link: Link) -> (Self, Output) {
        let mut spec = TestSpec::default();
        spec.traffic.no_latency = true;
        let planned = Planned {
            run: Self::id_of(client),
            tool,
            peer: Some(peer),
            link,
            client: false,
            spec,
            flows: Vec::new(),
            expected: None,
        };
        let (download, upload) = (BodyTotals::default(), BodyTotals::default());
        (Self { link, is_admitted: false, download, upload, trouble: None }, Output::Ask(Box::new(planned)))
    }

    /// The client has sent a request that moves nothing, by which it measures latency.
    pub(super) fn probe(&mut self, now: Timestamp) {
        self.download.probe(now);
        self.upload.probe(now);
    }

    /// The results, with a note about the client if it is a browser, and the end of the run.
    pub(super) fn finish(mut self, client: u16, browser: Option<&BrowserNote>) -> Vec<Output> {
        let (run, first) = (Self::id_of(client), super::server::first_flow(client));
        let mut out = Vec::new();
        for direction in [Direction::Download, Direction::Upload] {
            let flow = FlowId(first + u16::from(direction == Direction::Upload));
            let Some(counted) = std::mem::take(self.totals(direction)).result(direction, false) else {
                continue;
            };
            out.push(Output::Counted { run, flow, counted: Box::new(counted) });
            out.extend(browser.map(|note| Output::Browser { flow, note: Box::new(note.clone()) }));
        }
        let nothing = out.is_empty().then(|| "no payload was transferred".to_owned());
        out.push(Output::RunOver { run, trouble: self.trouble.or(nothing) });
        out
    }

    pub(super) fn totals(&mut self, direction: Direction) -> &mut BodyTotals {
        match direction {
            Direction::Download => &mut self.download,
            Direction::Upload => &mut self.upload,
        }
    }
}

/// What a receiver can say of an interval: the bytes and their rate.
fn of_receiver(sample: &Sample) -> Readings {
    let mut readings = Readings::default();
    readings.put(flow::BYTES, sample.bytes());
    readings.put_some(flow::BITRATE, sample.readings.get(flow::BITRATE));
    readings
}

/// The bodies of one direction.
#[derive(Debug, Default)]
pub(super) struct BodyTotals {
    pub(super) settings: Option<SideSettings>,
    /// The bodies that are over.
    over: BodySums,
    /// The times that count, by start: at least one of them was in transit, or the client paused shortly. They do not
    /// overlap, and there are at most one for each second and each probe.
    active: BTreeMap<Timestamp, Timestamp>,
    /// When the client measured latency. It moves no bodies then, unless one is in transit.
    probes: BTreeSet<Timestamp>,
    /// When the last sample ended, and the sums then.
    sampled: Option<(Timestamp, BodySums)>,
    samples: Vec<Sample>,
    /// Most bodies in transit at once.
    most: u32,
}

impl BodyTotals {
    /// A body is about to be moved, and no other one of this direction is in transit.
    pub(super) fn resume(&mut self, now: Timestamp) {
        self.sampled = Some((now, self.over));
    }

    /// The client has sent a request that moves nothing.
    pub(super) fn probe(&mut self, now: Timestamp) {
        if self.probes.len() < MAX_PROBES {
            self.probes.insert(now);
        }
    }

    /// Adds a body that is over, if anything of it was moved.
    pub(super) fn add(&mut self, body: Option<BodyReading>) {
        let Some(body) = body.filter(|body| body.sums.bytes > 0) else { return };
        self.over = self.over.combine(body.sums, u64::saturating_add);
        let (mut from, mut until) = (body.first_at, body.last_at.max(body.first_at));
        while let Some((start, end)) =
            self.active.range(..=until).next_back().map(|(start, end)| (*start, *end))
            && (end >= from || self.is_short_pause(end, from))
        {
            self.active.remove(&start);
            (from, until) = (from.min(start), until.max(end));
        }
        while let Some((start, end)) = self.active.range(until..).next().map(|(start, end)| (*start, *end))
            && self.is_short_pause(until, start)
        {
            self.active.remove(&start);
            until = end;
        }
        self.active.insert(from, until);
    }

    /// Whether a pause belongs to the direction: it is short, and the client did nothing else in it.
    fn is_short_pause(&self, from: Timestamp, until: Timestamp) -> bool {
        until.since(from) <= MAX_PAUSE && self.probes.range(from..until).next().is_none()
    }

    /// Notes a sample, if it is time: of the bodies that are over, and of these, which are in transit.
    pub(super) fn sample(&mut self, now: Timestamp, moving: impl Iterator<Item = BodyReading>) {
        let (mut sums, mut streams, mut rtt_ns) = (self.over, 0, 0);
        for body in moving {
            sums = sums.combine(body.sums, u64::saturating_add);
            (streams, rtt_ns) = (streams + 1, rtt_ns + body.rtt.map_or(0, Span::as_ns));
        }
        self.most = self.most.max(u32::try_from(streams).unwrap_or(u32::MAX));
        let Some((start, before)) = self.sampled else { return };
        if streams == 0 || now < start + MIN_INTERVAL || self.samples.len() >= MAX_SAMPLES {
            return;
        }
        self.sampled = Some((now, sums));
        let since = sums.combine(before, u64::saturating_sub);
        let mut readings = Readings::default();
        readings.put(flow::BYTES, Bytes::new(since.bytes));
        readings.put_some(flow::BITRATE, Bitrate::of(Bytes::new(since.bytes), now - start));
        if since.busy_ns > 0 && since.transit_ns > 0 {
            // In the time in transit: a sender is not idle because its client asks for nothing.
            let interval = (now - start).as_ns();
            let mean = |ns: u64| {
                let mean = u128::from(ns) * u128::from(interval) / u128::from(since.transit_ns);
                Span::from_ns(u64::try_from(mean).unwrap_or(u64::MAX).min(interval))
            };
            readings.put(tcp::BUSY, mean(since.busy_ns));
            readings.put(tcp::RWND_LIMITED, mean(since.rwnd_limited_ns));
            readings.put(tcp::SNDBUF_LIMITED, mean(since.sndbuf_limited_ns));
            readings.put(tcp::RETRANSMITS, since.retransmits);
            readings.put(tcp::SRTT, Span::from_ns(rtt_ns / streams));
        }
        self.samples.push(Sample {
            side: Side::Sender,
            start_ns: start,
            end_ns: now,
            outside: false,
            readings,
        });
    }

    /// The time of the direction.
    fn elapsed(&self) -> Span {
        self.active.iter().map(|(from, until)| until.since(*from)).fold(Span::ZERO, |sum, time| sum + time)
    }

    /// The result of the direction at its client or at its server; absent if nothing was moved.
    pub(super) fn result(self, direction: Direction, is_client: bool) -> Option<CountedFlow> {
        let origin = *self.active.keys().next()?;
        let (bytes, elapsed) = (Bytes::new(self.over.bytes), self.elapsed());
        let sends = (direction == Direction::Upload) == is_client;
        let side = if sends { Side::Sender } else { Side::Receiver };
        let from_origin = |at: Timestamp| Timestamp::from_ns(at.as_ns().saturating_sub(origin.as_ns()));
        let samples = self.samples.into_iter().flat_map(|sample| {
            let sample = Sample {
                start_ns: from_origin(sample.start_ns),
                end_ns: from_origin(sample.end_ns),
                ..sample
            };
            // What was acknowledged has arrived. Receivers send requests and updates of windows, which are no load.
            let of_receiver = Sample { side: Side::Receiver, readings: of_receiver(&sample), ..sample };
            let of_sender = sends.then_some(sample);
            of_sender.into_iter().chain([of_receiver])
        });
        let tally = Tally {
            bytes,
            total_bytes: bytes,
            elapsed,
            bitrate: Bitrate::of(bytes, elapsed).unwrap_or_default(),
            complete: true,
            ..Tally::default()
        };
        // What a sender counts is what the other end's kernel acknowledged.
        let receiver = (side == Side::Sender).then(|| tally.clone());
        let retransmits = (side == Side::Sender).then_some(self.over.retransmits);
        Some(CountedFlow {
            direction,
            streams: self.most.max(1),
            side,
            settings: self.settings.unwrap_or_default(),
            tally: Tally { retransmits, ..tally },
            receiver,
            samples: samples.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::flow::ConnectionCounts;
    use proptest::prelude::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_ns(ms * 1_000_000)
    }

    fn body(from: u64, until: u64, bytes: u64) -> BodyReading {
        let sums = BodySums { bytes, ..BodySums::default() };
        BodyReading { first_at: at(from), last_at: at(until), sums, rtt: None }
    }

    /// It sends requests and updates of windows.
    #[test]
    fn a_receiver_has_no_readings_of_a_sender() {
        let names = |is_client: bool, side: Side| {
            let mut totals = BodyTotals::default();
            totals.resume(at(0));
            let counts = |ms: u64| StreamCounts {
                connection: Some(ConnectionCounts { busy: Span::from_ms(ms), ..ConnectionCounts::default() }),
                ..StreamCounts::default()
            };
            let sums = BodySums::new(900, Span::from_ms(100), &counts(1), &counts(2));
            let body = BodyReading { sums, ..body(0, 100, 0) };
            totals.sample(at(100), std::iter::once(body));
            totals.add(Some(body));
            let samples = totals.result(Direction::Download, is_client).unwrap().samples;
            let of_side = samples.iter().filter(|sample| sample.side == side);
            of_side
                .flat_map(|s| s.readings.iter().map(|(name, _)| name.to_owned()).collect::<Vec<_>>())
                .collect::<Vec<_>>()
        };
        let of_receiver = ["flow.bitrate", "flow.bytes"];
        assert_eq!(names(true, Side::Receiver), of_receiver);
        assert_eq!(names(true, Side::Sender), [""; 0]);
        assert_eq!(names(false, Side::Receiver), of_receiver, "what was acknowledged has arrived");
        assert!(names(false, Side::Sender).contains(&"tcp.busy".to_owned()));
    }

    #[test]
    fn pauses_count_unless_they_are_long_or_the_client_measures_latency() {
        let elapsed = |gap: u64, probes: &[u64]| {
            let mut totals = BodyTotals::default();
            probes.iter().for_each(|ms| totals.probe(at(*ms)));
            totals.add(Some(body(0, 100, 1_000_000)));
            totals.add(Some(body(100 + gap, 200 + gap, 1_000_000)));
            let tally = totals.result(Direction::Upload, false).unwrap().tally;
            assert_eq!(tally.bytes, Bytes::new(2_000_000));
            assert_eq!(Some(tally.bitrate), Bitrate::of(tally.bytes, tally.elapsed));
            tally.elapsed
        };
        assert_eq!(elapsed(300, &[]), Span::from_ms(500));
        assert_eq!(elapsed(1_000, &[]), Span::from_ms(1_200));
        assert_eq!(elapsed(1_001, &[]), Span::from_ms(200));
        assert_eq!(elapsed(300, &[250]), Span::from_ms(200));
        assert_eq!(elapsed(300, &[50, 450]), Span::from_ms(500), "latency under load");
    }

    #[test]
    fn a_body_of_which_nothing_came_takes_no_time() {
        let mut totals = BodyTotals::default();
        totals.add(Some(body(0, 900, 0)));
        totals.add(None);
        assert_eq!(totals.result(Direction::Download, false), None);
    }

    #[test]
    fn samples_have_the_mean_of_the_time_in_transit() {
        let mut totals = BodyTotals::default();
        totals.resume(at(1_000));
        let busy = |ms: u64| StreamCounts {
            connection: Some(ConnectionCounts {
                busy: Span::from_ms(ms),
                rwnd_limited: Span::from_ms(ms / 2),
                ..ConnectionCounts::default()
            }),
            ..StreamCounts::default()
        };
        let reading = |bytes: u64, transit: u64, ms: u64| BodyReading {
            sums: BodySums::new(bytes, Span::from_ms(transit), &busy(8), &busy(8 + ms)),
            rtt: Some(Span::from_ms(3)),
            ..body(1_000, 1_100, 0)
        };
        totals.sample(at(1_100), [reading(500, 100, 80), reading(700, 50, 40)].into_iter());
        totals.sample(at(1_105), [reading(501, 105, 81)].into_iter());
        // One of them ends, and a short one comes and goes.
        totals.add(Some(reading(900, 60, 48)));
        totals.add(Some(reading(10, 10, 2)));
        totals.sample(at(1_200), [reading(1_000, 130, 100)].into_iter());
        totals.sample(at(1_250), [reading(1_000, 130, 100), reading(1, 1, 1)].into_iter());
        let result = totals.result(Direction::Download, false).unwrap();
        assert_eq!(result.streams, 2);
        let samples = result.samples;
        let of = |sample: &Sample| {
            let get = |metric| sample.readings.get(metric).map(Span::as_ns);
            (sample.start_ns, sample.end_ns, sample.bytes().get(), get(tcp::BUSY), get(tcp::RWND_LIMITED))
        };
        let rate = samples[0].readings.get(flow::BITRATE).unwrap();
        assert!((rate.bps() - 1_200.0 * 8.0 / 0.1).abs() < 1e-6, "{rate}");
        let ms = |ms: u64| Some(ms * 1_000_000);
        assert_eq!(
            samples.iter().filter(|sample| sample.side == Side::Sender).map(of).collect::<Vec<_>>(),
            [(at(0), at(100), 1_200, ms(80), ms(40)), (at(100), at(200), 710, ms(60), ms(30)),]
        );
    }

    #[test]
    fn many_short_bodies_take_no_memory() {
        let mut totals = BodyTotals::default();
        (0..10_000).for_each(|number| totals.add(Some(body(number * 3, number * 3 + 1, 1))));
        assert_eq!(totals.active.len(), 1);
        // After a long pause, and after one with a probe.
        totals.add(Some(body(32_000, 32_010, 1)));
        totals.probe(at(32_020));
        totals.add(Some(body(32_030, 32_040, 1)));
        assert_eq!(totals.active.len(), 3);
        assert_eq!(totals.elapsed(), Span::from_ms(29_998 + 10 + 10));
    }

    proptest! {
        /// Against the definition: the milliseconds in which a body was in transit, and the pauses of at most a second in
        /// which there was no probe.
        #[test]
        fn short_pauses_count_in_whatever_order_the_bodies_end(
            bodies in prop::collection::vec((0_u64..8_000, 1_u64..400), 1..12),
            probes in prop::collection::vec(0_u64..9_000, 0..6),
        ) {
            let mut totals = BodyTotals::default();
            probes.iter().for_each(|ms| totals.probe(at(*ms)));
            bodies.iter().for_each(|(from, length)| totals.add(Some(body(*from, from + length, 1))));
            let moving: Vec<u64> = (0..9_000)
                .filter(|ms| bodies.iter().any(|(from, length)| (*from..from + length).contains(ms)))
                .collect();
            let pauses = moving.windows(2).map(|pair| (pair[0] + 1, pair[1]));
            let counted = pauses.filter(|(from, until)| {
                until - from <= 1_000 && !probes.iter().any(|ms| (from..until).contains(&ms))
            });
            let expected = moving.len() as u64 + counted.map(|(from, until)| until - from).sum::<u64>();
            prop_assert_eq!(totals.elapsed(), Span::from_ms(expected));
        }

        /// Against the definition: the milliseconds in which at least one body was in transit. Latency is measured all
        /// the time, so no pause counts.
        #[test]
        fn the_time_is_that_of_all_bodies_together(bodies in prop::collection::vec((0_u64..300, 0_u64..40), 1..30)) {
            let mut totals = BodyTotals::default();
            (0..400).for_each(|ms| totals.probe(at(ms)));
            bodies.iter().for_each(|(from, length)| totals.add(Some(body(*from, from + length, 1))));
            let in_transit = |ms: u64| bodies.iter().any(|(from, length)| (*from..from + length).contains(&ms));
            let expected = (0..400).filter(|ms| in_transit(*ms)).count() as u64;
            prop_assert_eq!(totals.result(Direction::Upload, false).unwrap().tally.elapsed, Span::from_ms(expected));
        }
    }
}
