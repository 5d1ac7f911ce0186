//! Mistakes in assertions are shown at the column where they start.

use expect_test::expect;

use super::mistakes::wrong;
use super::plan;

/// A plan with this assertion on its fourth line.
fn with(claim: &str) -> String {
    format!("axis.streams = [1, 4]\nassert = [\n    \"loss <= 1\",\n    \"{claim}\",\n]")
}

#[test]
fn assertions() {
    let with =
        |claim: &str| format!("axis.streams = [1, 4]\nassert = [\n    \"loss <= 1\",\n    \"{claim}\",\n]");
    wrong(
        &with("goodput >= 0.98 celing"),
        expect![[r#"
        plan.toml:4:22: assert: there is no quantity 'celing'; did you mean 'ceiling'?
                "goodput >= 0.98 celing",
                                 ^"#]],
    );
    wrong(
        &with("goodput"),
        expect![[r#"
            plan.toml:4:13: assert: this is not a comparison; write one such as goodput >= 0.98 ceiling
                    "goodput",
                            ^"#]],
    );
    wrong(
        &with("goodput >= 5ms"),
        expect![[r#"
        plan.toml:4:17: assert: unknown unit 'ms' in '5ms'; known units are k M G T with or without b/s, bit/s or bps (decimal), MB/s (8 x 10^6 bit/s), MiB/s (example: 100M, 2.5Gb/s, 80k (decimal: 1M is 1000000 bit/s))
                "goodput >= 5ms",
                            ^"#]],
    );
    wrong(
        &with("goodput >= rtt"),
        expect![[r#"
            plan.toml:4:17: assert: a rate cannot be compared with a time; compare quantities of the same kind
                    "goodput >= rtt",
                                ^"#]],
    );
    wrong(
        &with("goodput + rtt > 1"),
        expect![[r#"
        plan.toml:4:16: assert: a rate and a time cannot be added or subtracted
                "goodput + rtt > 1",
                           ^"#]],
    );
}

#[test]
fn words_in_assertions() {
    wrong(
        &with("verdict != unknwon"),
        expect![[r#"
            plan.toml:4:17: assert: unknown word 'unknwon'; did you mean 'unknown'?
                    "verdict != unknwon",
                                ^"#]],
    );
    wrong(
        &with("verdict > link"),
        expect![[r#"
            plan.toml:4:6: assert: words have no order; use == or !=
                    "verdict > link",
                     ^"#]],
    );
    wrong(
        &with("1 < 2"),
        expect![[r#"
            plan.toml:4:6: assert: the comparison has no measured quantity; add one such as goodput
                    "1 < 2",
                     ^"#]],
    );
}

#[test]
fn other_points_and_runs() {
    wrong(
        &with("goodput >= point(streams=3).goodput"),
        expect![[r#"
            plan.toml:4:23: assert: '3' is not a value of axis 'streams'; its values are 1, 4
                    "goodput >= point(streams=3).goodput",
                                      ^"#]],
    );
    wrong(
        &with("goodput >= point(stream=1).goodput"),
        expect![[r#"
        plan.toml:4:23: assert: there is no axis 'stream'; did you mean 'streams'?
                "goodput >= point(stream=1).goodput",
                                  ^"#]],
    );
    wrong(
        &with("goodput >= run(old).goodput"),
        expect![[r#"
        plan.toml:4:21: assert: the name of a run is missing here, as in run("baseline")
                "goodput >= run(old).goodput",
                                ^"#]],
    );
    wrong(
        &with("loss <= 1 and rtt < 5ms"),
        expect![[r#"
        plan.toml:4:20: assert: the assertion should end here; write one assertion for each comparison
                "loss <= 1 and rtt < 5ms",
                               ^"#]],
    );
    wrong(
        &with("loss ~ 1"),
        expect![[r#"
            plan.toml:4:11: assert: '~' is not allowed here; write a comparison such as goodput >= 0.98 ceiling
                    "loss ~ 1",
                          ^"#]],
    );
}

#[test]
fn assertions_in_tables() {
    let axes = "axis.streams = [1, 4]\naxis.window = [1000, 2000]\n";
    wrong(
        &format!("{axes}assert = [{{ that = \"loss < 1\", at = {{ streams = 3 }}, flow = \"x\" }}]"),
        expect![[r#"
            plan.toml:3:49: 3 is not a value of axis 'streams'; its values are 1, 4
                assert = [{ that = "loss < 1", at = { streams = 3 }, flow = "x" }]
                                                                ^
            plan.toml:3:61: assert.flow: there is no flow 'x'; known are a-b
                assert = [{ that = "loss < 1", at = { streams = 3 }, flow = "x" }]
                                                                            ^"#]],
    );
    wrong(
        &format!("{axes}assert = [{{ at = {{ streams = 4 }} }}, 5]"),
        expect![[r#"
            plan.toml:3:11: the assertion has no condition; add that = "goodput >= 0.98 ceiling"
                assert = [{ at = { streams = 4 } }, 5]
                          ^
            plan.toml:3:37: assert: 5 is not an assertion such as "goodput >= 0.98 ceiling"
                assert = [{ at = { streams = 4 } }, 5]
                                                    ^"#]],
    );
    let excluded = format!("exclude = [{{ streams = 1, window = 1000 }}]\n{axes}");
    wrong(
        &format!("{excluded}assert = [{{ that = \"loss < 1\", at = {{ streams = 1, window = 1000 }} }}]"),
        expect![[r#"
            plan.toml:4:37: assert.at: no point of the plan matches; correct the values, or remove `at`
                assert = [{ that = "loss < 1", at = { streams = 1, window = 1000 } }]
                                                    ^"#]],
    );
}

#[test]
fn searches() {
    let search = |rest: &str| format!("test.udp = true\n[axis.rate]\nfrom = 0\nto = \"1G\"\n{rest}");
    wrong(
        &search("pass = \"loss = 0\""),
        expect![[r#"
            plan.toml:5:14: axis.rate.pass: use == to compare
                pass = "loss = 0"
                             ^"#]],
    );
    wrong(
        &search("pass = \"loss == 0\"\nvalues = [1]"),
        expect![[r#"
            plan.toml:6:10: axis.rate.values: this does not apply to an axis that is searched (pass); remove it
                values = [1]
                         ^"#]],
    );
    wrong(
        &search("pass = \"loss == 0\"\n[axis.length]\nfrom = 40\nto = 80\npass = \"loss == 0\""),
        expect![[r#"
            plan.toml:6:7: axis.length: a plan can search only one axis; sweep the others
                [axis.length]
                      ^"#]],
    );
}

/// Rates have no neighbours: a search without a resolution would take more than a thousand trials.
#[test]
fn a_search_for_a_rate_has_a_resolution_and_one_for_whole_values_needs_none() {
    wrong(
        "[test]\nudp = true\n[axis.rate]\nfrom = 0\nto = \"1G\"\npass = \"loss == 0\"\nresolution = 0",
        expect![[r#"
            plan.toml:7:14: axis.rate.resolution: the share is too small for values that are not whole numbers; give at least 0.0001%
                resolution = 0
                             ^"#]],
    );
    let whole = plan("[axis.window]\nfrom = 1000\nto = 2000\npass = \"goodput > 1M\"\nresolution = 0\n");
    // 2000, ten halves of 1000, and 1000.
    assert_eq!(whole.search.unwrap().trials(), 12);
}
