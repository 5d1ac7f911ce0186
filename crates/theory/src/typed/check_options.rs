//! Figures and a path to check, as a person types them.

use linerate_model::import::ForeignTest;
use linerate_model::metrics::Side;
use linerate_units::{Bitrate, Bytes, Ratio};

use super::{TypedFigure, TypedFigures, describes_path_only};
use super::{congestion, link_rate, probability, tunnel};
use crate::claims::Context;
use crate::encapsulation::Encapsulation;
use crate::envelope::Congestion;
use crate::framing::IpVersion;

// `allow_hyphen_values`: a negative number is then an option's value, so that the error message names the
// option.

/// Figures of a test.
#[derive(Debug, Clone, clap::Args)]
pub struct FigureOptions {
    /// A rate to check, payload per second, such as 966.5M
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = TypedFigure::rate, help_heading = "Figures")]
    pub rate: Option<TypedFigure>,
    /// Packets per second
    #[arg(long, value_name = "PACKETS", allow_hyphen_values = true, value_parser = TypedFigure::count, help_heading = "Figures")]
    pub pps: Option<TypedFigure>,
    /// Payload bytes of the whole test
    #[arg(short = 'n', long, value_name = "BYTES", allow_hyphen_values = true, value_parser = TypedFigure::bytes, help_heading = "Figures")]
    pub bytes: Option<TypedFigure>,
    /// Duration of the whole test, such as 10s
    #[arg(short = 't', long, value_name = "TIME", allow_hyphen_values = true, value_parser = TypedFigure::time, help_heading = "Figures")]
    pub duration: Option<TypedFigure>,
    /// Packets of the whole test
    #[arg(long, value_name = "PACKETS", allow_hyphen_values = true, value_parser = TypedFigure::count, help_heading = "Figures")]
    pub packets: Option<TypedFigure>,
    /// Lost packets
    #[arg(long, value_name = "PACKETS", allow_hyphen_values = true, value_parser = TypedFigure::count, help_heading = "Figures")]
    pub lost: Option<TypedFigure>,
    /// Retransmitted segments
    #[arg(long, value_name = "SEGMENTS", allow_hyphen_values = true, value_parser = TypedFigure::count, help_heading = "Figures")]
    pub retransmits: Option<TypedFigure>,
    /// Congestion window
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true, value_parser = TypedFigure::bytes, help_heading = "Figures")]
    pub cwnd: Option<TypedFigure>,
    /// Number of read or write calls
    #[arg(long, value_name = "CALLS", allow_hyphen_values = true, value_parser = TypedFigure::count, help_heading = "Figures")]
    pub calls: Option<TypedFigure>,
    /// Busy share of the CPUs, such as 23%
    #[arg(long, value_name = "RATIO", allow_hyphen_values = true, value_parser = TypedFigure::share, help_heading = "Figures")]
    pub cpu: Option<TypedFigure>,
    /// The end that counted the typed figures
    #[arg(long, value_name = "END", value_parser = clap::builder::PossibleValuesParser::new(["sender", "receiver"]), help_heading = "Figures")]
    pub counted_by: Option<String>,
    /// The path and the flow.
    #[command(flatten)]
    pub path: PathOptions,
}

/// Properties of the path; they override those in files. A property that is not given may have any value that
/// makes a figure possible.
#[derive(Debug, Clone, clap::Args)]
pub struct PathOptions {
    /// Rate of the slowest link, such as 1G
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = link_rate, help_heading = "Path")]
    pub link: Option<Bitrate>,
    /// MTU of the link, below any tunnel
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true,
          value_parser = clap::value_parser!(u32).range(68..=65_535), help_heading = "Path")]
    pub mtu: Option<u32>,
    /// Payload of a full segment (MSS), after options
    #[arg(short = 'M', long, value_name = "BYTES", allow_hyphen_values = true, value_parser = TypedFigure::bytes, help_heading = "Path")]
    pub mss: Option<TypedFigure>,
    /// Round-trip time without queueing, such as 21ms
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = TypedFigure::round_trip, help_heading = "Path")]
    pub rtt: Option<TypedFigure>,
    /// Distance between the ends in kilometres, one way
    #[arg(long, value_name = "KM", allow_hyphen_values = true, value_parser = TypedFigure::count, requires = "rtt", help_heading = "Path")]
    pub distance: Option<TypedFigure>,
    /// Loss probability per packet, such as 0.0001 or 0.01%
    #[arg(long, value_name = "RATIO", allow_hyphen_values = true, value_parser = probability, help_heading = "Path")]
    pub loss: Option<Ratio>,
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
    /// Number of parallel connections
    #[arg(short = 'P', long, value_name = "STREAMS", allow_hyphen_values = true,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000), help_heading = "Flow")]
    pub streams: Option<u32>,
    /// Congestion control
    #[arg(short = 'C', long, value_name = "NAME", value_parser = congestion(), help_heading = "Flow")]
    pub congestion: Option<Congestion>,
    /// TCP without timestamps
    #[arg(long, help_heading = "Flow")]
    pub no_timestamps: bool,
    /// Window of each connection
    #[arg(short, long, value_name = "BYTES", allow_hyphen_values = true, value_parser = linerate_units::above_zero::<Bytes>, requires = "rtt",
          help_heading = "Flow")]
    pub window: Option<Bytes>,
    /// UDP instead of TCP
    #[arg(short, long, conflicts_with_all = ["congestion", "no_timestamps", "window", "mss"], help_heading = "Flow")]
    pub udp: bool,
    /// Bytes per call, or payload of a datagram
    #[arg(short, long, value_name = "BYTES", allow_hyphen_values = true, value_parser = TypedFigure::bytes, help_heading = "Flow")]
    pub length: Option<TypedFigure>,
}

impl PathOptions {
    /// What is known of the path.
    #[must_use]
    pub fn context(&self) -> Context {
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

impl FigureOptions {
    fn side(&self) -> Option<Side> {
        self.counted_by.as_deref().map(|end| if end == "sender" { Side::Sender } else { Side::Receiver })
    }

    /// The typed figures as a test with one line; absent if none is typed, or if with files they only describe the path
    /// of these.
    #[must_use]
    pub fn claim(&self, with_files: bool) -> Option<ForeignTest> {
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
        test.filter(|test| !with_files || !describes_path_only(test))
    }
}
