//! Disturbances of the measurement itself.

use std::time::Duration;

use super::super::case::{Case, Deed, PAIR, PLAIN};

pub(super) const CASES: &[Case] = &[
    Case {
        rule: "V00",
        name: "a link that is stated ten times too slow",
        planted: PLAIN.args(&["--link", "100M"]).right(&["V00"]),
        control: PLAIN.args(&["--link", "1G"]).right(&["V02"]),
        alone: true,
        ..PAIR
    },
    Case {
        rule: "V26",
        name: "a client that is paused",
        set: &["link.b.rate=100M"],
        planted: PLAIN
            .actions(&[Deed::Pause {
                after: Duration::from_millis(2200),
                length: Duration::from_millis(700),
            }])
            .right(&["V26"]),
        control: PLAIN.right(&["V02"]),
        ..PAIR
    },
    Case {
        rule: "V01",
        name: "three round trips",
        set: &["link.b.delay=50ms", "link.b.rate=50M"],
        args: &["-C", "cubic"],
        planted: PLAIN.args(&["-t", "0.3"]).right(&["V01"]),
        control: PLAIN.args(&["-t", "5", "-O", "1"]).right(&["V02"]),
        ..PAIR
    },
];
