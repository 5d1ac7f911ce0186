//! Plans and topologies: bundled ones, and files.

use std::io;
use std::path::Path;

use linerate_plan::{Bundled, Source, hint};

/// A plan or topology that is neither bundled nor a file that can be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The name looks like that of a bundled one.
    #[error(
        "there is no bundled {kind} '{name}', and no file of that name can be read ({error}){}",
        hint(name, bundled.iter().copied())
    )]
    NotBundled {
        /// What was looked for: "plan" or "topology".
        kind: &'static str,
        /// Its name.
        name: String,
        /// The bundled ones.
        bundled: Vec<&'static str>,
        /// Error of the operating system.
        error: io::Error,
    },
    /// The name looks like that of a file.
    #[error("the {kind} file {name} cannot be read: {error}")]
    Unreadable {
        /// What was looked for: "plan" or "topology".
        kind: &'static str,
        /// The file.
        name: String,
        /// Error of the operating system.
        error: io::Error,
    },
}

/// The bundled plan with this name, or the file of this name.
///
/// # Errors
/// There is neither.
pub fn find_plan(name: &str) -> Result<Source, FileError> {
    find("plan", linerate_plan::bundled(), name)
}

/// The bundled topology with this name, or the file of this name.
///
/// # Errors
/// There is neither.
pub fn find_topology(name: &str) -> Result<Source, FileError> {
    find("topology", linerate_emu::topology::bundled(), name)
}

fn find(kind: &'static str, bundled: &'static [Bundled], name: &str) -> Result<Source, FileError> {
    if let Some(known) = bundled.iter().find(|known| known.name == name) {
        return Ok(Source { name: format!("{name} (bundled)"), text: known.text.to_owned() });
    }
    std::fs::read_to_string(name).map(|text| Source { name: name.to_owned(), text }).map_err(|error| {
        let name = name.to_owned();
        match Path::new(&name).extension().is_none() && !name.contains('/') {
            true => {
                let bundled = bundled.iter().map(|known| known.name).collect();
                FileError::NotBundled { kind, name, bundled, error }
            }
            false => FileError::Unreadable { kind, name, error },
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_or_topology_is_one_that_comes_along_or_a_file() {
        assert!(find_topology("pair").unwrap().text.contains("[link."));
        let unknown = find_topology("piar").unwrap_err().to_string();
        assert!(
            unknown.contains("no bundled topology") && unknown.ends_with("did you mean 'pair'?"),
            "{unknown}"
        );
        assert!(find_plan("swich-buffer").unwrap_err().to_string().contains("did you mean 'switch-buffer'?"));
        assert!(find_plan("sweep").unwrap_err().to_string().contains("known are window-sweep, "));
        for error in [find_plan("./no/such.toml"), find_topology("./no/such.toml")] {
            assert!(error.unwrap_err().to_string().contains("cannot be read"));
        }
    }
}
