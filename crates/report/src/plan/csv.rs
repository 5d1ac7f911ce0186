//! A plan for other programs: one row per point, flow, direction and quantity.

use std::collections::BTreeMap;
use std::io::Write;

use crate::csv::text_cell;
use linerate_model::{PlanAxis, PlanPoint, PlanRecord};

/// Writes the summaries. Numbers are in the unit of their row. A quantity that was not measured has no row.
///
/// # Errors
/// If writing to `out` fails.
pub fn csv(record: &PlanRecord, out: impl Write) -> Result<(), csv::Error> {
    let mut writer = csv::Writer::from_writer(out);
    let axes = record.start.as_ref().map(|start| start.axes.as_slice()).unwrap_or_default();
    let mut head = vec!["point".to_owned()];
    head.extend(axes.iter().map(|axis| text_cell(&axis.name)));
    let fixed = [
        "flow",
        "direction",
        "quantity",
        "unit",
        "trials",
        "median",
        "low",
        "high",
        "coverage",
        "smallest",
        "largest",
        "words",
    ];
    head.extend(fixed.map(str::to_owned));
    writer.write_record(&head)?;
    let points = record.start.iter().flat_map(|start| &start.points);
    let labels: BTreeMap<&str, Vec<&str>> =
        points.map(|point| (point.id.as_str(), labels(axes, point))).collect();
    for one in &record.summaries {
        let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        let mut row = vec![text_cell(&one.point)];
        row.extend(labels.get(one.point.as_str()).into_iter().flatten().map(|label| text_cell(label)));
        row.resize(axes.len() + 1, String::new());
        row.extend([
            text_cell(&one.flow),
            one.direction.name().to_owned(),
            text_cell(&one.quantity),
            text_cell(one.unit.as_deref().unwrap_or_default()),
            one.values.len().max(one.words.len()).to_string(),
            number(one.median),
            number(one.interval.map(|interval| interval.low)),
            number(one.interval.map(|interval| interval.high)),
            number(one.interval.map(|interval| interval.coverage)),
            number(one.smallest()),
            number(one.largest()),
            text_cell(&one.words.join(" ")),
        ]);
        writer.write_record(&row)?;
    }
    writer.flush()?;
    Ok(())
}

/// The displayed values of a point, one per axis.
fn labels<'r>(axes: &'r [PlanAxis], point: &PlanPoint) -> Vec<&'r str> {
    let label = |(axis, value): (&'r PlanAxis, &usize)| {
        axis.values.get(*value).map_or("", |value| value.label.as_str())
    };
    axes.iter().zip(&point.values).map(label).collect()
}
