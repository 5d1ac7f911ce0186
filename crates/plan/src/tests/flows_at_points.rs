//! Flows that share a path: which of them run at a point, and what they have together.

use linerate_units::Span;

use super::conducting::SimulatedNetwork;
use super::{plan, try_plan};
use crate::{PlanScheduler, TrialTask, judgements};

/// Three flows from a to b, and cross traffic that no axis names.
const FLOWS: &str = "test = { upload = true, duration = 10 }\n\
    [flow.x]\nfrom = \"a\"\nto = \"b\"\n[flow.y]\nfrom = \"a\"\nto = \"b\"\n[flow.z]\nfrom = \"a\"\nto = \"b\"\nafter = \"y\"\n\
    [flow.noise]\nfrom = \"a\"\nto = \"b\"\ncross_traffic = true\n";

const AXIS: &str = "[axis.senders]\nkey = \"flows\"\nvalues = [\"x\", \"x z\", \"x  y z\"]\nlabels = [\"1\", \"2\", \"3\"]\n";

#[test]
fn an_axis_over_flows_leaves_out_the_flows_that_its_value_does_not_name() {
    let plan = plan(&format!("{FLOWS}{AXIS}"));
    let flows = |number: usize| -> Vec<String> {
        plan.point(number).unwrap().tests.into_iter().map(|test| test.flow).collect()
    };
    assert_eq!(flows(0), ["x", "noise"]);
    assert_eq!(flows(1), ["x", "z", "noise"]);
    assert_eq!(flows(2), ["x", "y", "z", "noise"]);
    let starts = |number: usize, flow: &str| {
        let slots = plan.schedule(&plan.point(number).unwrap());
        slots.into_iter().find(|slot| slot.flow == flow).map(|slot| slot.start)
    };
    assert_eq!(starts(0, "z"), None);
    assert_eq!(starts(1, "z"), Some(Span::ZERO), "a flow that is left out is not waited for");
    assert!(starts(2, "z").unwrap() > Span::from_secs(10), "one that runs is");
    let contents: Vec<u64> = (0..3).map(|number| plan.point(number).unwrap().content).collect();
    assert!(contents[0] != contents[1] && contents[1] != contents[2], "results are those of these flows");
}

#[test]
fn flows_that_are_left_out_are_neither_summed_nor_judged_nor_missing() {
    let plan = plan(&format!("assert = [\"goodput > 0\"]\n{FLOWS}{AXIS}"));
    let goodput = |_: &TrialTask, _: usize| Some(1e6);
    let mut network = SimulatedNetwork::new(&plan, &goodput);
    let mut scheduler = PlanScheduler::new(&plan).unwrap();
    assert_eq!(network.carry_out(&mut scheduler, usize::MAX).len(), 3);
    assert!(!scheduler.is_missing_any());
    let sums = scheduler.sum().unwrap();
    let measured = |number: usize, flow: &str| {
        let point = plan.point(number).unwrap().id.to_string();
        sums.iter().any(|one| one.point == point.as_str() && one.flow == flow && one.quantity == "goodput")
    };
    assert_eq!([0, 1, 2].map(|number| measured(number, "y")), [false, false, true]);
    assert_eq!([0, 1, 2].map(|number| measured(number, "z")), [false, true, true]);
    let judged = judgements(&plan, &sums, &Default::default());
    assert_eq!(judged.len(), 1 + 2 + 3, "{judged:?}");
    assert!(judged.iter().all(|one| one.holds), "{judged:?}");
}

#[test]
fn an_axis_over_flows_names_known_flows_and_leaves_one_to_measure() {
    let wrong = |axis: &str| try_plan(&format!("{FLOWS}{axis}"), &[]).unwrap_err().to_string();
    let unknown = wrong("[axis.senders]\nkey = \"flows\"\nvalues = [\"x\", \"x w\"]\n");
    assert!(unknown.contains("axis.senders: there is no flow 'w'"), "{unknown}");
    let none = wrong("[axis.senders]\nkey = \"flows\"\nvalues = [\"x\", \" \"]\n");
    assert!(none.contains("axis.senders: names no flow"), "{none}");
    let idle = wrong("[axis.senders]\nkey = \"flows\"\nvalues = [\"x y z\", \"noise\"]\n");
    assert!(idle.contains("only cross traffic runs at senders=noise"), "{idle}");
}

/// x and y run at once, z after y, and requests meanwhile.
#[test]
fn totals_and_fairness_are_those_of_the_streams_at_the_same_time() {
    let requests = "[flow.rr]\nfrom = \"a\"\nto = \"b\"\ntest = { workload = \"rr\", upload = false }\n";
    let plan = plan(&format!("{FLOWS}{requests}"));
    let rates = [3e6, 1e6, 7e6, 9e9, 5e3];
    let goodput = |_: &TrialTask, flow: usize| Some(rates[flow]);
    let mut network = SimulatedNetwork::new(&plan, &goodput);
    let mut scheduler = PlanScheduler::new(&plan).unwrap();
    network.carry_out(&mut scheduler, usize::MAX);
    let sums = scheduler.sum().unwrap();
    let of = |flow: &str, quantity: &str| {
        let found = sums.iter().find(|one| one.flow == flow && one.quantity == quantity);
        found.and_then(|one| one.median)
    };
    assert_eq!((of("x", "total"), of("y", "total")), (Some(4e6), Some(4e6)));
    // (3 + 1)^2 / (2 (9 + 1)).
    assert_eq!((of("x", "fairness"), of("y", "fairness")), (Some(0.8), Some(0.8)));
    assert_eq!((of("z", "total"), of("z", "fairness")), (Some(7e6), None), "it runs after the others");
    for quantity in ["total", "fairness"] {
        assert_eq!((of("noise", quantity), of("rr", quantity)), (None, None));
    }
    assert_eq!(of("rr", "goodput"), Some(5e3));
}
