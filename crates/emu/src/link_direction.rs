//! One direction of a link, as described by a topology file and changed by `lab set`.

use linerate_units::{Bitrate, Bytes, Ratio, Span, Timestamp};

use crate::packet_batch::Framing;

/// One direction of a link, from the sending node's queue to the arrival at the other node.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkDirection {
    /// Line rate, preamble and gap included; absent: infinitely fast.
    pub rate: Option<Bitrate>,
    /// Capacity of the queue in front of the line, in bytes of frames; in a switch with a shared buffer that
    /// applies instead.
    pub buffer: Bytes,
    /// Which packets are dropped or marked, and when.
    pub discipline: QueueDiscipline,
    /// Largest IP packet.
    pub mtu: u32,
    /// What happens to a packet above `mtu`.
    pub too_big: TooBig,
    /// What the link adds to a packet.
    pub framing: Framing,
    /// Policer in front of the queue: non-conforming packets are dropped.
    pub police: Option<Bucket>,
    /// Shaper after the queue: non-conforming packets wait.
    pub shape: Option<Bucket>,
    /// Propagation delay.
    pub delay: Span,
    /// Random part of the delay.
    pub jitter: DelayJitter,
    /// Loss on the wire.
    pub loss: Loss,
    /// Share of packets that arrive twice.
    pub duplicate: Ratio,
    /// Packets that are overtaken.
    pub reorder: Reorder,
}

/// Which packets are dropped or marked when a queue grows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum QueueDiscipline {
    /// Packets that do not fit are dropped.
    TailDrop,
    /// Random early detection.
    Red(RedSettings),
    /// Controlled delay.
    CoDel(CoDelSettings),
}

/// Random early detection, by the average queue length.
///
/// # Source
/// Floyd and Jacobson 1993, with the gentle variant; RFC 7567 §2, RFC 3168
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RedSettings {
    /// Below this average no packet is dropped.
    pub min: Bytes,
    /// At this average the probability is `max_probability`; at twice this average every packet is dropped.
    pub max: Bytes,
    /// Probability at `max`.
    pub max_probability: Ratio,
    /// Weight of a new sample in the average.
    pub weight: Ratio,
    /// Marks ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

/// Controlled delay, by the time that packets have waited.
///
/// # Source
/// RFC 8289
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoDelSettings {
    /// Acceptable persistent queueing delay.
    pub target: Span,
    /// Time in which the queueing delay must fall below the target at least once.
    pub interval: Span,
    /// Marks ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

/// What happens to a packet above the MTU. It is never fragmented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TooBig {
    /// It is dropped silently, as in a switch: a black hole.
    Silent,
    /// It is dropped and its sender is informed, as by a router (RFC 792 type 3 code 4, RFC 4443 type 2).
    Icmp,
}

/// A token bucket: packets for which it has tokens conform. A policer drops the others, a shaper delays them.
///
/// # Source
/// RFC 2697 §3 with one bucket
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bucket {
    /// Rate at which tokens arrive; a byte of a frame ([`Framing::frame`]) consumes eight bits of it.
    pub rate: Bitrate,
    /// Depth of the bucket.
    pub burst: Bytes,
}

/// The random part of a delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DelayJitter {
    /// Largest deviation from the delay in either direction, uniformly distributed; the delay is never
    /// negative.
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
    /// Two states, good and bad, with a possible transition at every packet.
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
    /// Probability of a transition from good to bad, per packet.
    pub to_bad: Ratio,
    /// Probability of a transition from bad to good, per packet.
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
    /// How long they are held back.
    pub by: Span,
}

impl Default for LinkDirection {
    /// A link of unlimited rate without delay or loss, with a megabyte of buffer and an MTU of 1500.
    fn default() -> Self {
        Self {
            rate: None,
            buffer: Bytes::new(1 << 20),
            discipline: QueueDiscipline::TailDrop,
            mtu: 1500,
            too_big: TooBig::Silent,
            framing: Framing::default(),
            police: None,
            shape: None,
            delay: Span::ZERO,
            jitter: DelayJitter::default(),
            loss: Loss::None,
            duplicate: Ratio::default(),
            reorder: Reorder::default(),
        }
    }
}
