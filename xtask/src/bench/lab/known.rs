//! Whether a result's uncertainty interval contains the rate of the limiting link.

use super::super::BenchContext;
use super::super::figure::FigureReadings;
use super::network::{LabNetwork, Upload};
use super::result::UploadResult;
use super::{expected, length};

/// Link rates; each gets an equal share of the runs.
const RATES: [f64; 4] = [20e6, 100e6, 300e6, 1e9];
/// Runs at each rate that state an uncertainty; the second number is for a quick run.
const RUNS_PER_RATE: (usize, usize) = (25, 2);
/// Runs without a stated uncertainty before giving up, per required run.
const MAX_SILENT_RUNS: usize = 2;

/// Share of runs whose interval contains the link's goodput.
pub(super) fn coverage(bed: &BenchContext) -> Result<Vec<FigureReadings>, String> {
    let each = if bed.quick { RUNS_PER_RATE.1 } else { RUNS_PER_RATE.0 };
    let mut seen = Vec::new();
    for rate in RATES {
        let network = limited(bed, rate)?;
        let truth = expected::tcp_goodput(rate, 1500.0, 0.0);
        let (mut stated, mut silent) = (0, 0);
        while stated < each && silent < each * MAX_SILENT_RUNS {
            // Reno's slow start, unlike CUBIC's, ends only at the limit of the window or the buffer.
            let options = ["-C", "reno"];
            let upload = Upload { from: "a", to: "b", length: length(bed, 2, 2), options: &options };
            let one = Stated::of(&network.upload(&upload, || ())?, truth)?;
            *if one.half_width.is_some() { &mut stated } else { &mut silent } += 1;
            seen.push(one);
        }
    }
    let inside = seen.iter().filter(|one| one.holds()).count();
    let stated: Vec<f64> = seen.iter().filter_map(|one| one.half_width).collect();
    if stated.is_empty() {
        return Err("no run stated how well its rate is known".to_owned());
    }
    let share = inside as f64 / stated.len() as f64;
    Ok(vec![FigureReadings::once(share, note(&seen, stated, inside))])
}

fn note(seen: &[Stated], mut widths: Vec<f64>, inside: usize) -> String {
    widths.sort_by(f64::total_cmp);
    let (stated, median) = (widths.len(), widths[widths.len() / 2]);
    let worst = seen.iter().map(|one| one.error.abs()).fold(0.0, f64::max);
    format!(
        "{inside} of {stated} runs of 2 s on lines of 20 Mb/s to 1 Gb/s; {} stated nothing; half-width {:.2} % in the median, largest error {:.2} %",
        seen.len() - stated,
        median * 100.0,
        worst * 100.0
    )
}

/// The receiver's link is the limit, with a standing queue independent of the machine's load: the sender's
/// window is 200 ms at the link rate, and the buffer is large enough.
fn limited(bed: &BenchContext, rate: f64) -> Result<LabNetwork<'_>, String> {
    let window = rate / 8.0 * 0.2;
    let changes = [
        "link.a.rate=10G".to_owned(),
        format!("link.b.rate={rate}"),
        format!("link.b.buffer={}", window * 4.0),
        format!("host.a.sysctl.ipv4.tcp_wmem=4096 16384 {window}"),
        format!("host.b.sysctl.ipv4.tcp_rmem=4096 131072 {}", window * 8.0),
    ];
    LabNetwork::up(bed, "pair", &changes.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The rate that a run reports, relative to the truth.
struct Stated {
    error: f64,
    /// Absent if the run states none.
    half_width: Option<f64>,
    /// Additional extent of the interval upwards.
    overhead: f64,
}

impl Stated {
    fn of(run: &UploadResult, truth: f64) -> Result<Self, String> {
        let half_width = run.number("/uncertainty/expanded_bps").ok().map(|bps| bps / truth);
        let overhead = run.number("/uncertainty/overhead_bps").unwrap_or(0.0) / truth;
        Ok(Self { error: run.goodput_bps / truth - 1.0, half_width, overhead })
    }

    fn holds(&self) -> bool {
        self.half_width.is_some_and(|half| (-half - self.overhead..=half).contains(&self.error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_holds_the_truth_only_where_it_states_an_interval_around_it() {
        let run = |known: &str| {
            let text = format!(r#"{{"flows":[{{"receiver":{{"bitrate_bps":99.0}}{known}}}]}}"#);
            UploadResult::read(text.as_bytes()).unwrap()
        };
        let holds = |known, truth| Stated::of(&run(known), truth).unwrap().holds();
        assert!(holds(r#","uncertainty":{"expanded_bps":1.1}"#, 100.0));
        assert!(!holds(r#","uncertainty":{"expanded_bps":0.9}"#, 100.0));
        // The interval extends further upwards, so a rate may be further below the truth.
        assert!(holds(r#","uncertainty":{"expanded_bps":0.9,"overhead_bps":0.2}"#, 100.0));
        assert!(!holds(r#","uncertainty":{"expanded_bps":0.9,"overhead_bps":0.2}"#, 98.0));
        assert!(!holds("", 99.0));
    }
}
