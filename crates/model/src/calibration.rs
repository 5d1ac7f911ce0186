//! The limits of a host, measured on the host itself.

use linerate_units::{Bitrate, Bytes, Ratio, Span};
use serde::{Deserialize, Serialize};

use crate::foreign_text::ForeignText;
use crate::host::HostInfo;
use crate::settings::SideSettings;
use crate::spec::{SendMethod, Transport};

/// Version of the calibration format; a reader accepts every version up to its own.
pub const CALIBRATION_SCHEMA: &str = "linerate.calibration/1";

/// The limits of one host, measured on the host itself, and the configuration they apply to.
///
/// They apply to the kernel, the processor and the number of cores they were measured with. Limits that could
/// not be measured are absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Calibration {
    /// Version of this format.
    pub schema: ForeignText,
    /// Wall-clock time, RFC 3339.
    pub measured_at: ForeignText,
    /// Version of linerate.
    pub linerate: ForeignText,
    /// Kernel name and release.
    pub kernel: ForeignText,
    /// Processor model.
    pub cpu: ForeignText,
    /// Processors online.
    pub cores: u32,
    /// Loopback throughput by mode, with both ends using the host's processors.
    pub loopback: Vec<LoopbackRate>,
    /// Rates at which one core copies memory, by block size.
    pub memory_copy: Vec<CopyRate>,
    /// Time of an empty system call.
    #[serde(rename = "syscall_ns", skip_serializing_if = "Option::is_none")]
    pub syscall: Option<Span>,
    /// Time to read the clock used for measuring.
    #[serde(rename = "clock_read_ns", skip_serializing_if = "Option::is_none")]
    pub clock_read: Option<Span>,
    /// Resolution of that clock.
    #[serde(rename = "clock_resolution_ns", skip_serializing_if = "Option::is_none")]
    pub clock_resolution: Option<Span>,
    /// Wake-up latency of a thread with a timed wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wake_up: Option<WakeUp>,
    /// Deviation of a paced flow from its requested rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing: Option<PacingError>,
}

/// Loopback throughput of a host in one mode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoopbackRate {
    /// What carries the data.
    pub transport: Transport,
    /// Number of streams.
    pub streams: u32,
    /// Requested zero-copy method of sending; absent for the usual copying.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<ForeignText>,
    /// Bytes per write, or payload of one datagram.
    pub length_bytes: Bytes,
    /// Goodput at the receiver.
    pub bitrate_bps: Bitrate,
}

/// The rate of memory copies of one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CopyRate {
    /// Size of the block.
    pub block_bytes: Bytes,
    /// Bits copied per second.
    pub bitrate_bps: Bitrate,
}

/// Wake-up latency of a thread with a timed wait on an idle host.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WakeUp {
    /// Number of timed waits.
    pub count: u32,
    /// Median.
    pub p50_ns: Span,
    /// 99th percentile.
    pub p99_ns: Span,
    /// Largest.
    pub max_ns: Span,
}

/// Deviation of a paced flow from its requested rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PacingError {
    /// The requested rate.
    pub asked_bps: Bitrate,
    /// The offered rate, by the sender's count.
    pub offered_bps: Bitrate,
    /// The difference as a share of the requested rate.
    pub error: Ratio,
}

impl Calibration {
    /// Names of the properties of that host that have changed; none while the calibration applies.
    #[must_use]
    pub fn outdated_by(&self, now: &HostInfo) -> Vec<&'static str> {
        let changes = [
            (self.kernel != now.kernel, "kernel"),
            (self.cpu != now.cpu, "processor"),
            (self.cores != now.cores, "number of processors"),
        ];
        changes.into_iter().filter(|(changed, _)| *changed).map(|(_, name)| name).collect()
    }

    /// The fastest method for one TCP stream with the usual block length. Absent if not all of them were measured.
    #[must_use]
    pub fn fastest_method(&self, may_copy: bool) -> Option<SendMethod> {
        let rate = |method: &SendMethod| {
            let name = Some(method.name()).filter(|_| *method != SendMethod::Copy);
            let same = |mode: &&LoopbackRate| {
                mode.transport == Transport::Tcp && mode.streams == 1 && mode.method.as_deref() == name
            };
            self.loopback.iter().find(same).map(|mode| (*method, mode.bitrate_bps.bps()))
        };
        let rates: Option<Vec<_>> = SendMethod::candidates(may_copy).iter().map(rate).collect();
        SendMethod::fastest(&rates?)
    }

    /// Loopback throughput in the mode closest to a flow with these settings: the same transport and sending
    /// method, and one stream for one, several for several. For datagrams the limit is their number, so the
    /// rate depends on their length.
    ///
    /// Absent if no such mode was measured, or if the blocks are shorter than in the calibration, because
    /// shorter blocks have a lower limit.
    #[must_use]
    pub fn loopback_limit(
        &self,
        transport: Transport,
        streams: u32,
        settings: &SideSettings,
    ) -> Option<Bitrate> {
        let same = self.loopback.iter().filter(|mode| {
            mode.transport == transport
                && mode.method.as_deref() == settings.method()
                && (mode.streams == 1) == (streams == 1)
        });
        let mode = same.max_by_key(|mode| mode.streams)?;
        let (length, calibrated) = (settings.length.get(), mode.length_bytes.get());
        if transport == Transport::Udp {
            return Bitrate::from_bps(mode.bitrate_bps.bps() * length as f64 / calibrated.max(1) as f64);
        }
        // With a length of 0 the program chose it, as in the calibration.
        (length == 0 || length >= calibrated).then_some(mode.bitrate_bps)
    }
}

impl HostInfo {
    /// The limits of this host, unless it has changed since they were measured.
    #[must_use]
    pub fn limits(&self) -> Option<&Calibration> {
        self.calibration.as_deref().filter(|calibration| calibration.outdated_by(self).is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> HostInfo {
        HostInfo { kernel: "Linux 6.18".into(), cpu: "a".into(), cores: 2, ..HostInfo::default() }
    }

    fn mode(transport: Transport, streams: u32, length: u64, bps: f64) -> LoopbackRate {
        LoopbackRate {
            transport,
            streams,
            method: None,
            length_bytes: Bytes::new(length),
            bitrate_bps: Bitrate::from_bps(bps).unwrap(),
        }
    }

    fn calibration() -> Calibration {
        Calibration {
            kernel: "Linux 6.18".into(),
            cpu: "a".into(),
            cores: 2,
            loopback: vec![
                mode(Transport::Tcp, 1, 131_072, 40e9),
                mode(Transport::Tcp, 4, 131_072, 60e9),
                mode(Transport::Udp, 1, 1448, 8e9),
            ],
            ..Calibration::default()
        }
    }

    #[test]
    fn the_fastest_method_is_known_when_all_were_measured() {
        let measured = |method: Option<&str>, bps| LoopbackRate {
            method: method.map(Into::into),
            ..mode(Transport::Tcp, 1, 524_288, bps)
        };
        let copy = measured(None, 5e10);
        let splice = measured(Some("splice"), 9e10);
        let mut calibration = Calibration { loopback: vec![copy, splice], ..calibration() };
        assert_eq!((calibration.fastest_method(true), calibration.fastest_method(false)), (None, None));
        calibration.loopback.push(measured(Some("sendfile"), 6e10));
        assert_eq!(calibration.fastest_method(true), Some(SendMethod::Splice));
        calibration.loopback[0].bitrate_bps = Bitrate::from_bps(1e11).unwrap();
        assert_eq!(calibration.fastest_method(true), Some(SendMethod::Copy));
        assert_eq!(calibration.fastest_method(false), Some(SendMethod::Splice));
    }

    #[test]
    fn another_kernel_processor_or_number_of_cores_makes_it_stale() {
        let calibration = calibration();
        assert!(calibration.outdated_by(&host()).is_empty());
        let newer = HostInfo { kernel: "Linux 6.19".into(), ..host() };
        assert_eq!(calibration.outdated_by(&newer), ["kernel"]);
        let more = HostInfo { cores: 4, cpu: "b".into(), ..host() };
        assert_eq!(calibration.outdated_by(&more), ["processor", "number of processors"]);
        let with = |info: HostInfo| HostInfo { calibration: Some(Box::new(calibration.clone())), ..info };
        assert!(with(host()).limits().is_some());
        assert!(with(newer).limits().is_none());
    }

    #[test]
    fn the_limit_is_that_of_the_nearest_mode() {
        let calibration = calibration();
        let settings = |length| SideSettings { length: Bytes::new(length), ..SideSettings::default() };
        let limit = |transport, streams, length| {
            calibration.loopback_limit(transport, streams, &settings(length)).map(Bitrate::bps)
        };
        assert_eq!(limit(Transport::Tcp, 1, 131_072), Some(40e9));
        assert_eq!(limit(Transport::Tcp, 16, 131_072), Some(60e9));
        assert_eq!(limit(Transport::Tcp, 1, 1000), None, "short blocks have a limit of their own");
        assert_eq!(limit(Transport::Udp, 1, 724), Some(4e9), "so many packets, half as long");
        assert_eq!(limit(Transport::Udp, 2, 1448), None, "not measured");
        let mut other = calibration.clone();
        other.loopback[0].method = Some("sendfile".into());
        assert_eq!(
            other.loopback_limit(Transport::Tcp, 1, &settings(131_072)),
            None,
            "another way of sending"
        );
    }

    #[test]
    fn a_host_without_calibration_reads_as_before() {
        let old: HostInfo = serde_json::from_str(r#"{"name":"a","kernel":"Linux 6.1","cores":2}"#).unwrap();
        assert_eq!(old.calibration, None);
        assert!(!serde_json::to_string(&old).unwrap().contains("calibration"));
        let newer = r#"{"calibration":{"schema":"linerate.calibration/1","syscall_ns":142,"later":1}}"#;
        let newer: HostInfo = serde_json::from_str(newer).unwrap();
        assert_eq!(newer.calibration.unwrap().syscall, Some(Span::from_ns(142)));
    }
}
