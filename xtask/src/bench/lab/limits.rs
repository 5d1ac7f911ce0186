//! Small packets: the rate that passes a port without loss at the switch.

use serde_json::Value;

use super::super::BenchContext;
use super::super::figure::FigureReadings;
use super::super::tools::{BenchTool, TIMEOUT};
use super::length;
use super::network::{LabNetwork, Upload, count, ports};
use crate::process::ChildProcess;

/// Payload of a packet, bytes.
const PAYLOAD: u32 = 64;

/// The first offered rate, packets per second.
const FIRST_RATE_PPS: f64 = 10_000.0;

/// Upper limit of any sender here.
const LAST_RATE_PPS: f64 = 6_400_000.0;

/// A sender that reaches less than this share of the requested rate is at its limit.
const MIN_SENT_SHARE: f64 = 0.95;

/// One offered rate.
struct OfferedRate {
    asked_pps: f64,
    /// Rate that the sender reached.
    sent_pps: f64,
    /// Packets lost by the switch or by the kernel before it.
    lost: u64,
    /// Whether the run has a caveat about the lab's limit; absent for programs without caveats.
    warned: Option<bool>,
}

/// How the search ended.
#[derive(Debug, PartialEq)]
enum LimitSearchEnd {
    /// The switch lost packets at this rate, packets per second, and at the next one.
    Lost(f64),
    /// The sender reached its limit.
    Sender,
    /// The last requested rate was reached.
    Asked,
}

/// linerate, which sends GSO batches if the kernel supports them, so that many packets share a frame.
pub(super) fn small_packets(bed: &BenchContext) -> Result<Vec<FigureReadings>, String> {
    let network = fast_pair(bed)?;
    let readings = search(bed, &network, |bitrate| {
        let payload = PAYLOAD.to_string();
        let options = ["-u", "-l", &payload, "-b", bitrate];
        let run =
            network.upload(&Upload { from: "a", to: "b", length: step(bed), options: &options }, || ())?;
        let sent = run.number("/sender/bitrate_bps")?;
        Ok((sent / packet_bits(), Some(run.has_caveat("lab_packet_limit"))))
    })?;
    Ok(vec![readings])
}

/// iperf3, which sends packets one by one: each is a frame and a system call on both sides of a TAP.
pub(super) fn small_frames(bed: &BenchContext) -> Result<Vec<FigureReadings>, String> {
    let network = fast_pair(bed)?;
    let place = network.between("a", "b");
    let server = BenchTool::Iperf3.serve(bed, &place)?;
    let readings = search(bed, &network, |bitrate| {
        let payload = PAYLOAD.to_string();
        let options = ["-4", "-u", "-l", &payload, "-b", bitrate];
        let command = BenchTool::Iperf3.client(bed, &place, &server, step(bed), &options);
        let output = ChildProcess::start(bed, &command)?.finish(step(bed) + TIMEOUT, |_| ())?;
        Ok((sent_by_iperf3(&output)?, None))
    })?;
    Ok(vec![readings])
}

/// Links that carry 9.6 million such packets per second, so that they are not the limit.
fn fast_pair(bed: &BenchContext) -> Result<LabNetwork<'_>, String> {
    LabNetwork::up(bed, "pair", &["link.a.rate=10G", "link.b.rate=10G"])
}

fn step(bed: &BenchContext) -> std::time::Duration {
    length(bed, 2, 1)
}

fn packet_bits() -> f64 {
    f64::from(PAYLOAD) * 8.0
}

/// Offers increasing rates until the lab loses packets or the sender reaches its limit.
fn search(
    bed: &BenchContext,
    network: &LabNetwork,
    mut offer: impl FnMut(&str) -> Result<(f64, Option<bool>), String>,
) -> Result<FigureReadings, String> {
    let growth = if bed.quick { 2.0 } else { 1.25 };
    let mut steps = Vec::new();
    let mut lost_before = lost(&network.status()?)?;
    let mut asked_pps = FIRST_RATE_PPS;
    while asked_pps <= LAST_RATE_PPS && verdict(&steps) == LimitSearchEnd::Asked {
        let (sent_pps, warned) = offer(&format!("{:.0}", asked_pps * packet_bits()))?;
        let lost_now = lost(&network.status()?)?;
        steps.push(OfferedRate { asked_pps, sent_pps, lost: lost_now - lost_before, warned });
        lost_before = lost_now;
        asked_pps *= growth;
    }
    readings(&steps)
        .ok_or_else(|| format!("packets were lost in the lab already at {FIRST_RATE_PPS:.0}/s and above"))
}

/// Packets dropped so far by ports or by the kernel before the switch.
fn lost(status: &Value) -> Result<u64, String> {
    let dropped: u64 = ports(status).map(|port| count(port, "dropped")).sum::<Result<_, _>>()?;
    Ok(dropped + count(&status["keeping_up"], "overrun")?)
}

/// Whether to end the search. A single step with loss may be an accident, two are not.
fn verdict(steps: &[OfferedRate]) -> LimitSearchEnd {
    match steps {
        [.., first, second] if first.lost > 0 && second.lost > 0 => LimitSearchEnd::Lost(first.asked_pps),
        [.., last] if last.sent_pps < MIN_SENT_SHARE * last.asked_pps => LimitSearchEnd::Sender,
        _ => LimitSearchEnd::Asked,
    }
}

/// The highest rate without loss; absent if there is none.
fn readings(steps: &[OfferedRate]) -> Option<FigureReadings> {
    let best = steps.iter().filter(|step| step.lost == 0).map(|step| step.sent_pps).reduce(f64::max)?;
    let end = match verdict(steps) {
        LimitSearchEnd::Lost(pps) => format!("packets were lost at the switch from {pps:.0}/s on"),
        LimitSearchEnd::Sender => "the sender gave no more, and the switch lost none".to_owned(),
        LimitSearchEnd::Asked => "no more was offered".to_owned(),
    };
    let warned: Vec<String> = steps
        .iter()
        .filter(|step| step.warned == Some(true))
        .map(|step| format!("{:.0}", step.asked_pps))
        .collect();
    let caveat = match (steps.iter().any(|step| step.warned.is_some()), warned.as_slice()) {
        (false, _) => String::new(),
        (true, []) => "; no run carried the caveat lab_packet_limit".to_owned(),
        (true, all) => format!("; caveat lab_packet_limit at {}/s", all.join(", ")),
    };
    Some(FigureReadings { all: vec![best], note: Some(format!("{PAYLOAD}-byte UDP payload; {end}{caveat}")) })
}

/// Packets per second that iperf3 reports as sent.
fn sent_by_iperf3(output: &[u8]) -> Result<f64, String> {
    let document: Value =
        serde_json::from_slice(output).map_err(|e| format!("iperf3 printed no JSON: {e}"))?;
    let sum = &document["end"]["sum"];
    match (sum["packets"].as_f64(), sum["seconds"].as_f64()) {
        (Some(packets), Some(seconds)) if seconds > 0.0 => Ok(packets / seconds),
        _ => Err(format!("iperf3 measured nothing: {}", document["error"])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn step(asked_pps: f64, sent_pps: f64, lost: u64, warned: Option<bool>) -> OfferedRate {
        OfferedRate { asked_pps, sent_pps, lost, warned }
    }

    #[test]
    fn the_limit_is_the_best_step_without_loss() {
        let steps = [
            step(100.0, 100.0, 0, Some(false)),
            step(200.0, 199.0, 0, Some(true)),
            step(300.0, 300.0, 1, Some(true)),
            step(400.0, 400.0, 0, Some(true)),
            step(500.0, 500.0, 1, Some(true)),
            step(600.0, 600.0, 2, Some(true)),
        ];
        assert_eq!(verdict(&steps[..5]), LimitSearchEnd::Asked, "one step with loss may be an accident");
        assert_eq!(verdict(&steps), LimitSearchEnd::Lost(500.0));
        let readings = readings(&steps).unwrap();
        assert_eq!(readings.all, [400.0]);
        let note = readings.note.unwrap();
        assert!(
            note.contains("lost at the switch from 500/s on") && note.contains("limit at 200, 300, 400"),
            "{note}"
        );
    }

    #[test]
    fn a_sender_at_its_own_end_ends_the_search() {
        assert_eq!(verdict(&[step(100.0, 96.0, 0, None)]), LimitSearchEnd::Asked);
        let steps = [step(100.0, 94.0, 0, None)];
        assert_eq!(verdict(&steps), LimitSearchEnd::Sender);
        let note = readings(&steps).unwrap().note.unwrap();
        assert!(note.contains("the sender gave no more") && !note.contains("caveat"), "{note}");
    }

    #[test]
    fn without_a_step_that_lost_nothing_there_is_no_limit() {
        assert!(readings(&[step(100.0, 100.0, 3, None)]).is_none());
    }

    #[test]
    fn what_the_kernel_dropped_counts_as_lost() {
        let status = json!({ "ports": [{ "dropped": 2 }, { "dropped": 1 }], "keeping_up": { "overrun": 4 } });
        assert_eq!(lost(&status), Ok(7));
        assert!(lost(&json!({ "ports": [], "keeping_up": {} })).is_err());
    }

    #[test]
    fn iperf3_counts_its_packets() {
        assert_eq!(sent_by_iperf3(br#"{"end":{"sum":{"packets":30,"seconds":2.0}}}"#), Ok(15.0));
        assert!(sent_by_iperf3(br#"{"end":{},"error":"refused"}"#).unwrap_err().contains("refused"));
    }
}
