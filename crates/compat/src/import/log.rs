//! Converts a test of another program to the event log of a run, so that it can be stored, listed and shown
//! like one of ours.
//!
//! The log contains nothing that the program did not report. Every flow has the caveat `imported`.

use std::fmt::Write as _;

use crate::stand_in::FlowId;
use linerate_model::import::{Claim, ClaimScope, ControlEnd, ForeignResult, ForeignTest, Quantity};
use linerate_model::metrics::{flow, loss, tcp};
use linerate_model::{
    Body, Caveat, CaveatKind, Direction, EVENT_SCHEMA, FlowPlan, Outcome, Readings, RunStart, Sample, Side,
    SideSettings, SizePoint, Tally, UdpTally, World,
};
use linerate_units::{Bitrate, Bytes, Ratio, Span, Timestamp};
use sha1::{Digest as _, Sha1};

/// The origin of an imported test.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    /// The file name as given by the user.
    pub file: String,
    /// Time of the file, RFC 3339: used as the start of the run if the test has no time.
    pub file_time: String,
    /// Our version.
    pub linerate: String,
}

/// An id for a test that depends only on its content: 16 hexadecimal digits, the same on every import.
///
/// `twin` counts tests with the same content in one file, from 0.
///
/// # Source
/// SHA-1 (RFC 3174), cut to 64 bits
pub(super) fn name(reading: &ForeignResult, test: &ForeignTest, twin: u32) -> String {
    let mut content = format!(
        "{}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{twin}\n",
        reading.tool, reading.version, test.started_at, test.target, test.written_by, test.error
    );
    for claim in &test.claims {
        let _ = write!(content, "{}", claim.quote);
        for figure in &claim.figures {
            let _ = write!(content, "|{}", figure.printed);
        }
        content.push('\n');
    }
    digits_of(&content)
}

/// The run id for another log: unchanged if it has the form of ours, else 16 hexadecimal digits derived from
/// it, the same on every import.
pub(super) fn run_name(id: &str) -> String {
    let ours = id.len() == 16 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if ours { id.to_owned() } else { digits_of(id) }
}

/// SHA-1, cut to 64 bits, in hexadecimal digits.
fn digits_of(text: &str) -> String {
    let digest = Sha1::digest(text.as_bytes());
    digest.iter().take(8).fold(String::new(), |mut name, byte| {
        let _ = write!(name, "{byte:02x}");
        name
    })
}

/// The events for a test, in order, each with its time from the start of the test.
pub(super) fn bodies(reading: &ForeignResult, test: &ForeignTest, from: &Imported) -> Vec<(Timestamp, Body)> {
    let mut log = vec![(Timestamp::START, Body::RunStarted(Box::new(start(test, from))))];
    if !test.labels.is_empty() {
        log.push((Timestamp::START, Body::Labelled(test.labels.clone())));
    }
    let caveat = Caveat { kind: CaveatKind::Imported, text: origin(reading, test, from).into() };
    let ways = directions(test);
    let mut end = Timestamp::START;
    for (number, way) in (0..).zip(&ways) {
        let mut flow = ImportedFlow { number, test, way: *way, end: Timestamp::START };
        log.push((Timestamp::START, Body::FlowPlanned(flow.plan())));
        log.extend(flow.opened().map(|body| (Timestamp::START, body)));
        log.extend(flow.samples());
        log.extend(flow.sizes().map(|point| (Timestamp::START, Body::Size { flow: FlowId(number), point })));
        for side in [Side::Sender, Side::Receiver] {
            if let Some(tally) = flow.tally(side) {
                flow.end = flow.end.max(Timestamp::START + tally.elapsed);
                log.push((flow.end, Body::FlowEnded { flow: FlowId(number), side, tally }));
            }
        }
        end = end.max(flow.end);
        let caveats = [Some(caveat.clone()), flow.weakness()];
        for caveat in caveats.into_iter().flatten() {
            log.push((flow.end, Body::Caveat { flow: Some(FlowId(number)), caveat }));
        }
    }
    if ways.is_empty() {
        log.push((end, Body::Caveat { flow: None, caveat }));
    }
    let (outcome, reason) = ending(test);
    log.push((end, Body::RunEnded { outcome, reason: reason.map(Into::into) }));
    log
}

fn start(test: &ForeignTest, from: &Imported) -> RunStart {
    let mut spec = test.spec.clone();
    // The table of intervals shows those of the file.
    let interval = test.claims.iter().find(|claim| claim.scope == ClaimScope::Interval).and_then(length);
    if let Some(interval) = interval.filter(|interval| *interval > Span::ZERO) {
        spec.traffic.interval = interval;
    }
    RunStart {
        schema: EVENT_SCHEMA.into(),
        started_at: test.started_at.clone().unwrap_or_else(|| from.file_time.clone().into()),
        world: World::Hosts,
        linerate: from.linerate.clone().into(),
        target: test.target.clone().unwrap_or_else(|| "not told".into()),
        spec,
    }
}

fn origin(reading: &ForeignResult, test: &ForeignTest, from: &Imported) -> String {
    let version = reading.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
    let line = test.claims.first().map(|claim| format!(", line {}", claim.line)).unwrap_or_default();
    let end = match test.written_by {
        Some(ControlEnd::Client) => " written by its client",
        Some(ControlEnd::Server) => " written by its server",
        None => "",
    };
    let time =
        if test.started_at.is_none() { "; it contains no date, so the date of the file is used" } else { "" };
    format!(
        "imported from a result of {}{version}{end} ({}{line}): linerate neither measured nor checked these \
         figures{time}",
        reading.tool, from.file
    )
}

fn ending(test: &ForeignTest) -> (Outcome, Option<String>) {
    if let Some(error) = &test.error {
        return (Outcome::Failed, Some(error.to_string()));
    }
    if test.claims.iter().any(|claim| claim.scope != ClaimScope::Interval) {
        return (Outcome::Completed, None);
    }
    (Outcome::Interrupted, Some("the file has no summary of this test".to_owned()))
}

/// The directions with a bitrate, in the order of the file; absent for claims without a direction.
fn directions(test: &ForeignTest) -> Vec<Option<Direction>> {
    let mut ways = Vec::new();
    for claim in test.claims.iter().filter(|claim| claim.figure(Quantity::Bitrate).is_some()) {
        if !ways.contains(&claim.direction) {
            ways.push(claim.direction);
        }
    }
    // A sum over both directions is not a direction.
    if ways.len() > 1 {
        ways.retain(Option::is_some);
    }
    ways
}

fn length(claim: &Claim) -> Option<Span> {
    match (claim.start, claim.end) {
        (Some(start), Some(end)) => Some(end.saturating_sub(start)),
        _ => Span::from_secs_f64(claim.figure(Quantity::Seconds)?.value),
    }
}

/// One direction of a test.
struct ImportedFlow<'a> {
    number: u16,
    test: &'a ForeignTest,
    way: Option<Direction>,
    end: Timestamp,
}

impl<'a> ImportedFlow<'a> {
    fn direction(&self) -> Direction {
        self.way.unwrap_or(Direction::Upload)
    }

    fn plan(&self) -> FlowPlan {
        let test = self.test;
        let other = test.target.clone();
        let (client, server) = match test.written_by {
            Some(ControlEnd::Server) => (other.unwrap_or_else(|| "client".into()), "server".into()),
            _ => ("client".into(), other.unwrap_or_else(|| "server".into())),
        };
        let direction = self.direction();
        let (from, to) = match direction {
            Direction::Upload => (client, server),
            Direction::Download => (server, client),
        };
        let name = self.way.map_or("not told", Direction::name).to_owned();
        FlowPlan {
            flow: FlowId(self.number),
            name: name.into(),
            from,
            to,
            transport: test.spec.traffic.transport(),
            direction,
            streams: test.spec.traffic.streams.max(self.streams()),
        }
    }

    /// Number of streams that a summary names.
    fn streams(&self) -> u32 {
        let ids: std::collections::BTreeSet<u32> =
            self.claims(ClaimScope::Total).filter_map(|claim| claim.stream).collect();
        (ids.len() as u32).max(1)
    }

    fn claims(&self, scope: ClaimScope) -> impl Iterator<Item = &'a Claim> {
        let way = self.way;
        self.test.claims.iter().filter(move |claim| claim.direction == way && claim.scope == scope)
    }

    /// The side that counted a claim: as in the file, or else the receiver.
    fn side(claim: &Claim) -> Side {
        claim.side.unwrap_or(Side::Receiver)
    }

    /// The socket settings of the end that wrote the file.
    fn opened(&self) -> Option<Body> {
        let length = self.test.spec.traffic.length?;
        let client = self.test.written_by? == ControlEnd::Client;
        let side =
            if client == (self.direction() == Direction::Upload) { Side::Sender } else { Side::Receiver };
        let settings = SideSettings::reported(&self.test.spec.socket, length, &self.test.effective);
        Some(Body::FlowOpened { flow: FlowId(self.number), side, settings })
    }

    /// The intervals; those of the sum if the file has one.
    fn samples(&mut self) -> Vec<(Timestamp, Body)> {
        let summed = self.claims(ClaimScope::Interval).any(|claim| claim.stream.is_none());
        let mut log = Vec::new();
        let (mut reached, mut received) = (Timestamp::START, 0_u64);
        let number = self.number;
        let intervals: Vec<&Claim> = self.claims(ClaimScope::Interval).collect();
        let several = !summed && intervals.iter().any(|claim| claim.stream != intervals[0].stream);
        for claim in intervals {
            // Several streams without a sum cannot be reported as intervals of a flow.
            if several || (summed && claim.stream.is_some()) {
                continue;
            }
            let (Some(span), Some(bytes)) = (length(claim), claim.figure(Quantity::Bytes)) else { continue };
            let start_ns = claim.start.map_or(reached, |start| Timestamp::START + start);
            let end_ns = start_ns + span;
            reached = end_ns;
            self.end = self.end.max(end_ns);
            let side = Self::side(claim);
            let sample = Sample { side, start_ns, end_ns, outside: claim.omitted, readings: readings(claim) };
            log.push((end_ns, Body::Sample { flow: FlowId(number), sample }));
            if side == Side::Receiver && !claim.omitted {
                received = received.saturating_add(bytes.value as u64);
                let (bytes, elapsed) = (Bytes::new(received), end_ns.since(Timestamp::START));
                log.push((
                    end_ns,
                    Body::Progress { flow: FlowId(number), bytes, elapsed, srtt: None, retransmits: None },
                ));
            }
        }
        log
    }

    /// The claims of one side about the whole test: the sum, or all streams.
    fn whole(&self, side: Side) -> Vec<&'a Claim> {
        let mine = |claim: &&Claim| Self::side(claim) == side;
        let all: Vec<&Claim> = self.claims(ClaimScope::Total).filter(mine).collect();
        let summed =
            all.iter().any(|claim| claim.stream.is_none() && claim.figure(Quantity::Bytes).is_some());
        all.into_iter().filter(|claim| !summed || claim.stream.is_none()).collect()
    }

    fn tally(&self, side: Side) -> Option<Tally> {
        let claims = self.whole(side);
        if claims.is_empty() {
            return None;
        }
        let rated: Vec<&&Claim> =
            claims.iter().filter(|claim| claim.figure(Quantity::Bitrate).is_some()).collect();
        let sum = |quantity| {
            let values: Vec<f64> =
                claims.iter().filter_map(|claim| claim.figure(quantity)).map(|figure| figure.value).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>())
        };
        let bitrate: f64 = rated.iter().filter_map(|c| c.figure(Quantity::Bitrate)).map(|f| f.value).sum();
        let elapsed = rated
            .iter()
            .filter_map(|claim| length(claim))
            .max()
            .or_else(|| claims.iter().filter_map(|claim| length(claim)).max());
        let (Some(bytes), false) = (sum(Quantity::Bytes), rated.is_empty()) else { return None };
        let bytes = Bytes::new(bytes as u64);
        Some(Tally {
            bytes,
            total_bytes: bytes,
            elapsed: elapsed.unwrap_or_default(),
            bitrate: Bitrate::from_bps(bitrate).unwrap_or_default(),
            retransmits: sum(Quantity::Retransmits).map(|count| count as u64),
            udp: self.udp(side, &sum),
            host_busy: self.busy(side),
            complete: true,
            ..Tally::default()
        })
    }

    fn udp(&self, side: Side, sum: &dyn Fn(Quantity) -> Option<f64>) -> Option<UdpTally> {
        let packets = sum(Quantity::Packets)? as u64;
        let lost = sum(Quantity::Lost);
        // The receiver's line counts the expected datagrams, including lost ones.
        let arrived = packets.saturating_sub(lost.unwrap_or(0.0) as u64);
        if side == Side::Receiver && lost.is_none() {
            return None;
        }
        let jitters: Vec<f64> = self
            .whole(side)
            .iter()
            .filter_map(|claim| claim.figure(Quantity::Jitter))
            .map(|figure| figure.value)
            .collect();
        let mean = (!jitters.is_empty()).then(|| jitters.iter().sum::<f64>() / jitters.len() as f64);
        Some(UdpTally {
            packets: if side == Side::Receiver { arrived } else { packets },
            lost: lost.unwrap_or(0.0) as u64,
            out_of_order: sum(Quantity::OutOfOrder).unwrap_or(0.0) as u64,
            jitter: mean.and_then(Span::from_secs_f64),
            ..UdpTally::default()
        })
    }

    fn busy(&self, side: Side) -> Option<Ratio> {
        let client = self.test.written_by.map(|end| end == ControlEnd::Client);
        let local = client.map(|client| client == (self.direction() == Direction::Upload))
            == Some(side == Side::Sender);
        let by_side = if side == Side::Sender { Quantity::CpuSender } else { Quantity::CpuReceiver };
        let by_end = if local { Quantity::CpuLocal } else { Quantity::CpuRemote };
        let find = |quantity| self.test.claims.iter().find_map(|claim| claim.figure(quantity));
        let share = find(by_side).or_else(|| client.and_then(|_| find(by_end)))?;
        // A share of more than one core cannot be stored.
        Ratio::new(share.value).filter(|share| share.get() <= 1.0)
    }

    /// The points of a sweep over message sizes. Each has only its best time, because NetPIPE reports no other.
    fn sizes(&self) -> impl Iterator<Item = SizePoint> {
        self.claims(ClaimScope::Size).filter_map(|claim| {
            let value = |quantity| claim.figure(quantity).map(|figure| figure.value);
            Some(SizePoint {
                message_bytes: Bytes::new(value(Quantity::MessageSize)? as u64),
                trials: None,
                repeats: None,
                best: Span::from_secs_f64(value(Quantity::OneWay)?)?,
                median: None,
                interval: None,
                bitrate: value(Quantity::Bitrate).and_then(Bitrate::from_bps),
                buffered: false,
            })
        })
    }

    /// The caveat if the figures of this flow are worth less than those of a measurement.
    fn weakness(&self) -> Option<Caveat> {
        let text = if self.whole(Side::Receiver).is_empty() && !self.whole(Side::Sender).is_empty() {
            "the file has only the sender's count, so the received amount is not known".to_owned()
        } else if self.whole(Side::Receiver).iter().any(|claim| claim.side.is_none()) {
            "the file does not state which end counted; it is treated as the receiver's count".to_owned()
        } else {
            return None;
        };
        Some(Caveat { kind: CaveatKind::Partial, text: text.into() })
    }
}

/// The figures of an interval, as our metrics.
fn readings(claim: &Claim) -> Readings {
    let mut readings = Readings::default();
    let value = |quantity| claim.figure(quantity).map(|figure| figure.value);
    let bytes = |quantity| value(quantity).map(|bytes| Bytes::new(bytes as u64));
    let count = |quantity| value(quantity).map(|count| count as u64);
    let span = |quantity| value(quantity).and_then(Span::from_secs_f64);
    readings.put_some(flow::BYTES, bytes(Quantity::Bytes));
    readings.put_some(flow::BITRATE, value(Quantity::Bitrate).and_then(Bitrate::from_bps));
    readings.put_some(flow::CALLS, count(Quantity::Calls));
    readings.put_some(tcp::RETRANSMITS, count(Quantity::Retransmits));
    readings.put_some(tcp::CWND, bytes(Quantity::CongestionWindow));
    readings.put_some(tcp::SRTT, span(Quantity::RoundTrip));
    readings.put_some(tcp::RTTVAR, span(Quantity::RoundTripVariation));
    readings.put_some(tcp::PMTU, bytes(Quantity::Mtu));
    readings.put_some(loss::PACKETS, count(Quantity::Packets));
    readings.put_some(loss::LOST, count(Quantity::Lost));
    readings.put_some(loss::LOSS_RATIO, value(Quantity::LossRatio).and_then(Ratio::new));
    readings.put_some(loss::OUT_OF_ORDER, count(Quantity::OutOfOrder));
    readings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::read;
    use linerate_model::{Event, RunRecord};

    fn record(file: &str) -> RunRecord {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/results");
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        let reading = read(&text, None).unwrap().remove(0);
        let from =
            Imported { file: file.into(), file_time: "2026-01-01T00:00:00Z".into(), linerate: "9".into() };
        let bodies = bodies(&reading, &reading.tests[0], &from);
        let event = |(seq, (at, body))| Event { run: "r".into(), host: 0, seq, at, body };
        let events: Vec<Event> = (0..).zip(bodies).map(event).collect();
        assert!(events.windows(2).all(|pair| pair[0].at <= pair[1].at || pair[1].at == Timestamp::START));
        RunRecord::fold(&events)
    }

    #[test]
    fn a_run_has_the_totals_of_the_file_by_direction_and_side() {
        let record = record("iperf3/v321-tcp-bidir-P2.json");
        let names: Vec<&str> = record.flows.iter().map(|flow| flow.plan.name.as_str()).collect();
        assert_eq!(names, ["upload", "download"]);
        let download = &record.flows[1];
        assert_eq!(download.plan.streams, 2);
        assert_eq!(download.receiver.as_ref().unwrap().bytes.get(), 50_069_504);
        assert_eq!(download.sender.as_ref().unwrap().retransmits, Some(0));
        // Two intervals of the sum, without those of each stream.
        assert_eq!(download.samples.len(), 2);
        assert_eq!(download.samples[0].bytes().get(), 25_165_824);
        assert_eq!(record.outcome, Some(Outcome::Completed));
        assert_eq!(record.start.as_ref().unwrap().started_at, "2026-11-21T19:05:56Z");
        let kinds: Vec<_> = download.caveats.iter().map(|caveat| caveat.kind).collect();
        assert_eq!(kinds, [CaveatKind::Imported]);
    }

    #[test]
    fn a_series_has_every_size_and_no_total() {
        let record = record("netpipe/v372.out");
        let flow = &record.flows[0];
        assert_eq!((flow.sizes.len(), flow.receiver.is_none(), flow.sender.is_none()), (22, true, true));
        // Its first line: one byte, 3.720930 "Mbps" of 2^20 bits, and 2.05 us.
        let first = &flow.sizes[0];
        assert_eq!((first.message_bytes.get(), first.best, first.trials), (1, Span::from_ns(2050), None));
        assert!((first.bitrate.unwrap().bps() - 3.720_930 * 1_048_576.0).abs() < 1.0);
    }

    #[test]
    fn the_receiver_of_datagrams_counts_those_that_came() {
        let record = record("iperf3/v321-udp-loss.json");
        let receiver = record.flows[0].receiver.as_ref().unwrap();
        let udp = receiver.udp.as_ref().unwrap();
        // 2002 were sent, 80 of them lost.
        assert_eq!((udp.packets, udp.lost), (1922, 80));
        assert_eq!(record.flows[0].sender.as_ref().unwrap().udp.as_ref().unwrap().packets, 2002);
    }

    #[test]
    fn what_only_a_sender_reports_is_no_result() {
        let record = record("ttcp/pcattcp-transmit.txt");
        let flow = &record.flows[0];
        assert_eq!((flow.bitrate(), flow.sender.as_ref().unwrap().bytes.get()), (None, 16_777_216));
        assert!(flow.caveats.iter().any(|caveat| caveat.text.contains("the received amount is not known")));
        assert_eq!(record.start.as_ref().unwrap().started_at, "2026-01-01T00:00:00Z");
    }

    #[test]
    fn an_error_is_a_failed_run() {
        let failed = record("iperf3/v321-busy.json");
        assert_eq!((failed.flows.len(), failed.outcome), (0, Some(Outcome::Failed)));
        assert!(failed.reason.unwrap().contains("busy"));
        assert_eq!(failed.caveats[0].kind, CaveatKind::Imported);
    }

    #[test]
    fn the_largest_rate_of_a_series_is_its_headline() {
        let record = record("netpipe/np-bidir.out");
        let flow = &record.flows[0];
        // The maximum of the second column.
        assert_eq!(flow.bitrate(), Bitrate::from_bps(187.976_136 * 1_048_576.0));
        assert_eq!(flow.sizes.len(), 23);
    }
}
