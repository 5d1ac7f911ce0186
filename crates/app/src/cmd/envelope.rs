//! `linerate envelope`: what a described path could carry, and what it needs for that.

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

// A negative number is the value of its option, so that the message names the option: hence `allow_hyphen_values`.

/// What a described path could carry, and what it needs for that
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct EnvelopeArgs {
    /// Rate of the slowest link, as 1G, or a range, as 1G..10G; of a bundle, that of one member
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = between(link_rate), help_heading = "Path")]
    link: Between<Bitrate>,
    /// Largest packet of the link, under any tunnel
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true, default_value_t = 1500,
          value_parser = clap::value_parser!(u32).range(68..=65_535), help_heading = "Path")]
    mtu: u32,
    /// Round trip without queues, as 21ms or 20ms..25ms; windows, start and loss need it
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = between(round_trip), help_heading = "Path")]
    rtt: Option<Between<Span>>,
    /// Losses per packet, as 0.0001, 0.01% or 0..0.01%
    #[arg(long, value_name = "RATIO", allow_hyphen_values = true, value_parser = between(probability), requires = "rtt", help_heading = "Path")]
    loss: Option<Between<Ratio>>,
    /// IPv6 instead of IPv4
    #[arg(short = '6', long, help_heading = "Path")]
    ipv6: bool,
    /// VLAN tags in each frame
    #[arg(long, value_name = "TAGS", allow_hyphen_values = true, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=4),
          help_heading = "Path")]
    vlan: u32,
    /// A tunnel on the path
    #[arg(long, value_name = "TUNNEL", default_value = "none", value_parser = tunnel(), help_heading = "Path")]
    encap: Encapsulation,
    /// Links of a bundle, of which a hash chooses one for each stream
    #[arg(long, value_name = "LINKS", allow_hyphen_values = true, value_parser = clap::value_parser!(u32).range(1..=256), help_heading = "Path")]
    trunk: Option<u32>,
    /// Length of the path in kilometres: the shortest round trip, and the land speed
    #[arg(long, value_name = "KM", allow_hyphen_values = true, value_parser = kilometres, help_heading = "Path")]
    distance: Option<f64>,
    /// Connections at once
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
    /// Window that each connection is given
    #[arg(short, long, value_name = "BYTES", allow_hyphen_values = true, value_parser = above_zero::<Bytes>, requires = "rtt",
          help_heading = "Flow")]
    window: Option<Bytes>,
    /// Largest receive buffer of the receiver, the last number of its tcp_rmem
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true, value_parser = above_zero::<Bytes>, requires = "rtt", help_heading = "Flow")]
    rmem: Option<Bytes>,
    /// Largest send buffer of the sender, the last number of its tcp_wmem
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true, value_parser = above_zero::<Bytes>, requires = "rtt", help_heading = "Flow")]
    wmem: Option<Bytes>,
    /// Datagrams instead of TCP
    #[arg(short, long, conflicts_with_all = ["loss", "congestion", "no_timestamps", "window", "rmem", "wmem"],
          help_heading = "Flow")]
    udp: bool,
    /// Payload of a datagram [default: what the MTU holds]
    #[arg(short, long, value_name = "BYTES", allow_hyphen_values = true, value_parser = above_zero::<Bytes>, requires = "udp",
          help_heading = "Flow")]
    length: Option<Bytes>,
    /// Processor of the slower host, as 3G:10000:2 or 3G:10000:2:4: clock, cycles for a packet and for a byte, cores
    #[arg(long, value_name = "HZ:PACKET:BYTE[:CORES]", allow_hyphen_values = true, value_parser = processor, help_heading = "Hosts")]
    cpu: Option<Cpu>,
    /// PCI Express slot of a network card, as 8G:4: transfers per second of a lane, and lanes
    #[arg(long, value_name = "TRANSFERS:LANES", allow_hyphen_values = true, value_parser = slot, help_heading = "Hosts")]
    pcie: Option<f64>,
    /// Rate of the slower disk, as 500MB/s or 400MB/s..600MB/s, which works while the network does
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = between(above_zero::<Bitrate>), help_heading = "Hosts")]
    disk: Option<Between<Bitrate>>,
    /// Whether an amount fits into a time, as 8h:2TB
    #[arg(long, value_name = "TIME:BYTES", allow_hyphen_values = true, value_parser = parse_wanted, help_heading = "Questions")]
    need: Option<Wanted>,
    /// Windows, buffers and losses for this payload per second instead of the full link
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = link_rate, requires = "rtt",
          conflicts_with = "udp", help_heading = "Questions")]
    target: Option<Bitrate>,
    /// Also the time that so many bytes take
    #[arg(short = 'n', long, value_name = "BYTES", allow_hyphen_values = true, value_parser = amount, help_heading = "Questions")]
    transfer: Option<Bytes>,
    /// Payload offered per second: a ceiling itself, and what becomes of it
    #[arg(short = 'b', long, value_name = "RATE", allow_hyphen_values = true, value_parser = above_zero::<Bitrate>, help_heading = "Flow")]
    offered: Option<Bitrate>,
    /// Also the queue that a burst of so many bytes leaves before the link
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

/// Calculates and prints the envelope.
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

/// A description that contradicts itself, by the argument at fault.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("{argument}: {source}", argument = argument(source))]
struct Fault {
    #[from]
    source: PathError,
}

/// The argument that a fault of the path came from.
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
        PathError::Trunk => "--trunk",
        PathError::BeyondModel { .. } => "--loss",
    }
}

/// The path described, or one for every combination of the ends of ranges; the first has all the lower ends.
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

/// What is no range.
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
        trunk_links: args.trunk.unwrap_or(1),
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
