//! A plan as text for people.

use linerate_model::{ForeignLines, MethodTable, Outcome, PlanRecord, PointSummary};

use super::rows::fitting;
use super::{label, method, missing};
use crate::layout::{TextLayout, TextRole, wrap};
use crate::quantity::in_unit;

/// Further lines of a kind are only counted.
const MAX_LINES: usize = 12;

/// A remark below the table: its style and its text.
pub(super) type Remark = (TextRole, String);

/// The result of a plan: the heading, the table, the assertions, and what is missing.
#[must_use]
pub fn text(record: &PlanRecord, view: &TextLayout) -> String {
    let mut out = String::new();
    let mut line = |ink, text: &str, indent: usize| {
        for piece in wrap(text, view.columns().saturating_sub(indent)) {
            out += &format!("{}{}\n", " ".repeat(indent), view.ink(ink, &piece));
        }
    };
    for (number, piece) in heading(record).iter().enumerate() {
        line(if number == 0 { TextRole::Result } else { TextRole::Plain }, piece, 0);
    }
    let table = fitting(record, view);
    let left_out = table.as_ref().is_some_and(|(_, left_out)| *left_out);
    if let Some((table, _)) = table {
        out += &format!("\n{}\n", table.lines(view).join("\n"));
    }
    record.tables.iter().for_each(|table| out += &method_table(table, view));
    let mut line = |ink, text: &str, indent: usize| {
        for piece in wrap(text, view.columns().saturating_sub(indent)) {
            out += &format!("{}{}\n", " ".repeat(indent), view.ink(ink, &piece));
        }
    };
    for (title, remarks) in sections(record) {
        line(TextRole::Plain, "", 0);
        if !title.is_empty() {
            line(TextRole::Result, title, 0);
        }
        for (ink, text) in remarks {
            line(ink, &text, if title.is_empty() { 0 } else { 2 });
        }
    }
    if left_out {
        line(TextRole::Plain, "", 0);
        line(TextRole::Faint, "Columns that did not fit are in the output of --json and in reports.", 0);
    }
    if let Some(kept) = &view.kept {
        let unfinished = record.outcome.is_none_or(|outcome| outcome != Outcome::Completed);
        let again = if unfinished {
            format!("; resume it with: linerate run --resume {kept}")
        } else {
            String::new()
        };
        out += &format!("\narchived as {kept}; show it again with: linerate show {kept}{again}\n");
    }
    out
}

/// A table of the plan's method, with its introduction and notes.
fn method_table(table: &MethodTable, view: &TextLayout) -> String {
    let mut out = format!("\n{}\n", view.ink(TextRole::Result, &table.title));
    let line = |text: &str, out: &mut String| {
        for piece in wrap(text, view.columns().saturating_sub(2)) {
            *out += &format!("  {}\n", view.ink(TextRole::Faint, &piece));
        }
    };
    if !table.about.is_empty() {
        line(&table.about, &mut out);
    }
    if !table.rows.is_empty() {
        out += &format!("\n{}\n", method::table(table).lines(view).join("\n"));
    }
    if !table.notes.is_empty() {
        out.push('\n');
    }
    table.notes.iter().for_each(|note| line(note, &mut out));
    out
}

/// The heading, the name first.
pub(super) fn heading(record: &PlanRecord) -> Vec<String> {
    let Some(start) = &record.start else { return vec![format!("plan {}", record.run)] };
    let mut lines = vec![format!("{}, linerate {}", start.name, start.linerate)];
    if !start.about.as_str().is_empty() {
        lines.push(start.about.one_line());
    }
    lines.extend(start.notes.iter().map(|(name, note)| format!("{name}: {note}")));
    let place = match &start.topology {
        Some(topology) => format!("lab {topology}"),
        None => start.world.name().to_owned(),
    };
    let points =
        if start.points.len() == 1 { "1 point".to_owned() } else { format!("{} points", start.points.len()) };
    let trials = match record.trials.len() {
        1 => "1 trial".to_owned(),
        trials => format!("{trials} trials"),
    };
    let resumed = match record.resumed {
        0 => String::new(),
        1 => ", resumed once".to_owned(),
        times => format!(", resumed {times} times"),
    };
    lines.push(format!("{}, {place}, {points}, {trials}, {}{resumed}", start.started_at, start.order));
    if !start.set.is_empty() {
        let set: Vec<String> = start.set.iter().map(ForeignLines::one_line).collect();
        lines.push(format!("set: {}", set.join(" ")));
    }
    lines
}

/// The sections below the table, by title.
pub(super) fn sections(record: &PlanRecord) -> Vec<(&'static str, Vec<Remark>)> {
    let all = [
        ("", notes(record)),
        ("Assertions", assertions(record)),
        ("Missing", not_there(record)),
        ("Caveats", record.caveats.iter().map(|one| (TextRole::Warning, one.text.to_string())).collect()),
        ("", ending(record)),
    ];
    all.into_iter().filter(|(_, remarks)| !remarks.is_empty()).collect()
}

/// Explains the figures of the table.
fn notes(record: &PlanRecord) -> Vec<Remark> {
    let mut notes = Vec::new();
    let rates = || record.summaries.iter().filter(|one| one.quantity == "goodput" && one.values.len() > 1);
    if rates().next().is_some() {
        let intervals = rates().all(|one| one.interval.is_some());
        let what = if intervals {
            "the interval (95 % or more, no distribution assumed)"
        } else {
            "the range of the trials"
        };
        notes.push((TextRole::Faint, format!("Rates are medians of the trials, with {what} in brackets.")));
    }
    notes.extend(segments(record).map(|text| (TextRole::Warning, text)));
    notes.extend(start_error(record).map(|text| (TextRole::Faint, text)));
    notes
}

/// Segment sizes that were requested but not used.
fn segments(record: &PlanRecord) -> Option<String> {
    let mut seen: Vec<(f64, f64)> = Vec::new();
    for wanted in record.summaries.iter().filter(|one| one.quantity == "segment_asked") {
        let used = record.summaries.iter().find(|one| {
            one.quantity == "segment"
                && (&one.point, &one.flow, one.direction) == (&wanted.point, &wanted.flow, wanted.direction)
        });
        let (Some(asked), Some(used)) = (wanted.median, used.and_then(|used| used.median)) else { continue };
        // Timestamps take 12 bytes of the requested size.
        if used + 12.0 < asked && !seen.contains(&(asked, used)) {
            seen.push((asked, used));
        }
    }
    let differences: Vec<String> =
        seen.iter().map(|(asked, used)| format!("{asked:.0} requested, {used:.0} used")).collect();
    let jumbo = if seen.iter().any(|(asked, _)| *asked > 1460.0) {
        ": jumbo frames were not in effect; raise the MTU of hosts and switch"
    } else {
        ""
    };
    (!differences.is_empty())
        .then(|| format!("Segments were smaller than requested ({}){jumbo}.", differences.join("; ")))
}

/// The largest error of a synchronised start.
fn start_error(record: &PlanRecord) -> Option<String> {
    if record.start.as_ref()?.flows.len() < 2 {
        return None;
    }
    let worst = |quantity: &str| {
        let of = record.summaries.iter().filter(|one| one.quantity == quantity);
        of.filter_map(PointSummary::largest).max_by(f64::total_cmp)
    };
    let late = in_unit(Some("ns"), worst("start_error")?);
    let clock = worst("clock_error")
        .map(|error| format!(", with clock errors of at most {}", in_unit(Some("ns"), error)));
    Some(format!("Flows started at most {late} late{}.", clock.unwrap_or_default()))
}

/// Each assertion once, with the results where it fails.
fn assertions(record: &PlanRecord) -> Vec<Remark> {
    let mut names: Vec<&str> = Vec::new();
    for judgement in &record.judgements {
        if !names.contains(&judgement.assertion.as_str()) {
            names.push(&judgement.assertion);
        }
    }
    let mut remarks = Vec::new();
    for name in names {
        let all: Vec<_> = record.judgements.iter().filter(|one| one.assertion == name).collect();
        let failed: Vec<_> = all.iter().filter(|one| !one.holds).collect();
        if failed.is_empty() {
            remarks.push((TextRole::Good, format!("holds: {name} ({} of {})", all.len(), all.len())));
            continue;
        }
        remarks.push((
            TextRole::Warning,
            format!("FAILS: {name} ({} of {} hold)", all.len() - failed.len(), all.len()),
        ));
        for one in failed.iter().take(MAX_LINES) {
            let place = format!("{}, {} {}", label(record, &one.point), one.flow, one.direction.name());
            remarks
                .push((TextRole::Plain, format!("at {place}: {}", one.found.as_deref().unwrap_or("fails"))));
        }
        if failed.len() > MAX_LINES {
            remarks.push((TextRole::Faint, format!("and {} more", failed.len() - MAX_LINES)));
        }
    }
    remarks
}

fn not_there(record: &PlanRecord) -> Vec<Remark> {
    let all = missing(record);
    let mut remarks: Vec<Remark> = all
        .iter()
        .take(MAX_LINES)
        .map(|(point, repeat, reasons)| {
            let text = format!("{}, trial {}: {}", label(record, point), repeat + 1, reasons.join("; "));
            (TextRole::Warning, text)
        })
        .collect();
    if all.len() > MAX_LINES {
        remarks.push((TextRole::Faint, format!("and {} more", all.len() - MAX_LINES)));
    }
    remarks
}

fn ending(record: &PlanRecord) -> Vec<Remark> {
    let text = match (record.outcome, &record.reason) {
        (Some(Outcome::Completed), _) => return Vec::new(),
        (Some(Outcome::Interrupted), reason) => ("interrupted", reason),
        (Some(Outcome::Failed), reason) => ("not complete", reason),
        (None, reason) => ("unfinished: it is still running, or was killed", reason),
    };
    let reason = text.1.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    vec![(TextRole::Warning, format!("This plan is {}{reason}.", text.0))]
}
