//! Properties of every file.

use proptest::prelude::*;

use super::*;
use crate::topology::{check, direction_keys};

/// Lines of which random files are composed, valid and invalid ones, so that the files get past the parser.
fn line() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec![
        "rate",
        "buffer",
        "mtu",
        "too_big",
        "delay",
        "loss",
        "loss_every",
        "loss_times",
        "loss_burst",
        "red_min",
        "discipline",
        "ends",
        "members",
        "hash",
        "from",
        "from.a.loss",
        "address",
        "sysctl",
        "alpha",
        "sharing",
        "x",
    ]);
    let value = prop::sample::select(vec![
        "1",
        "-1",
        "0",
        "1e300",
        "\"1G\"",
        "\"red\"",
        "\"$p\"",
        "[\"a\", \"s\"]",
        "[\"a\", \"a\"]",
        "[]",
        "[1, [2]]",
        "{ to_bad = 1 }",
        "true",
        "1979-05-27",
        "\"ü\"",
        "nan",
        "0xffffffffffffffffff",
        "{ a = { mtu = 9000 } }",
    ]);
    let header = prop::sample::select(vec![
        "[host.a]",
        "[host.b]",
        "[switch.s]",
        "[switch.t]",
        "[link.a]",
        "[link.b]",
        "[link.a.from.a]",
        "[parameters]",
        "[[link]]",
        "[host]",
        "seed = 5",
        "name = \"n\"",
        "p = \"1G\"",
    ]);
    prop_oneof![2 => (key, value).prop_map(|(key, value)| format!("{key} = {value}")), 1 => header.prop_map(str::to_owned)]
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".*", typed in "[a-z.]{0,20}=.*") {
        let settings: Vec<Override> = typed.parse().into_iter().collect();
        let _ = read(&text, "net.toml", &settings);
    }

    #[test]
    fn no_file_makes_it_panic_and_every_mistake_has_a_place_in_it(
        lines in prop::collection::vec(line(), 0..25),
        typed in prop::collection::vec(("(link|host|switch)\\.(a|s)\\.(from\\.)?[a-z_]{1,8}", line()), 0..3),
    ) {
        let text = lines.join("\n");
        let settings: Vec<Override> =
            typed.iter().filter_map(|(path, value)| format!("{path}={value}").parse().ok()).collect();
        if let Err(error) = read(&text, "net.toml", &settings) {
            prop_assert!(!error.mistakes.is_empty());
            for mistake in &error.mistakes {
                if let SourcePosition::File { line, column, .. } = mistake.place {
                    let length = text.split('\n').nth(line - 1).map(|line| line.chars().count());
                    prop_assert!(length.is_some_and(|length| column <= length + 1), "{mistake:?} in\n{text}");
                }
            }
        }
    }

    #[test]
    fn no_change_makes_a_direction_that_a_file_could_not_have(
        changes in prop::collection::vec((prop::sample::select(direction_keys::WAY.iter().map(|key| key.name).collect::<Vec<_>>()),
            prop::sample::select(vec!["0", "1", "0.5", "5000", "1M", "none", "red", "codel", "tail-drop", "true", "1s,2s", "9ms"])), 0..20)
    ) {
        let mut direction = LinkDirection::default();
        for (key, value) in changes {
            let before = direction.clone();
            if change_direction(&mut direction, [(key, value)]).is_err() {
                prop_assert_eq!(&direction, &before);
            }
            prop_assert!(check::direction_faults(&direction).is_empty());
        }
    }
}
