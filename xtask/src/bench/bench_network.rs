//! Location of a measurement: over loopback, between two network namespaces, or in a lab.

use crate::netns::{Namespaces, enter, ip};

/// Location of server and client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BenchLocation {
    /// Both in this namespace.
    Loopback,
    /// In two namespaces connected by a veth pair.
    Veth,
    /// The same without segmentation and merging: each packet passes the stack by itself.
    VethWithoutOffloads,
    /// The same over IPv6 with an MTU of 9000 bytes and packets of 192 KiB (BIG TCP).
    VethBigTcp,
}

/// A network that is ready; everything created for it is removed with it.
pub(super) struct BenchNetwork {
    /// Address of the server for the client.
    pub(super) address: String,
    /// Prefix of the server's command.
    pub(super) for_server: Vec<String>,
    /// Prefix of the client's command.
    pub(super) for_client: Vec<String>,
    _namespaces: Option<Namespaces>,
}

impl BenchNetwork {
    /// Creates the network; absent if this host forbids it.
    pub(super) fn make(place: BenchLocation) -> Result<Option<Self>, String> {
        match place {
            BenchLocation::Loopback => Ok(Some(Self::at("127.0.0.1", Vec::new(), Vec::new()))),
            _ if !is_root() => Ok(None),
            veth => {
                let both = joined()?;
                for host in [0, 1] {
                    veth.adjust(both.name(host))?;
                }
                let (for_server, for_client) = (enter(both.name(0)), enter(both.name(1)));
                let address =
                    if veth == BenchLocation::VethBigTcp { SERVER_ADDRESS6 } else { SERVER_ADDRESS };
                let place = Self::at(address, for_server, for_client);
                Ok(Some(Self { _namespaces: Some(both), ..place }))
            }
        }
    }

    /// A network created elsewhere.
    pub(super) fn at(address: &str, for_server: Vec<String>, for_client: Vec<String>) -> Self {
        Self { address: address.to_owned(), for_server, for_client, _namespaces: None }
    }
}

const SERVER_ADDRESS: &str = "10.83.0.1";
const CLIENT_ADDRESS: &str = "10.83.0.2";
const SERVER_ADDRESS6: &str = "fd83::1";
const CLIENT_ADDRESS6: &str = "fd83::2";

impl BenchLocation {
    /// Changes the settings of an end of the pair.
    fn adjust(self, namespace: &str) -> Result<(), String> {
        match self {
            Self::Loopback | Self::Veth => Ok(()),
            Self::VethWithoutOffloads => {
                let off = ["tso", "off", "gso", "off", "gro", "off", "tx-udp-segmentation", "off"];
                let command = [&["netns", "exec", namespace, "ethtool", "-K", "veth0"], &off[..]].concat();
                ip(&command)
            }
            // iproute2 of Debian 12 sets these sizes only for IPv6.
            Self::VethBigTcp => {
                let sizes = ["mtu", "9000", "gso_max_size", "196608", "gro_max_size", "196608"];
                ip(&[&["-n", namespace, "link", "set", "veth0"], &sizes[..]].concat())
            }
        }
    }
}

/// Whether this program may create namespaces.
pub(super) fn is_root() -> bool {
    // The owner of our own entry is our effective user.
    std::fs::metadata("/proc/self").is_ok_and(|entry| std::os::unix::fs::MetadataExt::uid(&entry) == 0)
}

/// Two namespaces connected by a veth pair: the server's and the client's.
fn joined() -> Result<Namespaces, String> {
    let both = Namespaces::make("bench", 0, &["s", "c"])?;
    let (server, client) = (both.name(0), both.name(1));
    ip(&["link", "add", "veth0", "netns", server, "type", "veth", "peer", "name", "veth0", "netns", client])?;
    let addresses = [(server, SERVER_ADDRESS, SERVER_ADDRESS6), (client, CLIENT_ADDRESS, CLIENT_ADDRESS6)];
    for (namespace, address, address6) in addresses {
        ip(&["-n", namespace, "address", "add", &format!("{address}/30"), "dev", "veth0"])?;
        ip(&["-n", namespace, "address", "add", &format!("{address6}/64"), "dev", "veth0", "nodad"])?;
        ip(&["-n", namespace, "link", "set", "veth0", "up"])?;
    }
    Ok(both)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn namespaces() -> String {
        crate::netns::output("ip", &["netns", "list"]).unwrap()
    }

    #[test]
    #[ignore = "needs root"]
    fn the_namespaces_go_with_the_place() {
        let place = BenchNetwork::make(BenchLocation::Veth).unwrap().unwrap();
        let name = place.for_server[3].clone();
        assert!(namespaces().contains(&name));
        drop(place);
        assert!(!namespaces().contains(&name));
    }

    #[test]
    fn loopback_needs_nothing() {
        let place = BenchNetwork::make(BenchLocation::Loopback).unwrap().unwrap();
        assert!(place.for_server.is_empty() && place.for_client.is_empty());
    }
}
