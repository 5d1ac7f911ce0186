//! Properties of the expansion of any plan.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{plan, try_plan};
use crate::MAX_POINTS;

/// A plan with axes of these lengths over independent knobs.
fn axes(lengths: &[usize]) -> String {
    let knobs = ["window", "streams", "interval", "source_port", "affinity"];
    let mut text = String::new();
    for (knob, length) in knobs.iter().zip(lengths) {
        let values: Vec<String> = (1..=*length).map(|value| (value * 10).to_string()).collect();
        text.push_str(&format!("axis.{knob} = [{}]\n", values.join(", ")));
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn there_are_as_many_points_as_combinations_and_each_is_another(lengths in prop::collection::vec(1_usize..5, 0..5)) {
        let plan = plan(&axes(&lengths));
        prop_assert_eq!(plan.grid.len(), lengths.iter().product::<usize>());
        let ids: BTreeSet<_> = (0..plan.grid.len()).map(|number| plan.point(number).unwrap().id).collect();
        prop_assert_eq!(ids.len(), plan.grid.len());
        for number in 0..plan.grid.len() {
            prop_assert_eq!(plan.grid.find(&plan.grid.choice(number).unwrap()), Some(number));
        }
        prop_assert_eq!(plan.grid.choice(plan.grid.len()), None);
    }

    #[test]
    fn what_is_excluded_is_gone_and_nothing_else(
        lengths in prop::collection::vec(2_usize..5, 2..4), at in prop::collection::vec(0_usize..9, 4),
    ) {
        let (first, second) = ((at[0] % lengths[0] + 1) * 10, (at[1] % lengths[1] + 1) * 10);
        let text = axes(&lengths);
        let all = plan(&text);
        let rest = plan(&format!("exclude = [{{ window = {first}, streams = {second} }}]\n{text}"));
        let others = lengths.iter().skip(2).product::<usize>();
        prop_assert_eq!(rest.grid.len(), all.grid.len() - others);
        for number in 0..rest.grid.len() {
            let point = rest.point(number).unwrap();
            let is = |axis: &str, value: usize| point.values.contains(&(axis.to_owned(), value.to_string()));
            prop_assert!(!(is("window", first) && is("streams", second)));
        }
    }

    #[test]
    fn axes_in_a_zip_advance_together(length in 1_usize..6, other in 1_usize..4) {
        let text = axes(&[length, other, length]);
        let plan = plan(&format!("zip = [[\"window\", \"interval\"]]\n{text}"));
        prop_assert_eq!(plan.grid.len(), length * other);
        for number in 0..plan.grid.len() {
            let choice = plan.grid.choice(number).unwrap();
            prop_assert_eq!(choice[0], choice[2]);
        }
        // A combination that is not in the zip is no point.
        prop_assert_eq!(plan.grid.find(&[0, 0, length]), None);
    }

    #[test]
    fn names_of_points_stay_when_axes_and_values_move(length in 2_usize..5, other in 1_usize..4) {
        let names = |text: &str| -> BTreeSet<String> {
            let plan = plan(text);
            (0..plan.grid.len()).map(|number| plan.point(number).unwrap().id.to_string()).collect()
        };
        let forth = names(&axes(&[length, other]));
        let values = |length: usize| (1..=length).rev().map(|value| (value * 10).to_string()).collect::<Vec<_>>().join(", ");
        let back = format!("axis.streams = [{}]\naxis.window = [{}]\n", values(other), values(length));
        prop_assert_eq!(&forth, &names(&back));
        let more = names(&axes(&[length + 1, other]));
        prop_assert!(more.is_superset(&forth) && more.len() == forth.len() + other);
    }

    #[test]
    fn no_text_makes_it_panic(lines in prop::collection::vec(
        "(\\[(axis|flow|test|lab|host)(\\.[a-z]{1,3})?\\]|(window|streams|zip|exclude|assert|from|to|points|pass|key|include) = ([0-9]{1,9}|\"[a-z<>=. 0-9()]{0,12}\"|\\[[0-9, \"a-z]{0,12}\\]))", 0..14,
    )) {
        let _ = try_plan(&lines.join("\n"), &["test.window=1M", "axis.a=1,2"]);
    }
}

/// The values of a range: exact, end included, in equal steps or ratios.
#[test]
fn ranges_have_the_values_that_they_say() {
    let labels = |range: &str| -> Vec<String> {
        let plan = plan(&format!("axis.length = {{ {range} }}"));
        plan.axes[0].values.iter().map(|value| value.label.clone()).collect()
    };
    assert_eq!(labels("from = \"1K\", to = \"64K\", factor = 4"), ["1KiB", "4KiB", "16KiB", "64KiB"]);
    assert_eq!(labels("from = 1000, to = 1900, step = 300"), ["1000B", "1300B", "1600B", "1900B"]);
    assert_eq!(labels("from = 10, to = 1000, points = 3"), ["10B", "100B", "1000B"]);
    assert_eq!(
        labels("from = 1, to = 3, points = 9"),
        ["1B", "2B", "3B"],
        "rounded neighbours are one value"
    );
    let rates = plan("axis.rate = { from = \"1M\", to = \"1G\", points = 4 }");
    let shown: Vec<String> = rates.axes[0].values.iter().map(|value| value.label.clone()).collect();
    assert_eq!(shown, ["1Mb/s", "10Mb/s", "100Mb/s", "1Gb/s"]);
    let until = plan("axis.until = { from = \"1%\", to = \"3%\", step = \"1%\" }");
    assert_eq!(until.axes[0].values.len(), 3);
    // 0.1 + 2 x 0.1 is a little more than 0.3 in binary.
    let tenths = plan("axis.until = { from = 0.1, to = 0.3, step = 0.1 }");
    let shown: Vec<String> = tenths.axes[0].values.iter().map(|value| value.label.clone()).collect();
    assert_eq!(shown, ["0.1", "0.2", "0.3"], "the end is not lost");
}

#[test]
fn ten_million_points_are_refused_before_they_are_made() {
    let many = |knob: &str| format!("axis.{knob} = {{ from = 1, to = 1000, step = 1 }}\n");
    let error =
        try_plan(&(many("window") + &many("length") + &many("streams")), &[]).unwrap_err().to_string();
    assert!(
        error.contains("1000000000 points (1000 of window x 1000 of length x 1000 of streams)"),
        "{error}"
    );
    assert!(error.contains(&MAX_POINTS.to_string()), "{error}");
    let long = try_plan("axis.window = { from = 0, to = 10000000, step = 1 }", &[]).unwrap_err().to_string();
    assert!(long.contains("more than 1000 values"), "{long}");
    let often = format!("repeats = 1000\n{}", many("window"));
    assert!(try_plan(&often, &[]).unwrap_err().to_string().contains("1000000 trials"));
}

#[test]
fn deep_nesting_is_a_mistake_and_no_crash() {
    let lists = format!("assert = {}{}", "[".repeat(5000), "]".repeat(5000));
    assert!(try_plan(&lists, &[]).is_err());
    let parentheses = format!("assert = [\"{}goodput{} > 1\"]", "(".repeat(400), ")".repeat(400));
    assert!(
        try_plan(&parentheses, &[]).unwrap_err().to_string().contains("parentheses nested deeper than 32")
    );
    let sum = format!("assert = [\"goodput {}> 1\"]", "+ goodput ".repeat(90));
    assert!(try_plan(&sum, &[]).is_ok());
    let keys = format!("{} = 1", vec!["a"; 3000].join("."));
    assert!(try_plan(&keys, &[]).is_err());
    let typed = format!("{}=1", vec!["lab"; 3000].join("."));
    assert!(try_plan("", &[&typed]).is_err());
}
