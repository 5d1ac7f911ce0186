//! `linerate test --investigate`: further runs, each archived separately, answer what one run leaves open.

use serde_json::Value;

use crate::support::{
    self, Folder, Process, RunningLab, ServeProcess, TIMEOUT, caveats, flow, linerate, retried_when_busy,
};

/// An investigated upload from `a`: the flow, and the archived runs.
struct Investigated {
    flow: Value,
    run: String,
    archive: String,
    _folder: Folder,
}

impl Investigated {
    fn new(topology: &str, set: &[&str], args: &[&str]) -> Self {
        let folder = Folder::new();
        let archive = folder.file("archive.sqlite");
        let lab = RunningLab::up(topology, set);
        let server = ServeProcess::from(lab.linerate("b", &["serve", "-p", "5990", "--json"]));
        let head = ["test", "b", "-p", "5990", "--upload", "--json", "--investigate", "--archive", &archive];
        let done = Process::start(lab.linerate("a", &[&head[..], args].concat())).finish(3 * TIMEOUT);
        assert_eq!(done.code, Some(0), "{done:?}");
        drop(server);
        let document = done.json();
        let run = document["run"]["id"].as_str().unwrap().to_owned();
        Self { flow: flow(&document, "upload").clone(), run, archive, _folder: folder }
    }

    fn export(&self, run: &str) -> Value {
        let mut command = linerate();
        command.args(["export", run, "--format", "json", "--archive", &self.archive]);
        let done = Process::start(command).finish(TIMEOUT);
        assert_eq!(done.code, Some(0), "{done:?}");
        done.json()
    }

    /// Checks that every further run is in the archive and names its question, and that the first one has the
    /// answer.
    fn is_kept(&self) {
        let follow_ups = self.flow["follow_ups"].as_array().unwrap();
        let runs: Vec<&str> = follow_ups
            .iter()
            .flat_map(|follow_up| follow_up["runs"].as_array().unwrap())
            .map(|run| run.as_str().unwrap())
            .collect();
        assert!(!runs.is_empty(), "{:#}", self.flow);
        for run in runs {
            let kept = self.export(run);
            assert!(caveats(&kept).contains(&"follow_up".to_owned()), "{kept:#}");
            let text = kept["caveats"].to_string();
            assert!(text.contains(&self.run), "{text}");
        }
        let first = self.export(&self.run);
        assert_eq!(flow(&first, "upload")["verdict"], self.flow["verdict"]);
        assert_eq!(flow(&first, "upload")["follow_ups"], self.flow["follow_ups"]);
    }
}

#[test]
#[ignore = "needs root and network namespaces"]
fn the_largest_packet_that_a_black_hole_lets_through_is_found_to_the_byte() {
    retried_when_busy(|| {
        let found = Investigated::new("black-hole", &[], &["-t", "2", "-C", "cubic"]);
        let verdict = &found.flow["verdict"];
        assert_eq!(
            (&verdict["rule"], &verdict["confidence"]),
            (&"V15".into(), &"confirmed".into()),
            "{verdict:#}"
        );
        assert_eq!(verdict["evidence"]["largest_packet_bytes"], 1400.0, "{verdict:#}");
        assert_eq!(verdict["evidence"]["smallest_lost_bytes"], 1401.0);
        found.is_kept();
    });
}

#[test]
#[ignore = "needs root and network namespaces"]
fn datagrams_above_and_below_the_rate_show_a_policer() {
    support::when_idle("datagrams_above_and_below_the_rate_show_a_policer", || {
        let set = ["rate=20M", "burst=100kB", "link.b.rate=200M"];
        let found = Investigated::new("policed", &set, &["-t", "3", "-C", "cubic"]);
        let verdict = &found.flow["verdict"];
        assert_eq!(
            (&verdict["rule"], &verdict["confidence"]),
            (&"V13".into(), &"confirmed".into()),
            "{verdict:#}"
        );
        let policing = &found.flow["follow_ups"][0];
        assert_eq!(policing["question"], "policing");
        assert!(
            policing["evidence"]["loss_above_ratio"].as_f64()
                > policing["evidence"]["loss_below_ratio"].as_f64()
        );
        found.is_kept();
    });
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_full_link_asks_nothing() {
    retried_when_busy(|| {
        let found = Investigated::new("pair", &["link.b.rate=100M"], &["-t", "2", "-C", "cubic"]);
        assert_eq!(found.flow["verdict"]["rule"], "V02");
        assert!(found.flow.get("follow_ups").is_none(), "{:#}", found.flow);
    });
}
