//! Driver queries and settings (`SIOCETHTOOL`), by interface name, in the network namespace of the thread.

mod command;
mod features;

use std::io;
use std::os::fd::AsRawFd;

use socket2::{Domain, Socket, Type};

pub(crate) use command::Offload;
use command::{EthtoolCommand, Structure};
pub(crate) use features::InterfaceFeature;

/// Offset of the duplex byte in the link settings, after the command and the speed.
const DUPLEX_AT: usize = 4;
/// Offset of the byte with the number of words in a link mode mask.
const MODE_WORDS_AT: usize = 11;

/// A socket for `ioctl` on one interface.
pub(crate) struct EthtoolSocket {
    socket: Socket,
    request: libc::ifreq,
}

/// Speed and duplex as reported by the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LinkState {
    pub(crate) speed_mbps: Option<u32>,
    pub(crate) full_duplex: Option<bool>,
}

impl EthtoolSocket {
    /// `None` if the name is empty or too long for an interface.
    pub(crate) fn about(name: &str) -> Option<Self> {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).ok()?;
        // SAFETY: all zero is a valid ifreq (empty name, null pointers).
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        if name.is_empty() || name.len() >= request.ifr_name.len() {
            return None;
        }
        for (slot, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *slot = byte as libc::c_char;
        }
        Some(Self { socket, request })
    }

    fn ioctl(&mut self, number: libc::Ioctl) -> Option<()> {
        // SAFETY: `request` is a valid ifreq; callers that put a pointer into it keep its target alive and large enough.
        let ret = unsafe { libc::ioctl(self.socket.as_raw_fd(), number, &raw mut self.request) };
        (ret >= 0).then_some(())
    }

    pub(crate) fn mtu(&mut self) -> Option<u32> {
        self.ioctl(libc::SIOCGIFMTU as libc::Ioctl)?;
        // SAFETY: SIOCGIFMTU has just set this member, and every bit pattern is an integer.
        u32::try_from(unsafe { self.request.ifr_ifru.ifru_mtu }).ok()
    }

    pub(crate) fn index(&mut self) -> Option<u32> {
        self.ioctl(libc::SIOCGIFINDEX as libc::Ioctl)?;
        // SAFETY: SIOCGIFINDEX has just set this member, and every bit pattern is an integer.
        u32::try_from(unsafe { self.request.ifr_ifru.ifru_ifindex }).ok()
    }

    pub(crate) fn flags(&mut self) -> Option<i32> {
        self.ioctl(libc::SIOCGIFFLAGS as libc::Ioctl)?;
        // SAFETY: SIOCGIFFLAGS has just set this member, and every bit pattern is an integer.
        Some(i32::from(unsafe { self.request.ifr_ifru.ifru_flags }))
    }

    /// Runs the command in `structure`; returns the result of the `ioctl`.
    fn call(&mut self, structure: &mut Structure) -> io::Result<i32> {
        self.request.ifr_ifru.ifru_data = structure.as_mut_ptr();
        // SAFETY: `request` is a valid ifreq whose pointer leads to `structure`, which is alive and, as its
        // command made it, as large as the kernel assumes.
        let ret = unsafe {
            libc::ioctl(self.socket.as_raw_fd(), libc::SIOCETHTOOL as libc::Ioctl, &raw mut self.request)
        };
        self.request.ifr_ifru.ifru_data = std::ptr::null_mut();
        if ret < 0 { Err(io::Error::last_os_error()) } else { Ok(ret) }
    }

    /// Runs a query that needs no input besides its command.
    fn ask(&mut self, command: EthtoolCommand) -> Option<Structure> {
        let mut structure = command.structure();
        self.call(&mut structure).ok()?;
        Some(structure)
    }

    /// The state of an offload.
    pub(crate) fn setting(&mut self, offload: Offload) -> Option<bool> {
        self.ask(EthtoolCommand::Offload(offload)).map(|answer| answer[0] != 0)
    }

    /// Whether the NIC merges received segments (LRO).
    pub(crate) fn large_receive_offload(&mut self) -> Option<bool> {
        const LRO: u32 = 1 << 15;
        self.ask(EthtoolCommand::Flags).map(|answer| answer[0] & LRO != 0)
    }

    /// The driver's name and the NIC's bus address.
    pub(crate) fn driver(&mut self) -> Option<(String, String)> {
        self.ask(EthtoolCommand::Driver).map(|answer| (text(&answer[..8]), text(&answer[24..32])))
    }

    /// Whether the NIC can timestamp sent and received packets.
    pub(crate) fn hardware_timestamps(&mut self) -> Option<bool> {
        const BOTH_WAYS: u32 = libc::SOF_TIMESTAMPING_TX_HARDWARE | libc::SOF_TIMESTAMPING_RX_HARDWARE;
        self.ask(EthtoolCommand::Timestamping).map(|answer| answer[0] & BOTH_WAYS == BOTH_WAYS)
    }

    /// The link settings: speed and duplex, then words of link modes. The first call returns only the number of
    /// words.
    fn link_settings(&mut self) -> Option<Structure> {
        let first = self.ask(EthtoolCommand::LinkSettings)?;
        let needed = -i32::from(byte(&first, MODE_WORDS_AT) as i8);
        let mut settings = EthtoolCommand::LinkSettings.structure();
        set_byte(&mut settings, MODE_WORDS_AT, u8::try_from(needed).ok()?);
        self.call(&mut settings).ok()?;
        Some(settings)
    }

    /// Speed and duplex.
    pub(crate) fn wire(&mut self) -> Option<LinkState> {
        let settings = self.link_settings()?;
        Some(LinkState::decode(settings[0], byte(&settings, DUPLEX_AT)))
    }

    /// Sets the speed and full duplex, and keeps the other link settings.
    pub(crate) fn set_wire(&mut self, speed_mbps: u32) -> io::Result<()> {
        let mut order = self.link_settings().ok_or_else(io::Error::last_os_error)?.into_link_order();
        order[0] = speed_mbps;
        set_byte(&mut order, DUPLEX_AT, 1);
        self.call(&mut order).map(drop)
    }
}

impl LinkState {
    /// Drivers report 0 or all ones if unknown, for example without a cable.
    fn decode(speed_mbps: u32, duplex: u8) -> Self {
        Self {
            speed_mbps: Some(speed_mbps).filter(|&speed| speed != 0 && speed != u32::MAX),
            full_duplex: match duplex {
                0 => Some(false),
                1 => Some(true),
                _ => None,
            },
        }
    }
}

fn byte(words: &[u32], index: usize) -> u8 {
    words.get(index / 4).map_or(0, |word| word.to_ne_bytes()[index % 4])
}

fn set_byte(words: &mut [u32], index: usize, value: u8) {
    if let Some(word) = words.get_mut(index / 4) {
        let mut bytes = word.to_ne_bytes();
        bytes[index % 4] = value;
        *word = u32::from_ne_bytes(bytes);
    }
}

fn text(words: &[u32]) -> String {
    let bytes: Vec<u8> =
        words.iter().flat_map(|word| word.to_ne_bytes()).take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_speed_or_duplex_is_absent() {
        assert_eq!(LinkState::decode(u32::MAX, 255), LinkState::default());
        assert_eq!(LinkState::decode(0, 255), LinkState::default());
        let gigabit = LinkState { speed_mbps: Some(1000), full_duplex: Some(true) };
        assert_eq!(LinkState::decode(1000, 1), gigabit);
        assert_eq!(LinkState::decode(10, 0).full_duplex, Some(false));
    }

    #[test]
    fn names_that_no_interface_can_have_are_not_asked_about() {
        assert!(EthtoolSocket::about("").is_none());
        assert!(EthtoolSocket::about("sixteen-bytes-xx").is_none());
        assert_eq!(EthtoolSocket::about("nosuch0").unwrap().mtu(), None);
    }
}
