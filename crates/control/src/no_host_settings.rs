//! In place of `host_settings` on systems other than Linux, where no setting of the host is changed.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use linerate_model::ForeignText;

use crate::error::ControlError;
use crate::restored::{Guardians, Leftovers, Restored};

const WHY: &str =
    "settings of the host can be changed only on Linux; leave them out, or use a host with Linux";

/// The settings that an agent can apply and restore: none.
pub const SETTINGS: [&str; 0] = [];

/// What an agent left changed: nothing.
///
/// # Errors
/// None.
pub const fn leftovers(_folder: &Path) -> Result<Option<Leftovers>, ControlError> {
    Ok(None)
}

/// Restores what an agent left changed: nothing.
///
/// # Errors
/// None.
pub fn restore_leftovers(_folder: &Path) -> Result<Restored, ControlError> {
    Ok(Restored::default())
}

/// A setting: it has no value.
#[derive(Debug)]
pub(crate) enum NoSetting {}

impl NoSetting {
    pub(crate) const fn name(&self) -> &'static str {
        match *self {}
    }
}

/// Requested settings.
pub(crate) type SettingRequests = Vec<NoSetting>;

/// The settings that this process has changed: it has no value.
#[derive(Debug)]
pub(crate) struct Changes(Infallible);

impl Changes {
    /// Begins to change settings.
    ///
    /// # Errors
    /// Always.
    pub(crate) fn begin(_folder: &Path) -> Result<(Self, Restored), String> {
        Err(WHY.to_owned())
    }

    pub(crate) fn guarded_by(self, _guardians: Option<Arc<dyn Guardians>>) -> Self {
        match self.0 {}
    }

    pub(crate) fn apply(&mut self, _requested: &[NoSetting]) -> Result<(), Vec<String>> {
        match self.0 {}
    }

    pub(crate) fn finish(self) -> Restored {
        match self.0 {}
    }

    pub(crate) fn in_force(&self) -> impl Iterator<Item = (NoSetting, Option<&str>, String, String)> {
        std::iter::empty()
    }
}

/// Checks requested settings.
///
/// # Errors
/// Any setting.
pub(crate) fn check(
    values: &BTreeMap<ForeignText, ForeignText>,
    _interface: impl FnOnce() -> Result<String, String>,
) -> Result<SettingRequests, Vec<String>> {
    if values.is_empty() { Ok(Vec::new()) } else { Err(vec![WHY.to_owned()]) }
}
