//! Command lines of netperf: what they mean, and what is refused.

use linerate_units::Span;

use super::{options, parse};
use crate::netperf::ClientCommand;
use crate::netperf::options::{Iterations, Length, NetperfTestName, OutputForm, Pair, Unit};
use crate::netperf::wire::{DataRoles, NetperfProtocol};

fn names(form: &OutputForm) -> Vec<Vec<&'static str>> {
    let (OutputForm::Human(selection) | OutputForm::Csv(selection) | OutputForm::Keyval(selection)) = form
    else {
        panic!()
    };
    selection.iter().map(|block| block.iter().map(|selector| selector.name).collect()).collect()
}

#[test]
fn the_command_lines_of_flent_are_understood() {
    // As flent 2.1 writes them for TCP and for UDP_RR.
    let values = "THROUGHPUT,LOCAL_CONG_CONTROL,REMOTE_CONG_CONTROL,TRANSPORT_MSS,LOCAL_TRANSPORT_RETRANS,\
                  REMOTE_TRANSPORT_RETRANS,LOCAL_SOCKET_TOS,REMOTE_SOCKET_TOS,DIRECTION,ELAPSED_TIME,PROTOCOL,\
                  LOCAL_SEND_SIZE,LOCAL_RECV_SIZE,REMOTE_SEND_SIZE,REMOTE_RECV_SIZE,LOCAL_BYTES_SENT,\
                  LOCAL_BYTES_RECVD,REMOTE_BYTES_SENT,REMOTE_BYTES_RECVD";
    let tcp = options(&format!(
        "-P 0 -v 0 -D -0.20 -4 -Y CS1,CS1 -H host -p 12865 -t TCP_MAERTS -l 60 -F /dev/urandom -f m   -- \
         -m 1024 -M 1024 -H host -k {values} -K cubic"
    ));
    assert_eq!((tcp.host(), tcp.other_data_host()), ("host", None));
    assert_eq!(
        (tcp.test, tcp.length, tcp.unit),
        (NetperfTestName::TcpMaerts, Length::Seconds(60), Unit::Bits(6))
    );
    assert_eq!((tcp.interim, tcp.headings, tcp.verbosity), (Some(Span::from_ms(200)), false, 0));
    assert_eq!(tcp.tos, Pair { local: Some(0x20), remote: Some(0x20) });
    assert_eq!(tcp.congestion, Pair { local: "cubic".to_owned(), remote: "cubic".to_owned() });
    assert_eq!((tcp.send_size.local, tcp.receive_size.remote), (Some(1024), Some(1024)));
    assert_eq!(names(&tcp.form)[0].join(","), values);
    assert_eq!(tcp.payload(4), [0xa7; 4]);
    let udp = options(&format!(
        "-P 0 -v 0 -D -0.20 -4  -H control -p 12865 -t UDP_RR -l 60   -L 192.0.2.7,4  -- -e 5  \
         -L 192.0.2.7,4 -H host -k {values}"
    ));
    assert_eq!((udp.host(), udp.other_data_host()), ("control", Some("host")));
    assert_eq!((udp.timeout, udp.unit), (Some(Span::from_secs(5)), Unit::Transactions));
    assert_eq!(udp.control.local, "192.0.2.7".parse().ok());
    // Its test of what netperf can do.
    let ClientCommand::Mistake(text) = parse("-l 1 -D -0.2 -- -e 1") else { panic!() };
    assert!(!text.contains("invalid option") && !text.contains("Demo Mode"), "{text}");
}

#[test]
fn numbers_and_pairs_are_read_as_netperf_reads_them() {
    let all = options("-H h -l -2M -p 5,6 -s 3 -S -- -m 1k,2K -M ,3m -s 1K, -S ,2g -P 7 -G 1400 -D");
    assert_eq!(all.length, Length::Units(2 << 20));
    assert_eq!((all.control.port, all.control.local_port), (5, 6));
    assert_eq!((all.wait, all.keep_alive, all.no_delay), (Span::from_secs(3), true, true));
    assert_eq!(all.send_size, Pair { local: Some(1_000), remote: Some(2_048) });
    assert_eq!(all.receive_size, Pair { local: Some(3_000_000), remote: None });
    assert_eq!((all.send_buffer.local, all.receive_buffer.local), (Some(1_024), None));
    assert_eq!((all.send_buffer.remote, all.receive_buffer.remote), (None, Some(2_000_000_000)));
    assert_eq!((all.data.local_port, all.data.port, all.mss), (7, 7, Some(1_400)));
    assert_eq!(options("-l 0").length, Length::Endless);
    assert_eq!(options("-6").host(), "::1");
    assert_eq!(options("").host(), "localhost");
    let paced = options("-b 5 -w 10u").pace.unwrap();
    assert_eq!((paced.burst, paced.interval), (5, Span::from_ns(10_000)));
}

#[test]
fn iterations_get_the_limits_of_netperf() {
    let iterations = |line: &str| options(line).iterations;
    assert_eq!(iterations(""), Iterations::default());
    let narrow = Iterations { least: 3, most: 10, level: 95, width: 0.02, result_only: false };
    assert_eq!(iterations("-I 95,2"), narrow);
    assert_eq!(
        iterations("-i 50,2 -r"),
        Iterations { least: 3, most: 30, level: 99, width: 0.05, result_only: true }
    );
}

#[test]
fn omni_takes_its_direction_from_its_options() {
    let of = |line: &str| {
        let options = options(&format!("-t omni -- {line}"));
        (options.protocol, options.roles.sends, options.roles.receives, options.connects_each_time)
    };
    assert_eq!(of(""), (NetperfProtocol::Tcp, true, false, false));
    assert_eq!(of("-d recv"), (NetperfProtocol::Tcp, false, true, false));
    assert_eq!(of("-d maerts -m 5"), (NetperfProtocol::Tcp, false, true, false));
    assert_eq!(of("-d send|recv -T udp"), (NetperfProtocol::Udp, true, true, false));
    assert_eq!(of("-r 5"), (NetperfProtocol::Tcp, true, true, false));
    assert_eq!(of("-M ,5"), (NetperfProtocol::Tcp, false, true, false));
    assert_eq!(of("-c -d 6"), (NetperfProtocol::Tcp, true, true, true));
    let options = options("-t omni -- -d rr");
    assert_eq!((options.request_size, options.response_size), (Some(1), Some(1)));
    assert_eq!(options.roles, DataRoles { sends: true, receives: true });
}

#[test]
fn only_streams_of_datagrams_stay_in_the_own_network() {
    assert!(options("").routed && options("-t UDP_RR").routed);
    assert!(!options("-t UDP_STREAM").routed);
    assert!(options("-t UDP_STREAM -- -R 1").routed && !options("-- -R 0").routed);
}

#[test]
fn selectors_come_in_lists_and_files() {
    assert_eq!(
        names(&options("-- -o throughput;PROTOCOL,direction").form),
        [vec!["THROUGHPUT"], vec!["PROTOCOL", "DIRECTION"]]
    );
    assert_eq!(
        names(&options("-- -O selectors").form),
        [vec!["THROUGHPUT", "ELAPSED_TIME"], vec!["PROTOCOL"]]
    );
    assert_eq!(
        names(&options("-t TCP_MAERTS -- -k").form)[0].join(","),
        "RSS_SIZE_END,LSR_SIZE_END,REMOTE_SEND_SIZE,ELAPSED_TIME,THROUGHPUT,THROUGHPUT_UNITS"
    );
    assert!(!options("-t TCP_STREAM -- -o all").statistics && options("-t TCP_RR -- -o all").statistics);
    let all = names(&options("-t TCP_RR -- -o all").form);
    assert_eq!(all.iter().map(Vec::len).sum::<usize>(), 173, "all but the first and the last");
    assert_eq!((all[0][0], all[3].last()), ("SOCKET_TYPE", Some(&"COMMAND_LINE")));
    let ClientCommand::Print(text, 1) = parse("-- -O ?") else { panic!() };
    assert_eq!((text.lines().count(), text.lines().next()), (175, Some("OUTPUT_NONE")));
}

#[test]
fn what_is_not_possible_is_refused_by_name() {
    for (line, names) in [
        ("-N", "-N is not supported"),
        ("-T 1", "-T is not supported"),
        ("-d", "-d is not supported"),
        ("-a 16", "-a is not supported"),
        ("-- -C", "-C after -- is not supported"),
        ("-- -p 5,6", "-p after -- is not supported"),
        ("-t SCTP_STREAM", "-t takes TCP_STREAM"),
        ("-t omni -- -T sctp", "-T takes tcp or udp"),
        ("-t omni -- -T udp -d recv", "a server that sends datagrams"),
        ("-t omni -- -c -d 0", "-d takes send, recv or rr"),
        ("-t omni -- -c", "-c needs transactions"),
        ("-t TCP_STREAM -- -d recv", "-d is an option of omni"),
        ("-t UDP_RR -l -5", "-l takes a time over UDP"),
        ("-t UDP_RR -- -r 65508", "a message has at most 65507 bytes"),
        ("-t TCP_RR -- -r 0", "-r takes sizes"),
        ("-t TCP_RR -- -r 9M", "a message has at most 8388608 bytes"),
        ("-- -b 5", "-b after -- is for transactions"),
        ("-t TCP_RR -b 5", "-b and -w before -- pace"),
        ("-j", "-j and the selectors of latencies need transactions"),
        ("-- -k MEAN_LATENCY", "-j and the selectors of latencies need transactions"),
        ("-- -O selectors2", "-O selectors2: entity not found"),
        ("-- -k THROUGHPUT,SPEED", "there is no output selector 'SPEED'"),
        ("-- -o nofile", "-o nofile: entity not found"),
        ("-F empty", "-F empty: the file is empty"),
        ("-f q", "-f takes one of"),
        ("-v 3", "-v takes 0, 1 or 2"),
        ("-D 1,100", "-D takes no units"),
        ("-I 90", "-I takes a level of 95 or 99"),
        ("-l x", "-l takes seconds"),
        ("-Y 256", "-Y takes 0 to 255"),
        ("-L host", "-L takes an IP address"),
        ("-- -H 10.0.0.0/8", "-H takes one address without a mask"),
        ("-q", "invalid option -- 'q'"),
        ("-- -e", "option requires an argument -- 'e'"),
        ("now", "unexpected argument 'now'"),
    ] {
        let ClientCommand::Mistake(text) = parse(line) else { panic!("{line}") };
        assert!(text.starts_with("netperf: ") && text.contains(names), "{line}: {text}");
    }
    assert_eq!(parse("-V"), ClientCommand::Print("Netperf version 2.7.0\n".to_owned(), 0));
    assert!(matches!(parse("-h"), ClientCommand::Mistake(text) if text.contains("Usage: netperf")));
}
