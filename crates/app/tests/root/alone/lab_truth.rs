//! Compares the lab with calculations: rates to a thousandth, drops to the byte, losses to the packet.

use serde_json::Value;

use crate::support::{
    Process, RunningLab, ServeProcess, TIMEOUT, eventually, flow, retried_when_busy, when_idle,
};

/// Goodput of TCP at a link rate: MTU, VLAN tags, bits per second.
///
/// 20 bytes IPv4, 20 TCP, 12 timestamps; 14 Ethernet, 4 check sequence, 20 preamble and gap, 4 per tag.
fn tcp_goodput(rate: f64, mtu: f64, tags: f64) -> f64 {
    rate * (mtu - 52.0) / (mtu + 38.0 + 4.0 * tags)
}

/// Settings for a queue at a link that is never empty and never full, so that the link is busy independent of
/// the machine's load: a fast sender with a window of 200 ms at the link rate, and enough buffer. To be used
/// with [`STEADY`].
fn standing_queue(sender: &str, receiver: &str, line: &str, rate: f64) -> Vec<String> {
    let window = rate / 8.0 * 0.2;
    vec![
        format!("link.{sender}.rate=10G"),
        format!("link.{line}.buffer={}", window * 4.0),
        format!("host.{sender}.sysctl.ipv4.tcp_wmem=4096 16384 {window}"),
        format!("host.{receiver}.sysctl.ipv4.tcp_rmem=4096 131072 {}", window * 8.0),
    ]
}

/// Four seconds of a full link. Unlike CUBIC's, Reno's slow start ends only at the limit of the window or the
/// buffer.
const STEADY: [&str; 6] = ["-t", "4", "-O", "1", "-C", "reno"];
const STEADY_NS: f64 = 4e9;

/// A thousandth, plus the switch's reported maximum lateness at both ends of the time.
fn tolerance(lab: &RunningLab) -> f64 {
    1e-3 + 2.0 * count(&lab.status()["keeping_up"], "late_max_ns") as f64 / STEADY_NS
}

fn up(topology: &str, set: &[String]) -> RunningLab {
    RunningLab::up(topology, &set.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Starts an upload from one host to another, and its server.
fn start_upload(lab: &RunningLab, from: &str, to: &str, args: &[&str]) -> (Process, ServeProcess) {
    let server = ServeProcess::from(lab.linerate(to, &["serve", "-p", "0", "--json"]));
    let port = server.port.to_string();
    let head = ["test", to, "-p", &port, "--upload", "--json"];
    (Process::start(lab.linerate(from, &[&head[..], args].concat())), server)
}

fn finish((process, _server): (Process, ServeProcess)) -> Value {
    let done = process.finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
    done.json()
}

fn upload(lab: &RunningLab, from: &str, to: &str, args: &[&str]) -> Value {
    finish(start_upload(lab, from, to, args))
}

fn received(document: &Value) -> f64 {
    flow(document, "upload")["receiver"]["bitrate_bps"].as_f64().unwrap()
}

fn near(found: f64, expected: f64, share: f64) {
    let error = found / expected - 1.0;
    assert!(error.abs() <= share, "{found} is {:.3} % off {expected}", error * 100.0);
}

fn count(of: &Value, name: &str) -> u64 {
    of[name].as_u64().unwrap()
}

#[test]
#[ignore = "needs root and network namespaces"]
fn tcp_gets_what_the_line_carries_to_a_thousandth() {
    for (rate, mtu, tags) in [(1e9, 1500.0, 0.0), (1e9, 9000.0, 0.0), (1e8, 1500.0, 0.0), (1e9, 1500.0, 1.0)]
    {
        retried_when_busy(|| carries_its_share(rate, mtu, tags));
    }
}

fn carries_its_share(rate: f64, mtu: f64, tags: f64) {
    let mut set = standing_queue("a", "b", "b", rate);
    set.push(format!("link.b.rate={rate}"));
    for link in ["a", "b"] {
        set.extend([format!("link.{link}.mtu={mtu}"), format!("link.{link}.tags={tags}")]);
    }
    let lab = up("pair", &set);
    let document = upload(&lab, "a", "b", &STEADY);
    let port = lab.port("s>b");
    assert_eq!(port["dropped"], 0, "nothing is lost where everything fits");
    // By the receiver's clock. On a busy machine the hosts leave the line idle for a moment.
    let busy = busy_share(ports_seen(&document, "s>b"));
    near(received(&document), tcp_goodput(rate, mtu, tags) * busy, tolerance(&lab));
    // Without a clock: what the receiver has read, relative to the bytes on the link.
    let read = flow(&document, "upload")["receiver"]["total_bytes"].as_f64().unwrap();
    near(read / count(&port, "wire_bytes") as f64, tcp_goodput(1.0, mtu, tags), 2e-3);
    // By the link's clock, while it was busy.
    rate_is(&lab, &document, "s>b", rate, is_full);
    // The interface does not show the tag, so the ceiling is that of an untagged link.
    let ceiling = flow(&document, "upload")["ceiling"]["bitrate_bps"].as_f64().unwrap();
    near(ceiling, tcp_goodput(rate, mtu, 0.0), 1e-6);
}

#[test]
#[ignore = "needs root, network namespaces and iperf3"]
fn the_real_iperf3_prints_941() {
    retried_when_busy(|| {
        let lab = up("pair", &standing_queue("a", "b", "b", 1e9));
        let _server = Process::start(lab.exec("b", "iperf3", &["-s", "-1"]));
        // In kilobits: 941.48 would be rounded to 941 or 942.
        let client = || lab.done("a", "iperf3", &["-c", "b", "-t", "4", "-O", "1", "-C", "reno", "-f", "k"]);
        let done = eventually("iperf3 -s listens", || Some(client()).filter(|done| done.code == Some(0)));
        let line = done.stdout.lines().find(|line| line.ends_with("receiver")).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        let unit = words.iter().position(|word| *word == "Kbits/sec").unwrap();
        near(words[unit - 1].parse::<f64>().unwrap() * 1e3, tcp_goodput(1e9, 1500.0, 0.0), tolerance(&lab));
    });
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_full_port_drops_at_the_configured_byte() {
    retried_when_busy(|| {
        let buffer = 200_000;
        let lab = RunningLab::up("pair", &["link.b.rate=100M", &format!("link.b.buffer={buffer}")]);
        // Datagrams of one size, so that all frames have the same size.
        let document = upload(&lab, "a", "b", &["-u", "-b", "200M", "-t", "2", "-l", "1400"]);
        let frame = 1400 + 8 + 20 + 14 + 4;
        let port = lab.port("s>b");
        assert!(count(&port, "dropped_queue") > 0, "{port}");
        let fits = buffer - frame + 1..=buffer;
        assert!(fits.contains(&count(&port, "peak_bytes")), "{port}");
        let port = ports_seen(&document, "s>b");
        assert!(fits.contains(&count(port, "queue_max_bytes")), "{port}");
        assert_eq!(lab.port("a>s")["dropped"], 0);
    });
}

fn ports_seen<'a>(document: &'a Value, port: &str) -> &'a Value {
    document["ports"].as_array().unwrap().iter().find(|found| found["port"] == port).unwrap()
}

/// Checks the rate of a port over intervals for which `busy` is true, as for those before and after them. A GSO
/// frame is counted at its end, so one may be missing or too many at either end, and so may be what a late switch moves
/// afterwards.
fn rate_is(lab: &RunningLab, document: &Value, port: &str, bps: f64, busy: impl Fn(&Value) -> bool) {
    const SUPER_FRAME: f64 = 66_000.0 * 8.0;
    let samples = ports_seen(document, port)["samples"].as_array().unwrap();
    let amid = samples.windows(3).filter(|around| around.iter().all(|sample| busy(&sample["readings"])));
    let seconds = |sample: &Value| (count(sample, "end_ns") - count(sample, "start_ns")) as f64 / 1e9;
    let parts = amid.map(|around| {
        let rate = around[1]["readings"]["port.rate"].as_f64().unwrap();
        (rate * seconds(&around[1]), seconds(&around[1]))
    });
    let (bits, time) = parts.fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
    assert!(time > 0.0, "{samples:?}");
    let late = 2.0 * count(&lab.status()["keeping_up"], "late_max_ns") as f64 / 1e9;
    near(bits, bps * time, (2.0 * SUPER_FRAME / bps + late) / time);
}

/// The share of the measured seconds in which a port was sending.
fn busy_share(port: &Value) -> f64 {
    let samples = port["samples"].as_array().unwrap().iter().filter(|sample| sample["outside"] != true);
    let (busy, time) = samples.fold((0.0, 0.0), |(busy, time), sample| {
        let length = (count(sample, "end_ns") - count(sample, "start_ns")) as f64;
        (busy + sample["readings"]["port.busy"].as_f64().unwrap() * length, time + length)
    });
    busy / time
}

fn is_full(readings: &Value) -> bool {
    readings["port.busy"].as_f64().unwrap() > 0.9999
}

fn is_dropping(readings: &Value) -> bool {
    count(readings, "port.dropped") > 0
}

#[test]
#[ignore = "needs root and network namespaces"]
fn what_the_wire_loses_is_what_the_receiver_misses() {
    retried_when_busy(|| {
        let lab = RunningLab::up("pair", &[]);
        // The hosts resolve each other's address before anything is lost.
        assert_eq!(lab.done("a", "ping", &["-c", "1", "b"]).code, Some(0));
        assert_eq!(lab.set("link.b.from.s", &["loss=1%"]).code, Some(0));
        let before = lab.port("s>b");
        let sent = 10_000;
        let done = lab.done("a", "ping", &["-f", "-q", "-c", &sent.to_string(), "b"]);
        let after = lab.port("s>b");
        let received: u64 =
            done.stdout.split(" received").next().unwrap().rsplit(' ').next().unwrap().parse().unwrap();
        let lost = sent - received;
        let change = |name: &str| count(&after, name) - count(&before, name);
        // The hosts also look each other up now and then, and such a packet may be lost as well.
        let others = change("packets") - sent;
        assert!(others < 10, "{others} packets that are no pings");
        assert!(
            (lost..=lost + others).contains(&change("dropped")),
            "{} and {others}: {done:?}",
            change("dropped")
        );
        assert_eq!(change("dropped_wire"), change("dropped"), "{done:?}");
        // The 99 % interval of the binomial distribution.
        let (expected, spread) = (sent as f64 * 0.01, 2.576 * (sent as f64 * 0.01 * 0.99).sqrt());
        assert!((lost as f64 - expected).abs() <= spread, "{lost} of {sent}");
        let packets = &lab.status()["packet_accounting"];
        let of = |names: &[&str]| names.iter().map(|name| count(packets, name)).sum::<u64>();
        assert!(of(&["entered"]) > 2 * received, "{packets}");
        assert_eq!(of(&["entered", "made"]), of(&["delivered", "dropped", "filtered", "held"]), "{packets}");
    });
}

#[test]
#[ignore = "needs root and network namespaces"]
fn lost_datagrams_are_those_that_the_switch_dropped() {
    retried_when_busy(|| {
        let lab = RunningLab::up("pair", &["link.b.loss=1%"]);
        let document = upload(&lab, "a", "b", &["-u", "-b", "20M", "-t", "3", "-l", "1000"]);
        let udp = &flow(&document, "upload")["udp"];
        let (packets, lost) = (count(udp, "packets"), count(udp, "lost"));
        let port = lab.port("s>b");
        // Other losses belong to the control connection.
        let others = count(&port, "packets") - packets;
        let dropped = count(&port, "dropped_wire");
        assert!(lost <= dropped && dropped <= lost + others, "{lost} of {packets}: {port}");
        let (expected, spread) = (packets as f64 * 0.01, 2.576 * (packets as f64 * 0.01 * 0.99).sqrt());
        assert!((lost as f64 - expected).abs() <= spread, "{lost} of {packets}");
    });
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_line_delays_no_less_than_it_says() {
    let lab = RunningLab::up("long-haul", &[]);
    let done = lab.done("a", "ping", &["-c", "5", "-i", "0.2", "b"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let time = |line: &str| line.split("time=").nth(1)?.trim_end_matches(" ms").parse::<f64>().ok();
    let times: Vec<f64> = done.stdout.lines().filter_map(time).collect();
    assert_eq!(times.len(), 5, "{}", done.stdout);
    assert!(times.iter().all(|ms| *ms >= 21.0), "{times:?}");
}

/// On a busy long link the switch polls less often, and takes several packets at once.
#[test]
#[ignore = "needs root and network namespaces"]
fn a_switch_that_rests_on_a_long_line_loses_nothing_and_makes_nothing() {
    retried_when_busy(|| {
        let lab = RunningLab::up("science-dmz", &[]);
        let document = upload(&lab, "a", "c", &STEADY);
        let port = lab.port("s1>s2");
        assert_eq!(port["dropped"], 0, "the NIC sends no faster than the line: {port}");
        let flow = flow(&document, "upload");
        // Nothing was dropped, so retransmissions come from a host that got no CPU in time. The receiver does not
        // count them. At most all of them crossed the link: the kernel also counts retransmissions that were never
        // sent.
        let retransmitted = count(&flow["sender"], "retransmits") as f64 * (9000.0 - 52.0);
        let read = flow["receiver"]["total_bytes"].as_f64().unwrap();
        let carried = count(&port, "wire_bytes") as f64 * tcp_goodput(1.0, 9000.0, 0.0);
        assert!(read <= carried * (1.0 + 2e-3), "{read} were read, {carried} carried");
        assert!(
            read + retransmitted >= carried * (1.0 - 2e-3),
            "{read} and {retransmitted} again, {carried} carried"
        );
        let status = lab.status();
        let packets = |name: &str| count(&status["packet_accounting"], name);
        assert!(packets("entered") > 2 * count(&port, "packets") / 3, "{status}");
        assert_eq!(
            packets("entered") + packets("made"),
            packets("delivered") + packets("dropped") + packets("filtered") + packets("held")
        );
        assert_eq!(count(&status["keeping_up"], "overrun"), 0, "{status}");
    });
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_lag_gives_one_flow_one_member_and_many_flows_both() {
    retried_when_busy(|| {
        let lab = up("lag-2x1g", &standing_queue("a", "c", "lag", 1e9));
        let one = received(&upload(&lab, "a", "c", &STEADY));
        assert!(one <= tcp_goodput(1e9, 1500.0, 0.0) * (1.0 + tolerance(&lab)), "{one}");
        // The control connection may be on the other member link.
        assert!(of_members(&lab, "wire_bytes").iter().min() < Some(&1_000_000));
        // That all of 32 flows hash to the same member link happens once in two billion runs.
        upload(&lab, "a", "c", &[&STEADY[..], &["-P", "32"]].concat());
        let carried = of_members(&lab, "wire_bytes");
        assert!(carried.iter().min() > Some(&100_000_000), "{carried:?}");
    });
}

/// A counter of the LAG's member links, which add up to the LAG's own.
fn of_members(lab: &RunningLab, counter: &str) -> Vec<u64> {
    let port = lab.port("s1>s2");
    let members: Vec<u64> =
        port["members"].as_array().unwrap().iter().map(|member| count(member, counter)).collect();
    assert_eq!(members.len(), 2);
    assert_eq!(members.iter().sum::<u64>(), count(&port, counter), "{port}");
    members
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_policer_lets_pass_what_it_was_given_and_queues_nothing() {
    retried_when_busy(|| {
        // A bucket so deep that a sender loses nothing through short pauses.
        let lab = RunningLab::up("policed", &["burst=10MB"]);
        let document = upload(&lab, "a", "b", &["-u", "-b", "500M", "-t", "4", "-l", "1400"]);
        // The policer counts frames with their check sequence, the link 20 bytes more.
        rate_is(&lab, &document, "r>b", 100e6 * 1466.0 / 1446.0, is_dropping);
        let port = lab.port("r>b");
        assert!(count(&port, "dropped_policer") > 0, "{port}");
        assert_eq!(count(&port, "dropped"), count(&port, "dropped_policer"), "{port}");
        // No sender exceeds the rate plus the bucket: 100 Mb/s and 10 MB in 3 seconds.
        let tcp = received(&upload(&lab, "a", "b", &["-t", "3", "-O", "1"]));
        assert!(tcp <= (100e6 + 80e6 / 3.0) * 1448.0 / 1518.0 * 1.001, "{tcp}");
    });
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_bloated_buffer_fills_to_its_brim_and_makes_everything_wait() {
    retried_when_busy(|| {
        let lab = RunningLab::up("bufferbloat", &[]);
        // Reno's slow start ends only when the buffer is full.
        let document = upload(&lab, "a", "b", &["-t", "5", "-C", "reno"]);
        let port = lab.port("r>b");
        let frame = 1518;
        assert!((4_000_000 - frame + 1..=4_000_000).contains(&count(&port, "peak_bytes")), "{port}");
        assert!(count(&port, "dropped_queue") > 0, "{port}");
        // 4 MB of frames at 20 Mb/s, each with 20 bytes more on the wire: 1.62 s.
        let loaded = &flow(&document, "upload")["latency"]["loaded"];
        let worst = loaded["max_ns"].as_f64().or(loaded["p99_ns"].as_f64()).unwrap();
        assert!(worst > 1.2e9, "{loaded}");
    });
}

#[test]
#[ignore = "needs root and network namespaces"]
fn disjoint_pairs_of_a_switch_do_not_meet() {
    // Two senders have to keep two gigabit ports full at the same time.
    when_idle("disjoint_pairs_of_a_switch_do_not_meet", || {
        let mut set = standing_queue("a", "b", "b", 1e9);
        set.extend(standing_queue("c", "d", "d", 1e9));
        // The ports share the switch's memory: twice the size of both queues.
        set.retain(|change| !change.contains(".buffer="));
        set.push("buffer=400MB".to_owned());
        let lab = up("gigabit-switch-4", &set);
        let pairs = [("a", "b"), ("c", "d")].map(|(from, to)| start_upload(&lab, from, to, &STEADY));
        for (document, port) in pairs.map(finish).iter().zip(["s>b", "s>d"]) {
            rate_is(&lab, document, port, 1e9, is_full);
        }
        for port in ["s>b", "s>d"] {
            assert_eq!(lab.port(port)["dropped"], 0, "{port}");
        }
    });
}

#[test]
#[ignore = "needs root and network namespaces"]
fn two_into_one_meet_at_the_port_that_they_share() {
    retried_when_busy(|| {
        let lab = RunningLab::up("gigabit-switch-4", &[]);
        let pairs = ["a", "b"].map(|from| start_upload(&lab, from, "c", &["-t", "4", "-O", "1"]));
        let got: f64 = pairs.map(finish).iter().map(received).sum();
        // Their measured seconds differ: what one gets before the other starts, or after it ends, counts too.
        let scatter = 0.02;
        assert!(got <= tcp_goodput(1e9, 1500.0, 0.0) * (1.0 + tolerance(&lab) + scatter), "{got}");
        let port = lab.port("s>c");
        assert!(count(&port, "dropped_queue") > 0, "{port}");
        // With alpha = 1, one port may use as much as it leaves free: half of 512 KiB.
        let half = 256 * 1024;
        assert!((half - 2 * 1518..=half).contains(&count(&port, "peak_bytes")), "{port}");
        for other in ["s>a", "s>b", "s>d"] {
            assert_eq!(lab.port(other)["dropped"], 0, "{other}");
        }
    });
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_run_carries_what_the_switch_saw_and_a_link_that_changed_meanwhile_shows() {
    retried_when_busy(|| {
        let lab = RunningLab::up("pair", &["link.b.buffer=10MB"]);
        let test = start_upload(&lab, "a", "b", &["-u", "-b", "500M", "-t", "5"]);
        eventually("data flows", || (count(&lab.port("s>b"), "packets") > 20_000).then_some(()));
        assert_eq!(lab.set("link.b", &["rate=100M"]).code, Some(0));
        let document = finish(test);
        assert_eq!(document["run"]["world"], "lab");
        let names: Vec<&str> =
            document["ports"].as_array().unwrap().iter().map(|port| port["port"].as_str().unwrap()).collect();
        for port in ["a>s", "s>a", "b>s", "s>b"] {
            assert!(names.contains(&port), "{names:?}");
        }
        let seen = ports_seen(&document, "s>b");
        let rate = |sample: &Value| sample["readings"]["port.rate"].as_f64().unwrap();
        let before = seen["samples"].as_array().unwrap().iter().map(rate).fold(0.0, f64::max);
        assert!(before > 1.2e8, "more than the link carries afterwards: {seen}");
        rate_is(&lab, &document, "s>b", 1e8, is_dropping);
        assert_eq!(count(seen, "dropped"), count(&lab.port("s>b"), "dropped"));
    });
}
