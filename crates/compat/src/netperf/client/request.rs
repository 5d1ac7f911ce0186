//! What the options of a client mean: the request to the server, the options of links, and the flow.

use std::net::{IpAddr, SocketAddr};

use linerate_model::flow::StampLayout;
use linerate_model::{Direction, ForeignText, Side, SocketKnobs, TestSpec};
use linerate_units::{Bitrate, Bytes, Span};

use crate::netperf::figures::CallSizes;
use crate::netperf::options::{BurstPace, Length, NetperfClientOptions, NetperfFamily};
use crate::netperf::selectors::SelectorNeeds;
use crate::netperf::wire::{DataRoles, NetperfRequest, flag};
use crate::stand_in::{
    EndMark, FlowId, FlowTask, Link, LinkOptions, Opened, Output, Payload, Planned, RunId, Transit, Transport,
};

/// Bytes of a call if the system reports no buffer.
const DEFAULT_SIZE: u32 = 4096;

/// Longest write and read, bytes, and longest datagram.
const MAX_SIZE: u32 = 8 << 20;
const MAX_DATAGRAM: u32 = 65_507;

fn transport(options: &NetperfClientOptions) -> Transport {
    if options.udp() { Transport::Udp } else { Transport::Tcp }
}

/// The control connection.
pub(super) fn control_link(options: &NetperfClientOptions, link: Link) -> Output {
    let control = &options.control;
    let family = control.family.or(control.local_family);
    let options = LinkOptions {
        local: control.local,
        local_port: Some(control.local_port).filter(|port| *port > 0),
        ipv4: family == NetperfFamily::V4,
        ipv6: family == NetperfFamily::V6,
        ..LinkOptions::default()
    };
    Output::Connect { link, port: control.port, to: None, options }
}

/// The options of a socket on which its buffers depend.
pub(super) fn buffer_options(options: &NetperfClientOptions) -> LinkOptions {
    let bytes = |asked: Option<u32>| asked.filter(|bytes| *bytes > 0).map(u64::from);
    LinkOptions {
        transport: transport(options),
        snd_buf: bytes(options.send_buffer.local),
        rcv_buf: bytes(options.receive_buffer.local),
        ..LinkOptions::default()
    }
}

/// The sizes of calls: as requested, or those of the buffers.
pub(super) fn sizes(options: &NetperfClientOptions, opened: &Opened) -> CallSizes {
    let most = if options.udp() { MAX_DATAGRAM } else { MAX_SIZE };
    let buffer = |bytes: u64| match u32::try_from(bytes).unwrap_or(u32::MAX) {
        0 => DEFAULT_SIZE,
        bytes => bytes.min(most),
    };
    let width = |buffer: u64, size: u32| {
        let count = u32::try_from(buffer / u64::from(size.max(1))).unwrap_or(u32::MAX);
        count.saturating_add(1).max(2)
    };
    let (DataRoles { sends, receives }, transactions) = (options.roles, options.transactions());
    if transactions {
        let (send, receive) = (options.send_size.local.unwrap_or(0), options.receive_size.local.unwrap_or(0));
        return CallSizes { send, receive, send_width: 1, receive_width: 1 };
    }
    let mut sizes = CallSizes {
        send: options.send_size.local.unwrap_or(0),
        receive: options.receive_size.local.unwrap_or(0),
        ..CallSizes::default()
    };
    if sends {
        sizes.send = options.send_size.local.unwrap_or_else(|| buffer(opened.snd_buf));
        sizes.send_width = width(opened.snd_buf, sizes.send);
    }
    if receives {
        sizes.receive = options.receive_size.local.unwrap_or_else(|| buffer(opened.rcv_buf).min(MAX_SIZE));
        sizes.receive_width = width(opened.rcv_buf, sizes.receive);
    }
    sizes
}

/// The request to the server. As in netperf, the numbers of its buffers are those of ours.
pub(super) fn request(
    options: &NetperfClientOptions,
    sizes: &CallSizes,
    family: NetperfFamily,
) -> NetperfRequest {
    let mut flags = 0;
    let set = [
        (flag::NO_DELAY, options.no_delay),
        (flag::CONNECT, options.connects_each_time),
        (flag::MEASURE_CPU, options.cpu.remote),
        // The same bit asks for the algorithm of the server's congestion control.
        (flag::ROUTED, options.routed || options.needs(SelectorNeeds::RemoteCongestion)),
        (flag::KEEP_ALIVE, options.keep_alive),
    ];
    set.into_iter().filter(|(_, wanted)| *wanted).for_each(|(bit, _)| flags |= bit);
    NetperfRequest {
        send_buffer: options.send_buffer.remote,
        send_size: options.send_size.remote,
        send_width: sizes.send_width,
        request_size: options.request_size,
        receive_buffer: options.receive_buffer.remote,
        receive_size: options.receive_size.remote,
        receive_width: sizes.receive_width,
        response_size: options.response_size,
        flags,
        cpu_rate: options.cpu_rate.remote,
        length: match options.length {
            Length::Seconds(seconds) => i32::try_from(seconds).unwrap_or(i32::MAX),
            Length::Units(units) => -i32::try_from(units).unwrap_or(i32::MAX),
            Length::Endless => 0,
        },
        port: options.data.port,
        family: match family {
            NetperfFamily::Any => 0,
            NetperfFamily::V4 => 4,
            NetperfFamily::V6 => 6,
        },
        protocol: options.protocol,
        roles: DataRoles { sends: options.roles.receives, receives: options.roles.sends },
        client_port: options.data.local_port,
        tos: options.tos.remote.map(u32::from),
        congestion: ForeignText::new(&options.congestion.remote),
        fill_file: ForeignText::new(&options.remote_fill),
    }
}

/// The output that opens the data link.
pub(super) fn data_link(
    options: &NetperfClientOptions,
    link: Link,
    port: u16,
    server: Option<IpAddr>,
) -> Output {
    let family = options.data.family.or(options.control.family);
    let host = options.data_address.or(server);
    let local = options.data.local.or_else(|| options.control.local.filter(|_| options.data.host.is_none()));
    let link_options = LinkOptions {
        local,
        local_port: Some(options.data.local_port).filter(|port| *port > 0),
        ipv4: family == NetperfFamily::V4,
        ipv6: family == NetperfFamily::V6,
        mss: options.mss,
        congestion: Some(options.congestion.local.clone()).filter(|name| !name.is_empty() && !options.udp()),
        tos: options.tos.local.filter(|tos| *tos > 0),
        no_delay: options.no_delay && !options.udp(),
        dont_route: !options.routed,
        keep_alive: options.keep_alive.then_some((None, None, None)),
        ..buffer_options(options)
    };
    Output::Connect { link, port, to: host.map(|host| SocketAddr::new(host, port)), options: link_options }
}

fn direction(options: &NetperfClientOptions) -> Direction {
    if options.roles.receives && !options.roles.sends { Direction::Download } else { Direction::Upload }
}

fn knobs(options: &NetperfClientOptions) -> SocketKnobs {
    let window = options.send_buffer.local.or(options.receive_buffer.local).filter(|bytes| *bytes > 0);
    SocketKnobs {
        window: window.map(|bytes| Bytes::new(u64::from(bytes))),
        mss: options.mss,
        congestion: Some(&options.congestion.local)
            .filter(|name| !name.is_empty())
            .map(|n| ForeignText::new(n)),
        tos: options.tos.local.filter(|tos| *tos > 0),
        no_delay: options.no_delay,
        ..SocketKnobs::default()
    }
}

/// The rate of a paced sender.
fn rate(pace: BurstPace, size: u32) -> Option<Bitrate> {
    let bits = f64::from(pace.burst) * f64::from(size) * 8.0;
    Bitrate::from_bps(bits / pace.interval.as_secs_f64())
}

/// The flow of this end.
pub(super) fn task(
    options: &NetperfClientOptions,
    flow: FlowId,
    run: RunId,
    link: Link,
    sizes: &CallSizes,
    time: Option<Span>,
) -> FlowTask {
    let (udp, sends) = (options.udp(), options.roles.sends);
    let length = if sends { sizes.send } else { sizes.receive };
    let bytes = match options.length {
        Length::Units(units) if sends => Some(Bytes::new(u64::from(units))),
        _ => None,
    };
    let payload = if sends {
        Payload { head: options.payload(length), ..Payload::default() }
    } else {
        Payload::default()
    };
    FlowTask {
        flow,
        run,
        side: if sends { Side::Sender } else { Side::Receiver },
        direction: direction(options),
        transport: transport(options),
        links: vec![link],
        length: Bytes::new(u64::from(length)),
        payload,
        framing: Default::default(),
        stamp: StampLayout::NONE,
        bytes,
        time,
        omit: Span::ZERO,
        offered: options.pace.and_then(|pace| rate(pace, length)),
        burst: options.pace.map(|pace| pace.burst).filter(|burst| *burst > 1),
        pacing_tick: None,
        fq_rate: None,
        socket: knobs(options),
        affinity: None,
        end_mark: if udp && !sends { EndMark::Short { bytes: 0, nth: 1 } } else { EndMark::None },
        read_before: Vec::new(),
        note: None,
        transit: Transit::Uncounted,
        together: false,
        file: None,
    }
}

/// The planned run, for the archive. Transactions have no flow.
pub(super) fn planned(
    options: &NetperfClientOptions,
    run: RunId,
    link: Link,
    flows: &[FlowId],
    sizes: &CallSizes,
) -> Planned {
    let mut spec = TestSpec::default();
    let time = match options.length {
        Length::Seconds(seconds) => Some(Span::from_secs(u64::from(seconds))),
        Length::Units(_) | Length::Endless => None,
    };
    let direction = direction(options);
    let size = if options.roles.sends { sizes.send } else { sizes.receive };
    let traffic = &mut spec.traffic;
    traffic.udp = options.udp();
    traffic.upload = direction == Direction::Upload;
    traffic.download = direction == Direction::Download;
    traffic.duration = time;
    traffic.length = Some(Bytes::new(u64::from(size))).filter(|bytes| bytes.get() > 0);
    if let Some(interval) = options.interim {
        traffic.interval = interval;
    }
    traffic.rate = match options.pace {
        Some(pace) => rate(pace, size),
        None if options.udp() && !options.transactions() => Some(Bitrate::ZERO),
        None => None,
    };
    traffic.no_latency = true;
    spec.socket = knobs(options);
    Planned {
        run,
        tool: crate::netperf::NETPERF.name,
        peer: None,
        link,
        client: true,
        spec,
        flows: flows.iter().map(|flow| (*flow, direction)).collect(),
        expected: time,
    }
}
