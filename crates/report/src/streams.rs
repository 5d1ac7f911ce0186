//! The streams of a flow: the share of each in what arrived, and its retransmissions.

use linerate_model::{FlowRecord, RunRecord, StreamTally};
use linerate_units::{Bitrate, Ratio};

use crate::layout::{TextLayout, TextRole, wrap};
use crate::quantity::{ABSENT, range};
use crate::table::{Cell, Column, Table};

/// More streams than this are summarized unless all are asked for.
const MAX_LISTED_STREAMS: usize = 16;

/// A row per stream, with a group of columns per flow; a sentence where there are many streams. Nothing for flows
/// of one stream, and for flows whose receiver did not count its streams.
pub(crate) fn lines(record: &RunRecord, view: &TextLayout) -> Vec<String> {
    let several: Vec<&FlowRecord> = record.flows.iter().filter(|flow| received(flow).len() > 1).collect();
    let most = several.iter().map(|flow| received(flow).len()).max().unwrap_or_default();
    match most {
        0 => Vec::new(),
        count if count > MAX_LISTED_STREAMS && !view.all_streams => {
            let lines = several.iter().flat_map(|flow| wrap(&summary(flow), view.columns()));
            lines.map(|line| view.ink(TextRole::Faint, &line)).collect()
        }
        count => table(&several, count).lines(view),
    }
}

/// What the receiver counted of each stream.
fn received(flow: &FlowRecord) -> &[StreamTally] {
    flow.receiver.as_ref().map_or(&[], |tally| tally.streams.as_slice())
}

fn total(streams: &[StreamTally]) -> u64 {
    streams.iter().map(|stream| stream.bytes.get()).fold(0, u64::saturating_add)
}

/// The share of each stream in the bytes of all.
fn shares(flow: &FlowRecord) -> Vec<Ratio> {
    let all = total(received(flow)) as f64;
    received(flow).iter().filter_map(|stream| Ratio::new(stream.bytes.get() as f64 / all)).collect()
}

fn summary(flow: &FlowRecord) -> String {
    let shares = || shares(flow).into_iter().map(Ratio::get);
    let ends = shares().reduce(f64::min).zip(shares().reduce(f64::max));
    let each = ends.map_or_else(
        || "nothing arrived".to_owned(),
        |(least, most)| format!("each has {} of the bytes", range(Some("ratio"), least, most)),
    );
    format!("{}: {} streams, {each} (--all-streams lists them)", flow.plan.name, received(flow).len())
}

fn table(flows: &[&FlowRecord], count: usize) -> Table {
    let numbers = (1..=count).map(|number| Cell::plain(number.to_string())).collect();
    let mut columns = vec![Column::numbers("stream", numbers)];
    for flow in flows {
        let shares = shares(flow);
        let rate = flow.bitrate();
        let cell = |at: usize, text: Option<String>| {
            Cell::plain(if at < received(flow).len() {
                text.unwrap_or_else(|| ABSENT.to_owned())
            } else {
                String::new()
            })
        };
        // Each stream's time is that of the flow, so its rate is its share of the flow's rate.
        let rates = (0..count).map(|at| {
            let part =
                rate.zip(shares.get(at)).and_then(|(all, share)| Bitrate::from_bps(all.bps() * share.get()));
            cell(at, part.map(|rate| rate.to_string()))
        });
        columns.push(Column::named(flow.plan.name.to_string(), rates.collect(), true));
        let shares = (0..count).map(|at| cell(at, shares.get(at).map(Ratio::to_string)));
        columns.push(Column::numbers("share", shares.collect()).of_importance(1));
        let sent = flow.sender.as_ref().map_or(&[][..], |tally| tally.streams.as_slice());
        if sent.iter().any(|stream| stream.retransmits.is_some()) {
            let again = |at: usize| sent.get(at).and_then(|stream| stream.retransmits);
            let again = (0..count).map(|at| cell(at, again(at).map(|count| count.to_string())));
            columns.push(Column::numbers("retr", again.collect()).of_importance(2));
        }
    }
    Table::new(columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples_of_runs as runs;
    use expect_test::expect;
    use linerate_units::Bytes;

    /// Both flows with streams of 1, 2, 3, … MB and as many retransmissions.
    fn run(streams: u64) -> RunRecord {
        let mut record = RunRecord::fold(&runs::tcp_run());
        for flow in &mut record.flows {
            let tally = |retransmits: bool| {
                (1..=streams).map(move |n| StreamTally {
                    bytes: Bytes::new(n * 1_000_000),
                    retransmits: retransmits.then_some(n),
                })
            };
            flow.receiver.as_mut().unwrap().streams = tally(false).collect();
            flow.sender.as_mut().unwrap().streams = tally(true).collect();
        }
        record
    }

    fn page(record: &RunRecord, width: usize, all_streams: bool) -> String {
        lines(record, &TextLayout { width, all_streams, ..TextLayout::default() }).join("\n") + "\n"
    }

    #[test]
    fn each_stream_has_its_share_of_both_directions() {
        // 941.4 Mb/s and 600 Mb/s in the ratio 1 : 3.
        let mut record = run(2);
        for flow in &mut record.flows {
            flow.receiver.as_mut().unwrap().streams[1].bytes = Bytes::new(3_000_000);
        }
        expect![[r#"
            stream     download    share   retr       upload    share   retr
                 1   235.3 Mb/s   25.0 %      1   150.0 Mb/s   25.0 %      1
                 2   706.0 Mb/s   75.0 %      2   450.0 Mb/s   75.0 %      2
        "#]]
        .assert_eq(&page(&record, 100, false));
        assert!(page(&record, 60, false).lines().count() == 3, "one line a stream in a narrow terminal");
    }

    #[test]
    fn many_streams_are_listed_only_when_asked_for() {
        assert_eq!(page(&run(16), 80, false).lines().count(), 17);
        let summary = page(&run(17), 80, false);
        // 1 and 17 of 153 MB.
        assert!(
            summary.starts_with("download: 17 streams, each has 0.7 to 11.1 % of the bytes"),
            "{summary}"
        );
        assert_eq!(page(&run(17), 80, true).lines().count(), 18);
    }

    #[test]
    fn one_stream_needs_no_list() {
        assert_eq!(lines(&run(1), &TextLayout::default()), Vec::<String>::new());
        assert_eq!(
            lines(&RunRecord::fold(&runs::killed_run()), &TextLayout::default()),
            Vec::<String>::new()
        );
    }
}
