//! V99: none of the rules explains the figure.

use linerate_model::{Cause, Ceiling, Confidence, Finding};

use crate::evidence::Evidence;
use crate::{ladder, phrase};

pub(crate) fn finding(evidence: &Evidence, ceilings: &[Ceiling]) -> Finding {
    let mut text = "None of the rules explains this rate.".to_owned();
    let listed: Vec<String> = ceilings
        .iter()
        .map(|ceiling| format!("{} {}", ceiling.limit, phrase::rate(ceiling.bitrate_bps)))
        .collect();
    if !listed.is_empty() {
        text = format!("{text} The ceilings are: {}.", listed.join(", "));
    }
    let mut numbers: std::collections::BTreeMap<String, f64> = ceilings
        .iter()
        .map(|ceiling| (format!("{}_ceiling_bps", ceiling.limit), ceiling.bitrate_bps))
        .collect();
    if let Some(goodput) = evidence.outcome.goodput_bps.filter(|rate| rate.is_finite()) {
        numbers.insert("goodput_bps".to_owned(), goodput);
    }
    let remedy = ladder::binding(ceilings)
        .map(|lowest| format!("Look first at the lowest ceiling: {} ({}).", lowest.limit, lowest.because));
    Finding {
        cause: Cause::Unknown,
        rule: "V99".to_owned(),
        confidence: Confidence::Unexplained,
        share_of_time: None,
        text,
        evidence: numbers,
        remedy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::examples::full_gigabit;

    #[test]
    fn every_ceiling_is_listed() {
        let evidence = full_gigabit();
        let found = finding(&evidence, &ladder::ladder(&evidence));
        assert!(found.text.contains("link 941.5 Mb/s"), "{}", found.text);
        assert!(found.evidence.contains_key("cpu_sender_ceiling_bps"));
        assert!(found.evidence.contains_key("goodput_bps"));
    }
}
