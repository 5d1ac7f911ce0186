//! Capacity of ports: TCP compared with the link rate, and a port without delay at full speed.

use std::time::Duration;

use super::super::BenchContext;
use super::super::figure::FigureReadings;
use super::super::tools::{BenchTool, TIMEOUT};
use super::meter::SwitchMeter;
use super::network::{LabNetwork, Upload, count, port};
use super::result::UploadResult;
use super::{expected, kept_up, length};
use crate::process::ChildProcess;

/// Omitted time at the start of a stream.
const SLOW_START: Duration = Duration::from_secs(1);

/// Both links of `pair` with this rate, MTU and number of VLAN tags.
fn pair(bed: &BenchContext, rate_bps: f64, mtu: u32, tags: u32) -> Result<LabNetwork<'_>, String> {
    let keys = |link| {
        [
            format!("link.{link}.rate={rate_bps}"),
            format!("link.{link}.mtu={mtu}"),
            format!("link.{link}.tags={tags}"),
        ]
    };
    let changes = ["a", "b"].map(keys).concat();
    LabNetwork::up(bed, "pair", &changes.iter().map(String::as_str).collect::<Vec<_>>())
}

/// One stream from a to b after its slow start.
fn one_stream(bed: &BenchContext, network: &LabNetwork, look: impl FnMut()) -> Result<UploadResult, String> {
    let options = ["-C", "cubic", "-O", &SLOW_START.as_secs().to_string()];
    let upload = Upload { from: "a", to: "b", length: length(bed, 5, 2), options: &options };
    network.upload(&upload, look)
}

/// TCP goodput as a share of the exact ceiling.
pub(super) fn goodput(
    bed: &BenchContext,
    rate_bps: f64,
    mtu: u32,
    tags: u32,
) -> Result<Vec<FigureReadings>, String> {
    let network = pair(bed, rate_bps, mtu, tags)?;
    let ceiling = expected::tcp_goodput(rate_bps, f64::from(mtu), f64::from(tags));
    let mut all = Vec::new();
    for _ in 0..bed.pairs {
        all.push(one_stream(bed, &network, || ())?.goodput_bps / ceiling);
    }
    let late = kept_up(&network.status()?["keeping_up"]);
    Ok(vec![FigureReadings { all, note: Some(format!("of {:.3} Mb/s; {late}", ceiling / 1e6)) }])
}

/// The receiver's figure of the real iperf3.
pub(super) fn iperf3(bed: &BenchContext) -> Result<Vec<FigureReadings>, String> {
    let network = LabNetwork::up(bed, "pair", &[])?;
    let place = network.between("a", "b");
    let server = BenchTool::Iperf3.serve(bed, &place)?;
    let options = ["-C", "cubic", "-O", "1", "-4"];
    let mut all = Vec::new();
    for _ in 0..bed.pairs {
        let command = BenchTool::Iperf3.client(bed, &place, &server, length(bed, 5, 2), &options);
        let output = ChildProcess::start(bed, &command)?.finish(length(bed, 10, 5) + TIMEOUT, |_| ())?;
        all.push(BenchTool::Iperf3.report(&output)?.bits_per_second / 1e6);
    }
    Ok(vec![FigureReadings { all, note: Some("iperf3's own receiver, which prints 941".to_owned()) }])
}

/// One stream through ports of 40 Gb/s, more than a core can process.
pub(super) fn without_delay(bed: &BenchContext) -> Result<Vec<FigureReadings>, String> {
    let network = pair(bed, 40e9, 9000, 0)?;
    let (mut all, mut meter) = (Vec::new(), SwitchMeter::new("s>b"));
    for _ in 0..bed.pairs {
        meter.begin(SLOW_START, length(bed, 5, 2));
        all.push(one_stream(bed, &network, || meter.read_if_due(&network))?.goodput_bps / 1e9);
    }
    let status = network.status()?;
    let dropped = count(port(&status, "a>s")?, "dropped")? + count(port(&status, "s>b")?, "dropped")?;
    let note = format!("MTU 9000; {dropped} packets dropped; {}", kept_up(&status["keeping_up"]));
    Ok(vec![FigureReadings { all, note: Some(note) }, meter.cost()])
}
