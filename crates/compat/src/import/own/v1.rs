//! Version 1 of the result document, and what its names are now: those of them that a reader uses.

use linerate_model::upgrade::{self, Rename};
use serde_json::Value;

const RENAMES: &[Rename] = &[upgrade::key("run.spec.host", "unwatched", "no_sampling")];

/// Brings a result document to this version.
pub(super) fn upgrade(document: &mut Value) {
    upgrade::upgrade(document, RENAMES);
}

#[cfg(test)]
mod tests {
    use linerate_model::Side;
    use linerate_model::import::Quantity;

    use crate::import::read;

    #[test]
    fn a_result_of_version_1_is_read() {
        let text = include_str!("../../../../../fixtures/v1/result-no-sampling.json");
        let found = read(text, None).unwrap();
        let test = &found[0].tests[0];
        assert!(test.spec.host.no_sampling);
        let received = test.claims.iter().find(|claim| claim.side == Some(Side::Receiver)).unwrap();
        let bytes = received.figures.iter().find(|figure| figure.quantity == Quantity::Bytes).unwrap();
        assert_eq!(bytes.value, 2_219_297_112.0);
    }
}
