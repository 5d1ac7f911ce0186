//! Details of one flow below its results: the verdict with its evidence, the ceiling, the settings.

use linerate_model::{
    AccountingStep, Confidence, Contribution, Finding, FlowRecord, FollowUp, SideSettings, Transport,
    Uncertainty,
};
use linerate_units::{Bitrate, Bytes, Ratio, Span};

use crate::figure::{FlowFigure, imported};
use crate::layout::{TextLayout, TextRole, wrap};
use crate::quantity::{ABSENT, named, or_absent, percent};
use crate::text::{LABEL_WIDTH, labelled};

/// Columns of the second label, such as `settings`.
const INNER_LABEL_WIDTH: usize = 10;

/// The verdict on a flow, with its cause and remedy.
pub(crate) fn verdict(flow: &FlowRecord, view: &TextLayout) -> Vec<String> {
    let verdict = match &flow.verdict {
        Some(verdict) => verdict.text.as_str(),
        None if imported(flow) => "not judged: it was not measured here.",
        None => "not judged: the flow ended before there was enough data.",
    };
    let mut lines = labelled(&flow.plan.name, verdict, ink_of(flow), view);
    for (label, text) in verdict_details(flow) {
        lines.extend(detail(label, &text, view));
    }
    lines
}

/// What the verdicts rest on: numbers, ceilings and settings of each flow. Settings that all flows share are
/// listed once.
pub(crate) fn evidence_lines(flows: &[FlowRecord], view: &TextLayout) -> Vec<String> {
    let mut each = flows.iter().map(settings);
    let shared = each.next().flatten().filter(|first| each.all(|other| other.as_ref() == Some(first)));
    let shared = shared.filter(|_| flows.len() > 1);
    let mut lines = Vec::new();
    for flow in flows {
        let mut details = evidence_details(flow, view.explain);
        details.extend(settings(flow).filter(|_| shared.is_none()).map(|text| ("settings", text)));
        let mut own: Vec<String> =
            details.iter().flat_map(|(label, text)| detail(label, text, view)).collect();
        if view.explain {
            own.extend(ceiling_lines(flow, view));
            own.extend(budget(flow).into_iter().flat_map(|text| detail("budget", &text, view)));
            own.extend(step_lines(flow, view));
        }
        lines.extend(with_name(&flow.plan.name, own));
    }
    let shared = shared.into_iter().flat_map(|text| detail("settings", &text, view)).collect();
    lines.extend(with_name(if flows.len() == 2 { "both" } else { "all" }, shared));
    lines
}

/// Puts a name in front of the first line, into its indentation.
fn with_name(name: &str, mut lines: Vec<String>) -> Vec<String> {
    if let Some(first) = lines.first_mut() {
        let name: String = name.chars().take(LABEL_WIDTH - 1).collect();
        *first = format!("  {name:<LABEL_WIDTH$}{}", first.trim_start());
    }
    lines
}

/// Whether the rate of the steady part is within the interval of the whole flow, which the table shows.
fn table_says_steady(flow: &FlowRecord) -> bool {
    let within = flow.bitrate().and_then(|rate| flow.uncertainty.as_ref()?.around(rate));
    within
        .zip(flow.steady)
        .is_some_and(|(within, steady)| (within.low()..=within.high()).contains(&steady.bitrate))
}

fn ink_of(flow: &FlowRecord) -> TextRole {
    match &flow.verdict {
        Some(_) if is_impossible(flow) => TextRole::Warning,
        Some(verdict) if verdict.confidence == Confidence::Confirmed => TextRole::Good,
        _ => TextRole::Plain,
    }
}

/// Everything below the verdict, as label and text, in reading order.
pub(crate) fn details(flow: &FlowRecord) -> Vec<(&'static str, String)> {
    let mut details = verdict_details(flow);
    details.extend(evidence_details(flow, true));
    details.extend(settings(flow).map(|text| ("settings", text)));
    details
}

/// What belongs to the verdict itself: the cause, what to do about it, and what else was found.
fn verdict_details(flow: &FlowRecord) -> Vec<(&'static str, String)> {
    let mut details = Vec::new();
    if is_impossible(flow) {
        details.push((
            "figure",
            "impossible: it exceeds what the path can carry, or the sender's own count.".to_owned(),
        ));
    }
    details.extend(sent(flow).map(|text| ("sender", text)));
    if let Some(verdict) = &flow.verdict {
        details.push(("cause", cause(verdict)));
        details.extend(verdict.remedy.iter().map(|text| ("remedy", text.to_string())));
    }
    details.extend(flow.also.iter().map(|also| ("also", format!("{} ({})", also.text, cause(also)))));
    details.extend(flow.follow_ups.iter().map(|asked| ("follow-up", follow_up(asked))));
    details
}

/// What the verdict rests on. Intervals that the table of results has too are only in the whole of it.
fn evidence_details(flow: &FlowRecord, whole: bool) -> Vec<(&'static str, String)> {
    let mut details = Vec::new();
    details.extend(flow.verdict.as_ref().and_then(evidence).map(|text| ("evidence", text)));
    details.extend(
        flow.ceiling.iter().map(|ceiling| ("ceiling", ceiling_text(ceiling.bitrate_bps, &ceiling.because))),
    );
    if !is_impossible(flow) {
        details
            .extend(steady(flow).filter(|_| whole || !table_says_steady(flow)).map(|text| ("steady", text)));
        details.extend(uncertainty(flow).filter(|_| whole).map(|text| ("known to", text)));
    }
    details.extend(duplicates(flow).map(|text| ("copies", text)));
    details.extend(losses(flow).filter(|_| whole).map(|text| ("losses", text)));
    details.extend(send_gaps(flow).filter(|_| whole).map(|text| ("gaps", text)));
    details.extend(accounting(flow).map(|text| ("bytes", text)));
    details
}

/// Losses in a row, and how late datagrams were.
fn losses(flow: &FlowRecord) -> Option<String> {
    let udp = flow.receiver.as_ref()?.udp.as_ref()?;
    let bursts = udp.loss_bursts.as_ref().map(|bursts| {
        let mean = bursts.lost as f64 / bursts.count.max(1) as f64;
        let number = plural(bursts.count, "burst");
        format!("{number} of {mean:.1} datagrams on average, the longest of {}", bursts.longest)
    });
    let late = udp.late_by.map(|late| format!("{} late, at most {late} behind the latest", udp.out_of_order));
    let both: Vec<String> = bursts.into_iter().chain(late).collect();
    (!both.is_empty()).then(|| both.join("; "))
}

/// Datagrams that came more than once.
fn duplicates(flow: &FlowRecord) -> Option<String> {
    let count = flow.receiver.as_ref()?.udp.as_ref()?.duplicates;
    (count > 0).then(|| format!("{}; the rate contains them", plural(count, "duplicate datagram")))
}

/// The times between the send calls of datagrams with a rate.
fn send_gaps(flow: &FlowRecord) -> Option<String> {
    let gaps = flow.sender.as_ref()?.udp.as_ref()?.send_gaps?;
    let [mean, p50, p99, max] = [gaps.mean_ns, gaps.p50_ns, gaps.p99_ns, gaps.max_ns].map(Span::from_ns);
    Some(format!("datagrams leave every {mean} on average, p50 {p50}, p99 {p99}, at most {max}"))
}

fn is_impossible(flow: &FlowRecord) -> bool {
    FlowFigure::of(flow).is_some_and(|figure| figure.impossible)
}

/// A question that follow-up runs answered, with the runs.
fn follow_up(asked: &FollowUp) -> String {
    let runs: Vec<String> = asked.runs.iter().map(|run| run.chars().take(8).collect()).collect();
    let kept = if runs.is_empty() { String::new() } else { format!(" (runs {})", runs.join(", ")) };
    format!("{} {}{kept}", asked.because, asked.answer)
}

/// The count of a sender if the file has no receiver.
fn sent(flow: &FlowRecord) -> Option<String> {
    let sender = flow.sender.as_ref().filter(|_| imported(flow) && flow.receiver.is_none())?;
    let (bytes, seconds) = (sender.bytes, sender.elapsed.as_secs_f64());
    Some(format!("{} sent, {bytes} in {seconds:.2} s by the sender's count", sender.bitrate))
}

fn detail(label: &str, text: &str, view: &TextLayout) -> Vec<String> {
    let columns = view.columns().saturating_sub(LABEL_WIDTH + 2 + INNER_LABEL_WIDTH);
    let indent = " ".repeat(LABEL_WIDTH + 2);
    let lines = wrap(text, columns).into_iter().enumerate().map(|(number, line)| {
        let label = view
            .ink(TextRole::Faint, &format!("{:<INNER_LABEL_WIDTH$}", if number == 0 { label } else { "" }));
        format!("{indent}{label}{line}").trim_end().to_owned()
    });
    lines.collect()
}

pub(crate) fn cause(finding: &Finding) -> String {
    let confidence = match finding.confidence {
        Confidence::Confirmed => "confirmed",
        Confidence::Probable => "probable",
        Confidence::Unexplained => "unexplained",
    };
    let share =
        finding.share_of_time.and_then(Ratio::new).map(|share| format!(", {} of the time", percent(share)));
    format!("{}, rule {}, {confidence}{}", finding.cause, finding.rule, share.unwrap_or_default())
}

fn evidence(finding: &Finding) -> Option<String> {
    let numbers: Vec<String> =
        finding.evidence.iter().map(|(key, value)| named(&key.name(), *value)).collect();
    (!numbers.is_empty()).then(|| numbers.join(", "))
}

/// A ceiling with its explanation.
fn ceiling_text(bps: f64, because: &str) -> String {
    format!("{}: {because}", or_absent(Bitrate::from_bps(bps)))
}

/// Every ceiling, lowest first, as rate and text, with the measured rate between them.
pub(crate) fn ceilings(flow: &FlowRecord) -> Vec<(String, String)> {
    let mut rows: Vec<(f64, String)> = Vec::new();
    for (number, ceiling) in flow.ceilings.iter().enumerate() {
        let place = match number {
            0 => " <- binds",
            1 => " <- next",
            _ => "",
        };
        let words = format!("{}: {}{place}", ceiling.limit.words(), ceiling.because);
        rows.push((ceiling.bitrate_bps, words));
    }
    if rows.is_empty() {
        let words = "no ceiling is known, because no link rate, window, loss or CPU load was measured.";
        return vec![(ABSENT.to_owned(), words.to_owned())];
    }
    let measured = FlowFigure::of(flow).filter(|figure| !figure.impossible).and_then(|figure| figure.bitrate);
    if let Some(rate) = measured {
        let below = rows.iter().take_while(|(ceiling, _)| *ceiling < rate.bps()).count();
        rows.insert(below, (rate.bps(), "measured".to_owned()));
    }
    rows.into_iter().map(|(bps, words)| (or_absent(Bitrate::from_bps(bps)), words)).collect()
}

/// The ceilings below a verdict: rates in a column, text next to them.
fn ceiling_lines(flow: &FlowRecord, view: &TextLayout) -> Vec<String> {
    let rows = ceilings(flow);
    let widest = rows.iter().map(|(rate, _)| rate.len()).max().unwrap_or_default();
    let columns = view.columns().saturating_sub(LABEL_WIDTH + 2 + INNER_LABEL_WIDTH + widest + 2);
    let indent = " ".repeat(LABEL_WIDTH + 2);
    let mut lines = Vec::new();
    for (number, (rate, words)) in rows.iter().enumerate() {
        for (part, line) in wrap(words, columns).into_iter().enumerate() {
            let label = if number + part == 0 { "ceilings" } else { "" };
            let label = view.ink(TextRole::Faint, &format!("{label:<INNER_LABEL_WIDTH$}"));
            let rate = if part == 0 { rate.as_str() } else { "" };
            lines.push(format!("{indent}{label}{rate:>widest$}  {line}").trim_end().to_owned());
        }
    }
    lines
}

fn steady(flow: &FlowRecord) -> Option<String> {
    let steady = flow.steady?;
    let half = steady.half_width.and_then(|half| Bitrate::from_bps(half.get() * steady.bitrate.bps()));
    let rate = match half.and_then(|half| steady.bitrate.within(half)) {
        Some(within) => format!("{within}, 95 % interval,"),
        None => steady.bitrate.to_string(),
    };
    Some(format!("{rate} after a ramp-up of {}", steady.ramp_ns))
}

/// The uncertainty of the rate, and its main contribution.
fn uncertainty(flow: &FlowRecord) -> Option<String> {
    let known = flow.uncertainty.as_ref()?;
    let main = known.contributions.iter().find(|part| part.source == known.main)?;
    let (share, why) = (percent(known.coverage), part_name(main));
    let ends = known.around(flow.bitrate()?)?.ends();
    let overhead = overhead(known).map_or_else(String::new, |overhead| format!("; {overhead}"));
    Some(format!("{ends} ({share} interval), mainly {why}: {}{overhead}", main.because))
}

/// Explains the extension of the upper end of the interval, if it is visible.
fn overhead(known: &Uncertainty) -> Option<String> {
    let overhead = known.overhead_bps.filter(|overhead| overhead.bps() > 0.1 * known.expanded_bps.bps())?;
    Some(format!("probes and the control connection used {overhead} of the path"))
}

/// All contributions, largest first, as standard uncertainties.
fn budget(flow: &FlowRecord) -> Option<String> {
    let known = flow.uncertainty.as_ref()?;
    let part = |part: &Contribution| format!("{} {} ({})", part_name(part), part.standard_bps, part.because);
    let parts: Vec<String> = known.contributions.iter().map(part).collect();
    Some(format!("{}; together times {:.2}", parts.join(", "), known.coverage_factor))
}

fn part_name(part: &Contribution) -> String {
    part.source.name().replace('_', " ")
}

/// Requested, granted and effective settings, in one sentence.
fn settings(flow: &FlowRecord) -> Option<String> {
    let (sender, receiver) = (flow.sender_settings.as_ref(), flow.receiver_settings.as_ref());
    let settings = sender.or(receiver)?;
    let mut words = vec![plural(u64::from(flow.plan.streams), "stream")];
    words.push(window(settings, sender, receiver));
    if flow.plan.transport == Transport::Udp {
        words.push(format!("datagrams of {} bytes", settings.length.get()));
        words.extend(settings.datagrams_per_call.map(|count| format!("{count} per send call")));
    } else {
        words.extend(effective("MSS", settings.mss.asked, settings.mss.effective));
        let congestion = &settings.congestion;
        words.extend(effective(
            "congestion control",
            congestion.asked.as_ref(),
            congestion.effective.as_ref(),
        ));
    }
    if settings.tos.asked.is_some() {
        words.extend(effective("TOS", settings.tos.asked, settings.tos.effective));
    }
    let pacing = &settings.pacing_bps;
    if pacing.asked.is_some() {
        words.extend(effective("pacing", pacing.asked, pacing.effective));
    }
    let io = &settings.io;
    if io.asked.is_some() {
        words.extend(effective("sending by", io.asked.as_ref(), io.effective.as_ref()));
    }
    let files = [("sending", sender), ("writing", receiver)];
    words.extend(
        files.into_iter().filter_map(|(what, side)| Some(format!("{what} {}", side?.file.as_ref()?.name))),
    );
    Some(words.join(", "))
}

fn window(settings: &SideSettings, sender: Option<&SideSettings>, receiver: Option<&SideSettings>) -> String {
    let asked = settings.window.map_or("left to the kernel".to_owned(), |window| format!("{window} asked"));
    let granted = |side: Option<Bytes>| or_absent(side);
    format!(
        "window {asked} (granted {} send, {} receive)",
        granted(sender.and_then(|s| s.snd_buf)),
        granted(receiver.and_then(|s| s.rcv_buf))
    )
}

/// `name value`, with the requested value if it differs.
fn effective<T: PartialEq + ToString>(name: &str, asked: Option<T>, effective: Option<T>) -> Option<String> {
    match (asked, effective) {
        (Some(asked), Some(got)) if asked == got => Some(format!("{name} {}", got.to_string())),
        (Some(asked), got) => Some(format!("{name} {} (asked {})", or_absent(got), asked.to_string())),
        (None, got) => got.map(|got| format!("{name} {}", got.to_string())),
    }
}

/// `1 run`, `2 runs`.
#[must_use]
pub fn plural(count: u64, noun: &str) -> String {
    if count == 1 { format!("{count} {noun}") } else { format!("{count} {noun}s") }
}

/// Byte accounting, if written and delivered bytes differ.
fn accounting(flow: &FlowRecord) -> Option<String> {
    let bytes = flow.byte_accounting.filter(|bytes| bytes.written_bytes != bytes.delivered_bytes)?;
    Some(format!(
        "written {}, delivered {}, never sent {}, unaccounted {}",
        bytes.written_bytes, bytes.delivered_bytes, bytes.never_sent_bytes, bytes.unaccounted_bytes
    ))
}

/// Byte accounting down to the wire: a row per accounting point, from the sender's connections to the
/// receiver's and back.
pub(crate) fn steps(flow: &FlowRecord) -> Vec<[String; 3]> {
    let row = |step: &AccountingStep| {
        let off = step.residual_bytes;
        let residual = match off {
            0 => "explained".to_owned(),
            _ => format!("{}{}", if off > 0 { "+" } else { "-" }, Bytes::new(off.unsigned_abs())),
        };
        let mark = if step.unaccounted { " <- unaccounted" } else { "" };
        let point = step.point.name().replace('_', " ");
        let words = format!("{point}, {} of {}{mark}: {}", step.counter, step.host, step.because);
        [step.counted_bytes.to_string(), residual, words]
    };
    flow.steps.iter().map(row).collect()
}

/// Those rows as lines: counts and residuals in columns, text next to them.
fn step_lines(flow: &FlowRecord, view: &TextLayout) -> Vec<String> {
    let rows = steps(flow);
    let widest = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or_default();
    let (counted, residual) = (widest(0), widest(1));
    let columns = view.columns().saturating_sub(LABEL_WIDTH + 2 + INNER_LABEL_WIDTH + counted + residual + 4);
    let indent = " ".repeat(LABEL_WIDTH + 2);
    let mut lines = Vec::new();
    for (number, [bytes, off, words]) in rows.iter().enumerate() {
        for (part, line) in wrap(words, columns).into_iter().enumerate() {
            let label = if number + part == 0 { "counts" } else { "" };
            let label = view.ink(TextRole::Faint, &format!("{label:<INNER_LABEL_WIDTH$}"));
            let (bytes, off) = if part == 0 { (bytes.as_str(), off.as_str()) } else { ("", "") };
            lines.push(
                format!("{indent}{label}{bytes:>counted$}  {off:>residual$}  {line}").trim_end().to_owned(),
            );
        }
    }
    lines
}
