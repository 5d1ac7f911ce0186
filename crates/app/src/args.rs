//! Arguments that several commands share.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use linerate_lab::{LabResourceError, StateDir, run_dir};
use linerate_report::{FORMATS, Format};

/// A report format by its name.
pub(crate) fn format_name() -> impl TypedValueParser<Value = Format> {
    let names = FORMATS.iter().map(|row| PossibleValue::new(row.name).help(row.help));
    PossibleValuesParser::new(names).map(|name| Format::named(&name).unwrap_or_default())
}

/// The folder of this user's labs and undo journals.
#[derive(Debug, Args)]
pub(crate) struct RunFolder {
    /// Folder for the state of labs and for undo journals [default: /run/linerate, or linerate in the user's runtime
    /// directory]
    #[arg(long, value_name = "FOLDER", env = "LINERATE_RUN", hide = true)]
    pub(crate) run_dir: Option<PathBuf>,
}

impl RunFolder {
    /// The folder of the journals of host settings, if this user has one that is protected from others.
    pub(crate) fn settings(&self) -> Result<PathBuf, LabResourceError> {
        let folder = self.run_dir.clone().map_or_else(run_dir, Ok)?;
        Ok(folder.join("settings"))
    }

    /// The state of the labs.
    pub(crate) fn open(&self) -> Result<StateDir, LabResourceError> {
        StateDir::open(self.run_dir.as_deref())
    }
}
