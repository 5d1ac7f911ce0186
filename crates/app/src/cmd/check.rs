//! `linerate check`: whether published results are physically possible.

mod input;

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use linerate_model::import::ForeignTest;
use linerate_model::metrics::Side;
use linerate_report::check::{CheckDocument, CheckReport, VerdictCounts, text};
use linerate_theory::claims::{AcceptanceRule, Context};
use linerate_theory::encapsulation::Encapsulation;
use linerate_theory::envelope::Congestion;
use linerate_theory::framing::IpVersion;
use linerate_theory::typed::{
    TypedFigure, TypedFigures, congestion, describes_path_only, link_rate, probability, tunnel,
};
use linerate_units::{Bitrate, Bytes, Ratio, above_zero};

use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::{print, stdout, terminal};

// `allow_hyphen_values`: a negative number is then an option's value, so that the error message names the
// option.

/// Check whether published results are physically possible
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CheckArgs {
    /// Results of iperf3, iperf, ttcp, NTttcp, NetPIPE, nuttcp, netperf or linerate; - for standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The program that wrote the files, if it cannot be detected
    #[arg(long, value_name = "TOOL", value_parser = PossibleValuesParser::new(linerate_compat::import::TOOLS))]
    tool: Option<String>,
    /// A rate to check, payload per second, such as 966.5M
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = TypedFigure::rate, help_heading = "Figures")]
    rate: Option<TypedFigure>,
    /// Packets per second
    #[arg(long, value_name = "PACKETS", allow_hyphen_values = true, value_parser = TypedFigure::count, help_heading = "Figures")]
    pps: Option<TypedFigure>,
    /// Payload bytes of the whole test
    #[arg(short = 'n', long, value_name = "BYTES", allow_hyphen_values = true, value_parser = TypedFigure::bytes, help_heading = "Figures")]
    bytes: Option<TypedFigure>,
    /// Duration of the whole test, such as 10s
    #[arg(short = 't', long, value_name = "TIME", allow_hyphen_values = true, value_parser = TypedFigure::time, help_heading = "Figures")]
    duration: Option<TypedFigure>,
    /// Packets of the whole test
    #[arg(long, value_name = "PACKETS", allow_hyphen_values = true, value_parser = TypedFigure::count, help_heading = "Figures")]
    packets: Option<TypedFigure>,
    /// Lost packets
    #[arg(long, value_name = "PACKETS", allow_hyphen_values = true, value_parser = TypedFigure::count, help_heading = "Figures")]
    lost: Option<TypedFigure>,
    /// Retransmitted segments
    #[arg(long, value_name = "SEGMENTS", allow_hyphen_values = true, value_parser = TypedFigure::count, help_heading = "Figures")]
    retransmits: Option<TypedFigure>,
    /// Congestion window
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true, value_parser = TypedFigure::bytes, help_heading = "Figures")]
    cwnd: Option<TypedFigure>,
    /// Number of read or write calls
    #[arg(long, value_name = "CALLS", allow_hyphen_values = true, value_parser = TypedFigure::count, help_heading = "Figures")]
    calls: Option<TypedFigure>,
    /// Busy share of the CPUs, such as 23%
    #[arg(long, value_name = "RATIO", allow_hyphen_values = true, value_parser = TypedFigure::share, help_heading = "Figures")]
    cpu: Option<TypedFigure>,
    /// The end that counted the typed figures
    #[arg(long, value_name = "END", value_parser = PossibleValuesParser::new(["sender", "receiver"]), help_heading = "Figures")]
    counted_by: Option<String>,
    /// Also judge acceptance; gigabit: one TCP connection, 10 s, no retransmits, at least 941 Mb/s
    #[arg(long, value_name = "RULE", value_parser = PossibleValuesParser::new(AcceptanceRule::ALL.map(|rule| rule.name)))]
    acceptance: Option<String>,
    #[command(flatten)]
    path: PathArgs,
    /// Show every line, including possible intervals
    #[arg(short, long)]
    all: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Properties of the path; they override those in files. A property that is not given may have any value that
/// makes a figure possible.
#[derive(Debug, Clone, clap::Args)]
struct PathArgs {
    /// Rate of the slowest link, such as 1G
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = link_rate, help_heading = "Path")]
    link: Option<Bitrate>,
    /// MTU of the link, below any tunnel
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true,
          value_parser = clap::value_parser!(u32).range(68..=65_535), help_heading = "Path")]
    mtu: Option<u32>,
    /// Payload of a full segment (MSS), after options
    #[arg(short = 'M', long, value_name = "BYTES", allow_hyphen_values = true, value_parser = TypedFigure::bytes, help_heading = "Path")]
    mss: Option<TypedFigure>,
    /// Round-trip time without queueing, such as 21ms
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = TypedFigure::round_trip, help_heading = "Path")]
    rtt: Option<TypedFigure>,
    /// Distance between the ends in kilometres, one way
    #[arg(long, value_name = "KM", allow_hyphen_values = true, value_parser = TypedFigure::count, requires = "rtt", help_heading = "Path")]
    distance: Option<TypedFigure>,
    /// Loss probability per packet, such as 0.0001 or 0.01%
    #[arg(long, value_name = "RATIO", allow_hyphen_values = true, value_parser = probability, help_heading = "Path")]
    loss: Option<Ratio>,
    /// IPv6 instead of IPv4
    #[arg(short = '6', long, help_heading = "Path")]
    ipv6: bool,
    /// Number of VLAN tags in each frame
    #[arg(long, value_name = "TAGS", allow_hyphen_values = true, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=4),
          help_heading = "Path")]
    vlan: u32,
    /// Tunnel on the path
    #[arg(long, value_name = "TUNNEL", default_value = "none", value_parser = tunnel(), help_heading = "Path")]
    encap: Encapsulation,
    /// Number of parallel connections
    #[arg(short = 'P', long, value_name = "STREAMS", allow_hyphen_values = true,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000), help_heading = "Flow")]
    streams: Option<u32>,
    /// Congestion control
    #[arg(short = 'C', long, value_name = "NAME", value_parser = congestion(), help_heading = "Flow")]
    congestion: Option<Congestion>,
    /// TCP without timestamps
    #[arg(long, help_heading = "Flow")]
    no_timestamps: bool,
    /// Window of each connection
    #[arg(short, long, value_name = "BYTES", allow_hyphen_values = true, value_parser = above_zero::<Bytes>, requires = "rtt",
          help_heading = "Flow")]
    window: Option<Bytes>,
    /// UDP instead of TCP
    #[arg(short, long, conflicts_with_all = ["congestion", "no_timestamps", "window", "mss"], help_heading = "Flow")]
    udp: bool,
    /// Bytes per call, or payload of a datagram
    #[arg(short, long, value_name = "BYTES", allow_hyphen_values = true, value_parser = TypedFigure::bytes, help_heading = "Flow")]
    length: Option<TypedFigure>,
}

impl PathArgs {
    fn context(&self) -> Context {
        let bytes = |bytes: Bytes| bytes.get() as f64;
        Context {
            link_bps: self.link.map(Bitrate::bps),
            mtu_bytes: self.mtu.map(f64::from),
            ip_version: self.ipv6.then_some(IpVersion::V6),
            timestamps: self.no_timestamps.then_some(false),
            tags: self.vlan,
            encapsulation: (self.encap != Encapsulation::None).then_some(self.encap),
            mss_bytes: self.mss.as_ref().map(|mss| mss.value),
            udp: self.udp,
            datagram_bytes: self.length.as_ref().filter(|_| self.udp).map(|length| length.value),
            streams: self.streams,
            rtt_s: self.rtt.as_ref().map(|rtt| rtt.value),
            window_bytes: self.window.map(bytes),
            loss: self.loss.map(Ratio::get),
            congestion: self.congestion,
            distance_m: self.distance.as_ref().map(|kilometres| kilometres.value * 1000.0),
            ..Context::default()
        }
    }
}

impl CheckArgs {
    fn side(&self) -> Option<Side> {
        self.counted_by.as_deref().map(|end| if end == "sender" { Side::Sender } else { Side::Receiver })
    }

    /// The typed figures as a test with one line; absent if none is typed, or if they only describe the path of
    /// the files.
    fn claim(&self) -> Option<ForeignTest> {
        let path = &self.path;
        let figures = TypedFigures {
            rate: self.rate.clone(),
            pps: self.pps.clone(),
            bytes: self.bytes.clone(),
            duration: self.duration.clone(),
            packets: self.packets.clone(),
            lost: self.lost.clone(),
            retransmits: self.retransmits.clone(),
            cwnd: self.cwnd.clone(),
            calls: self.calls.clone(),
            length: path.length.clone().filter(|_| !path.udp),
            cpu: self.cpu.clone(),
            mss: path.mss.clone(),
            rtt: path.rtt.clone().filter(|_| path.distance.is_some()),
            mtu: path.mtu,
            side: self.side(),
        };
        let test = figures.test();
        test.filter(|test| self.files.is_empty() || !describes_path_only(test))
    }
}

/// Judges the typed figures and those in the files.
pub(crate) fn run(args: &CheckArgs) -> Result<Exit, CommandError> {
    let claim = args.claim();
    if claim.is_none() && args.files.is_empty() {
        let why = "nothing to check: give a FILE, - for standard input, or a figure such as --rate 941M";
        return Err(CommandError::usage(why));
    }
    let context = args.path.context();
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
    if counts.impossible > 0 {
        Exit::Impossible
    } else if counts.all() == 0 {
        Exit::Failed
    } else if !accepted {
        Exit::Broken
    } else {
        Exit::Done
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

    /// The answer for typed figures.
    fn answer(line: &str) -> CheckReport {
        let args = args(line);
        CheckReport::to(args.claim(), Vec::new(), &args.path.context())
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
        assert_eq!(args("--mss 1448 file.txt").claim(), None);
        assert_eq!(args("--link 1G file.txt").claim(), None);
        let claims = args("--rate 941M --mss 1448 file.txt").claim().unwrap().claims;
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
                exit(CheckReport::to(None, vec![input], &Context::default()).counts(), true),
                Exit::Failed
            );
        }
    }
}
