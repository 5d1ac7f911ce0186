//! Counters of one end's interface, of the qdisc above it, and of the control connection's own connection. All are read
//! at the same moments: before the first flow of a phase and after each flow.

use std::net::{IpAddr, TcpStream};
use std::time::Duration;

use linerate_engine::socket_counts;
use linerate_model::{IdleCounts, InterfaceCounts, PassedCounts, QdiscCounts, SocketCounts};
use linerate_sock::iface::{
    ClassCounts, ConnectionEnds, InterfaceInfo, QueueCounts, TokenBucket, of_local_address, root_queue,
};
use linerate_sock::proc::net::{Device, InterfaceTraffic, device};
use linerate_sock::{Mono, clock};
use linerate_units::{Bytes, Span};

/// A shorter observation before the load says nothing about the traffic of others.
const MIN_IDLE_TIME: Duration = Duration::from_millis(50);

/// Watches the interface of one end.
#[derive(Debug, Default)]
pub(crate) struct InterfaceWatch {
    interface: Option<(String, u32)>,
    idle_began: Option<InterfaceSnapshot>,
    idle: Option<IdleCounts>,
    phase_began: Option<InterfaceSnapshot>,
}

/// All counters at one moment.
#[derive(Debug, Clone)]
struct InterfaceSnapshot {
    at: Mono,
    device: Device,
    queue: Option<QueueCounts>,
    dialogue: Option<SocketCounts>,
}

impl InterfaceWatch {
    /// Selects the interface that carries the dialogue.
    pub(crate) fn of(stream: &TcpStream) -> Self {
        ConnectionEnds::of(stream).map_or_else(Self::default, |ends| Self::between(&ends))
    }

    /// Selects the interface that carries a connection.
    pub(crate) fn between(ends: &ConnectionEnds) -> Self {
        Self::on(ends.interface().ok())
    }

    /// Selects the interface that has this address.
    pub(crate) fn at(local: IpAddr) -> Self {
        Self::on(of_local_address(local).ok())
    }

    fn on(link: Option<InterfaceInfo>) -> Self {
        Self { interface: link.map(|link| (link.name, link.index)), ..Self::default() }
    }

    fn mark(&self, dialogue: Option<&TcpStream>) -> Option<InterfaceSnapshot> {
        let (name, index) = self.interface.as_ref()?;
        Some(InterfaceSnapshot {
            at: clock::now(),
            device: device(name)?,
            queue: root_queue(*index).ok().flatten(),
            dialogue: dialogue.and_then(|stream| socket_counts([stream])),
        })
    }

    /// Begins the idle observation: from now on this run sends only probes and the dialogue.
    pub(crate) fn idle_begins(&mut self, stream: &TcpStream) {
        self.idle_began = self.mark(Some(stream));
    }

    /// Ends the idle observation. Its result applies to every phase.
    pub(crate) fn idle_ends(&mut self, stream: &TcpStream) {
        let Some(began) = self.idle_began.take() else { return };
        let Some(now) = self.mark(Some(stream)) else { return };
        let over = now.at.since(began.at);
        if over < MIN_IDLE_TIME {
            return;
        }
        let grown =
            |now: InterfaceTraffic, then: InterfaceTraffic| Bytes::new(now.bytes.saturating_sub(then.bytes));
        self.idle = Some(IdleCounts {
            duration: Span::from(over),
            sent_bytes: grown(now.device.sent, began.device.sent),
            received_bytes: grown(now.device.received, began.device.received),
        });
    }

    /// Reads the counters before the first flow of a phase; without those of a dialogue if there is none.
    pub(crate) fn phase_begins(&mut self, dialogue: Option<&TcpStream>) {
        self.phase_began = self.mark(dialogue);
    }

    /// The interface counts since the phase began, and what the dialogue's connection carried; absent if there
    /// are none.
    pub(crate) fn counted(
        &self,
        dialogue: Option<&TcpStream>,
    ) -> Option<(InterfaceCounts, Option<SocketCounts>)> {
        let (began, now) = (self.phase_began.as_ref()?, self.mark(dialogue)?);
        let (name, _) = self.interface.as_ref()?;
        let counts = InterfaceCounts {
            name: name.clone().into(),
            duration: Span::from(now.at.since(began.at)),
            sent: passed(now.device.sent, began.device.sent),
            received: passed(now.device.received, began.device.received),
            qdisc: now.queue.as_ref().zip(began.queue.as_ref()).and_then(|(now, then)| queued(now, then)),
            idle: self.idle,
        };
        let dialogue = now.dialogue.zip(began.dialogue).map(|(now, then)| now.since(&then));
        Some((counts, dialogue))
    }
}

fn passed(now: InterfaceTraffic, then: InterfaceTraffic) -> PassedCounts {
    PassedCounts {
        bytes: Bytes::new(now.bytes.saturating_sub(then.bytes)),
        packets: now.packets.saturating_sub(then.packets),
        dropped: now.dropped.saturating_sub(then.dropped),
    }
}

/// The counts of the qdisc; absent if it was replaced meanwhile.
fn queued(now: &QueueCounts, then: &QueueCounts) -> Option<QdiscCounts> {
    if now.kind != then.kind || now.bytes < then.bytes {
        return None;
    }
    let bytes = now.bytes - then.bytes;
    let bucket = bucket(now, then).or_else(|| class(&now.classes, &then.classes, bytes));
    Some(QdiscCounts {
        kind: now.kind.clone().into(),
        bytes: Bytes::new(bytes),
        packets: now.packets.wrapping_sub(then.packets).into(),
        dropped: now.dropped.wrapping_sub(then.dropped).into(),
        rate_bps: bucket.map(|bucket| bucket.rate_bps),
        burst_bytes: bucket.map(|bucket| Bytes::new(bucket.burst_bytes)),
    })
}

/// The token bucket, if its setting did not change.
fn bucket(now: &QueueCounts, then: &QueueCounts) -> Option<TokenBucket> {
    now.bucket.filter(|_| now.bucket == then.bucket)
}

/// The lowest ceiling among the classes that carried at least 90 % of the bytes. The bytes of other classes
/// were not limited by it and are added to its burst.
fn class(now: &[ClassCounts], then: &[ClassCounts], bytes: u64) -> Option<TokenBucket> {
    let passed = |class: &ClassCounts| {
        let before = then.iter().find(|before| before.handle == class.handle)?;
        let passed = class.bytes.checked_sub(before.bytes)?;
        (before.ceiling == class.ceiling && passed > 0 && passed >= bytes / 10 * 9)
            .then_some((class.ceiling, bytes.saturating_sub(passed)))
    };
    let (ceiling, elsewhere) = now.iter().filter_map(passed).min_by_key(|(ceiling, _)| ceiling.rate_bps)?;
    Some(TokenBucket { burst_bytes: ceiling.burst_bytes.saturating_add(elsewhere), ..ceiling })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use linerate_sock::iface::addresses;

    use super::*;

    const BUCKET: TokenBucket = TokenBucket { rate_bps: 50_000_000, burst_bytes: 32_768 };

    fn at(kind: &str, bytes: u64, packets: u32) -> QueueCounts {
        let kind = kind.to_owned();
        QueueCounts { kind, bytes, packets, dropped: 1, bucket: Some(BUCKET), classes: Vec::new() }
    }

    #[test]
    fn the_counters_of_a_test_of_an_own_address_are_those_of_the_loopback() {
        for entry in addresses().unwrap().into_iter().filter(|entry| entry.address.is_ipv4()) {
            let listener = TcpListener::bind((entry.address, 0)).unwrap();
            let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (name, _) = InterfaceWatch::of(&stream).interface.unwrap();
            assert_eq!(name, "lo", "{}", entry.address);
        }
    }

    #[test]
    fn counts_are_differences_even_where_the_kernels_have_wrapped() {
        let (then, now) = (at("tbf", 100, u32::MAX), at("tbf", 1600, 0));
        let found = queued(&now, &then).unwrap();
        assert_eq!((found.bytes.get(), found.packets, found.dropped), (1500, 1, 0));
        assert_eq!((found.rate_bps, found.burst_bytes.map(Bytes::get)), (Some(50_000_000), Some(32_768)));
        assert_eq!(queued(&at("fq_codel", 1600, 0), &then), None, "another one");
        assert_eq!(queued(&then, &now), None, "made anew");
    }

    #[test]
    fn a_rate_that_was_changed_meanwhile_is_none() {
        let (then, mut now) = (at("tbf", 100, 0), at("tbf", 1600, 1));
        now.bucket = Some(TokenBucket { rate_bps: 70_000_000, ..BUCKET });
        assert_eq!(queued(&now, &then).unwrap().rate_bps, None);
    }

    /// A class that carried a lot before the test does not matter for the test.
    #[test]
    fn the_class_that_carried_the_test_has_the_rate() {
        let class = |handle, bytes, rate_bps| ClassCounts {
            handle,
            bytes,
            ceiling: TokenBucket { rate_bps, burst_bytes: 1600 },
        };
        let htb = |bytes, classes| QueueCounts { bucket: None, classes, ..at("htb", bytes, 0) };
        let then = htb(
            9_000_000,
            vec![
                class(1, 9_000_000, 1_000_000_000),
                class(16, 9_000_000, 20_000_000),
                class(32, 0, 100_000_000),
            ],
        );
        let now = |leaf: u64, other: u64| {
            let all = 9_000_000 + leaf + other;
            let classes = vec![
                class(1, all, 1_000_000_000),
                class(16, 9_000_000 + other, 20_000_000),
                class(32, leaf, 100_000_000),
            ];
            queued(&htb(all, classes), &then).unwrap()
        };
        let found = now(1_000_000, 0);
        assert_eq!((found.rate_bps, found.burst_bytes), (Some(100_000_000), Some(Bytes::new(1600))));
        let found = now(1_000_000, 50_000);
        assert_eq!(
            (found.rate_bps, found.burst_bytes),
            (Some(100_000_000), Some(Bytes::new(51_600))),
            "what went through another class is not held by this one"
        );
        assert_eq!(now(500_000, 500_000).rate_bps, Some(1_000_000_000), "half each: only the root holds all");
    }
}
