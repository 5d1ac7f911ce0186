//! What the hosts are told.

use linerate_units::Bitrate;
use serde::{Deserialize, Serialize};

/// What the hosts are told.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct HostKnobs {
    /// Keep this host's data threads on this CPU
    #[cfg_attr(feature = "clap", arg(short = 'A', long, value_name = "CPU", help_heading = "Hosts"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<u32>,
    /// Keep the server's data threads on this CPU
    #[cfg_attr(feature = "clap", arg(long, value_name = "CPU", help_heading = "Hosts"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_affinity: Option<u32>,
    /// Line rate of the slowest link on the path, when the interface here does not show it, for example 1G
    #[cfg_attr(feature = "clap", arg(long, value_name = "RATE", help_heading = "Hosts"))]
    #[serde(rename = "link_bps", skip_serializing_if = "Option::is_none")]
    pub link: Option<Bitrate>,
    /// Watch nothing while the load runs: no samples, no latency, no verdict; rates alone, to see what watching costs
    #[cfg_attr(feature = "clap", arg(long, conflicts_with = "until", help_heading = "Hosts"))]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unwatched: bool,
}
