//! The runs of a page. One run is shown in full; several are folded, each under what tells it from the others.

use std::collections::BTreeMap;

use linerate_model::{ForeignText, PlanRecord, RunRecord};
use maud::{Markup, html};

use super::parts::{self, PageCharts};
use super::{ReportedRun, compare, raw, run};
use crate::figure::FlowFigure;
use crate::plan::words;
use crate::quantity::or_absent;
use crate::text_flow::plural;

/// Names of the runs by what differs: the point of a plan, its trial and its flow; otherwise host, time and the start
/// of the run's own name.
pub(super) fn names(plan: Option<&PlanRecord>, runs: &[ReportedRun<'_>]) -> Vec<String> {
    let of_plan = plan.map(of_plan).unwrap_or_default();
    let name = |record: &RunRecord| {
        of_plan.get(record.run.as_str()).cloned().unwrap_or_else(|| {
            let pieces = run::title(record);
            format!("run {}: {}", compare::name(record), arrows(pieces.first().map_or("", String::as_str)))
        })
    };
    runs.iter().map(|run| name(run.record)).collect()
}

fn of_plan(plan: &PlanRecord) -> BTreeMap<&str, String> {
    let repeats = plan.start.as_ref().map_or(1, |start| start.repeats);
    let mut names = BTreeMap::new();
    for trial in &plan.trials {
        let point = words(plan, &trial.point);
        for run in &trial.runs {
            let mut name = vec![point.clone()];
            name.extend(trial.step.as_ref().map(|step| format!("at {}", step.label)));
            name.extend((repeats > 1).then(|| format!("trial {}", trial.repeat + 1)));
            name.extend((trial.runs.len() > 1).then(|| run.flow.to_string()));
            names.insert(run.run.as_str(), name.join(", "));
        }
    }
    names
}

/// The element of a run.
pub(super) fn id(number: usize) -> String {
    format!("run-{number}")
}

/// A run that is alone on its page.
pub(super) fn alone(
    heading: Option<&ForeignText>,
    reported: &ReportedRun<'_>,
    log: usize,
    figures: &mut PageCharts,
) -> Markup {
    let record = reported.record;
    let pieces: Vec<String> = run::title(record).iter().map(|piece| arrows(piece)).collect();
    html! {
        section .run id=(id(0)) {
            (parts::heading(heading, pieces.first().map_or("", String::as_str)))
            p.faint { (pieces.get(1..).unwrap_or_default().join(" · ")) }
            (run::section(record, figures, true))
            (raw(log, reported.events, &record.run))
        }
    }
}

/// Several runs, folded.
pub(super) fn folded(
    names: &[String],
    runs: &[ReportedRun<'_>],
    first_log: usize,
    figures: &mut PageCharts,
) -> Markup {
    html! {
        @if !runs.is_empty() {
            section #runs {
                h2 { "Runs" }
                @for (number, (reported, name)) in runs.iter().zip(names).enumerate() {
                    details.run id=(id(number)) {
                        summary { h3 { (name) } p.faint { (results(reported.record)) } }
                        p.faint { (run::title(reported.record).iter().map(|piece| arrows(piece)).collect::<Vec<_>>().join(" · ")) }
                        (run::section(reported.record, figures, false))
                        (raw(number + first_log, reported.events, &reported.record.run))
                    }
                }
            }
        }
    }
}

/// The result of each flow in a few words.
pub(super) fn results(record: &RunRecord) -> String {
    let flows = record.flows.iter().map(|flow| {
        let figure = FlowFigure::of(flow).filter(|_| flow.sizes.is_empty());
        let rate = match figure {
            Some(figure) if figure.impossible => "impossible".to_owned(),
            Some(figure) => or_absent(figure.bitrate),
            None if flow.sizes.is_empty() => "not measured".to_owned(),
            None => plural(flow.sizes.len() as u64, "size"),
        };
        let cause = flow.verdict.as_ref().map(|verdict| format!(", limited by: {}", verdict.cause));
        format!("{} {rate}{}", flow.plan.name, cause.unwrap_or_default())
    });
    flows.collect::<Vec<_>>().join(" · ")
}

fn arrows(text: &str) -> String {
    text.replace("->", "→")
}
