//! The table of causes: every rule of the decision table, each with a control.
//!
//! Not included: V00 and V02, which need no fault beyond a stated rate and a full link, and V99, the absence of
//! the others.

mod evidence;
mod hosts;
mod path;
mod queues;

use super::case::Case;

/// In the order of the decision table.
pub(super) fn all() -> impl Iterator<Item = &'static Case> {
    [evidence::CASES, hosts::CASES, path::CASES, queues::CASES].into_iter().flatten()
}

/// Buffers large enough for a long path, so that they are not the limit.
const LARGE_SEND: &str = "host.a.sysctl.ipv4.tcp_wmem=4096 16384 33554432";
/// The same at the other end.
const LARGE_RECEIVE: &str = "host.b.sysctl.ipv4.tcp_rmem=4096 131072 67108864";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_rule_with_a_file_has_a_case() {
        let rules: BTreeSet<&str> = all().map(|case| case.rule).collect();
        let folder = crate::tree::root().unwrap().join("crates/theory/src/rules");
        let mut named = BTreeSet::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            let first = text.lines().next().unwrap_or_default().to_owned();
            let rule =
                first.strip_prefix("//! V").and_then(|rest| rest.get(..2)).map(|number| format!("V{number}"));
            named.extend(rule.filter(|rule| rule != "V99"));
        }
        assert!(named.len() > 20, "{named:?}");
        let missing: Vec<&String> = named.iter().filter(|rule| !rules.contains(rule.as_str())).collect();
        assert!(missing.is_empty(), "no case plants {missing:?}");
    }

    #[test]
    fn a_case_expects_its_rule_and_its_control_does_not() {
        for case in all() {
            assert!(case.planted.right.contains(&case.rule), "{} {}", case.rule, case.name);
            assert!(!case.control.right.contains(&case.rule), "{} {}", case.rule, case.name);
            assert!(!case.control.right.is_empty(), "{} {}", case.rule, case.name);
        }
        let names: BTreeSet<(&str, &str)> = all().map(|case| (case.rule, case.name)).collect();
        assert_eq!(names.len(), all().count());
    }
}
