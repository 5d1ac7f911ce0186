//! The compared programs: how to start a server and a client of each, and how to parse their results.

use std::fs;
use std::net::TcpListener;
use std::time::Duration;

use linerate_sock::clock;
use linerate_sock::proc::cpu;
use serde_json::Value;

use super::BenchContext;
use super::bench_network::BenchNetwork;
use crate::process::ChildProcess;

/// Timeout for a server to be ready, and for a client in addition to its transfer.
pub(super) const TIMEOUT: Duration = Duration::from_secs(30);

/// A program that measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BenchTool {
    /// Ours.
    Linerate,
    /// The most common peer.
    Iperf3,
    /// Our stand-in: `linerate iperf3`.
    LinerateIperf3,
    /// A peer with another protocol.
    Nuttcp,
    /// Our stand-in: `linerate nuttcp`.
    LinerateNuttcp,
}

/// A server that is ready.
pub(super) struct BenchServer {
    pub(super) process: ChildProcess,
    pub(super) port: u16,
    /// Data port of tools that use a separate one.
    data_port: u16,
}

/// What the client reported of a transfer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TransferReport {
    /// Payload received, divided by the receiver's time.
    pub(super) bits_per_second: f64,
    /// Payload received.
    pub(super) bytes: f64,
    /// The sender's figures; absent if not needed.
    pub(super) sent: Option<SentDatagrams>,
}

/// A datagram sender's figures for its whole run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SentDatagrams {
    /// Payload sent, divided by the sender's time.
    pub(super) bits_per_second: f64,
    pub(super) datagrams: f64,
}

/// Result of one transfer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TransferResult {
    pub(super) report: TransferReport,
    /// CPU time of the whole machine per 10^9 received bytes, from start to end of the client.
    pub(super) cpu_seconds_per_gb: f64,
}

impl BenchTool {
    /// Its name in a shell.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Linerate => "linerate",
            Self::Iperf3 => "iperf3",
            Self::LinerateIperf3 => "linerate iperf3",
            Self::Nuttcp => "nuttcp",
            Self::LinerateNuttcp => "linerate nuttcp",
        }
    }

    /// The command before its options.
    fn program(self, bed: &BenchContext) -> Vec<String> {
        let linerate = bed.linerate.display().to_string();
        // A stand-in would archive its runs in the user's archive. `env` is replaced by the command through
        // exec.
        let stand_in = |tool: &str| {
            vec!["env".into(), "LINERATE_ARCHIVE=:memory:".into(), linerate.clone(), tool.into()]
        };
        match self {
            Self::Linerate => vec![linerate],
            Self::Iperf3 => vec![bed.iperf3.display().to_string()],
            Self::Nuttcp => vec![self.name().to_owned()],
            Self::LinerateIperf3 => stand_in("iperf3"),
            Self::LinerateNuttcp => stand_in("nuttcp"),
        }
    }

    /// Starts a server and waits until it is ready.
    pub(super) fn serve(self, bed: &BenchContext, place: &BenchNetwork) -> Result<BenchServer, String> {
        let mut command = [place.for_server.clone(), self.program(bed)].concat();
        let (port, data_port) = (free_port()?, free_port()?);
        if self == Self::Linerate {
            command.extend(["serve", "--port", "0", "--json"].map(str::to_owned));
            let mut process = ChildProcess::start(bed, &command)?;
            let port = process.find_line(TIMEOUT, listening_port)?;
            return Ok(BenchServer { process, port, data_port });
        }
        match self {
            Self::Nuttcp | Self::LinerateNuttcp => {
                command.extend(["-S".to_owned(), "--nofork".to_owned(), format!("-P{port}")]);
            }
            _ => {
                command.extend(["--server", "--forceflush", "--port"].map(str::to_owned));
                command.push(port.to_string());
            }
        }
        let mut process = ChildProcess::start(bed, &command)?;
        match self {
            // It prints nothing when it is ready.
            Self::Nuttcp | Self::LinerateNuttcp => await_listener(bed, port)?,
            _ => process.find_line(TIMEOUT, |line| line.starts_with("Server listening").then_some(()))?,
        }
        Ok(BenchServer { process, port, data_port })
    }

    /// Starts our server for one run, with a command that `wrap` may modify, and waits until it is ready. It
    /// ends by itself.
    pub(super) fn serve_once(
        bed: &BenchContext,
        wrap: impl FnOnce(Vec<String>) -> Vec<String>,
    ) -> Result<BenchServer, String> {
        let words = ["serve", "--port", "0", "--json", "--one-off"].map(str::to_owned);
        let command = wrap([&Self::Linerate.program(bed)[..], &words].concat());
        let mut process = ChildProcess::start(bed, &command)?;
        let port = process.find_line(TIMEOUT, listening_port)?;
        Ok(BenchServer { process, port, data_port: port })
    }

    /// The client's command for a transfer of this duration; an upload unless `options` say otherwise.
    pub(super) fn client(
        self,
        bed: &BenchContext,
        place: &BenchNetwork,
        server: &BenchServer,
        length: Duration,
        options: &[&str],
    ) -> Vec<String> {
        let (port, seconds) = (server.port.to_string(), length.as_secs().to_string());
        let nuttcp = [format!("-T{seconds}"), format!("-P{port}"), format!("-p{}", server.data_port)];
        let archive = bed.folder.join("archive.sqlite").display().to_string();
        let address = place.address.as_str();
        let (before, after): (&[&str], &[&str]) = match self {
            Self::Linerate => (
                &["test", address, "-p", &port, "-t", &seconds, "--upload", "--json", "--archive", &archive],
                &[],
            ),
            Self::Iperf3 | Self::LinerateIperf3 => (&["-c", address, "-p", &port, "-t", &seconds, "-J"], &[]),
            Self::Nuttcp | Self::LinerateNuttcp => {
                (&["-fparse", &nuttcp[0], &nuttcp[1], &nuttcp[2]], &[address])
            }
        };
        let words = [before, options, after].concat().into_iter().map(str::to_owned).collect();
        [place.for_client.clone(), self.program(bed), words].concat()
    }

    /// Parses a client's output.
    pub(super) fn report(self, output: &[u8]) -> Result<TransferReport, String> {
        if matches!(self, Self::Nuttcp | Self::LinerateNuttcp) {
            return nuttcp_report(output);
        }
        let document: Value =
            serde_json::from_slice(output).map_err(|e| format!("{} printed no JSON: {e}", self.name()))?;
        let (receiver, rate) = match self {
            Self::Linerate => (&document["flows"][0]["receiver"], "bitrate_bps"),
            _ => (&document["end"]["sum_received"], "bits_per_second"),
        };
        let positive = |value: &Value| value.as_f64().filter(|value| *value > 0.0);
        let sender = &document["end"]["sum_sent"];
        let sent = positive(&sender["bits_per_second"])
            .zip(positive(&sender["packets"]))
            .map(|(bits_per_second, datagrams)| SentDatagrams { bits_per_second, datagrams });
        match (positive(&receiver[rate]), positive(&receiver["bytes"])) {
            (Some(bits_per_second), Some(bytes)) => Ok(TransferReport { bits_per_second, bytes, sent }),
            _ => Err(format!("{} measured nothing: {}", self.name(), document["error"])),
        }
    }
}

/// One transfer with its own server.
pub(super) fn transfer(
    bed: &BenchContext,
    place: &BenchNetwork,
    client: BenchTool,
    server: BenchTool,
    options: &[&str],
    length: Duration,
) -> Result<TransferResult, String> {
    let server = server.serve(bed, place)?;
    let command = client.client(bed, place, &server, length, options);
    let before = busy_seconds()?;
    let process = ChildProcess::start(bed, &command)?;
    let output = process.finish(length + TIMEOUT, |_| ())?;
    let busy = busy_seconds()? - before;
    let report = client.report(&output)?;
    Ok(TransferResult { report, cpu_seconds_per_gb: busy / (report.bytes / 1e9) })
}

/// Parses the receiver's line of `nuttcp -fparse`, with megabytes of 2^20 bytes and decimal rates.
fn nuttcp_report(output: &[u8]) -> Result<TransferReport, String> {
    let text = String::from_utf8_lossy(output);
    let number = |key: &str| {
        let word =
            text.split_ascii_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))?;
        word.parse::<f64>().ok().filter(|value| *value > 0.0)
    };
    match (number("rate_Mbps"), number("megabytes")) {
        (Some(rate), Some(megabytes)) => {
            Ok(TransferReport { bits_per_second: rate * 1e6, bytes: megabytes * 1_048_576.0, sent: None })
        }
        _ => Err(format!("nuttcp measured nothing: {}", text.trim())),
    }
}

pub(crate) fn listening_port(line: &str) -> Option<u16> {
    let event: Value = serde_json::from_str(line).ok()?;
    (event["event"] == "listening").then(|| event["port"].as_u64()?.try_into().ok())?
}

/// A port that was free a moment ago; iperf3 cannot choose one itself.
pub(super) fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    listener.map(|address| address.port()).map_err(|e| format!("no port is free: {e}"))
}

/// Waits until this port of this namespace has a listener, without connecting to it.
pub(super) fn await_listener(bed: &BenchContext, port: u16) -> Result<(), String> {
    let deadline = clock::now() + TIMEOUT;
    let tables =
        || ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
    while !tables().iter().any(|table| is_listening(table, port)) {
        if deadline.has_passed() {
            return Err(format!("nobody listens on port {port}"));
        }
        bed.wait(Duration::from_millis(20))?;
    }
    Ok(())
}

/// Whether a socket table has a listener on this port: state 0A of proc(5).
fn is_listening(table: &str, port: u16) -> bool {
    let local = format!(":{port:04X}");
    table.lines().any(|line| {
        let mut columns = line.split_ascii_whitespace().skip(1);
        columns.next().is_some_and(|address| address.ends_with(&local)) && columns.nth(1) == Some("0A")
    })
}

/// CPU time of the whole machine since boot, in user mode, kernel and interrupts.
pub(super) fn busy_seconds() -> Result<f64, String> {
    let stat = cpu::stat().ok_or("/proc/stat is not readable")?;
    Ok(stat.all.busy() as f64 / cpu::ticks_per_second() as f64)
}

/// Run time of `command`.
pub(super) fn wall_seconds(bed: &BenchContext, command: &[String]) -> Result<f64, String> {
    let start = clock::now();
    ChildProcess::start(bed, command)?.finish(TIMEOUT, |_| ())?;
    Ok(clock::now().since(start).as_secs_f64())
}

/// Timeout for a client with this number of streams, which take time to open and close.
pub(super) fn client_timeout(bed: &BenchContext, streams: u32) -> Duration {
    bed.transfer + TIMEOUT + Duration::from_millis(10) * streams
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(bits_per_second: f64, bytes: f64) -> Result<TransferReport, String> {
        Ok(TransferReport { bits_per_second, bytes, sent: None })
    }

    #[test]
    fn the_receivers_figures_are_taken_from_both() {
        let ours = br#"{"flows":[{"receiver":{"bytes":1250,"bitrate_bps":8000.0},"sender":{"bytes":9}}]}"#;
        assert_eq!(BenchTool::Linerate.report(ours), received(8000.0, 1250.0));
        let theirs =
            br#"{"end":{"sum_sent":{"bytes":9},"sum_received":{"bytes":1250,"bits_per_second":8e3}}}"#;
        assert_eq!(BenchTool::Iperf3.report(theirs), received(8000.0, 1250.0));
        assert_eq!(BenchTool::LinerateIperf3.report(theirs), received(8000.0, 1250.0));
    }

    #[test]
    fn a_sender_of_datagrams_is_reported_next_to_the_receiver() {
        let output = br#"{"end":{"sum_sent":{"bits_per_second":1e8,"packets":8632},
            "sum_received":{"bytes":12419072,"bits_per_second":9.9e7,"packets":8632}}}"#;
        let sent = BenchTool::Iperf3.report(output).unwrap().sent;
        assert_eq!(sent, Some(SentDatagrams { bits_per_second: 1e8, datagrams: 8632.0 }));
    }

    #[test]
    fn nuttcp_counts_bytes_in_powers_of_2_and_rates_in_powers_of_10() {
        let line = b"megabytes=2.0000 real_seconds=2.06 rate_Mbps=188.8920 tx_cpu=0 rx_cpu=3 retrans=0 rtt_ms=0.06\n";
        assert_eq!(BenchTool::Nuttcp.report(line), received(188.892e6, 2_097_152.0));
        assert!(
            BenchTool::LinerateNuttcp.report(b"nuttcp-t: Error: connect").unwrap_err().contains("connect")
        );
    }

    #[test]
    fn a_failed_run_is_no_figure() {
        let refused = br#"{"start":{},"end":{},"error":"unable to connect"}"#;
        assert!(BenchTool::Iperf3.report(refused).unwrap_err().contains("unable to connect"));
        assert!(BenchTool::Linerate.report(b"").is_err());
        assert!(
            BenchTool::Linerate.report(br#"{"flows":[{"receiver":{"bytes":0,"bitrate_bps":0}}]}"#).is_err()
        );
    }

    #[test]
    fn a_port_is_ready_when_it_listens_and_not_when_it_was_used() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue\n   \
             0: 00000000:6DC4 00000000:0000 0A 00000000:00000000\n   \
             1: 0100007F:6DC5 0100007F:942F 06 00000000:00000000\n";
        assert!(is_listening(table, 0x6DC4));
        assert!(!is_listening(table, 0x6DC5) && !is_listening(table, 0x942F) && !is_listening(table, 0xC4));
    }

    #[test]
    fn only_the_listening_event_names_the_port() {
        assert_eq!(listening_port(r#"{"event":"listening","address":"::","port":40123}"#), Some(40123));
        assert_eq!(listening_port(r#"{"event":"begun","port":1}"#), None);
        assert_eq!(listening_port("listening on [::]:5201"), None);
    }
}
