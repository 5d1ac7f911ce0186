//! Symbolic links to this program with the names of the tools that it replaces.

use std::io::{self, ErrorKind};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Why no links were created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolLinksError {
    /// The path of this program is not known.
    #[error("this program cannot find its own executable: {0}")]
    Program(io::Error),
    /// The folder is missing and cannot be created.
    #[error("the folder {} cannot be created: {source}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Creates a link for each name in a folder, which is created if it is missing. Returns a line for each link that is
/// there then, or why there is none.
///
/// # Errors
/// None can be created.
pub fn create_tool_links(
    folder: &Path,
    names: &[&str],
) -> Result<Vec<Result<String, String>>, ToolLinksError> {
    let program = std::env::current_exe().map_err(ToolLinksError::Program)?;
    // A folder that is missing is made, as install(1) -D does it; one error about it says more than one a link.
    std::fs::create_dir_all(folder)
        .map_err(|source| ToolLinksError::Folder { folder: folder.to_owned(), source })?;
    let links = names.iter().map(|name| folder.join(name));
    Ok(links.map(|link| create_link(&program, &link)).collect())
}

/// Creates one link. Never replaces another file.
fn create_link(program: &Path, link: &Path) -> Result<String, String> {
    match symlink(program, link) {
        Ok(()) => Ok(format!("{} -> {}", link.display(), program.display())),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            if std::fs::read_link(link).is_ok_and(|target| target == program) {
                return Ok(format!("{} already exists", link.display()));
            }
            Err(format!(
                "{} exists and was not created by linerate; move it away, or name another folder",
                link.display()
            ))
        }
        Err(error) => Err(format!("{} cannot be created: {error}", link.display())),
    }
}
