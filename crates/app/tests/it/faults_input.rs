//! Invalid input: impossible values, unsuitable hosts, and unwritable outputs.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::{Done, Folder, Process, ServeProcess, caveats, linerate, test, test_json};

use OptionValue::{Name, Number, Positive, Report, Word};

/// Timeout for a command that does not measure anything.
const AT_ONCE: Duration = Duration::from_secs(30);

/// A short test with little load.
const SMALL: [&str; 4] = ["-t", "0.3", "-b", "20M"];

/// Type of an option's value, which determines the invalid values to try.
enum OptionValue {
    /// A number above zero.
    Positive,
    /// A number, including zero.
    Number,
    /// One of several words, or an address.
    Word,
    /// The file name of a report, whose extension selects the format.
    Report,
    /// A name that only a host or a file system can check; see the tests below.
    Name,
}

/// All options of `linerate test` with values, and values beyond their ranges.
const TEST: &[(&str, OptionValue, &[&str])] = &[
    ("--port", Positive, &["65536"]),
    // Used together, these are tested in `agents.rs`.
    ("--from", Name, &["a", ""]),
    ("--agent-token-file", Name, &["/no/such/file"]),
    ("--time", Positive, &["0.001", "86401", "2 parsecs"]),
    ("--bytes", Positive, &["1.5"]),
    ("--blockcount", Positive, &[]),
    ("--parallel", Positive, &["10001", "20000"]),
    // Used with a direction, this is tested in `test_file.rs`.
    ("--file", Name, &["/no/such/file", "/", "/dev/null", ""]),
    ("--bitrate", Number, &["10MB", "1e400"]),
    ("--burst-period", Positive, &["0.5ms", "61"]),
    ("--fq-rate", Positive, &["7"]),
    ("--length", Positive, &["65M"]),
    ("--omit", Number, &["601"]),
    ("--interval", Positive, &["0.001", "3601"]),
    ("--read-rate", Positive, &["7"]),
    ("--until", Positive, &["60%", "0.001%"]),
    ("--multicast", Word, &["10.0.0.1", "224.0.0.1", "ff02::1", "239.1.2.3"]),
    ("--ttl", Positive, &["0", "256"]),
    ("--workload", Word, &["tcp_rr"]),
    // Used with a workload, these are tested in `transactions.rs`.
    ("--request-size", Positive, &["much"]),
    ("--response-size", Positive, &["much"]),
    ("--pipeline", Positive, &["1025"]),
    ("--request-rate", Positive, &["1.5", "fast"]),
    ("--requests", Positive, &["1.5"]),
    ("--window", Positive, &["1G"]),
    ("--set-mss", Positive, &["87", "65496"]),
    ("--congestion", Name, &[]),
    ("--notsent-lowat", Positive, &["1G"]),
    ("--busy-poll", Positive, &["11ms", "0.5us"]),
    ("--tos", Number, &["256", "0xfff", "09"]),
    ("--dscp", Number, &["64", "af14", "gold"]),
    ("--bind", Word, &["10.0.0", "::g"]),
    ("--bind-dev", Name, &[]),
    ("--cport", Positive, &["65536"]),
    ("--io", Word, &["splise", "msg"]),
    ("--affinity", Number, &["0-3"]),
    ("--server-affinity", Number, &["0,1"]),
    ("--link", Positive, &["fast"]),
    ("--report", Report, &["result.pdf", "/no/such/folder/result.json", "result"]),
    ("--investigate", Word, &["read", "all"]),
    ("--archive", Name, &[""]),
    ("--name", Name, &["", "a,b", "a=b", "a/b", "-a", "latest"]),
    ("--note", Name, &["", " "]),
    ("--set", Word, &["notes.=x", "notes.x=", "window=64K"]),
    ("--tls-fingerprint", Word, &["00:11", "ab"]),
    ("--tls-ca", Name, &["/no/such/file", "/", "/dev/null", ""]),
];

/// The options of `linerate serve`.
const SERVE: &[(&str, OptionValue, &[&str])] = &[
    ("--port", Number, &["65536"]),
    ("--bind", Word, &["localhost:1"]),
    ("--policy", Word, &["exklusive"]),
    ("--responsiveness-port", Number, &["65536"]),
    ("--limit-time", Positive, &[]),
    ("--limit-clients", Positive, &[]),
    ("--limit-memory", Positive, &["much"]),
    ("--without", Word, &["iperf", "all"]),
    ("--limit-daily-tests", Number, &["1.5"]),
    ("--limit-daily-time", Number, &["1x"]),
    ("--limit-daily-bytes", Number, &["much"]),
    ("--limit-daily-total", Number, &["much"]),
    ("--limit-archive-runs", Positive, &["1.5"]),
    ("--limit-archive-bytes", Positive, &["much"]),
    ("--limit-archive-days", Positive, &["36501"]),
    ("--agent-token-file", Name, &["/no/such/file", "/", "/dev/null", ""]),
    // Port 0 is any free one.
    ("--web", Name, &["localhost", "192.0.2.1:", "example.net:80", "70000", "-1", "1x", "", "one"]),
    ("--web-token-file", Name, &["/no/such/file", "/", "/dev/null", ""]),
    ("--web-agent-token-file", Name, &["/no/such/file", "/", "/dev/null", ""]),
    ("--tokens", Name, &["/no/such/file", "/", "/dev/null", ""]),
    ("--tls-cert", Name, &["/no/such/file", "/", "/dev/null", ""]),
    ("--tls-key", Name, &["/no/such/file", "/", "/dev/null", ""]),
    ("--web-target", Name, &["", "a/b", "a b", "192.0.2.1/24", "192.0.2.0/33", "-1"]),
    ("--web-name", Name, &["", "a/b", "a b"]),
    ("--config", Name, &["/no/such/file", "/", "/dev/zero", ""]),
    ("--archive", Name, &[""]),
];

fn ended(mut command: Command, args: &[&str]) -> Done {
    command.args(args);
    Process::start(command).finish(AT_ONCE)
}

/// Runs a whole command line.
fn run(args: &[&str]) -> Done {
    ended(linerate(), args)
}

/// Invalid commands end with 2 before anything is tried, and the message names the argument.
fn refused(args: &[&str], name: &str) {
    let done = run(args);
    assert_eq!(done.code, Some(2), "{args:?}: {done:?}");
    assert!(done.stderr.contains(name), "{args:?} does not name {name}: {done:?}");
    assert!(done.stdout.is_empty(), "{args:?}: {done:?}");
}

/// The long options in the help of a command, and whether they take a value.
fn options(command: &str) -> Vec<(String, bool)> {
    let help = run(&[command, "--help"]).stdout;
    let lines = help
        .lines()
        .filter(|line| line.trim_start().starts_with('-') && line.len() - line.trim_start().len() < 8);
    lines
        .map(|line| {
            let start = line.find("--").unwrap_or_else(|| panic!("no long name: {line}"));
            let end = line[start..].find([' ', '=', '[']).map_or(line.len(), |end| start + end);
            (line[start..end].to_owned(), line.contains('<'))
        })
        .collect()
}

fn every_option_is_checked(command: &[&str], table: &[(&str, OptionValue, &[&str])]) {
    let known = options(command[0]);
    let with_value: BTreeSet<_> =
        known.iter().filter(|(_, value)| *value).map(|(name, _)| name.as_str()).collect();
    let rows: BTreeSet<_> = table.iter().map(|(name, ..)| *name).collect();
    assert_eq!(with_value, rows, "options with a value, and the rows of this table");
    for (name, takes, more) in table {
        let always: &[&str] = match takes {
            Positive => &["0", "-1", "99999999999999999999999999999", "1x", "", "one"],
            Number => &["-1", "99999999999999999999999999999", "1x", "", "one"],
            Word => &["0", "-1", "99999999999999999999999999999", "1x", "", "one"],
            Report => &["0", "-1", "1x", "one", ""],
            Name => &[],
        };
        for value in always.iter().chain(*more) {
            refused(&[command, &[&format!("{name}={value}")]].concat(), name);
        }
    }
    for (name, takes_value) in &known {
        if !takes_value && name != "--help" {
            refused(&[command, &[&format!("{name}=yes")]].concat(), name);
        }
        // For a typing error, the correct name is suggested.
        let slip = format!("{name}q");
        refused(&[command, &[slip.as_str()]].concat(), &format!("'{slip}'"));
        refused(&[command, &[slip.as_str()]].concat(), &format!("'{name}'"));
    }
}

#[test]
fn every_option_of_test_refuses_what_cannot_be() {
    every_option_is_checked(&["test", "127.0.0.1"], TEST);
}

#[test]
fn every_option_of_serve_refuses_what_cannot_be() {
    every_option_is_checked(&["serve"], SERVE);
}

#[test]
fn options_that_contradict_each_other_are_refused_by_name() {
    let pairs: &[(&[&str], &str)] = &[
        (&["-u", "-m"], "--mptcp"),
        (&["--upload", "--download"], "--download"),
        (&["--upload", "--bidir"], "--bidir"),
        (&["-R", "--bidir"], "--bidir"),
        (&["-t", "1", "-n", "1M"], "--bytes"),
        (&["-t", "1", "-k", "10"], "--blockcount"),
        (&["-n", "1M", "-k", "10"], "--blockcount"),
        (&["--until", "1%", "-n", "1M"], "--bytes"),
        (&["--until", "1%", "-k", "10"], "--blockcount"),
        (&["-S", "184", "--dscp", "ef"], "--dscp"),
        (&["-4", "-6"], "--version6"),
        (&["-4", "-B", "::1"], "--bind"),
        (&["-6", "-B", "127.0.0.1"], "--bind"),
        (&["--json", "--json-stream"], "--json-stream"),
        (&["--rows", "--json"], "--rows"),
        (&["-u", "-M", "1000"], "--set-mss"),
        (&["-u", "-C", "cubic"], "--congestion"),
        (&["-u", "-N"], "--no-delay"),
        (&["-u", "-Z"], "--zerocopy"),
        (&["-u", "--io", "copy"], "--io"),
        (&["--burst-period", "10ms"], "--burst-period"),
        (&["-b", "0", "--burst-period", "10ms"], "--burst-period"),
        (&["-b", "1M", "-n", "1M", "--burst-period", "10ms"], "--burst-period"),
        (&["-b", "1M", "-t", "1", "--burst-period", "300ms"], "--burst-period"),
        (&["-b", "1M", "-O", "0.5", "--burst-period", "1"], "--burst-period"),
        (&["-b", "1M", "--burst-period", "10ms", "--fq-rate", "1M"], "--burst-period"),
        (&["--txtime"], "--txtime"),
        (&["-u", "-b", "0", "--txtime"], "--txtime"),
        (&["-u", "--burst-period", "10ms", "--txtime"], "--txtime"),
        (&["-u", "--workload", "rr", "--txtime"], "--txtime"),
        (&["-u", "--multicast", "239.1.2.3", "-R"], "--multicast"),
        (&["-u", "--multicast", "239.1.2.3", "--bidir"], "--multicast"),
        (&["-u", "--multicast", "239.1.2.3", "--until", "1%"], "--until"),
        (&["-u", "--multicast", "239.1.2.3", "-P", "129"], "--parallel"),
        (&["-u", "--multicast", "239.1.2.3", "--workload", "rr"], "--multicast"),
        (&["-u", "--ttl", "3"], "--ttl"),
        (&["-Z", "--io", "copy"], "--io"),
        (&["-u", "--quick-ack"], "--quick-ack"),
        (&["-u", "--notsent-lowat", "1M"], "--notsent-lowat"),
        (&["-u", "--fast-open"], "--fast-open"),
        (&["--mptcp", "--fast-open"], "--fast-open"),
        (&["-u", "-l", "31"], "--length"),
        (&["-u", "-l", "65508"], "--length"),
        // The last streams would need source ports that do not exist.
        (&["-P", "100", "--cport", "65500"], "--cport"),
        (&["-P", "20", "--bidir", "--cport", "65500"], "--cport"),
    ];
    for (args, name) in pairs {
        refused(&[&["test", "127.0.0.1"], *args].concat(), name);
    }
}

#[test]
fn a_host_that_is_none_is_refused() {
    refused(&["test"], "<HOST>");
    for host in ["", "host:", "host:0", "host:65536", "[::1", ":5201"] {
        refused(&["test", host], if host.is_empty() { "HOST" } else { host });
    }
}

#[test]
fn what_this_host_does_not_have_is_named() {
    let server = ServeProcess::start(&[]);
    for (option, value, remedy) in
        [("--congestion", "cubicc", "available: "), ("--bind-dev", "no-such-device0", "`ip link` lists them")]
    {
        let done = ended(test("127.0.0.1", server.port, &SMALL), &[option, value]);
        assert_eq!(done.code, Some(1), "{option}: {done:?}");
        assert!(done.stderr.contains(remedy), "{option}: {done:?}");
    }
    // A nonexistent CPU does not stop a measurement, but causes a caveat.
    let document = test_json(test("127.0.0.1", server.port, &["-t", "0.3", "--affinity", "4000", "--json"]));
    assert!(caveats(&document).contains(&"setting_ineffective".to_owned()), "{document}");
}

/// A command with this limit of open files that it cannot raise.
fn with_few_files(command: &Command, files: u32) -> Command {
    // Root may raise the hard limit unless it lacks this capability.
    let root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
    let mut limited = Command::new("sh");
    limited.args(["-c", &format!("ulimit -n {files} && exec \"$@\""), "sh"]);
    if root {
        limited.args(["setpriv", "--bounding-set", "-sys_resource"]);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    limited.arg(command.get_program()).args(command.get_args());
    limited
}

#[test]
fn a_client_with_too_few_files_says_how_to_raise_the_limit() {
    let server = ServeProcess::start(&[]);
    let many = test("127.0.0.1", server.port, &["-t", "1", "-P", "500", "-b", "10k"]);
    let done = Process::start(with_few_files(&many, 64)).finish(AT_ONCE);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("only 64 are allowed") && done.stderr.contains("ulimit -Hn"), "{done:?}");
    let ended = server.await_events("ended", 1);
    assert!(ended["error"].as_str().unwrap().contains("ulimit"), "the server hears why: {ended}");
}

#[test]
fn a_server_with_too_few_files_says_how_to_raise_the_limit() {
    let mut serve = linerate();
    serve.args(["serve", "-p", "0", "--json"]);
    let server = ServeProcess::from(with_few_files(&serve, 64));
    let many = test("127.0.0.1", server.port, &["-t", "1", "-P", "500", "-b", "10k"]);
    let done = Process::start(many).finish(AT_ONCE);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("server"), "who is short of files: {done:?}");
    assert!(done.stderr.contains("only 64 are allowed") && done.stderr.contains("ulimit -Hn"), "{done:?}");
    // A test that fits the limit succeeds.
    let done = ended(test("127.0.0.1", server.port, &SMALL), &[]);
    assert_eq!(done.code, Some(0), "{done:?}");
}

/// Measures into an unwritable archive: prints the result with a warning.
fn not_archived(archive: &str) {
    let server = ServeProcess::start(&[]);
    let done = ended(test("127.0.0.1", server.port, &SMALL), &["--archive", archive]);
    assert_eq!(done.code, Some(0), "{archive}: {done:?}");
    assert!(done.stdout.contains("Verdict"), "{archive}: {done:?}");
    assert!(!done.stdout.contains("archived as"), "{archive}: {done:?}");
    assert!(done.stderr.contains("warning:") && done.stderr.contains("not archived"), "{archive}: {done:?}");
    let shown = run(&["show", "--archive", archive]);
    assert_eq!(shown.code, Some(1), "{archive}: {shown:?}");
    assert!(shown.stderr.contains(archive), "which archive: {shown:?}");
}

#[test]
fn an_archive_that_is_a_folder_does_not_cost_the_result() {
    let folder = Folder::new();
    std::fs::create_dir(folder.file("archive")).unwrap();
    not_archived(&folder.file("archive"));
}

#[test]
fn an_archive_where_nobody_may_write_does_not_cost_the_result() {
    not_archived("/proc/archive.sqlite");
}

#[test]
fn a_corrupt_archive_does_not_cost_the_result_and_is_left_alone() {
    let folder = Folder::new();
    let archive = folder.file("archive.sqlite");
    let noise: Vec<u8> = (0..8192_u32).map(|at| (at * 31 % 251) as u8).collect();
    std::fs::write(&archive, &noise).unwrap();
    not_archived(&archive);
    assert_eq!(std::fs::read(&archive).unwrap(), noise);
}

#[test]
fn a_reader_that_has_seen_enough_ends_nothing() {
    for format in [&[][..], &["--json-stream"], &["--json"]] {
        let folder = Folder::new();
        let archive = folder.file("archive.sqlite");
        let server = ServeProcess::start(&[]);
        let mut command = test("127.0.0.1", server.port, &SMALL);
        command.args(["--archive", &archive]).args(format).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // `linerate test … | head -c 1`.
        child.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{format:?}: {stderr}");
        assert!(!stderr.contains("error") && !stderr.contains("panic"), "{format:?}: {stderr}");
        let document = run(&["show", "--json", "--archive", &archive]).json();
        assert_eq!(document["run"]["outcome"], "completed", "{format:?}");
        assert!(!caveats(&document).contains(&"events_dropped".to_owned()), "{format:?}: {document}");
    }
}

#[test]
fn a_full_disk_behind_stdout_is_a_failure() {
    let server = ServeProcess::start(&[]);
    for format in ["--json", "--json-stream", "--quiet"] {
        let mut command = test("127.0.0.1", server.port, &SMALL);
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = command.arg(format).stdout(full).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{format}: {stderr}");
        assert!(stderr.contains("could not be printed"), "{format}: {stderr}");
    }
}

#[test]
fn nobody_listening_to_stderr_ends_nothing() {
    let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
    let server = ServeProcess::start(&[]);
    let mut command = test("127.0.0.1", server.port, &SMALL);
    let output = command.args(["--archive", "/proc/archive.sqlite"]).stderr(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stdout).contains("Verdict"));
    let refused = linerate().args(["test", "127.0.0.1", "-t", "0"]).stderr(full()).status().unwrap();
    assert_eq!(refused.code(), Some(2));
    let mut serve = linerate();
    serve.args(["serve", "-p", "0", "--one-off", "--json"]).stderr(full()).stdout(Stdio::piped());
    let mut child = serve.spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line)
        .unwrap();
    let port = serde_json::from_str::<serde_json::Value>(&line).unwrap()["port"].as_u64().unwrap();
    let done = ended(test("127.0.0.1", u16::try_from(port).unwrap(), &SMALL), &[]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// Commands that print without measuring.
const PRINTING: [&[&str]; 7] = [
    &["history"],
    &["history", "--json"],
    &["--help"],
    &["--version"],
    &["man", "serve"],
    &["completions", "bash"],
    &["plan", "--json"],
];

#[test]
fn a_full_disk_behind_stdout_fails_every_command_that_prints() {
    for args in PRINTING {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = linerate().args(args).stdout(full).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {stderr}");
        assert!(stderr.contains("could not be printed"), "{args:?}: {stderr}");
    }
}

#[test]
fn a_stand_in_reports_a_full_disk_on_stdout_and_keeps_its_exit_code() {
    for args in [&["iperf3", "--version"][..], &["iperf3", "--help"], &["nuttcp", "-V"]] {
        let usual = linerate().args(args).output().unwrap();
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = linerate().args(args).stdout(full).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), usual.status.code(), "{args:?}: {stderr}");
        assert!(stderr.contains("could not be printed"), "{args:?}: {stderr}");
    }
}

#[test]
fn a_reader_that_has_gone_is_no_trouble_of_any_command() {
    for args in PRINTING.into_iter().chain([&["iperf3", "--version"][..]]) {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = linerate().args(args).stdout(writer).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), stderr.as_ref()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn a_home_that_is_no_absolute_path_is_refused_by_name() {
    let folder = Folder::new();
    let mut command = linerate();
    command.args(["history"]).current_dir(folder.path()).env("HOME", "relative");
    command.env_remove("LINERATE_ARCHIVE").env_remove("XDG_DATA_HOME");
    let done = Process::start(command).finish(AT_ONCE);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("HOME is 'relative', which is not an absolute path"), "{done:?}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is made there");
}
