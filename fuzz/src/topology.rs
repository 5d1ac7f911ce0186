//! A topology file, and the network that it describes, with arbitrary packets in it.

use linerate_emu::fabric::{AttachmentPoint, Fabric, Router};
use linerate_emu::frame::Frame;
use linerate_emu::topology::{self, bundled};
use linerate_units::Timestamp;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Reads a file; a network that is accepted must also carry packets and count them consistently.
pub fn topology(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Ok(read) = topology::read(&text, "fuzz.toml", &[]) else { return };
    // A network of any size is valid, but large ones take too long here.
    if read.links.len() > 64 || read.links.iter().any(|link| link.members > 64) {
        return;
    }
    let router = Router { mac: [2, 0, 0, 0, 0, 1], v4: Ipv4Addr::LOCALHOST, v6: Ipv6Addr::LOCALHOST };
    let mut fabric: Fabric<Frame> = Fabric::new(&read, router);
    for (number, link) in read.links.iter().enumerate() {
        for (host, _) in read.hosts.iter().enumerate().filter(|(_, host)| link.ends.contains(&host.name)) {
            let buffer: Vec<u8> =
                std::iter::repeat_n(0, 12).chain([0xff; 6]).chain([2; 6]).chain([7; 60]).collect();
            let Ok(frame) = Frame::parse(buffer) else { continue };
            fabric.input(Timestamp::START, AttachmentPoint { host, link: number }, frame);
        }
    }
    fabric.advance(Timestamp::from_ns(1_000_000_000));
    assert!(fabric.accounting().balanced(), "{:?}", fabric.accounting());
}

/// The bundled topologies.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    bundled().iter().map(|known| known.text.as_bytes().to_vec()).collect()
}
