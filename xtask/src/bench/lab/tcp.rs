//! TCP in the lab compared with theory: random loss, small windows, the first drop of a full buffer.

use std::time::Duration;

use super::super::BenchContext;
use super::super::figure::FigureReadings;
use super::super::tools::BenchTool;
use super::network::{LabNetwork, Upload};
use super::result::{ResultInterval, UploadResult};
use super::{expected, kept_up, length};
use crate::process::ChildProcess;

/// Round-trip time of `long-haul`, seconds.
const LONG_HAUL_S: f64 = 0.021;
/// Rate of its links.
const LINE_BPS: f64 = 1e9;
const MSS: f64 = 1448.0;
const LOSS: f64 = 1e-4;

/// One stream that loses one packet in ten thousand, and none of its acknowledgements.
pub(super) fn loss(bed: &BenchContext, congestion: &'static str) -> Result<Vec<FigureReadings>, String> {
    let network = LabNetwork::up(bed, "long-haul", &[&format!("link.b.from.r.loss={LOSS}")])?;
    // After slow start, which does not depend on the loss ratio.
    let options = ["-C", congestion, "-O", "3"];
    let upload = Upload { from: "a", to: "b", length: length(bed, 30, 8), options: &options };
    let run = network.upload(&upload, || ())?;
    let theory = match congestion {
        "reno" => expected::reno(MSS, LONG_HAUL_S, LOSS),
        _ => expected::cubic(MSS, LONG_HAUL_S, LOSS),
    };
    let note = format!(
        "{:.1} of {:.1} Mb/s; {} s, {} segments retransmitted",
        run.goodput_bps / 1e6,
        theory / 1e6,
        upload.length.as_secs(),
        run.number("/sender/retransmits")?
    );
    Ok(vec![FigureReadings::once(run.goodput_bps / theory, note)])
}

/// One stream whose window is smaller than the path.
///
/// The kernel doubles `-w` for both buffers. It announces the payload for which it expects space in the
/// receiver's buffer, and a writer that has filled the sender's buffer sleeps until a third of it is free, so
/// the data in flight is neither W nor constant. The formula assumes a steady flow: without pacing the window
/// would be sent in bursts, which build their own queue.
pub(super) fn window(bed: &BenchContext, asked: u32) -> Result<Vec<FigureReadings>, String> {
    let network = LabNetwork::up(bed, "long-haul", &[])?;
    // At most the link rate, at which bursts would queue, and far above the window's rate, so that the window
    // is the limit. With twice the window's rate and small windows, the second of two segments acknowledged
    // together came so late that the round-trip time grew by 2 %.
    let pace = format!("{:.0}", (8.0 * expected::windowed(f64::from(asked), LONG_HAUL_S)).min(LINE_BPS));
    let asked = asked.to_string();
    let options = ["-C", "cubic", "-O", "1", "-i", "0.02", "-w", &asked, "--fq-rate", &pace];
    let upload = Upload { from: "a", to: "b", length: length(bed, 10, 3), options: &options };
    let run = network.upload(&upload, || ())?;
    let in_flight = in_flight(&run.sender())?;
    let theory = expected::windowed(in_flight, LONG_HAUL_S);
    let note = format!(
        "{:.2} of {:.2} Mb/s; W is the {in_flight:.0} bytes in flight on average (TCP_INFO), since of {} and {} granted to send and receive {:.0} were announced, and a full send buffer stops the writer until a third is free; smoothed RTT {:.2} ms; {}",
        run.goodput_bps / 1e6,
        theory / 1e6,
        run.number("/settings/window/granted_snd_bytes")?,
        run.number("/settings/window/granted_rcv_bytes")?,
        run.sender_mean("tcp.snd_wnd")?,
        run.sender_mean("tcp.srtt")? / 1e6,
        kept_up(&network.status()?["keeping_up"]),
    );
    Ok(vec![FigureReadings::once(run.goodput_bps / theory, note)])
}

/// Bytes sent and not acknowledged, averaged over the measured part.
fn in_flight(sender: &[ResultInterval]) -> Result<f64, String> {
    let of = |interval: &ResultInterval| {
        // The kernel counts packets, some of which are not full; the sum is limited by the window.
        Some(interval.read("tcp.unacked")?.min(interval.read("tcp.snd_wnd")?))
    };
    let all: Vec<f64> = sender.iter().filter(|interval| !interval.outside).filter_map(of).collect();
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    if mean > 0.0 { Ok(mean) } else { Err("the sender did not read what is in flight".to_owned()) }
}

/// Rate of the long line link of `science-dmz`, and its MTU.
const LAG_BPS: f64 = 10e9;
const LAG_MTU: f64 = 9000.0;

/// UDP traffic next to TCP: 2 Gb/s in datagrams that are not fragmented.
const CROSS_TRAFFIC_BPS: f64 = 2e9;
const CROSS_TRAFFIC_BYTES: f64 = 8192.0;

/// Pace of TCP: a little more than UDP leaves. The queue before the long line link therefore grows slowly, also in
/// slow start, and none builds up in the sender's own interface, which the formula does not consider.
const TCP_PACE_BPS: f64 = 8.2e9;

/// One stream next to UDP until the queue before the long line link is full: the sender's data in flight at that
/// moment.
pub(super) fn first_drop(bed: &BenchContext) -> Result<Vec<FigureReadings>, String> {
    // CUBIC needs a time proportional to the cube root of the window: a quick run needs a short path.
    let (delay_ms, buffer) = if bed.quick { (5.0, 4e6) } else { (25.0, 16e6) };
    let changes = [format!("link.core.delay={delay_ms}ms"), format!("link.core.from.s1.buffer={buffer}")];
    let network = LabNetwork::up(bed, "science-dmz", &changes.each_ref().map(String::as_str))?;
    let length = length(bed, 40, 20);
    let place = network.between("b", "d");
    let server = BenchTool::Linerate.serve(bed, &place)?;
    let (rate, datagram) = (CROSS_TRAFFIC_BPS.to_string(), CROSS_TRAFFIC_BYTES.to_string());
    let options = ["-u", "-b", &rate, "-l", &datagram, "-4", "--no-latency"];
    let command = BenchTool::Linerate.client(bed, &place, &server, length * 2, &options);
    let udp = ChildProcess::start(bed, &command)?;
    bed.wait(Duration::from_secs(2))?;
    let options = ["-C", "cubic", "-i", "0.02", "--fq-rate", &TCP_PACE_BPS.to_string()];
    let upload = Upload { from: "a", to: "c", length, options: &options };
    let run = network.upload(&upload, || ())?;
    drop(udp);
    let rtt_s = 2e-3 * delay_ms;
    let goodput = expected::tcp_goodput_with_udp(LAG_BPS, LAG_MTU, CROSS_TRAFFIC_BPS, CROSS_TRAFFIC_BYTES);
    let theory = expected::first_drop_window(goodput, rtt_s, buffer, LAG_BPS);
    let full = at_first_drop(&run, "s1>s2", rtt_s)?;
    let note = format!(
        "{:.2} of {:.2} MB, {:.1} s after the first byte; buffer {:.0} MB, {:.0} ms, TCP paced at {:.1} Gb/s; the smaller of cwnd and what is in flight, at the middle of the tenth of a second with the first drop, of which the sender learns a round trip later; {} retransmitted in all; {}",
        full.in_flight / 1e6,
        theory / 1e6,
        full.after_s,
        buffer / 1e6,
        rtt_s * 1e3,
        TCP_PACE_BPS / 1e9,
        run.number("/sender/retransmits")?,
        kept_up(&network.status()?["keeping_up"]),
    );
    Ok(vec![FigureReadings::once(full.in_flight / theory, note)])
}

/// The first time at which a buffer was full.
struct BufferFull {
    /// Data in flight at the sender, bytes.
    in_flight: f64,
    /// Time since the sender's first byte.
    after_s: f64,
}

fn at_first_drop(run: &UploadResult, port: &str, rtt_s: f64) -> Result<BufferFull, String> {
    let drops =
        |interval: &&ResultInterval| interval.read("port.dropped").is_some_and(|dropped| dropped > 0.0);
    let intervals = run.port(port);
    let dropped = intervals.iter().find(drops).ok_or_else(|| format!("nothing was dropped at {port}"))?;
    // Port times are relative to the start of the run, the sender's to its first byte. The client learned of
    // the first byte's arrival one round trip after it was sent.
    let first_byte_s = run.number("/receiver/first_read_ns")? / 1e9 - rtt_s;
    let after_s = f64::midpoint(dropped.start_s, dropped.end_s) - first_byte_s;
    let sender = run.sender();
    let before = sender.iter().rfind(|interval| interval.end_s <= after_s);
    let in_flight =
        before.and_then(|interval| Some(interval.read("tcp.cwnd")?.min(interval.read("tcp.unacked")?)));
    Ok(BufferFull { in_flight: in_flight.ok_or("the sender read nothing before the first drop")?, after_s })
}

#[cfg(test)]
mod tests {
    use super::super::result::tests::{interval_of, run};
    use super::*;
    use serde_json::json;

    #[test]
    fn the_last_sample_before_the_drop_counts() {
        // The first byte left at 0.1 s, the drop was between 2.0 and 2.1 s of the run, 1.95 s after that byte,
        // when the sample at 1 s was the latest.
        let full = at_first_drop(&run(), "s>b", 0.05).unwrap();
        assert_eq!(full.in_flight, 10.0);
        assert!((full.after_s - 1.95).abs() < 1e-9);
        // With the first byte at 0 s, the sample at 2 s is the latest, when less was in flight than the window
        // allows.
        assert_eq!(at_first_drop(&run(), "s>b", 0.15).unwrap().in_flight, 15.0);
        assert!(at_first_drop(&run(), "b>s", 0.1).is_err());
    }

    #[test]
    fn in_flight_is_what_is_not_acknowledged_and_fits_the_window() {
        let all = [(9000, 1), (3000, 8000), (8200, 8000), (9000, 1)]
            .map(|(unacked, window)| json!({ "tcp.unacked": unacked, "tcp.snd_wnd": window }));
        let sender: Vec<ResultInterval> =
            all.iter().zip([true, false, false, true]).map(|(r, outside)| interval_of(r, outside)).collect();
        assert_eq!(in_flight(&sender), Ok(5500.0));
        assert!(in_flight(&sender[..1]).is_err());
    }
}
