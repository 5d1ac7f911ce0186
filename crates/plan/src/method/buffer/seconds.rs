//! The sender's series second by second: window and rate imply an RTT, and the RTT a queue.

use linerate_model::metrics::{Sample, Side, tcp};
use linerate_model::{FlowRecord, MethodCell, MethodRow, MethodTable, Transport};
use linerate_theory::buffer::{BufferInterval, BufferPath, rows};
use linerate_units::Bitrate;

use super::{BufferFlow, column};

const SECOND_NS: u64 = 1_000_000_000;

/// The table of a flow; `None` without samples, and for UDP, which has no window.
pub(super) fn table(view: &BufferFlow<'_>) -> Option<MethodTable> {
    let queue = view.queue.as_ref()?;
    if view.measured.plan.transport == Transport::Udp {
        return None;
    }
    let seconds = seconds(&view.measured);
    if seconds.is_empty() {
        return None;
    }
    let path = queue.path()?;
    let path = BufferPath { others_bps: view.others * path.drain_bps, ..*path };
    let readings: Vec<BufferInterval> = seconds.iter().map(|second| second.reading).collect();
    let row = |(second, implied): (&Second, linerate_theory::buffer::BufferRow)| MethodRow {
        point: Some(view.point.id.clone()),
        cells: vec![
            MethodCell::text(second.label()),
            MethodCell::number(Some(second.reading.goodput_bps)),
            MethodCell::number(second.retransmits.map(|count| count as f64)),
            MethodCell::number(second.reading.cwnd_bytes),
            MethodCell::number(implied.rtt_s.map(|rtt| rtt * 1e9)),
            MethodCell::number(implied.queue_bytes),
            MethodCell::number(second.probe_rtt_s.map(|rtt| rtt * 1e9)),
        ],
    };
    Some(MethodTable {
        title: format!("Second by second: {}", view.label).into(),
        about: "The trial whose goodput is closest to the median. Rate is the acknowledged rate, and cwnd \
                is the sum of the windows at the end of the second. The round trip is the mean window of \
                the second divided by the rate (Little's law), and the queue is its increase times the line \
                rate. The last column is the round trip of probes through the same queue."
            .into(),
        columns: vec![
            column("second", None),
            column("rate", Some("bit/s")),
            column("retransmits", Some("1")),
            column("cwnd", Some("bytes")),
            column("implied round trip", Some("ns")),
            column("queue", Some("bytes")),
            column("probes' largest", Some("ns")),
        ],
        rows: seconds.iter().zip(rows(&readings, &path)).map(row).collect(),
        notes: notes(&seconds).into_iter().map(Into::into).collect(),
    })
}

fn notes(seconds: &[Second]) -> Vec<String> {
    let omitted = seconds.iter().filter(|second| second.omitted).count();
    let text = format!("Rates omit the first {omitted}, marked with *.");
    let jumps = "No round trip is given where the window changed by a factor of more than 1.3 within a \
                 second."
        .to_owned();
    (omitted > 0).then_some(text).into_iter().chain([jumps]).collect()
}

/// One second of a sender.
struct Second {
    number: u64,
    omitted: bool,
    reading: BufferInterval,
    retransmits: Option<u64>,
    probe_rtt_s: Option<f64>,
}

impl Second {
    fn label(&self) -> String {
        let mark = if self.omitted { "*" } else { "" };
        format!("{}-{}{mark}", self.number, self.number + 1)
    }
}

/// Merges a sender's intervals into seconds, by the second in which each of them ends.
fn seconds(flow: &FlowRecord) -> Vec<Second> {
    let samples: Vec<&Sample> = flow.samples_of(Side::Sender).collect();
    let end = samples.iter().rposition(|sample| !sample.outside).map_or(0, |last| last + 1);
    let readings = linerate_theory::buffer::series(flow);
    // A sample that could not be read would shift the others.
    let probes: Vec<Option<f64>> = match readings.len() == end {
        true => readings.iter().map(|reading| reading.probe_rtt_s).collect(),
        false => vec![None; end],
    };
    let joined: Vec<(&Sample, Option<f64>)> = samples[..end].iter().copied().zip(probes).collect();
    let number = |sample: &Sample| sample.end_ns.as_ns().saturating_sub(1) / SECOND_NS;
    joined.chunk_by(|one, other| number(one.0) == number(other.0)).filter_map(second).collect()
}

fn second(samples: &[(&Sample, Option<f64>)]) -> Option<Second> {
    let (first, last) = (samples.first()?.0, samples.last()?.0);
    let acked: Option<Vec<u64>> = samples
        .iter()
        .map(|(sample, _)| sample.readings.get(tcp::BYTES_ACKED).map(linerate_units::Bytes::get))
        .collect();
    let span = last.end_ns - first.start_ns;
    let rate = Bitrate::of(linerate_units::Bytes::new(acked?.iter().sum()), span)?;
    let counts = samples.iter().map(|(sample, _)| sample.readings.get(tcp::RETRANSMITS));
    let retransmits = counts.collect::<Option<Vec<u64>>>().map(|counts| counts.iter().sum());
    Some(Second {
        number: last.end_ns.as_ns().saturating_sub(1) / SECOND_NS,
        omitted: last.outside,
        reading: BufferInterval {
            span_s: span.as_secs_f64(),
            goodput_bps: rate.bps(),
            cwnd_bytes: last.readings.get(tcp::CWND).map(|window| window.get() as f64),
            retransmits: retransmits.unwrap_or(0),
            ..BufferInterval::default()
        },
        retransmits,
        probe_rtt_s: samples.iter().filter_map(|(_, probe)| *probe).max_by(f64::total_cmp),
    })
}
