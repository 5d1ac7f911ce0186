//! One direction of a link as described: what a topology file says and `lab set` changes.

use linerate_units::{Bitrate, Bytes, Ratio, Span, Timestamp};

use crate::packet_batch::Framing;

/// One direction of a link, from the sending node's queue to the arrival at the other.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkDirection {
    /// Line rate, preamble and gap included; absent: infinitely fast.
    pub rate: Option<Bitrate>,
    /// What may wait in front of the line, bytes of frames; a switch with a shared buffer replaces it.
    pub buffer: Bytes,
    /// Who is dropped or marked when.
    pub discipline: Discipline,
    /// Largest IP packet.
    pub mtu: u32,
    /// What a packet above `mtu` meets.
    pub too_big: TooBig,
    /// What the link adds to a packet.
    pub framing: Framing,
    /// Conformance check before the queue: what exceeds it is dropped.
    pub police: Option<Bucket>,
    /// Shaper behind the queue: what exceeds it waits.
    pub shape: Option<Bucket>,
    /// Propagation delay.
    pub delay: Span,
    /// Random part of the delay.
    pub jitter: Jitter,
    /// Loss on the wire.
    pub loss: Loss,
    /// Share of packets that arrive twice.
    pub duplicate: Ratio,
    /// Packets that are overtaken.
    pub reorder: Reorder,
}

/// Who is dropped or marked when a queue grows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Discipline {
    /// What finds no room is dropped.
    TailDrop,
    /// Random early detection.
    Red(RedSettings),
    /// Controlled delay.
    CoDel(CoDelSettings),
}

/// Random early detection, by the average of what waits.
///
/// # Source
/// Floyd and Jacobson 1993, with the gentle variant; RFC 7567 §2, RFC 3168
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RedSettings {
    /// Below this average nothing is dropped.
    pub min: Bytes,
    /// At this average the probability is `max_probability`; at twice this average everything is dropped.
    pub max: Bytes,
    /// Probability at `max`.
    pub max_probability: Ratio,
    /// Weight of a new reading in the average.
    pub weight: Ratio,
    /// Marks packets that allow it instead of dropping them.
    pub ecn: bool,
}

/// Controlled delay, by the time that packets have waited.
///
/// # Source
/// RFC 8289
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoDelSettings {
    /// Acceptable standing wait.
    pub target: Span,
    /// Time in which a wait must fall below the target once.
    pub interval: Span,
    /// Marks packets that allow it instead of dropping them.
    pub ecn: bool,
}

/// What a packet above the MTU meets. It is never fragmented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TooBig {
    /// It vanishes, as in a switch: a black hole.
    Silent,
    /// It vanishes and its sender is told, as by a router (RFC 792 type 3 code 4, RFC 4443 type 2).
    Icmp,
}

/// A token bucket: what it has tokens for conforms. A policer drops the rest, a shaper lets it wait.
///
/// # Source
/// RFC 2697 §3 with one bucket
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bucket {
    /// Rate at which tokens come; a byte of a frame ([`Framing::frame`]) needs eight bits of it.
    pub rate: Bitrate,
    /// Depth of the bucket.
    pub burst: Bytes,
}

/// The random part of a delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Jitter {
    /// Largest deviation to either side of the delay, equally likely in between; never below zero delay.
    pub most: Span,
    /// True if a later packet may arrive before an earlier one.
    pub may_overtake: bool,
}

/// Loss on the wire.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Loss {
    /// None.
    #[default]
    None,
    /// Each packet with this probability, independently.
    Random(Ratio),
    /// Two states, good and bad, between which every packet may change.
    ///
    /// # Source
    /// Gilbert 1960, Elliott 1963; names as in RFC 6534-style models
    Burst(GilbertElliott),
    /// Every nth packet.
    EveryNth(u64),
    /// The first packet at or after each of these instants, in order, on the emulation's clock.
    AtTimes(Vec<Timestamp>),
}

/// The two-state loss model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GilbertElliott {
    /// Probability to change from good to bad, per packet.
    pub to_bad: Ratio,
    /// Probability to change from bad to good, per packet.
    pub to_good: Ratio,
    /// Probability of loss in the good state.
    pub loss_good: Ratio,
    /// Probability of loss in the bad state.
    pub loss_bad: Ratio,
}

/// Packets that are overtaken by later ones.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Reorder {
    /// Share of packets that are held back.
    pub probability: Ratio,
    /// For how long.
    pub by: Span,
}

impl Default for LinkDirection {
    /// An endless, instant, faithful link with a megabyte of buffer and an MTU of 1500.
    fn default() -> Self {
        Self {
            rate: None,
            buffer: Bytes::new(1 << 20),
            discipline: Discipline::TailDrop,
            mtu: 1500,
            too_big: TooBig::Silent,
            framing: Framing::default(),
            police: None,
            shape: None,
            delay: Span::ZERO,
            jitter: Jitter::default(),
            loss: Loss::None,
            duplicate: Ratio::default(),
            reorder: Reorder::default(),
        }
    }
}
