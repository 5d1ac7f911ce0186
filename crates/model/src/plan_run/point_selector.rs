//! Selection of points of an executed plan by a typed text.

use std::fmt;

use super::{PlanPoint, PlanRecord};

/// Why a text selects no point of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PointSelectorError {
    /// It is neither the name of a point nor a list of values.
    Form,
    /// No point of the plan has these values.
    NoSuchPoint,
}

impl fmt::Display for PointSelectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Form => "give the name of a point, or values such as streams=5,length=64K",
            Self::NoSuchPoint => "no point of the plan has these values; linerate show lists them",
        })
    }
}

impl std::error::Error for PointSelectorError {}

impl PlanRecord {
    /// The selected points: one by its name, or all with these values, such as `streams=5,length=64K`.
    ///
    /// # Errors
    /// The selector has another form, or selects nothing.
    pub fn select_points(&self, selector: &str) -> Result<Vec<&str>, PointSelectorError> {
        let points = self.start.as_ref().map(|start| start.points.as_slice()).unwrap_or_default();
        if let Some(known) = points.iter().find(|point| point.id == selector) {
            return Ok(vec![&known.id]);
        }
        let values: Option<Vec<(&str, &str)>> =
            selector.split(',').map(|part| part.split_once('=')).collect();
        let values = values.ok_or(PointSelectorError::Form)?;
        let is = |point: &&PlanPoint| {
            let labels = self.labels(&point.id);
            values.iter().all(|(axis, value)| labels.contains(&(axis.trim(), value.trim())))
        };
        let found: Vec<&str> = points.iter().filter(is).map(|point| point.id.as_str()).collect();
        if found.is_empty() { Err(PointSelectorError::NoSuchPoint) } else { Ok(found) }
    }
}
