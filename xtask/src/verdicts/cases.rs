//! The table of causes: every rule of the decision table, each with a control.
//!
//! Not included: V00 and V02, which need no fault beyond a stated rate and a full link, V29, which needs a browser,
//! and V99, the absence of the others.

mod evidence;
mod hosts;
mod path;
mod queues;

use super::case::PlantedCase;

/// In the order of the decision table.
pub(super) fn all() -> impl Iterator<Item = &'static PlantedCase> {
    [evidence::CASES, hosts::CASES, path::CASES, queues::CASES].into_iter().flatten()
}

/// Buffers large enough for a long path, so that they are not the limit.
const LARGE_SEND: &str = "host.a.sysctl.ipv4.tcp_wmem=4096 16384 33554432";
/// The same at the other end.
const LARGE_RECEIVE: &str = "host.b.sysctl.ipv4.tcp_rmem=4096 131072 67108864";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use linerate_model::Rule;

    use super::*;

    #[test]
    fn every_rule_has_a_case_but_that_of_browsers_and_the_absence_of_the_others() {
        let planted: Vec<&Rule> = all().map(|case| &case.rule).collect();
        let missing: Vec<&Rule> = Rule::ALL.iter().filter(|rule| !planted.contains(rule)).collect();
        assert_eq!(missing, [&Rule::Browser, &Rule::Unexplained]);
    }

    #[test]
    fn a_case_expects_its_rule_and_its_control_does_not() {
        for case in all() {
            assert!(case.planted.right.contains(&case.rule), "{} {}", case.rule, case.name);
            assert!(!case.control.right.contains(&case.rule), "{} {}", case.rule, case.name);
            assert!(!case.control.right.is_empty(), "{} {}", case.rule, case.name);
        }
        let names: BTreeSet<(&str, &str)> = all().map(|case| (case.rule.name(), case.name)).collect();
        assert_eq!(names.len(), all().count());
    }
}
