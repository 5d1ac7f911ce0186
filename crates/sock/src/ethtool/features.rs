//! The features of an interface by the names that the kernel gives them, one bit each.

use std::io;
use std::os::fd::AsRawFd;

use super::{Questions, text};

const STRING_WORDS: usize = 8;
/// The kernel has under 100 features; an answer beyond this is none.
const MOST_FEATURES: u32 = 1024;
const BITS: usize = 32;

/// A feature of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Feature {
    /// As `ethtool -k` calls it, without the old names for groups.
    pub(crate) name: String,
    /// Its place among all.
    pub(crate) bit: usize,
    /// It can be switched.
    pub(crate) changeable: bool,
    /// What was asked for.
    pub(crate) wanted: bool,
    /// What is in force.
    pub(crate) active: bool,
}

impl Questions {
    /// As [`Questions::ask`], with the answer's number or the kernel's error.
    fn call(&mut self, words: &mut [u32]) -> io::Result<i32> {
        self.request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
        // SAFETY: `request` is a valid ifreq whose pointer leads to `words`, alive and large enough for this command.
        let ret = unsafe {
            libc::ioctl(self.socket.as_raw_fd(), libc::SIOCETHTOOL as libc::Ioctl, &raw mut self.request)
        };
        self.request.ifr_ifru.ifru_data = std::ptr::null_mut();
        if ret < 0 { Err(io::Error::last_os_error()) } else { Ok(ret) }
    }

    /// Every feature of the interface.
    ///
    /// # Source
    /// `linux/ethtool.h`: `ETHTOOL_GSSET_INFO`, `ETHTOOL_GSTRINGS`, `ETHTOOL_GFEATURES`
    pub(crate) fn features(&mut self) -> io::Result<Vec<Feature>> {
        const SET_INFO: u32 = 0x37;
        const STRINGS: u32 = 0x1b;
        const GET: u32 = 0x3a;
        const NAMES: u32 = 4;
        // The mask of sets is of 64 bits; its answer, one word for each set, stands behind it.
        let mut info = [SET_INFO, 0, 0, 0, 0];
        set_mask(&mut info, 1 << NAMES);
        self.call(&mut info)?;
        let count = info[4];
        if count > MOST_FEATURES {
            return Err(io::Error::from_raw_os_error(libc::EPROTO));
        }
        let mut names = vec![0; 3 + count as usize * STRING_WORDS];
        names[..3].copy_from_slice(&[STRINGS, NAMES, count]);
        self.call(&mut names)?;
        let blocks = (count as usize).div_ceil(BITS);
        let mut bits = vec![0; 2 + blocks * 4];
        bits[..2].copy_from_slice(&[GET, blocks as u32]);
        self.call(&mut bits)?;
        let names = names[3..].chunks(STRING_WORDS).map(text);
        let feature = |(bit, name): (usize, String)| {
            let block = &bits[2 + bit / BITS * 4..];
            let has = |word: usize| block[word] & (1 << (bit % BITS)) != 0;
            Feature { name, bit, changeable: has(0) && !has(3), wanted: has(1), active: has(2) }
        };
        Ok(names.enumerate().map(feature).collect())
    }

    /// Asks for some features, by their places, to be on or off; the others stay as they are.
    ///
    /// # Source
    /// `linux/ethtool.h`: `ETHTOOL_SFEATURES`
    pub(crate) fn set_features(&mut self, wanted: &[(usize, bool)]) -> io::Result<()> {
        const SET: u32 = 0x3b;
        let blocks = wanted.iter().map(|(bit, _)| bit / BITS + 1).max().unwrap_or_default();
        // The kernel takes all blocks or none, so the number is that of the whole set.
        let all = self.features()?.len().div_ceil(BITS);
        if blocks > all {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let mut words = vec![0; 2 + all * 2];
        words[..2].copy_from_slice(&[SET, all as u32]);
        for (bit, on) in wanted {
            let (at, mask) = (2 + bit / BITS * 2, 1 << (bit % BITS));
            words[at] |= mask;
            words[at + 1] |= if *on { mask } else { 0 };
        }
        self.call(&mut words).map(drop)
    }
}

/// Writes a mask of 64 bits to the third and fourth word.
fn set_mask(words: &mut [u32; 5], mask: u64) {
    let bytes = mask.to_ne_bytes();
    words[2] = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    words[3] = u32::from_ne_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_tells_its_features_by_name_and_agrees_with_the_old_questions() {
        let mut ask = Questions::about("lo").unwrap();
        let all = ask.features().unwrap();
        let find = |name: &str| all.iter().find(|feature| feature.name == name).unwrap();
        const GET_GSO: u32 = 0x23;
        assert_eq!(Some(find("tx-generic-segmentation").active), ask.setting(GET_GSO));
        assert!(!find("loopback").changeable, "a loopback cannot cease to be one");
        assert!(all.len() > 40, "{all:?}");
        assert!(Questions::about("nosuch0").unwrap().features().is_err());
    }
}
