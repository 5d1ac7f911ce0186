//! Every key of a description, declared once: its name, kind, default, help, and the field that it sets.
//!
//! The keys of a table are applied in this order, so a key that refines another comes after it: `red_min` after
//! `discipline`, `discipline` after `buffer`. Those of a link's directions are in `direction_keys`.

use linerate_units::Bytes;

use super::kind::{RequiredSetting, TopologyValueKind};
use super::{BufferSharing, SharedBuffer, Topology, TopologyHost, TopologyLink, TopologySwitch};
use crate::packet_batch::HashFields;

/// One key of a table that describes a `T`.
pub(super) struct TopologyKey<T> {
    /// Its name; a dot denotes a nested table.
    pub(super) name: &'static str,
    /// The kind of its value, and the field that it sets.
    pub(super) kind: TopologyValueKind<T>,
    /// The default, as it would be written; in words if it cannot be written.
    pub(super) default: &'static str,
    /// True if it may change while a lab runs.
    pub(super) live: bool,
    /// What it means.
    pub(super) help: &'static str,
}

pub(super) const fn key<T>(
    name: &'static str,
    kind: TopologyValueKind<T>,
    default: &'static str,
    help: &'static str,
) -> TopologyKey<T> {
    TopologyKey { name, kind, default, live: false, help }
}

pub(super) const fn live<T>(
    name: &'static str,
    kind: TopologyValueKind<T>,
    default: &'static str,
    help: &'static str,
) -> TopologyKey<T> {
    TopologyKey { name, kind, default, live: true, help }
}

/// Sets a field without any condition.
macro_rules! put {
    ($($field:ident).+) => {
        |target, value| {
            target.$($field).+ = value;
            Ok(())
        }
    };
}

pub(super) use put;

/// Keys outside of any table.
pub(super) const HEAD: &[TopologyKey<Topology>] = &[
    key("name", TopologyValueKind::Name(put!(name)), "the file's name", "Name of the network."),
    key("about", TopologyValueKind::Text(put!(about)), "nothing", "Purpose of the topology, in one line."),
    key(
        "seed",
        TopologyValueKind::Whole(0, u64::MAX, put!(seed)),
        "1",
        "Seed of all randomness: the same seed gives the same losses.",
    ),
];

/// Keys of `[host.NAME]`.
pub(super) const HOST: &[TopologyKey<TopologyHost>] = &[
    key(
        "address",
        TopologyValueKind::Address4(put!(v4)),
        "`10.77.0.N/24` for the Nth host",
        "IPv4 address with prefix length.",
    ),
    key(
        "address6",
        TopologyValueKind::Address6(put!(v6)),
        "`fd77::N/64` for the Nth host",
        "IPv6 address with prefix length. Not used if the MTU is below 1280.",
    ),
    key(
        "congestion",
        TopologyValueKind::Name(|host, name| {
            host.congestion = Some(name);
            Ok(())
        }),
        "the system's",
        "TCP congestion control, for example `cubic`.",
    ),
    key(
        "sysctl",
        TopologyValueKind::Settings(put!(sysctl)),
        "none",
        "Kernel settings below `net.`, for example `ipv4.tcp_rmem` with the value `\"4096 131072 \
         33554432\"`.",
    ),
];

/// Keys of `[switch.NAME]`.
pub(super) const SWITCH: &[TopologyKey<TopologySwitch>] = &[
    key(
        "buffer",
        TopologyValueKind::Memory(share),
        "each port has the buffer of its link",
        "Memory that all ports share; it replaces the buffers of the links that leave the switch.",
    ),
    key(
        "sharing",
        TopologyValueKind::Choice(&["dynamic", "static"], set_sharing),
        "\"dynamic\"",
        "Share of the buffer that a port may use: alpha times the memory that is currently free, or the \
         same fixed part for every port.",
    ),
    key(
        "alpha",
        TopologyValueKind::Factor(set_alpha),
        "1",
        "Factor of dynamic sharing (Choudhury and Hahne 1998).",
    ),
];

/// Keys of `[link.NAME]` for the link as a whole.
pub(super) const LINK: &[TopologyKey<TopologyLink>] = &[
    key("ends", TopologyValueKind::Ends(put!(ends)), "must be given", "The two nodes that the link joins."),
    key(
        "members",
        TopologyValueKind::Whole(1, 16, |link, count| {
            link.members = count as u32;
            Ok(())
        }),
        "1",
        "Number of equal member links (a LAG if above 1), each with its own queue.",
    ),
    key(
        "hash",
        TopologyValueKind::Several(&["mac", "ip", "ports"], set_hash),
        "[\"ip\", \"ports\"]",
        "Header fields that a LAG hashes to choose the member link; packets with equal fields take the same \
         one.",
    ),
    key(
        "nic",
        TopologyValueKind::Flag(put!(nic)),
        "true",
        "Limit the hosts at its ends to the rate of the link, as a NIC does.",
    ),
];

fn share(switch: &mut TopologySwitch, capacity: Bytes) -> Result<(), RequiredSetting> {
    let policy = switch.shared.map_or(BufferSharing::Dynamic { alpha: 1.0 }, |shared| shared.policy);
    switch.shared = Some(SharedBuffer { capacity, policy });
    Ok(())
}

fn set_sharing(switch: &mut TopologySwitch, sharing: &'static str) -> Result<(), RequiredSetting> {
    let shared = switch.shared.as_mut().ok_or(RequiredSetting("buffer"))?;
    shared.policy =
        if sharing == "static" { BufferSharing::Static } else { BufferSharing::Dynamic { alpha: 1.0 } };
    Ok(())
}

fn set_alpha(switch: &mut TopologySwitch, factor: f64) -> Result<(), RequiredSetting> {
    match switch.shared.as_mut().map(|shared| &mut shared.policy) {
        Some(BufferSharing::Dynamic { alpha }) => {
            *alpha = factor;
            Ok(())
        }
        Some(BufferSharing::Static) => Err(RequiredSetting("sharing = \"dynamic\"")),
        None => Err(RequiredSetting("buffer")),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "every setter takes its value")]
fn set_hash(link: &mut TopologyLink, fields: Vec<&'static str>) -> Result<(), RequiredSetting> {
    let has = |name| fields.contains(&name);
    link.hash = HashFields { mac: has("mac"), ip: has("ip"), ports: has("ports") };
    Ok(())
}
