//! Whether the hosts of a run were its limit, by what they measured of themselves.

use linerate_model::{FlowRecord, HostInfo, RunRecord, SideSettings};
use linerate_units::{Bitrate, Ratio};

/// From this share of what a host carries to itself, the host may be the limit. Loopback pays for both ends and varies
/// by a tenth from hour to hour.
pub const NEAR: f64 = 0.9;

/// A host whose own limit is near.
#[derive(Debug, Clone, PartialEq)]
pub struct RigLimit {
    /// Name of the host.
    pub host: String,
    /// What it carries to itself in this mode.
    pub limit: Bitrate,
    /// The measured rate as a share of that.
    pub share: Ratio,
}

/// The host with the lowest limit, where the rate of a flow comes near it.
///
/// Units: ratio of bit rates. Domain: `None` where no host of the run has a calibration that holds for this mode.
/// Source: own definition; RFC 2544 §6 wants the tester's own limit known before a result is the network's.
#[must_use]
pub fn limited(record: &RunRecord, flow: &FlowRecord) -> Option<RigLimit> {
    let rate = flow.bitrate()?;
    let settings = flow.sender_settings.as_ref()?;
    let (sender, receiver) = record.ends(flow);
    let lowest = [sender, receiver]
        .into_iter()
        .flatten()
        .filter_map(|host| limit(host, flow, settings))
        .min_by(|a, b| a.1.bps().total_cmp(&b.1.bps()));
    let (host, limit) = lowest?;
    let share = Ratio::new(rate.bps() / limit.bps())?;
    (share.get() >= NEAR).then(|| RigLimit { host: host.name.clone(), limit, share })
}

fn limit<'a>(
    host: &'a HostInfo,
    flow: &FlowRecord,
    settings: &SideSettings,
) -> Option<(&'a HostInfo, Bitrate)> {
    let limit = host.limits()?.loopback_limit(flow.plan.transport, flow.plan.streams, settings)?;
    Some((host, limit))
}
