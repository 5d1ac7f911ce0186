//! Ceilings of the hosts at the ends of a described path.

use linerate_model::{Ceiling, Limit};
use serde::{Deserialize, Serialize};

use super::{Frames, Path};
use crate::ceilings::new_ceiling;
use crate::{format, host};

/// Description of the hosts. What is not described is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hosts {
    /// The processor of the slower host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpu>,
    /// Rate of the network card's slot, bit/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bus_bps: Option<f64>,
    /// Rate of the slower disk, bit/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_bps: Option<f64>,
}

/// A processor and its cost per packet.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// Clock of a core, Hz.
    pub frequency_hz: f64,
    /// Number of cores; a connection uses one.
    pub cores: u32,
    /// Cycles per packet, or per super-packet if the kernel merges packets.
    pub cycles_per_packet: f64,
    /// Cycles per byte of payload: copies and checksums.
    pub cycles_per_byte: f64,
}

impl Hosts {
    /// Whether all described values are finite and above zero.
    pub(super) fn are_usable(&self) -> bool {
        let usable = |value: f64| value.is_finite() && value > 0.0;
        let costs = self.cpu.map(|cpu| cpu.cycles_per_packet + cpu.cycles_per_byte);
        let free = self
            .cpu
            .is_some_and(|cpu| cpu.cycles_per_packet.min(cpu.cycles_per_byte) < 0.0 || cpu.cores == 0);
        let all = [self.cpu.map(|cpu| cpu.frequency_hz), costs, self.bus_bps, self.disk_bps];
        !free && all.into_iter().flatten().all(usable)
    }
}

/// The known ceilings of the hosts.
///
/// A bus carries whole frames without their FCS. The disk works at the same time as the network, so its rate is
/// a ceiling of its own.
pub(super) fn ceilings(path: &Path, frames: &Frames) -> impl Iterator<Item = Ceiling> {
    let hosts = &path.hosts;
    let cpu = hosts.cpu.and_then(|cpu| processor(path, frames, &cpu));
    let bus = hosts.bus_bps.map(|bus_bps| {
        let rate = bus_bps * frames.payload_bytes / (frames.frame_bytes - 4.0);
        new_ceiling(Limit::Bus, rate, format!("a slot of {}", format::rate(bus_bps)))
    });
    let disk = hosts.disk_bps.map(|disk_bps| {
        let because = format!("{} per second while the network is busy", format::size(disk_bps / 8.0));
        new_ceiling(Limit::Disk, disk_bps, because)
    });
    [cpu, bus, disk].into_iter().flatten()
}

fn processor(path: &Path, frames: &Frames, cpu: &Cpu) -> Option<Ceiling> {
    let cores = path.streams.min(cpu.cores);
    let rate = host::cpu_rate_bps(
        cpu.frequency_hz,
        f64::from(cores),
        cpu.cycles_per_packet,
        cpu.cycles_per_byte,
        frames.payload_bytes,
    )?;
    let because = format!(
        "{cores} core(s) of {} GHz, {} cycles per packet and {} per byte",
        cpu.frequency_hz / 1e9,
        cpu.cycles_per_packet,
        cpu.cycles_per_byte
    );
    Some(new_ceiling(Limit::Cpu, rate, because))
}

#[cfg(test)]
mod tests {
    use super::super::{PathError, envelope};
    use super::*;

    fn bound(hosts: Hosts, mtu_bytes: f64, streams: u32) -> Ceiling {
        let path = Path { link_bps: 400e9, mtu_bytes, streams, hosts, ..Path::gigabit() };
        envelope(&path).unwrap().binding
    }

    #[test]
    fn a_processor_a_slot_and_a_disk_bind_below_a_fast_link() {
        let cpu = Cpu { frequency_hz: 1.8e9, cores: 2, cycles_per_packet: 10_000.0, cycles_per_byte: 2.0 };
        let cpu = Hosts { cpu: Some(cpu), ..Hosts::default() };
        // 1.8e9 / (10000 + 2 × 1448) × 1448 × 8, and the same with 8948.
        assert!((bound(cpu, 1500.0, 1).bitrate_bps - 1616.88e6).abs() < 1e4);
        assert!((bound(cpu, 9000.0, 1).bitrate_bps - 4619.0e6).abs() < 1e5);
        assert!((bound(cpu, 1500.0, 5).bitrate_bps - 2.0 * 1616.88e6).abs() < 2e4, "two cores");
        let bus = Hosts { bus_bps: Some(1056e6), ..Hosts::default() };
        let found = bound(bus, 1500.0, 1);
        assert_eq!(found.limit, Limit::Bus);
        assert!((found.bitrate_bps - 1056e6 * 1448.0 / 1514.0).abs() < 1.0);
        let disk = Hosts { disk_bps: Some(480e6), ..Hosts::default() };
        assert_eq!((bound(disk, 1500.0, 1).limit, bound(disk, 1500.0, 1).bitrate_bps), (Limit::Disk, 480e6));
    }

    #[test]
    fn hosts_that_cannot_be_are_refused() {
        let cpu = Cpu { frequency_hz: 1e9, cores: 1, cycles_per_packet: 0.0, cycles_per_byte: 1.0 };
        let refused = |hosts: Hosts| envelope(&Path { hosts, ..Path::gigabit() }) == Err(PathError::Hosts);
        let of = |cpu: Cpu| Hosts { cpu: Some(cpu), ..Hosts::default() };
        assert!(!refused(of(cpu)));
        assert!(refused(of(Cpu { cores: 0, ..cpu })));
        assert!(refused(of(Cpu { cycles_per_byte: 0.0, ..cpu })), "free of charge");
        assert!(refused(of(Cpu { cycles_per_packet: -1.0, ..cpu })));
        assert!(refused(Hosts { bus_bps: Some(0.0), ..Hosts::default() }));
        assert!(refused(Hosts { disk_bps: Some(f64::NAN), ..Hosts::default() }));
    }
}
