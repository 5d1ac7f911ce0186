//! A run in an emulated network whose switch is simulated by the test: it answers, is silent, sends nonsense,
//! closes.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{
    Folder, Process, ServeProcess, TIMEOUT, again_when_busy, caveats, flow, linerate, pause, test, test_json,
};

/// A control socket that passes each question and its connection to `answer`.
struct ControlSocket {
    folder: Folder,
    questions: Receiver<Value>,
}

impl ControlSocket {
    fn new(answer: impl Fn(&Value, UnixStream) + Send + 'static) -> Self {
        let folder = Folder::new();
        let listener = UnixListener::bind(folder.file("socket")).unwrap();
        let (asked, questions) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let mut line = String::new();
                BufReader::new(&stream).read_line(&mut line).unwrap();
                let question: Value = serde_json::from_str(&line).unwrap();
                if asked.send(question.clone()).is_err() {
                    return;
                }
                answer(&question, stream);
            }
        });
        Self { folder, questions }
    }

    /// A short download from `server`, as a program in this network makes it.
    fn download(&self, server: &ServeProcess, args: &[&str]) -> Value {
        let mut command =
            test("127.0.0.1", server.port, &["-t", "1", "--download", "--no-latency", "--json"]);
        command.args(args).env("LINERATE_LAB", self.folder.file("socket"));
        test_json(command)
    }

    /// A download that is measured although its switch does not answer; returns the reported reason.
    fn download_without_ports(&self) -> String {
        let server = ServeProcess::start(&["--one-off"]);
        let document = self.download(&server, &[]);
        assert_eq!(document["run"]["world"], "lab");
        assert!(flow(&document, "download")["receiver"]["bitrate_bps"].as_f64().unwrap() > 0.0);
        assert!(flow(&document, "download")["verdict"]["cause"].is_string());
        assert!(document.get("ports").is_none(), "{document}");
        assert_eq!(document["caveats"].as_array().unwrap().len(), 1, "{document}");
        assert_eq!(document["caveats"][0]["kind"], "lab_gone");
        document["caveats"][0]["text"].as_str().unwrap().to_owned()
    }
}

/// Four intervals of two ports in the requested time, and none of a third one.
fn answer(question: &Value) -> Value {
    assert_eq!(question["ask"], "port_history");
    let (from, to) = (question["from_ns"].as_u64().unwrap(), question["to_ns"].as_u64().unwrap());
    let quarter = (to - from) / 4;
    let port = |name: &str, packets: u64| {
        let intervals = (0..4).map(|at| {
            json!({
                "start_ns": from + at * quarter, "end_ns": from + (at + 1) * quarter, "packets": packets,
                "bytes": packets * 1518, "wire_bytes": packets * 1538, "dropped": at, "marked": 0,
                "queue_bytes": 0, "queue_max_bytes": at * 1000, "busy": 0.5
            })
        });
        json!({ "name": name, "intervals": intervals.collect::<Vec<_>>() })
    };
    let mut idle = port("b>s", 0);
    for interval in idle["intervals"].as_array_mut().unwrap() {
        interval["dropped"] = json!(0);
    }
    json!({
        "ports": [port("s>a", 1000), port("s>b", 10), idle],
        "late": { "count": 2, "worst_ns": 700_000, "bound_ns": 100_000 },
        "packet_rate": { "max_pps": 390_000.0, "limit_pps": 400_000.0 }
    })
}

#[test]
fn what_the_switch_saw_is_in_the_result_and_in_every_export() {
    let switch = ControlSocket::new(|question, mut stream| writeln!(stream, "{}", answer(question)).unwrap());
    let server = ServeProcess::start(&["--one-off"]);
    let archive = switch.folder.file("archive.sqlite");
    let document = switch.download(&server, &["--archive", &archive]);
    assert_eq!(document["run"]["world"], "lab");
    assert_eq!(document["caveats"], json!([]));
    let kinds = caveats(&document);
    assert!(
        kinds.contains(&"lab_late".to_owned()) && kinds.contains(&"lab_packet_limit".to_owned()),
        "{kinds:?}"
    );
    let ports = document["ports"].as_array().unwrap();
    assert_eq!(ports.iter().map(|port| &port["port"]).collect::<Vec<_>>(), ["s>a", "s>b", "b>s"]);
    assert_eq!(
        (&ports[0]["flows"], &ports[0]["packets"], &ports[0]["dropped"]),
        (&json!([0]), &json!(4000), &json!(6))
    );
    assert_eq!((&ports[0]["bytes"], &ports[0]["queue_max_bytes"]), (&json!(4000 * 1518), &json!(3000)));
    // The requested time on the clock of the run: starts after the first event, and includes all of the
    // receiver's reads.
    let question = switch.questions.try_recv().unwrap();
    let asked = question["to_ns"].as_u64().unwrap() - question["from_ns"].as_u64().unwrap();
    let samples = ports[0]["samples"].as_array().unwrap();
    let bound = |at: usize, name: &str| samples[at][name].as_u64().unwrap();
    let (start, end) = (bound(0, "start_ns"), bound(samples.len() - 1, "end_ns"));
    assert_eq!(end - start, asked / 4 * 4);
    let first_read = flow(&document, "download")["receiver"]["first_read_ns"].as_u64().unwrap();
    assert!(start < first_read && first_read < end, "{start} {first_read} {end}");
    assert!(switch.questions.try_recv().is_err(), "one question for one phase");

    let export = |arguments: &[&str]| {
        let mut command = linerate();
        command.args(arguments).args(["--archive", &archive]);
        let done = Process::start(command).finish(TIMEOUT);
        assert_eq!(done.code, Some(0), "{done:?}");
        done
    };
    assert_eq!(export(&["export", "--format", "json"]).json(), document);
    for arguments in [&["show"][..], &["export", "--format", "markdown"], &["export", "--format", "csv"]] {
        let text = export(arguments).stdout;
        assert!(text.contains("s>a"), "{text}");
    }
    assert!(!export(&["show"]).stdout.contains("b>s"), "a port that carried nothing is not shown");
}

#[test]
fn a_server_in_a_network_asks_its_switch_for_the_runs_of_strangers() {
    let switch = ControlSocket::new(|question, mut stream| writeln!(stream, "{}", answer(question)).unwrap());
    let archive = switch.folder.file("archive.sqlite");
    let mut serve = linerate();
    serve.args(["serve", "-p", "0", "--json", "--one-off", "--archive", &archive]);
    serve.env("LINERATE_LAB", switch.folder.file("socket"));
    let server = ServeProcess::from(serve);
    let mut stranger = linerate();
    stranger.args(["iperf3", "-c", "127.0.0.1", "-t", "1", "-b", "20M", "-p", &server.port.to_string()]);
    stranger.env_remove("LINERATE_LAB").env("LINERATE_ARCHIVE", switch.folder.file("its-own.sqlite"));
    assert_eq!(Process::start(stranger).finish(TIMEOUT).code, Some(0));
    assert_eq!(server.finish(TIMEOUT).code, Some(0));
    let mut export = linerate();
    export.args(["export", "--format", "json", "--archive", &archive]);
    let document = Process::start(export).finish(TIMEOUT).json();
    assert_eq!(document["run"]["world"], "lab");
    assert_eq!(document["ports"][0]["port"], "s>a", "{document}");
    assert_eq!(caveats(&document).iter().filter(|kind| *kind == "lab_late").count(), 1, "{document}");
}

#[test]
fn a_silent_switch_is_a_caveat_and_not_waited_for_without_end() {
    let (give, held) = channel();
    let switch = ControlSocket::new(move |_, stream| give.send(stream).unwrap());
    assert!(switch.download_without_ports().contains("no answer within 2 s"));
    assert!(held.try_recv().is_ok());
}

#[test]
fn a_switch_that_never_comes_to_an_end_is_a_caveat() {
    let switch = ControlSocket::new(|_, mut stream| {
        while stream.write_all(b" ").is_ok() {
            pause(Duration::from_millis(50));
        }
    });
    assert!(switch.download_without_ports().contains("no answer within 2 s"));
}

#[test]
fn nonsense_is_a_caveat() {
    let switch = ControlSocket::new(|_, mut stream| stream.write_all(b"\xff{]\n").unwrap());
    assert!(switch.download_without_ports().contains("invalid answer"));
    let switch = ControlSocket::new(|_, mut stream| stream.write_all(b"{\"error\":\"not now\"}\n").unwrap());
    assert!(switch.download_without_ports().contains("missing field `ports`"));
}

#[test]
fn a_switch_that_leaves_in_the_middle_is_a_caveat() {
    let switch = ControlSocket::new(|_, mut stream| stream.write_all(b"{\"ports\":[").unwrap());
    assert!(switch.download_without_ports().contains("disconnected before its answer was complete"));
}

#[test]
fn an_answer_without_measure_is_a_caveat_and_is_not_read_to_its_end() {
    const ANSWER: usize = 100 << 20;
    let (sender, receiver) = channel();
    let switch = ControlSocket::new(move |_, mut stream| {
        let piece = vec![b' '; 1 << 20];
        let taken = (0..ANSWER >> 20).take_while(|_| stream.write_all(&piece).is_ok()).count() << 20;
        sender.send(taken).unwrap();
    });
    // What is too long has to come within 2 s: on a busy machine, the answer is only late at times.
    let attempt = || (switch.download_without_ports(), receiver.recv_timeout(TIMEOUT).unwrap());
    let (why, taken) = again_when_busy(attempt, |(why, _)| why.contains("longer than"));
    assert!(why.contains("longer than 32 MiB"), "{why}");
    assert!((32 << 20..ANSWER).contains(&taken), "{taken} bytes were taken");
}

#[test]
fn a_network_that_is_not_there_is_a_caveat_of_a_run_that_goes_on() {
    let switch = ControlSocket::new(|_, _| ());
    std::fs::remove_file(switch.folder.file("socket")).unwrap();
    let why = switch.download_without_ports();
    assert!(why.contains("No such file") && why.contains("socket") && why.contains("linerate lab"), "{why}");
}

#[test]
fn a_run_that_fails_says_that_its_network_has_died() {
    let folder = Folder::new();
    let mut command = test("127.0.0.1", 9, &["-t", "1", "--json"]);
    command.env("LINERATE_LAB", folder.file("socket"));
    let done = Process::start(command).finish(TIMEOUT);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert_eq!(caveats(&done.json()), ["lab_gone"]);
}
