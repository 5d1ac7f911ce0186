//! Tests of pages in a real browser with `ui/e2e/check.mjs`.

use std::path::Path;
use std::process::Command;

use super::tests::page;
use super::{Assets, ReportedPlan};
use crate::samples_of_plans as plans;
use crate::samples_of_runs as runs;
use linerate_model::flow::FlowId;

/// Long enough that lines are thinned, with a caveat and everything that charts can show.
fn long_run() -> Vec<linerate_model::Event> {
    use linerate_model::{Direction, Side, Transport};
    let mut bodies = runs::opening(linerate_model::TestSpec::default());
    bodies.push(runs::probes(None, 210));
    bodies.push(runs::planned(0, Direction::Upload, Transport::Tcp));
    for number in 0..3000 {
        let (from, to) = (number * 100, number * 100 + 100);
        bodies.push(runs::sample(0, Side::Receiver, from, to, 11_000_000 + number % 7 * 100_000));
        bodies.push(runs::sample(0, Side::Sender, from, to, 11_000_000));
    }
    let (host, mut probes) = runs::probes(Some(FlowId(0)), 900);
    if let linerate_model::Body::Latency { report, .. } = &mut probes {
        report.intervals = runs::by_interval(900_000, 600);
    }
    bodies.push((host, probes));
    bodies
        .extend([Side::Sender, Side::Receiver].map(|side| runs::ended(FlowId(0), side, runs::tally(900e6))));
    bodies.push(runs::ceilings(FlowId(0)));
    let text = "Another test ran on the same host at the same time: </script><b>Ä</b>".to_owned();
    let caveat =
        linerate_model::Caveat { kind: linerate_model::CaveatKind::ConcurrentRun, text: text.into() };
    bodies.push((0, linerate_model::Body::Caveat { flow: Some(FlowId(0)), caveat }));
    runs::log(bodies)
}

fn comparison(assets: &Assets<'_>) -> String {
    let mut out = Vec::new();
    super::write_comparison(None, &plans::compared(), assets, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
#[ignore = "needs Chromium, Node.js and the built front end (make ui)"]
fn every_page_draws_its_charts_loads_nothing_fits_a_telephone_and_prints() {
    let ui = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../ui"));
    let read = |name: &str| {
        let path = ui.join("dist").join(name);
        std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}; type: make ui", path.display()))
    };
    let (script, style) = (read("report.js"), read("report.css"));
    let assets = Assets { script: &script, style: &style };
    let (events, record) = plans::two_axes();
    let windows = ReportedPlan { record: &record, events: &events, left_out: &["gone".into()] };
    let (events, record) = plans::eighteen();
    let eighteen = ReportedPlan { record: &record, events: &events, left_out: &[] };
    let (events, record) = plans::all_pairs();
    let matrix = ReportedPlan { record: &record, events: &events, left_out: &[] };
    let pages = [
        ("run", page(None, &[runs::tcp_run()], &assets)),
        ("long", page(None, &[long_run()], &assets)),
        ("datagrams", page(None, &[runs::udp_run()], &assets)),
        ("lab", page(None, &[runs::lab_run()], &assets)),
        ("killed", page(None, &[runs::killed_run()], &assets)),
        ("sizes", page(None, &[runs::sweep_run()], &assets)),
        ("together", page(None, &[runs::tcp_run(), long_run()], &assets)),
        ("plan", page(Some(&windows), &plans::runs(), &assets)),
        ("eighteen", page(Some(&eighteen), &plans::eighteen_runs(), &assets)),
        ("matrix", page(Some(&matrix), &[], &assets)),
        ("comparison", comparison(&assets)),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (name, page) in &pages {
        std::fs::write(folder.path().join(format!("{name}.html")), page).unwrap();
    }
    // To be looked at, also if the check fails.
    if let Some(kept) = std::env::var_os("LINERATE_KEEP_PAGES") {
        for (name, page) in &pages {
            std::fs::write(Path::new(&kept).join(format!("{name}.html")), page).unwrap();
        }
    }
    let checked = Command::new("node").arg(ui.join("e2e/check.mjs")).arg(folder.path()).output().unwrap();
    let output = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{output}{}", String::from_utf8_lossy(&checked.stderr));
    assert_eq!(output.lines().filter(|line| line.ends_with(": ok")).count(), pages.len(), "{output}");
}
