//! The form of a check: one setting or fact, judged.

use serde::Serialize;

/// Judgement of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    /// As it should be.
    Good,
    /// Worth knowing: it may weaken a result or limit a special test.
    Note,
    /// It limits or falsifies results on the judged path.
    Bad,
}

impl Status {
    /// The word in tables.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Note => "note",
            Self::Bad => "bad",
        }
    }
}

/// One setting or fact, judged.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Check {
    /// Name of the sysctl, or a dotted name that starts with the interface. Stable.
    pub(super) id: String,
    /// Judgement.
    pub(super) status: Status,
    /// The value found.
    pub(super) value: String,
    /// Why it matters.
    pub(super) text: String,
    /// A command that fixes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) remedy: Option<String>,
}

impl Check {
    /// A good setting, and why it matters.
    pub(super) fn good(id: impl Into<String>, value: impl Into<String>, text: impl Into<String>) -> Self {
        Self { id: id.into(), status: Status::Good, value: value.into(), text: text.into(), remedy: None }
    }

    /// The same check with another judgement.
    pub(super) fn but(self, status: Status, text: impl Into<String>) -> Self {
        Self { status, text: text.into(), ..self }
    }

    /// The same check with a command that fixes it.
    pub(super) fn remedy(self, command: impl Into<String>) -> Self {
        Self { remedy: Some(command.into()), ..self }
    }
}

/// Checks under one heading.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Section {
    /// The heading.
    pub(super) title: String,
    /// What was checked.
    pub(super) checks: Vec<Check>,
}
