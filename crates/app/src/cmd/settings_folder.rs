//! Where agents keep the undo journal of settings of their host.

use std::path::PathBuf;

use clap::Args;
use linerate_lab::run_dir;

/// The folder of what must not be forgotten while it lasts.
#[derive(Debug, Args)]
pub(crate) struct RunFolder {
    /// Folder for what is to be put back [default: /run/linerate, or linerate in the user's run-time folder]
    #[arg(long, value_name = "FOLDER", env = "LINERATE_RUN", hide = true)]
    run_dir: Option<PathBuf>,
}

impl RunFolder {
    /// That of the journals; absent where this user has none that is safe from others.
    pub(crate) fn settings(&self) -> Option<PathBuf> {
        let folder = self.run_dir.clone().or_else(|| run_dir().ok())?;
        Some(folder.join("settings"))
    }
}
