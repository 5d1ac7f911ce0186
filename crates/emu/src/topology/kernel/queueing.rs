//! One direction of a link as filters and queueing disciplines of its device.
//!
//! From the outside in: the policer at the device's egress hook; netem, which delays, loses and duplicates;
//! below it tbf, whose queue is the buffer, in bytes, and which serialises; below that red or codel, if
//! configured. A packet is delayed before it queues instead of after, because netem below tbf would replace
//! tbf's queue.

use linerate_units::{Bitrate, Ratio, Span};

use super::{KernelCommand, command};
use crate::link_direction::{Bucket, LinkDirection, Loss, QueueDiscipline};
use crate::topology::check::frame;

/// What the kernel does not count of a frame: the check sequence; and preamble and gap.
const CHECK_SEQUENCE: u32 = 4;
const PREAMBLE_AND_GAP: u32 = 20;
/// The shortest frame on the wire, with preamble and gap.
const MIN_WIRE_BYTES: u32 = 84;
/// Capacity of netem in packets, if no rate bounds it.
const UNBOUNDED_PACKETS: u64 = 1_000_000;
/// The packet size that red's manual page recommends for its averages.
const AVERAGE_PACKET: u64 = 1000;

/// The commands for the direction that leaves through `device`.
pub(super) fn commands(ns: &str, device: &str, direction: &LinkDirection) -> Vec<KernelCommand> {
    let mut commands = Vec::new();
    if let Some(bucket) = direction.police {
        commands.push(command(&format!("tc -n {ns} qdisc add dev {device} clsact"), &[]));
        commands.push(police(ns, device, direction, bucket));
    }
    let mut add = |parent: &str, handle: &str, what: String| {
        commands.push(command(
            &format!("tc -n {ns} qdisc add dev {device} {parent} handle {handle} {what}"),
            &[],
        ));
    };
    let mut parent = "root";
    if let Some(netem) = netem(direction) {
        add(parent, "1:", netem);
        parent = "parent 1:1";
    }
    let Some(tbf) = tbf(direction) else { return commands };
    add(parent, "10:", tbf);
    if let Some(discipline) = discipline(direction) {
        add("parent 10:1", "20:", discipline);
    }
    commands
}

fn police(ns: &str, device: &str, direction: &LinkDirection, bucket: Bucket) -> KernelCommand {
    let (rate, burst) = (bits(bucket.rate), bucket.burst.get());
    let overhead = CHECK_SEQUENCE + tags(direction);
    command(
        &format!(
            "tc -n {ns} filter add dev {device} egress matchall action police rate {rate} burst {burst} \
             overhead {overhead} conform-exceed drop/ok"
        ),
        &[],
    )
}

fn tags(direction: &LinkDirection) -> u32 {
    4 * u32::from(direction.framing.tags)
}

fn bits(rate: Bitrate) -> String {
    format!("{:.0}bit", rate.bps())
}

/// Bytes of the largest frame on the line.
fn largest(direction: &LinkDirection) -> u64 {
    frame(direction.mtu, direction.framing.tags) + u64::from(PREAMBLE_AND_GAP)
}

/// The line, the shaper in front of it, and the buffer in front of both.
fn tbf(direction: &LinkDirection) -> Option<String> {
    // A shaper that is not slower than the line has no effect.
    let shape = direction.shape.filter(|shape| direction.rate.is_none_or(|line| shape.rate < line));
    let limit = direction.buffer.get().min(u64::from(u32::MAX));
    let overhead = CHECK_SEQUENCE + tags(direction);
    let stab = |overhead: u32| format!("stab overhead {overhead} tbf");
    match (shape, direction.rate) {
        (None, None) => None,
        (Some(Bucket { rate, burst }), None) => {
            let (rate, burst) = (bits(rate), burst.get());
            Some(format!("{} rate {rate} burst {burst} limit {limit}", stab(overhead)))
        }
        (None, Some(line)) => {
            // A burst of a millisecond, so that a late timer does not reduce the rate.
            let burst = ((line.bps() / 8000.0) as u64).max(2 * largest(direction));
            let (stab, rate) = (stab(overhead + PREAMBLE_AND_GAP), bits(line));
            Some(format!("{stab} rate {rate} burst {burst} limit {limit} mpu {MIN_WIRE_BYTES}"))
        }
        (Some(Bucket { rate, burst }), Some(line)) => {
            let (stab, rate, burst) = (stab(overhead + PREAMBLE_AND_GAP), bits(rate), burst.get());
            let (line, one) = (bits(line), 2 * largest(direction));
            Some(format!(
                "{stab} rate {rate} burst {burst} limit {limit} mpu {MIN_WIRE_BYTES} peakrate {line} mtu {one}"
            ))
        }
    }
}

fn discipline(direction: &LinkDirection) -> Option<String> {
    let limit = direction.buffer.get().min(u64::from(u32::MAX));
    match direction.discipline {
        QueueDiscipline::TailDrop => None,
        QueueDiscipline::Red(red) => {
            let (min, max) = (red.min.get(), red.max.get());
            // The burst that the manual page recommends, from which tc computes the weight.
            let burst = (2 * min + max) / (3 * AVERAGE_PACKET) + 1;
            let slowest = [direction.rate, direction.shape.map(|shape| shape.rate)].into_iter().flatten();
            let rate = slowest.reduce(|a, b| if b < a { b } else { a }).map(bits).unwrap_or_default();
            // tc stores the probability per byte between the thresholds in steps of 2^-32 and rejects anything
            // below one step.
            let least = max.saturating_sub(min) as f64 / f64::from(1 << 30);
            let probability = red.max_probability.get().max(least);
            let ecn = if red.ecn { " ecn" } else { "" };
            Some(format!(
                "red limit {limit} min {min} max {max} probability {probability} \
                 burst {burst} avpkt {AVERAGE_PACKET} bandwidth {rate}{ecn}"
            ))
        }
        QueueDiscipline::CoDel(codel) => {
            let packets = (limit / frame(direction.mtu, direction.framing.tags)).max(1);
            let (target, interval) = (microseconds(codel.target), microseconds(codel.interval));
            let ecn = if codel.ecn { "ecn" } else { "noecn" };
            Some(format!("codel limit {packets} target {target} interval {interval} {ecn}"))
        }
    }
}

/// A time in tc's syntax: it has no nanoseconds, but fractions of microseconds.
fn microseconds(span: Span) -> String {
    let (whole, part) = (span.as_ns() / 1000, span.as_ns() % 1000);
    if part == 0 { format!("{whole}us") } else { format!("{whole}.{part:03}us") }
}

/// Delay, loss, duplication; absent if there is nothing to do.
fn netem(direction: &LinkDirection) -> Option<String> {
    let mut text = String::new();
    let (delay, jitter) = (direction.delay, direction.jitter.most);
    if delay > Span::ZERO || jitter > Span::ZERO {
        text.push_str(&format!(" delay {}", microseconds(delay)));
        if jitter > Span::ZERO {
            text.push_str(&format!(" {}", microseconds(jitter)));
        }
    } else if direction.reorder.probability.get() > 0.0 {
        // netem sends some immediately and holds the others; this crate holds some and sends the others.
        let at_once = Ratio::new(1.0 - direction.reorder.probability.get()).unwrap_or_default();
        text.push_str(&format!(" delay {} reorder {}", microseconds(direction.reorder.by), percent(at_once)));
    }
    match &direction.loss {
        Loss::Random(probability) => text.push_str(&format!(" loss random {}", percent(*probability))),
        Loss::Burst(model) => {
            let [p, r, bad, good] =
                [model.to_bad, model.to_good, model.loss_bad, model.loss_good].map(percent);
            text.push_str(&format!(" loss gemodel {p} {r} {bad} {good}"));
        }
        Loss::None | Loss::EveryNth(_) | Loss::AtTimes(_) => {}
    }
    if direction.duplicate.get() > 0.0 {
        text.push_str(&format!(" duplicate {}", percent(direction.duplicate)));
    }
    (!text.is_empty()).then(|| format!("netem limit {}{text}", packets_under_way(direction)))
}

/// The number of packets that fit into the delay if all are as short as possible, and some more.
fn packets_under_way(direction: &LinkDirection) -> u64 {
    const SPARE: u64 = 1000;
    let longest = (direction.delay + direction.jitter.most + direction.reorder.by).as_secs_f64();
    let Some(rate) = direction.rate else { return UNBOUNDED_PACKETS };
    let packets = (rate.bps() * longest / 8.0 / f64::from(MIN_WIRE_BYTES)).ceil() as u64;
    (packets + SPARE).min(u64::from(u32::MAX))
}

/// A share in percent, with as many digits as netem stores: it counts in units of 2^-32.
fn percent(share: Ratio) -> String {
    let text = format!("{:.8}", share.get() * 100.0);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}
