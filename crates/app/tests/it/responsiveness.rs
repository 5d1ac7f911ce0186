//! `linerate responsiveness` with our own server, over loopback.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::support::{Done, Folder, Process, ServeProcess, TIMEOUT, eventually, linerate, pause, signal};

/// A server, and a user who has a data directory and an archive.
struct ResponsivenessUser {
    server: ServeProcess,
    folder: Folder,
    archive: String,
    address: String,
}

impl ResponsivenessUser {
    fn new(more: &[&str]) -> Self {
        let (server, folder) = (served(&Folder::new(), 0, more), Folder::new());
        let archive = folder.file("runs.db");
        Self { address: address(&server), server, folder, archive }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = linerate();
        command.env("XDG_DATA_HOME", self.folder.path()).args(args).args(["--archive", &self.archive]);
        command
    }

    fn run(&self, args: &[&str]) -> Done {
        Process::start(self.command(args)).finish(TIMEOUT)
    }

    fn measure(&self, more: &[&str]) -> Done {
        self.run(&[&["responsiveness", &self.address, "-t", "2"], more].concat())
    }
}

fn served(owner: &Folder, port: u16, more: &[&str]) -> ServeProcess {
    let port = port.to_string();
    let args = ["serve", "-p", "0", "--json", "--archive", ":memory:", "-B", "127.0.0.1", "--tls"];
    let mut command = linerate();
    command.env("XDG_DATA_HOME", owner.path()).args(args).args(["--responsiveness-port", &port]).args(more);
    ServeProcess::from(command)
}

fn address(server: &ServeProcess) -> String {
    format!("127.0.0.1:{}", server.await_events("listening_for_responsiveness", 1)["port"])
}

fn rpm(report: &Value, of: &str) -> f64 {
    report[of].as_f64().unwrap_or_else(|| panic!("{of}: {report}"))
}

#[test]
fn both_directions_are_measured_at_once_and_archived() {
    let user = ResponsivenessUser::new(&[]);
    let done = user.measure(&["--json", "--name", "office"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stderr.contains("is remembered from now on"), "{done:?}");
    let document = done.json();
    let [report] = &document["responsiveness"].as_array().unwrap()[..] else { panic!("{document}") };
    assert_eq!(report["loaded"], serde_json::json!(["download", "upload"]));
    assert_eq!((&report["encrypted"], &report["confidence"]), (&true.into(), &"low".into()), "{report}");
    for of in ["tcp_ns", "tls_ns", "http_ns", "loaded_http_ns"] {
        assert!(rpm(report, of) > 0.0, "{of}: {report}");
    }
    let mean = f64::midpoint(rpm(report, "foreign_rpm"), rpm(report, "loaded_rpm"));
    assert!((rpm(report, "rpm") / mean - 1.0).abs() < 1e-9, "{report}");
    let flows = document["flows"].as_array().unwrap();
    assert_eq!(flows.len(), 2);
    for flow in flows {
        assert!(flow["receiver"]["bytes"].as_u64().unwrap() > 1_000_000, "{flow}");
        assert!(flow["latency"]["loaded"]["count"].as_u64().unwrap() > 0, "{flow}");
        assert!(flow["latency"]["idle"]["count"].as_u64().unwrap() > 5, "{flow}");
    }
    let caveats = document["caveats"].to_string();
    assert!(caveats.contains("encrypted (TLS)"), "{caveats}");
    // The same from the archive, in words.
    let shown = user.run(&["show", "office"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let words = format!("{:.0} round trips per minute (RPM)", rpm(report, "rpm"));
    let text = shown.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("Responsiveness under load both ways") && text.contains(&words),
        "{}",
        shown.stdout
    );
}

#[test]
fn directions_are_measured_alone_or_one_after_the_other() {
    let user = ResponsivenessUser::new(&[]);
    let loaded = |more: &[&str]| {
        let done = user.measure(&[&["--json"], more].concat());
        assert_eq!(done.code, Some(0), "{more:?}: {done:?}");
        let document = done.json();
        let reports = document["responsiveness"].as_array().unwrap();
        let flows = document["flows"].as_array().unwrap();
        let names: Vec<String> =
            flows.iter().map(|flow| flow["direction"].as_str().unwrap().to_owned()).collect();
        (reports.iter().map(|report| report["loaded"].clone()).collect::<Vec<_>>(), names)
    };
    let (download, upload) = (serde_json::json!(["download"]), serde_json::json!(["upload"]));
    assert_eq!(loaded(&["--download"]), (vec![download.clone()], vec!["download".to_owned()]));
    assert_eq!(loaded(&["--upload"]), (vec![upload.clone()], vec!["upload".to_owned()]));
    let both = vec!["download".to_owned(), "upload".to_owned()];
    assert_eq!(loaded(&["--sequential"]), (vec![download, upload], both));
}

#[test]
fn an_interrupted_test_prints_and_keeps_what_it_has() {
    let user = ResponsivenessUser::new(&[]);
    // A busy host may take long until the path carries load.
    for seconds in [2, 6, 20] {
        let name = format!("cut after {seconds} s");
        let args = ["responsiveness", &user.address, "-t", "60", "--name", &name];
        let process = Process::start(user.command(&args));
        user.server.await_events("begun", 1);
        pause(Duration::from_secs(seconds));
        signal(process.pid(), "INT");
        let done = process.finish(TIMEOUT);
        assert_eq!(done.code, Some(130), "{done:?}");
        assert!(done.stdout.contains("interrupted"), "{done:?}");
        let shown = user.run(&["show", &name, "--json"]).json();
        assert_eq!(shown["run"]["outcome"], "interrupted", "{shown}");
        if !shown["flows"].as_array().unwrap().is_empty() {
            assert!(done.stdout.contains("download"), "{done:?}");
            return;
        }
    }
    panic!("nothing was moved in 20 s");
}

#[test]
fn another_server_in_its_place_is_refused() {
    let user = ResponsivenessUser::new(&[]);
    assert_eq!(user.measure(&[]).code, Some(0));
    let port: u16 = user.address.rsplit(':').next().unwrap().parse().unwrap();
    let ResponsivenessUser { server, folder, archive, address } = user;
    drop(server);
    let user = ResponsivenessUser { server: served(&Folder::new(), port, &[]), folder, archive, address };
    let refused = user.measure(&[]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("is not the one that is remembered"), "{refused:?}");
    assert!(refused.stdout.is_empty(), "{refused:?}");
    // A given fingerprint does not depend on what was remembered.
    let printed = user.server.stderr();
    let line = printed.lines().find(|line| line.contains("SHA-256 fingerprint")).unwrap().to_owned();
    let shown = line.rsplit(' ').next().unwrap();
    let trusted = user.measure(&["--tls-fingerprint", shown]);
    assert_eq!(trusted.code, Some(0), "{trusted:?}");
}

#[test]
fn what_is_no_such_server_is_named() {
    let user = ResponsivenessUser::new(&[]);
    let run = |args: &[&str]| user.run(&[&["responsiveness", "-t", "1"], args].concat());
    let native = format!("127.0.0.1:{}", user.server.port);
    let https = run(&[&native]);
    assert!(https.code == Some(1) && https.stderr.contains("does not speak HTTP/2"), "{https:?}");
    let plain = TcpListener::bind("127.0.0.1:0").unwrap();
    let there = plain.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in plain.incoming() {
            let _ = stream.unwrap().write_all(b"SSH-2.0-\x1b[31mhello\r\n");
        }
    });
    let ssh = run(&[&there.to_string()]);
    assert!(ssh.code == Some(1) && ssh.stderr.contains("does not speak TLS here"), "{ssh:?}");
    let ssh = run(&[&format!("http://{there}/")]);
    assert!(ssh.code == Some(1) && !ssh.stderr.contains('\u{1b}'), "{ssh:?}");
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let closed = run(&[&free.to_string()]);
    assert!(
        closed.code == Some(1) && closed.stderr.contains(&format!("no connection to {free}")),
        "{closed:?}"
    );
    let elsewhere = run(&[&format!("https://{}/elsewhere", user.address)]);
    assert!(elsewhere.code == Some(1) && elsewhere.stderr.contains("404 Not Found"), "{elsewhere:?}");
    for (args, words) in [
        (&["https://h:x/"][..], "is no server"),
        (&["https://h/", "-p", "5"], "leave out --port"),
        (&["h", "-t", "0.1"], "between 1 s and"),
        (&["h", "-i", "1m"], "between 500"),
        (&["h", "-t", "2", "-i", "3"], "is longer than the 2 s of --time"),
        (&["http://h/", "--tls-ca", "x"], "has no certificate"),
        (&["h", "--sequential", "--upload"], "cannot be used with"),
        (&["h", "--report", "x.pdf"], "must end in"),
    ] {
        let refused = run(args);
        assert!(refused.code == Some(2) && refused.stderr.contains(words), "{args:?}: {refused:?}");
    }
}

#[test]
fn a_server_that_is_busy_says_so() {
    let user = ResponsivenessUser::new(&[]);
    let host = format!("127.0.0.1:{}", user.server.port);
    let args = ["test", &host, "-t", "20", "--upload", "-b", "1M", "--no-latency", "--archive", ":memory:"];
    let mut other = linerate();
    other.args(args);
    let other = Process::start(other);
    eventually("the other test runs", || {
        let begun = user.measure(&[]);
        (begun.code == Some(1)).then(|| {
            assert!(
                begun.stdout.contains("503 Service Unavailable") || begun.stderr.contains("503"),
                "{begun:?}"
            );
        })
    });
    signal(other.pid(), "INT");
    other.finish(TIMEOUT);
}

/// A program that only knows the address of the pages.
#[test]
fn the_pages_tell_where_responsiveness_is_measured() {
    let folder = Folder::new();
    let archive = folder.file("served.db");
    for port in [Some("0"), None] {
        let mut command = linerate();
        let args = ["serve", "-p", "0", "--json", "--archive", &archive, "--web", "127.0.0.1:0", "--tls"];
        command.env("XDG_DATA_HOME", folder.path()).args(args);
        command.args(port.iter().flat_map(|port| ["--responsiveness-port", port]));
        let server = ServeProcess::from(command);
        let printed = server.stderr();
        let pages = printed.lines().find_map(|line| line.strip_prefix("pages at http://")).unwrap();
        let pages = pages.trim_end_matches('/');
        let mut stream = TcpStream::connect(pages).unwrap();
        let request = "GET /.well-known/nq HTTP/1.1\r\nHost: localhost:1\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        let status = if port.is_some() { "HTTP/1.1 200 " } else { "HTTP/1.1 404 " };
        assert!(head.starts_with(status), "{reply}");
        if port.is_some() {
            let listening = server.await_events("listening_for_responsiveness", 1)["port"].clone();
            let urls = serde_json::from_str::<Value>(body).unwrap()["urls"].clone();
            for name in ["small_download_url", "large_https_download_url", "upload_url"] {
                let at = format!("https://localhost:{listening}/");
                assert!(urls[name].as_str().is_some_and(|url| url.starts_with(&at)), "{urls}");
            }
        } else {
            assert!(body.contains("--responsiveness-port"), "{reply}");
        }
    }
}
