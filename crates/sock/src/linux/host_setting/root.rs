//! The queueing discipline at the root of an interface.
//!
//! When ours is deleted, the kernel attaches its default again. A discipline that somebody configured is
//! restored from the kernel's own description, which works for disciplines without classes, filters or size
//! tables. All others are refused, as they would be lost.

use super::{Obstacle, no_state};
use crate::discipline::RootDiscipline;
use crate::linux::netlink::{self, FoundDiscipline, act, open};
use crate::routing::index_of;
use crate::{SockError, netns};

const ROOT: u32 = u32::MAX;
/// Parent of `ingress` and `clsact`, which do not change with the root.
const INGRESS: u32 = 0xffff_fff1;
const TCA_KIND: u16 = 1;
/// Handles of our disciplines: "lr", and the next number for one that replaces another of ours.
const OWN_HANDLES: [u16; 2] = [0x6c72, 0x6c73];
/// Kinds whose options have the same format in the kernel's answers and requests.
const RESTORABLE_KINDS: [&str; 8] =
    ["fq", "fq_codel", "codel", "pfifo", "bfifo", "pfifo_fast", "noqueue", "tbf"];
const DEFAULT: &str = "default";

pub(super) fn is_kernels_own(state: &str) -> bool {
    state.split(' ').next() == Some(DEFAULT)
}

/// `default KIND` for the kernel's default, otherwise `KIND HANDLE: OPTIONS`, with the options in hexadecimal
/// digits.
pub(super) fn read(interface: &str) -> Result<String, SockError> {
    let index = index_of(interface)?;
    let all = netlink::disciplines(index)?;
    let Some(root) = all.iter().find(|found| found.is_root()) else {
        return Ok(format!("{DEFAULT} none"));
    };
    if root.handle == 0 {
        return Ok(format!("{DEFAULT} {}", root.kind));
    }
    let options: String =
        root.options.as_deref().unwrap_or_default().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{} {:x}: {options}", root.kind, root.handle >> 16))
}

pub(super) fn becomes(wanted: &RootDiscipline, now: &str) -> String {
    let taken = |handle: &&u16| now.split(' ').nth(1) == Some(&format!("{handle:x}:"));
    let handle = OWN_HANDLES.iter().find(|handle| !taken(handle)).copied().unwrap_or(OWN_HANDLES[0]);
    format!("{} {handle:x}:", wanted.kind)
}

pub(super) fn set(interface: &str, wanted: &RootDiscipline, becoming: &str) -> Result<(), SockError> {
    let handle = becoming.split(' ').nth(1).and_then(handle_of).ok_or_else(no_state)?;
    replace(index_of(interface)?, wanted.kind, handle, wanted.options.as_deref())
}

pub(super) fn put_back(interface: &str, found: &str) -> Result<(), SockError> {
    let index = index_of(interface)?;
    let mut words = found.split(' ');
    let (Some(kind), Some(handle)) = (words.next(), words.next()) else { return Err(no_state()) };
    if kind == DEFAULT {
        let root = netlink::disciplines(index)?.into_iter().find(FoundDiscipline::is_root);
        // The kernel's default cannot and need not be deleted.
        return if root.is_some_and(|root| root.handle != 0) { delete(index) } else { Ok(()) };
    }
    let handle = handle_of(handle).ok_or_else(no_state)?;
    let options = words.next().and_then(bytes_of).ok_or_else(no_state)?;
    replace(index, kind, handle, Some(options.as_slice()).filter(|options| !options.is_empty()))
}

fn handle_of(text: &str) -> Option<u32> {
    let major = u16::from_str_radix(text.strip_suffix(':')?, 16).ok()?;
    Some(u32::from(major) << 16)
}

fn bytes_of(hex: &str) -> Option<Vec<u8>> {
    let pair = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
    (0..hex.len()).step_by(2).map(pair).collect()
}

fn replace(index: u32, kind: &str, handle: u32, options: Option<&[u8]>) -> Result<(), SockError> {
    let name = [kind.as_bytes(), &[0]].concat();
    let flags = libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
    act(
        "set the queueing discipline",
        &open()?,
        libc::RTM_NEWQDISC,
        flags,
        |request| {
            let request = request.attribute(TCA_KIND, &name);
            match options {
                Some(options) => request.attribute(libc::TCA_OPTIONS, options),
                None => request,
            }
        },
        &head(index, handle),
    )
}

fn delete(index: u32) -> Result<(), SockError> {
    act("delete the queueing discipline", &open()?, libc::RTM_DELQDISC, 0, |request| request, &head(index, 0))
}

/// `struct tcmsg`, at the root.
fn head(index: u32, handle: u32) -> [u8; 20] {
    let mut body = [0; 20];
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    body[8..12].copy_from_slice(&handle.to_ne_bytes());
    body[12..16].copy_from_slice(&ROOT.to_ne_bytes());
    body
}

pub(super) fn obstacles(interface: &str, wanted: &RootDiscipline) -> Result<Vec<Obstacle>, SockError> {
    let index = index_of(interface)?;
    let mut found = Vec::new();
    let mut add = |what: String| found.push(Obstacle(format!("qdisc of {interface}: {what}")));
    if let Some(why) = why_lost(index)? {
        add(format!("{why}; change it manually, or leave qdisc out"));
    }
    if let Some(error) = try_out(wanted) {
        let kind = wanted.kind;
        let what = match error.raw_os_error() {
            Some(libc::ENOENT) => format!(
                "its kernel does not have the qdisc {kind}; load it with: modprobe sch_{kind}, or use a \
                 kernel that has it"
            ),
            _ => format!("its kernel rejects this {kind}: {}", error.source),
        };
        add(what);
    }
    Ok(found)
}

/// Why the current discipline could not be restored; absent if it could.
fn why_lost(index: u32) -> Result<Option<String>, SockError> {
    let all = netlink::disciplines(index)?;
    let Some(root) = all.iter().find(|found| found.is_root() && found.handle != 0) else { return Ok(None) };
    if OWN_HANDLES.contains(&((root.handle >> 16) as u16)) {
        return Ok(None);
    }
    let kind = &root.kind;
    let below = |found: &&FoundDiscipline| !found.is_root() && found.parent != INGRESS;
    Ok(if !RESTORABLE_KINDS.contains(&kind.as_str()) {
        Some(format!("the configured {kind} could not be restored completely"))
    } else if let Some(child) = all.iter().find(below) {
        Some(format!("the configured {kind} contains a {}, which could not be restored", child.kind))
    } else if root.sizes {
        Some(format!("the configured {kind} has a size table, which could not be restored"))
    } else if netlink::has_filters(index, root.handle)? {
        Some(format!("the configured {kind} has filters, which could not be restored"))
    } else {
        None
    })
}

/// Tries the discipline on the loopback of a new namespace; returns the kernel's error. Without permission to
/// create a namespace the result is absent.
fn try_out(wanted: &RootDiscipline) -> Option<SockError> {
    let scratch = netns::create().ok()?;
    let replaced = netns::with_netns_fd(&scratch, || {
        replace(index_of("lo")?, wanted.kind, u32::from(OWN_HANDLES[0]) << 16, wanted.options.as_deref())
    });
    replaced.ok()?.err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_ours_takes_another_number_than_the_one_in_its_place() {
        let fq = RootDiscipline::parse("fq").unwrap();
        assert_eq!(becomes(&fq, "default noqueue"), "fq 6c72:");
        assert_eq!(becomes(&fq, "fq_codel 6c72: 00"), "fq 6c73:");
        assert_eq!(becomes(&fq, "fq_codel 6c73: 00"), "fq 6c72:");
    }

    #[test]
    fn a_text_that_is_no_state_is_refused_and_not_carried_out() {
        for text in ["", "fq", "fq 8001 00", "fq 8001: 0", "fq 8001: zz", "fq 18001: 00", "fq 8001:"] {
            assert_eq!(put_back("lo", text).unwrap_err().raw_os_error(), Some(libc::EINVAL), "{text}");
        }
        assert_eq!(handle_of("8001:"), Some(0x8001_0000));
        assert_eq!(bytes_of("00ff10"), Some(vec![0, 255, 16]));
        assert_eq!(bytes_of("0ö0"), None);
    }
}
