//! The section of one run: verdict, results, charts, supporting details, origin, raw data.

use linerate_model::metrics::find;
use linerate_model::{Confidence, FlowRecord, LatencyReport, RunRecord, Side};
use linerate_units::{Bitrate, Bytes, Span, Timestamp};
use maud::{Markup, html};

use super::parts::{PageCharts, caveat_list, ending, pairs, plain_table, table};
use super::{provenance, quantiles, series, sizes as curves};
use crate::figure::{FlowFigure, caveats, imported};
use crate::quantity::{ABSENT, in_unit, known_to, or_absent};
use crate::text::{heading, results};
use crate::text_flow::{cause, ceilings, details, plural, steps};
use crate::{intervals, ports, responsiveness, sizes, transactions};

/// Largest number of rows in the table of intervals.
const MAX_ROWS: u64 = 60;
/// Runs with more samples have no table of intervals.
const MAX_SAMPLES: usize = 50_000;

/// Everything about one run except its raw data. If it is `alone` on its page, its parts are named for the contents.
pub(super) fn section(record: &RunRecord, figures: &mut PageCharts, alone: bool) -> Markup {
    let series = sizes::is_series(record);
    let named = |name: &'static str| alone.then_some(name);
    html! {
        div id=[named("verdict")] {
            div.verdicts { @for flow in &record.flows { (verdict(record, flow)) } }
            @if record.flows.is_empty() { p { "No flow was measured." } }
            (ending(record.outcome, record.reason.as_deref()))
            (caveat_list(&record.caveats))
        }
        @if !series && !record.flows.is_empty() {
            div id=[named("results")] { (table(&results(record), results_caption(record))) }
        }
        @for (name, text) in responsiveness::lines(record) {
            p { "Responsiveness under load, " (name) ": " (text) }
        }
        @if series {
            div id=[named("curves")] { @for flow in &record.flows {
                (figures.place(curves::chart(record, flow)))
                (table(&sizes::table(flow), &format!("{}: times are {}", flow.plan.name, sizes::time_words(record))))
            } }
        }
        @let over_time = record.flows.iter().filter_map(|flow| series::chart(record, flow)).collect::<Vec<_>>();
        @if !over_time.is_empty() {
            div id=[named("time")] { @for chart in over_time { (figures.place(Some(chart))) } }
        }
        (figures.place(quantiles::of_transactions(record)))
        @if let Some(rows) = quantiles::table(record) {
            div id=[named("latency")] {
                (figures.place(quantiles::chart(record)))
                (plain_table(&rows, "Latency of probes"))
            }
        }
        (processors(record, named("processors")))
        @if let Some(ports) = ports::table(record) { (table(&ports, "Ports of the emulated network")) }
        div id=[named("evidence").filter(|_| !series)] { (evidence(record, series)) }
        @if record.flows.iter().any(|flow| !flow.samples.is_empty()) {
            div id=[named("intervals")] { (interval_tables(record)) }
        }
        div id=[named("origin")] { (provenance::markup(record)) }
    }
}

fn results_caption(record: &RunRecord) -> &'static str {
    if transactions::are_made(record) {
        "Results, counted at the end that made the requests"
    } else {
        "Results, counted at the receiver"
    }
}

/// Hosts, link, protocol and time.
pub(super) fn title(record: &RunRecord) -> Vec<String> {
    heading(record).into_iter().skip(1).filter(|piece| !piece.is_empty()).collect()
}

/// The verdict on a flow with its result, at the top of the section.
fn verdict(record: &RunRecord, flow: &FlowRecord) -> Markup {
    let made = transactions::of(flow);
    let figure = FlowFigure::of(flow).filter(|_| flow.sizes.is_empty() && made.is_none());
    let impossible = figure.is_some_and(|figure| figure.impossible);
    let confirmed = flow.verdict.as_ref().is_some_and(|verdict| verdict.confidence == Confidence::Confirmed);
    html! {
        div.verdict.confirmed[confirmed && !impossible].bad[impossible] {
            h3 { (flow.plan.name.to_string()) }
            @if let Some(figure) = figure {
                p.figure {
                    @if impossible {
                        s { (or_absent(figure.bitrate)) } " impossible: more than the path can carry, or \
                                                           more than was sent"
                    } @else {
                        strong { (or_absent(figure.bitrate)) }
                        @if let Some(range) = figure.bitrate.and_then(|rate| range(flow, rate)) { span.range { " " (range) } }
                    }
                    @if let (Some(share), Some(ceiling)) = (figure.share, &flow.ceiling) {
                        span.ceiling { " " (share) " of the ceiling: " (ceiling.because.to_string()) }
                    }
                }
            }
            @if made.is_some() { p.figure { strong { (transactions::answer(flow)) } } }
            @if let Some(words) = latency(record, flow) { p.latency { (words) } }
            @match &flow.verdict {
                Some(verdict) => {
                    p.statement { (verdict.text.to_string()) }
                    p.cause { "limited by: " (cause(verdict)) }
                    @if let Some(remedy) = &verdict.remedy { p.remedy { strong { "Remedy: " } (remedy.to_string()) } }
                },
                None if !flow.sizes.is_empty() => { (pairs(&owned(sizes::facts(flow)))) },
                None if transactions::are_made(record) => p.statement { (transactions::description(record).unwrap_or_default()) },
                None if imported(flow) => p.statement { "Not judged: it was not measured here." },
                None => p.statement { "Not judged: the flow ended before there was enough data." },
            }
            @let caveats = caveats(flow);
            // One is read at once; several would push the next flow out of sight.
            @if caveats.len() > 1 {
                details { summary.warn { "⚠ " (plural(caveats.len() as u64, "caveat")) } (caveat_list(&caveats)) }
            } @else {
                (caveat_list(&caveats))
            }
        }
    }
}

/// The range of a rate, in brackets.
fn range(flow: &FlowRecord, rate: Bitrate) -> Option<String> {
    Some(format!("({}", known_to(flow, rate).split_once(" (")?.1))
}

/// Median round-trip times, idle and under load.
fn latency(record: &RunRecord, flow: &FlowRecord) -> Option<String> {
    let median = |report: Option<&LatencyReport>| {
        let report = report.filter(|report| report.rtt.count > 0)?;
        Some(Span::from_ns(report.rtt.p50_ns).to_string())
    };
    let loaded = median(flow.loaded.as_ref())?;
    Some(match median(record.idle.as_ref()) {
        Some(idle) => format!("Round-trip time {idle} idle, {loaded} under load (medians)."),
        None => format!("Round-trip time {loaded} under load (median)."),
    })
}

fn owned(pairs: Vec<(&'static str, String)>) -> Vec<(String, String)> {
    pairs.into_iter().map(|(label, text)| (label.to_owned(), text.to_string())).collect()
}

/// CPU time, and CPU time per gigabyte; absent if not measured.
fn processors(record: &RunRecord, name: Option<&str>) -> Markup {
    let measured: Vec<&FlowRecord> =
        record.flows.iter().filter(|flow| flow.sizes.is_empty() && !imported(flow)).collect();
    let rows = measured.into_iter().flat_map(|flow| {
        let sides = [("sender", flow.sender.as_ref()), ("receiver", flow.receiver.as_ref())];
        sides.into_iter().filter_map(|(side, tally)| {
            let tally = tally?;
            Some(vec![
                format!("{}, {side}", flow.plan.name.to_string()),
                format!("{:.3} s", tally.cpu_seconds),
                per_gigabyte(tally.cpu_seconds, tally.bytes),
                or_absent(tally.host_busy),
            ])
        })
    });
    let heads = ["processors", "CPU time of the program", "per GB", "host busy"];
    let rows: Vec<Vec<String>> = std::iter::once(heads.map(str::to_owned).to_vec()).chain(rows).collect();
    html! { @if rows.len() > 1 { div id=[name] { (plain_table(&rows, "CPU time per gigabyte (10^9 bytes) of payload")) } } }
}

fn per_gigabyte(seconds: f64, bytes: Bytes) -> String {
    if bytes.get() == 0 {
        return ABSENT.to_owned();
    }
    format!("{:.3} s", seconds / (bytes.get() as f64 / 1e9))
}

/// Evidence, ceilings, settings and byte accounting of each flow.
fn evidence(record: &RunRecord, series: bool) -> Markup {
    html! {
        @for flow in record.flows.iter().filter(|_| !series) {
            details open {
                summary { "Evidence and settings: " (flow.plan.name.to_string()) }
                (pairs(&owned(details(flow))))
                @if !flow.ceilings.is_empty() {
                    div.wide { table {
                        caption { "All known limits, smallest first" }
                        thead { tr { th.number scope="col" { "rate" } th scope="col" { "limit" } } }
                        tbody { @for (rate, words) in ceilings(flow) {
                            tr { td.number { (rate) } td { (words.to_string().replace("<-", "←")) } }
                        } }
                    } }
                }
                @if !flow.steps.is_empty() {
                    div.wide { table {
                        caption { "Byte counts from the sending to the receiving program" }
                        thead { tr { th.number scope="col" { "bytes" } th.number scope="col" { "not explained" } th scope="col" { "point" } } }
                        tbody { @for [bytes, off, words] in steps(flow) {
                            tr { td.number { (bytes) } td.number { (off) } td { (words.to_string().replace("<-", "←")) } }
                        } }
                    } }
                }
            }
        }
    }
}

/// The intervals of receiver and sender in at most 60 rows per side.
fn interval_tables(record: &RunRecord) -> Markup {
    html! {
        @for flow in record.flows.iter().filter(|flow| !flow.samples.is_empty()) {
            details {
                summary { "Intervals: " (flow.plan.name.to_string()) }
                @if flow.samples.len() > MAX_SAMPLES {
                    p { (flow.samples.len()) " samples; they are in the event log below, and linerate export --format csv makes a table of them." }
                } @else {
                    (plain_table(&interval_rows(record, flow), "Merged intervals; the sender counts bytes \
                                                                written to the socket"))
                }
            }
        }
    }
}

/// One row per interval and side, one column per metric that the charts show.
fn interval_rows(record: &RunRecord, flow: &FlowRecord) -> Vec<Vec<String>> {
    let end = flow.samples.iter().map(|sample| sample.end_ns.as_ns()).max().unwrap_or_default();
    // Whole multiples of the requested interval, so that no interval is cut.
    let asked = intervals::asked(record).as_ns().max(1);
    let times = end.div_ceil(MAX_ROWS).div_ceil(asked).max(1);
    let merged = intervals::merged(&flow.samples, Span::from_ns(asked.saturating_mul(times)));
    let mut metrics = series::metrics();
    metrics.retain(|metric| merged.iter().any(|sample| sample.readings.named(metric).is_some()));
    let heads = ["side", "seconds"].into_iter().chain(metrics.iter().copied()).chain([""]);
    let heads: Vec<String> = heads.map(str::to_owned).collect();
    let rows = merged.iter().take(4 * MAX_ROWS as usize).map(|sample| {
        let seconds = |at: Timestamp| at.as_ns() as f64 / 1e9;
        let side = if sample.side == Side::Sender { "sender" } else { "receiver" };
        let extent = format!("{:.2}-{:.2}", seconds(sample.start_ns), seconds(sample.end_ns));
        let values = metrics.iter().map(|name| {
            let value = sample.readings.named(name).map(linerate_model::MetricValue::real);
            let unit = find(name).map(|entry| entry.unit);
            value.map_or_else(|| ABSENT.to_owned(), |value| in_unit(unit, value))
        });
        let outside = if sample.outside { "not in the result" } else { "" };
        [side.to_owned(), extent].into_iter().chain(values).chain([outside.to_owned()]).collect()
    });
    std::iter::once(heads).chain(rows).collect()
}
