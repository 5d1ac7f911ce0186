//! Questions and orders to a network driver (`SIOCETHTOOL`), by interface name, in the network namespace of the thread.

mod features;

use std::io;
use std::os::fd::AsRawFd;

use socket2::{Domain, Socket, Type};

pub(crate) use features::Feature;

const GET_DRIVER: u32 = 0x03;
const GET_LINK_SETTINGS: u32 = 0x4c;
/// Room for the head and three masks of the most link modes that a length in a signed byte can name.
const LINK_SETTINGS_WORDS: usize = 12 + 3 * 127;
/// Place of the duplex byte: behind the command and the speed.
const DUPLEX_AT: usize = 8;

/// Everything `ioctl` says about interfaces goes through some socket.
pub(crate) struct Questions {
    socket: Socket,
    request: libc::ifreq,
}

/// What the driver says about the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LinkState {
    pub(crate) speed_mbps: Option<u32>,
    pub(crate) full_duplex: Option<bool>,
}

impl Questions {
    /// `None` when the name is longer than any interface's.
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

    /// Each ethtool structure is a row of 32-bit words led by the command. `words` must have room for the whole of it.
    fn ask(&mut self, words: &mut [u32]) -> Option<()> {
        self.request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
        let answer = self.ioctl(libc::SIOCETHTOOL as libc::Ioctl);
        self.request.ifr_ifru.ifru_data = std::ptr::null_mut();
        answer
    }

    /// An on-off setting by the number of its "get" command.
    pub(crate) fn setting(&mut self, command: u32) -> Option<bool> {
        let mut words = [command, 0];
        self.ask(&mut words)?;
        Some(words[1] != 0)
    }

    /// The old flags of the interface (`ETHTOOL_GFLAGS`); bit 15 is large receive offload.
    pub(crate) fn flag_bits(&mut self) -> Option<u32> {
        let mut words = [0x25, 0];
        self.ask(&mut words)?;
        Some(words[1])
    }

    /// The driver's name and its place on a bus.
    pub(crate) fn driver(&mut self) -> Option<(String, String)> {
        const SIZE_IN_WORDS: usize = 49;
        let mut words = [0; SIZE_IN_WORDS];
        words[0] = GET_DRIVER;
        self.ask(&mut words)?;
        Some((text(&words[1..9]), text(&words[25..33])))
    }

    /// True if the card can stamp sent and received packets itself.
    pub(crate) fn hardware_timestamps(&mut self) -> Option<bool> {
        const GET_TIMESTAMPING: u32 = 0x41;
        const SIZE_IN_WORDS: usize = 11;
        const BOTH_WAYS: u32 = libc::SOF_TIMESTAMPING_TX_HARDWARE | libc::SOF_TIMESTAMPING_RX_HARDWARE;
        let mut words = [0; SIZE_IN_WORDS];
        words[0] = GET_TIMESTAMPING;
        self.ask(&mut words)?;
        Some(words[1] & BOTH_WAYS == BOTH_WAYS)
    }

    /// The link settings: the head, then words of link modes. The first call only learns how many.
    fn link_settings(&mut self) -> Option<[u32; LINK_SETTINGS_WORDS]> {
        const MODE_WORDS_AT: usize = 15;
        let mut words = [0; LINK_SETTINGS_WORDS];
        words[0] = GET_LINK_SETTINGS;
        self.ask(&mut words)?;
        let needed = -i32::from(byte(&words, MODE_WORDS_AT) as i8);
        words.fill(0);
        words[0] = GET_LINK_SETTINGS;
        words[MODE_WORDS_AT / 4] = u32::from_ne_bytes([0, 0, 0, u8::try_from(needed).ok()?]);
        self.ask(&mut words)?;
        Some(words)
    }

    /// Speed and duplex.
    pub(crate) fn wire(&mut self) -> Option<LinkState> {
        let words = self.link_settings()?;
        Some(LinkState::decode(words[1], byte(&words, DUPLEX_AT)))
    }

    /// Sets the speed and full duplex, and leaves the other link settings as they are.
    pub(crate) fn set_wire(&mut self, speed_mbps: u32) -> io::Result<()> {
        const SET_LINK_SETTINGS: u32 = 0x4d;
        let mut words = self.link_settings().ok_or_else(io::Error::last_os_error)?;
        words[0] = SET_LINK_SETTINGS;
        words[1] = speed_mbps;
        let mut third = words[DUPLEX_AT / 4].to_ne_bytes();
        third[DUPLEX_AT % 4] = 1;
        words[DUPLEX_AT / 4] = u32::from_ne_bytes(third);
        self.ask(&mut words).ok_or_else(io::Error::last_os_error)
    }
}

impl LinkState {
    /// The driver says 0 or all ones when it does not know, as a card without a cable.
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
        assert!(Questions::about("").is_none());
        assert!(Questions::about("sixteen-bytes-xx").is_none());
        assert_eq!(Questions::about("nosuch0").unwrap().mtu(), None);
    }
}
