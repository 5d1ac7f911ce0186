use linerate_units::Span;

use super::*;
use crate::iperf3::numbers::Iperf3Format;
use crate::iperf3::settings::{ControlKeepAlive, Iperf3Family, Iperf3File};

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// The settings of `-c h` and these options.
fn client(line: &str) -> Iperf3Settings {
    match parse(&words(&format!("-c h {line}"))) {
        Ok(Iperf3Command::Client(settings)) => *settings,
        other => panic!("{line}: {other:?}"),
    }
}

fn server(line: &str) -> Iperf3Settings {
    match parse(&words(&format!("-s {line}"))) {
        Ok(Iperf3Command::Server(settings)) => *settings,
        other => panic!("{line}: {other:?}"),
    }
}

/// The error text without the usage.
fn refusal(line: &str) -> String {
    let refusal = parse(&words(line)).unwrap_err();
    assert_eq!(refusal.code, 1);
    let text = refusal.text.strip_suffix(usage()).unwrap_or_else(|| panic!("{line}: {}", refusal.text));
    text.strip_prefix("iperf3: ").unwrap().trim_end().to_owned()
}

fn parameter_error(line: &str) -> String {
    refusal(line).strip_prefix("parameter error - ").unwrap_or_else(|| panic!("{line}")).to_owned()
}

#[test]
fn defaults_are_those_of_3_21() {
    let mut expected = Iperf3Settings::client("h");
    assert_eq!(client(""), expected);
    assert_eq!(expected.client.end, EndCondition::Time(10));
    assert_eq!((expected.common.port, expected.client.parallel, expected.client.bitrate), (5201, 1, 0));
    assert_eq!(expected.common.interval, Span::from_secs(1));
    expected.client.udp = true;
    expected.client.bitrate = 1_048_576;
    assert_eq!(client("-u"), expected);
    assert_eq!(server(""), Iperf3Settings::default());
    assert_eq!(client("-u -b 0").client.bitrate, 0, "no limit was asked for");
}

#[test]
fn options_are_taken_apart_as_getopt_long_does() {
    for line in [
        "-u -R -t 5",
        "-uRt5",
        "-uRt 5",
        "--udp --reverse --time 5",
        "--udp --rev --time=5",
        "-t 5 stray -uR words",
        "-uR -t5 -- -t 9",
        "- -uRt5",
    ] {
        let settings = client(line);
        assert!(settings.client.udp && settings.client.reverse, "{line}");
        assert_eq!(settings.client.end, EndCondition::Time(5), "{line}");
    }
    assert_eq!(client("--bandwidth 5M").client.bitrate, client("--bitr=5M").client.bitrate);
    assert_eq!(client("--linux-c=bbr").client.congestion.as_deref(), Some("bbr"));
    assert!(server("--one-off -D").server.daemon);
    assert_eq!(client("-d --timestamps").common.timestamps.as_deref(), Some("%c "));
    assert_eq!(client("--timestamps=%T,").common.timestamps.as_deref(), Some("%T,"));
    assert_eq!(client("--debug=2").common.debug, Some(2));
}

/// With the texts of glibc.
#[test]
fn what_getopt_long_refuses() {
    for (line, text) in [
        ("-c h --bogus=3", "unrecognized option '--bogus=3'"),
        ("-c h -z", "invalid option -- 'z'"),
        ("-c h -Jx", "invalid option -- 'x'"),
        ("-c h -d9", "invalid option -- '9'"),
        ("-c", "option requires an argument -- 'c'"),
        ("-c h --para", "option '--parallel' requires an argument"),
        ("-c h --verb=3", "option '--verbose' doesn't allow an argument"),
        (
            "-c h --ver",
            "option '--ver' is ambiguous; possibilities: '--verbose' '--version' '--version4' '--version6'",
        ),
    ] {
        assert_eq!(refusal(line), text, "{line}");
    }
}

#[test]
fn values_reach_their_settings() {
    let s =
        client("-p 5202 -f M -i 0.5 -A 1,2 -B 10.0.0.1%eth1 -V -J --rcv-timeout 500 -R -4 --cntl-ka=10/2/3");
    assert_eq!((s.common.port, s.common.family), (5202, Some(Iperf3Family::V4)));
    assert_eq!(s.common.format, Some(Iperf3Format { bytes: true, power: 2 }));
    assert_eq!(s.common.interval, Span::from_ms(500));
    assert_eq!((s.common.affinity, s.client.server_affinity), (Some(1), Some(2)));
    assert_eq!((s.common.bind.as_deref(), s.common.bind_dev.as_deref()), (Some("10.0.0.1"), Some("eth1")));
    assert_eq!(s.common.rcv_timeout, Span::from_ms(500));
    let keep_alive = ControlKeepAlive {
        idle: Some(Span::from_secs(10)),
        interval: Some(Span::from_secs(2)),
        count: Some(3),
    };
    assert_eq!(s.common.control_keep_alive, Some(keep_alive));
    assert_eq!(s.common.warnings.len(), 2, "{:?}", s.common.warnings);

    let s = client(
        "-b 1.5g/10 -n 10M -l 1K -P 3 -w 64K -M 1400 -N -S 0x1c -L 0xff -Z -O 2 -T t --cport 6000 --fq-rate 1M",
    );
    assert_eq!((s.client.bitrate, s.client.burst), (1_500_000_000, Some(10)));
    assert_eq!(s.client.end, EndCondition::Bytes(10 << 20));
    assert_eq!((s.client.length, s.client.window, s.client.mss), (Some(1024), Some(65_536), Some(1400)));
    assert_eq!((s.client.tos, s.client.flow_label), (0x1c, Some(255)));
    assert_eq!((s.client.omit, s.client.cport, s.client.fq_rate), (2, Some(6000), 1_000_000));
    assert_eq!(client("-k 2K").client.end, EndCondition::Blocks(2048));
}

#[test]
fn names_of_code_points() {
    for (name, tos) in [
        ("ef", 0xb8),
        ("EF", 0xb8),
        ("va", 0xb0),
        ("af11", 0x28),
        ("af43", 0x98),
        ("cs0", 0),
        ("CS7", 0xe0),
        ("63", 0xfc),
        ("0x2e", 0xb8),
        ("056", 0xb8),
        ("lowdelay", 0x10),
        ("throughput", 0x08),
        ("reliability", 0x04),
    ] {
        assert_eq!(client(&format!("--dscp {name}")).client.tos, tos, "{name}");
    }
    for name in ["64", "af44", "af50", "cs8", "x", "-1"] {
        assert!(parameter_error(&format!("-c h --dscp {name}")).starts_with("bad DSCP value"), "{name}");
    }
}

#[test]
fn hosts_and_interfaces() {
    for local in ["fe80::1", "2001:db8::1", "192.0.2.1", "example.net"] {
        let s = client(&format!("-B {local}%eth0"));
        assert_eq!((s.common.bind.as_deref(), s.common.bind_dev.as_deref()), (Some(local), Some("eth0")));
    }
    for (typed, host, device) in [
        ("example.net%eth3", "example.net", Some("eth3")),
        ("2001:db8::1%eth3", "2001:db8::1", Some("eth3")),
        ("fe80::1%eth3", "fe80::1%eth3", None),
        ("::1", "::1", None),
    ] {
        let Ok(Iperf3Command::Client(s)) = parse(&["-c", typed]) else { panic!("{typed}") };
        assert_eq!((s.host.as_deref(), s.common.bind_dev.as_deref()), (Some(host), device));
    }
}

/// With the texts of 3.21.
#[test]
fn bad_values_have_iperf3s_texts() {
    for (line, text) in [
        ("", "must either be a client (-c) or server (-s)"),
        ("-t 5", "must either be a client (-c) or server (-s)"),
        ("-s -c h", "cannot be both server and client"),
        ("-c h -s", "cannot be both server and client"),
        ("-s -t 3", "some option you are trying to set is client only"),
        ("-s -A 1,2", "some option you are trying to set is client only"),
        ("-c h -D", "some option you are trying to set is server only"),
        ("-c h -p 0", "port number must be between 1 and 65535 inclusive"),
        ("-c h -p 70000", "port number must be between 1 and 65535 inclusive"),
        ("-c h --cport 0", "port number must be between 1 and 65535 inclusive"),
        ("-c h -f q", "bad format specifier (valid formats are in the set [kmgtKMGT])"),
        ("-c h -i 0.05", "invalid report interval (min = 0.1, max = 60 seconds)"),
        ("-c h -i 61", "invalid report interval (min = 0.1, max = 60 seconds)"),
        ("-c h -t 86401", "test duration valid values are 0 to 86400 seconds"),
        ("-c h -t -1", "test duration valid values are 0 to 86400 seconds"),
        ("-c h -P 0", "invalid number of parallel streams (min = 1, max = 128)"),
        ("-c h -P 129", "invalid number of parallel streams (min = 1, max = 128)"),
        ("-c h -l 2M", "block size too large (maximum = 1048576 bytes)"),
        ("-c h -u -l 8", "block size invalid (minimum = 16 bytes, maximum = 65507 bytes)"),
        ("-c h -l 65508 -u", "block size invalid (minimum = 16 bytes, maximum = 65507 bytes)"),
        ("-c h -w 513M", "socket buffer size too large (maximum = 536870912 bytes)"),
        ("-c h -M 32768", "TCP MSS too large (maximum = 32767 bytes)"),
        ("-c h -O 601", "bogus value for --omit (maximum = 600 seconds)"),
        ("-c h -b 1M/0", "invalid burst count (maximum = 1000)"),
        ("-c h -b 1M/1001", "invalid burst count (maximum = 1000)"),
        ("-c h -b 12x", "invalid unit value or suffix: '12x'"),
        ("-c h -n 5 -t 5", "only one test end condition (-t, -n, -k) may be specified"),
        ("-c h -n 5 -k 5", "only one test end condition (-t, -n, -k) may be specified"),
        ("-c h -S 256", "bad TOS value (must be between 0 and 255 inclusive)"),
        ("-c h -R --bidir", "cannot be both reverse and bidirectional"),
        ("-c h -L 0", "unable to set IPv6 flow label"),
        ("-c h -A 2000", "unable to set CPU affinity: "),
        ("-c h --username a", "you must specify a username, password, and path to a valid RSA public key"),
        (
            "-s --rsa-private-key-path k",
            "you must specify a path to a valid RSA private key and a user credential file",
        ),
        ("-s --server-bitrate-limit 1M/61", "invalid time interval for calculating average data rate"),
        ("-s --time-skew-threshold 0", "skew threshold must be a positive number"),
        ("-s --idle-timeout 0", "idle timeout parameter is not positive or larger than allowed limit"),
        ("-c h -R --rcv-timeout 50", "receive timeout value is incorrect or not in range: "),
        ("-c h --rcv-timeout 500", "client receive timeout is valid only in receiving mode: "),
        ("-c h --snd-timeout 86400001", "send timeout value is incorrect or not in range: "),
        ("-c h -u -F f", "cannot transfer file using UDP"),
        ("-c h --sctp", "no SCTP support available: leave out --sctp"),
        ("-c h --nstreams 2", "no SCTP support available: leave out --nstreams"),
        ("-c h -X a", "no SCTP support available: leave out -X, --xbind"),
    ] {
        assert_eq!(parameter_error(line), text.trim_end(), "{line}");
    }
}

#[test]
fn a_file_ends_the_test_of_a_client_unless_something_else_does() {
    let file = |bytes| Iperf3File { path: "f".into(), bytes, ..Iperf3File::default() };
    for (line, bytes, end) in [
        ("-F f", Some(3000), EndCondition::Bytes(3000)),
        ("-F f -R", Some(3000), EndCondition::Bytes(3000)),
        ("-F f", Some(0), EndCondition::Time(10)),
        ("-F f", None, EndCondition::Time(10)),
        ("-F f -t 10", Some(3000), EndCondition::Time(10)),
        ("-F f -k 2", Some(3000), EndCondition::Blocks(2)),
    ] {
        let mut settings = client(line);
        settings.set_file(file(bytes));
        assert_eq!(settings.client.end, end, "{line} {bytes:?}");
    }
}

#[test]
fn servers_have_their_limits() {
    let s = server("-1 --idle-timeout 5 --server-bitrate-limit 1.5M/0 --server-max-duration 3");
    assert!(s.server.one_off);
    assert_eq!(s.server.idle_timeout, Some(Span::from_secs(5)));
    assert_eq!((s.server.bitrate_limit, s.server.bitrate_limit_interval), (Some(1_500_000), Span::default()));
    assert_eq!(s.server.max_duration, Some(Span::from_secs(3)));
    assert_eq!(server("--server-bitrate-limit 2G").server.bitrate_limit_interval, Span::from_secs(5));
    assert!(server("--cport 7").client.cport.is_some(), "accepted, as iperf3 does");
}

#[test]
fn help_and_version_end_the_reading() {
    assert_eq!(parse(&["-c", "h", "-h", "--bogus"]), Ok(Iperf3Command::Help));
    assert_eq!(parse(&["-v"]), Ok(Iperf3Command::Version));
    let version = version("Linux host 6.18 x86_64");
    assert!(version.starts_with("iperf 3.21 (linerate "), "{version}");
    assert_eq!(version.lines().count(), 3);
    let help = help();
    for option in table::options() {
        assert!(help.contains(&format!("--{}", option.long())), "{}", option.long());
    }
}

#[test]
fn no_name_is_given_twice() {
    let mut names: Vec<_> =
        table::options().flat_map(table::Iperf3Option::names).map(str::to_owned).collect();
    names.extend(table::options().filter_map(table::Iperf3Option::short).map(String::from));
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all);
}

proptest::proptest! {
    #[test]
    fn no_command_line_is_trouble(args in proptest::collection::vec(word(), 0..8)) {
        if let Err(refusal) = parse(&args) {
            proptest::prop_assert!(refusal.text.starts_with("iperf3: "));
            proptest::prop_assert_eq!(refusal.code, 1);
        }
    }
}

/// Options, their prefixes, values, and arbitrary text.
fn word() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::prelude::*;
    let names: Vec<_> = table::options().map(|option| format!("--{}", option.long())).collect();
    let shorts: Vec<_> = table::options().filter_map(table::Iperf3Option::short).collect();
    prop_oneof![
        proptest::sample::select(names)
            .prop_flat_map(|name| (Just(name), ".{0,4}"))
            .prop_map(|(n, v)| format!("{n}{v}")),
        proptest::sample::select(shorts)
            .prop_flat_map(|name| (Just(name), ".{0,4}"))
            .prop_map(|(n, v)| format!("-{n}{v}")),
        "[0-9]{1,22}[kKmMgGtTx./%,]?[0-9-]{0,3}",
        ".{0,6}",
    ]
}
