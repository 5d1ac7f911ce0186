//! The ceilings of a flow: the rate that each single limit would allow, lowest first.

use linerate_model::{Ceiling, Limit};
use linerate_units::Bitrate;

use crate::bdp::LinuxBuffer;
use crate::domain::positive;
use crate::evidence::{Evidence, FlowTransport, HostEvidence, LinkSource};
use crate::framing::LayerBytes;
use crate::rules::{own_queue_shaper, uses_up_its_quota};
use crate::{bdp, ethernet, format, framing, host, tcp_rate};

/// Below this share of a core, the measured cost does not predict a full core.
const MIN_CORE_SHARE: f64 = 0.05;

/// Every ceiling that the evidence supports, ascending. Each applies to the whole flow with all its
/// connections.
///
/// Units: bit/s of payload. Source: RFC 6349 §3.3 and §4.1.1 (window, link), Mathis 1997 and RFC 9438 (loss).
#[must_use]
pub fn all(evidence: &Evidence) -> Vec<Ceiling> {
    let supported = [
        link(evidence),
        qdisc(evidence),
        receiver_window(evidence),
        send_buffer(evidence),
        loss(evidence),
        cpu(evidence, &evidence.sender, Limit::CpuSender, "sending"),
        cpu(evidence, &evidence.receiver, Limit::CpuReceiver, "receiving"),
        pacing(evidence),
        application(evidence),
        host_memory(evidence),
        disk(evidence),
    ];
    let mut ceilings: Vec<Ceiling> =
        supported.into_iter().flatten().filter(|ceiling| positive(ceiling.bitrate_bps).is_some()).collect();
    ceilings.sort_by(|a, b| a.bitrate_bps.total_cmp(&b.bitrate_bps));
    ceilings
}

/// Splits ceilings into valid ones and those that were measured on a host and are below the flow's rate, which
/// disproves them.
///
/// Units: bit/s. Domain: without a rate all are valid. Source: nothing exceeds a limit.
#[must_use]
pub fn without_disproved(ceilings: Vec<Ceiling>, evidence: &Evidence) -> (Vec<Ceiling>, Vec<Ceiling>) {
    let Some(rate) = evidence.highest_bps().and_then(Bitrate::from_bps) else {
        return (ceilings, Vec::new());
    };
    ceilings.into_iter().partition(|ceiling| !(ceiling.is_of_a_host() && ceiling.is_exceeded_by(rate)))
}

/// The lowest ceiling: the expected limit.
///
/// Domain: `None` without ceilings; ceilings that are not finite are ignored. Source: a flow is as fast as its
/// tightest limit.
#[must_use]
pub fn binding(ceilings: &[Ceiling]) -> Option<&Ceiling> {
    lowest(ceilings.iter())
}

/// The ceiling that binds after `limit` is remedied: the gain that the change could bring.
///
/// Domain: `None` if no other ceiling is known. Source: as [`binding`].
#[must_use]
pub fn after_remedy<'a>(ceilings: &'a [Ceiling], limit: &Limit) -> Option<&'a Ceiling> {
    lowest(ceilings.iter().filter(|ceiling| ceiling.limit != *limit))
}

fn lowest<'a>(ceilings: impl Iterator<Item = &'a Ceiling>) -> Option<&'a Ceiling> {
    let rated = ceilings.filter(|ceiling| ceiling.bitrate_bps.is_finite());
    rated.min_by(|a, b| a.bitrate_bps.total_cmp(&b.bitrate_bps))
}

/// The ceiling of this limit.
#[must_use]
pub fn of<'a>(ceilings: &'a [Ceiling], limit: &Limit) -> Option<&'a Ceiling> {
    ceilings.iter().find(|ceiling| ceiling.limit == *limit)
}

/// A ceiling with its explanation.
pub(crate) fn new_ceiling(limit: Limit, bitrate_bps: f64, because: String) -> Ceiling {
    Ceiling { limit, bitrate_bps, because: because.into(), slack_bps: 0.0 }
}

/// Payload rate of a link with this flow's framing, bit/s.
pub(crate) fn link_goodput_bps(evidence: &Evidence, link_bps: f64) -> Option<f64> {
    let layers = evidence.layer_bytes()?;
    framing::payload_rate_bps(link_bps, layers.payload_bytes, layers.wire_bytes)
}

/// Payload rate of a link whose rate counts only IP packets, bit/s: the most that a stated rate can mean.
pub(crate) fn link_packets_goodput_bps(evidence: &Evidence, link_bps: f64) -> Option<f64> {
    let layers = evidence.layer_bytes()?;
    framing::payload_rate_bps(link_bps, layers.payload_bytes, layers.packet_bytes)
}

/// Describes the frames of this flow.
pub(crate) fn framing_text(evidence: &Evidence) -> String {
    let udp = evidence.transport == FlowTransport::Udp;
    let bytes = evidence.packet_bytes();
    // The length of a datagram is set by the test, that of a segment by the MTU.
    let size = match evidence.layer_bytes() {
        Some(LayerBytes { payload_bytes, packets, .. }) if packets > 1.0 => {
            format!("datagrams of {payload_bytes:.0} bytes in {packets:.0} packets")
        }
        _ if udp => format!("packets of {bytes:.0} bytes"),
        _ => format!("MTU {bytes:.0}"),
    };
    let mut parts = vec![size];
    parts.extend(evidence.link.ip_version.map(|ip| ip.name().to_owned()));
    if udp {
        parts.push("UDP".to_owned());
    } else if evidence.headers().option_bytes > 0.0 {
        parts.push("TCP timestamps".to_owned());
    }
    if evidence.tags() > 0.0 {
        parts.push(format!("{:.0} VLAN tag(s)", evidence.tags()));
    }
    parts.join(", ")
}

fn link(evidence: &Evidence) -> Option<Ceiling> {
    let link_bps = evidence.line_rate_bps()?;
    let name = ethernet::standard_name(link_bps).map_or_else(|| format::rate(link_bps), str::to_owned);
    let given = match evidence.link.source {
        Some(LinkSource::User) => " as given",
        _ if evidence.is_nominal_link() => " as the hypervisor's network card reports",
        _ => "",
    };
    let because = format!("{name}{given}, {}", framing_text(evidence));
    Some(new_ceiling(Limit::Link, link_goodput_bps(evidence, link_bps)?, because))
}

/// Long-term rate of the sender's own qdisc, without its bucket.
///
/// Units: bit/s of payload. Domain: `None` if it has no rate, or emulates the line of its interface.
/// Source: `tc-tbf(8)`, `tc-htb(8)`: rates count frames without preamble, gap and check sequence.
fn own_qdisc(evidence: &Evidence) -> Option<Ceiling> {
    let (queue, bitrate_bps) = own_queue_shaper(evidence)?;
    let at = queue.rate_bps.map(format::rate)?;
    let because = format!(
        "{} of {at} on {} of {}, {}",
        queue.kind,
        queue.interface,
        queue.host,
        framing_text(evidence)
    );
    Some(new_ceiling(Limit::Qdisc, bitrate_bps, because))
}

/// [`own_qdisc`] with the slack that its bucket allows in a test of this length. `None` if the bucket size was
/// not read, because then the excess is unknown.
pub(crate) fn qdisc(evidence: &Evidence) -> Option<Ceiling> {
    let ceiling = own_qdisc(evidence)?;
    let queue = evidence.own_queue.as_ref()?;
    let seconds = evidence.outcome.measured_s.and_then(positive)?;
    // Data that had left the qdisc when the measured part began but still waited further on.
    let waiting = [evidence.rtt.loaded_p99_s, evidence.rtt.mean_s].into_iter().flatten().reduce(f64::max);
    let waited = waiting.zip(evidence.base_rtt_s()).map_or(0.0, |(most, base)| (most - base).max(0.0));
    let layers = evidence.layer_bytes()?;
    let headers = layers.packets * framing::ETHERNET_HEADER_BYTES;
    let header = if queue.may_count_packets { headers / layers.stored_bytes } else { 0.0 };
    let burst = own_burst_bytes(evidence)? * 8.0 / seconds;
    let slack_bps = burst + ceiling.bitrate_bps * (waited / seconds + header);
    Some(Ceiling { slack_bps, ..ceiling })
}

/// The ceiling of the sender's own qdisc for single messages, each of which may find a full bucket. `None` if
/// the bucket holds more than half of a message: then it limits none of them.
///
/// Units: bytes. Domain: more than 0. Source: N bytes take the time of the part that the bucket B does not
/// hold, so their rate is N / (N - B) times the bucket's.
#[must_use]
pub fn qdisc_of_messages(evidence: &Evidence, message_bytes: f64) -> Option<Ceiling> {
    let (ceiling, burst) = (own_qdisc(evidence)?, own_burst_bytes(evidence)?);
    let slack_bps = ceiling.bitrate_bps * burst / (message_bytes - burst);
    (2.0 * burst <= message_bytes).then_some(Ceiling { slack_bps, ..ceiling })
}

/// Payload bytes that may leave the sender's own queue in excess of its rate.
fn own_burst_bytes(evidence: &Evidence) -> Option<f64> {
    let layers = evidence.layer_bytes()?;
    Some(evidence.own_queue.as_ref()?.burst_bytes? * layers.payload_bytes / layers.stored_bytes)
}

fn receiver_window(evidence: &Evidence) -> Option<Ceiling> {
    let (window, because) = receiver_window_bytes(evidence)?;
    let rtt = evidence.base_rtt_s()?;
    let rate = bdp::window_rate_bps(window, rtt)? * evidence.streams();
    Some(new_ceiling(Limit::ReceiverWindow, rate, format!("{because}, RTT {}", format::time(rtt))))
}

/// The largest window that the receiver can offer to one connection, bytes, and why.
fn receiver_window_bytes(evidence: &Evidence) -> Option<(f64, String)> {
    let windows = &evidence.windows;
    let offered = windows.offered_max_bytes.or(windows.offered_median_bytes);
    if evidence.link.window_scaling == Some(false) {
        return Some((bdp::UNSCALED_WINDOW_BYTES, "64 KiB without window scaling".to_owned()));
    }
    if windows.rcv_buf_asked_bytes.is_some() {
        let window = offered
            .or_else(|| windows.rcv_buf_bytes.and_then(|buffer| LinuxBuffer::Receive.window_bytes(buffer)))?;
        return Some((window, format!("window of {} from the requested buffer", format::size(window))));
    }
    // Autotuning: half of the largest buffer, unless the kernel already offered more.
    let half = LinuxBuffer::Receive.window_bytes(windows.rmem_max_bytes?)?;
    let window = offered.map_or(half, |offered| offered.max(half));
    Some((window, format!("window of {} at most, from tcp_rmem", format::size(window))))
}

fn send_buffer(evidence: &Evidence) -> Option<Ceiling> {
    let windows = &evidence.windows;
    let (buffer, because) = match (windows.snd_buf_asked_bytes, windows.snd_buf_bytes) {
        (Some(_), Some(granted)) => (granted, "requested send buffer"),
        _ => (windows.wmem_max_bytes?, "largest send buffer of tcp_wmem"),
    };
    let rtt = evidence.base_rtt_s()?;
    let rate = bdp::window_rate_bps(LinuxBuffer::Send.window_bytes(buffer)?, rtt)? * evidence.streams();
    Some(new_ceiling(
        Limit::SendBuffer,
        rate,
        format!("{} {because}, RTT {}", format::size(buffer), format::time(rtt)),
    ))
}

fn loss(evidence: &Evidence) -> Option<Ceiling> {
    let loss = evidence.loss()?;
    let rate = backed_off_bps(evidence, loss)?;
    let rtt = model_rtt_s(evidence)?;
    let because =
        format!("{} at a loss of {}, RTT {}", control(evidence), format::percent(loss), format::time(rtt));
    Some(new_ceiling(Limit::Loss, rate, because))
}

fn control(evidence: &Evidence) -> &str {
    evidence.tcp.congestion.as_deref().unwrap_or("reno")
}

fn model_rtt_s(evidence: &Evidence) -> Option<f64> {
    evidence.rtt.mean_s.or_else(|| evidence.base_rtt_s())
}

/// Rate of the flow's congestion control if it backs off for the share `signalled` of the segments.
///
/// Units: ratio in, bit/s of payload out, all connections. Domain: TCP other than BBR. Source: Mathis 1997, RFC
/// 9438.
pub(crate) fn backed_off_bps(evidence: &Evidence, signalled: f64) -> Option<f64> {
    if evidence.transport == FlowTransport::Udp || evidence.is_bbr() {
        return None;
    }
    let (rtt, mss) = (model_rtt_s(evidence)?, evidence.link.mss_bytes?);
    let one = if control(evidence) == "cubic" {
        tcp_rate::cubic_bps(tcp_rate::CUBIC, mss, rtt, signalled)
    } else {
        tcp_rate::mathis_bps(mss, rtt, signalled)
    }?;
    Some(one * evidence.streams())
}

fn cpu(evidence: &Evidence, host: &HostEvidence, limit: Limit, what: &str) -> Option<Ceiling> {
    if let Some(used_up) = host.quota_throttled_share.filter(|_| uses_up_its_quota(host)) {
        // What a whole core could do is not allowed.
        let because =
            format!("the CPU quota for {what} was used up in {} of its periods", format::percent(used_up));
        return Some(new_ceiling(limit, evidence.outcome.goodput_bps?, because));
    }
    let share = host.thread_share.filter(|share| *share >= MIN_CORE_SHARE)?;
    let rate = host::rate_at_full_core_bps(evidence.outcome.goodput_bps?, share.min(1.0))?;
    Some(new_ceiling(limit, rate, format!("{what} thread took {} of a core", format::percent(share))))
}

fn pacing(evidence: &Evidence) -> Option<Ceiling> {
    let paced = evidence.asked.max_pacing_bps?;
    let because = format!("paced at {} for each connection", format::rate(paced));
    Some(new_ceiling(Limit::Pacing, pacing_bps(evidence)?, because))
}

/// Payload rate that the pacing of all connections allows. Kernel pacing counts the packet with its Ethernet
/// header.
pub(crate) fn pacing_bps(evidence: &Evidence) -> Option<f64> {
    let layers = evidence.layer_bytes()?;
    let paced = evidence.asked.max_pacing_bps?;
    let each = framing::payload_rate_bps(paced, layers.payload_bytes, layers.stored_bytes)?;
    Some(each * evidence.streams())
}

fn application(evidence: &Evidence) -> Option<Ceiling> {
    let asked = &evidence.asked;
    match (asked.offered_bps, asked.read_bps) {
        (Some(offered), read) if read.is_none_or(|read| offered <= read) => Some(new_ceiling(
            Limit::Application,
            offered,
            format!("the test offers {}", format::rate(offered)),
        )),
        (_, Some(read)) => {
            Some(new_ceiling(Limit::Application, read, format!("the receiver reads {}", format::rate(read))))
        }
        _ => None,
    }
}

fn host_memory(evidence: &Evidence) -> Option<Ceiling> {
    // Between two hosts, the speed of their memory copies is not a limit of the path.
    if !evidence.link.is_loopback {
        return None;
    }
    // Both ends measured the same memory, and other load only makes copies slower.
    let faster =
        [evidence.sender.copy_bps, evidence.receiver.copy_bps].into_iter().flatten().reduce(f64::max)?;
    Some(new_ceiling(
        Limit::HostMemory,
        faster,
        "memory copies on this host, which runs both ends".to_owned(),
    ))
}

/// The slower one of the disks whose files are sent and written, as measured without the network.
fn disk(evidence: &Evidence) -> Option<Ceiling> {
    let read = evidence.sender.disk_bps.map(|bps| (bps, "reading the file without the network"));
    let written = evidence.receiver.disk_bps.map(|bps| (bps, "writing to the disk without the network"));
    let (bps, because) = [read, written].into_iter().flatten().min_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(new_ceiling(Limit::Disk, bps, because.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framing::IpVersion;
    use crate::rules::examples::loopback;

    /// The worked example: 1 Gbit/s, 21 ms, a window of 65535 bytes, one loss in a million.
    fn example() -> Evidence {
        let mut evidence = Evidence::default();
        evidence.link.link_bps = Some(1e9);
        evidence.link.mtu_bytes = Some(1500.0);
        evidence.link.mss_bytes = Some(1448.0);
        evidence.link.ip_version = Some(IpVersion::V4);
        evidence.link.timestamps = Some(true);
        evidence.link.window_scaling = Some(false);
        evidence.rtt.min_s = Some(0.021);
        evidence.tcp.congestion = Some("reno".to_owned());
        evidence.tcp.retransmits = Some(1.0);
        evidence.tcp.segments_sent = Some(1e6);
        evidence
    }

    #[test]
    fn the_example_climbs_from_window_to_loss_to_link() {
        let ceilings = all(&example());
        let limits: Vec<_> = ceilings.iter().map(|ceiling| ceiling.limit.clone()).collect();
        assert_eq!(limits, [Limit::ReceiverWindow, Limit::Loss, Limit::Link]);
        assert!((ceilings[0].bitrate_bps - 24.966e6).abs() < 1e3);
        assert!((ceilings[1].bitrate_bps - 675.59e6).abs() < 1e4);
        assert!((ceilings[2].bitrate_bps - 941.48e6).abs() < 1e4);
        assert_eq!(ceilings[2].because, "1000BASE-T, MTU 1500, IPv4, TCP timestamps");
        assert_eq!(
            after_remedy(&ceilings, &Limit::ReceiverWindow).map(|ceiling| &ceiling.limit),
            Some(&Limit::Loss)
        );
    }

    #[test]
    fn datagrams_are_distinguished_by_their_size() {
        let mut evidence = example();
        evidence.transport = FlowTransport::Udp;
        evidence.link.mss_bytes = Some(100.0);
        let ceilings = all(&evidence);
        assert_eq!(
            of(&ceilings, &Limit::Link).unwrap().because,
            "1000BASE-T, packets of 128 bytes, IPv4, UDP"
        );
        evidence.link.mss_bytes = Some(8192.0);
        assert_eq!(framing_text(&evidence), "datagrams of 8192 bytes in 6 packets, IPv4, UDP");
    }

    #[test]
    fn every_ceiling_counts_the_fragments_of_a_datagram() {
        let mut evidence = example();
        evidence.transport = FlowTransport::Udp;
        evidence.outcome.measured_s = Some(8.0);
        evidence.asked.max_pacing_bps = Some(1e9);
        evidence.own_queue = Some(crate::evidence::OwnQueue {
            rate_bps: Some(5e8),
            burst_bytes: Some(84_040.0),
            ..crate::evidence::OwnQueue::default()
        });
        let close = |got: Option<f64>, want: f64| {
            assert!(got.is_some_and(|got| (got / want - 1.0).abs() < 1e-12), "{got:?}, not {want}");
        };
        // Six packets of 8320 bytes together, and two of 1521.
        for (payload, packets, ip_bytes, wire) in
            [(8192.0, 6.0, 8320.0, 8548.0), (1473.0, 2.0, 1521.0, 1538.0 + 84.0)]
        {
            evidence.link.mss_bytes = Some(payload);
            let stored = ip_bytes + packets * 14.0;
            close(link_goodput_bps(&evidence, 1e9), 1e9 * payload / wire);
            close(link_packets_goodput_bps(&evidence, 1e9), 1e9 * payload / ip_bytes);
            close(pacing_bps(&evidence), 1e9 * payload / stored);
            let own = qdisc(&evidence).unwrap();
            close(Some(own.bitrate_bps), 5e8 * payload / stored);
            close(Some(own.slack_bps), 84_040.0 * payload / stored);
            evidence.own_queue.as_mut().unwrap().may_count_packets = true;
            let without_header = own.slack_bps + own.bitrate_bps * packets * 14.0 / stored;
            close(qdisc(&evidence).map(|own| own.slack_bps), without_header);
            evidence.own_queue.as_mut().unwrap().may_count_packets = false;
        }
    }

    #[test]
    fn bbr_has_no_loss_ceiling() {
        let mut evidence = example();
        evidence.tcp.congestion = Some("bbr".to_owned());
        assert!(of(&all(&evidence), &Limit::Loss).is_none());
    }

    #[test]
    fn a_half_busy_core_puts_its_ceiling_at_twice_the_rate() {
        let mut evidence = example();
        evidence.outcome.goodput_bps = Some(300e6);
        evidence.sender.thread_share = Some(0.5);
        assert_eq!(of(&all(&evidence), &Limit::CpuSender).map(|ceiling| ceiling.bitrate_bps), Some(600e6));
    }

    #[test]
    fn what_a_host_was_measured_to_do_is_no_ceiling_once_it_did_more() {
        // A copy that was timed while the processor was busy elsewhere: 12 Mb/s. The flow had 28 Gb/s.
        let mut evidence = loopback();
        let copies = |evidence: &mut Evidence, bps| {
            (evidence.sender.copy_bps, evidence.receiver.copy_bps) = (Some(bps), Some(bps));
        };
        copies(&mut evidence, 12e6);
        let (standing, disproved) = without_disproved(all(&evidence), &evidence);
        assert_eq!(disproved.iter().map(|ceiling| &ceiling.limit).collect::<Vec<_>>(), [&Limit::HostMemory]);
        assert!(of(&standing, &Limit::HostMemory).is_none() && of(&standing, &Limit::CpuSender).is_some());
        // The printed rate counts too.
        copies(&mut evidence, 29e9);
        evidence.outcome.whole_bps = Some(30e9);
        assert_eq!(without_disproved(all(&evidence), &evidence).1.len(), 2, "memory, and a core at 98 %");
        copies(&mut evidence, 60e9);
        evidence.outcome.whole_bps = None;
        assert!(without_disproved(all(&evidence), &evidence).1.is_empty());
    }

    #[test]
    fn memory_is_a_ceiling_of_loopback_and_of_no_path() {
        let mut busy = loopback();
        (busy.sender.copy_bps, busy.receiver.copy_bps) = (Some(60e9), Some(80e9));
        let memory = of(&all(&busy), &Limit::HostMemory).map(|ceiling| ceiling.bitrate_bps);
        assert_eq!(memory, Some(80e9), "other load makes copies slower, and nothing makes them faster");
        let mut path = loopback();
        path.link.is_loopback = false;
        assert!(of(&all(&path), &Limit::HostMemory).is_none());
    }

    #[test]
    fn nothing_known_gives_no_ceiling() {
        assert!(all(&Evidence::default()).is_empty());
        assert!(binding(&[]).is_none());
        let mut zero = Evidence::default();
        zero.asked.offered_bps = Some(0.0);
        assert!(all(&zero).is_empty());
    }
}
