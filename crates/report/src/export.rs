//! A run or plan from its log in any format, for every caller that has an archive.

use linerate_model::{Event, PlanRecord, RunRecord};

use crate::format::{FormatError, PlanSource, RunLoader, RunSource};
use crate::html::Assets;
use crate::picture::Pictures;
use crate::{Format, TextLayout};

/// What is to be written.
#[derive(Clone, Copy)]
pub struct ExportSource<'a> {
    /// The log of the run, or the plan's own.
    pub events: &'a [Event],
    /// Loads the runs of a plan.
    pub runs: &'a RunLoader<'a>,
    /// How text looks.
    pub view: &'a TextLayout,
    /// The script and style of a page.
    pub assets: Option<&'a Assets<'a>>,
    /// With the format svg: only this chart, counted from 1, instead of all below each other.
    pub chart: Option<usize>,
}

/// Writes a run or a plan.
///
/// # Errors
/// The run or plan has nothing that the format could contain, or a run of a plan cannot be loaded.
pub fn export(format: Format, source: &ExportSource<'_>) -> Result<Vec<u8>, FormatError> {
    let ExportSource { events, runs, view, assets, chart } = *source;
    let mut out = Vec::new();
    let plan = PlanRecord::of_log(events);
    match (&plan, chart.filter(|_| format == Format::Svg)) {
        (Some(plan), Some(chart)) => return picture(&Pictures::of_plan(plan), chart),
        (None, Some(chart)) => return picture(&Pictures::of_run(&RunRecord::fold(events)), chart),
        (Some(record), None) => format.write_plan(PlanSource { record, events, runs }, &mut out)?,
        (None, None) => {
            let record = RunRecord::fold(events);
            format.write_run(RunSource { record: &record, events, view, assets }, &mut out)?;
        }
    }
    Ok(out)
}

/// One chart, by its number from 1.
fn picture(pictures: &Pictures, chart: usize) -> Result<Vec<u8>, FormatError> {
    if pictures.titles().len() == 0 {
        return Err(FormatError::NothingToDraw);
    }
    let picture = chart.checked_sub(1).and_then(|number| pictures.svg(Some(number)));
    let titles =
        || pictures.titles().zip(1..).map(|(title, number)| format!("{number} is {title}")).collect();
    Ok(picture.ok_or_else(|| FormatError::NoSuchChart { chart, titles: titles() })?.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::FORMATS;
    use crate::{samples_of_plans, samples_of_runs};

    fn exported(format: Format, events: &[Event], chart: Option<usize>) -> Result<String, String> {
        let source = ExportSource {
            events,
            runs: &|_| Ok(None),
            view: &TextLayout::default(),
            assets: Some(&Assets { script: "", style: "" }),
            chart,
        };
        let written = export(format, &source).map_err(|error| {
            assert!(error.is_of_format(), "{error}");
            error.to_string()
        });
        written.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    #[test]
    fn every_format_is_of_runs_or_of_plans() {
        let (run, plan) = (samples_of_runs::tcp_run(), samples_of_plans::two_axes().0);
        for row in FORMATS {
            let of_run = exported(row.format, &run, None);
            assert_eq!(of_run.is_ok(), row.name != "junit", "{}: {of_run:?}", row.name);
            let of_plan = exported(row.format, &plan, None);
            assert_eq!(of_plan.is_ok(), row.name != "html", "{}: {of_plan:?}", row.name);
        }
        let lines = exported(Format::Jsonl, &plan, None).unwrap();
        assert_eq!(lines.lines().count(), plan.len());
    }

    #[test]
    fn one_chart_or_the_names_of_those_that_there_are() {
        let run = samples_of_runs::tcp_run();
        let all = exported(Format::Svg, &run, None).unwrap();
        let first = exported(Format::Svg, &run, Some(1)).unwrap();
        assert!(first.starts_with("<svg") && first.len() < all.len());
        for missing in [0, 99] {
            let refused = exported(Format::Svg, &run, Some(missing)).unwrap_err();
            assert!(
                refused.contains(&format!("no chart {missing}")) && refused.contains("1 is "),
                "{refused}"
            );
        }
        let nothing = exported(
            Format::Svg,
            &samples_of_runs::log(samples_of_runs::opening(Default::default())),
            Some(1),
        )
        .unwrap_err();
        assert!(nothing.contains("nothing to draw"), "{nothing}");
    }
}
