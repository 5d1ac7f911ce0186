//! Settings of an agent's host that a coordinator has changed for a while: what is asked, and what is answered.

use linerate_model::ForeignText;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Most settings of one request.
pub const MAX_SETTINGS: usize = 64;

/// What a coordinator wants to hold on an agent's host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SettingsOrder {
    /// The interface that is meant; absent for that of the way to the hosts of `towards`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<ForeignText>,
    /// Names or addresses of the hosts that this one measures with, as it reaches them; none for the coordinator's own.
    pub towards: Vec<ForeignText>,
    /// Names and values of settings, as plans write them.
    pub values: BTreeMap<ForeignText, ForeignText>,
}

/// What shall be done about settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingsRequest {
    /// Look whether they could be set, and change nothing.
    Check(Box<SettingsOrder>),
    /// Set exactly these: what was set for this coordinator before and is not among them is put back.
    Apply(Box<SettingsOrder>),
    /// Put back all that was set for this coordinator.
    Restore,
}

/// What became of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SettingsAnswer {
    /// All that is set for this coordinator now.
    pub in_force: Vec<SettingInForce>,
    /// What stood in the way, with the remedy. Where there is any after [`SettingsRequest::Apply`], nothing is in force.
    pub troubles: Vec<ForeignText>,
}

/// A setting that is in force.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SettingInForce {
    /// Its name, as plans write it.
    pub setting: ForeignText,
    /// The interface that it is of; absent for one of the whole host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<ForeignText>,
    /// What was there and will be put back, in the agent's words.
    pub found: ForeignText,
    /// What is there now, in the agent's words.
    pub now: ForeignText,
}
