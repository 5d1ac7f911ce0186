//! Ranges of values: equal steps, or equal ratios.

use linerate_config::{Mistakes, SourcePosition};

use crate::axis::{AxisTable, AxisValue};
use crate::keys::Fields;
use crate::kind::SettingValue;

/// Largest number of values on one axis; more are probably a typing error.
const MAX_VALUES: usize = 1000;

/// Reads a range. Mistakes are noted.
pub(crate) fn read(draft: &AxisTable<'_>, fields: &Fields<'_>, mistakes: &mut Mistakes) -> Vec<AxisValue> {
    let name = &draft.name;
    let Some((from, to)) = bounds(draft, fields, mistakes) else { return Vec::new() };
    let (Some(low), Some(high)) = (from.number(), to.number()) else { return Vec::new() };
    let given: Vec<&str> =
        ["step", "factor", "points"].into_iter().filter(|key| fields.value(key).is_some()).collect();
    let numbers = match given[..] {
        ["step"] => step(draft, fields, low, high, mistakes),
        ["factor"] => factor(draft, fields, low, high, mistakes),
        ["points"] => Some(ratios(low, high, fields.whole("points").unwrap_or(2))),
        _ => {
            let text = format!("axis.{name}: a range needs step, factor or points");
            mistakes.add(&draft.at, text);
            None
        }
    };
    let Some(numbers) = numbers else { return Vec::new() };
    if numbers.len() > MAX_VALUES {
        let text = format!("axis.{name}: more than {MAX_VALUES} values; take a larger step, or fewer points");
        mistakes.add(&draft.at, text);
        return Vec::new();
    }
    let settings = numbers.into_iter().filter_map(|number| from.with_number(decimal(number)));
    let mut settings: Vec<SettingValue> = settings.collect();
    // For integral kinds, neighbours may round to the same value.
    settings.dedup();
    settings.into_iter().map(|setting| AxisValue { label: setting.to_string(), setting }).collect()
}

/// First and last value.
pub(crate) fn bounds(
    draft: &AxisTable<'_>,
    fields: &Fields<'_>,
    mistakes: &mut Mistakes,
) -> Option<(SettingValue, SettingValue)> {
    let name = &draft.name;
    if !draft.kind.is_numeric() {
        let text = format!("axis.{name}: values of this kind have no range; list them with values = […]");
        mistakes.add(&draft.at, text);
        return None;
    }
    let mut bound = |key: &str| {
        let Some(value) = fields.value(key) else {
            let text =
                format!("axis.{name}: no values; write values = […], or from = …, to = … and points = …");
            mistakes.add(&draft.at, text);
            return None;
        };
        let read = draft.kind.read(value);
        read.map_err(|text| mistakes.add(&value.at, format!("axis.{name}.{key}: {text}"))).ok()
    };
    let (from, to) = (bound("from")?, bound("to")?);
    if from.number() > to.number() {
        let at = fields.value("from").map_or(&draft.at, |value| &value.at);
        mistakes.add(at, format!("axis.{name}.from: {from} is above {to}; give the smaller one first"));
        return None;
    }
    Some((from, to))
}

/// Removes the rounding error of binary fractions after 15 digits.
fn decimal(number: f64) -> f64 {
    if number.fract() == 0.0 { number } else { format!("{number:.14e}").parse().unwrap_or(number) }
}

/// The end with a tolerance for rounding errors of the steps.
fn end(high: f64) -> f64 {
    high + high.abs() * 1e-9
}

fn step(
    draft: &AxisTable<'_>,
    fields: &Fields<'_>,
    low: f64,
    high: f64,
    mistakes: &mut Mistakes,
) -> Option<Vec<f64>> {
    let value = fields.value("step")?;
    let step = match draft.kind.read(value) {
        Ok(step) => step.number()?,
        Err(text) => return refuse(&value.at, format!("axis.{}.step: {text}", draft.name), mistakes),
    };
    if step <= 0.0 {
        return refuse(&value.at, format!("axis.{}.step: the step must be above 0", draft.name), mistakes);
    }
    let numbers = (0_u32..).map(|k| low + f64::from(k) * step).take_while(|number| *number <= end(high));
    Some(numbers.take(MAX_VALUES + 1).collect())
}

fn factor(
    draft: &AxisTable<'_>,
    fields: &Fields<'_>,
    low: f64,
    high: f64,
    mistakes: &mut Mistakes,
) -> Option<Vec<f64>> {
    let value = fields.value("factor")?;
    let factor = value.text().and_then(|text| text.parse().ok()).filter(|factor: &f64| factor.is_finite());
    let Some(factor) = factor.filter(|factor| *factor > 1.0) else {
        let what = value.content.describe();
        return refuse(
            &value.at,
            format!("axis.{}.factor: {what} is not a number above 1", draft.name),
            mistakes,
        );
    };
    if low <= 0.0 {
        return refuse(
            &value.at,
            format!("axis.{}: a range with a factor cannot begin at 0; begin above 0", draft.name),
            mistakes,
        );
    }
    let numbers = (0_i32..).map(|k| low * factor.powi(k)).take_while(|number| *number <= end(high));
    Some(numbers.take(MAX_VALUES + 1).collect())
}

/// `count` numbers with equal ratios, or with equal steps if they start at 0.
fn ratios(low: f64, high: f64, count: u64) -> Vec<f64> {
    let last = count.saturating_sub(1).max(1) as f64;
    let number = |k: u64| {
        let share = k as f64 / last;
        if low > 0.0 { low * (high / low).powf(share) } else { low + (high - low) * share }
    };
    (0..count).map(number).collect()
}

fn refuse(at: &SourcePosition, text: String, mistakes: &mut Mistakes) -> Option<Vec<f64>> {
    mistakes.add(at, text);
    None
}
