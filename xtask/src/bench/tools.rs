//! The two programs that are compared: how a server and a client of each are started, and where their result stands.

use std::net::TcpListener;
use std::time::Duration;

use linerate_sock::clock;
use linerate_sock::proc::cpu;
use serde_json::Value;

use super::Bench;
use super::place::Place;
use super::process::Process;

/// Time for a server to be ready, and for a client beyond its transfer.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// A program that measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    /// Ours.
    Linerate,
    /// The peer that everybody has.
    Iperf3,
}

/// A server that is ready.
pub(super) struct Server {
    pub(super) process: Process,
    port: u16,
}

/// What one transfer gave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Transfer {
    /// Payload that the receiver got, over its time.
    pub(super) bits_per_second: f64,
    /// CPU time of the whole machine for each 10^9 bytes that the receiver got, from start to end of the client.
    pub(super) cpu_seconds_per_gb: f64,
}

impl Tool {
    /// Starts a server and waits until it is ready.
    pub(super) fn serve(self, bench: &Bench, place: &Place) -> Result<Server, String> {
        let mut command = place.for_server.clone();
        match self {
            Self::Linerate => {
                command.push(bench.linerate.display().to_string());
                command.extend(["serve", "--port", "0", "--json"].map(str::to_owned));
                let mut process = Process::start(bench, &command)?;
                let port = process.find_line(PATIENCE, listening_port)?;
                Ok(Server { process, port })
            }
            Self::Iperf3 => {
                let port = free_port()?;
                command.extend(["iperf3", "--server", "--forceflush", "--port"].map(str::to_owned));
                command.push(port.to_string());
                let mut process = Process::start(bench, &command)?;
                process.find_line(PATIENCE, |line| line.starts_with("Server listening").then_some(()))?;
                Ok(Server { process, port })
            }
        }
    }

    /// The client's command for an upload of this length, with `options`.
    pub(super) fn client(
        self,
        bench: &Bench,
        place: &Place,
        server: &Server,
        length: Duration,
        options: &[&str],
    ) -> Vec<String> {
        let mut command = place.for_client.clone();
        let (port, seconds) = (server.port.to_string(), length.as_secs().to_string());
        match self {
            Self::Linerate => {
                let archive = bench.folder.join("archive.sqlite").display().to_string();
                command.push(bench.linerate.display().to_string());
                command.extend(["test", &place.address, "-p", &port, "-t", &seconds].map(str::to_owned));
                command.extend(["--upload", "--json", "--archive", &archive].map(str::to_owned));
            }
            Self::Iperf3 => {
                command.extend(["iperf3", "-c", &place.address, "-p", &port].map(str::to_owned));
                command.extend(["-t", &seconds, "-J"].map(str::to_owned));
            }
        }
        command.extend(options.iter().map(|option| (*option).to_owned()));
        command
    }

    /// One transfer against a server of its own.
    pub(super) fn transfer(self, bench: &Bench, place: &Place, options: &[&str]) -> Result<Transfer, String> {
        let server = self.serve(bench, place)?;
        let command = self.client(bench, place, &server, bench.transfer, options);
        let before = busy_seconds()?;
        let client = Process::start(bench, &command)?;
        let output = client.finish(bench.transfer + PATIENCE, |_| ())?;
        let busy = busy_seconds()? - before;
        let (bits_per_second, bytes) = self.result(&output)?;
        Ok(Transfer { bits_per_second, cpu_seconds_per_gb: busy / (bytes / 1e9) })
    }

    /// Bit rate and bytes at the receiver.
    pub(super) fn result(self, output: &[u8]) -> Result<(f64, f64), String> {
        let document: Value =
            serde_json::from_slice(output).map_err(|e| format!("{self:?} printed no JSON: {e}"))?;
        let (receiver, rate) = match self {
            Self::Linerate => (&document["flows"][0]["receiver"], "bitrate_bps"),
            Self::Iperf3 => (&document["end"]["sum_received"], "bits_per_second"),
        };
        let number = |key: &str| receiver[key].as_f64().filter(|value| *value > 0.0);
        match (number(rate), number("bytes")) {
            (Some(rate), Some(bytes)) => Ok((rate, bytes)),
            _ => Err(format!("{self:?} measured nothing: {}", document["error"])),
        }
    }
}

fn listening_port(line: &str) -> Option<u16> {
    let event: Value = serde_json::from_str(line).ok()?;
    (event["event"] == "listening").then(|| event["port"].as_u64()?.try_into().ok())?
}

/// A port that was free a moment ago; iperf3 cannot choose one itself.
fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    listener.map(|address| address.port()).map_err(|e| format!("no port is free: {e}"))
}

/// CPU time of the whole machine since it was started, in programs, kernel and interrupts.
fn busy_seconds() -> Result<f64, String> {
    let stat = cpu::stat().ok_or("/proc/stat is not readable")?;
    Ok(stat.all.busy() as f64 / cpu::ticks_per_second() as f64)
}

/// Seconds that `command` takes from start to end.
pub(super) fn wall_seconds(bench: &Bench, command: &[String]) -> Result<f64, String> {
    let start = clock::now();
    Process::start(bench, command)?.finish(PATIENCE, |_| ())?;
    Ok(clock::now().since(start).as_secs_f64())
}

/// Time for a client with so many streams: opening and closing them takes a while.
pub(super) fn patience(bench: &Bench, streams: u32) -> Duration {
    bench.transfer + PATIENCE + Duration::from_millis(10) * streams
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_receivers_figures_are_taken_from_both() {
        let ours = br#"{"flows":[{"receiver":{"bytes":1250,"bitrate_bps":8000.0},"sender":{"bytes":9}}]}"#;
        assert_eq!(Tool::Linerate.result(ours), Ok((8000.0, 1250.0)));
        let theirs =
            br#"{"end":{"sum_sent":{"bytes":9},"sum_received":{"bytes":1250,"bits_per_second":8e3}}}"#;
        assert_eq!(Tool::Iperf3.result(theirs), Ok((8000.0, 1250.0)));
    }

    #[test]
    fn a_failed_run_is_no_figure() {
        let refused = br#"{"start":{},"end":{},"error":"unable to connect"}"#;
        assert!(Tool::Iperf3.result(refused).unwrap_err().contains("unable to connect"));
        assert!(Tool::Linerate.result(b"").is_err());
        assert!(Tool::Linerate.result(br#"{"flows":[{"receiver":{"bytes":0,"bitrate_bps":0}}]}"#).is_err());
    }

    #[test]
    fn only_the_listening_event_names_the_port() {
        assert_eq!(listening_port(r#"{"event":"listening","address":"::","port":40123}"#), Some(40123));
        assert_eq!(listening_port(r#"{"event":"begun","port":1}"#), None);
        assert_eq!(listening_port("listening on [::]:5201"), None);
    }
}
