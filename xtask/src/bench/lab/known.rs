//! Whether the interval that a result states for its rate holds the rate of the line that limited it.

use super::super::TestBed;
use super::super::figure::Readings;
use super::network::{Network, Upload};
use super::result::Run;
use super::{expected, length};

/// Rates of the line; each gets its share of the runs.
const RATES: [f64; 4] = [20e6, 100e6, 300e6, 1e9];
/// Runs at each rate that state how well they know it, and where a short look is enough.
const RUNS_PER_RATE: (usize, usize) = (25, 2);
/// Runs that state nothing before this is given up, for each that is wanted.
const MAX_SILENT_RUNS: usize = 2;

/// The share of runs whose interval holds what the line carries.
pub(super) fn coverage(bed: &TestBed) -> Result<Vec<Readings>, String> {
    let each = if bed.quick { RUNS_PER_RATE.1 } else { RUNS_PER_RATE.0 };
    let mut seen = Vec::new();
    for rate in RATES {
        let network = limited(bed, rate)?;
        let truth = expected::tcp_goodput(rate, 1500.0, 0.0);
        let (mut stated, mut silent) = (0, 0);
        while stated < each && silent < each * MAX_SILENT_RUNS {
            // Reno's slow start, unlike CUBIC's, ends only where the window or the room does.
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
    Ok(vec![Readings::once(share, note(&seen, stated, inside))])
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

/// The link of the receiver is the limit, and a queue stands before it whatever else the machine does: the sender's
/// window is 200 ms of the line, for which there is room.
fn limited(bed: &TestBed, rate: f64) -> Result<Network<'_>, String> {
    let window = rate / 8.0 * 0.2;
    let changes = [
        "link.a.rate=10G".to_owned(),
        format!("link.b.rate={rate}"),
        format!("link.b.buffer={}", window * 4.0),
        format!("host.a.sysctl.ipv4.tcp_wmem=4096 16384 {window}"),
        format!("host.b.sysctl.ipv4.tcp_rmem=4096 131072 {}", window * 8.0),
    ];
    Network::up(bed, "pair", &changes.iter().map(String::as_str).collect::<Vec<_>>())
}

/// What a run says of its rate, as shares of the truth.
struct Stated {
    error: f64,
    /// Absent where the run states none.
    half_width: Option<f64>,
    /// How much further up the interval reaches.
    overhead: f64,
}

impl Stated {
    fn of(run: &Run, truth: f64) -> Result<Self, String> {
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
            Run::read(text.as_bytes()).unwrap()
        };
        let holds = |known, truth| Stated::of(&run(known), truth).unwrap().holds();
        assert!(holds(r#","uncertainty":{"expanded_bps":1.1}"#, 100.0));
        assert!(!holds(r#","uncertainty":{"expanded_bps":0.9}"#, 100.0));
        // The interval reaches further upwards, so that a rate may be further below the truth.
        assert!(holds(r#","uncertainty":{"expanded_bps":0.9,"overhead_bps":0.2}"#, 100.0));
        assert!(!holds(r#","uncertainty":{"expanded_bps":0.9,"overhead_bps":0.2}"#, 98.0));
        assert!(!holds("", 99.0));
    }
}
