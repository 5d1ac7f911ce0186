//! The keys of one direction of a link, and the fields that they set.

use linerate_units::{Bitrate, Bytes, Ratio, Span, Timestamp};

use super::check;
use super::keys::{TopologyKey, key, live, put};
use super::kind::{RequiredSetting, TopologyValueKind};
use crate::link_direction::{
    Bucket, CoDelSettings, GilbertElliott, LinkDirection, Loss, QueueDiscipline, RedSettings, TooBig,
};

/// Keys of `[link.NAME]` for both directions, and of `[link.NAME.from.NODE]` for one.
pub(super) const WAY: &[TopologyKey<LinkDirection>] = &[
    live(
        "rate",
        TopologyValueKind::Rate(put!(rate)),
        "\"none\"",
        "Line rate, including preamble and inter-frame gap.",
    ),
    key(
        "mtu",
        TopologyValueKind::Whole(MIN_MTU, MAX_MTU, |direction, mtu| {
            direction.mtu = mtu as u32;
            Ok(())
        }),
        "1500",
        "Largest IP packet. IPv6 is off below 1280 (RFC 8200 section 5).",
    ),
    key(
        "too_big",
        TopologyValueKind::Choice(&["silent", "icmp"], set_too_big),
        "\"silent\"",
        "What happens to a packet above the MTU: dropped silently, or dropped with an ICMP message to its \
         sender as a router sends it (RFC 1191, RFC 8201).",
    ),
    key(
        "tags",
        TopologyValueKind::Whole(0, 2, |direction, tags| {
            direction.framing.tags = tags as u8;
            Ok(())
        }),
        "0",
        "Number of VLAN tags of every frame on the wire, 4 bytes each.",
    ),
    live(
        "buffer",
        TopologyValueKind::Memory(put!(buffer)),
        "\"1MiB\"",
        "Queue limit in front of the line, in bytes of frames including FCS.",
    ),
    live(
        "discipline",
        TopologyValueKind::Choice(&["tail-drop", "red", "codel"], set_discipline),
        "\"tail-drop\"",
        "Queue management: which packets are dropped or marked when the queue grows.",
    ),
    live(
        "red_min",
        TopologyValueKind::Memory(|direction, min| {
            red(direction)?.min = min;
            Ok(())
        }),
        "a twelfth of the buffer",
        "Average queue below which RED drops nothing.",
    ),
    live(
        "red_max",
        TopologyValueKind::Memory(|direction, max| {
            red(direction)?.max = max;
            Ok(())
        }),
        "a quarter of the buffer",
        "Average queue at which RED drops with `red_probability`; from there the probability grows to 1 at twice this average.",
    ),
    live(
        "red_probability",
        TopologyValueKind::Probability(|direction, p| {
            red(direction)?.max_probability = p;
            Ok(())
        }),
        "\"10%\"",
        "RED's drop probability at `red_max`.",
    ),
    live(
        "red_weight",
        TopologyValueKind::Probability(|direction, weight| {
            red(direction)?.weight = weight;
            Ok(())
        }),
        "0.002",
        "Weight of a new sample in RED's average queue (Floyd and Jacobson 1993).",
    ),
    live(
        "codel_target",
        TopologyValueKind::Time(|direction, target| {
            codel(direction)?.target = target;
            Ok(())
        }),
        "\"5ms\"",
        "Queueing delay that CoDel tolerates (RFC 8289 section 4.3).",
    ),
    live(
        "codel_interval",
        TopologyValueKind::Time(|direction, interval| {
            codel(direction)?.interval = interval;
            Ok(())
        }),
        "\"100ms\"",
        "Interval in which the delay must fall below the target at least once (RFC 8289 section 4.3).",
    ),
    live(
        "ecn",
        TopologyValueKind::Flag(set_ecn),
        "false",
        "RED and CoDel mark ECN-capable packets instead of dropping them (RFC 3168).",
    ),
    live(
        "police_rate",
        TopologyValueKind::Rate(|direction, rate| {
            set_bucket(&mut direction.police, rate, direction.mtu);
            Ok(())
        }),
        "\"none\"",
        "Policer in front of the queue: drops frames above this rate, counted in bits of frames.",
    ),
    live(
        "police_burst",
        TopologyValueKind::Memory(|direction, burst| set_burst(&mut direction.police, burst, "police_rate")),
        "10 ms at the rate",
        "Burst that passes the policer; by default at least two full-size frames.",
    ),
    live(
        "shape_rate",
        TopologyValueKind::Rate(|direction, rate| {
            set_bucket(&mut direction.shape, rate, direction.mtu);
            Ok(())
        }),
        "\"none\"",
        "Shaper at the head of the queue: delays frames above this rate, counted in bits of frames.",
    ),
    live(
        "shape_burst",
        TopologyValueKind::Memory(|direction, burst| set_burst(&mut direction.shape, burst, "shape_rate")),
        "10 ms at the rate",
        "Burst that passes the shaper; by default at least two full-size frames.",
    ),
    live("delay", TopologyValueKind::Time(put!(delay)), "\"0s\"", "Propagation delay."),
    live(
        "jitter",
        TopologyValueKind::Time(put!(jitter.most)),
        "\"0s\"",
        "Largest deviation from the delay in either direction, uniformly distributed.",
    ),
    live(
        "overtake",
        TopologyValueKind::Flag(put!(jitter.may_overtake)),
        "false",
        "Allow jitter to reorder packets.",
    ),
    live("loss", TopologyValueKind::Probability(set_loss), "0", "Probability that a packet is lost."),
    live(
        "loss_every",
        TopologyValueKind::Whole(1, u64::MAX, |direction, n| {
            direction.loss = Loss::EveryNth(n);
            Ok(())
        }),
        "never",
        "Lose every nth packet.",
    ),
    live(
        "loss_times",
        TopologyValueKind::Instants(set_loss_times),
        "[]",
        "Lose the first packet at or after each of these times since the start.",
    ),
    live(
        "loss_burst.to_bad",
        TopologyValueKind::Probability(set_burst_loss),
        "no bursts",
        "Loss in bursts from a two-state model (Gilbert 1960, Elliott 1963): probability per packet of \
         changing from good to bad.",
    ),
    live(
        "loss_burst.to_good",
        TopologyValueKind::Probability(|direction, p| {
            burst_loss(direction)?.to_good = p;
            Ok(())
        }),
        "\"25%\"",
        "Probability per packet of changing from bad to good; with 25 % the bad state lasts four packets on \
         average.",
    ),
    live(
        "loss_burst.loss_good",
        TopologyValueKind::Probability(|direction, p| {
            burst_loss(direction)?.loss_good = p;
            Ok(())
        }),
        "0",
        "Probability of loss in the good state.",
    ),
    live(
        "loss_burst.loss_bad",
        TopologyValueKind::Probability(|direction, p| {
            burst_loss(direction)?.loss_bad = p;
            Ok(())
        }),
        "1",
        "Probability of loss in the bad state.",
    ),
    live(
        "duplicate",
        TopologyValueKind::Probability(put!(duplicate)),
        "0",
        "Share of packets that are duplicated.",
    ),
    live(
        "reorder",
        TopologyValueKind::Probability(set_reorder),
        "0",
        "Share of packets that are held back so that later packets overtake them.",
    ),
    live(
        "reorder_by",
        TopologyValueKind::Time(put!(reorder.by)),
        "\"1ms\"",
        "Time for which these packets are held back.",
    ),
];

/// The keys of the loss models, of which only one may be given.
pub(super) const LOSS_MODELS: [&str; 4] = ["loss", "loss_every", "loss_times", "loss_burst"];

/// Smallest MTU of IPv4 that hosts must accept (RFC 791 section 3.2).
const MIN_MTU: u64 = 576;
/// The longest frame of a device with GSO frames, 65535, without its Ethernet header.
const MAX_MTU: u64 = 65521;

const DISCIPLINE_RED: RequiredSetting = RequiredSetting("discipline = \"red\"");
const DISCIPLINE_CODEL: RequiredSetting = RequiredSetting("discipline = \"codel\"");

fn set_too_big(direction: &mut LinkDirection, what: &'static str) -> Result<(), RequiredSetting> {
    direction.too_big = if what == "icmp" { TooBig::Icmp } else { TooBig::Silent };
    Ok(())
}

/// Setting the same discipline again keeps its settings.
fn set_discipline(direction: &mut LinkDirection, name: &'static str) -> Result<(), RequiredSetting> {
    direction.discipline = match (name, direction.discipline) {
        ("red", QueueDiscipline::Red(settings)) => QueueDiscipline::Red(settings),
        ("red", _) => QueueDiscipline::Red(default_red(direction.buffer)),
        ("codel", QueueDiscipline::CoDel(settings)) => QueueDiscipline::CoDel(settings),
        ("codel", _) => QueueDiscipline::CoDel(CoDelSettings {
            target: Span::from_ms(5),
            interval: Span::from_ms(100),
            ecn: false,
        }),
        _ => QueueDiscipline::TailDrop,
    };
    Ok(())
}

/// Thresholds in a ratio of one to three (Floyd 1997, "RED: discussions of setting parameters"), with buffer
/// space above twice the upper one.
fn default_red(buffer: Bytes) -> RedSettings {
    RedSettings {
        min: Bytes::new(buffer.get() / 12),
        max: Bytes::new(buffer.get() / 4),
        max_probability: ratio(0.1),
        weight: ratio(0.002),
        ecn: false,
    }
}

fn ratio(value: f64) -> Ratio {
    Ratio::new(value).unwrap_or_default()
}

fn red(direction: &mut LinkDirection) -> Result<&mut RedSettings, RequiredSetting> {
    match &mut direction.discipline {
        QueueDiscipline::Red(settings) => Ok(settings),
        _ => Err(DISCIPLINE_RED),
    }
}

fn codel(direction: &mut LinkDirection) -> Result<&mut CoDelSettings, RequiredSetting> {
    match &mut direction.discipline {
        QueueDiscipline::CoDel(settings) => Ok(settings),
        _ => Err(DISCIPLINE_CODEL),
    }
}

fn set_ecn(direction: &mut LinkDirection, ecn: bool) -> Result<(), RequiredSetting> {
    match &mut direction.discipline {
        QueueDiscipline::Red(settings) => settings.ecn = ecn,
        QueueDiscipline::CoDel(settings) => settings.ecn = ecn,
        QueueDiscipline::TailDrop if ecn => return Err(RequiredSetting("discipline = \"red\" or \"codel\"")),
        QueueDiscipline::TailDrop => {}
    }
    Ok(())
}

/// A bucket of that rate; an existing one keeps its depth.
fn set_bucket(bucket: &mut Option<Bucket>, rate: Option<Bitrate>, mtu: u32) {
    /// Ten milliseconds, in seconds, converted to bytes.
    const DEPTH_BYTES_PER_BPS: f64 = 0.010 / 8.0;
    let two_frames = 2 * check::frame(mtu, 0);
    *bucket = rate.map(|rate| {
        let depth = (rate.bps() * DEPTH_BYTES_PER_BPS).round() as u64;
        Bucket { rate, burst: bucket.map_or(Bytes::new(depth.max(two_frames)), |old| old.burst) }
    });
}

fn set_burst(bucket: &mut Option<Bucket>, burst: Bytes, needs: &'static str) -> Result<(), RequiredSetting> {
    bucket.as_mut().ok_or(RequiredSetting(needs))?.burst = burst;
    Ok(())
}

fn set_loss(direction: &mut LinkDirection, probability: Ratio) -> Result<(), RequiredSetting> {
    direction.loss = if probability.get() == 0.0 { Loss::None } else { Loss::Random(probability) };
    Ok(())
}

fn set_loss_times(direction: &mut LinkDirection, times: Vec<Timestamp>) -> Result<(), RequiredSetting> {
    direction.loss = if times.is_empty() { Loss::None } else { Loss::AtTimes(times) };
    Ok(())
}

fn set_burst_loss(direction: &mut LinkDirection, to_bad: Ratio) -> Result<(), RequiredSetting> {
    if let Loss::Burst(model) = &mut direction.loss {
        model.to_bad = to_bad;
    } else {
        direction.loss = Loss::Burst(GilbertElliott {
            to_bad,
            to_good: ratio(0.25),
            loss_good: Ratio::default(),
            loss_bad: ratio(1.0),
        });
    }
    Ok(())
}

fn burst_loss(direction: &mut LinkDirection) -> Result<&mut GilbertElliott, RequiredSetting> {
    match &mut direction.loss {
        Loss::Burst(model) => Ok(model),
        _ => Err(RequiredSetting("loss_burst.to_bad")),
    }
}

fn set_reorder(direction: &mut LinkDirection, probability: Ratio) -> Result<(), RequiredSetting> {
    direction.reorder.probability = probability;
    if direction.reorder.by == Span::ZERO {
        direction.reorder.by = Span::from_ms(1);
    }
    Ok(())
}
