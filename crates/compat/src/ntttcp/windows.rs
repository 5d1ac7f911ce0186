//! The dialogue of NTttcp for Windows 5.40 between our own ends: one thread, one connection, one port.
//!
//! # Source
//! its sources (MIT), not captures, because no Windows host was available

mod argv;
mod dialer;
mod receiver;
mod sender;

pub use receiver::WindowsReceiver;
pub use sender::WindowsSender;

pub(super) use argv::parse;

use crate::ntttcp::meter::PhaseDurations;
use crate::ntttcp::options::NtttcpOptions;
use crate::stand_in::Link;

/// The byte that each thread and its peer exchange before the data.
const TOKEN: u8 = b'X';

/// Offset from the data port of a thread to the port of its token.
const TOKEN_PORTS: u16 = 1000;

/// The port of each thread, in order.
fn ports(options: &NtttcpOptions) -> Vec<u16> {
    let announced = options.windows.as_ref().is_some_and(|windows| windows.announces_ports);
    let first = options.base.saturating_add(u16::from(announced));
    (0..options.ports).map(|thread| first.saturating_add(thread)).collect()
}

/// The link of a thread for data, token or port request; link 0 is none of them.
fn link(options: &NtttcpOptions, kind: u32, thread: usize) -> Link {
    Link(1 + kind * u32::from(options.ports) + u32::try_from(thread).unwrap_or(0))
}

const DATA: u32 = 0;
const TOKENS: u32 = 1;
const QUESTIONS: u32 = 2;

/// The kind of a link, and its thread.
fn kind(options: &NtttcpOptions, link: Link) -> Option<(u32, usize)> {
    let at = link.0.checked_sub(1)?;
    let threads = u32::from(options.ports.max(1));
    (at / threads <= QUESTIONS).then(|| (at / threads, usize::try_from(at % threads).unwrap_or(0)))
}

fn schedule(options: &NtttcpOptions) -> PhaseDurations {
    if options.buffers().is_some() {
        return PhaseDurations::new(options.omit, 0, 0);
    }
    PhaseDurations::new(options.omit, options.seconds, options.omit + options.seconds + options.cooldown)
}
