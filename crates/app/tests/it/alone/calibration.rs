//! Calibration: measured, stored, sent to the other end, compared with results, and discarded when the host
//! changes.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{
    self, Done, Folder, Process, ServeProcess, TIMEOUT, again_when_busy, caveats, flow, linerate,
    retried_when_busy, test,
};

/// linerate on a host with this calibration file.
fn on(file: &str, mut command: Command) -> Command {
    command.env("LINERATE_CALIBRATION", file);
    command
}

fn doctor(file: &str, args: &[&str]) -> Done {
    let mut command = linerate();
    command.arg("doctor").args(args);
    Process::start(on(file, command)).finish(TIMEOUT)
}

/// A small upload of a second between hosts with these calibrations.
fn upload(client: &str, server: &str) -> Done {
    let mut command = linerate();
    command.args(["serve", "-p", "0", "--json"]);
    let server = ServeProcess::from(on(server, command));
    let args = ["--upload", "-t", "1.5", "-b", "20M", "-l", "8K", "--json", "--no-latency"];
    let done = Process::start(on(client, test("127.0.0.1", server.port, &args))).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
    done
}

fn write(file: &str, document: &Value) {
    fs::write(file, document.to_string()).unwrap();
}

#[test]
fn what_a_host_measured_of_itself_comes_with_every_result() {
    let folder = Folder::new();
    let file = folder.file("state/calibration.json");
    let missing = doctor(&file, &["--json"]);
    assert!(missing.json().get("calibration").is_none() && missing.stderr.is_empty(), "{missing:?}");
    let done = doctor(&file, &["--calibrate", "--json"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let printed = &done.json()["calibration"];
    let kept: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(printed, &kept);
    assert_eq!(kept["schema"], "linerate.calibration/1");
    for positive in ["/syscall_ns", "/clock_read_ns", "/wake_up/p99_ns", "/pacing/offered_bps"] {
        assert!(kept.pointer(positive).and_then(Value::as_f64).unwrap() > 0.0, "{positive}: {kept}");
    }
    let modes: Vec<(&str, u64)> = kept["loopback"].as_array().unwrap().iter().map(mode).collect();
    let tcp = [("tcp", 1), ("tcp", 4), ("tcp", 1), ("tcp", 1)];
    assert_eq!(modes, [&tcp[..], &[("udp", 1), ("udp", 4)]].concat());
    assert_eq!(doctor(&file, &["--json"]).json()["calibration"], kept, "it is read again");

    // Both ends report it, and a rate far below the limits is not limited by a host.
    let result = upload(&file, &file).json();
    for host in [0, 1] {
        assert_eq!(result["hosts"][host]["calibration"], kept);
    }
    let kinds = caveats(&result);
    assert!(!kinds.iter().any(|kind| kind == "host_limited" || kind == "calibration_stale"), "{kinds:?}");
}

fn mode(mode: &Value) -> (&str, u64) {
    (mode["transport"].as_str().unwrap(), mode["streams"].as_u64().unwrap())
}

/// A hand-written calibration of this host with this limit for one TCP stream in blocks of 8 KiB.
fn limit(bps: f64) -> Value {
    let server = ServeProcess::start(&[]);
    let args = ["--upload", "-t", "0.2", "--json", "--no-latency"];
    let here = Process::start(test("127.0.0.1", server.port, &args)).finish(TIMEOUT).json();
    let host = &here["hosts"][0];
    json!({
        "schema": "linerate.calibration/1", "measured_at": "2026-01-01T00:00:00Z", "linerate": "0.1.0",
        "kernel": host["kernel"], "cpu": host["cpu"], "cores": host["cores"], "memory_copy": [],
        "loopback": [{ "transport": "tcp", "streams": 1, "length_bytes": 8192, "bitrate_bps": bps }],
    })
}

#[test]
fn a_result_near_the_limit_of_either_end_says_so_with_the_figures() {
    retried_when_busy(|| {
        let folder = Folder::new();
        let (slow, fast) = (folder.file("slow.json"), folder.file("fast.json"));
        let mut document = limit(21e6);
        write(&slow, &document);
        document["loopback"][0]["bitrate_bps"] = json!(90e9);
        write(&fast, &document);
        for (client, server) in [(&slow, &fast), (&fast, &slow)] {
            let result = upload(client, server).json();
            let caveats = flow(&result, "upload")["caveats"].as_array().unwrap().clone();
            let caveat = caveats.iter().find(|caveat| caveat["kind"] == "host_limited").unwrap();
            assert!(caveat["text"].as_str().unwrap().contains("21.00 Mb/s"), "{caveat}");
        }
        let result = upload(&fast, &fast).json();
        assert!(!caveats(&result).contains(&"host_limited".to_owned()), "{result}");
    });
}

/// A run of our iperf3 stand-ins at both ends, upload at 20 Mb/s; what each end archived.
fn stand_ins(calibration: &str) -> [Value; 2] {
    let folder = Folder::new();
    let archives = ["server.sqlite", "client.sqlite"].map(|name| folder.file(name));
    let tool = |archive: &str, args: &[&str]| {
        let mut command = linerate();
        command.arg("iperf3").args(args).env("LINERATE_ARCHIVE", archive);
        on(calibration, command)
    };
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let server = Process::start(tool(&archives[0], &["-s", "-1", "-p", &port, "--forceflush"]));
    support::eventually("the server listens", || server.stdout().contains("listening").then_some(()));
    let up = ["-c", "127.0.0.1", "-p", &port, "-t", "3", "-b", "20M", "-l", "8K"];
    let done = Process::start(tool(&archives[1], &up)).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(server.finish(TIMEOUT).code, Some(0));
    archives.map(|archive| {
        let mut command = linerate();
        command.args(["export", "latest", "--format", "json", "--archive", &archive]);
        Process::start(command).finish(TIMEOUT).json()
    })
}

/// The text of the caveat that a host limits the upload.
fn host_limited(result: &Value) -> Option<String> {
    let found = flow(result, "upload");
    let caveat = found["caveats"].as_array()?.iter().find(|caveat| caveat["kind"] == "host_limited")?;
    Some(caveat["text"].as_str()?.to_owned())
}

#[test]
fn runs_with_other_tools_have_the_limits_and_the_uncertainty_of_the_end_that_is_ours() {
    let folder = Folder::new();
    let file = folder.file("calibration.json");
    write(&file, &limit(21e6));
    // On a busy machine the client may not offer all of its 20 Mb/s.
    let are_limited = |results: &[Value; 2]| results.iter().all(|result| host_limited(result).is_some());
    let results = again_when_busy(|| stand_ins(&file), are_limited);
    for (end, result) in ["server", "client"].into_iter().zip(results) {
        let found = flow(&result, "upload");
        let text = host_limited(&result).unwrap_or_else(|| panic!("{end}: {found:#}"));
        assert!(text.contains("21.00 Mb/s") && text.contains("is not calibrated"), "{end}: {text}");
        let known = &found["uncertainty"];
        assert!(known["expanded_bps"].as_f64().unwrap() > 0.0, "{end}: {found:#}");
        // A sender knows only what was acknowledged, and notes that this is not a receiver's count.
        assert_eq!(known.to_string().contains("the only known count"), end == "client", "{known:#}");
    }
}

#[test]
fn limits_of_another_kernel_are_not_used_and_the_result_says_so() {
    let folder = Folder::new();
    let file = folder.file("calibration.json");
    let mut document = limit(21e6);
    document["kernel"] = json!("Linux 2.4.0");
    write(&file, &document);
    let result = upload(&file, "").json();
    let kinds = caveats(&result);
    assert!(kinds.contains(&"calibration_stale".to_owned()), "{kinds:?}");
    assert!(!kinds.contains(&"host_limited".to_owned()), "{kinds:?}");
    assert_eq!(result["caveats"].as_array().unwrap().len(), 1, "once, for the run");
    let checks = doctor(&file, &["--json"]).json()["checks"].as_array().unwrap().clone();
    let found = checks.iter().find(|check| check["id"] == "calibration").unwrap();
    assert_eq!((&found["status"], &found["remedy"]), (&json!("note"), &json!("linerate doctor --calibrate")));
}

#[test]
fn a_file_that_is_no_calibration_is_named_and_ends_nothing() {
    let folder = Folder::new();
    let file = folder.file("calibration.json");
    for text in ["", "{", r#"{"schema":"linerate.calibration/99"}"#, "[1,2]"] {
        fs::write(&file, text).unwrap();
        let done = upload(&file, "");
        assert!(done.stderr.contains(&file) && done.stderr.contains("--calibrate"), "{text}: {done:?}");
        assert!(done.json()["hosts"][0].get("calibration").is_none());
    }
    let nowhere = doctor("/proc/no/such/place.json", &["--calibrate"]);
    assert_eq!(nowhere.code, Some(1), "{nowhere:?}");
    assert!(nowhere.stderr.contains("could not be saved"), "{nowhere:?}");
}

#[test]
fn a_rate_is_printed_to_the_digit_to_which_it_is_known() {
    let result = upload("", "").json();
    let known = &flow(&result, "upload")["uncertainty"];
    let half = known["expanded_bps"].as_f64().unwrap();
    assert!(half > 0.0 && known["coverage"] == 0.95, "{known}");
    let parts = known["contributions"].as_array().unwrap();
    assert_eq!(parts[0]["source"], known["main"]);
    let sizes: Vec<f64> = parts.iter().map(|part| part["standard_bps"].as_f64().unwrap()).collect();
    assert!(sizes.is_sorted_by(|a, b| a >= b) && *sizes.last().unwrap() > 0.0, "{known}");
    let combined = sizes.iter().map(|size| size * size).sum::<f64>().sqrt();
    let factor = known["coverage_factor"].as_f64().unwrap();
    assert!((half / (factor * combined) - 1.0).abs() < 1e-9, "{known}");
    // A tenth of a second has too few intervals for an estimate.
    let server = ServeProcess::start(&[]);
    let short = Process::start(test("127.0.0.1", server.port, &["--upload", "-t", "0.1", "--json"]));
    assert!(flow(&short.finish(TIMEOUT).json(), "upload").get("uncertainty").is_none());
}
