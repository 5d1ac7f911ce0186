//! A switch: its forwarding table, and how its ports share one memory.

use std::collections::BTreeMap;

use crate::topology::{BufferSharing, SharedBuffer};

/// Size of the forwarding table; when it is full, frames to unknown addresses are flooded.
const MAX_ADDRESSES: usize = 4096;

/// The state of a switch.
#[derive(Debug)]
pub(super) struct ForwardingTable {
    /// The memory shared by its ports.
    pub(super) shared: Option<SharedBuffer>,
    /// Its outgoing wires.
    pub(super) wires: Vec<usize>,
    table: BTreeMap<[u8; 6], usize>,
}

impl ForwardingTable {
    pub(super) fn new(shared: Option<SharedBuffer>) -> Self {
        Self { shared, wires: Vec::new(), table: BTreeMap::new() }
    }

    /// Learns that `address` is reached over `wire`.
    pub(super) fn learn(&mut self, address: [u8; 6], wire: usize) {
        let full = self.table.len() >= MAX_ADDRESSES;
        if !is_group(address) && (!full || self.table.contains_key(&address)) {
            self.table.insert(address, wire);
        }
    }

    /// The wire to an address; `None` for group addresses and for unknown ones.
    pub(super) fn look_up(&self, address: [u8; 6]) -> Option<usize> {
        if is_group(address) { None } else { self.table.get(&address).copied() }
    }
}

fn is_group(address: [u8; 6]) -> bool {
    address[0] & 1 == 1
}

/// The memory shared by the ports of a switch.
#[derive(Debug, Clone, Copy)]
pub(super) struct SharedMemory {
    pub(super) shared: SharedBuffer,
    /// Number of the ports.
    pub(super) ports: usize,
    /// Bytes that wait in all of them together.
    pub(super) waiting: u64,
}

impl SharedMemory {
    /// How many bytes of it a port may use at which `own` bytes wait.
    ///
    /// With a dynamic threshold a packet is accepted while the port holds less than alpha times the free memory. A
    /// batch is many packets, and each reduces the free memory: the bytes `x` that fit satisfy `own + x <= alpha
    /// (capacity - waiting - x)`.
    ///
    /// # Source
    /// Choudhury and Hahne, Dynamic Queue Length Thresholds for Shared-Memory Packet Switches, 1998
    pub(super) fn limit(&self, own: u64) -> u64 {
        let capacity = self.shared.capacity.get();
        let free = capacity.saturating_sub(self.waiting);
        match self.shared.policy {
            BufferSharing::Static => (capacity / self.ports.max(1) as u64).min(own + free),
            BufferSharing::Dynamic { alpha } => {
                let fits = (alpha * free as f64 - own as f64) / (1.0 + alpha);
                own + (fits.max(0.0) as u64).min(free)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_units::Bytes;

    fn dynamic(alpha: f64) -> SharedBuffer {
        SharedBuffer { capacity: Bytes::new(1_000_000), policy: BufferSharing::Dynamic { alpha } }
    }

    fn limit(shared: &SharedBuffer, ports: usize, own: u64, waiting: u64) -> u64 {
        SharedMemory { shared: *shared, ports, waiting }.limit(own)
    }

    #[test]
    fn one_port_alone_fills_alpha_over_one_plus_alpha() {
        // With n congested ports each converges to alpha B / (1 + n alpha).
        for (alpha, share) in [(1.0, 500_000), (2.0, 666_666), (0.5, 333_333)] {
            assert_eq!(limit(&dynamic(alpha), 4, 0, 0), share);
            assert_eq!(limit(&dynamic(alpha), 4, share, share), share, "a full port gets no more");
        }
        // Two ports at alpha 1: a third of the memory each, a third stays free for another port.
        assert_eq!(limit(&dynamic(1.0), 4, 333_333, 666_666), 333_333);
        assert_eq!(limit(&dynamic(1.0), 4, 0, 666_666), 166_667);
    }

    #[test]
    fn a_static_share_is_the_same_for_all_and_never_beyond_what_is_there() {
        let shared = SharedBuffer { capacity: Bytes::new(1_000_000), policy: BufferSharing::Static };
        assert_eq!(limit(&shared, 4, 0, 0), 250_000);
        assert_eq!(limit(&shared, 4, 100_000, 1_000_000), 100_000);
    }

    #[test]
    fn groups_are_flooded_and_a_full_table_learns_nothing_new() {
        let mut switch = ForwardingTable::new(None);
        switch.learn([1, 0, 0, 0, 0, 1], 7);
        assert_eq!(switch.look_up([1, 0, 0, 0, 0, 1]), None);
        for number in 0..=MAX_ADDRESSES as u32 {
            let [a, b, c, d] = number.to_be_bytes();
            switch.learn([2, 0, a, b, c, d], 3);
        }
        assert_eq!(switch.look_up([2, 0, 0, 0, 0, 0]), Some(3));
        assert_eq!(switch.look_up([2, 0, 0, 0, 0x10, 0]), None);
        switch.learn([2, 0, 0, 0, 0, 0], 4);
        assert_eq!(switch.look_up([2, 0, 0, 0, 0, 0]), Some(4), "a host that moved is found again");
    }
}
