//! Our client with our server, in virtual time.

use linerate_units::Span;

use crate::netperf::{
    ClientCommand, NetperfClient, NetperfServer, NetperfServerOptions, NetperfSurroundings,
};
use crate::virtual_hosts::{VirtualHosts, WALL_SECONDS};

/// Runs a command line; returns its output.
fn run(line: &str) -> VirtualHosts {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let surroundings = NetperfSurroundings {
        wall: Span::from_secs(WALL_SECONDS),
        seed: 0x0011_2233_4455_6677_8899_aabb_ccdd_eeff,
        read: &|_, _| Err(std::io::ErrorKind::NotFound.into()),
    };
    let ClientCommand::Test(options) = ClientCommand::parse(&words, &surroundings) else { panic!("{line}") };
    let server = NetperfServer::new(NetperfServerOptions::default());
    let mut hosts = VirtualHosts::new(Box::new(NetperfClient::new(*options)), Box::new(server));
    hosts.run(60);
    assert_eq!(hosts.hosts[0].exit, Some(0), "{line}: {}{}", hosts.hosts[0].out, hosts.hosts[0].err);
    assert_eq!(hosts.hosts[0].err, "", "{line}");
    for host in &hosts.hosts {
        assert!(host.runs.iter().all(Option::is_none), "{line}: {:?}", host.runs);
        assert_eq!(host.runs.len(), host.plans.len(), "{line}: every run has ended");
    }
    hosts
}

/// The values of `-k`.
fn values(line: &str, names: &str) -> Vec<String> {
    let hosts = run(&format!("-H 10.0.0.2 -P 0 {line} -k {names}"));
    let out = &hosts.hosts[0].out;
    let of = |name: &str| {
        let start = format!("{name}=");
        out.lines()
            .find_map(|line| line.strip_prefix(&start))
            .unwrap_or_else(|| panic!("{name} in {out}"))
            .to_owned()
    };
    names.split(',').map(of).collect()
}

fn number(value: &str) -> f64 {
    value.parse().unwrap_or_else(|_| panic!("{value}"))
}

#[test]
fn both_ends_count_the_same_in_every_stream() {
    let names = "LOCAL_BYTES_SENT,LOCAL_BYTES_RECVD,REMOTE_BYTES_SENT,REMOTE_BYTES_RECVD,ELAPSED_TIME,THROUGHPUT,\
                 DIRECTION,PROTOCOL,LOCAL_SEND_SIZE,LOCAL_CONG_CONTROL,REMOTE_CONG_CONTROL";
    for (line, sends, time) in [
        ("-t TCP_STREAM -l 2 --", true, 2.0),
        ("-t TCP_MAERTS -l 2 --", false, 2.0),
        ("-t UDP_STREAM -l 2 -- -m 1000", true, 2.0),
        ("-t omni -l 2 -- -d recv", false, 2.0),
        ("-t omni -l 2 -- -T udp -m 500", true, 2.0),
        ("-t TCP_STREAM -l -1000000 -- -m 8000", true, 0.08),
        ("-t TCP_MAERTS -l -1000000 -- -m ,8000", false, 0.08),
    ] {
        let all = values(line, names);
        let count = |at: usize| number(&all[at]);
        let (sent, received) = if sends { (count(0), count(3)) } else { (count(2), count(1)) };
        assert!(received > 900_000.0, "{line}: {all:?}");
        // What is under way when a receiver stops does not count.
        let lost = sent - received;
        assert!(if sends { lost == 0.0 } else { (0.0..100_000.0).contains(&lost) }, "{line}: {all:?}");
        assert!((count(4) - time).abs() < 0.02, "{line}: {all:?}");
        // The time has two decimals.
        assert!((received * 8e-6 / count(5) - count(4)).abs() < 0.0051, "{line}: {all:?}");
        assert_eq!(all[6], if sends { "Send" } else { "Receive" });
        let udp = line.contains("UDP") || line.contains("udp");
        assert_eq!(all[7], if udp { "UDP" } else { "TCP" });
        assert_eq!((all[9].as_str(), all[10].as_str()), if udp { ("", "cubic") } else { ("cubic", "cubic") });
    }
}

#[test]
fn transactions_take_two_delays_of_the_network() {
    let names = "TRANSACTION_RATE,RT_LATENCY,MIN_LATENCY,P99_LATENCY,MEAN_LATENCY,LOCAL_BYTES_SENT,LOCAL_BYTES_RECVD,\
                 REMOTE_BYTES_RECVD,ELAPSED_TIME";
    // A millisecond each way; a connection costs another round trip, and its end half of one.
    for (line, rate, least) in [
        ("-t TCP_RR -l 2 --", 500.0, 2000.0),
        ("-t UDP_RR -l 2 -- -r 100,200", 500.0, 2000.0),
        ("-t TCP_RR -l 2 -- -r 20000,5", 500.0, 2000.0),
        ("-t TCP_RR -l -100 --", 500.0, 2000.0),
        ("-t TCP_RR -l 2 -- -b 9", 5000.0, 2000.0),
        ("-t omni -l 2 -- -d rr -T udp -b 4", 2500.0, 2000.0),
        ("-t TCP_CRR -l 2 --", 250.0, 4000.0),
        ("-t TCP_CRR -l -50 --", 250.0, 4000.0),
    ] {
        let all = values(line, names);
        let of = |at: usize| number(&all[at]);
        assert!((of(0) - rate).abs() < 0.03 * rate, "{line}: {all:?}");
        assert_eq!((of(2), of(3), of(4)), (least, least, least), "{line}: {all:?}");
        assert!((of(1) - least).abs() < 0.03 * least, "{line}: {all:?}");
        assert!(of(7) >= of(5) - 100_000.0 && of(5) > 0.0 && of(6) > 0.0, "{line}: {all:?}");
    }
}

#[test]
fn interim_results_follow_the_clock_and_add_up() {
    for line in ["-t TCP_STREAM -D 0.5 -l 2", "-t TCP_MAERTS -D -0.5 -l 2", "-t TCP_RR -D 0.5 -l 2"] {
        let hosts = run(&format!("-H 10.0.0.2 -P 0 {line} -- -k THROUGHPUT,ELAPSED_TIME"));
        let out = &hosts.hosts[0].out;
        // As flent reads them: lines KEY[number]=value of the same keys in the same order.
        let all = |key: &str| -> Vec<f64> {
            let start = format!("{key}[");
            let lines = out.lines().filter_map(|line| line.strip_prefix(&start));
            let values = lines.map(|rest| rest.split_once("]=").unwrap().1);
            values.map(|value| value.trim_end_matches("/s").parse().unwrap()).collect()
        };
        let (rates, lengths, ends) =
            (all("NETPERF_INTERIM_RESULT"), all("NETPERF_INTERVAL"), all("NETPERF_ENDING"));
        assert!((4..=5).contains(&rates.len()), "{line}: {out}");
        assert_eq!((rates.len(), rates.len()), (lengths.len(), ends.len()), "{line}: {out}");
        for pair in ends.windows(2).zip(&lengths[1..]) {
            assert!((pair.0[1] - pair.0[0] - pair.1).abs() < 0.002, "{line}: {out}");
        }
        assert!((ends[0] - WALL_SECONDS as f64 - 0.5).abs() < 0.05, "{line}: {out}");
        let moved: f64 = rates.iter().zip(&lengths).map(|(rate, length)| rate * length).sum();
        let of = |key: &str| number(out.lines().find_map(|line| line.strip_prefix(key)).unwrap());
        let total = of("THROUGHPUT=") * of("ELAPSED_TIME=");
        assert!((moved - total).abs() < 0.02 * total, "{line}: {moved} of {total} in {out}");
    }
}

#[test]
fn iterations_are_runs_over_one_control_connection() {
    let hosts = run("-H 10.0.0.2 -l 1 -i 4,3 -I 95,5 -t TCP_STREAM");
    assert_eq!(hosts.pair().map(|host| host.plans.len()), [3, 3]);
    let out = &hosts.hosts[0].out;
    assert!(
        out.starts_with(
            "MIGRATED TCP STREAM TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 10.0.0.2 () port 0 AF_INET : \
         +/-2.500% @ 95% conf.  : demo\n"
        ),
        "{out}"
    );
    assert!(!out.contains("!!!"), "virtual time has no variance: {out}");
}

#[test]
fn processor_time_of_both_ends_is_printed() {
    let names = "LOCAL_CPU_UTIL,REMOTE_CPU_UTIL,LOCAL_CPU_METHOD,REMOTE_CPU_METHOD,LOCAL_CPU_COUNT,LOCAL_SD";
    let all = values("-c -C -t TCP_STREAM -l 2 --", names);
    assert_eq!(all[..5].join(","), "50.00,50.00,S,S,4");
    // Half of 4 cores for 100 Mbit/s: 2 s of CPU time for 12,207 KiB in a second.
    assert!((number(&all[5]) - 2e6 / (100e6 / 8.0 / 1024.0)).abs() < 5.0, "{all:?}");
    let all = values("-t TCP_STREAM -l 1 --", names);
    assert_eq!(all.join(","), "-1.00,-1.00,U,U,0,-1.000");
}

#[test]
fn the_server_may_be_busy() {
    let ClientCommand::Test(options) = ClientCommand::parse(
        &["-P".into(), "0".into()],
        &NetperfSurroundings { wall: Span::ZERO, seed: 0, read: &|_, _| Ok(vec![]) },
    ) else {
        panic!()
    };
    let server = NetperfServer::new(NetperfServerOptions::default());
    let mut hosts = VirtualHosts::new(Box::new(NetperfClient::new(*options)), Box::new(server));
    hosts.hosts[1].admits = false;
    hosts.run(5);
    assert_eq!((hosts.hosts[0].exit, hosts.hosts[0].out.as_str()), (Some(255), "netperf: remote error 16"));
}
