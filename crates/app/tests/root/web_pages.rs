//! The pages of `serve --web` in a browser.

use std::process::Command;
use std::time::Duration;

use crate::support::{Done, Folder, Process, RunningLab, ServeProcess, linerate, retried_when_busy};

/// A server with pages and an archive of its own, and where its pages are.
fn serve_pages(folder: &Folder, more: &[&str]) -> (ServeProcess, String) {
    let mut command = linerate();
    // For the key of shared links, and the certificate.
    command.env("XDG_DATA_HOME", folder.path());
    command.args(["serve", "-p", "0", "--json", "--web", "127.0.0.1:0", "--archive"]);
    command.arg(folder.file("runs.db")).args(more);
    let server = ServeProcess::from(command);
    let printed = server.stderr();
    let line = printed.lines().find_map(|line| line.strip_prefix("pages at ")).unwrap();
    let base = line.trim_end_matches('/').to_owned();
    (server, base)
}

fn story(base: &str, token: Option<&str>) {
    play("web.mjs", base, token.as_slice());
}

/// Tokens with these abilities, in this file.
fn tokens_of<const N: usize>(tokens: &str, abilities: [&str; N]) -> [String; N] {
    abilities.map(|ability| {
        let mut command = linerate();
        command.args(["token", "add", ability, "--ability", ability, "--tokens", tokens]);
        let done = Process::start(command).finish(Duration::from_secs(60));
        assert_eq!(done.code, Some(0), "{done:?}");
        done.stdout.trim().to_owned()
    })
}

/// Runs a story of the front end in a browser.
fn play(file: &str, base: &str, args: &[&str]) {
    let mut command = Command::new("node");
    command.arg(format!("{}/../../ui/e2e/{file}", env!("CARGO_MANIFEST_DIR"))).arg(base).args(args);
    let done = Process::start(command).finish(Duration::from_secs(900));
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(done.stdout.lines().last(), Some("ok"), "{done:?}");
}

#[test]
#[ignore = "needs a browser"]
fn a_visitor_measures_watches_compares_and_deletes() {
    retried_when_busy(|| {
        let folder = Folder::new();
        let (mut server, base) = serve_pages(&folder, &[]);
        story(&base, None);
        assert!(server.running(), "{}", server.stderr());
    });
}

#[test]
#[ignore = "needs a browser"]
fn a_visitor_with_the_token_does_the_same() {
    retried_when_busy(|| {
        let folder = Folder::new();
        let secret = "correct horse battery";
        std::fs::write(folder.file("token"), secret).unwrap();
        let (mut server, base) = serve_pages(&folder, &["--web-token-file", &folder.file("token")]);
        story(&base, Some(secret));
        assert!(server.running(), "{}", server.stderr());
    });
}

#[test]
#[ignore = "needs a browser"]
fn a_viewer_starts_nothing_and_a_link_shows_one_run_over_http_and_https() {
    let folder = Folder::new();
    let tokens = folder.file("tokens");
    let made = tokens_of(&tokens, ["view", "run"]);
    for tls in [&[][..], &["--tls-self-signed"]] {
        // A browser that gets too little of the processors moves nothing for a part of its time.
        retried_when_busy(|| {
            let (mut server, base) = serve_pages(&folder, &[&["--tokens", &tokens], tls].concat());
            play("access.mjs", &base, &[&made[0], &made[1]]);
            assert!(server.running(), "{}", server.stderr());
        });
    }
}

#[test]
#[ignore = "needs a browser"]
fn a_path_is_described_a_result_is_judged_and_a_run_is_tagged() {
    retried_when_busy(|| {
        let folder = Folder::new();
        let tokens = folder.file("tokens");
        let made = tokens_of(&tokens, ["view", "run"]);
        let (mut server, base) = serve_pages(&folder, &["--tokens", &tokens]);
        play("tools.mjs", &base, &[&made[0], &made[1]]);
        assert!(server.running(), "{}", server.stderr());
    });
}

#[test]
#[ignore = "needs a browser, root and network namespaces"]
fn a_plan_is_started_watched_and_cancelled() {
    retried_when_busy(|| {
        let folder = Folder::new();
        let (mut server, base) = serve_pages(&folder, &["--run-dir", &folder.file("labs")]);
        play("plan.mjs", &base, &[]);
        assert!(server.running(), "{}", server.stderr());
        let mut list = linerate();
        list.args(["lab", "list", "--json", "--run-dir", &folder.file("labs")]);
        let labs = Process::start(list).finish(Duration::from_secs(60)).json()["labs"].clone();
        assert_eq!(labs, serde_json::json!([]), "an emulated network is left");
    });
}

#[test]
#[ignore = "needs a browser, root and network namespaces"]
fn a_network_is_drawn_watched_changed_and_removed() {
    retried_when_busy(|| {
        let lab = RunningLab::up("pair", &["link.b.rate=20M"]);
        let folder = Folder::new();
        let run_dir = lab.folder.path().to_str().unwrap();
        let (mut server, base) = serve_pages(&folder, &["--run-dir", run_dir]);
        play("labs.mjs", &base, &[env!("CARGO_BIN_EXE_linerate"), run_dir, &lab.name]);
        assert!(server.running(), "{}", server.stderr());
        assert_eq!(lab.traces(), Vec::<String>::new());
    });
}

#[test]
#[ignore = "needs a browser"]
fn a_fleet_is_shown_explained_and_paused() {
    retried_when_busy(|| {
        let folder = Folder::new();
        let dir = folder.file("fleet");
        let fleet = DetachedFleet { dir: dir.clone() };
        let run = |args: &[&str]| {
            let mut command = linerate();
            command.env_remove("LINERATE_ARCHIVE").args(args);
            Process::start(command).finish(Duration::from_secs(60))
        };
        let up = run(&["fleet", "up", "--simple", "--detach", "--dir", &dir]);
        assert_eq!(up.code, Some(0), "{up:?}");
        let archive = format!("{dir}/archive.sqlite");
        let often =
            ["schedule", "add", "often", "--from", "one", "--to", "two", "--every", "30m", "--archive"];
        let added = run(&[&often[..], &[&archive]].concat());
        assert_eq!(added.code, Some(0), "{added:?}");
        // An agent that is never there.
        let (enrollment, key) = (folder.file("three.json"), folder.file("fleet.key"));
        let enroll = [
            "agent",
            "enroll",
            "three",
            &enrollment,
            "--fleet-key-file",
            &key,
            "--broker",
            "nats://127.0.0.1:1",
        ];
        let enrolled = run(&[&enroll[..], &["--archive", &archive]].concat());
        assert_eq!(enrolled.code, Some(0), "{enrolled:?}");
        let tokens = folder.file("tokens");
        let made = tokens_of(&tokens, ["view", "run", "admin"]);
        std::os::unix::fs::symlink(&archive, folder.file("runs.db")).unwrap();
        let (mut server, base) = serve_pages(&folder, &["--tokens", &tokens]);
        play("fleet.mjs", &base, &[&made[0], &made[1], &made[2]]);
        assert!(server.running(), "{}", server.stderr());
        assert_eq!(fleet.down().code, Some(0));
    });
}

/// A fleet in the background, which also ends when the test fails.
struct DetachedFleet {
    dir: String,
}

impl DetachedFleet {
    fn down(&self) -> Done {
        let mut command = linerate();
        command.args(["fleet", "down", "--dir", &self.dir]);
        Process::start(command).finish(Duration::from_secs(60))
    }
}

impl Drop for DetachedFleet {
    fn drop(&mut self) {
        self.down();
    }
}
