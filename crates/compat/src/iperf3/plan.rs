//! From the parameters of a test to its flows, sockets, archive entry and report.

use linerate_model::{Direction, SendMethod, Side, SocketKnobs, TestSpec};
use linerate_units::{Bitrate, Bytes, Span};

use super::params::{Params, natural};
use super::report::Iperf3TestParameters;
use super::settings::{Common, Iperf3Family, Iperf3File};
use super::wire::stamp;
use crate::stand_in::{
    EndMark, FlowId, FlowTask, Link, LinkOptions, Pattern, Payload, Planned, RunId, Transport,
};

/// Streams with the same direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StreamGroup {
    /// Its flow.
    pub(super) flow: FlowId,
    /// Direction as seen from the client.
    pub(super) direction: Direction,
    /// Whether this end sends.
    pub(super) sends: bool,
    /// Links, in the order of the streams.
    pub(super) links: Vec<Link>,
}

/// Groups the streams, which are in the order of opening, into flows.
pub(super) fn groups(
    params: &Params,
    client: bool,
    links: &[Link],
    mut number: impl FnMut() -> FlowId,
) -> Vec<StreamGroup> {
    let mut groups: Vec<StreamGroup> = Vec::new();
    for (at, link) in links.iter().enumerate() {
        let server_sends = params.server_sends(at);
        let direction = if server_sends { Direction::Download } else { Direction::Upload };
        match groups.iter_mut().find(|group| group.direction == direction) {
            Some(group) => group.links.push(*link),
            None => groups.push(StreamGroup {
                flow: number(),
                direction,
                sends: server_sends != client,
                links: vec![*link],
            }),
        }
    }
    groups
}

/// The flow to request from the engine.
pub(super) fn task(
    params: &Params,
    group: &StreamGroup,
    run: RunId,
    client: bool,
    cpu: Option<u32>,
    file: Option<&Iperf3File>,
) -> FlowTask {
    let seconds = |value| Span::from_secs(natural(value));
    // Only the client ends a test; a server sends until it is stopped. Data of the omitted part do not count
    // for a goal. The engine cannot know that, so the client ends such a test by its own count.
    let ends_alone = client && group.sends;
    FlowTask {
        flow: group.flow,
        run,
        side: if group.sends { Side::Sender } else { Side::Receiver },
        direction: group.direction,
        transport: transport(params),
        links: group.links.clone(),
        length: Bytes::new(natural(params.len).max(1)),
        payload: Payload {
            pattern: if params.repeating_payload { Pattern::Digits } else { Pattern::Random },
            ..Payload::default()
        },
        framing: Default::default(),
        stamp: stamp(params.udp_counters_64bit),
        bytes: params.goal().filter(|_| ends_alone && params.omit == 0).map(Bytes::new),
        time: (params.time > 0 && (client || !group.sends)).then(|| seconds(params.time)),
        omit: seconds(params.omit),
        offered: rate(params.bandwidth),
        burst: params
            .burst
            .or_else(|| params.datagrams_per_buffer())
            .and_then(|burst| u32::try_from(burst).ok()),
        pacing_tick: pacing_tick(params),
        fq_rate: rate(params.fqrate),
        socket: SocketKnobs {
            // A file is read block by block.
            io: socket(params).io.filter(|_| file.is_none()),
            ..socket(params)
        },
        affinity: cpu,
        end_mark: EndMark::None,
        read_before: Vec::new(),
        note: None,
        transit: Default::default(),
        together: true,
        file: file.filter(|_| !params.udp).map(|file| file.path.clone()),
    }
}

/// How often iperf3 checks whether a block is due. Intervals of more than a second would exceed its tests.
fn pacing_tick(params: &Params) -> Option<Span> {
    let us = natural(params.pacing_timer).min(1_000_000);
    (us > 0).then(|| Span::from_ns(us * 1000))
}

/// Options for the sockets of streams, without port and address.
pub(super) fn stream_options(params: &Params) -> LinkOptions {
    let tcp = !params.udp;
    LinkOptions {
        transport: transport(params),
        snd_buf: params.window.map(natural),
        rcv_buf: params.window.map(natural),
        mss: params.mss.and_then(|mss| u32::try_from(mss).ok()).filter(|mss| tcp && *mss > 0),
        congestion: params.congestion.clone().filter(|_| tcp),
        tos: u8::try_from(params.tos).ok().filter(|tos| *tos > 0),
        no_delay: tcp && params.nodelay,
        dont_fragment: params.udp && params.dont_fragment,
        flow_label: params.flowlabel.and_then(|label| u32::try_from(label).ok()).filter(|_| tcp),
        ..LinkOptions::default()
    }
}

/// Adds the options that the command line sets for every socket.
pub(super) fn located(options: LinkOptions, common: &Common) -> LinkOptions {
    LinkOptions {
        device: common.bind_dev.clone(),
        ipv4: common.family == Some(Iperf3Family::V4),
        ipv6: common.family == Some(Iperf3Family::V6),
        user_timeout: common.snd_timeout.filter(|_| options.transport != Transport::Udp),
        ..options
    }
    .at(common.bind.as_deref())
}

/// Options of the control connection or its listener.
pub(super) fn control_options(common: &Common) -> LinkOptions {
    let keep_alive = common.control_keep_alive;
    let options = LinkOptions {
        no_delay: true,
        keep_alive: keep_alive.map(|keep| (keep.idle, keep.interval, keep.count)),
        ..LinkOptions::default()
    };
    located(options, common)
}

/// The planned run, for the archive.
pub(super) fn planned(
    params: &Params,
    groups: Vec<(FlowId, Direction)>,
    run: RunId,
    link: Link,
    client: bool,
    interval: Span,
) -> Planned {
    let length = natural(params.time).saturating_add(natural(params.omit));
    Planned {
        run,
        tool: "iperf3",
        peer: (!client && !params.client_version.is_empty()).then(|| peer_name(&params.client_version)),
        link,
        client,
        spec: spec(params, interval),
        flows: groups,
        expected: (params.time > 0).then(|| Span::from_secs(length)),
    }
}

/// The test for the report of a server.
pub(super) fn test(params: &Params) -> Iperf3TestParameters {
    let small = |value: i64| u32::try_from(value).unwrap_or(0);
    let bundles = params.bundles;
    Iperf3TestParameters {
        udp: params.udp,
        streams: small(params.parallel),
        block_bytes: natural(params.len),
        omit: small(params.omit),
        seconds: small(params.time),
        bytes: natural(params.num),
        blocks: natural(params.blockcount),
        reverse: params.reverse,
        bidir: params.bidirectional,
        tos: u8::try_from(params.tos).unwrap_or(0),
        bitrate: natural(params.bandwidth),
        fq_rate: natural(params.fqrate),
        mss: params.mss.map(small),
        window: params.window.map(natural),
        gso: bundles.is_some_and(|bundles| bundles.gso > 0),
        gro: bundles.is_some_and(|bundles| bundles.gro > 0),
        title: params.title.clone(),
        extra_data: params.extra_data.clone(),
        get_server_output: params.get_server_output,
    }
}

fn spec(params: &Params, interval: Span) -> TestSpec {
    let mut spec = TestSpec { socket: socket(params), ..TestSpec::default() };
    let some = |value: i64| Some(natural(value)).filter(|value| *value > 0);
    spec.host.server_affinity = params.server_affinity.and_then(|cpu| u32::try_from(cpu).ok());
    let traffic = &mut spec.traffic;
    traffic.udp = params.udp;
    traffic.mptcp = params.mptcp;
    traffic.bidir = params.bidirectional;
    traffic.download = params.reverse && !params.bidirectional;
    traffic.upload = !params.reverse && !params.bidirectional;
    traffic.duration = some(params.time).map(Span::from_secs);
    traffic.bytes = some(params.num).map(Bytes::new);
    traffic.blocks = some(params.blockcount);
    traffic.streams = u32::try_from(params.parallel).unwrap_or(1);
    traffic.rate = Some(rate(params.bandwidth).unwrap_or(Bitrate::ZERO));
    traffic.fq_rate = rate(params.fqrate);
    traffic.length = some(params.len).map(Bytes::new);
    traffic.omit = some(params.omit).map(Span::from_secs);
    if interval > Span::ZERO {
        traffic.interval = interval;
    }
    traffic.no_latency = true;
    spec
}

fn socket(params: &Params) -> SocketKnobs {
    SocketKnobs {
        window: params.window.map(|window| Bytes::new(natural(window))),
        mss: params.mss.and_then(|mss| u32::try_from(mss).ok()),
        congestion: params.congestion.clone().map(Into::into),
        tos: u8::try_from(params.tos).ok().filter(|tos| *tos > 0),
        no_delay: params.nodelay,
        io: (params.zerocopy && !params.udp).then_some(SendMethod::Sendfile),
        skip_rx_copy: params.skip_rx_copy,
        ..SocketKnobs::default()
    }
}

fn transport(params: &Params) -> Transport {
    match (params.udp, params.mptcp) {
        (true, _) => Transport::Udp,
        (false, true) => Transport::Mptcp,
        (false, false) => Transport::Tcp,
    }
}

fn rate(bps: i64) -> Option<Bitrate> {
    Bitrate::from_bps(natural(bps) as f64).filter(|rate| rate.bps() > 0.0)
}

/// The client's version: `3.12`, or the name and version of another program.
fn peer_name(version: &str) -> String {
    let short: String = linerate_model::foreign_text::one_line(version).chars().take(64).collect();
    if short.starts_with(|letter: char| letter.is_ascii_digit()) { format!("iperf {short}") } else { short }
}
