//! V26, as a remark: a hypervisor took processor time from a measuring host.

use linerate_model::{Cause, Confidence, Finding};

use super::Draft;
use crate::evidence::Evidence;
use crate::phrase;

/// Stolen share of the time that is worth a remark.
const STOLEN: f64 = 0.05;

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    let shares = [evidence.sender.steal_share, evidence.receiver.steal_share];
    let most = shares.into_iter().flatten().reduce(f64::max).filter(|share| *share > STOLEN)?;
    let text =
        format!("A hypervisor took {} of a host's time: the figure may be too low.", phrase::percent(most));
    Draft::new(Cause::Invalid, "V26", Confidence::Probable, text)
        .with("sender_steal_share", evidence.sender.steal_share)
        .with("receiver_steal_share", evidence.receiver.steal_share)
        .remedy("Repeat the test when the machine is quiet, or on hosts of its own.")
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::examples::full_gigabit;

    #[test]
    fn the_worse_host_counts() {
        let mut evidence = full_gigabit();
        evidence.sender.steal_share = Some(0.01);
        assert_eq!(rule(&evidence), None);
        evidence.receiver.steal_share = Some(0.2);
        assert!(rule(&evidence).unwrap().text.contains("20.0 %"));
    }
}
