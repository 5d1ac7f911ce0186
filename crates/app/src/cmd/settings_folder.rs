//! Location of the undo journals of agents.

use std::path::PathBuf;

use clap::Args;
use linerate_lab::run_dir;

/// The folder of undo journals.
#[derive(Debug, Args)]
pub(crate) struct RunFolder {
    /// Folder for undo journals [default: /run/linerate, or linerate in the user's runtime directory]
    #[arg(long, value_name = "FOLDER", env = "LINERATE_RUN", hide = true)]
    run_dir: Option<PathBuf>,
}

impl RunFolder {
    /// The folder of the journals; absent if this user has none that is protected from others.
    pub(crate) fn settings(&self) -> Option<PathBuf> {
        let folder = self.run_dir.clone().or_else(|| run_dir().ok())?;
        Some(folder.join("settings"))
    }
}
