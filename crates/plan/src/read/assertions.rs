//! Reads assertions, and axes that are searched.

use std::collections::BTreeSet;

use linerate_config::{ConfigContent, ConfigEntry, ConfigTable, ConfigValue, Mistakes, SourcePosition, hint};
use linerate_model::Direction;
use linerate_units::Ratio;

use super::PlanReader;
use crate::assertion::{Assertion, AssertionSyntaxError, Relation, read as read_relation};
use crate::axis::{Axis, AxisTable, PointSelection};
use crate::error::Source;
use crate::keys::{ASSERT, Fields};
use crate::kind::SettingValue;
use crate::plan::Plan;
use crate::range;
use crate::search::{MIN_RESOLUTION, Search};

/// Reads the assertions of a plan whose axes and flows are known.
pub(crate) fn read(reader: &mut PlanReader<'_>, entry: Option<&ConfigEntry>, plan: &mut Plan) {
    let Some(entry) = entry else { return };
    let one = std::slice::from_ref(&entry.value);
    let values = if let ConfigContent::List(values) = &entry.value.content { values.as_slice() } else { one };
    for value in values {
        let before = std::mem::take(reader.mistakes);
        let read = match &value.content {
            ConfigContent::Table(table) => from_table(reader, table, value, plan),
            _ => relation(reader.sources, value, "assert", &plan.axes, reader.mistakes).map(
                |(text, relation)| Assertion {
                    name: text.clone(),
                    text,
                    points: PointSelection::default(),
                    flow: None,
                    direction: None,
                    relation,
                },
            ),
        };
        let found = std::mem::replace(reader.mistakes, before);
        if found.is_empty() {
            plan.assertions.extend(read);
        } else if let Some(text) = about_a_changed_axis(&reader.changed, value) {
            plan.left_out.push(text);
        } else {
            reader.mistakes.append(found);
        }
    }
}

/// The text of an assertion about values of an axis that the command line changed.
fn about_a_changed_axis(changed: &BTreeSet<String>, value: &ConfigValue) -> Option<String> {
    let (text, at) = match &value.content {
        ConfigContent::Table(table) => (table.get("that")?.value.text()?, table.table("at")),
        _ => (value.text()?, None),
    };
    let at_one = at.is_some_and(|at| at.0.iter().any(|entry| changed.contains(&entry.key)));
    let mut points = text.split("point(").skip(1).filter_map(|rest| rest.split(')').next());
    let names = |rest: &str| {
        rest.split(',').filter_map(|part| part.split('=').next()).any(|name| changed.contains(name.trim()))
    };
    (at_one || points.any(names)).then(|| text.to_owned())
}

fn from_table(
    reader: &mut PlanReader<'_>,
    table: &ConfigTable,
    value: &ConfigValue,
    plan: &Plan,
) -> Option<Assertion> {
    let fields = Fields::read(table, "assert.", &[ASSERT], &[], reader.mistakes);
    let Some(that) = fields.value("that") else {
        if table.get("that").is_none() {
            reader
                .mistakes
                .add(&value.at, "the assertion has no condition; add that = \"goodput >= 0.98 ceiling\"");
        }
        return None;
    };
    let before = reader.mistakes.len();
    let points = match fields.value("at").map(|value| (value, &value.content)) {
        Some((_, ConfigContent::Table(table))) => PointSelection::read(table, &plan.axes, reader.mistakes),
        Some((value, other)) => {
            let text = format!("assert.at: {} is not a table such as {{ streams = 4 }}", other.describe());
            reader.mistakes.add(&value.at, text);
            return None;
        }
        None => PointSelection::default(),
    };
    let holds = |number: usize| plan.grid.choice(number).is_some_and(|choice| points.holds(&choice));
    if reader.mistakes.len() == before && !(0..plan.grid.len()).any(holds) {
        let at = fields.value("at").map_or(&value.at, |value| &value.at);
        reader
            .mistakes
            .add(at, "assert.at: no point of the plan matches; correct the values, or remove `at`");
    }
    let flow = fields.text("flow");
    if let Some(name) = flow.as_deref().filter(|name| plan.flow(name).is_none()) {
        let hint = hint(name, plan.flows.iter().map(|flow| flow.name.as_str()));
        let at = fields.value("flow").map_or(&value.at, |value| &value.at);
        reader.mistakes.add(at, format!("assert.flow: there is no flow '{name}'{hint}"));
    }
    let direction = fields.text("direction").map(|name| match name.as_str() {
        "upload" => Direction::Upload,
        _ => Direction::Download,
    });
    let (text, relation) = relation(reader.sources, that, "assert.that", &plan.axes, reader.mistakes)?;
    let name = fields.text("name").unwrap_or_else(|| text.clone());
    Some(Assertion { name, text, points, flow, direction, relation })
}

/// Parses the text of an assertion. A mistake is reported at its column.
fn relation(
    sources: &[Source],
    value: &ConfigValue,
    path: &str,
    axes: &[Axis],
    mistakes: &mut Mistakes,
) -> Option<(String, Relation)> {
    let (ConfigContent::Text(text) | ConfigContent::Typed(text)) = &value.content else {
        let what = value.content.describe();
        mistakes.add(
            &value.at,
            format!("{path}: {what} is not an assertion such as \"goodput >= 0.98 ceiling\""),
        );
        return None;
    };
    match read_relation(text, axes) {
        Ok(relation) => Some((text.clone(), relation)),
        Err(AssertionSyntaxError { at, text: wrong }) => {
            mistakes.add(&within(sources, value, text, at), format!("{path}: {wrong}"));
            None
        }
    }
}

/// Position of a byte of a text in a file; if the text contains escapes, the position of the whole text.
fn within(sources: &[Source], value: &ConfigValue, text: &str, at: usize) -> SourcePosition {
    let SourcePosition::File { file, line, column } = value.at else { return value.at.clone() };
    let written = sources.get(file).and_then(|source| source.text.lines().nth(line.saturating_sub(1)));
    let rest: String = written.unwrap_or_default().chars().skip(column.saturating_sub(1)).collect();
    let plain = rest.strip_prefix(['"', '\'']).is_some_and(|rest| rest.starts_with(text));
    if !plain {
        return value.at.clone();
    }
    let letters = text.get(..at).unwrap_or_default().chars().count();
    SourcePosition::File { file, line, column: column + 1 + letters }
}

/// Reads an axis that is searched.
pub(crate) fn search(reader: &mut PlanReader<'_>, draft: &AxisTable<'_>, axes: &[Axis]) -> Option<Search> {
    let fields = draft.fields.as_ref()?;
    for key in ["values", "step", "factor", "points", "labels"] {
        if let Some(value) = fields.value(key) {
            let text = format!(
                "axis.{}.{key}: this does not apply to an axis that is searched (pass); remove it",
                draft.name
            );
            reader.mistakes.add(&value.at, text);
        }
    }
    let (low, high) = range::bounds(draft, fields, reader.mistakes)?;
    if low == high {
        let text = format!("axis.{}: from and to are equal, so there is nothing to search", draft.name);
        reader.mistakes.add(&draft.at, text);
    }
    let resolution = match fields.setting("resolution") {
        Some(SettingValue::Share(share)) => *share,
        _ => Ratio::new(0.01)?,
    };
    // Whole values have neighbours; between others there is always one more to try.
    if let Some(value) = fields.value("resolution").filter(|_| !high.is_whole())
        && resolution.get() < MIN_RESOLUTION
    {
        let text = format!(
            "axis.{}.resolution: the share is too small for values that are not whole numbers; give at least \
             0.0001%",
            draft.name
        );
        reader.mistakes.add(&value.at, text);
    }
    let descend = match fields.setting("descend") {
        Some(SettingValue::Share(share)) => Some(*share),
        _ => None,
    };
    if let Some(value) =
        fields.value("descend").filter(|_| descend.is_some_and(|share| !(0.01..=0.5).contains(&share.get())))
    {
        let text = format!("axis.{}.descend: the share is out of range; give 1% to 50%", draft.name);
        reader.mistakes.add(&value.at, text);
    }
    let pass = fields.value("pass")?;
    let path = format!("axis.{}.pass", draft.name);
    let (text, pass) = relation(reader.sources, pass, &path, axes, reader.mistakes)?;
    Some(Search {
        name: draft.name.clone(),
        targets: draft.targets.clone(),
        low,
        high,
        resolution,
        descend,
        confirm: fields.span("confirm"),
        text,
        pass,
    })
}
