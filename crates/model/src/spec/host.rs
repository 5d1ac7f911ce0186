//! Settings of the hosts.

use linerate_units::Bitrate;
use serde::{Deserialize, Serialize};

/// Settings of the hosts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct HostKnobs {
    /// Pin this host's data threads to this CPU
    #[cfg_attr(feature = "clap", arg(short = 'A', long, value_name = "CPU", help_heading = "Hosts"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<u32>,
    /// Pin the server's data threads to this CPU
    #[cfg_attr(feature = "clap", arg(long, value_name = "CPU", help_heading = "Hosts"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_affinity: Option<u32>,
    /// Line rate of the slowest link on the path, if the local interface does not show it, for example 1G
    #[cfg_attr(feature = "clap", arg(long, value_name = "RATE", help_heading = "Hosts"))]
    #[serde(rename = "link_bps", skip_serializing_if = "Option::is_none")]
    pub link: Option<Bitrate>,
    /// Only measure rates: no samples, latency or verdict during the load; shows the cost of measuring
    #[cfg_attr(feature = "clap", arg(long, conflicts_with = "until", help_heading = "Hosts"))]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_sampling: bool,
}
