//! When cross traffic ends, and in which direction it runs.

use expect_test::expect;
use linerate_model::Direction;

use super::mistakes::wrong;
use super::plan;

const NOISE: &str =
    "[flow.x]\nfrom = \"a\"\nto = \"b\"\n[flow.noise]\nfrom = \"a\"\nto = \"b\"\ncross_traffic = true\n";

#[test]
fn what_ends_the_other_flows_does_not_end_cross_traffic() {
    let ends = [
        "test.until = \"1%\"\n",
        "test.bytes = \"1M\"\n",
        "test.blocks = 9\n",
        "test = { workload = \"rr\", requests = 9 }\n",
        "test.duration = 3\n",
        "axis.bytes = [1000, 2000]\n",
        "axis.until = [\"1%\", \"2%\"]\n",
    ];
    for end in ends {
        let plan = plan(&format!("{end}{NOISE}"));
        for number in 0..plan.grid.len() {
            let tests = plan.point(number).unwrap().tests;
            let (other, noise) = (&tests[0].spec, &tests[1].spec);
            assert!(noise.is_timed() && noise.traffic.until.is_none(), "{end}: {noise:?}");
            assert_eq!(noise.traffic.duration, None, "it lasts as long as the others");
            let is_set = other.traffic.until.is_some() || other.traffic.duration.is_some();
            assert!(is_set || !other.is_timed(), "{end}: {other:?}");
        }
    }
}

#[test]
fn an_end_of_its_own_is_refused_where_it_is_written() {
    wrong(
        &format!("{NOISE}test = {{ duration = \"5s\", until = \"default\", rate = \"1M\" }}"),
        expect![[r#"
            plan.toml:8:10: flow.noise.test.duration: cross traffic runs until the last other flow has ended; remove this, or cross_traffic
                test = { duration = "5s", until = "default", rate = "1M" }
                         ^"#]],
    );
    wrong(
        &format!("[axis.amount]\nkey = \"flow.noise.bytes\"\nvalues = [1000]\n{NOISE}"),
        expect![[r#"
            plan.toml:2:7: axis.amount.key: 'flow.noise.bytes' cannot be swept; cross traffic runs until the last other flow has ended, so remove the axis, or cross_traffic
                key = "flow.noise.bytes"
                      ^"#]],
    );
}

/// An axis over what ends the tests changes something only if a flow that is no cross traffic takes it.
#[test]
fn an_axis_that_only_cross_traffic_could_take_has_no_effect() {
    let own = NOISE.replace("[flow.noise]", "test.bytes = 7\n[flow.noise]");
    wrong(
        &format!("axis.bytes = [1000, 2000]\n{own}"),
        expect![[r#"
            plan.toml:1:6: axis.bytes: it has no effect, because every flow sets this knob itself; sweep flow.NAME.KNOB
                axis.bytes = [1000, 2000]
                     ^"#]],
    );
}

#[test]
fn cross_traffic_without_a_direction_runs_in_both_at_once() {
    let phases = |test: &str| -> Vec<_> {
        let tests = plan(&format!("{test}{NOISE}")).point(0).unwrap().tests;
        tests.iter().map(|test| test.spec.phases()).collect()
    };
    let (up, down) = (Direction::Upload, Direction::Download);
    assert_eq!(phases(""), [vec![vec![down], vec![up]], vec![vec![up, down]]]);
    for (knob, only) in [("upload", up), ("download", down)] {
        assert_eq!(phases(&format!("test.{knob} = true\n")), [vec![vec![only]], vec![vec![only]]]);
    }
    let requests = phases("test.workload = \"rr\"\n");
    assert_eq!(requests[0], requests[1], "transactions have one phase anyway");
}
