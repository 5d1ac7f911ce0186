//! The hosts of a run, with the state that can explain a result.

use std::collections::BTreeMap;

use linerate_units::{Bitrate, Bytes};
use serde::{Deserialize, Serialize};

use crate::calibration::Calibration;
use crate::foreign_text::ForeignText;

/// One host of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct HostInfo {
    /// Host name.
    pub name: ForeignText,
    /// Kernel name and release.
    pub kernel: ForeignText,
    /// Processor model.
    pub cpu: ForeignText,
    /// Processors online.
    pub cores: u32,
    /// Version of linerate.
    pub linerate: ForeignText,
    /// The address used in this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<ForeignText>,
    /// The interface that carries the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkInfo>,
    /// Rate at which this host copies memory in blocks of the test's length: the ceiling if both ends are on it. Only
    /// for the loopback.
    #[serde(rename = "memory_copy_bps", skip_serializing_if = "Option::is_none")]
    pub memory_copy: Option<Bitrate>,
    /// Kernel settings that can explain results, by their sysctl names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sysctls: BTreeMap<ForeignText, ForeignText>,
    /// The host's own calibration by `linerate doctor --calibrate`; absent if it was never made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Box<Calibration>>,
}

impl HostInfo {
    /// The largest value of a kernel buffer setting such as `net.ipv4.tcp_rmem`: its last number.
    #[must_use]
    pub fn buffer_limit(&self, sysctl: &str) -> Option<Bytes> {
        self.sysctls.get(sysctl)?.split_whitespace().last()?.parse().ok().map(Bytes::new)
    }
}

/// The interface that carries a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkInfo {
    /// Interface name.
    pub name: ForeignText,
    /// Its kind.
    pub kind: LinkKind,
    /// Line rate; absent if the device has none (loopback, veth) or does not report it.
    #[serde(rename = "speed_bps", default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<Bitrate>,
    /// Full duplex; absent if the device does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_duplex: Option<bool>,
    /// Largest IP packet.
    #[serde(rename = "mtu_bytes")]
    pub mtu: u32,
    /// Driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<ForeignText>,
    /// Offloads that are enabled, by their ethtool names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offloads: Vec<ForeignText>,
    /// Largest GSO packet if it is larger than usual (BIG TCP).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gso_max_bytes: Option<u32>,
    /// Largest GRO packet if it is larger than usual (BIG TCP).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gro_max_bytes: Option<u32>,
}

/// What kind of device an interface is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LinkKind {
    /// The host's connection to itself.
    Loopback,
    /// A virtual pair between namespaces.
    Veth,
    /// A device whose other end is a program.
    Tun,
    /// A software switch.
    Bridge,
    /// Any other virtual device.
    Virtual,
    /// A network card of a hypervisor. Two guests of one host may exceed the rate that it reports.
    Paravirtual,
    /// A device with a physical line.
    Physical,
}
