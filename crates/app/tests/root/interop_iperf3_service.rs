//! iperf3 as a service and in scripts: daemon, process id file, log file, timestamps, warnings.

use std::path::Path;

use crate::support::{
    Folder, Iperf3, Netns, Process, TIMEOUT, at_once, both, both_on, eventually, signal, skipped,
};

use Iperf3::{Newer, Ours, Real};

/// The process id in a file, once it is there.
fn pid_in(file: &str) -> u32 {
    eventually("the process id is written", || std::fs::read_to_string(file).ok()?.parse().ok())
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn a_daemon_leaves_its_terminal_and_serves() {
    for server in [Ours, Real] {
        let (netns, folder) = (Netns::new(), Folder::new());
        let (pid_file, log) = (folder.file("pid"), folder.file("log"));
        let args = ["-s", "-D", "-1", "-I", &pid_file, "--logfile", &log];
        let started = Process::start(server.command(&netns, &args));
        let starter = started.pid();
        let started = started.finish(TIMEOUT);
        assert_eq!((started.code, started.stdout.as_str(), started.stderr.as_str()), (Some(0), "", ""));
        let pid = pid_in(&pid_file);
        assert_ne!(pid, starter, "{server:?}: the file names the daemon");
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
        assert_eq!(
            (fields[3], fields[4]),
            (&*pid.to_string(), "0"),
            "its own session without a terminal: {stat}"
        );
        for stream in 0..3 {
            let target = std::fs::read_link(format!("/proc/{pid}/fd/{stream}")).unwrap();
            assert_eq!(target, Path::new("/dev/null"), "{server:?}");
        }
        if server == Ours {
            // iperf3 does so since 3.17.
            let folder = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap();
            assert_eq!(folder, std::env::current_dir().unwrap());
        }
        netns.await_listener(crate::support::PORT);
        let client = Real.ask(&netns, &["-t", "1", "-b", "1M"]);
        assert_eq!(client.code, Some(0), "{client:?}");
        eventually("the daemon has ended", || (!Path::new(&format!("/proc/{pid}")).exists()).then_some(()));
        assert!(!Path::new(&pid_file).exists(), "{server:?}");
        let text = std::fs::read_to_string(&log).unwrap();
        assert!(text.contains("Server listening on 5201") && text.contains("receiver"), "{text}");
    }
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn a_process_id_file_names_one_running_server() {
    for who in [Ours, Real] {
        let (netns, folder) = (Netns::new(), Folder::new());
        let file = folder.file("pid");
        std::fs::write(&file, "4194305 of a process that cannot exist").unwrap();
        let server = who.serve(&netns, &["-I", &file]);
        assert_eq!(pid_in(&file), server.pid());
        let second = Process::start(who.command(&netns, &["-s", "-p", "5300", "-I", &file])).finish(TIMEOUT);
        assert_eq!(second.code, Some(1), "{second:?}");
        assert_eq!(second.stderr, "iperf3: Another instance of iperf3 appears to be running\n");
        assert_eq!(pid_in(&file), server.pid(), "{who:?}: the second has left it");
        signal(server.pid(), "TERM");
        server.finish(TIMEOUT);
        assert!(!Path::new(&file).exists(), "{who:?}");
        let nowhere = folder.file("none/pid");
        let client = who.ask(&netns, &["-I", &nowhere]);
        assert_eq!(client.code, Some(1), "{client:?}");
        assert_eq!(
            client.stderr, "iperf3: error - unable to write PID file: No such file or directory\n",
            "{who:?}"
        );
    }
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn a_log_file_takes_output_and_errors_and_grows() {
    for who in [Ours, Real] {
        let (netns, folder) = (Netns::new(), Folder::new());
        let log = folder.file("log");
        for _ in 0..2 {
            let client = who.ask(&netns, &["-p", "5999", "--logfile", &log]);
            assert_eq!((client.code, client.stdout.as_str(), client.stderr.as_str()), (Some(1), "", ""));
        }
        let text = std::fs::read_to_string(&log).unwrap();
        assert_eq!(text.matches("iperf3: error - unable to connect to server").count(), 2, "{who:?}: {text}");
        let done = both_on(&netns, who, &["-t", "1", "-b", "1M", "--logfile", &log], Real, &[]);
        assert_eq!((done.client.stdout.as_str(), done.client.stderr.as_str()), ("", ""));
        let text = std::fs::read_to_string(&log).unwrap();
        assert!(text.ends_with("\niperf Done.\n"), "{who:?}: {text}");
        let nowhere = folder.file("none/log");
        let client = who.ask(&netns, &["--logfile", &nowhere]);
        assert_eq!(client.code, Some(1), "{client:?}");
        let text = "iperf3: error - unable to open log file: No such file or directory";
        assert_eq!(client.stderr.lines().next(), Some(text), "{who:?}");
    }
}

/// A line of a client that cannot connect, from this format of the timestamp.
fn stamped(who: Iperf3, netns: &Netns, format: &str) -> String {
    let mut command = who.command(netns, &["-c", "127.0.0.1", "-p", "5999", format]);
    command.env("TZ", "Europe/Berlin").env("LC_ALL", "C");
    let done = Process::start(command).finish(TIMEOUT);
    let (stamp, _) = done.stderr.split_once("iperf3: error").unwrap_or_else(|| panic!("{done:?}"));
    stamp.to_owned()
}

#[test]
#[ignore = "needs root and network namespaces, and scripts/newer-iperf3.sh"]
fn every_conversion_of_a_timestamp_is_that_of_the_c_library() {
    // Errors of 3.12 always have the default format.
    if !Newer.is_there() {
        return skipped(
            "every_conversion_of_a_timestamp_is_that_of_the_c_library",
            "scripts/newer-iperf3.sh",
        );
    }
    let netns = Netns::new();
    let letters = ('a'..='z').chain('A'..='Z').map(|letter| format!("%{letter}"));
    let others =
        ["%%", "%Ec", "%EC", "%Ex", "%EX", "%Ey", "%EY", "%Od", "%Oe", "%OH", "%OI", "%Om", "%OM", "%OS"];
    let more =
        ["%Ou", "%OU", "%OV", "%Ow", "%OW", "%Oy", "%Ed", "%OQ", "%-d", "%_m", "%^a", "%4d", "% x", "%"];
    let all: Vec<String> = letters.chain([others, more].concat().into_iter().map(str::to_owned)).collect();
    // iperf3 has room for 100 bytes.
    at_once(all.chunks(5), |formats| {
        let argument = format!("--timestamps=<{}>", formats.join("|"));
        // The time passes between two programs.
        let same = (0..5).any(|_| {
            let (before, ours) = (stamped(Newer, &netns, &argument), stamped(Ours, &netns, &argument));
            before == ours || ours == stamped(Newer, &netns, &argument)
        });
        let (real, ours) = (stamped(Newer, &netns, &argument), stamped(Ours, &netns, &argument));
        assert!(same, "{argument}: {ours:?} instead of {real:?}");
    });
    let date = stamped(Ours, &netns, "--timestamps");
    assert_eq!(date.len(), "Sun Nov 22 22:37:55 2026 ".len(), "{date}");
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn a_timestamp_is_before_each_line_and_never_in_json() {
    let client = both(Ours, &["-t", "1", "-b", "1M", "--timestamps=@ ", "-T", "title"], Real, &[]).client;
    let lines: Vec<&str> = client.stdout.lines().collect();
    assert!(lines.len() > 5 && lines.iter().all(|line| line.starts_with("@ title:  ")), "{client:?}");
    let client = both(Ours, &["-t", "1", "-b", "1M", "--timestamps", "-J"], Real, &[]).client;
    assert!(client.json()["end"].is_object());
    let client = both(Ours, &["-t", "1", "-b", "1M", "--timestamps", "--json-stream"], Real, &[]).client;
    for line in client.stdout.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn warnings_go_to_standard_error_also_with_json() {
    let options = ["-t", "1", "-b", "1M", "-J", "-V", "-f", "k", "-u", "-l", "40000"];
    let [ours, real] = [Ours, Real].map(|who| both(who, &options, Real, &[]).client);
    // The segment size of the control connection may be another one.
    let words = |text: &str| text.replace(|letter: char| letter.is_ascii_digit(), "");
    assert_eq!(words(&ours.stderr), words(&real.stderr));
    assert_eq!(ours.stderr.lines().count(), 3, "{ours:?}");
    assert!(ours.json()["end"].is_object());
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn debugging_shows_the_messages_and_states_of_the_dialogue() {
    let client = ["-t", "1", "-b", "1M", "-d"];
    let [ours, real] = [Ours, Real].map(|who| both(who, &client, Real, &[]).client.stdout);
    for text in
        ["send_parameters:\n{\n", "\nsend_results\n{\n", "\nget_results\n{\n", "\t\"blockcount\":\t0,\n"]
    {
        assert!(ours.contains(text) && real.contains(text), "{text}: {ours}");
    }
    // 3.12 has no levels yet. The text is that of 3.22.
    let state = "State change: client received and changed State to 10-CREATE_STREAMS\n";
    assert!(ours.contains(state), "{ours}");
    let less = both(Ours, &["-t", "1", "-b", "1M", "--debug=1"], Real, &["-1"]).client.stdout;
    assert!(less.contains("send_results") && !less.contains("State change"), "{less}");
    let server = both(Real, &["-t", "1", "-b", "1M"], Ours, &["-d"]).server.stdout;
    for text in [
        "State change: State set to 15-IPERF_START - waiting for a new test (from 0-Test reset)\n",
        "\nget_parameters:\n{\n",
        "State change: State set to 2-TEST_RUNNING (from 1-TEST_START - starting a new test)\n",
        "State change: server received and changed State to 16-IPERF_DONE\n",
    ] {
        assert!(server.contains(text), "{text}: {server}");
    }
    let json = both(Ours, &[&client[..], &["-J"]].concat(), Real, &[]).client;
    assert!(json.json()["end"].is_object() && json.stderr.contains("send_parameters:\n"), "{json:?}");
}
