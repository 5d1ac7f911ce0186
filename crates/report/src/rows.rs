//! One row per interval while a test runs, for logs and for `-i`.

use std::collections::BTreeMap;

use linerate_model::flow::FlowId;
use linerate_model::metrics::{flow as flow_metrics, tcp};
use linerate_model::{Body, Event, Sample, Side};
use linerate_units::{Bitrate, Bytes, Span};

use crate::quantity::or_absent;
use crate::transactions;

/// Turns events into rows, one per flow and interval.
///
/// Transfer and bit rate are the receiver's, between two of its counts. The sender's retransmissions,
/// congestion window and RTT are added as far as they are known at that time.
#[derive(Debug, Clone)]
pub struct IntervalRows {
    interval: Span,
    /// Bytes of a request, in a test that makes transactions.
    request: Option<Bytes>,
    flows: BTreeMap<FlowId, FlowState>,
    headed: bool,
}

#[derive(Debug, Clone, Default)]
struct FlowState {
    name: String,
    printed: RowCounts,
    last: RowCounts,
    srtt: Option<Span>,
    cwnd: Option<Bytes>,
    times: RowTimes,
}

/// The times of the transactions since the last row.
#[derive(Debug, Clone, Copy, Default)]
struct RowTimes {
    /// Sum of the medians of the samples, ns, and their number.
    medians: (u64, u64),
    /// Largest 99th percentile of a sample.
    high: Option<Span>,
}

impl RowTimes {
    fn note(&mut self, sample: &Sample) {
        if let Some(median) = sample.readings.get(flow_metrics::TRANSACTION_P50) {
            self.medians = (self.medians.0.saturating_add(median.as_ns()), self.medians.1 + 1);
        }
        self.high = self.high.max(sample.readings.get(flow_metrics::TRANSACTION_P99));
    }

    /// Mean of the medians, and the largest 99th percentile.
    fn take(&mut self) -> (Option<Span>, Option<Span>) {
        let Self { medians: (sum, count), high } = std::mem::take(self);
        (sum.checked_div(count).map(Span::from_ns), high)
    }
}

/// Counts at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct RowCounts {
    bytes: Bytes,
    elapsed: Span,
    retransmits: Option<u64>,
}

impl Default for IntervalRows {
    fn default() -> Self {
        Self::new(Span::from_secs(1))
    }
}

impl IntervalRows {
    /// Rows every `interval`, unless the specification in the log has another interval.
    #[must_use]
    pub const fn new(interval: Span) -> Self {
        Self { interval, request: None, flows: BTreeMap::new(), headed: false }
    }

    /// Processes an event and returns the completed lines, without line ends.
    pub fn on(&mut self, event: &Event) -> Vec<String> {
        match &event.body {
            Body::RunStarted(start) => {
                self.interval = start.spec.traffic.interval;
                self.request = transactions::request_length(&start.spec);
            }
            Body::FlowPlanned(plan) => {
                let state = FlowState { name: plan.name.to_string(), ..FlowState::default() };
                self.flows.insert(plan.flow, state);
            }
            Body::Sample { flow, sample } if sample.side == Side::Sender => {
                if let Some(state) = self.flows.get_mut(flow) {
                    state.cwnd = sample.readings.get(tcp::CWND).or(state.cwnd);
                    state.srtt = sample.readings.get(tcp::SRTT).or(state.srtt);
                    state.times.note(sample);
                }
            }
            Body::Progress { flow, bytes, elapsed, srtt, retransmits } => {
                let interval = self.interval;
                let Some(state) = self.flows.get_mut(flow) else { return Vec::new() };
                state.srtt = srtt.or(state.srtt);
                state.last = RowCounts { bytes: *bytes, elapsed: *elapsed, retransmits: *retransmits };
                if due(*elapsed, interval) > due(state.printed.elapsed, interval) {
                    return self.row(*flow);
                }
            }
            Body::FlowEnded { flow, side: Side::Receiver, tally } => {
                // What came after the last report. With an omitted part both count from another moment.
                if let Some(state) = self.flows.get_mut(flow).filter(|_| tally.omitted_bytes.get() == 0) {
                    state.last.bytes = state.last.bytes.max(tally.bytes);
                    state.last.elapsed = state.last.elapsed.max(tally.elapsed);
                }
                return self.row(*flow);
            }
            _ => {}
        }
        Vec::new()
    }

    /// The row from the last printed count until now; empty if no time has passed.
    fn row(&mut self, flow: FlowId) -> Vec<String> {
        let Some(state) = self.flows.get_mut(&flow) else { return Vec::new() };
        let (from, to) = (state.printed, state.last);
        let span = to.elapsed.saturating_sub(from.elapsed);
        if span == Span::ZERO {
            return Vec::new();
        }
        state.printed = to;
        let bytes = Bytes::new(to.bytes.get().saturating_sub(from.bytes.get()));
        if let Some(request) = self.request {
            let whole = |bytes: Bytes| bytes.get() / request.get().max(1);
            let made = whole(to.bytes).saturating_sub(whole(from.bytes));
            let rate = made as f64 / span.as_secs_f64();
            let (median, high) = state.times.take();
            let row = line(&[
                &state.name,
                &format!("{:.2}-{:.2}", from.elapsed.as_secs_f64(), to.elapsed.as_secs_f64()),
                &made.to_string(),
                &transactions::per_second(rate),
                &or_absent(
                    to.retransmits.map(|now| now.saturating_sub(from.retransmits.unwrap_or_default())),
                ),
                &or_absent(median),
                &or_absent(high),
            ]);
            return self.with_head(&["flow", "seconds", "transactions", "rate", "retr", "p50", "p99"], row);
        }
        let retransmits = to.retransmits.map(|now| now.saturating_sub(from.retransmits.unwrap_or_default()));
        let row = line(&[
            &state.name,
            &format!("{:.2}-{:.2}", from.elapsed.as_secs_f64(), to.elapsed.as_secs_f64()),
            &bytes.to_string(),
            &or_absent(Bitrate::of(bytes, span)),
            &or_absent(retransmits),
            &or_absent(state.cwnd),
            &or_absent(state.srtt),
        ]);
        self.with_head(&["flow", "seconds", "received", "bitrate", "retr", "cwnd", "rtt"], row)
    }

    /// The row, after the heads of the columns if it is the first.
    fn with_head(&mut self, heads: &[&str; 7], row: String) -> Vec<String> {
        let head = (!self.headed).then(|| line(heads));
        self.headed = true;
        head.into_iter().chain([row]).collect()
    }
}

/// Number of rows due after `elapsed`. A count that arrives up to 5 % of an interval early completes a row.
fn due(elapsed: Span, interval: Span) -> u64 {
    let interval = interval.as_ns().max(1);
    elapsed.as_ns().saturating_add(interval / 20) / interval
}

fn line(cells: &[&str; 7]) -> String {
    let [flow, seconds, received, bitrate, retr, cwnd, rtt] = cells;
    format!("{flow:<10} {seconds:>15} {received:>12} {bitrate:>12} {retr:>7} {cwnd:>11} {rtt:>9}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples_of_runs as runs;
    use expect_test::{Expect, expect};
    use linerate_model::{Direction, TestSpec, Transport};

    fn check(bodies: Vec<(u16, Body)>, expected: &Expect) {
        let mut rows = IntervalRows::default();
        let lines: Vec<String> = runs::log(bodies).iter().flat_map(|event| rows.on(event)).collect();
        expected.assert_eq(&lines.join("\n"));
    }

    #[test]
    fn a_row_for_each_second_and_one_for_the_rest() {
        let mut bodies = runs::opening(TestSpec::default());
        bodies.push(runs::planned(0, Direction::Download, Transport::Tcp));
        bodies.push(runs::sample(0, Side::Sender, 0, 500, 1));
        // 12.5 kB/ms are 100 Mb/s. One count is 10 ms early, one 200 ms late, and one occurs twice.
        for (ms, retr) in [(500, 0), (990, 2), (1500, 2), (2200, 5), (2200, 5), (2500, 6)] {
            bodies.push(runs::progress(FlowId(0), ms, ms * 12_500, retr));
        }
        // What came after the last report is in the last row.
        let (elapsed, bytes) = (Span::from_ms(2750), Bytes::new(2750 * 12_500));
        let whole = linerate_model::Tally { elapsed, bytes, ..runs::tally(1e8) };
        bodies.push(runs::ended(FlowId(0), Side::Receiver, whole));
        check(
            bodies,
            &expect![[r#"
            flow               seconds     received      bitrate    retr        cwnd       rtt
            download         0.00-0.99    11.80 MiB   100.0 Mb/s       2  488.28 KiB      4 ms
            download         0.99-2.20    14.42 MiB   100.0 Mb/s       3  488.28 KiB      4 ms
            download         2.20-2.75     6.56 MiB   100.0 Mb/s       1  488.28 KiB      4 ms"#]],
        );
    }

    #[test]
    fn two_simultaneous_flows_are_distinguished_by_name() {
        let mut bodies = runs::opening(TestSpec::default());
        bodies.push(runs::planned(0, Direction::Upload, Transport::Tcp));
        bodies.push(runs::planned(1, Direction::Download, Transport::Tcp));
        bodies.push(runs::progress(FlowId(0), 1000, 1_000_000, 0));
        bodies.push(runs::progress(FlowId(1), 1000, 2_000_000, 0));
        bodies.push(runs::progress(FlowId(9), 1000, 2_000_000, 0));
        check(
            bodies,
            &expect![[r#"
            flow               seconds     received      bitrate    retr        cwnd       rtt
            upload           0.00-1.00   976.56 KiB   8.000 Mb/s       0           -      4 ms
            download         0.00-1.00     1.91 MiB   16.00 Mb/s       0           -      4 ms"#]],
        );
    }
}
