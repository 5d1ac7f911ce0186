//! The header fields that a LAG hashes.

use std::hash::Hasher;

use twox_hash::XxHash64;

use super::ip::Ip;
use crate::packet_batch::HashFields;

/// Offset of the end of both Ethernet addresses.
const ADDRESSES: usize = 12;

/// A hash of the chosen fields, in the order of the header: each direction of a flow has its own hash, as in
/// switches. Missing fields are skipped, missing ports count as 0.
pub(super) fn of(frame: &[u8], ip: Option<&Ip>, fields: HashFields, seed: u64) -> u64 {
    let mut hasher = XxHash64::with_seed(seed);
    if fields.mac {
        hasher.write(&frame[..ADDRESSES]);
    }
    if fields.ip {
        hasher.write(ip.map_or(&[], |ip| ip.addresses(frame)));
    }
    if fields.ports {
        hasher.write(ip.and_then(|ip| ip.ports(frame)).unwrap_or(&[0; 4]));
    }
    hasher.finish()
}
