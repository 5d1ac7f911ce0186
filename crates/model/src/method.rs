//! Results of a plan in the terms of its method: tables as in the RFC or the study.

use serde::{Deserialize, Serialize};

use crate::foreign_text::ForeignText;

/// A table in a method's own terms, made from the plan's summaries and runs after the last trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MethodTable {
    /// What it shows, as a heading.
    pub title: ForeignText,
    /// How it was made, and the section or paper that it follows.
    pub about: ForeignText,
    /// The columns.
    pub columns: Vec<MethodColumn>,
    /// Its rows, each with a cell for every column.
    pub rows: Vec<MethodRow>,
    /// Notes for the reader: conditions that did not hold, what was omitted and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<ForeignText>,
}

/// A column of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MethodColumn {
    /// The method's name for it.
    pub name: ForeignText,
    /// Unit of its numbers: `bit/s`, `bytes`, `ns`, `frames/s`, `bit m/s`, `%` or `1`; absent for text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<ForeignText>,
}

/// A row of a table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MethodRow {
    /// The point it refers to, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point: Option<ForeignText>,
    /// The contents of the columns.
    pub cells: Vec<MethodCell>,
}

/// A table cell. It was not measured if it has neither text nor value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MethodCell {
    /// Text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<ForeignText>,
    /// A number in the unit of the column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Lower end of its interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end of its interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// True if the value is only known to be at least this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
}

impl MethodCell {
    /// A cell with text.
    #[must_use]
    pub fn text(text: impl Into<ForeignText>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }

    /// A cell with a number in the unit of its column, empty if it was not measured.
    #[must_use]
    pub fn number(value: impl Into<Option<f64>>) -> Self {
        Self { value: value.into(), ..Self::default() }
    }
}
