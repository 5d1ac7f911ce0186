//! `linerate check`: whether published results are physically possible.

mod input;

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use linerate_report::check::{CheckDocument, CheckReport, VerdictCounts, text};
use linerate_theory::claims::AcceptanceRule;
use linerate_theory::typed::FigureOptions;

use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::{print, stdout, terminal};

/// Check whether published results are physically possible
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CheckArgs {
    /// Results of iperf3, iperf, ttcp, NTttcp, NetPIPE, nuttcp, netperf or linerate; - for standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The program that wrote the files, if it cannot be detected
    #[arg(long, value_name = "TOOL", value_parser = PossibleValuesParser::new(linerate_compat::import::TOOLS))]
    tool: Option<String>,
    #[command(flatten)]
    figures: FigureOptions,
    /// Also judge acceptance; gigabit: one TCP connection, 10 s, no retransmits, at least 941 Mb/s
    #[arg(long, value_name = "RULE", value_parser = PossibleValuesParser::new(AcceptanceRule::ALL.map(|rule| rule.name)))]
    acceptance: Option<String>,
    /// Show every line, including possible intervals
    #[arg(short, long)]
    all: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Judges the typed figures and those in the files.
pub(crate) fn run(args: &CheckArgs) -> Result<Exit, CommandError> {
    let claim = args.figures.claim(!args.files.is_empty());
    if claim.is_none() && args.files.is_empty() {
        let why = "nothing to check: give a FILE, - for standard input, or a figure such as --rate 941M";
        return Err(CommandError::usage(why));
    }
    let context = args.figures.path.context();
    if !context.leaves_payload() {
        return Err(CommandError::usage("--mtu: it leaves no payload after the headers; give a larger one"));
    }
    let inputs = input::read_all(&args.files, args.tool.as_deref());
    let rule = args.acceptance.as_deref().and_then(AcceptanceRule::named);
    let answer = rule.iter().fold(CheckReport::to(claim, inputs, &context), CheckReport::accepted_by);
    for (name, why) in answer.failures() {
        print::error(format!("{name}: {why}"));
    }
    let printed = match args.json {
        true => stdout::print_json(&CheckDocument::of(&answer)),
        false => stdout::print(text(terminal::stdout_page(), &answer, args.all).as_bytes()),
    };
    Ok(match printed {
        Exit::Done => exit(answer.counts(), answer.is_accepted()),
        failed => failed,
    })
}

/// 4 if a figure is impossible, 1 if nothing was read, 3 if a test is not accepted, otherwise 0.
fn exit(counts: VerdictCounts, accepted: bool) -> Exit {
    match (counts.impossible, counts.all()) {
        (1.., _) => Exit::Impossible,
        (_, 0) => Exit::Failed,
        _ if !accepted => Exit::Broken,
        _ => Exit::Done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use linerate_report::check::CheckInput;
    use linerate_report::page::Page;

    #[derive(Debug, Parser)]
    struct CheckCommand {
        #[command(flatten)]
        args: CheckArgs,
    }

    /// The arguments as typed, without the program's name.
    fn args(line: &str) -> CheckArgs {
        CheckCommand::try_parse_from(std::iter::once("check").chain(line.split_whitespace())).unwrap().args
    }

    fn claim(line: &str) -> Option<linerate_model::import::ForeignTest> {
        let args = args(line);
        args.figures.claim(!args.files.is_empty())
    }

    /// The answer for typed figures.
    fn answer(line: &str) -> CheckReport {
        let args = args(line);
        CheckReport::to(args.figures.claim(!args.files.is_empty()), Vec::new(), &args.figures.path.context())
    }

    /// Rates from a tenth to sixty times that of gigabit Ethernet, printed with few and with many digits.
    #[test]
    fn no_figure_is_more_than_the_whole_of_its_ceiling() {
        let (mut above, mut below) = (0, 0);
        for step in 0..200 {
            let rate = 94.0e6 * 1.033_f64.powi(step);
            for typed in
                [format!("{:.0}M", rate / 1e6), format!("{:.2}M", rate / 1e6), format!("{rate:.0}bps")]
            {
                let answer = answer(&format!("--rate {typed} --link 1G --mtu 1500 --duration 10s"));
                let shown = text(Page::new(100, false), &answer, true);
                for (at, _) in shown.match_indices(" %") {
                    let number = shown[..at].rsplit(|c: char| !(c.is_ascii_digit() || c == '.')).next();
                    assert!(
                        number.and_then(|n| n.parse::<f64>().ok()).is_some_and(|n| n <= 100.0),
                        "{shown}"
                    );
                }
                let document = serde_json::to_value(CheckDocument::of(&answer)).unwrap();
                let figure = &document["inputs"][0]["readings"][0]["tests"][0]["lines"][0]["figures"][0];
                match figure["share"].as_f64() {
                    Some(share) => assert!(share <= 1.0, "{figure}"),
                    None => assert_ne!(figure["verdict"], "possible", "{figure}"),
                }
                *(if figure["share"].is_null() { &mut above } else { &mut below }) += 1;
            }
        }
        assert!(above > 100 && below > 100, "{above} above, {below} below");
    }

    #[test]
    fn flags_that_describe_the_path_make_no_claim_in_addition_to_files() {
        assert_eq!(claim("--mss 1448 file.txt"), None);
        assert_eq!(claim("--link 1G file.txt"), None);
        let claims = claim("--rate 941M --mss 1448 file.txt").unwrap().claims;
        assert_eq!(claims[0].quote, "--rate 941M --mss 1448");
    }

    #[test]
    fn an_impossible_figure_is_exit_code_4_and_a_possible_one_0() {
        let path = "--link 1G --mtu 1500 --rtt 21ms --duration 10s";
        let exit = |figures: &str| exit(answer(&format!("{figures} {path}")).counts(), true);
        assert_eq!(exit("--rate 966.5M --pps 83000"), Exit::Impossible);
        assert_eq!(exit("--rate 941.48M"), Exit::Done);
    }

    #[test]
    fn nothing_read_is_a_failure() {
        for failure in [Some("no".to_owned()), None] {
            let input = CheckInput { name: "cat.jpg".to_owned(), failure, readings: Vec::new() };
            assert_eq!(
                exit(
                    CheckReport::to(None, vec![input], &linerate_theory::claims::Context::default()).counts(),
                    true
                ),
                Exit::Failed
            );
        }
    }
}
