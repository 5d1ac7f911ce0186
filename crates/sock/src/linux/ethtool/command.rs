//! The ethtool commands and the sizes of their structures: the kernel reads and writes as much as the command
//! implies, whatever the size of the buffer.

use std::ops::{Deref, DerefMut};

/// An on-off setting with its own command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offload {
    RxChecksum,
    TxChecksum,
    ScatterGather,
    Tso,
    Gso,
    Gro,
}

/// A query or a change.
///
/// # Source
/// `linux/ethtool.h`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EthtoolCommand {
    Offload(Offload),
    /// The legacy flags of the interface.
    Flags,
    Driver,
    Timestamping,
    LinkSettings,
    SetLinkSettings,
    /// Number of features with names.
    FeatureCount,
    /// Names of this number of features.
    FeatureNames(u32),
    /// States of this number of features.
    Features(u32),
    /// New states of this number of features.
    SetFeatures(u32),
}

/// Words of a name.
pub(super) const NAME_WORDS: usize = 8;
/// Features in one block of bits.
pub(super) const BLOCK_BITS: u32 = 32;
/// Words of the state of a block: available, requested, active, never changed.
pub(super) const STATE_WORDS: usize = 4;
/// Words of a change of a block: a mask of bits, and their values.
pub(super) const ORDER_WORDS: usize = 2;
/// The string set with the names of features (`ETH_SS_FEATURES`).
const FEATURE_SET: u32 = 4;

impl EthtoolCommand {
    const fn number(self) -> u32 {
        match self {
            Self::Offload(Offload::RxChecksum) => 0x14,
            Self::Offload(Offload::TxChecksum) => 0x16,
            Self::Offload(Offload::ScatterGather) => 0x18,
            Self::Offload(Offload::Tso) => 0x1e,
            Self::Offload(Offload::Gso) => 0x23,
            Self::Offload(Offload::Gro) => 0x2b,
            Self::Flags => 0x25,
            Self::Driver => 0x03,
            Self::Timestamping => 0x41,
            Self::LinkSettings => 0x4c,
            Self::SetLinkSettings => 0x4d,
            Self::FeatureCount => 0x37,
            Self::FeatureNames(_) => 0x1b,
            Self::Features(_) => 0x3a,
            Self::SetFeatures(_) => 0x3b,
        }
    }

    /// The words before the body: the command number and the sizes that follow it.
    fn head(self) -> Vec<u32> {
        match self {
            // The requested sets are an aligned 64-bit mask; the count of each follows.
            Self::FeatureCount => {
                let mask = (1_u64 << FEATURE_SET).to_ne_bytes();
                let word =
                    |at: usize| u32::from_ne_bytes([mask[at], mask[at + 1], mask[at + 2], mask[at + 3]]);
                vec![self.number(), 0, word(0), word(4)]
            }
            Self::FeatureNames(count) => vec![self.number(), FEATURE_SET, count],
            Self::Features(count) | Self::SetFeatures(count) => {
                vec![self.number(), count.div_ceil(BLOCK_BITS)]
            }
            _ => vec![self.number()],
        }
    }

    /// Number of words after the head.
    const fn body(self) -> usize {
        match self {
            Self::Offload(_) | Self::Flags | Self::FeatureCount => 1,
            Self::Driver => 48,
            Self::Timestamping => 10,
            // Three masks of the largest size that a signed byte can express.
            Self::LinkSettings | Self::SetLinkSettings => 11 + 3 * 127,
            Self::FeatureNames(count) => count as usize * NAME_WORDS,
            Self::Features(count) => count.div_ceil(BLOCK_BITS) as usize * STATE_WORDS,
            Self::SetFeatures(count) => count.div_ceil(BLOCK_BITS) as usize * ORDER_WORDS,
        }
    }

    /// The structure of the command, with a zeroed body.
    pub(super) fn structure(self) -> Structure {
        let mut words = self.head();
        let head = words.len();
        words.resize(head + self.body(), 0);
        Structure { words, head }
    }
}

/// The structure of a command in the size that the kernel assumes; only an [`EthtoolCommand`] creates one.
/// Its head cannot be changed, and its body is accessed as a slice.
pub(super) struct Structure {
    words: Vec<u32>,
    head: usize,
}

impl Structure {
    /// Pointer for the kernel.
    pub(super) fn as_mut_ptr(&mut self) -> *mut libc::c_char {
        self.words.as_mut_ptr().cast()
    }

    /// Converts the queried link settings to a command that sets them.
    pub(super) fn into_link_order(mut self) -> Self {
        let mut order = EthtoolCommand::SetLinkSettings.structure();
        order.swap_with_slice(&mut self);
        order
    }
}

impl Deref for Structure {
    type Target = [u32];
    fn deref(&self) -> &[u32] {
        &self.words[self.head..]
    }
}

impl DerefMut for Structure {
    fn deref_mut(&mut self) -> &mut [u32] {
        &mut self.words[self.head..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes of `linux/ethtool.h`, in bytes: ethtool_value 8, ethtool_drvinfo 196, ethtool_ts_info 44,
    /// ethtool_link_settings 48 and three masks, ethtool_sset_info 16 and a count, ethtool_gstrings 12 and 32 a name,
    /// ethtool_gfeatures 8 and 16 a block, ethtool_sfeatures 8 and 8 a block.
    #[test]
    fn every_structure_has_the_room_that_the_kernel_takes() {
        let sizes = [
            (EthtoolCommand::Offload(Offload::Gso), 8),
            (EthtoolCommand::Flags, 8),
            (EthtoolCommand::Driver, 196),
            (EthtoolCommand::Timestamping, 44),
            (EthtoolCommand::LinkSettings, 48 + 3 * 127 * 4),
            (EthtoolCommand::SetLinkSettings, 48 + 3 * 127 * 4),
            (EthtoolCommand::FeatureCount, 16 + 4),
            (EthtoolCommand::FeatureNames(65), 12 + 65 * 32),
            (EthtoolCommand::Features(65), 8 + 3 * 16),
            (EthtoolCommand::SetFeatures(64), 8 + 2 * 8),
        ];
        for (command, bytes) in sizes {
            assert_eq!(command.structure().words.len() * 4, bytes, "{command:?}");
        }
    }

    #[test]
    fn an_answer_becomes_an_order_with_all_it_says() {
        let mut answer = EthtoolCommand::LinkSettings.structure();
        answer[0] = 10_000;
        let order = answer.into_link_order();
        assert_eq!((order.words[0], order[0]), (0x4d, 10_000));
    }
}
