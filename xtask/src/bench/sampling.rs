//! Cost of sampling a flow: the threads that do not move payload.

use std::time::Duration;

use linerate_sock::{Mono, clock};

use super::BenchContext;
use super::alone::{carried, loopback};
use super::figure::FigureReadings;
use super::tools::{BenchTool, client_timeout};
use crate::process::ChildProcess;

/// CPU time of everything except the pumps of both ends, in percent of the machine: an upper bound for the
/// reduction of a CPU-limited rate. Pairs with and without sampling are measured in `watching`.
pub(super) fn cpu_outside_pumps(bed: &BenchContext) -> Result<FigureReadings, String> {
    let cores = std::thread::available_parallelism().map_err(|e| format!("cannot count the cores: {e}"))?;
    let cores = cores.get() as f64;
    let mut all = Vec::new();
    for _ in 0..bed.pairs {
        let (server, client) = watch(bed, 1, &[], |name| !name.starts_with("pump"))?;
        all.push((server + client) / cores);
    }
    let note = "all threads of both ends but the pumps, archive and live line included; one stream, loopback";
    Ok(FigureReadings { all, note: Some(note.to_owned()) })
}

/// CPU time of the samplers with 128 streams and a tick of 10 ms, in percent of a core; of the busier end.
pub(super) fn samplers(bed: &BenchContext) -> Result<FigureReadings, String> {
    let mut all = Vec::new();
    for _ in 0..bed.pairs {
        let (server, client) = watch(bed, 128, &["-i", "0.01"], |name| name == "sampler")?;
        all.push(server.max(client));
    }
    Ok(FigureReadings { all, note: Some("128 streams over loopback, -i 0.01; the busier end".to_owned()) })
}

/// Percent of a core that the selected threads of server and client used in the middle of an upload.
fn watch(
    bed: &BenchContext,
    streams: u32,
    options: &[&str],
    wanted: fn(&str) -> bool,
) -> Result<(f64, f64), String> {
    let place = loopback()?;
    let server = BenchTool::Linerate.serve(bed, &place)?;
    let count = streams.to_string();
    let options = [&["--no-latency", "-P", &count], options].concat();
    let command = BenchTool::Linerate.client(bed, &place, &server, bed.transfer, &options);
    let client = ChildProcess::start(bed, &command)?;
    let (mut at_server, mut at_client) = (ThreadCpuTime::default(), ThreadCpuTime::default());
    let output = client.finish(client_timeout(bed, streams), |client| {
        at_server.see(&server.process.threads(), wanted);
        at_client.see(&client.threads(), wanted);
    })?;
    carried(&output, streams)?;
    let share = |share: ThreadCpuTime| share.percent().ok_or_else(|| "no data threads were seen".to_owned());
    Ok((share(at_server)?, share(at_client)?))
}

/// CPU time of some threads between the first and the last reading with running pumps.
#[derive(Debug, Default)]
struct ThreadCpuTime {
    first: Option<(Mono, Duration)>,
    last: Option<(Mono, Duration)>,
}

impl ThreadCpuTime {
    fn see(&mut self, threads: &[(String, Duration)], wanted: fn(&str) -> bool) {
        if !threads.iter().any(|(name, _)| name.starts_with("pump")) {
            return;
        }
        let spent = threads.iter().filter(|(name, _)| wanted(name)).map(|(_, time)| *time).sum();
        let now = (clock::now(), spent);
        self.first.get_or_insert(now);
        self.last = Some(now);
    }

    fn percent(&self) -> Option<f64> {
        let ((began, before), (ended, after)) = (self.first?, self.last?);
        let time = ended.since(began).as_secs_f64();
        (time > 0.0).then(|| after.saturating_sub(before).as_secs_f64() / time * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Mono {
        Mono(ms * 1_000_000)
    }

    #[test]
    fn the_share_is_that_between_two_looks_at_work() {
        let share = ThreadCpuTime {
            first: Some((at(1000), Duration::from_millis(40))),
            last: Some((at(3000), Duration::from_millis(60))),
        };
        assert_eq!(share.percent(), Some(1.0));
        assert_eq!(ThreadCpuTime::default().percent(), None);
    }

    #[test]
    fn only_the_wanted_threads_count_and_only_while_pumps_are_at_work() {
        let thread = |name: &str, ms| (name.to_owned(), Duration::from_millis(ms));
        let mut share = ThreadCpuTime::default();
        share.see(&[thread("sampler", 5)], |name| name == "sampler");
        assert!(share.first.is_none(), "nothing moves yet");
        share
            .see(&[thread("sampler", 7), thread("pump 0", 900), thread("main", 1)], |name| name == "sampler");
        assert_eq!(share.last.unwrap().1, Duration::from_millis(7));
    }
}
