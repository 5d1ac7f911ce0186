//! Offloads of an interface: each setting covers one or more features of the kernel.
//!
//! States contain the *requested* value of each feature, not the effective one: the kernel turns features off
//! while others that they depend on are off, and then restores the requested value.

use std::io;

use super::{HostSetting, Obstacle, no_state};
use crate::SockError;
use crate::linux::ethtool::{EthtoolSocket, InterfaceFeature};

/// Lets the NIC choose IP identifications of segments freely. It is part of TSO, but requesting TSO does not
/// request it.
const MANGLE_ID: &str = "tx-tcp-mangleid-segmentation";
/// The NIC gathers a packet from several buffers; segmentation depends on it.
const SCATTER_GATHER: &str = "tx-scatter-gather";

fn belongs(setting: HostSetting, feature: &str) -> bool {
    match setting {
        HostSetting::Tso => feature.starts_with("tx-tcp") && feature.ends_with("-segmentation"),
        HostSetting::Gso => feature == "tx-generic-segmentation",
        HostSetting::Gro => feature == "rx-gro",
        HostSetting::Lro => feature == "rx-lro",
        _ => false,
    }
}

fn failed(source: io::Error) -> SockError {
    SockError::new("change offloads of the interface", source)
}

fn ask(interface: &str) -> Result<(EthtoolSocket, Vec<InterfaceFeature>), SockError> {
    let mut ask =
        EthtoolSocket::about(interface).ok_or_else(|| failed(io::Error::from_raw_os_error(libc::ENODEV)))?;
    let features = ask.features().map_err(failed)?;
    Ok((ask, features))
}

/// The features that a setting covers.
fn group(interface: &str, setting: HostSetting) -> Result<Vec<InterfaceFeature>, SockError> {
    let (_, mut features) = ask(interface)?;
    features.retain(|feature| belongs(setting, &feature.name));
    Ok(features)
}

fn word(feature: &InterfaceFeature, on: bool) -> String {
    format!("{}={}", feature.name, if on { "on" } else { "off" })
}

/// The requested state of a feature when the setting is switched; absent if it stays unchanged.
fn asked(feature: &InterfaceFeature, on: bool) -> Option<bool> {
    (feature.changeable && !(on && feature.name == MANGLE_ID)).then_some(on)
}

pub(super) fn read(interface: &str, setting: HostSetting) -> Result<String, SockError> {
    let group = group(interface, setting)?;
    Ok(group.iter().map(|feature| word(feature, feature.wanted)).collect::<Vec<_>>().join(" "))
}

pub(super) fn becomes(interface: &str, setting: HostSetting, on: bool) -> Result<String, SockError> {
    let group = group(interface, setting)?;
    let words = group.iter().map(|feature| word(feature, asked(feature, on).unwrap_or(feature.wanted)));
    Ok(words.collect::<Vec<_>>().join(" "))
}

pub(super) fn set(interface: &str, setting: HostSetting, on: bool) -> Result<(), SockError> {
    let (mut ask, features) = ask(interface)?;
    let ours = || features.iter().filter(|feature| belongs(setting, &feature.name));
    let wanted: Vec<(usize, bool)> =
        ours().filter_map(|feature| Some((feature.bit, asked(feature, on)?))).collect();
    ask.set_features(&wanted).map_err(failed)?;
    let left: Vec<InterfaceFeature> = ask.features().map_err(failed)?;
    let refused = |feature: &InterfaceFeature| wanted.contains(&(feature.bit, on)) && feature.active != on;
    if left.iter().any(refused) {
        return Err(failed(io::Error::from_raw_os_error(libc::EOPNOTSUPP)));
    }
    Ok(())
}

pub(super) fn put_back(interface: &str, found: &str) -> Result<(), SockError> {
    let (mut ask, features) = ask(interface)?;
    let mut wanted = Vec::new();
    for part in found.split_whitespace() {
        let (name, state) = part.split_once('=').ok_or_else(no_state)?;
        let feature = features.iter().find(|feature| feature.name == name).ok_or_else(no_state)?;
        // A fixed feature was not changed here either.
        if feature.changeable {
            wanted.push((feature.bit, state == "on"));
        }
    }
    ask.set_features(&wanted).map_err(failed)
}

pub(super) fn obstacles(interface: &str, setting: HostSetting, on: bool) -> Result<Vec<Obstacle>, SockError> {
    let (_, features) = ask(interface)?;
    let name = setting.name();
    let ours: Vec<&InterfaceFeature> =
        features.iter().filter(|feature| belongs(setting, &feature.name)).collect();
    let mut found = Vec::new();
    let mut add = |what: String| found.push(Obstacle(format!("{name} of {interface}: {what}")));
    let can = ours.iter().any(|feature| asked(feature, on).is_some());
    let is = ours.iter().any(|feature| feature.active);
    if !can && is != on {
        let state = if is { "on" } else { "off" };
        add(format!("the NIC has it fixed to {state}; leave it as it is, or use another NIC"));
    }
    let needs_gathering = matches!(setting, HostSetting::Tso | HostSetting::Gso) && on;
    let gathers = features.iter().any(|feature| feature.name == SCATTER_GATHER && feature.active);
    if needs_gathering && !gathers {
        add(format!("it needs scatter-gather, which is off; enable it with: ethtool -K {interface} sg on"));
    }
    Ok(found)
}
