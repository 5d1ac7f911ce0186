//! `linerate envelope`: what a described path can carry, and what it needs for that.

mod answer;
mod between;
mod bounds;
mod questions;
mod sheet;
mod text;

use linerate_theory::encapsulation::Encapsulation;
use linerate_theory::envelope::{Congestion, Cpu, Hosts, Path, PathError};
use linerate_theory::framing::IpVersion;
use linerate_units::{Bitrate, Bytes, Ratio, Span};

use super::page::{self, Page};
use super::path_values::{
    above_zero, congestion, kilometres, link_rate, probability, processor, round_trip, slot, tunnel,
};
use crate::exit::Exit;
use crate::{print, terminal};
use answer::Answer;
use between::{Between, between, combined};
use questions::{Wanted, amount, parse_wanted};

// `allow_hyphen_values`: a negative number is then an option's value, so that the error message names the
// option.

/// Show what a described path can carry, and what it needs for that
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct EnvelopeArgs {
    /// Rate of the slowest link, such as 1G, or a range such as 1G..10G; for a LAG, the rate of one member link
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = between(link_rate), help_heading = "Path")]
    link: Between<Bitrate>,
    /// MTU of the link, below any tunnel
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true, default_value_t = 1500,
          value_parser = clap::value_parser!(u32).range(68..=65_535), help_heading = "Path")]
    mtu: u32,
    /// Round-trip time without queueing, such as 21ms or 20ms..25ms; required for windows, slow start and loss
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = between(round_trip), help_heading = "Path")]
    rtt: Option<Between<Span>>,
    /// Loss probability per packet, such as 0.0001, 0.01% or 0..0.01%
    #[arg(long, value_name = "RATIO", allow_hyphen_values = true, value_parser = between(probability), requires = "rtt", help_heading = "Path")]
    loss: Option<Between<Ratio>>,
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
    /// Number of links of a LAG, of which a hash selects one per stream
    #[arg(long, value_name = "LINKS", allow_hyphen_values = true, value_parser = clap::value_parser!(u32).range(1..=256), help_heading = "Path")]
    lag: Option<u32>,
    /// Length of the path in kilometres, to compute the shortest round-trip time and the land speed
    #[arg(long, value_name = "KM", allow_hyphen_values = true, value_parser = kilometres, help_heading = "Path")]
    distance: Option<f64>,
    /// Number of parallel connections
    #[arg(short = 'P', long, value_name = "STREAMS", allow_hyphen_values = true, default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000), help_heading = "Flow")]
    streams: u32,
    /// Congestion control
    #[arg(short = 'C', long, value_name = "NAME", default_value = "cubic", value_parser = congestion(),
          help_heading = "Flow")]
    congestion: Congestion,
    /// TCP without timestamps
    #[arg(long, help_heading = "Flow")]
    no_timestamps: bool,
    /// Window of each connection
    #[arg(short, long, value_name = "BYTES", allow_hyphen_values = true, value_parser = above_zero::<Bytes>, requires = "rtt",
          help_heading = "Flow")]
    window: Option<Bytes>,
    /// Largest receive buffer of the receiver, the last number of its tcp_rmem
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true, value_parser = above_zero::<Bytes>, requires = "rtt", help_heading = "Flow")]
    rmem: Option<Bytes>,
    /// Largest send buffer of the sender, the last number of its tcp_wmem
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true, value_parser = above_zero::<Bytes>, requires = "rtt", help_heading = "Flow")]
    wmem: Option<Bytes>,
    /// UDP instead of TCP
    #[arg(short, long, conflicts_with_all = ["loss", "congestion", "no_timestamps", "window", "rmem", "wmem"],
          help_heading = "Flow")]
    udp: bool,
    /// Payload of a datagram [default: the largest that fits the MTU]
    #[arg(short, long, value_name = "BYTES", allow_hyphen_values = true, value_parser = above_zero::<Bytes>, requires = "udp",
          help_heading = "Flow")]
    length: Option<Bytes>,
    /// CPU of the slower host, such as 3G:10000:2 or 3G:10000:2:4: clock rate, cycles per packet and per byte,
    /// cores
    #[arg(long, value_name = "HZ:PACKET:BYTE[:CORES]", allow_hyphen_values = true, value_parser = processor, help_heading = "Hosts")]
    cpu: Option<Cpu>,
    /// PCI Express slot of a NIC, such as 8G:4: transfers per second of each lane, and number of lanes
    #[arg(long, value_name = "TRANSFERS:LANES", allow_hyphen_values = true, value_parser = slot, help_heading = "Hosts")]
    pcie: Option<f64>,
    /// Rate of the slower disk, such as 500MB/s or 400MB/s..600MB/s, working in parallel with the network
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = between(above_zero::<Bitrate>), help_heading = "Hosts")]
    disk: Option<Between<Bitrate>>,
    /// Check whether an amount of data can be transferred in a time, such as 8h:2TB
    #[arg(long, value_name = "TIME:BYTES", allow_hyphen_values = true, value_parser = parse_wanted, help_heading = "Questions")]
    need: Option<Wanted>,
    /// Compute windows, buffers and losses for this payload per second instead of the full link
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = link_rate, requires = "rtt",
          conflicts_with = "udp", help_heading = "Questions")]
    target: Option<Bitrate>,
    /// Also show the transfer time of this number of bytes
    #[arg(short = 'n', long, value_name = "BYTES", allow_hyphen_values = true, value_parser = amount, help_heading = "Questions")]
    transfer: Option<Bytes>,
    /// Offered payload per second: a ceiling of its own, and how much of it the path carries
    #[arg(short = 'b', long, value_name = "RATE", allow_hyphen_values = true, value_parser = above_zero::<Bitrate>, help_heading = "Flow")]
    offered: Option<Bitrate>,
    /// Also show the queue that a burst of this number of bytes causes before the link
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true, value_parser = above_zero::<Bytes>, requires = "burst_rate",
          help_heading = "Questions")]
    burst: Option<Bytes>,
    /// Rate at which the burst arrives
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = link_rate, requires = "burst", help_heading = "Questions")]
    burst_rate: Option<Bitrate>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Computes and prints the envelope.
pub(crate) fn run(args: &EnvelopeArgs) -> Exit {
    let answers: Result<Vec<Answer>, Fault> = paths(args).iter().map(|path| Answer::to(args, path)).collect();
    let answers = match answers {
        Ok(answers) => answers,
        Err(error) => {
            print::error(error);
            return Exit::Usage;
        }
    };
    if args.json {
        return match bounds::document(&answers) {
            Ok(document) => page::print_json(&document),
            Err(error) => {
                print::error(format!("the document could not be written as JSON: {error}"));
                Exit::Failed
            }
        };
    }
    let view = terminal::stdout_view();
    page::print(text::text(Page::new(view.width, view.colour), &answers).as_bytes())
}

/// A contradictory description, with the argument that causes it.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("{argument}: {source}", argument = argument(source))]
struct Fault {
    #[from]
    source: PathError,
}

/// The argument that causes an error.
fn argument(error: &PathError) -> &'static str {
    match error {
        PathError::Link => "--link",
        PathError::Mtu { .. } => "--mtu",
        PathError::Fragments { .. } => "--length",
        PathError::RoundTrip => "--rtt",
        PathError::Loss(_) => "--loss",
        PathError::Buffer => "--window, --rmem or --wmem",
        PathError::Offered => "--offered",
        PathError::Hosts => "--cpu, --pcie or --disk",
        PathError::Streams => "--streams",
        PathError::Lag => "--lag",
        PathError::BeyondModel { .. } => "--loss",
    }
}

/// The described path, or one for each combination of the ends of ranges, starting with all lower ends.
fn paths(args: &EnvelopeArgs) -> Vec<Path> {
    let all =
        combined(vec![path(args)], &args.link.ends(), |path, link| Path { link_bps: link.bps(), ..path });
    let all = or_same(all, args.rtt, |path, rtt| Path { rtt_s: rtt.as_secs_f64(), ..path });
    let lost = |loss: Ratio| Some(loss.get()).filter(|loss| *loss > 0.0);
    let all = or_same(all, args.loss, |path, loss| Path { loss: lost(loss), ..path });
    or_same(all, args.disk, |path, disk| {
        let hosts = Hosts { disk_bps: Some(disk.bps()), ..path.hosts };
        Path { hosts, ..path }
    })
}

fn or_same<T: Copy + PartialEq>(
    all: Vec<Path>,
    range: Option<Between<T>>,
    with: impl Fn(Path, T) -> Path,
) -> Vec<Path> {
    match range {
        Some(range) => combined(all, &range.ends(), with),
        None => all,
    }
}

/// The parts of the path that cannot be ranges.
fn path(args: &EnvelopeArgs) -> Path {
    let bytes = |bytes: Bytes| bytes.get() as f64;
    Path {
        mtu_bytes: f64::from(args.mtu),
        ip_version: if args.ipv6 { IpVersion::V6 } else { IpVersion::V4 },
        timestamps: !args.no_timestamps,
        tags: args.vlan,
        encapsulation: args.encap,
        rmem_max_bytes: args.rmem.map(bytes),
        wmem_max_bytes: args.wmem.map(bytes),
        window_bytes: args.window.map(bytes),
        streams: args.streams,
        lag_links: args.lag.unwrap_or(1),
        congestion: args.congestion,
        udp: args.udp,
        datagram_bytes: args.length.map(bytes),
        offered_bps: args.offered.map(Bitrate::bps),
        hosts: Hosts { cpu: args.cpu, bus_bps: args.pcie, disk_bps: None },
        ..Path::gigabit()
    }
}

#[cfg(test)]
pub(in crate::cmd::envelope) mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Alone {
        #[command(flatten)]
        args: EnvelopeArgs,
    }

    /// The arguments as typed, without the program's name.
    pub(in crate::cmd::envelope) fn typed(line: &str) -> EnvelopeArgs {
        Alone::try_parse_from(std::iter::once("envelope").chain(line.split_whitespace())).unwrap().args
    }

    #[test]
    fn no_loss_is_no_ceiling() {
        assert_eq!(paths(&typed("--link 1G --rtt 1ms --loss 0"))[0].loss, None);
    }

    #[test]
    fn ranges_have_an_answer_for_each_of_their_ends() {
        let found = paths(&typed("--link 1G --rtt 20ms..25ms --loss 0..1e-4 --disk 60MB/s"));
        let seen: Vec<_> = found.iter().map(|path| (path.rtt_s, path.loss, path.hosts.disk_bps)).collect();
        let disk = Some(480e6);
        let wanted =
            [(0.02, None, disk), (0.02, Some(1e-4), disk), (0.025, None, disk), (0.025, Some(1e-4), disk)];
        assert_eq!(seen, wanted);
    }

    #[test]
    fn a_fault_names_its_argument() {
        for (line, argument) in [
            ("--link 1G --mtu 68 --encap vxlan6", "--mtu: an MTU of 68"),
            ("--link 1G -u -6 -l 1472", "--length: datagrams of 1472 bytes need packets of 1520 bytes"),
        ] {
            let args = typed(line);
            let error = Answer::to(&args, &paths(&args)[0]).unwrap_err();
            assert!(error.to_string().starts_with(argument), "{error}");
        }
    }
}
