//! The options of a command that describes a path and asks what it can carry.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use linerate_units::{Bitrate, Bytes, Ratio, Span, above_zero};

use super::{
    amount, between, deadline, kilometres, link_rate, positive_rate, probability, processor, round_trip, slot,
};
use crate::encapsulation::Encapsulation;
use crate::envelope::{
    ArrivingBurst, Congestion, Cpu, Hosts, Path, PathDescription, Questions, TransferDeadline, ValueRange,
};
use crate::framing::IpVersion;

/// A tunnel by its name.
pub fn tunnel() -> impl TypedValueParser<Value = Encapsulation> {
    PossibleValuesParser::new(Encapsulation::ALL.map(Encapsulation::name))
        .try_map(|name| Encapsulation::from_name(&name).ok_or("unknown tunnel"))
}

/// A congestion control by its name.
pub fn congestion() -> impl TypedValueParser<Value = Congestion> {
    PossibleValuesParser::new([Congestion::Reno, Congestion::Cubic, Congestion::Bbr].map(Congestion::name))
        .try_map(|name| Congestion::from_name(&name).ok_or("unknown congestion control"))
}

// `allow_hyphen_values`: a negative number is then an option's value, so that the error message names the
// option.

/// Show what a described path can carry, and what it needs for that
#[derive(Debug, Clone, clap::Args)]
pub struct EnvelopeOptions {
    /// Rate of the slowest link, such as 1G, or a range such as 1G..10G; for a LAG, the rate of one member link
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = between(link_rate), help_heading = "Path")]
    pub link: ValueRange<Bitrate>,
    /// MTU of the link, below any tunnel
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true, default_value_t = 1500,
          value_parser = clap::value_parser!(u32).range(68..=65_535), help_heading = "Path")]
    pub mtu: u32,
    /// Round-trip time without queueing, such as 21ms or 20ms..25ms; required for windows, slow start and loss
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = between(round_trip), help_heading = "Path")]
    pub rtt: Option<ValueRange<Span>>,
    /// Loss probability per packet, such as 0.0001, 0.01% or 0..0.01%
    #[arg(long, value_name = "RATIO", allow_hyphen_values = true, value_parser = between(probability), requires = "rtt", help_heading = "Path")]
    pub loss: Option<ValueRange<Ratio>>,
    /// IPv6 instead of IPv4
    #[arg(short = '6', long, help_heading = "Path")]
    pub ipv6: bool,
    /// Number of VLAN tags in each frame
    #[arg(long, value_name = "TAGS", allow_hyphen_values = true, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=4),
          help_heading = "Path")]
    pub vlan: u32,
    /// Tunnel on the path
    #[arg(long, value_name = "TUNNEL", default_value = "none", value_parser = tunnel(), help_heading = "Path")]
    pub encap: Encapsulation,
    /// Number of links of a LAG, of which a hash selects one per stream
    #[arg(long, value_name = "LINKS", allow_hyphen_values = true, value_parser = clap::value_parser!(u32).range(1..=256), help_heading = "Path")]
    pub lag: Option<u32>,
    /// Length of the path in kilometres, to compute the shortest round-trip time and the land speed
    #[arg(long, value_name = "KM", allow_hyphen_values = true, value_parser = kilometres, help_heading = "Path")]
    pub distance: Option<f64>,
    /// Number of parallel connections
    #[arg(short = 'P', long, value_name = "STREAMS", allow_hyphen_values = true, default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000), help_heading = "Flow")]
    pub streams: u32,
    /// Congestion control
    #[arg(short = 'C', long, value_name = "NAME", default_value = "cubic", value_parser = congestion(),
          help_heading = "Flow")]
    pub congestion: Congestion,
    /// TCP without timestamps
    #[arg(long, help_heading = "Flow")]
    pub no_timestamps: bool,
    /// Window of each connection
    #[arg(short, long, value_name = "BYTES", allow_hyphen_values = true, value_parser = above_zero::<Bytes>, requires = "rtt",
          help_heading = "Flow")]
    pub window: Option<Bytes>,
    /// Largest receive buffer of the receiver, the last number of its tcp_rmem
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true, value_parser = above_zero::<Bytes>, requires = "rtt", help_heading = "Flow")]
    pub rmem: Option<Bytes>,
    /// Largest send buffer of the sender, the last number of its tcp_wmem
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true, value_parser = above_zero::<Bytes>, requires = "rtt", help_heading = "Flow")]
    pub wmem: Option<Bytes>,
    /// UDP instead of TCP
    #[arg(short, long, conflicts_with_all = ["loss", "congestion", "no_timestamps", "window", "rmem", "wmem"],
          help_heading = "Flow")]
    pub udp: bool,
    /// Payload of a datagram [default: the largest that fits the MTU]
    #[arg(short, long, value_name = "BYTES", allow_hyphen_values = true, value_parser = above_zero::<Bytes>, requires = "udp",
          help_heading = "Flow")]
    pub length: Option<Bytes>,
    /// CPU of the slower host, such as 3G:10000:2 or 3G:10000:2:4: clock rate, cycles per packet and per byte,
    /// cores
    #[arg(long, value_name = "HZ:PACKET:BYTE[:CORES]", allow_hyphen_values = true, value_parser = processor, help_heading = "Hosts")]
    pub cpu: Option<Cpu>,
    /// PCI Express slot of a NIC, such as 8G:4: transfers per second of each lane, and number of lanes
    #[arg(long, value_name = "TRANSFERS:LANES", allow_hyphen_values = true, value_parser = slot, help_heading = "Hosts")]
    pub pcie: Option<f64>,
    /// Rate of the slower disk, such as 500MB/s or 400MB/s..600MB/s, working in parallel with the network
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = between(positive_rate), help_heading = "Hosts")]
    pub disk: Option<ValueRange<Bitrate>>,
    /// Check whether an amount of data can be transferred in a time, such as 8h:2TB
    #[arg(long, value_name = "TIME:BYTES", allow_hyphen_values = true, value_parser = deadline, help_heading = "Questions")]
    pub need: Option<TransferDeadline>,
    /// Compute windows, buffers and losses for this payload per second instead of the full link
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = link_rate, requires = "rtt",
          conflicts_with = "udp", help_heading = "Questions")]
    pub target: Option<Bitrate>,
    /// Also show the transfer time of this number of bytes
    #[arg(short = 'n', long, value_name = "BYTES", allow_hyphen_values = true, value_parser = amount, help_heading = "Questions")]
    pub transfer: Option<Bytes>,
    /// Offered payload per second: a ceiling of its own, and how much of it the path carries
    #[arg(short = 'b', long, value_name = "RATE", allow_hyphen_values = true, value_parser = above_zero::<Bitrate>, help_heading = "Flow")]
    pub offered: Option<Bitrate>,
    /// Also show the queue that a burst of this number of bytes causes before the link
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true, value_parser = above_zero::<Bytes>, requires = "burst_rate",
          help_heading = "Questions")]
    pub burst: Option<Bytes>,
    /// Rate at which the burst arrives
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = link_rate, requires = "burst", help_heading = "Questions")]
    pub burst_rate: Option<Bitrate>,
}

impl EnvelopeOptions {
    /// The path that they describe.
    #[must_use]
    pub fn path(&self) -> PathDescription {
        let bytes = |bytes: Bytes| bytes.get() as f64;
        let exact = Path {
            mtu_bytes: f64::from(self.mtu),
            ip_version: if self.ipv6 { IpVersion::V6 } else { IpVersion::V4 },
            timestamps: !self.no_timestamps,
            tags: self.vlan,
            encapsulation: self.encap,
            rmem_max_bytes: self.rmem.map(bytes),
            wmem_max_bytes: self.wmem.map(bytes),
            window_bytes: self.window.map(bytes),
            streams: self.streams,
            lag_links: self.lag.unwrap_or(1),
            congestion: self.congestion,
            udp: self.udp,
            datagram_bytes: self.length.map(bytes),
            offered_bps: self.offered.map(Bitrate::bps),
            hosts: Hosts { cpu: self.cpu, bus_bps: self.pcie, disk_bps: None },
            ..Path::gigabit()
        };
        PathDescription { exact, link: self.link, rtt: self.rtt, loss: self.loss, disk: self.disk }
    }

    /// What they ask.
    #[must_use]
    pub fn questions(&self) -> Questions {
        let burst = self.burst.zip(self.burst_rate);
        Questions {
            transfer: self.transfer,
            burst: burst.map(|(bytes, rate)| ArrivingBurst { bytes, rate }),
            need: self.need,
            target: self.target,
            lag: self.lag.is_some(),
            distance_km: self.distance,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    use crate::envelope::answers;

    #[derive(Debug, Parser)]
    struct EnvelopeCommand {
        #[command(flatten)]
        args: EnvelopeOptions,
    }

    /// The arguments as typed, without the program's name.
    fn typed(line: &str) -> EnvelopeOptions {
        EnvelopeCommand::try_parse_from(std::iter::once("envelope").chain(line.split_whitespace()))
            .unwrap()
            .args
    }

    #[test]
    fn a_range_of_losses_begins_with_none() {
        let found = typed("--link 1G --rtt 20ms..25ms --loss 0..1e-4 --disk 60MB/s").path().corners();
        let seen: Vec<_> = found.iter().map(|path| (path.rtt_s, path.loss, path.hosts.disk_bps)).collect();
        let disk = Some(480e6);
        let wanted =
            [(0.02, None, disk), (0.02, Some(1e-4), disk), (0.025, None, disk), (0.025, Some(1e-4), disk)];
        assert_eq!(seen, wanted);
    }

    #[test]
    fn a_lag_of_one_link_is_a_question_and_no_lag_is_none() {
        let asked = |line: &str| (typed(line).path().exact.lag_links, typed(line).questions().lag);
        assert_eq!(asked("--link 1G"), (1, false));
        assert_eq!(asked("--link 1G --lag 1"), (1, true));
        assert_eq!(asked("--link 1G --lag 4"), (4, true));
    }

    #[test]
    fn a_fault_names_its_argument() {
        for (line, named) in [
            ("--link 1G --mtu 68 --encap vxlan6", "--mtu"),
            ("--link 1G -u -6 -l 1472", "--length"),
            ("--link 1G --rtt 1ms --loss 30% -C bbr", "--loss"),
        ] {
            let args = typed(line);
            let error = answers(&args.path(), &args.questions()).unwrap_err();
            let options: Vec<String> = error.properties().iter().map(|name| format!("--{name}")).collect();
            assert_eq!(options, [named], "{error}");
        }
    }
}
