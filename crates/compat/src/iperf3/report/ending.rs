//! Computes the results at the end of a test.

use linerate_model::foreign_text::one_line;

use super::document::{DiskFile, EndObject, EndStream, Iperf3Cpu};
use super::facts::{Iperf3EndResults, Iperf3Stream, Iperf3StreamEnd};
use super::records::{Extremes, Iperf3Record, percent, side, sum};
use crate::iperf3::settings::Iperf3File;

/// The results of one direction.
#[derive(Debug)]
pub(super) struct DirectionResults {
    /// Whether this host sends.
    pub(super) sends: bool,
    /// One entry per stream.
    pub(super) streams: Vec<StreamResults>,
    /// The sum over all streams by the sender's counts.
    pub(super) sent: Iperf3Record,
    /// The sum over all streams by the receiver's counts.
    pub(super) received: Iperf3Record,
    /// The sum over all UDP streams: datagrams sent and lost.
    total: Option<Iperf3Record>,
    /// Congestion control algorithm of the sender.
    pub(super) sender_congestion: Option<String>,
    /// Congestion control algorithm of the receiver.
    pub(super) receiver_congestion: Option<String>,
}

/// The results of one stream.
#[derive(Debug)]
pub(super) struct StreamResults {
    /// The sender's counts; jitter and loss of a UDP sender are zeros.
    pub(super) sent: Iperf3Record,
    /// The receiver's counts.
    pub(super) received: Iperf3Record,
    /// Datagrams that arrived after a later one.
    pub(super) out_of_order: u64,
    /// The file of `-F`.
    pub(super) file: Option<DiskFile>,
    object: EndStream,
}

/// The results of one direction; absent without streams.
pub(super) fn direction(
    sends: bool,
    streams: &[(Iperf3Stream, Extremes)],
    end: &Iperf3EndResults,
    udp: bool,
    file: Option<&Iperf3File>,
) -> Option<DirectionResults> {
    let streams: Vec<_> = streams
        .iter()
        .zip(&end.streams)
        .filter(|((stream, _), _)| stream.sends == sends)
        .map(|((stream, extremes), counts)| stream_end(stream, extremes, counts, end, udp, file))
        .collect();
    let over_all = |records: Vec<Iperf3Record>| sum(&records, records.first()?);
    let sent = over_all(streams.iter().map(|stream| stream.sent).collect())?;
    let received = over_all(streams.iter().map(|stream| stream.received).collect())?;
    let totals = streams
        .iter()
        .filter_map(|stream| match &stream.object {
            EndStream::Udp { udp } => Some(**udp),
            EndStream::Tcp { .. } => None,
        })
        .collect();
    let total = over_all(totals);
    let (sender, receiver) = if sends {
        (&end.local_congestion, &end.remote_congestion)
    } else {
        (&end.remote_congestion, &end.local_congestion)
    };
    Some(DirectionResults {
        sends,
        streams,
        sent,
        received,
        total,
        sender_congestion: sender.clone(),
        receiver_congestion: receiver.clone(),
    })
}

fn stream_end(
    stream: &Iperf3Stream,
    extremes: &Extremes,
    counts: &Iperf3StreamEnd,
    end: &Iperf3EndResults,
    udp: bool,
    file: Option<&Iperf3File>,
) -> StreamResults {
    let socket = Some(stream.socket);
    let mut sent = Iperf3Record { socket, ..side(counts.sent, end.duration, udp, stream.sends) };
    let received = Iperf3Record { socket, ..side(counts.received, end.duration, udp, stream.sends) };
    let file = file.filter(|_| !udp).map(|file| {
        let name = one_line(&file.path.to_string_lossy());
        let size = match (file.special, stream.sends) {
            (true, _) => 0,
            (false, true) => file.bytes.unwrap_or(sent.bytes),
            (false, false) => end.most_received,
        };
        DiskFile::new(name, size, sent.bytes, received.bytes)
    });
    let out_of_order = counts.received.map(|side| side.out_of_order).unwrap_or_default();
    let object = if udp {
        sent = Iperf3Record { jitter_ms: Some(0.0), lost_packets: Some(0), lost_percent: Some(0.0), ..sent };
        let known = sent.packets.filter(|packets| *packets > 0);
        let packets = known.or(received.packets).unwrap_or_default();
        let lost = received.lost_packets.unwrap_or_default();
        let udp = Iperf3Record {
            jitter_ms: received.jitter_ms,
            lost_packets: Some(lost),
            packets: Some(packets),
            lost_percent: Some(percent(lost, packets)),
            out_of_order: Some(out_of_order),
            ..sent
        };
        EndStream::Udp { udp: Box::new(udp) }
    } else {
        let sender = Iperf3Record { extremes: sent.retransmits.map(|_| extremes.get()), ..sent };
        // As in iperf3: the end time is the receiver's, the duration this host's.
        let receiver = Iperf3Record { seconds: end.duration.as_secs_f64(), retransmits: None, ..received };
        EndStream::Tcp { sender: Box::new(sender), diskfile: file.clone(), receiver: Box::new(receiver) }
    };
    let received = Iperf3Record { retransmits: None, ..received };
    StreamResults { sent, received, out_of_order, file, object }
}

/// The `end` object for one or two directions.
pub(super) fn object(directions: &[DirectionResults], end: &Iperf3EndResults) -> EndObject {
    let mut object = EndObject {
        streams: directions.iter().flat_map(|d| &d.streams).map(|stream| stream.object.clone()).collect(),
        cpu_utilization_percent: Some(Iperf3Cpu::new(end.local_cpu, end.remote_cpu.unwrap_or_default())),
        ..EndObject::default()
    };
    if let Some(first) = directions.first() {
        let (total, sent, received) = sums(first);
        (object.sum, object.sum_sent, object.sum_received) = (total, Some(sent), Some(received));
    }
    if let Some(second) = directions.get(1) {
        let (total, sent, received) = sums(second);
        object.sum_bidir_reverse = total;
        object.sum_sent_bidir_reverse = Some(sent);
        object.sum_received_bidir_reverse = Some(received);
    }
    // With both directions, this host's algorithm is printed as the sender's.
    if let Some(direction) = directions.iter().find(|d| d.sends).or(directions.first()) {
        object.sender_tcp_congestion.clone_from(&direction.sender_congestion);
        object.receiver_tcp_congestion.clone_from(&direction.receiver_congestion);
    }
    object
}

/// Total (UDP), sent and received sums of a direction, with the peculiarities of iperf3's UDP object: the total
/// has the receiver's time and the sender's rate, and the flags tell which end counted.
fn sums(direction: &DirectionResults) -> (Option<Iperf3Record>, Iperf3Record, Iperf3Record) {
    let (sent, received) = (direction.sent, direction.received);
    let Some(total) = direction.total else { return (None, sent, received) };
    let spread = Iperf3Record { end: received.end, seconds: received.seconds, ..total };
    let received = Iperf3Record { lost_percent: total.lost_percent, sender: false, ..received };
    (Some(spread), Iperf3Record { sender: true, ..sent }, received)
}
