//! Errors in a plan: every mistake with its position and the line.

use std::fmt;

use linerate_config::{Mistake, Mistakes, SourcePosition};
use schemars::JsonSchema;
use serde::Serialize;

/// A file and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Its name in messages.
    pub name: String,
    /// Its content.
    pub text: String,
}

/// A plan that cannot be executed, with all mistakes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct PlanError {
    /// At least one mistake, in the order of the files.
    pub mistakes: Vec<PlanMistake>,
}

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlanMistake {
    /// The file; absent for a setting of the command line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line number, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Column in characters, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// The line of the file, or the setting of the command line.
    pub quoted: String,
    /// What is wrong, and how to correct it.
    pub text: String,
}

/// Longer lines are cut in messages.
const MAX_QUOTE_CHARS: usize = 160;

impl PlanError {
    /// A file with these mistakes.
    #[must_use]
    pub fn of(mistakes: Mistakes, sources: &[Source]) -> Self {
        Self::new(mistakes.in_order(), sources)
    }

    pub(crate) fn new(mistakes: Vec<Mistake>, sources: &[Source]) -> Self {
        let lines: Vec<Vec<&str>> = sources.iter().map(|source| source.text.lines().collect()).collect();
        let locate = |mistake: Mistake| match mistake.place {
            SourcePosition::Override(typed) => {
                PlanMistake { file: None, line: None, column: None, quoted: typed, text: mistake.text }
            }
            SourcePosition::File { file, line, column } => {
                let source = sources.get(file);
                let quoted = lines.get(file).and_then(|lines| lines.get(line.saturating_sub(1)).copied());
                PlanMistake {
                    file: source.map(|source| source.name.clone()),
                    line: Some(line),
                    column: Some(column),
                    quoted: quoted.unwrap_or_default().chars().take(MAX_QUOTE_CHARS).collect(),
                    text: mistake.text,
                }
            }
        };
        Self { mistakes: mistakes.into_iter().map(locate).collect() }
    }
}

impl fmt::Display for PlanError {
    /// Three lines per mistake: `FILE:LINE:COLUMN: text`, the line, and a mark below the column.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, mistake) in self.mistakes.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            match (&mistake.file, mistake.line, mistake.column) {
                (Some(file), Some(line), Some(column)) => {
                    let quoted = mistake.quoted.replace(|c: char| c.is_control(), " ");
                    write!(f, "{file}:{line}:{column}: {}", mistake.text)?;
                    if column <= MAX_QUOTE_CHARS && !quoted.trim().is_empty() {
                        write!(f, "\n    {}\n    {}^", quoted.trim_end(), " ".repeat(column - 1))?;
                    }
                }
                _ => write!(f, "--set {}: {}", mistake.quoted, mistake.text)?,
            }
        }
        Ok(())
    }
}
