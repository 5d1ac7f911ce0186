//! Programs of others in the Python environment of `scripts/python-peers.sh`.

use std::path::Path;
use std::process::Command;

use super::skipped::skipped;

/// The environment.
const PLACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/peers/python");

/// Whether they are installed; otherwise the test is skipped.
pub(crate) fn has_python_peers(test: &str) -> bool {
    let installed = Path::new(PLACE).join("installed.txt").is_file();
    if !installed {
        skipped(test, "scripts/python-peers.sh");
    }
    installed
}

/// One of them.
pub(crate) fn python_peer(name: &str) -> Command {
    Command::new(format!("{PLACE}/bin/{name}"))
}
