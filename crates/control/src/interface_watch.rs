//! The counts below the programs of one end: its interface, the queue above it, and the dialogue's own connection, read at
//! the same moments, before the first flow of a phase and after each.

use std::net::TcpStream;
use std::time::Duration;

use linerate_engine::socket_counts;
use linerate_model::{IdleCounts, InterfaceCounts, PassedCounts, QdiscCounts, SocketCounts};
use linerate_sock::iface::{QueueCounts, of_local_address, root_queue};
use linerate_sock::proc::net::{Device, Traffic, device};
use linerate_sock::{Mono, clock};
use linerate_units::{Bytes, Span};

/// A shorter look before the load says nothing of what others send.
const SHORTEST_IDLE: Duration = Duration::from_millis(50);

/// Watches the interface of one end.
#[derive(Debug, Default)]
pub(crate) struct InterfaceWatch {
    interface: Option<(String, u32)>,
    idle_began: Option<Mark>,
    idle: Option<IdleCounts>,
    phase_began: Option<Mark>,
}

/// Everything at one moment.
#[derive(Debug, Clone)]
struct Mark {
    at: Mono,
    device: Device,
    queue: Option<QueueCounts>,
    dialogue: Option<SocketCounts>,
}

impl InterfaceWatch {
    /// The interface that has the dialogue's local address.
    pub(crate) fn of(stream: &TcpStream) -> Self {
        let local = stream.local_addr().ok();
        let link = local.and_then(|local| of_local_address(local.ip()).ok());
        Self { interface: link.map(|link| (link.name, link.index)), ..Self::default() }
    }

    fn mark(&self, stream: &TcpStream) -> Option<Mark> {
        let (name, index) = self.interface.as_ref()?;
        Some(Mark {
            at: clock::now(),
            device: device(name)?,
            queue: root_queue(*index).ok().flatten(),
            dialogue: socket_counts([stream]),
        })
    }

    /// From here on nothing of this run passes but probes and the dialogue.
    pub(crate) fn idle_begins(&mut self, stream: &TcpStream) {
        self.idle_began = self.mark(stream);
    }

    /// Until here; what was seen holds for every phase.
    pub(crate) fn idle_ends(&mut self, stream: &TcpStream) {
        let Some(began) = self.idle_began.take() else { return };
        let Some(now) = self.mark(stream) else { return };
        let over = now.at.since(began.at);
        if over < SHORTEST_IDLE {
            return;
        }
        let grown = |now: Traffic, then: Traffic| Bytes::new(now.bytes.saturating_sub(then.bytes));
        self.idle = Some(IdleCounts {
            over: Span::from(over),
            sent_bytes: grown(now.device.sent, began.device.sent),
            received_bytes: grown(now.device.received, began.device.received),
        });
    }

    /// Before the first flow of a phase.
    pub(crate) fn phase_begins(&mut self, stream: &TcpStream) {
        self.phase_began = self.mark(stream);
    }

    /// What was counted since the phase began, and what the dialogue's connection carried; absent where nothing was.
    pub(crate) fn counted(&self, stream: &TcpStream) -> Option<(InterfaceCounts, Option<SocketCounts>)> {
        let (began, now) = (self.phase_began.as_ref()?, self.mark(stream)?);
        let (name, _) = self.interface.as_ref()?;
        let counts = InterfaceCounts {
            name: name.clone(),
            over: Span::from(now.at.since(began.at)),
            sent: passed(now.device.sent, began.device.sent),
            received: passed(now.device.received, began.device.received),
            qdisc: now.queue.as_ref().zip(began.queue.as_ref()).and_then(|(now, then)| queued(now, then)),
            idle: self.idle,
        };
        let dialogue = now.dialogue.zip(began.dialogue).map(|(now, then)| now.since(&then));
        Some((counts, dialogue))
    }
}

fn passed(now: Traffic, then: Traffic) -> PassedCounts {
    PassedCounts {
        bytes: Bytes::new(now.bytes.saturating_sub(then.bytes)),
        packets: now.packets.saturating_sub(then.packets),
        dropped: now.dropped.saturating_sub(then.dropped),
    }
}

/// Absent where another discipline has taken the place of the first.
fn queued(now: &QueueCounts, then: &QueueCounts) -> Option<QdiscCounts> {
    if now.kind != then.kind || now.bytes < then.bytes {
        return None;
    }
    Some(QdiscCounts {
        kind: now.kind.clone(),
        bytes: Bytes::new(now.bytes - then.bytes),
        packets: now.packets.wrapping_sub(then.packets).into(),
        dropped: now.dropped.wrapping_sub(then.dropped).into(),
        rate_bps: now.rate_bps,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_differences_even_where_the_kernels_have_wrapped() {
        let at = |kind: &str, bytes, packets| QueueCounts {
            kind: kind.to_owned(),
            bytes,
            packets,
            dropped: 1,
            rate_bps: Some(50_000_000),
        };
        let (then, now) = (at("fq", 100, u32::MAX), at("fq", 1600, 0));
        let found = queued(&now, &then).unwrap();
        assert_eq!((found.bytes.get(), found.packets, found.dropped), (1500, 1, 0));
        assert_eq!(found.rate_bps, Some(50_000_000));
        assert_eq!(queued(&at("fq_codel", 1600, 0), &then), None, "another one");
        assert_eq!(queued(&then, &now), None, "made anew");
    }
}
