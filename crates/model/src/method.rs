//! What a plan amounts to in the terms of its method: tables as the RFC or the study has them.

use serde::{Deserialize, Serialize};

use crate::foreign_text::ForeignText;

/// A table in a method's own terms. It is made of the plan's summaries and runs behind the last trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MethodTable {
    /// What it shows, as a heading.
    pub title: ForeignText,
    /// How it was made, and the section or paper that it follows.
    pub about: ForeignText,
    /// What its columns are.
    pub columns: Vec<MethodColumn>,
    /// Its rows, each with a cell for every column.
    pub rows: Vec<MethodRow>,
    /// What a reader has to know to understand it: conditions that did not hold, what was left out and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<ForeignText>,
}

/// A column of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MethodColumn {
    /// The method's name of it.
    pub name: ForeignText,
    /// What its numbers are measured in: `bit/s`, `bytes`, `ns`, `frames/s`, `bit m/s`, `%` or `1`; absent for words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<ForeignText>,
}

/// A row of a table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MethodRow {
    /// The point that it is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point: Option<ForeignText>,
    /// What stands in the columns.
    pub cells: Vec<MethodCell>,
}

/// What stands in one place of a table. With neither text nor value it was not measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MethodCell {
    /// Words.
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
    /// Words.
    #[must_use]
    pub fn text(text: impl Into<ForeignText>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }

    /// A number in the unit of its column, or nothing where it was not measured.
    #[must_use]
    pub fn number(value: impl Into<Option<f64>>) -> Self {
        Self { value: value.into(), ..Self::default() }
    }
}
