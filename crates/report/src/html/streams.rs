//! The streams of a flow over time, as a heat map: whether they share the path equally, and which of them stall.

use linerate_model::FlowRecord;
use linerate_units::Timestamp;

use super::chart::{ChartAxis, HeatCells, Hue, Panel, Rounded};
use crate::live::LiveStreams;

/// The panel of the streams; absent for a single one, and without two counts.
pub(super) fn panel(flow: &FlowRecord) -> Option<Panel> {
    let (first, counts) = (flow.first_read?, flow.streams.first()?);
    let mut streams = LiveStreams::default();
    // A sender's counts may be earlier than the first read at the other end of a long path.
    let at = |at: Timestamp| (at.as_ns() as f64 - first.as_ns() as f64) / 1e9;
    if counts.at > first {
        streams.push(0.0, vec![0; counts.bytes.len()]);
    }
    for progress in &flow.streams {
        streams.push(at(progress.at), progress.bytes.iter().map(|bytes| bytes.get()).collect());
    }
    let round = |column: Vec<f64>| column.into_iter().map(three_digits).collect();
    let columns: Vec<Vec<Rounded>> = streams.bitrates().map(round).collect();
    let rows = columns.first()?.len();
    let cells = HeatCells {
        label: format!("bit rate of each stream, {}", counts.counted.words()),
        unit: "bit/s",
        hue: Hue::from(flow.plan.direction),
        x: streams.at_seconds.iter().copied().map(Rounded).collect(),
        columns,
    };
    let y = ChartAxis::linear(format!("{rows} streams"), "1");
    Some(Panel { cells: Some(cells), ..Panel::of_lines(y, Vec::new()) })
}

/// A colour shows no more digits.
fn three_digits(value: f64) -> Rounded {
    Rounded(format!("{value:.2e}").parse().unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples_of_runs as runs;
    use linerate_model::{Direction, RunRecord, StreamCounting, StreamProgress, Transport};
    use linerate_units::{Bytes, Span};

    fn record(first_read: u64, counts: &[(u64, [u64; 2])]) -> RunRecord {
        let planned = runs::planned(0, Direction::Upload, Transport::Udp);
        let mut record = RunRecord::fold(&runs::log(vec![planned]));
        let at = |ms| Timestamp::START + Span::from_ms(ms);
        let flow = &mut record.flows[0];
        flow.first_read = Some(at(first_read));
        flow.streams = counts
            .iter()
            .map(|(ms, bytes)| StreamProgress {
                at: at(*ms),
                counted: StreamCounting::Sent,
                bytes: bytes.map(Bytes::new).to_vec(),
            })
            .collect();
        record
    }

    fn cells(record: &RunRecord) -> HeatCells {
        panel(&record.flows[0]).unwrap().cells.unwrap()
    }

    #[test]
    fn each_stream_has_a_row_and_each_two_counts_a_column_from_the_first_byte_on() {
        let cells = cells(&record(1000, &[(1250, [1000, 0]), (1500, [1000, 500]), (2000, [2000, 500])]));
        assert_eq!(cells.x, [0.0, 0.25, 0.5, 1.0].map(Rounded));
        let expected = [[32_000.0, 0.0], [0.0, 16_000.0], [16_000.0, 0.0]];
        assert_eq!(cells.columns, expected.map(|column| column.map(Rounded).to_vec()));
        assert_eq!(cells.label, "bit rate of each stream, sent");
    }

    #[test]
    fn counts_of_a_sender_before_the_first_read_are_at_their_own_times() {
        let cells = cells(&record(600, &[(250, [1000, 0]), (500, [2000, 0]), (750, [3000, 0])]));
        assert_eq!(cells.x, [-0.35, -0.1, 0.15].map(Rounded));
        for column in &cells.columns {
            assert_eq!(column[0], Rounded(32_000.0));
        }
    }

    #[test]
    fn a_flow_that_moved_nothing_or_has_one_stream_has_no_panel() {
        assert!(panel(&RunRecord::fold(&runs::tcp_run()).flows[0]).is_none());
        assert!(panel(&record(0, &[]).flows[0]).is_none());
    }
}
