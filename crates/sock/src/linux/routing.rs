//! Changes to network interfaces, addresses, routes and root queueing disciplines (rtnetlink(7)).

use std::net::IpAddr;

use socket2::Socket;

use crate::SockError;
use crate::linux::ethtool::EthtoolSocket;
use crate::linux::netlink::{NetlinkRequest, act, attribute, open, root_waiting, send_drops};

/// A socket to configure the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct RoutingSocket(Socket);

/// Changes of an interface; `None` keeps a property as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkChange<'a> {
    /// Administrative state.
    pub up: Option<bool>,
    /// Ethernet address.
    pub mac: Option<[u8; 6]>,
    /// MTU, bytes.
    pub mtu: Option<u32>,
    /// Length of the transmit queue, packets.
    pub queue_packets: Option<u32>,
    /// Largest GSO packet for the device, bytes.
    pub super_frame: Option<u32>,
    /// Alias, at most 255 bytes.
    pub alias: Option<&'a str>,
}

/// A queueing discipline for the root of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootQdisc {
    /// `tbf`: a token bucket that queues packets without tokens.
    TokenBucket {
        /// Bytes per second, counting frames without their check sequence.
        rate: u64,
        /// Bucket size, bytes.
        burst: u32,
        /// Queue limit, bytes.
        limit: u32,
    },
    /// `pfifo`: a FIFO limited in packets.
    Fifo {
        /// Queue limit, packets.
        packets: u32,
    },
}

impl RoutingSocket {
    /// Opens a socket for the network namespace of the calling thread.
    ///
    /// # Errors
    /// `EMFILE` if the process is out of descriptors.
    pub fn open() -> Result<Self, SockError> {
        open().map(Self)
    }

    /// Changes an interface.
    ///
    /// # Errors
    /// `ENODEV` for an unknown index, `EPERM` without `CAP_NET_ADMIN` in the namespace, `EINVAL` for an MTU or an
    /// address that the device refuses.
    pub fn change(&self, index: u32, change: &LinkChange<'_>) -> Result<(), SockError> {
        let up_bit = libc::IFF_UP as u32;
        let (flags, mask) = change.up.map_or((0, 0), |up| (if up { up_bit } else { 0 }, up_bit));
        let mut body = [0; 16];
        put(&mut body, 4, index);
        put(&mut body, 8, flags);
        put(&mut body, 12, mask);
        let build = |mut request: NetlinkRequest| {
            if let Some(mac) = change.mac {
                request = request.attribute(libc::IFLA_ADDRESS, &mac);
            }
            if let Some(mtu) = change.mtu {
                request = request.attribute(libc::IFLA_MTU, &mtu.to_ne_bytes());
            }
            if let Some(packets) = change.queue_packets {
                request = request.attribute(libc::IFLA_TXQLEN, &packets.to_ne_bytes());
            }
            if let Some(bytes) = change.super_frame {
                // Up to 64 KiB this also applies to IPv4, which has its own attribute for larger sizes.
                request = request.attribute(libc::IFLA_GSO_MAX_SIZE, &bytes.to_ne_bytes());
            }
            if let Some(alias) = change.alias {
                request = request.attribute(libc::IFLA_IFALIAS, alias.as_bytes());
            }
            request
        };
        act("change the interface", &self.0, libc::RTM_SETLINK, 0, build, &body)
    }

    /// Packets that an interface dropped instead of sending, since it was created.
    ///
    /// # Errors
    /// `ENODEV` for an unknown index.
    pub fn send_drops(&self, index: u32) -> Result<u64, SockError> {
        send_drops(&self.0, index)
    }

    /// Adds an address that is usable at once, without duplicate address detection.
    ///
    /// # Errors
    /// `EEXIST` if the interface already has it, `EINVAL` for a prefix that is too long.
    pub fn add_address(&self, index: u32, address: IpAddr, prefix: u8) -> Result<(), SockError> {
        let (family, bytes) = octets(address);
        let mut body = [family, prefix, 0, 0, 0, 0, 0, 0];
        put(&mut body, 4, index);
        let build = |request: NetlinkRequest| {
            request
                .attribute(libc::IFA_LOCAL, &bytes)
                .attribute(libc::IFA_ADDRESS, &bytes)
                .attribute(libc::IFA_FLAGS, &libc::IFA_F_NODAD.to_ne_bytes())
        };
        act("add an address", &self.0, libc::RTM_NEWADDR, libc::NLM_F_CREATE | libc::NLM_F_EXCL, build, &body)
    }

    /// Replaces the queueing discipline at the root of an interface.
    ///
    /// # Errors
    /// `ENOENT` if this kernel does not have the discipline.
    pub fn replace_root_discipline(&self, index: u32, discipline: &RootQdisc) -> Result<(), SockError> {
        const ROOT: u32 = 0xffff_ffff;
        const TCA_KIND: u16 = 1;
        let (name, options): (&[u8], _) = match discipline {
            RootQdisc::TokenBucket { rate, burst, limit } => {
                (b"tbf\0", token_bucket_options(*rate, *burst, *limit))
            }
            RootQdisc::Fifo { packets } => (b"pfifo\0", packets.to_ne_bytes().to_vec()),
        };
        let mut body = [0; 20];
        put(&mut body, 4, index);
        // Without a handle (bytes 8 to 11) the kernel assigns one, and one kind may replace another.
        put(&mut body, 12, ROOT);
        let build = |request: NetlinkRequest| {
            request.attribute(TCA_KIND, name).attribute(libc::TCA_OPTIONS, &options)
        };
        let flags = libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
        act("set the queueing discipline", &self.0, libc::RTM_NEWQDISC, flags, build, &body)
    }
}

/// Index of an interface, in the network namespace of the calling thread.
///
/// # Errors
/// `ENODEV` if there is no interface with that name.
pub fn index_of(name: &str) -> Result<u32, SockError> {
    let absent = || SockError::errno("read the state of the interface", libc::ENODEV);
    EthtoolSocket::about(name).and_then(|mut ask| ask.index()).ok_or_else(absent)
}

/// Number of packets that wait in the root queueing discipline of an interface, in the network namespace of the
/// calling thread. A GSO packet counts once.
///
/// # Errors
/// `ENODEV` if there is no such interface, or its discipline has no queue.
pub fn waiting_packets(index: u32) -> Result<u32, SockError> {
    root_waiting(index)?.ok_or_else(|| SockError::errno("read the queue of the interface", libc::ENODEV))
}

/// Sets the speed that a TAP reports, full duplex, in the network namespace of the calling thread.
///
/// # Units
/// megabits per second
///
/// # Errors
/// `ENODEV` if there is no such interface, `EOPNOTSUPP` if its driver or an old kernel does not accept a speed.
pub fn set_speed(name: &str, mbps: u32) -> Result<(), SockError> {
    const OP: &str = "set the speed of the interface";
    let mut ask = EthtoolSocket::about(name).ok_or_else(|| SockError::errno(OP, libc::ENODEV))?;
    ask.set_wire(mbps).map_err(|source| SockError::new(OP, source))
}

/// The attributes of `tbf`: its fixed structure, the rate in 64 bits and the burst in bytes.
///
/// # Source
/// `linux/pkt_sched.h`: `tc_tbf_qopt`, `TCA_TBF_*`
pub(crate) fn token_bucket_options(rate: u64, burst: u32, limit: u32) -> Vec<u8> {
    const PARAMETERS: u16 = 1;
    const RATE_IN_64_BITS: u16 = 4;
    const BURST_IN_BYTES: u16 = 6;
    // With a link layer, the kernel computes transmission times itself and needs no rate table.
    const ETHERNET: u8 = 1;
    const LINK_LAYER_AT: usize = 1;
    const RATE_AT: usize = 8;
    const LIMIT_AT: usize = 24;
    let mut parameters = [0; 36];
    parameters[LINK_LAYER_AT] = ETHERNET;
    put(&mut parameters, RATE_AT, u32::try_from(rate).unwrap_or(u32::MAX));
    put(&mut parameters, LIMIT_AT, limit);
    [
        attribute(PARAMETERS, &parameters),
        attribute(RATE_IN_64_BITS, &rate.to_ne_bytes()),
        attribute(BURST_IN_BYTES, &burst.to_ne_bytes()),
    ]
    .concat()
}

/// Address family and bytes in network order.
fn octets(address: IpAddr) -> (u8, Vec<u8>) {
    match address {
        IpAddr::V4(v4) => (libc::AF_INET as u8, v4.octets().to_vec()),
        IpAddr::V6(v6) => (libc::AF_INET6 as u8, v6.octets().to_vec()),
    }
}

fn put(body: &mut [u8], at: usize, value: u32) {
    body[at..at + 4].copy_from_slice(&value.to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_bucket_is_laid_out_as_the_kernel_reads_it() {
        let options = token_bucket_options(5_000_000_000, 81_920, 10_000_000);
        // Attributes of 36, 8 and 4 bytes, each with a header of 4 bytes.
        assert_eq!(options.len(), 40 + 12 + 8);
        let word = |at: usize| u32::from_ne_bytes(*options[at..].first_chunk().unwrap());
        assert_eq!(word(4 + 8), u32::MAX, "a rate above 32 bits is in the 64-bit attribute");
        assert_eq!(word(4 + 24), 10_000_000);
        assert_eq!(u64::from_ne_bytes(*options[44..].first_chunk().unwrap()), 5_000_000_000);
        assert_eq!(word(56), 81_920);
    }

    #[test]
    fn an_interface_that_is_not_there_is_refused_by_the_kernel() {
        let routing = RoutingSocket::open().unwrap();
        let nowhere = i32::MAX as u32;
        // Without CAP_NET_ADMIN the kernel refuses before it looks up the index.
        let refusals = [Some(libc::ENODEV), Some(libc::EPERM)];
        let error = routing.change(nowhere, &LinkChange { up: Some(true), ..LinkChange::default() });
        assert!(refusals.contains(&error.unwrap_err().raw_os_error()));
        assert_eq!(routing.send_drops(nowhere).unwrap_err().raw_os_error(), Some(libc::ENODEV));
        assert_eq!(routing.send_drops(index_of("lo").unwrap()).unwrap(), 0);
        assert_eq!(waiting_packets(nowhere).unwrap_err().raw_os_error(), Some(libc::ENODEV));
        assert_eq!(index_of("nosuch0").unwrap_err().raw_os_error(), Some(libc::ENODEV));
        assert_eq!(set_speed("nosuch0", 1000).unwrap_err().raw_os_error(), Some(libc::ENODEV));
    }
}
