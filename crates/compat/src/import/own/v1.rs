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
    fn results_of_version_1_are_read() {
        let sampled = include_str!("../../../../../fixtures/v1/result.json");
        let unsampled = include_str!("../../../../../fixtures/v1/result-no-sampling.json");
        for (text, no_sampling, bytes) in
            [(sampled, false, 2_599_481_995.0), (unsampled, true, 2_219_297_112.0)]
        {
            let found = read(text, None).unwrap();
            let test = &found[0].tests[0];
            assert_eq!(test.spec.host.no_sampling, no_sampling);
            let received = test.claims.iter().find(|claim| claim.side == Some(Side::Receiver)).unwrap();
            let counted = received.figures.iter().find(|figure| figure.quantity == Quantity::Bytes).unwrap();
            assert_eq!(counted.value, bytes);
        }
    }
}
