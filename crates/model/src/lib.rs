//! The nouns of a measurement: specification, event, metric, caveat, finding.
