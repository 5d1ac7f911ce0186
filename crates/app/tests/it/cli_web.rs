//! The options of `serve --web` for other addresses than that of this host.

use crate::support::{Done, Folder, Process, ServeProcess, TIMEOUT, linerate};

/// A server with pages, whose user has a data directory of its own.
fn pages(folder: &Folder, more: &[&str]) -> std::process::Command {
    let mut command = linerate();
    command
        .env("XDG_DATA_HOME", folder.path())
        .args(["serve", "-p", "0", "--archive", ":memory:"])
        .args(more);
    command
}

fn refused(folder: &Folder, more: &[&str]) -> Done {
    Process::start(pages(folder, more)).finish(TIMEOUT)
}

#[test]
fn a_self_signed_certificate_keeps_its_fingerprint_over_a_restart() {
    let folder = Folder::new();
    let fingerprint = || {
        let server =
            ServeProcess::from(pages(&folder, &["--json", "--web", "0.0.0.0:0", "--tls-self-signed"]));
        let printed = server.stderr();
        assert!(printed.contains("pages at https://0.0.0.0:"), "{printed}");
        assert!(printed.contains("make a token with: linerate token add"), "{printed}");
        let line = printed.lines().find(|line| line.contains("SHA-256 fingerprint")).unwrap().to_owned();
        line.split("fingerprint ").nth(1).unwrap().to_owned()
    };
    let first = fingerprint();
    assert_eq!(first.split(':').next().map(str::len), Some(2), "{first}");
    assert_eq!(fingerprint(), first);
}

#[test]
fn what_others_reach_needs_a_token_or_tls_and_wrong_files_are_named() {
    let folder = Folder::new();
    let address = ["--web", "0.0.0.0:0"];
    for (more, message) in [
        (&[][..], "neither a token nor TLS"),
        (&["--public"], "neither a token nor TLS"),
        (&["--tls-cert", "/none.pem", "--tls-key", "/none.key"], "--tls-cert: cannot read /none.pem"),
        (&["--tls-cert", "/none.pem"], "--tls-key"),
        (&["--web-target", "192.0.2.1/24"], "'--web-target <HOST|NETWORK>'"),
        (&["--tls-self-signed", "--tls-cert", "/none.pem", "--tls-key", "/none.key"], "cannot be used with"),
    ] {
        let done = refused(&folder, &[&address, more].concat());
        assert!(done.code == Some(2) && done.stderr.contains(message), "{more:?}: {done:?}");
    }
}
