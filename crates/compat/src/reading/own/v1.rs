//! Version 1 of the result document, and what its names are now: those of them that a reader uses.

use linerate_model::upgrade::{self, Rename};
use serde_json::Value;

const RENAMES: &[Rename] = &[upgrade::key("run.spec.host", "unwatched", "no_sampling")];

/// Brings a result document to this version.
pub(super) fn upgrade(document: &mut Value) {
    upgrade::upgrade(document, RENAMES);
}
