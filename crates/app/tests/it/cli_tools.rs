//! The command lines of other tools as subcommands of `linerate`.

use crate::support::run;

#[test]
fn a_tool_gets_its_own_double_dash_also_if_it_comes_first() {
    // Options of netperf's tests follow `--`: -O ? lists the selectors there, and is something else before it.
    let first = run("netperf -- -O ?");
    assert_eq!((first.code, first.stdout.lines().next()), (Some(1), Some("OUTPUT_NONE")), "{first:?}");
    let later = run("netperf -t TCP_RR -- -O ?");
    assert_eq!((later.code, &later.stdout), (Some(1), &first.stdout));
    let before = run("netperf -O 1");
    assert!(before.stderr.starts_with("netperf: -O is not supported: "), "{before:?}");
}
