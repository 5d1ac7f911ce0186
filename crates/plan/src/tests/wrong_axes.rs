//! Keys of axes that have no effect are refused, and settings of the command line replace what they contradict.

use expect_test::expect;

use super::mistakes::wrong;
use super::{TestSurroundings, source, try_plan};
use crate::{Plan, read};

fn labels(plan: &Plan) -> Vec<&str> {
    plan.axes[0].values.iter().map(|value| value.label.as_str()).collect()
}

#[test]
fn a_range_next_to_a_list_of_values() {
    wrong(
        "[axis.window]\nvalues = [1000, 2000]\nfrom = 1\nto = \"1M\"\nstep = 5\nfactor = 2\npoints = 3",
        expect![[r#"
            plan.toml:3:8: axis.window.from: this does not apply to an axis with a list of values; remove it, or values
                from = 1
                       ^
            plan.toml:4:6: axis.window.to: this does not apply to an axis with a list of values; remove it, or values
                to = "1M"
                     ^
            plan.toml:5:8: axis.window.step: this does not apply to an axis with a list of values; remove it, or values
                step = 5
                       ^
            plan.toml:6:10: axis.window.factor: this does not apply to an axis with a list of values; remove it, or values
                factor = 2
                         ^
            plan.toml:7:10: axis.window.points: this does not apply to an axis with a list of values; remove it, or values
                points = 3
                         ^"#]],
    );
}

#[test]
fn a_search_without_its_condition() {
    wrong(
        "[axis.window]\nfrom = 1000\nto = 2000\npoints = 2\nresolution = \"2%\"\ndescend = \"10%\"\nconfirm = \"60s\"",
        expect![[r#"
            plan.toml:5:14: axis.window.resolution: this applies only to an axis that is searched; remove it, or add pass = "…"
                resolution = "2%"
                             ^
            plan.toml:6:11: axis.window.descend: this applies only to an axis that is searched; remove it, or add pass = "…"
                descend = "10%"
                          ^
            plan.toml:7:11: axis.window.confirm: this applies only to an axis that is searched; remove it, or add pass = "…"
                confirm = "60s"
                          ^"#]],
    );
}

#[test]
fn a_setting_of_a_range_does_not_apply_to_a_list() {
    for list in ["axis.length = [100, 200]", "axis.length = { values = [100, 200] }"] {
        let error = try_plan(list, &["axis.length.points=3"]).unwrap_err().to_string();
        expect!["--set axis.length.points=3: axis 'length' has a list of values and no range; give another list, as in axis.length=1,2,4"]
            .assert_eq(&error);
    }
}

#[test]
fn a_setting_replaces_what_it_contradicts() {
    let range = "axis.length = { from = 100, to = 400, step = 100 }";
    let with = |setting: &str| try_plan(range, &[setting]).unwrap();
    assert_eq!(labels(&with("axis.length.points=3")), ["100B", "200B", "400B"]);
    assert_eq!(labels(&with("axis.length.factor=4")), ["100B", "400B"]);
    assert_eq!(labels(&with("axis.length.to=200")), ["100B", "200B"]);
    for list in ["axis.length=7,8", "axis.length.values=7,8"] {
        assert_eq!(labels(&with(list)), ["7", "8"], "{list}");
    }
}

#[test]
fn values_of_an_included_axis_give_way_to_those_of_the_plan() {
    let around = TestSurroundings(&[
        ("range.toml", "axis.length = { from = 100, to = 400, step = 100 }\n[host.a]\n[host.b]\n"),
        ("list.toml", "axis.length = { values = [1, 2], labels = [\"x\", \"y\"] }\n[host.a]\n[host.b]\n"),
    ]);
    let with = |text: &str| {
        let plan = read(source(text), &[], &around).unwrap_or_else(|error| panic!("{error}"));
        labels(&plan).join(" ")
    };
    assert_eq!(with("include = \"range.toml\"\naxis.length.values = [7, 8]"), "7 8");
    assert_eq!(with("include = \"range.toml\"\naxis.length.points = 2"), "100B 400B");
    assert_eq!(with("include = \"list.toml\"\naxis.length = { from = 1, to = 3, step = 1 }"), "1B 2B 3B");
    assert_eq!(with("include = \"list.toml\"\naxis.length.labels = [\"p\", \"q\"]"), "p q");
}
