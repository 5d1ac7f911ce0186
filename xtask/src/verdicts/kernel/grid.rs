//! The tables of situations. Rates are 2 to 2,000 Mb/s, round-trip times 0.1 to 100 ms, tests mostly 3 s.

mod hosts;
mod losses;
mod shapers;

use linerate_model::Cause;

use super::situation::PathHost::East;
use super::situation::{Means, PLAIN, Situation};

/// All situations that may be used for tuning.
pub(super) fn all() -> impl Iterator<Item = &'static Situation> {
    [shapers::SITUATIONS, losses::SITUATIONS, hosts::SITUATIONS, losses::CONTROLS, hosts::CONTROLS]
        .into_iter()
        .flatten()
}

/// Only a bucket of 20 Mb/s.
const SHAPED_20M: Means = Means::Qdisc(East, "right", "root tbf rate 20mbit burst 16kb latency 50ms");

/// A shaper. Both ends cannot distinguish it from a slower link, which therefore must not be confirmed.
pub(super) const SHAPER: Situation =
    Situation { right: &[Cause::Shaper], unconfirmed: &[Cause::Link], ..PLAIN };

/// Only a shaper: every other cause would be wrong.
const CONTROL: Situation = Situation {
    right: &[Cause::Shaper, Cause::Unknown],
    unconfirmed: &[Cause::Link],
    forbidden_text: &["cabl", "raise net.", "packet loss"],
    control: true,
    ..PLAIN
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::held_out;
    use super::*;

    #[test]
    fn there_are_fifty_situations_twelve_controls_and_ten_kept_aside() {
        assert!(all().filter(|situation| !situation.control).count() >= 50);
        assert!(all().filter(|situation| situation.control).count() >= 12);
        assert_eq!(held_out::SITUATIONS.len(), 10);
    }

    #[test]
    fn every_situation_has_a_name_of_its_own_and_knows_what_is_right() {
        let names: BTreeSet<&str> =
            all().chain(held_out::SITUATIONS).map(|situation| situation.name).collect();
        assert_eq!(names.len(), all().count() + held_out::SITUATIONS.len());
        for situation in all().chain(held_out::SITUATIONS) {
            let causes = [situation.right, situation.unconfirmed, situation.secondary].concat();
            assert!(!causes.is_empty(), "{}", situation.name);
        }
    }

    #[test]
    fn filters_see_single_packets() {
        for situation in all().chain(held_out::SITUATIONS) {
            let has = |wanted: fn(&Means) -> bool| situation.means.iter().any(wanted);
            let filters = has(|means| matches!(means, Means::Filter(_) | Means::FilterBack(_)));
            assert!(!filters || has(|means| matches!(means, Means::SinglePackets)), "{}", situation.name);
        }
    }
}
