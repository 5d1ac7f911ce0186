//! Compares our parser for iperf3's command line with the real program.

use std::process::{Command, Stdio};

use linerate_compat::iperf3::argv::parse;

/// Nothing listens here, so the real program exits immediately if it accepts its options.
const NOBODY: &[&str] = &["-c", "127.0.0.1", "-p", "24999"];

/// The first line that the real program writes to standard error, before its usage.
#[expect(clippy::panic, reason = "a test's own helper")]
fn complaint_of_iperf3(args: &[&str]) -> String {
    let output = Command::new("iperf3").args(args).env("LC_ALL", "C").stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("iperf3 (Debian: iperf3) does not run: {error}"));
    assert_eq!(output.status.code(), Some(1), "{args:?}");
    String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default().to_owned()
}

fn with_client(line: &str) -> Vec<&str> {
    NOBODY.iter().copied().chain(line.split_whitespace()).collect()
}

#[test]
#[ignore = "needs iperf3"]
fn what_is_refused_is_refused_in_the_same_words() {
    for line in [
        "--bogus",
        "-z",
        "--verb=3",
        "--time",
        "-t",
        "-s",
        "-D",
        "-p 0",
        "-p 70000",
        "--cport 0",
        "-f q",
        "-i 0.05",
        "-i 61",
        "-l 2M",
        "-u -l 8",
        "-u -l 65508",
        "-w 513M",
        "-b 1M/0",
        "-b 1M/1001",
        "-n 5 -t 5",
        "-k 5 -n 5",
        "-S 256",
        "-S xx",
        "-R --bidir",
        "-L 0",
        "-L 1048576",
        "-A 2000",
        "-A 1,2000",
        "--username a",
        "--rcv-timeout 50",
        "--rcv-timeout 500",
        "--snd-timeout 86400001",
    ] {
        let args = with_client(line);
        let ours = parse(&args).expect_err(line);
        assert_eq!(ours.text.lines().next(), Some(complaint_of_iperf3(&args).as_str()), "{line}");
    }
    for line in [
        "",
        "-t 5",
        "-s -t 3",
        "-s --idle-timeout 0",
        "-s --time-skew-threshold 0",
        "-s --rsa-private-key-path k",
    ] {
        let args: Vec<_> = line.split_whitespace().collect();
        let ours = parse(&args).expect_err(line);
        assert_eq!(ours.text.lines().next(), Some(complaint_of_iperf3(&args).as_str()), "{line}");
    }
}

#[test]
#[ignore = "needs iperf3"]
fn what_is_accepted_is_accepted_by_both() {
    for line in [
        "",
        "stray words",
        "-- -z",
        "-uRt5",
        "--udp --rev --time=5",
        "-t 0",
        "-t 86400",
        "-n 1.5M",
        "-k 2K",
        "-n 0 -t 1",
        "-n 0x10",
        "-b 1.5g/10",
        "-b 0",
        "--bandwidth 5MB",
        "-i 0",
        "-i 0.1",
        "-i 60",
        "-i abc",
        "-l 1M",
        "-u -l 16",
        "-w 512M",
        "-M 9216",
        "-S 0x1c",
        "-S 034",
        "--dscp ef",
        "--dscp AF11",
        "--dscp 63",
        "-L 1048575",
        "-O 60",
        "-P 128",
        "-f mm",
        "--rcv-timeout 100 -R",
        "--snd-timeout 0",
        "--timestamps=%T -d --debug=9",
        "--no-fq",
        "--connect-timeout 1K",
        "--pacing-timer 2K",
        "--fq-rate 1G",
        "--extra-data x --repeating-payload --udp-counters-64bit --get-server-output",
    ] {
        let args = with_client(line);
        let complaint = complaint_of_iperf3(&args);
        assert!(complaint.contains("unable to connect to server"), "{line}: {complaint}");
        parse(&args).expect(line);
    }
}
