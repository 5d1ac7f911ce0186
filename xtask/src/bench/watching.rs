//! What watching a flow costs: pairs over loopback with and without samples, latency and verdict, in turn.

use std::fs;
use std::time::Duration;

use super::alone::loopback;
use super::figure::{Bar, Readings};
use super::place::Place;
use super::spread::shift;
use super::tools::{PATIENCE, Tool};
use super::{Bench, Outcome, report};
use crate::process::Process;

/// Names of the figures, in the order in which they are measured.
pub(super) const NAMES: [&str; 3] =
    ["diagnosis-cost", "diagnosis-cost-instructions", "diagnosis-cost-cycles"];

/// Pairs of a whole look: intervals need six.
const PAIRS: usize = 20;
/// Both halves of a pair should meet the same minute.
const LONGEST: Duration = Duration::from_secs(2);
/// What is counted, user and kernel apart, because some systems allow the first only.
const EVENTS: &str = "instructions:u,instructions:k,cycles:u,cycles:k";

/// What one transfer gave.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Half {
    bits_per_second: f64,
    /// Of both ends, for each byte that the receiver got; absent where counting is not allowed.
    per_byte: Option<Counted>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Counted {
    instructions: f64,
    cycles: f64,
}

/// All three figures; the last two only where the processor's counters may be read.
pub(super) fn run(bench: &Bench) -> Result<Outcome, String> {
    let place = loopback()?;
    let counts = can_count(bench);
    let pairs = if bench.quick { 1 } else { PAIRS };
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for pair in 1..=pairs {
        report::progress(&format!("{}: pair {pair} of {pairs}", NAMES[0]));
        // Each order as often as the other, so that whatever grows meets both.
        if pair % 2 == 0 {
            with.push(half(bench, &place, counts, false)?);
            without.push(half(bench, &place, counts, true)?);
        } else {
            without.push(half(bench, &place, counts, true)?);
            with.push(half(bench, &place, counts, false)?);
        }
    }
    let less = |with: &Half, without: &Half| 1.0 - with.bits_per_second / without.bits_per_second;
    let mut figures =
        vec![figure(NAMES[0], "% of the rate", "rate lost", &with, &without, |a, b| Some(less(a, b)))?];
    let more = |of: fn(&Counted) -> f64| {
        move |with: &Half, without: &Half| Some(of(&with.per_byte?) / of(&without.per_byte?) - 1.0)
    };
    if counts {
        let instructions = more(|counted| counted.instructions);
        let cycles = more(|counted| counted.cycles);
        figures.push(figure(
            NAMES[1],
            "% more",
            "instructions a byte, both ends, user and kernel",
            &with,
            &without,
            instructions,
        )?);
        figures.push(figure(
            NAMES[2],
            "% more",
            "cycles a byte, both ends, user and kernel",
            &with,
            &without,
            cycles,
        )?);
    }
    Ok(Outcome::Measured(figures))
}

fn figure(
    name: &'static str,
    unit: &'static str,
    what: &str,
    with: &[Half],
    without: &[Half],
    of: impl Fn(&Half, &Half) -> Option<f64>,
) -> Result<super::figure::Figure, String> {
    let all: Option<Vec<f64>> = with.iter().zip(without).map(|(a, b)| Some(of(a, b)? * 100.0)).collect();
    let all = all.ok_or("the processor's counters were not read")?;
    let found = shift(&all).ok_or("the readings are not numbers")?;
    let interval = match found.interval {
        Some((low, high)) => format!(", 95 % interval {low:.3} to {high:.3}"),
        None => ", too few pairs for an interval".to_owned(),
    };
    let note = format!(
        "{what}: Hodges-Lehmann {:.3} %{interval}; one stream over loopback, cubic, with and with --unwatched",
        found.middle
    );
    Readings { all, note: Some(note) }.figure(name, unit, Bar::Below(1.0))
}

/// Whether this user may count instructions.
fn can_count(bench: &Bench) -> bool {
    let file = bench.folder.join("counts-probe");
    let command = counting(&file.display().to_string(), &["true".to_owned()]);
    let ran = Process::start(bench, &command).and_then(|process| process.finish(PATIENCE, |_| ()));
    let counted = fs::read_to_string(&file).ok().and_then(|text| parse(&text));
    let _ = fs::remove_file(&file);
    ran.is_ok() && counted.is_some()
}

fn counting(file: &str, command: &[String]) -> Vec<String> {
    let head = ["perf", "stat", "-x", ",", "-o", file, "-e", EVENTS, "--"].map(str::to_owned);
    [&head[..], command].concat()
}

fn half(bench: &Bench, place: &Place, counts: bool, unwatched: bool) -> Result<Half, String> {
    let files =
        ["server", "client"].map(|end| bench.folder.join(format!("counts-{end}")).display().to_string());
    let wrapped = |file: &str, command: Vec<String>| if counts { counting(file, &command) } else { command };
    let server = Tool::serve_once(bench, |command| wrapped(&files[0], command))?;
    let options: &[&str] = if unwatched { &["-C", "cubic", "--unwatched"] } else { &["-C", "cubic"] };
    let command = Tool::Linerate.client(bench, place, &server, bench.transfer.min(LONGEST), options);
    let output = Process::start(bench, &wrapped(&files[1], command))?.finish(LONGEST + PATIENCE, |_| ())?;
    // It ends by itself, and its counts are written when it has.
    server.process.finish(PATIENCE, |_| ())?;
    let told = Tool::Linerate.report(&output)?;
    let read = |file: &String| parse(&fs::read_to_string(file).ok()?);
    let ends = if counts { files.iter().map(read).collect::<Option<Vec<Counted>>>() } else { None };
    let per_byte = ends.map(|ends| Counted {
        instructions: ends.iter().map(|end| end.instructions).sum::<f64>() / told.bytes,
        cycles: ends.iter().map(|end| end.cycles).sum::<f64>() / told.bytes,
    });
    Ok(Half { bits_per_second: told.bits_per_second, per_byte })
}

/// The lines of `perf stat -x ,`: value, unit, event.
fn parse(text: &str) -> Option<Counted> {
    let sum = |event: &str| -> Option<f64> {
        let lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let values = lines.filter(|words| words.get(2).is_some_and(|name| name.starts_with(event)));
        // `<not supported>` is no number, and then nothing is known.
        let values: Option<Vec<f64>> = values.map(|words| words[0].parse().ok()).collect();
        values.filter(|values| values.len() == 2).map(|values| values.iter().sum())
    };
    Some(Counted { instructions: sum("instructions:")?, cycles: sum("cycles:")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_user_and_kernel_are_added_and_what_is_not_counted_is_unknown() {
        let text = "# started on\n\n100,,instructions:u,9,100.00,,\n300,,instructions:k,9,100.00,,\n\
                    7,,cycles:u,9,100.00,,\n8,,cycles:k,9,100.00,,\n";
        assert_eq!(parse(text), Some(Counted { instructions: 400.0, cycles: 15.0 }));
        assert_eq!(parse(&text.replace("300", "<not supported>")), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn the_command_is_the_last_of_what_is_started() {
        let words = counting("out", &["a".to_owned(), "-x".to_owned()]);
        assert_eq!(words[words.len() - 3..], ["--", "a", "-x"].map(str::to_owned));
    }
}
