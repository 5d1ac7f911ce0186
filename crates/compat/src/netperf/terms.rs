//! What a request means for the server: whether it is served, and with which port, sizes and flow.

use linerate_model::flow::StampLayout;
use linerate_model::{Direction, Side, SocketKnobs, TestSpec};
use linerate_units::{Bytes, Span};

use super::wire::{NetperfProtocol, NetperfRequest, Response, flag};
use crate::errno::EINVAL;
use crate::stand_in::{
    EndMark, FlowId, FlowTask, Link, LinkOptions, Opened, Payload, Planned, RunId, Transit, Transport,
};

/// Largest message of a transaction, and largest write of a stream, bytes.
const MAX_MESSAGE: u32 = 8 << 20;

/// Largest datagram, bytes.
const MAX_DATAGRAM: u32 = 65_507;

/// What netserver reports as its CPU rate: the ticks of a second in /proc/stat.
const CPU_RATE: f32 = 100.0;

/// Receive size if the system reports no buffer.
const DEFAULT_READ: u32 = 4096;

/// How much longer than the test the server waits for its end if the client sends.
const END_TIMEOUT: Span = Span::from_secs(4);

const EMSGSIZE: i32 = 90;
const EPROTONOSUPPORT: i32 = 93;
const EOPNOTSUPP: i32 = 95;

/// Checks a request.
///
/// # Errors
/// The error number for the client.
pub(super) fn check(request: &NetperfRequest) -> Result<(), i32> {
    let roles = request.roles;
    let udp = request.protocol == NetperfProtocol::Udp;
    let transactions = roles.transactions();
    match request.protocol {
        NetperfProtocol::Other(_) => return Err(EPROTONOSUPPORT),
        // Datagrams to an address that nothing has confirmed are not sent.
        NetperfProtocol::Udp if !roles.receives => return Err(EOPNOTSUPP),
        _ => {}
    }
    if transactions && !roles.receives && !request.connects_each_time() {
        return Err(EOPNOTSUPP);
    }
    if udp && request.connects_each_time() {
        return Err(EOPNOTSUPP);
    }
    let most = if udp { MAX_DATAGRAM } else { MAX_MESSAGE };
    let sizes = [request.request_size, request.response_size, request.send_size, request.receive_size];
    if sizes.into_iter().flatten().any(|size| size > most) {
        return Err(EMSGSIZE);
    }
    let missing = |size: Option<u32>| size.is_none_or(|size| size == 0);
    if transactions && roles.receives && (missing(request.request_size) || missing(request.response_size)) {
        return Err(EINVAL);
    }
    if (roles.sends && request.send_size == Some(0)) || request.length == i32::MIN {
        return Err(EINVAL);
    }
    // Nothing would end a number of datagrams.
    if udp && request.length < 0 { Err(EINVAL) } else { Ok(()) }
}

/// How long a test may take beyond its time. A server that only sends knows its end.
pub(super) fn grace(request: &NetperfRequest) -> Span {
    if request.roles.sends && !request.roles.receives { Span::ZERO } else { END_TIMEOUT }
}

/// The options of the port for data.
pub(super) fn link_options(request: &NetperfRequest) -> LinkOptions {
    LinkOptions {
        transport: if request.protocol == NetperfProtocol::Udp { Transport::Udp } else { Transport::Tcp },
        ipv4: request.family == 4,
        ipv6: request.family == 6,
        snd_buf: request.send_buffer.filter(|size| *size > 0).map(u64::from),
        rcv_buf: request.receive_buffer.filter(|size| *size > 0).map(u64::from),
        congestion: (!request.congestion.is_empty()).then(|| request.congestion.to_string()),
        tos: request.tos.and_then(|tos| u8::try_from(tos).ok()),
        no_delay: request.has(flag::NO_DELAY),
        ..LinkOptions::default()
    }
}

/// Bytes of the server's reads and writes, from what is requested or from its buffers.
fn sizes(request: &NetperfRequest, opened: Option<&Opened>) -> (u32, u32) {
    let buffer = |of: fn(&Opened) -> u64| {
        let bytes = opened.map_or(0, of).min(u64::from(MAX_MESSAGE));
        u32::try_from(bytes).unwrap_or(MAX_MESSAGE)
    };
    let own = |bytes: u32| if bytes > 0 { bytes } else { DEFAULT_READ };
    let of = |fixed: Option<u32>, asked: Option<u32>, buffer: u32| match (fixed, asked) {
        (Some(fixed), _) if fixed > 0 => fixed,
        (_, Some(asked)) if asked > 0 => asked,
        _ => own(buffer),
    };
    let (read, write) = (buffer(|opened| opened.rcv_buf), buffer(|opened| opened.snd_buf));
    let transactions = request.roles.transactions();
    (
        of(request.request_size.filter(|_| transactions), request.receive_size, read),
        of(request.response_size.filter(|_| transactions), request.send_size, write),
    )
}

/// The answer to a request.
pub(super) fn response(request: &NetperfRequest, opened: &Opened) -> Response {
    let roles = request.roles;
    let (receive_size, send_size) = sizes(request, Some(opened));
    let buffer = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    let (receive_buffer, send_buffer) = (buffer(opened.rcv_buf), buffer(opened.snd_buf));
    let width = |asked: u32, buffer: u32, size: u32| match (asked, roles.transactions()) {
        (0, true) => 1,
        (0, false) => (buffer / size.max(1)).saturating_add(1).max(2),
        (asked, _) => asked,
    };
    let measured = request.has(flag::MEASURE_CPU);
    Response {
        receive_buffer,
        receive_size: if roles.receives { Some(receive_size) } else { request.receive_size },
        receive_width: if roles.receives {
            width(request.receive_width, receive_buffer, receive_size)
        } else {
            request.receive_width
        },
        send_buffer,
        send_size: if roles.sends { Some(send_size) } else { request.send_size },
        send_width: if roles.sends {
            width(request.send_width, send_buffer, send_size)
        } else {
            request.send_width
        },
        flags: request.flags & (flag::NO_DELAY | flag::MEASURE_CPU),
        cpu_rate: match (measured, request.cpu_rate) {
            (false, _) => 0.0,
            (true, rate) if rate > 0.0 => rate,
            (true, _) => CPU_RATE,
        },
        port: opened.local.port(),
        tos: request.tos,
    }
}

/// The flow of the server's side of a stream.
pub(super) fn task(
    request: &NetperfRequest,
    opened: Option<&Opened>,
    flow: FlowId,
    run: RunId,
    link: Link,
    time: Option<Span>,
) -> FlowTask {
    let udp = request.protocol == NetperfProtocol::Udp;
    let sends = request.roles.sends;
    let (receive_size, send_size) = sizes(request, opened);
    let bytes = u64::from(request.length.unsigned_abs());
    FlowTask {
        flow,
        run,
        side: if sends { Side::Sender } else { Side::Receiver },
        direction: direction(request),
        transport: if udp { Transport::Udp } else { Transport::Tcp },
        links: vec![link],
        length: Bytes::new(u64::from(if sends { send_size } else { receive_size })),
        payload: Payload::default(),
        framing: Default::default(),
        stamp: StampLayout::NONE,
        bytes: (sends && request.length < 0).then_some(Bytes::new(bytes)),
        time,
        omit: Span::ZERO,
        offered: None,
        burst: None,
        pacing_tick: None,
        fq_rate: None,
        socket: knobs(request),
        affinity: None,
        end_mark: if udp { EndMark::Short { bytes: 0, nth: 1 } } else { EndMark::None },
        read_before: Vec::new(),
        note: None,
        transit: Transit::Uncounted,
        together: false,
        file: None,
    }
}

fn direction(request: &NetperfRequest) -> Direction {
    if request.roles.sends { Direction::Download } else { Direction::Upload }
}

fn knobs(request: &NetperfRequest) -> SocketKnobs {
    SocketKnobs {
        window: request.receive_buffer.filter(|size| *size > 0).map(|size| Bytes::new(u64::from(size))),
        tos: request.tos.and_then(|tos| u8::try_from(tos).ok()).filter(|tos| *tos > 0),
        no_delay: request.has(flag::NO_DELAY),
        ..SocketKnobs::default()
    }
}

/// The planned run, for the archive. Transactions have no flow.
pub(super) fn planned(
    request: &NetperfRequest,
    run: RunId,
    flow: FlowId,
    link: Link,
    client: bool,
) -> Planned {
    let mut spec = TestSpec::default();
    let time = u64::try_from(request.length).ok().filter(|seconds| *seconds > 0).map(Span::from_secs);
    let direction = direction(request);
    let traffic = &mut spec.traffic;
    traffic.udp = request.protocol == NetperfProtocol::Udp;
    traffic.upload = direction == Direction::Upload;
    traffic.download = direction == Direction::Download;
    traffic.duration = time;
    traffic.no_latency = true;
    spec.socket = knobs(request);
    Planned {
        run,
        tool: super::NETPERF.name,
        peer: None,
        link,
        client,
        spec,
        flows: if request.roles.transactions() { Vec::new() } else { vec![(flow, direction)] },
        expected: time,
    }
}
