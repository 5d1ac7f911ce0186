//! The engine under a session: any flow order that passes can be prepared, within the limits of its test.

use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};

use linerate_engine::{FlowSetup, Sockets, arm, block_length, memory_needed};
use linerate_model::flow::FlowId;
use linerate_model::{CheckedSpec, Direction, Side};
use linerate_proto::FlowOrder;
use linerate_sock::clock;
use linerate_units::Bytes;

/// Largest memory for which threads and buffers are actually allocated: the target runs very often.
const SMALL_BYTES: u64 = 8 << 20;

/// Memory of a stream in addition to its block, and of everything a flow records: far above what any test
/// needs.
const MAX_OVERHEAD_BYTES: u64 = 64 << 30;

/// Prepares the flows of a run as a client under an agent does: those of its specification.
pub(crate) fn take_all(spec: &CheckedSpec) {
    let traffic = &spec.traffic;
    let chosen = if traffic.udp { Bytes::new(1_448) } else { block_length(traffic.streams) };
    let length = match &spec.sweep {
        Some(sweep) => sweep.longest_message(),
        None => traffic.length.unwrap_or(chosen),
    };
    let directions = traffic.phases().into_iter().flatten();
    let order = |(flow, direction)| FlowOrder::new(spec, flow, direction, length);
    let orders: Result<Vec<_>, _> = (0..).map(FlowId).zip(directions).map(order).collect();
    match orders {
        Ok(orders) => take(spec, &orders, true),
        Err(error) => unreachable!("what was checked can be ordered: {error}"),
    }
}

/// Prepares the flows as a server or a client does, without a peer that sends.
pub(crate) fn take(spec: &CheckedSpec, flows: &[FlowOrder], client: bool) {
    for order in flows {
        let setup = setup(spec, order, client);
        let streams = u64::from(spec.traffic.streams);
        let needed = memory_needed(&setup, spec.traffic.streams as usize).map(|bytes| bytes.get());
        let longest = spec.traffic.longest_block().get();
        assert!(
            needed
                .as_ref()
                .is_ok_and(|needed| *needed <= streams * (longest + (2 << 20)) + MAX_OVERHEAD_BYTES),
            "{order:?} needs {needed:?}"
        );
        if streams == 1
            && needed.is_ok_and(|needed| needed <= SMALL_BYTES)
            && let Some(sockets) = sockets(spec.traffic.udp)
        {
            // Dropped before it starts.
            let _ = arm(setup, sockets, clock::now());
        }
    }
}

fn setup(spec: &CheckedSpec, order: &FlowOrder, client: bool) -> FlowSetup {
    let traffic = &spec.traffic;
    let sends = (order.direction() == Direction::Upload) == client;
    let side = if sends { Side::Sender } else { Side::Receiver };
    FlowSetup {
        transport: traffic.transport(),
        stop_after: traffic.stop_after(order.length()),
        omit: traffic.omit.unwrap_or_default(),
        offered: traffic.offered(),
        read_rate: traffic.read_rate,
        length: (traffic.udp || traffic.length.is_some()).then_some(order.length()),
        tick: traffic.interval,
        stamp: linerate_proto::native::STAMP,
        ..FlowSetup::new(order.flow(), side, traffic.measured())
    }
}

/// One stream over loopback; absent if the host has none.
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
