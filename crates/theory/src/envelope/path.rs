//! Description of a path.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Hosts;
use super::loss::BBR_GAIN;
use crate::encapsulation::Encapsulation;
use crate::framing::{Headers, IpVersion};
use crate::tcp_rate;

/// Congestion control: the reaction of the flow to loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Congestion {
    /// Halves the window, and grows it by one segment per round trip. RFC 5681.
    Reno,
    /// RFC 9438.
    Cubic,
    /// Follows its own model of the path, mostly independent of loss.
    Bbr,
}

impl Congestion {
    /// The congestion control with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Reno, Self::Cubic, Self::Bbr].into_iter().find(|control| control.name() == name)
    }

    /// Its name, such as `cubic`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Reno => "reno",
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
        }
    }
}

/// Description of a path. [`Path::gigabit`] is a starting point with all fields set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Path {
    /// Rate of the slowest link, bit/s.
    pub link_bps: f64,
    /// MTU of the network under any tunnel, bytes.
    pub mtu_bytes: f64,
    /// IP version.
    pub ip_version: IpVersion,
    /// Whether TCP timestamps are on.
    pub timestamps: bool,
    /// 802.1Q tags.
    pub tags: u32,
    /// Tunnel.
    pub encapsulation: Encapsulation,
    /// RTT without queues, s.
    pub rtt_s: f64,
    /// Loss events per packet; absent for none.
    pub loss: Option<f64>,
    /// Largest receive buffer of the receiver (`tcp_rmem[2]`), bytes.
    pub rmem_max_bytes: Option<f64>,
    /// Largest send buffer of the sender (`tcp_wmem[2]`), bytes.
    pub wmem_max_bytes: Option<f64>,
    /// Window of each connection, if fixed, bytes.
    pub window_bytes: Option<f64>,
    /// Number of connections.
    pub streams: u32,
    /// Number of links of a LAG whose hash chooses one link for each connection; 1 for a single link.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub lag_links: u32,
    /// Congestion control.
    pub congestion: Congestion,
    /// Datagrams instead of TCP.
    pub udp: bool,
    /// Payload of each datagram, bytes; absent for the largest that the MTU allows.
    pub datagram_bytes: Option<f64>,
    /// Offered payload rate, bit/s; absent for no limit.
    pub offered_bps: Option<f64>,
    /// The hosts at both ends.
    #[serde(default)]
    pub hosts: Hosts,
}

const fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde requires this signature")]
const fn is_one(links: &u32) -> bool {
    *links == 1
}

impl Path {
    /// Gigabit Ethernet at MTU 1500 over IPv4 with timestamps: one CUBIC connection with 1 ms of RTT, kernel
    /// buffers unlimited.
    #[must_use]
    pub fn gigabit() -> Self {
        Self {
            link_bps: 1e9,
            mtu_bytes: 1500.0,
            ip_version: IpVersion::V4,
            timestamps: true,
            tags: 0,
            encapsulation: Encapsulation::None,
            rtt_s: 0.001,
            loss: None,
            rmem_max_bytes: None,
            wmem_max_bytes: None,
            window_bytes: None,
            streams: 1,
            lag_links: 1,
            congestion: Congestion::Cubic,
            udp: false,
            datagram_bytes: None,
            offered_bps: None,
            hosts: Hosts::default(),
        }
    }

    /// Size of each packet, bytes: the MTU, or the packet of a datagram of the described length.
    pub(super) fn packet_bytes(&self) -> f64 {
        let datagram = self.datagram_bytes.filter(|_| self.udp);
        datagram.map_or(self.mtu_bytes, |bytes| bytes + self.headers().total_bytes())
    }

    pub(super) fn headers(&self) -> Headers {
        let inner = if self.udp {
            Headers::udp(self.ip_version)
        } else {
            Headers::tcp(self.ip_version, self.timestamps)
        };
        Headers { encapsulation_bytes: self.encapsulation.overhead_bytes(), ..inner }
    }
}

/// Errors in a described path, which the user can correct.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum PathError {
    /// The link rate is not above zero.
    #[error("the link's rate must be above zero; give it as 1G")]
    Link,
    /// The MTU has no room for payload.
    #[error(
        "an MTU of {mtu_bytes} leaves no payload after {header_bytes} bytes of headers; give a larger one"
    )]
    Mtu {
        /// The stated MTU.
        mtu_bytes: f64,
        /// Size of the headers.
        header_bytes: f64,
    },
    /// The stated datagrams do not fit in a packet.
    #[error(
        "datagrams of {datagram_bytes} bytes need packets of {packet_bytes} bytes, more than the MTU of {mtu_bytes}; \
         give a shorter length"
    )]
    Fragments {
        /// The stated payload.
        datagram_bytes: f64,
        /// Size of the packet that it needs.
        packet_bytes: f64,
        /// The stated MTU.
        mtu_bytes: f64,
    },
    /// The RTT is not above zero.
    #[error("the round trip must be above zero; give it as 20ms")]
    RoundTrip,
    /// The RTT is unknown, but something depends on it.
    #[error("windows, buffers, loss and a target limit a path only over a round trip; give it as 20ms")]
    UnknownRoundTrip,
    /// The loss is not a probability.
    #[error("a loss of {0} is not a probability between 0 and 1; write one loss in ten thousand as 0.0001")]
    Loss(f64),
    /// A window or buffer is not above zero.
    #[error("windows and buffers must be above zero bytes; leave them out for no limit")]
    Buffer,
    /// The offered rate is not above zero.
    #[error("the offered rate must be above zero; leave it out to offer as much as fits")]
    Offered,
    /// A clock, cost or rate of the hosts is not above zero.
    #[error("clocks, costs and rates of the hosts must be above zero; leave them out for no limit")]
    Hosts,
    /// The number of streams is zero.
    #[error("the number of streams must be at least 1")]
    Streams,
    /// The number of links is not between 1 and 256.
    #[error("the LAG must have 1 to 256 links")]
    Lag,
    /// The model of the congestion control does not cover this loss.
    #[error(
        "the model of bbr holds only up to a loss of {most}, because bbr cannot hold a rate beyond that; \
         give a loss below {loss}, or another congestion control"
    )]
    BeyondModel {
        /// The stated loss.
        loss: f64,
        /// Largest loss that the model covers.
        most: f64,
    },
}

impl PathError {
    /// The properties to change, by their names as options of `linerate envelope`; one of them is enough.
    #[must_use]
    pub fn properties(&self) -> &'static [&'static str] {
        match self {
            Self::Link => &["link"],
            Self::Mtu { .. } => &["mtu"],
            Self::Fragments { .. } => &["length"],
            Self::RoundTrip | Self::UnknownRoundTrip => &["rtt"],
            Self::Loss(_) | Self::BeyondModel { .. } => &["loss"],
            Self::Buffer => &["window", "rmem", "wmem"],
            Self::Offered => &["offered"],
            Self::Hosts => &["cpu", "pcie", "disk"],
            Self::Streams => &["streams"],
            Self::Lag => &["lag"],
        }
    }
}

/// Rejects a description from which nothing can be calculated. Whether the MTU leaves room for payload is
/// checked later.
pub(super) fn check(path: &Path) -> Result<(), PathError> {
    let usable = |value: f64| value.is_finite() && value > 0.0;
    if !usable(path.link_bps) {
        return Err(PathError::Link);
    }
    if !usable(path.rtt_s) {
        return Err(PathError::RoundTrip);
    }
    if let Some(loss) = path.loss.filter(|loss| !(0.0..1.0).contains(loss)) {
        return Err(PathError::Loss(loss));
    }
    if path.streams == 0 {
        return Err(PathError::Streams);
    }
    if !(1..=256).contains(&path.lag_links) {
        return Err(PathError::Lag);
    }
    let bbr = path.congestion == Congestion::Bbr && !path.udp;
    let most = tcp_rate::bbr_loss_tolerance(BBR_GAIN).unwrap_or_default();
    if let Some(loss) = path.loss.filter(|loss| bbr && *loss > most) {
        return Err(PathError::BeyondModel { loss, most });
    }
    let buffers = [path.window_bytes, path.rmem_max_bytes, path.wmem_max_bytes];
    if buffers.into_iter().flatten().any(|bytes| !usable(bytes)) {
        return Err(PathError::Buffer);
    }
    if path.offered_bps.is_some_and(|rate| !usable(rate)) {
        return Err(PathError::Offered);
    }
    if !path.hosts.are_usable() {
        return Err(PathError::Hosts);
    }
    let (packet_bytes, mtu_bytes) = (path.packet_bytes(), path.mtu_bytes);
    if let Some(datagram_bytes) = path.datagram_bytes.filter(|_| packet_bytes > mtu_bytes) {
        return Err(PathError::Fragments { datagram_bytes, packet_bytes, mtu_bytes });
    }
    Ok(())
}
