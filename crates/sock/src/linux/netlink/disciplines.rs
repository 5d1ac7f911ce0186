//! Queueing disciplines and filters of an interface, as listed by the kernel.

use super::{attributes, dump, string, word};
use crate::SockError;

const TCMSG: usize = 20;
const HANDLE_AT: usize = 8;
const PARENT_AT: usize = 12;

/// A queueing discipline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundDiscipline {
    /// Handle, with the major number in the upper half; 0 for the kernel's default.
    pub(crate) handle: u32,
    /// Handle of the parent; all ones for the root.
    pub(crate) parent: u32,
    pub(crate) kind: String,
    /// Content of `TCA_OPTIONS`; absent without options.
    pub(crate) options: Option<Vec<u8>>,
    /// Whether it has a size table (`tc stab`).
    pub(crate) sizes: bool,
}

impl FoundDiscipline {
    pub(crate) fn is_root(&self) -> bool {
        self.parent == u32::MAX
    }
}

/// The disciplines of an interface.
pub(crate) fn disciplines(index: u32) -> Result<Vec<FoundDiscipline>, SockError> {
    let mut found = Vec::new();
    dump(libc::RTM_GETQDISC, &[0; TCMSG], |kind, body| {
        if kind == libc::RTM_NEWQDISC {
            found.extend(decode(body, index));
        }
        false
    })?;
    Ok(found)
}

fn decode(body: &[u8], index: u32) -> Option<FoundDiscipline> {
    const TCA_KIND: u16 = 1;
    const TCA_STAB: u16 = 8;
    if word(body, 4) != Some(index) {
        return None;
    }
    let (handle, parent) = (word(body, HANDLE_AT)?, word(body, PARENT_AT)?);
    let rest = body.get(TCMSG..)?;
    let find = |wanted: u16| attributes(rest).find(|(kind, _)| *kind == wanted).map(|(_, value)| value);
    Some(FoundDiscipline {
        handle,
        parent,
        kind: string(find(TCA_KIND)?),
        options: find(libc::TCA_OPTIONS).map(<[u8]>::to_vec),
        sizes: find(TCA_STAB).is_some(),
    })
}

/// Whether filters are attached to a discipline of an interface.
pub(crate) fn has_filters(index: u32, handle: u32) -> Result<bool, SockError> {
    let mut body = [0; TCMSG];
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    body[PARENT_AT..PARENT_AT + 4].copy_from_slice(&handle.to_ne_bytes());
    let mut found = false;
    dump(libc::RTM_GETTFILTER, &body, |kind, _| {
        found |= kind == libc::RTM_NEWTFILTER;
        found
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::super::attribute;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_discipline_is_read_with_its_place_and_its_options() {
        let mut body = vec![0; TCMSG];
        body[4..8].copy_from_slice(&4u32.to_ne_bytes());
        body[8..12].copy_from_slice(&0x8001_0000u32.to_ne_bytes());
        body[12..16].copy_from_slice(&u32::MAX.to_ne_bytes());
        body.extend(attribute(1, b"pfifo\0"));
        body.extend(attribute(2, &77u32.to_ne_bytes()));
        let found = decode(&body, 4).unwrap();
        assert!(found.is_root() && !found.sizes);
        assert_eq!((found.handle, found.kind.as_str()), (0x8001_0000, "pfifo"));
        assert_eq!(found.options, Some(77u32.to_ne_bytes().to_vec()));
        assert_eq!(decode(&body, 5), None);
        body.extend(attribute(8, &[]));
        assert!(decode(&body, 4).unwrap().sizes);
    }

    #[test]
    fn loopback_has_a_discipline_of_the_kernels_own_and_no_filters() {
        let index = crate::routing::index_of("lo").unwrap();
        let all = disciplines(index).unwrap();
        assert!(all.iter().any(|found| found.is_root() && found.handle == 0), "{all:?}");
        assert!(!has_filters(index, 0x8001_0000).unwrap());
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_decoder_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = decode(&bytes, 0);
        }
    }
}
