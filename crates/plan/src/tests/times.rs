//! When flows run, how long that takes, and what remains after an interruption.

use linerate_units::Span;

use super::plan;
use crate::{CompletedTrials, Plan};

const TWO: &str = "from = \"a\"\nto = \"b\"\n";

fn slots(plan: &Plan) -> Vec<(String, u64, Option<u64>)> {
    let secs = |span: Span| span.as_ns() / 1_000_000_000;
    let slots = plan.schedule(&plan.point(0).unwrap());
    slots.into_iter().map(|slot| (slot.flow, secs(slot.start), slot.end.map(secs))).collect()
}

/// One direction of 10 s without latency probes takes at most 12 s: set-up and drain take 2 s.
#[test]
fn flows_run_at_once_in_sequence_and_at_times() {
    let text = format!(
        "test = {{ duration = 10, upload = true, no_latency = true }}\n[flow.x]\n{TWO}[flow.y]\n{TWO}after = \"x\"\nat = \"3s\"\n\
         [flow.z]\n{TWO}at = \"5s\"\n[flow.noise]\n{TWO}cross_traffic = true\nat = \"1s\"\n"
    );
    let row = |name: &str, start, end| (name.to_owned(), start, Some(end));
    assert_eq!(
        slots(&plan(&text)),
        [row("x", 0, 12), row("y", 15, 27), row("z", 5, 17), row("noise", 1, 27)]
    );
}

#[test]
fn an_estimate_adds_up_what_is_known_and_says_what_is_not() {
    // Download and upload of 10 s and 0.4 s each, 2 s of idle latency, 1 s of trial overhead, 1 s of pause
    // between.
    let both = plan("repeats = 3").estimate().unwrap();
    assert_eq!((both.trials, both.time), (3, Span::from_ms(3 * (20_800 + 2000 + 1000) + 2000)));
    assert!(!both.at_least && !both.at_most);
    let amount = plan("test = { bytes = \"1G\", upload = true }").estimate().unwrap();
    assert!(amount.at_least, "nobody knows how fast it will be");
    // 1 MB with 4 streams of 1 Mb/s: 2 s, and 0.4 s of set-up; probes of 2 s, 1 s of trial overhead.
    let paced =
        plan("test = { bytes = \"1MB\", rate = \"1M\", streams = 4, upload = true }").estimate().unwrap();
    assert_eq!((paced.time, paced.at_least), (Span::from_ms(2000 + 400 + 2000 + 1000), false));
    assert!(plan("test.until = \"1%\"").estimate().unwrap().at_most);
}

/// Nine trials of 5 s and one of 60 s that confirms, each with probes of 1 s, 0.4 s of set-up, 1 s of overhead
/// and 1 s of pause except after the last: see the worked example of the search.
#[test]
fn a_search_is_estimated_with_all_its_trials() {
    let text = "test = { duration = 5, upload = true, udp = true }\n[axis.rate]\nfrom = 0\nto = \"1G\"\n\
                resolution = 0.005\npass = \"loss == 0\"\nconfirm = \"60s\"\n";
    let estimate = plan(text).estimate().unwrap();
    assert_eq!(estimate.trials, 10);
    assert_eq!(estimate.time, Span::from_ms(9 * 5000 + 60_000 + 10 * (1000 + 400 + 1000 + 1000) - 1000));
    assert!(estimate.at_most);
}

#[test]
fn what_is_done_need_not_be_done_again_unless_it_has_changed() {
    let text = "repeats = 2\norder = \"sequential\"\naxis.window = [1000, 2000]\n";
    let first = plan(text);
    let mut progress = CompletedTrials::new(&first);
    assert_eq!(progress.remaining(&first), first.trials());
    progress.note(&first.point(0).unwrap(), 1, vec!["run-1".to_owned()]);
    progress.note(&first.point(1).unwrap(), 2, vec!["run-2".to_owned()]);
    let kept = serde_json::to_string(&progress).unwrap();
    let progress: CompletedTrials = serde_json::from_str(&kept).unwrap();
    let left = |text: &str| -> Vec<(String, u32)> {
        let plan = plan(text);
        let remaining = progress.remaining(&plan);
        remaining.iter().map(|trial| (plan.point(trial.point).unwrap().label(), trial.repeat)).collect()
    };
    let row = |window: u32, repeat| (format!("window={window}"), repeat);
    assert_eq!(left(text), [row(1000, 2), row(2000, 1)]);
    let reordered = text.replace("1000, 2000", "2000, 500, 1000");
    assert_eq!(left(&reordered), [row(2000, 1), row(500, 1), row(500, 2), row(1000, 2)]);
    assert_eq!(
        left(&format!("{text}test.duration = 3\n")).len(),
        4,
        "another duration is another measurement"
    );
}
