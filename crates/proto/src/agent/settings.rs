//! Temporary settings of an agent's host: requests and answers.

use linerate_model::ForeignText;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Most settings of one request.
pub const MAX_SETTINGS: usize = 64;

/// The settings that a coordinator requests for an agent's host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SettingsOrder {
    /// The interface; absent for the one on the route to the hosts of `towards`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<ForeignText>,
    /// Names or addresses of the hosts with which this one measures, as it reaches them. If empty, the
    /// interface of the connection to the coordinator is used.
    pub towards: Vec<ForeignText>,
    /// Names and values of settings, as plans write them.
    pub values: BTreeMap<ForeignText, ForeignText>,
}

/// A request about settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingsRequest {
    /// Check whether the settings could be applied, without changing anything.
    Check(Box<SettingsOrder>),
    /// Apply exactly these settings; earlier settings of this coordinator that are not among them are restored.
    Apply(Box<SettingsOrder>),
    /// Restore all settings of this coordinator.
    Restore,
}

/// The answer to a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SettingsAnswer {
    /// All settings that are now in force for this coordinator.
    pub in_force: Vec<SettingInForce>,
    /// The errors, with remedies. If there are any after [`SettingsRequest::Apply`], nothing is in force.
    pub troubles: Vec<ForeignText>,
}

/// A setting that is in force.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SettingInForce {
    /// Name of the setting, as in plans.
    pub setting: ForeignText,
    /// Its interface; absent for a setting of the whole host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<ForeignText>,
    /// The original value, which will be restored, as the agent formats it.
    pub found: ForeignText,
    /// The current value, as the agent formats it.
    pub now: ForeignText,
}
