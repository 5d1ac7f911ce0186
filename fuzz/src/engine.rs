//! The engine behind a session: whatever order comes through it can be prepared, within the bounds of its test.

use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};

use linerate_engine::{FlowSetup, Sockets, arm, memory_needed};
use linerate_model::{CheckedSpec, Direction, Side};
use linerate_proto::FlowOrder;
use linerate_sock::clock;

/// Most memory for which threads and buffers are really made: noise comes often.
const SMALL_BYTES: u64 = 8 << 20;

/// Memory of a stream beside its block, and of all that a flow notes: far above what any test needs.
const MOST_BESIDE: u64 = 64 << 30;

/// Prepares the flows as a server does, without a peer that sends.
pub(crate) fn take(spec: &CheckedSpec, flows: &[FlowOrder]) {
    for order in flows {
        let setup = setup(spec, order);
        let streams = u64::from(spec.traffic.streams);
        let needed = memory_needed(&setup, spec.traffic.streams as usize).map(|bytes| bytes.get());
        let longest = spec.traffic.longest_block().get();
        assert!(
            needed.as_ref().is_ok_and(|needed| *needed <= streams * (longest + (2 << 20)) + MOST_BESIDE),
            "{order:?} needs {needed:?}"
        );
        if streams == 1 && needed.is_ok_and(|needed| needed <= SMALL_BYTES) {
            if let Some(sockets) = sockets(spec.traffic.udp) {
                // Dropped before it begins.
                let _ = arm(setup, sockets, clock::now());
            }
        }
    }
}

fn setup(spec: &CheckedSpec, order: &FlowOrder) -> FlowSetup {
    let traffic = &spec.traffic;
    let side = if order.direction() == Direction::Upload { Side::Receiver } else { Side::Sender };
    FlowSetup {
        transport: traffic.transport(),
        limit: traffic.limit(order.length()),
        omit: traffic.omit.unwrap_or_default(),
        offered: traffic.offered(),
        read_rate: traffic.read_rate,
        length: (traffic.udp || traffic.length.is_some()).then_some(order.length()),
        tick: traffic.interval,
        ..FlowSetup::new(order.flow(), side, traffic.measured())
    }
}

/// One stream over loopback; absent where the host has none.
fn sockets(udp: bool) -> Option<Sockets> {
    if udp {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
        socket.connect(socket.local_addr().ok()?).ok()?;
        return Some(Sockets::Udp(vec![socket]));
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
    let _far = TcpStream::connect(listener.local_addr().ok()?).ok()?;
    Some(Sockets::Tcp(vec![listener.accept().ok()?.0]))
}
