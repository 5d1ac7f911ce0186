//! Resources and timing of a switch: CPU, memory, lateness, times to start and stop.

use std::time::Duration;

use serde_json::Value;

use super::super::BenchContext;
use super::super::figure::FigureReadings;
use super::super::spread::Spread;
use super::meter::SwitchMeter;
use super::network::{LabNetwork, Upload, count, ports};
use super::{kept_up, length};
use crate::process::ProcessMemory;

/// 10 Gb/s for 25 ms: bytes on the long line link of `science-dmz` in the direction of the data.
const IN_FLIGHT: u64 = 31_250_000;

/// One stream over 10 Gb/s and 50 ms: its goodput, CPU use and cost per gigabyte of the switch, and its memory.
pub(super) fn long_fat_line(bed: &BenchContext) -> Result<Vec<FigureReadings>, String> {
    let network = LabNetwork::up(bed, "science-dmz", &[])?;
    let omit = Duration::from_secs(5);
    let upload = Upload {
        from: "a",
        to: "c",
        length: length(bed, 20, 5),
        options: &["-C", "cubic", "-O", &omit.as_secs().to_string()],
    };
    let mut meter = SwitchMeter::new("s1>s2");
    meter.begin(omit, upload.length);
    let run = network.upload(&upload, || meter.read_if_due(&network))?;
    let status = network.status()?;
    let memory = ProcessMemory::of(network.switch).ok_or("the switch has ended")?;
    let dropped: u64 = ports(&status).map(|port| count(port, "dropped")).sum::<Result<_, _>>()?;
    let retransmits = run.number("/sender/retransmits")?;
    let cores = std::mem::take(&mut meter.cores);
    let rate = format!(
        "after the first {} s; switch {:.2} of a core, {}; {dropped} packets dropped in slow start and later, {retransmits} retransmitted",
        omit.as_secs(),
        Spread::of(cores.clone()).map_or(f64::NAN, |seen| seen.median()),
        kept_up(&status["keeping_up"]),
    );
    let core = format!("of the last second, read {} times in the measured part", cores.len());
    Ok(vec![
        FigureReadings::once(run.goodput_bps / 1e9, rate),
        FigureReadings { all: cores, note: Some(core) },
        meter.cost(),
        own_memory(memory, &status)?,
    ])
}

/// Memory of a switch without the packets that it held: the peak of each port's buffer, and the bytes on the
/// link.
fn own_memory(memory: ProcessMemory, status: &Value) -> Result<FigureReadings, String> {
    let waited: u64 = ports(status).map(|port| count(port, "peak_bytes")).sum::<Result<_, _>>()?;
    let mib = |bytes: u64| bytes as f64 / 1_048_576.0;
    let own = mib(memory.high_water) - mib(waited) - mib(IN_FLIGHT);
    let note = format!(
        "at most {:.1} resident, less {:.1} in the buffers and {:.1} on the long line; {:.1} resident at the end",
        mib(memory.high_water),
        mib(waited),
        mib(IN_FLIGHT),
        mib(memory.resident)
    );
    Ok(FigureReadings::once(own, note))
}

/// Lateness of small packets in an otherwise idle switch.
pub(super) fn lateness(bed: &BenchContext) -> Result<Vec<FigureReadings>, String> {
    let network = LabNetwork::up(bed, "pair", &["link.b.delay=10ms"])?;
    // 100 packets of 64 bytes per second.
    let options = ["-u", "-l", "64", "-b", "51200"];
    network.upload(&Upload { from: "a", to: "b", length: length(bed, 20, 4), options: &options }, || ())?;
    let status = network.status()?;
    let keeping_up = &status["keeping_up"];
    let p99 = count(keeping_up, "late_p99_ns")? as f64 / 1e3;
    let note = format!("{} frames, 100/s of them measured; {}", keeping_up["frames"], kept_up(keeping_up));
    Ok(vec![FigureReadings::once(p99, note)])
}

/// Times to bring up and remove four hosts.
pub(super) fn up_and_down(bed: &BenchContext) -> Result<Vec<FigureReadings>, String> {
    let (mut up, mut down) = (Vec::new(), Vec::new());
    for _ in 0..bed.pairs {
        let network = LabNetwork::up(bed, "gigabit-switch-4", &[])?;
        up.push(network.up_time.as_secs_f64());
        down.push(network.down()?.as_secs_f64());
    }
    let note = |what: &str| Some(format!("gigabit-switch-4, `linerate lab {what}` from start to end"));
    Ok(vec![FigureReadings { all: up, note: note("up") }, FigureReadings { all: down, note: note("down") }])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn packets_are_not_the_switchs_own_memory() {
        let status = json!({ "ports": [{ "peak_bytes": 1_048_576 }, { "peak_bytes": 2_097_152 }] });
        // 31250000 bytes are 29.80 MiB.
        let memory = ProcessMemory { resident: 0, high_water: 40 << 20 };
        let own = own_memory(memory, &status).unwrap().all[0];
        assert!((own - 7.2).abs() < 0.01, "{own}");
        assert!(own_memory(memory, &json!({ "ports": [{}] })).is_err());
    }
}
