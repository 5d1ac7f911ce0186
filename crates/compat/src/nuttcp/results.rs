//! The figures of a server's report: words next to numbers, in any order of lines.

use super::MAX_STREAMS;

/// The figures of a server's report; absent if it does not contain them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NuttcpResults {
    /// Data, MB of 1048576 bytes.
    pub megabytes: Option<f64>,
    /// Real time, seconds.
    pub seconds: Option<f64>,
    /// Rate, 10^6 bit/s.
    pub mbps: Option<f64>,
    /// CPU time as a share of the real time, percent.
    pub cpu_percent: Option<u64>,
    /// Retransmitted segments.
    pub retrans: Option<u64>,
    /// Whether they are those of the whole host.
    pub host_retrans: bool,
    /// Congestion window, KB.
    pub cwnd: Option<u64>,
    /// Time of the handshake, milliseconds.
    pub rtt_ms: Option<f64>,
    /// Retransmitted segments of each of several streams; empty if they are not known.
    pub stream_retrans: Vec<u64>,
    /// Congestion window of each of several streams, KB; empty if they are not known.
    pub stream_cwnd: Vec<u64>,
    /// Smallest, mean and largest jitter, milliseconds.
    pub jitter_ms: Option<[f64; 3]>,
    /// Smallest, mean and largest one-way delay, milliseconds.
    pub one_way_ms: Option<[f64; 3]>,
}

impl NuttcpResults {
    /// Parses one line of the report.
    pub fn line(&mut self, line: &str) {
        if let (Some(seconds), true) = (before(line, " real seconds"), line.contains(" MB in ")) {
            self.megabytes = before(line, " MB in ");
            self.seconds = Some(seconds);
            self.mbps = before(line, " Mbps");
        }
        if let Some(seconds) = after(line, "real_seconds=") {
            self.megabytes = after(line, "megabytes=");
            self.seconds = Some(seconds);
            self.mbps = after(line, "rate_Mbps=");
        }
        if line.contains("sys ") {
            self.cpu_percent = after(line, "real ").map(percent).or(self.cpu_percent);
        }
        if line.contains("stats=cpu") {
            self.cpu_percent = after(line, " cpu=").map(percent).or(self.cpu_percent);
        }
        if let Some(retrans) = after(line, "retrans = ").or_else(|| after(line, "retrans=")) {
            self.retrans = Some(retrans as u64);
            self.host_retrans = line.contains("host-retrans");
        }
        let cwnd = after(line, "cwnd = ").or_else(|| after(line, "cwnd="));
        self.cwnd = cwnd.map(|cwnd| cwnd as u64).or(self.cwnd);
        self.rtt_ms = after(line, "RTT=").or_else(|| after(line, "rtt_ms=")).or(self.rtt_ms);
        self.jitter_ms = three(line, "jitter").or(self.jitter_ms);
        // A clock offset may make delays negative.
        self.one_way_ms = three(line, "OWD").or(self.one_way_ms);
        let (retrans, cwnd) = line.split_at(line.find("cwnd").unwrap_or(line.len()));
        for (part, kept) in [(retrans, &mut self.stream_retrans), (cwnd, &mut self.stream_cwnd)] {
            if let Some(streams) = by_stream(part) {
                *kept = streams;
            }
        }
    }

    /// The data in bytes; the text has a resolution of about 100 bytes.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        self.megabytes.map(|megabytes| (megabytes * 1_048_576.0).round() as u64)
    }
}

/// Parses a number that is finite and not negative.
fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

fn percent(value: f64) -> u64 {
    value as u64
}

/// The number after a word.
fn after(line: &str, word: &str) -> Option<f64> {
    let (_, rest) = line.split_once(word)?;
    let rest = rest.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    number(&rest[..end])
}

/// The number after a word, with an optional minus sign.
fn signed_after(line: &str, word: &str) -> Option<f64> {
    after(line, word).or_else(|| after(line, &format!("{word}-")).map(|number| -number))
}

/// `min-jitter = 0.0 ms, avg-jitter = …`, or `msminjitter=0.0 msavgjitter=…`.
fn three(line: &str, name: &str) -> Option<[f64; 3]> {
    let value = |which: &str| {
        let long = signed_after(line, &format!("{which}-{name} = "));
        long.or_else(|| signed_after(line, &format!("ms{which}{name}=")))
    };
    Some([value("min")?, value("avg")?, value("max")?])
}

/// The values of several streams in a line about retransmissions: `retrans = 5 ( 3+2 )`, or
/// `retrans_by_stream=3+2`.
fn by_stream(text: &str) -> Option<Vec<u64>> {
    let (_, rest) = text.split_once("_by_stream=").or_else(|| text.split_once("( "))?;
    let list = rest.split_whitespace().next()?;
    let values: Option<Vec<u64>> =
        list.split('+').take(usize::from(MAX_STREAMS)).map(|value| value.parse().ok()).collect();
    values.filter(|values| values.len() > 1)
}

/// The number before a word.
fn before(line: &str, word: &str) -> Option<f64> {
    let (rest, _) = line.split_once(word)?;
    number(rest.rsplit([' ', '=']).next()?)
}
