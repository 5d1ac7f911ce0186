//! Converts a specification to the configuration of sockets and pumps.

use linerate_engine::{FlowSetup, TransactionConnections, TransactionSetup, Txtime, block_length};
use linerate_model::{CheckedSpec, Direction, HostInfo, SendMethod, Side, StopAfter, TestSpec, Transport};
use linerate_proto::{FlowOrder, native};
use linerate_sock::SocketOptions;
use linerate_units::{Bytes, Span};

/// Most samples per side of a test with a known duration.
const MAX_SAMPLES: u64 = 600;

/// Shortest default interval between samples.
const MIN_SAMPLE_INTERVAL: Span = Span::from_ms(100);

/// Receive buffer of UDP sockets: holds what arrives while the program is off the CPU for some milliseconds.
pub(crate) const UDP_RCV_BUF: u64 = 4 << 20;

/// The side of this end in a flow.
pub(crate) fn side(direction: Direction, client: bool) -> Side {
    if (direction == Direction::Upload) == client { Side::Sender } else { Side::Receiver }
}

/// Default payload of a datagram: the largest that fits the Ethernet MTU of 1500 bytes with IPv6 and UDP
/// headers and a little room for tunnels. It is not larger on loopback, so that results there are comparable.
const DEFAULT_DATAGRAM_BYTES: u64 = 1448;

/// Bytes passed to the kernel in one call, or payload of one datagram.
pub(crate) fn length(spec: &TestSpec) -> Bytes {
    let traffic = &spec.traffic;
    if spec.transactions.are_made() {
        return spec.transactions.request(traffic.udp);
    }
    traffic.length.unwrap_or_else(|| {
        if traffic.transport() == Transport::Udp {
            Bytes::new(DEFAULT_DATAGRAM_BYTES)
        } else {
            block_length(traffic.streams)
        }
    })
}

/// Options for the sockets of the data streams, set before they connect.
pub(crate) fn socket_options(spec: &TestSpec, client: bool) -> SocketOptions {
    let knobs = &spec.socket;
    let udp = spec.traffic.udp;
    let window = knobs.window.map(Bytes::get);
    SocketOptions {
        snd_buf: window,
        rcv_buf: window.or(udp.then_some(UDP_RCV_BUF)),
        mss: knobs.mss,
        congestion: knobs.congestion.clone().map(Into::into),
        tos: knobs.tos_byte(),
        no_delay: spec.sends_at_once() && !udp,
        notsent_lowat: knobs.notsent_lowat.map(Bytes::get),
        fast_open: knobs.fast_open && client,
        busy_poll: knobs.busy_poll.map(Span::as_duration),
        mptcp: spec.traffic.mptcp,
        local: knobs.bind_address.filter(|_| client),
        local_port: knobs.source_port.filter(|_| client),
        device: knobs.bind_device.clone().filter(|_| client).map(Into::into),
        ..SocketOptions::default()
    }
}

/// The requests and responses of a test that makes them, over the connections of its flow.
fn transaction_setup(spec: &TestSpec) -> Option<TransactionSetup> {
    let (transactions, udp) = (&spec.transactions, spec.traffic.udp);
    let length = |bytes: Bytes| usize::try_from(bytes.get()).unwrap_or(usize::MAX);
    transactions.are_made().then(|| TransactionSetup {
        request: length(transactions.request(udp)),
        response: length(transactions.response(udp)),
        pipeline: transactions.pipeline as usize,
        per_second: transactions.request_rate,
        requests: transactions.requests,
        spin: transactions.spin,
        connections: TransactionConnections::Kept,
    })
}

/// Configuration of the pumps of one side of a flow.
pub(crate) fn flow_setup(
    spec: &CheckedSpec,
    order: &FlowOrder,
    client: bool,
    cookie: &[u8; 16],
) -> FlowSetup {
    let traffic = &spec.traffic;
    let measured = traffic.measured();
    let stop_after = spec.stop_after(order.length());
    let timed = matches!(stop_after, StopAfter::TimeNs(_));
    let affinity = if client { spec.host.affinity } else { spec.host.server_affinity };
    FlowSetup {
        transport: traffic.transport(),
        stop_after,
        measured: timed.then_some(measured),
        omit: traffic.omit.unwrap_or_default(),
        offered: if spec.transactions.are_made() { None } else { traffic.offered() },
        fq_rate: traffic.fq_rate,
        pacing_tick: traffic.burst_period,
        txtime: traffic.txtime.then_some(Txtime::ByDiscipline),
        read_rate: traffic.read_rate,
        length: (traffic.udp || traffic.length.is_some() || spec.transactions.are_made())
            .then_some(order.length()),
        transactions: transaction_setup(spec),
        one_pump_each: spec.transactions.reconnect(),
        socket: spec.socket.clone(),
        affinity,
        tick: flow_tick(spec),
        no_sampling: spec.host.no_sampling,
        stamp: native::STAMP,
        tag: native::data_tag(cookie),
        ..FlowSetup::new(order.flow(), side(order.direction(), client), measured)
    }
}

/// The fastest way of sending by the calibration of this host, if the flow is like those it measured.
pub(crate) fn fastest_method(spec: &TestSpec, host: &HostInfo) -> Option<SendMethod> {
    let usual = spec.socket.congestion.is_none() && spec.traffic.length.is_none();
    host.limits().filter(|_| usual)?.fastest_method(spec.socket.chooses()?)
}

/// The interval between samples: short enough to find the ramp, long enough for a test of a day.
fn tick(measured: Span, asked: Span, timed: bool) -> Span {
    if asked < MIN_SAMPLE_INTERVAL || !timed {
        return asked.min(MIN_SAMPLE_INTERVAL);
    }
    let coarsest = Span::from_ns(measured.as_ns() / MAX_SAMPLES);
    coarsest.max(MIN_SAMPLE_INTERVAL)
}

/// The interval between samples of a flow, the same at both ends.
pub(crate) fn flow_tick(spec: &TestSpec) -> Span {
    let traffic = &spec.traffic;
    let timed = matches!(spec.stop_after(Bytes::new(1)), StopAfter::TimeNs(_));
    tick(traffic.measured(), traffic.interval, timed)
}

/// The interval between samples of a stand-in's flow.
pub(crate) fn sample_tick(spec: &TestSpec) -> Span {
    tick(spec.traffic.measured(), spec.traffic.interval.max(MIN_SAMPLE_INTERVAL), spec.is_timed())
}

/// The estimated time for which a whole run occupies the server, shown to waiting clients.
pub(crate) fn expected_time(spec: &TestSpec) -> Span {
    if let Some(sweep) = &spec.sweep {
        return sweep.longest() + Span::from_secs(2);
    }
    let phases = spec.phases().len() as u64;
    let each = spec.traffic.measured() + spec.traffic.omit.unwrap_or_default() + Span::from_secs(2);
    each.saturating_mul(phases)
}

/// How long after the senders' end the remaining data may take to arrive: longer with many streams, whose
/// buffers add up.
pub(crate) fn drain(spec: &TestSpec) -> Span {
    let streams = Span::from_ms(u64::from(spec.traffic.streams));
    (Span::from_ms(400) + streams).min(Span::from_secs(2))
}

/// How long a receiver waits for the sender's reset after the drain was cut.
pub(crate) const RESET_TIMEOUT: Span = Span::from_ms(200);

/// How long a datagram receiver keeps reading after the sender's end, while the queues of the path drain.
pub(crate) const LATE_DATAGRAM_TIMEOUT: Span = Span::from_ms(1000);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_fine_and_their_number_bounded() {
        let second = Span::from_secs(1);
        assert_eq!(tick(Span::from_secs(10), second, true), MIN_SAMPLE_INTERVAL);
        assert_eq!(tick(Span::from_secs(86_400), second, true), Span::from_secs(144));
        assert_eq!(tick(Span::from_secs(10), Span::from_ms(20), true), Span::from_ms(20));
        assert_eq!(tick(Span::from_secs(10), second, false), MIN_SAMPLE_INTERVAL);
    }

    #[test]
    fn only_the_client_binds_as_requested() {
        let mut spec = TestSpec::default();
        spec.socket.source_port = Some(7000);
        spec.socket.window = Some(Bytes::new(65_536));
        assert_eq!(socket_options(&spec, true).local_port, Some(7000));
        let server = socket_options(&spec, false);
        assert_eq!((server.local_port, server.rcv_buf), (None, Some(65_536)));
    }
}
