//! The result as JSON, in which the tool writes every number as a string.

use super::{NtttcpFigures, RETRANSMITS, parameters};

/// Indentation per level: four blanks.
const INDENT: &str = "    ";

/// The document of `-j`. A figure that this system does not provide is 0, as in the original.
pub(in crate::ntttcp) fn json(figures: &NtttcpFigures<'_>) -> String {
    let outcome = figures.outcome;
    let parameters = parameters(figures.options)
        .into_iter()
        .map(|(_, name, value)| (name, NtttcpJson::Text(value)))
        .collect();
    let mut fields = vec![
        ("computername", text(&outcome.after.name)),
        ("version", text(figures.version())),
        ("parameters", NtttcpJson::Object(parameters)),
    ];
    if figures.options.verbose {
        let threads = outcome.threads.iter().enumerate().map(|(index, bytes)| thread(figures, index, *bytes));
        fields.push(("threads", NtttcpJson::List(threads.collect())));
    }
    fields.extend(totals(figures));
    fields.extend(host(figures));
    let mut out = String::new();
    NtttcpJson::Object(vec![(figures.root(), NtttcpJson::Object(fields))]).write(&mut out, 0);
    out.push('\n');
    out
}

enum NtttcpJson {
    Text(String),
    Object(Vec<(&'static str, NtttcpJson)>),
    List(Vec<NtttcpJson>),
}

impl NtttcpJson {
    fn write(&self, out: &mut String, depth: usize) {
        match self {
            Self::Text(value) => out.push_str(&quoted(value)),
            Self::Object(fields) => {
                let lines = fields.iter().map(|(name, value)| (format!("\"{name}\" : "), value));
                write_block(out, depth, ['{', '}'], &lines.collect::<Vec<_>>());
            }
            Self::List(values) => {
                let lines = values.iter().map(|value| (String::new(), value));
                write_block(out, depth, ['[', ']'], &lines.collect::<Vec<_>>());
            }
        }
    }
}

fn write_block(out: &mut String, depth: usize, brackets: [char; 2], lines: &[(String, &NtttcpJson)]) {
    out.push(brackets[0]);
    for (at, (name, value)) in lines.iter().enumerate() {
        out.push_str(if at == 0 { "\n" } else { ",\n" });
        out.push_str(&INDENT.repeat(depth + 1));
        out.push_str(name);
        value.write(out, depth + 1);
    }
    out.push('\n');
    out.push_str(&INDENT.repeat(depth));
    out.push(brackets[1]);
}

fn quoted(value: &str) -> String {
    let mut out = String::from('"');
    for letter in value.chars().filter(|letter| !letter.is_control()) {
        if matches!(letter, '"' | '\\') {
            out.push('\\');
        }
        out.push(letter);
    }
    out.push('"');
    out
}

fn text(value: impl std::fmt::Display) -> NtttcpJson {
    NtttcpJson::Text(format!("{value}"))
}

fn metric(name: &str, value: impl std::fmt::Display) -> NtttcpJson {
    NtttcpJson::Object(vec![("metric", text(name)), ("value", text(value))])
}

fn thread(figures: &NtttcpFigures<'_>, index: usize, bytes: u64) -> NtttcpJson {
    let rate = figures.outcome.rate(bytes);
    let throughputs = vec![
        metric("KB/s", format!("{:.3}", rate / figures.kilo())),
        // The original appends a unit to this value.
        metric("MB/s", format!("{:.3} bps", rate / figures.kilo().powi(2))),
        metric("mbps", format!("{:.3}", rate * 8.0 / 1e6)),
    ];
    NtttcpJson::Object(vec![
        ("index", text(index)),
        ("realTime", metric("s", format!("{:.3}", figures.outcome.seconds))),
        ("throughputs", NtttcpJson::List(throughputs)),
        ("avgBytesPerCompl", metric("B", "0.000")),
    ])
}

fn totals(figures: &NtttcpFigures<'_>) -> Vec<(&'static str, NtttcpJson)> {
    let (outcome, rate) = (figures.outcome, figures.rate);
    let throughputs = vec![
        metric("MB/s", format!("{:.3}", rate / figures.kilo().powi(2))),
        metric("mbps", format!("{:.3}", rate * 8.0 / 1e6)),
        metric("Bps", format!("{rate:.3}")),
        metric("buffer/s", "0.000"),
    ];
    let interrupts = figures.interrupts().unwrap_or(0);
    let per_interrupt = figures.packets_per_interrupt().unwrap_or(0.0);
    vec![
        ("totalBytes", metric("MB", format!("{:.6}", figures.bytes as f64 / figures.kilo().powi(2)))),
        ("realTime", metric("s", format!("{:.6}", outcome.seconds))),
        ("avgBytesPerCompl", metric("B", "0.000")),
        ("threadsAvgBytesPerCompl", metric("B", "0.000")),
        ("avgFrameSize", metric("B", "0.000")),
        ("throughputs", NtttcpJson::List(throughputs)),
        ("totalBuffers", text("0.000")),
        ("avgPacketsPerInterrupt", metric("packets/interrupt", format!("{per_interrupt:.3}"))),
        ("interrupt", metric("count/sec", format!("{:.3}", outcome.rate(interrupts)))),
        ("interruptTotal", metric("count", interrupts)),
        ("dpcs", metric("count/sec", "0.000")),
        ("avgPacketsPerDpc", metric("packets/dpc", "0.000")),
    ]
}

fn host(figures: &NtttcpFigures<'_>) -> Vec<(&'static str, NtttcpJson)> {
    let (sent, received) = figures.packets().unwrap_or((0, 0));
    let cycles = figures.cycles_per_byte().unwrap_or(0.0);
    let mut fields = vec![
        ("cycles", metric("cycles/byte", format!("{cycles:.3}"))),
        ("packetsSent", text(sent)),
        ("packetsReceived", text(received)),
        ("packets_retransmitted", text(0)),
        ("errors", text(0)),
        ("cpu", metric("%", format!("{:.3}", figures.process_percent()))),
        ("bufferCount", text(0)),
        ("bufferLen", text(0)),
        ("io", text(0)),
    ];
    if figures.options.by_kind {
        let mut retransmits = vec![metric("retrans_segs", figures.retransmits().unwrap_or(0))];
        let by_kind = RETRANSMITS.iter().zip(figures.retransmits_a_second());
        retransmits.extend(by_kind.map(|(name, count)| metric(name, format!("{count:.2}"))));
        fields.push(("tcp_retransmits", NtttcpJson::List(retransmits)));
    }
    if let Some(rtt) = figures.average_rtt() {
        fields.push(("tcpAverageRtt metric", text(format!("{} us", rtt.as_ns() / 1000))));
    }
    fields.push(("os", text(&figures.outcome.after.system)));
    fields
}
