//! Disturbances of the measurement itself.

use std::time::Duration;

use linerate_model::Rule;

use super::super::case::{PAIR, PLAIN, PlantedAction, PlantedCase};

pub(super) const CASES: &[PlantedCase] = &[
    PlantedCase {
        rule: Rule::Impossible,
        name: "a link that is stated ten times too slow",
        planted: PLAIN.args(&["--link", "100M"]).right(&[Rule::Impossible]),
        control: PLAIN.args(&["--link", "1G"]).right(&[Rule::LinkFull]),
        alone: true,
        ..PAIR
    },
    PlantedCase {
        rule: Rule::Disturbed,
        name: "a client that is paused",
        set: &["link.b.rate=100M"],
        planted: PLAIN
            .actions(&[PlantedAction::Pause {
                after: Duration::from_millis(2200),
                length: Duration::from_millis(700),
            }])
            .right(&[Rule::Disturbed]),
        control: PLAIN.right(&[Rule::LinkFull]),
        ..PAIR
    },
    PlantedCase {
        rule: Rule::TooShort,
        name: "three round trips",
        set: &["link.b.delay=50ms", "link.b.rate=50M"],
        args: &["-C", "cubic"],
        planted: PLAIN.args(&["-t", "0.3"]).right(&[Rule::TooShort]),
        control: PLAIN.args(&["-t", "5", "-O", "1"]).right(&[Rule::LinkFull]),
        ..PAIR
    },
];
