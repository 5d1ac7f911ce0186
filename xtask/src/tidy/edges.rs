//! Permitted dependencies between crates, and on external packages.

use super::Problem;
use crate::metadata::Edge;
use crate::rust_text::numbered;
use crate::tree::Tree;
use crate::words::has_word;

/// All crates with the crates they may depend on. `app` may depend on all; nothing may depend on `app`.
const ALLOWED: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("model", &["units"]),
    ("proto", &["units", "model"]),
    // One of its clients finds out itself when its results are stable.
    ("compat", &["units", "model", "theory"]),
    ("theory", &["units", "model"]),
    // Shows judgements of theory, and plans before they run.
    ("report", &["units", "model", "theory", "plan"]),
    ("sock", &[]),
    ("engine", &["units", "model", "sock"]),
    ("control", &["units", "model", "proto", "compat", "sock", "engine", "theory"]),
    ("archive", &["units", "model"]),
    ("emu", &["units", "config"]),
    // An emulated network on this machine: provides emu with a clock and the frames of real hosts.
    ("lab", &["emu", "sock", "units", "config"]),
    // Parser of topologies and plans.
    ("config", &[]),
    // Summarizes the trials of a point, and decides when there are enough.
    ("plan", &["units", "model", "config", "theory"]),
    // Carries out tests and plans for any caller, also in an emulated network, whose topology it reads: no flags, no
    // printing, and none of compat or report.
    ("runner", &["units", "model", "config", "theory", "sock", "control", "plan", "archive", "emu", "lab"]),
    ("broker", &["model", "sock"]),
    // Schedules and meshes in a calendar, which its coordinator carries out with runs of `runner`. What its agents say is
    // a protocol of `proto`.
    (
        "fleet",
        &[
            "units", "model", "config", "theory", "plan", "proto", "sock", "control", "archive", "broker",
            "runner",
        ],
    ),
    // Pages and the HTTP interface: runs of `runner` in the queue of `control`, shown by `report`. Envelopes and checks
    // need no measurement: typed values and pasted results go from the readers of `theory` and `compat` to `report`.
    (
        "web",
        &[
            "units", "model", "proto", "compat", "theory", "sock", "control", "runner", "fleet", "archive",
            "report",
        ],
    ),
    (
        "app",
        &[
            "units", "model", "config", "proto", "compat", "theory", "report", "sock", "engine", "control",
            "archive", "emu", "lab", "plan", "runner", "fleet", "web",
        ],
    ),
    // Every decoder, and the engine and the fleet behind some of them.
    (
        "fuzz",
        &["units", "model", "proto", "compat", "report", "sock", "engine", "archive", "emu", "plan", "fleet"],
    ),
    // The benchmark reads clocks, counters and pipes, and evaluates its pairs like `linerate compare`.
    ("xtask", &["model", "sock", "theory"]),
];

/// External packages that only some crates may use.
const CONFINED: &[(&str, &[&str])] = &[
    ("libc", &["sock"]),
    ("socket2", &["sock"]),
    ("windows-sys", &["sock"]),
    ("rusqlite", &["archive"]),
    // User-written files are read in one crate, so that every error has a position. Tests of emu check a schema
    // against files.
    ("toml", &["config", "emu"]),
    // In `model` and `theory` behind a feature: the fields of a specification, and of the description of a path, are
    // also command-line flags.
    ("clap", &["model", "theory", "fleet", "app"]),
    ("clap_complete", &["app"]),
    ("clap_mangen", &["app"]),
    ("signal-hook", &["app", "xtask"]),
    ("tracing-subscriber", &["app"]),
    // Measurements wait in plain threads; the async runtime is for the web service, see docs/design. Of it, `compat` has
    // the traits of byte streams, through which its HTTP/2 reads and writes.
    ("tokio", &["web", "broker", "compat"]),
    ("axum", &["web"]),
    ("hyper", &["web"]),
    ("smol", &[]),
    ("async-std", &[]),
];

const REMEDY_INSIDE: &str = "move the code to the crate that may depend on it; a new edge is a decision in docs/design and a row in ALLOWED (xtask/src/tidy/edges.rs)";
const REMEDY_OUTSIDE: &str = "use the crate that wraps this package; a new place for it is a decision in docs/design and a row in CONFINED (xtask/src/tidy/edges.rs)";

/// Compares the dependencies of the workspace with both tables.
pub(super) fn check(edges: &[Edge], tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for edge in edges {
        let (table, remedy) = if edge.inside {
            (lookup(ALLOWED, &edge.from), REMEDY_INSIDE)
        } else {
            match lookup(CONFINED, &edge.to) {
                Some(crates) if crates.contains(&edge.from.as_str()) => continue,
                Some(_) => (None, REMEDY_OUTSIDE),
                None => continue,
            }
        };
        if table.is_some_and(|crates| crates.contains(&edge.to.as_str())) {
            continue;
        }
        let (path, line) = place(tree, edge);
        let what = format!("{} may not depend on {}", edge.from, edge.to);
        problems.push(Problem::new(&path, line, what, remedy));
    }
    problems
}

fn lookup(table: &'static [(&str, &[&str])], name: &str) -> Option<&'static [&'static str]> {
    table.iter().find(|(entry, _)| *entry == name).map(|(_, crates)| *crates)
}

/// The manifest line of the dependency.
fn place(tree: &Tree, edge: &Edge) -> (String, usize) {
    let path = match edge.from.as_str() {
        "xtask" => "xtask/Cargo.toml".to_owned(),
        name => format!("crates/{name}/Cargo.toml"),
    };
    let package = if edge.inside { format!("linerate-{}", edge.to) } else { edge.to.clone() };
    let text = tree.file(&path).map_or("", |file| &file.text);
    let line = numbered(text).find(|(_, line)| has_word(line, &package)).map_or(1, |(number, _)| number);
    (path, line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(edges: &[(&str, &str, bool)]) -> Vec<String> {
        let edges: Vec<Edge> = edges
            .iter()
            .map(|(from, to, inside)| Edge {
                from: (*from).to_owned(),
                to: (*to).to_owned(),
                inside: *inside,
            })
            .collect();
        let tree =
            Tree::of(&[("crates/theory/Cargo.toml", "[dependencies]\nlinerate-sock.workspace = true\n")]);
        check(&edges, &tree).iter().map(|p| format!("{}:{} {}", p.path, p.line, p.what)).collect()
    }

    #[test]
    fn the_drawn_arrows_pass() {
        assert!(
            problems(&[("engine", "sock", true), ("app", "archive", true), ("sock", "libc", false)])
                .is_empty()
        );
        assert!(problems(&[("theory", "statrs", false)]).is_empty());
    }

    #[test]
    fn theory_may_not_reach_sockets() {
        assert_eq!(
            problems(&[("theory", "sock", true)]),
            ["crates/theory/Cargo.toml:2 theory may not depend on sock"]
        );
    }

    #[test]
    fn stages_and_topologies_do_not_reach_the_system() {
        assert_eq!(problems(&[("emu", "sock", true), ("emu", "lab", true)]).len(), 2);
        assert!(problems(&[("lab", "sock", true), ("lab", "emu", true)]).is_empty());
    }

    #[test]
    fn our_protocols_and_foreign_tools_do_not_know_each_other() {
        assert_eq!(problems(&[("proto", "compat", true), ("compat", "proto", true)]).len(), 2);
        assert_eq!(problems(&[("engine", "compat", true), ("compat", "sock", true)]).len(), 2);
        assert!(problems(&[("control", "proto", true), ("control", "compat", true)]).is_empty());
    }

    #[test]
    fn nobody_names_app_and_an_unknown_crate_has_no_edges() {
        assert_eq!(problems(&[("report", "app", true), ("cellar", "units", true)]).len(), 2);
    }

    #[test]
    fn system_calls_and_sql_stay_in_their_crates() {
        assert_eq!(problems(&[("engine", "libc", false), ("app", "rusqlite", false)]).len(), 2);
        assert_eq!(problems(&[("engine", "tokio", false)]).len(), 1);
    }
}
