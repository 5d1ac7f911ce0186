//! The features of an interface by their names in the kernel, one bit each.

use std::io;

use super::command::{BLOCK_BITS, EthtoolCommand, NAME_WORDS, ORDER_WORDS, STATE_WORDS};
use super::{EthtoolSocket, text};

/// The kernel has fewer than 100 features; a larger count than this is invalid.
const MAX_FEATURES: u32 = 1024;
const BITS: usize = BLOCK_BITS as usize;

/// A feature of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InterfaceFeature {
    /// Name as in `ethtool -k`, without its legacy names of groups.
    pub(crate) name: String,
    /// Number of its bit.
    pub(crate) bit: usize,
    /// Whether it can be switched.
    pub(crate) changeable: bool,
    /// Requested state.
    pub(crate) wanted: bool,
    /// Effective state.
    pub(crate) active: bool,
}

impl EthtoolSocket {
    /// Number of features that the kernel has.
    fn feature_count(&mut self) -> io::Result<u32> {
        let mut count = EthtoolCommand::FeatureCount.structure();
        self.call(&mut count)?;
        if count[0] > MAX_FEATURES {
            return Err(io::Error::from_raw_os_error(libc::EPROTO));
        }
        Ok(count[0])
    }

    /// Every feature of the interface.
    pub(crate) fn features(&mut self) -> io::Result<Vec<InterfaceFeature>> {
        let count = self.feature_count()?;
        let mut names = EthtoolCommand::FeatureNames(count).structure();
        self.call(&mut names)?;
        let mut states = EthtoolCommand::Features(count).structure();
        self.call(&mut states)?;
        let names = names.chunks(NAME_WORDS).map(text);
        let feature = |(bit, name): (usize, String)| {
            let block = &states[bit / BITS * STATE_WORDS..];
            let has = |word: usize| block[word] & (1 << (bit % BITS)) != 0;
            InterfaceFeature { name, bit, changeable: has(0) && !has(3), wanted: has(1), active: has(2) }
        };
        Ok(names.enumerate().map(feature).collect())
    }

    /// Requests states of some features, by number; the others stay unchanged. The kernel applies all blocks or
    /// none.
    pub(crate) fn set_features(&mut self, wanted: &[(usize, bool)]) -> io::Result<()> {
        let mut order = EthtoolCommand::SetFeatures(self.feature_count()?).structure();
        for (bit, on) in wanted {
            let (at, mask) = (bit / BITS * ORDER_WORDS, 1 << (bit % BITS));
            let Some([which, values]) = order.get_mut(at..at + ORDER_WORDS) else {
                return Err(io::Error::from_raw_os_error(libc::EINVAL));
            };
            *which |= mask;
            *values |= if *on { mask } else { 0 };
        }
        self.call(&mut order).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::ethtool::Offload;

    #[test]
    fn loopback_reports_its_features_by_name_and_agrees_with_the_old_requests() {
        let mut ask = EthtoolSocket::about("lo").unwrap();
        let all = ask.features().unwrap();
        let find = |name: &str| all.iter().find(|feature| feature.name == name).unwrap();
        assert_eq!(Some(find("tx-generic-segmentation").active), ask.setting(Offload::Gso));
        assert!(!find("loopback").changeable, "a loopback cannot cease to be one");
        assert!(all.len() > 40, "{all:?}");
        assert!(EthtoolSocket::about("nosuch0").unwrap().features().is_err());
    }
}
