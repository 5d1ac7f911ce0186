//! The figures of a server's report: words next to numbers, in any order of lines.

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
    /// Largest jitter, milliseconds.
    pub max_jitter_ms: Option<f64>,
    /// Mean one-way delay, milliseconds.
    pub avg_owd_ms: Option<f64>,
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
        self.max_jitter_ms = after(line, "max-jitter = ").or(self.max_jitter_ms);
        // A clock offset may make delays negative.
        let delay = signed_after(line, "avg-OWD = ").or_else(|| signed_after(line, "msavgOWD="));
        self.avg_owd_ms = delay.or(self.avg_owd_ms);
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

/// The number before a word.
fn before(line: &str, word: &str) -> Option<f64> {
    let (rest, _) = line.split_once(word)?;
    number(rest.rsplit([' ', '=']).next()?)
}
