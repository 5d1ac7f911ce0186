//! What a check of a host found: its settings and facts, judged.

use linerate_units::{Bitrate, Bytes, Span};
use serde::Serialize;

use crate::calibration::Calibration;

/// Everything that a check of a host found.
#[derive(Debug, Clone, PartialEq)]
pub struct HostCheckup {
    /// The path that one flow of the host should fill.
    pub judged_for: JudgedPath,
    /// The checks, by topic.
    pub sections: Vec<CheckSection>,
    /// Features of its kernel.
    pub features: Vec<KernelFeature>,
    /// Its calibration; absent if it has none.
    pub calibration: Option<Box<Calibration>>,
}

impl HostCheckup {
    /// Every check.
    pub fn checks(&self) -> impl Iterator<Item = &HostCheck> {
        self.sections.iter().flat_map(|section| &section.checks)
    }
}

/// The path that settings are judged for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JudgedPath {
    /// Rate of one flow.
    pub rate: Bitrate,
    /// Round-trip time.
    pub rtt: Span,
    /// Bandwidth-delay product; absent on overflow.
    pub bdp: Option<Bytes>,
}

/// A feature that a kernel may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelFeature {
    /// Name, in the kernel's terms.
    pub name: String,
    /// Whether this process can use it now.
    pub available: bool,
    /// Additional information: a length, a list, or why it is missing.
    pub detail: Option<String>,
}

/// Judgement of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckStatus {
    /// As it should be.
    Good,
    /// Worth knowing: it may weaken a result or limit a special test.
    Note,
    /// It limits or falsifies results on the judged path.
    Bad,
}

impl CheckStatus {
    /// The name used in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Note => "note",
            Self::Bad => "bad",
        }
    }
}

/// One setting or fact, judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostCheck {
    /// Name of the sysctl, or a dotted name that starts with the interface. Stable.
    pub id: String,
    /// Judgement.
    pub status: CheckStatus,
    /// The value found.
    pub value: String,
    /// Why it matters.
    pub text: String,
    /// A command that fixes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl HostCheck {
    /// A good setting, and why it matters.
    #[must_use]
    pub fn good(id: impl Into<String>, value: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            status: CheckStatus::Good,
            value: value.into(),
            text: text.into(),
            remedy: None,
        }
    }

    /// The same check with another judgement, and the reason for it.
    #[must_use]
    pub fn judged(self, status: CheckStatus, text: impl Into<String>) -> Self {
        Self { status, text: text.into(), ..self }
    }

    /// The same check with a command that fixes it.
    #[must_use]
    pub fn with_remedy(self, command: impl Into<String>) -> Self {
        Self { remedy: Some(command.into()), ..self }
    }
}

/// Checks under one heading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckSection {
    /// The heading.
    pub title: String,
    /// What was checked.
    pub checks: Vec<HostCheck>,
}
