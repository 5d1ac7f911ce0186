//! The console lines, without time and level.

use super::NtttcpFigures;
use crate::ntttcp::options::{NtttcpOptions, NtttcpRole};

/// A bit rate with two decimals in an adaptive decimal unit, as the tool prints it.
pub(in crate::ntttcp) fn rate(bps: f64) -> String {
    let units = ["bps", "Kbps", "Mbps", "Gbps"];
    let mut value = bps;
    let mut unit = 0;
    while value > 1000.0 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{value:.2}{}", units.get(unit).unwrap_or(&"bps"))
}

/// The settings that `-V` prints first.
pub(in crate::ntttcp) fn settings(options: &NtttcpOptions) -> String {
    let receives = options.role == NtttcpRole::Receiver;
    let yes = |value: bool| if value { "yes" } else { "no" }.to_owned();
    let enabled = |value: bool| if value { "enabled" } else { "disabled" }.to_owned();
    let seconds = |value: u32| if value == 0 { "no".to_owned() } else { value.to_string() };
    let address = options.address.clone().unwrap_or_else(|| "0.0.0.0".to_owned());
    let cpu = options.affinity.map_or_else(|| "*".to_owned(), |cpu| cpu.to_string());
    let mut lines =
        vec![(format!("*** {} role", if receives { "receiver" } else { "sender" }), String::new())];
    let given = [
        (options.epoll, "*** use epoll()", ""),
        (options.again, "*** hold receiver always running", ""),
        (options.many, "multiple clients:\t\t ", "yes"),
        (options.last, "last client:\t\t\t ", "yes"),
        (!options.sync, "*** no sender/receiver synch", ""),
    ];
    lines.extend(
        given
            .into_iter()
            .filter(|(given, ..)| *given)
            .map(|(_, name, value)| (name.to_owned(), value.to_owned())),
    );
    let mut add = |name: &str, value: String| lines.push((name.to_owned(), value));
    if receives {
        add("ports:\t\t\t\t ", options.ports.to_string());
    } else {
        let connections = format!("{} X {} X {}", options.ports, options.threads, options.connections);
        add("connections:\t\t\t ", connections);
    }
    add("cpu affinity:\t\t\t ", cpu);
    add("server address:\t\t\t ", address);
    if !receives {
        add("client address:\t\t\t ", options.source.map_or("0.0.0.0".to_owned(), |ip| ip.to_string()));
    }
    add("domain:\t\t\t\t ", if options.ipv6 { "IPv6" } else { "IPv4" }.to_owned());
    add("protocol:\t\t\t ", if options.udp { "UDP" } else { "TCP" }.to_owned());
    add("server port starting at:\t ", options.base.to_string());
    if let Some(port) = options.source_port {
        add("client source port starting at:\t ", port.to_string());
    }
    let buffer = if receives { "receiver" } else { "sender" };
    add(&format!("{buffer} socket buffer (bytes):\t "), options.block().to_string());
    let rates = [("bandwidth limit", options.rate), ("fq rate limit", options.fq_rate)];
    for (name, rate) in rates.into_iter().filter_map(|(name, rate)| Some((name, rate?))) {
        add(&format!("{name} (bits/sec):\t "), format!("{:.0}", rate.bps()));
    }
    add("tcp nodelay:\t ", yes(options.no_delay));
    add("test warm-up (sec):\t\t ", seconds(options.omit));
    let duration = if options.seconds == 0 { "continuous".to_owned() } else { options.seconds.to_string() };
    add("test duration (sec):\t\t ", duration);
    add("test cool-down (sec):\t\t ", seconds(options.cooldown));
    add("show system tcp retransmit:\t ", yes(options.by_kind));
    let given = [
        ("show packets for:\t\t ", &options.interface),
        ("show device interrupts for:\t ", &options.interrupts),
        ("capture console output to::\t ", &options.log),
        ("save output to xml file::\t ", &options.xml),
        ("save output to json file::\t ", &options.json),
    ];
    for (name, value) in given {
        if let Some(value) = value {
            add(name, value.clone());
        }
    }
    add("quiet mode:\t\t\t ", enabled(options.quiet));
    add("verbose mode:\t\t\t ", enabled(options.verbose));
    lines.into_iter().map(|(name, value)| format!("{name}{value}\n")).collect()
}

/// The table of threads.
pub(in crate::ntttcp) fn threads(figures: &NtttcpFigures<'_>) -> Vec<String> {
    let mut lines =
        vec!["\tThread\tTime(s)\tThroughput".to_owned(), "\t======\t=======\t==========".to_owned()];
    for (thread, bytes) in figures.outcome.threads.iter().enumerate() {
        let bps = figures.outcome.rate(*bytes) * 8.0;
        lines.push(format!("\t{thread}\t {:.2}\t {}", figures.outcome.seconds, rate(bps)));
    }
    lines
}

/// The block of totals; figures that this system does not provide are omitted.
pub(in crate::ntttcp) fn totals(figures: &NtttcpFigures<'_>) -> Vec<String> {
    let (options, outcome) = (figures.options, figures.outcome);
    let mut lines = vec![
        "#####  Totals:  #####".to_owned(),
        format!("test duration\t:{:.2} seconds", outcome.seconds),
        format!("total bytes\t:{}", figures.bytes),
        format!("\t throughput\t:{}", rate(figures.rate * 8.0)),
    ];
    if let Some(segments) = figures.retransmits() {
        lines.push(format!("\t retrans segs\t:{segments}"));
    }
    if options.by_kind && !options.udp {
        lines.push("tcp retransmit:".to_owned());
        for (name, count) in super::RETRANSMITS.iter().zip(figures.retransmits_a_second()) {
            lines.push(format!("\t {}/sec\t:{count:.2}", name.trim_end_matches("_per_sec")));
        }
    }
    if let Some((sent, received)) = figures.packets() {
        lines.push("total packets:".to_owned());
        lines.push(format!("\t tx_packets\t:{sent}"));
        lines.push(format!("\t rx_packets\t:{received}"));
    }
    if let Some(interrupts) = figures.interrupts() {
        lines.push("interrupts:".to_owned());
        lines.push(format!("\t total\t\t:{interrupts}"));
        lines.push(format!("\t interrupts/sec\t:{:.3}", outcome.rate(interrupts)));
    }
    if let Some(packets) = figures.packets_per_interrupt() {
        lines.push(format!("\t pkts/interrupt\t:{packets:.2}"));
    }
    lines.extend(cpu(figures));
    if let Some(rtt) = figures.average_rtt() {
        lines.push(format!("tcpi rtt\t\t:{} us", rtt.as_ns() / 1000));
    }
    lines
}

fn cpu(figures: &NtttcpFigures<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(cores) = figures.outcome.after.cores {
        lines.push(format!("cpu cores\t:{cores}"));
    }
    if let Some(mhz) = figures.outcome.after.mhz {
        lines.push(format!("\t cpu speed\t:{mhz:.3}MHz"));
    }
    if let Some(shares) = figures.shares() {
        let states = [
            ("user\t", shares.user),
            ("system\t", shares.system),
            ("idle\t", shares.idle),
            ("iowait\t", shares.iowait),
            ("softirq", shares.softirq),
        ];
        lines.extend(states.map(|(name, share)| format!("\t {name}\t:{:.2}%", share * 100.0)));
    }
    if let Some(cycles) = figures.cycles_per_byte() {
        lines.push(format!("\t cycles/byte\t:{cycles:.2}"));
    }
    lines.push(format!("cpu busy (all)\t:{:.2}%", figures.process_percent()));
    lines
}
