//! Byte accounting of a flow down to the wire: the count at each point of the path, compared with the range
//! that the counts of its connections and the headers explain.
//!
//! Where software carries a super-packet of segments (TSO, GSO, GRO: loopback, veth, TAP), kernels count it as
//! one packet with one set of headers. So the interface's packet count shows how many headers its bytes
//! contain. A qdisc counts every segment with its headers, and so does a port of the emulated network.

mod host_counts;
mod load;
#[cfg(test)]
mod tests;

use linerate_model::flow::FlowId;
use linerate_model::{
    AccountingPoint, AccountingStep, FlowRecord, ForeignText, LinkKind, RunRecord, Side, Tally, Transport,
};
use linerate_units::Bytes;

use host_counts::Station;
use load::HeaderCounting;

/// A residual above this share of the flow's bytes is reported, with its location.
pub const MAX_RESIDUAL_SHARE: f64 = 0.001;

/// The range of counts that can be explained, bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct CountRange {
    least: u64,
    most: u64,
}

/// The accounting points of a flow: from the sender's connections to the receiver's, then the return path.
///
/// Units: bytes. Domain: empty if no counter below the programs was read; steps with unknown counts are left
/// out.
/// Source: own definition; `linux/tcp.h` (connections), `net/core/dev.c` (qdisc_pkt_len_init),
/// `rtnl_link_stats64`.
#[must_use]
pub fn steps(record: &RunRecord, flow: &FlowRecord) -> Vec<AccountingStep> {
    let way = FlowAccounts::of(record, flow);
    let mut steps: Vec<AccountingStep> = way.sender_socket().into_iter().collect();
    if way.on_loopback() {
        steps.extend(way.loopback());
    } else {
        steps.extend(way.qdisc());
        steps.extend(way.interface(Side::Sender, Heading::Out, AccountingPoint::SenderInterface));
        steps.extend(way.ports());
        steps.extend(way.interface(Side::Receiver, Heading::In, AccountingPoint::ReceiverInterface));
    }
    steps.extend(way.receiver_socket());
    if !way.on_loopback() {
        steps.extend(way.interface(Side::Receiver, Heading::Out, AccountingPoint::ReturnSent));
        steps.extend(way.interface(Side::Sender, Heading::In, AccountingPoint::ReturnReceived));
    }
    steps
}

/// What the open steps mean, as text; `None` if all counts agree.
#[must_use]
pub fn summary(steps: &[AccountingStep]) -> Option<String> {
    let open = || steps.iter().filter(|step| step.unaccounted);
    let parts: Vec<String> = open().map(one).collect();
    let shared = open().any(|step| step.point.is_shared() && step.residual_bytes > 0);
    let advice =
        if shared { ": others used these ways, so the path may carry more than was measured" } else { "" };
    (!parts.is_empty()).then(|| format!("{}{advice}", parts.join("; ")))
}

fn one(step: &AccountingStep) -> String {
    let off = Bytes::new(step.residual_bytes.unsigned_abs());
    let (host, counter, point) = (&step.host, &step.counter, step.point.name());
    match (step.residual_bytes > 0, step.point.is_shared()) {
        (true, true) => format!("{off} on {counter} of {host} are not this test's ({point})"),
        (false, true) => format!("{counter} of {host} counted {off} less than passed there ({point})"),
        (true, false) => format!("{counter} of {host} counted {off} too many ({point})"),
        (false, false) => format!("{off} are missing at {counter} of {host} ({point})"),
    }
}

/// Direction through an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heading {
    Out,
    In,
}

/// A flow with all traffic that ran at the same time.
struct FlowAccounts<'a> {
    record: &'a RunRecord,
    flow: &'a FlowRecord,
    stations: [Station<'a>; 2],
}

impl<'a> FlowAccounts<'a> {
    fn of(record: &'a RunRecord, flow: &'a FlowRecord) -> Self {
        let both = record.start.as_ref().is_some_and(|start| start.spec.traffic.bidir);
        let flows: Vec<&FlowRecord> = if both { record.flows.iter().collect() } else { vec![flow] };
        let stations = [0, 1].map(|host| Station::new(record, &flows, host));
        Self { record, flow, stations }
    }

    /// The host at this side of the flow.
    fn station(&self, side: Side) -> &Station<'a> {
        let upload = self.flow.plan.direction == linerate_model::Direction::Upload;
        &self.stations[usize::from((side == Side::Sender) != upload)]
    }

    fn on_loopback(&self) -> bool {
        let kinds = self.record.hosts.iter().map(|host| host.link.as_ref().map(|link| link.kind));
        kinds.take(2).all(|kind| kind == Some(LinkKind::Loopback)) && !self.record.hosts.is_empty()
    }

    fn foreign(&self) -> bool {
        self.record.caveats.iter().any(|c| c.kind == linerate_model::CaveatKind::ForeignPeer)
    }

    /// A step, and whether its residual is significant for this flow.
    fn step(
        &self,
        at: (AccountingPoint, &str, ForeignText),
        counted: u64,
        range: CountRange,
        because: String,
    ) -> AccountingStep {
        let above = counted.saturating_sub(range.most);
        let below = range.least.saturating_sub(counted);
        let residual = i64::try_from(above).unwrap_or(i64::MAX) - i64::try_from(below).unwrap_or(i64::MAX);
        let whole = [Side::Receiver, Side::Sender].into_iter().filter_map(|side| self.flow.tally(side));
        let whole = whole.map(|tally| tally.total_bytes.get()).max().unwrap_or_default();
        // The peer of an emulated tool may send other data on the same connection.
        let unaccounted =
            !self.foreign() && residual.unsigned_abs() as f64 > MAX_RESIDUAL_SHARE * whole as f64;
        let (point, host, counter) = at;
        AccountingStep {
            point,
            host: host.into(),
            counter,
            counted_bytes: Bytes::new(counted),
            min_bytes: Bytes::new(range.least),
            max_bytes: Bytes::new(range.most),
            residual_bytes: residual,
            unaccounted,
            because: because.into(),
        }
    }

    /// What was written, less what was still queued, has left the connections once.
    fn sender_socket(&self) -> Option<AccountingStep> {
        let tally = self.flow.sender.as_ref().filter(|_| self.flow.plan.transport == Transport::Tcp)?;
        let socket = socket(tally)?;
        let (written, queued) = (tally.total_bytes.get(), tally.queued_bytes.unwrap_or_default().get());
        let edge = u64::from(self.flow.plan.streams);
        let thrown = host_counts::thrown(tally);
        let most =
            written.saturating_add(edge).saturating_add(thrown.saturating_mul(host_counts::MAX_BUNDLE));
        let range = CountRange { least: written.saturating_sub(queued), most };
        let first = socket.sent_bytes.get().saturating_sub(socket.retransmitted_bytes.get());
        let mut because = format!("the program wrote {}", tally.total_bytes);
        if thrown > 0 {
            because += &format!("; {thrown} packets were thrown away by this host's own queue and sent anew");
        }
        let at = (AccountingPoint::SenderSocket, self.station(Side::Sender).name(), "the connections".into());
        Some(self.step(at, first, range, because))
    }

    /// What arrived in order was read. The end of each stream counts as a byte.
    fn receiver_socket(&self) -> Option<AccountingStep> {
        let tally = self.flow.receiver.as_ref().filter(|_| self.flow.plan.transport == Transport::Tcp)?;
        let socket = socket(tally)?;
        let read = tally.total_bytes.get();
        // If the test was cut off, bytes may remain unread.
        let cut = !tally.complete
            || self.flow.byte_accounting.is_some_and(|bytes| bytes.never_sent_bytes.get() > 0);
        let unread = if cut { socket.received_bytes.get().saturating_sub(read) } else { 0 };
        let edge = u64::from(self.flow.plan.streams);
        let range = CountRange { least: read, most: read.saturating_add(unread).saturating_add(edge) };
        let because = format!("the program read {}", tally.total_bytes);
        let at =
            (AccountingPoint::ReceiverSocket, self.station(Side::Receiver).name(), "the connections".into());
        Some(self.step(at, socket.received_bytes.get(), range, because))
    }

    fn qdisc(&self) -> Option<AccountingStep> {
        let station = self.station(Side::Sender);
        let interface = station.interface()?;
        let qdisc = interface.qdisc.as_ref().filter(|qdisc| qdisc.bytes.get() > 0)?;
        let load = station.load(Heading::Out, self.flow)?;
        let (range, because) = load.explained(HeaderCounting::Each { check: 0, least: 0 });
        let counter = format!("{} on {}", qdisc.kind, interface.name);
        let thrown = thrown_away(qdisc.dropped, "by it");
        Some(self.step(
            (AccountingPoint::SenderQdisc, station.name(), counter.into()),
            qdisc.bytes.get(),
            range,
            because + &thrown,
        ))
    }

    fn interface(&self, side: Side, heading: Heading, point: AccountingPoint) -> Option<AccountingStep> {
        let station = self.station(side);
        let interface = station.interface()?;
        let load = station.load(heading, self.flow)?;
        let passed = if heading == Heading::Out { interface.sent } else { interface.received };
        let (range, because) =
            load.explained(HeaderCounting::Counted { packets: passed.packets, check: station.check() });
        let because = because + &thrown_away(passed.dropped, "at it");
        let at = (point, station.name(), interface.name.clone());
        Some(self.step(at, passed.bytes.get(), range, because))
    }

    /// Both directions of both ends pass one interface, which counts them as outgoing.
    fn loopback(&self) -> Option<AccountingStep> {
        let [a, b] = &self.stations;
        let interface = a.interface().or(b.interface())?;
        let load = a.load(Heading::Out, self.flow)?.with(b.load(Heading::Out, self.flow)?);
        let passed = interface.sent;
        let (range, because) = load.explained(HeaderCounting::Counted { packets: passed.packets, check: 0 });
        let at =
            (AccountingPoint::SenderInterface, self.station(Side::Sender).name(), interface.name.clone());
        Some(self.step(at, passed.bytes.get(), range, because))
    }

    /// The port of an emulated network that leads from or to the server. The name of the client's node is not
    /// known.
    fn ports(&self) -> Vec<AccountingStep> {
        let Some(node) = self.record.start.as_ref().map(|start| node(&start.target)) else {
            return Vec::new();
        };
        let upload = self.flow.plan.direction == linerate_model::Direction::Upload;
        let heading = if upload { Heading::In } else { Heading::Out };
        let (station, has_flow) =
            (&self.stations[1], |flows: &[FlowId]| flows.contains(&self.flow.plan.flow));
        let Some(load) = station.load(heading, self.flow) else { return Vec::new() };
        let leads = |port: &str| {
            port.split_once('>').is_some_and(|(from, to)| if upload { to == node } else { from == node })
        };
        let ports = self.record.ports.iter().filter(|port| has_flow(&port.flows) && leads(&port.port));
        let step = |port| {
            let counts = host_counts::port_counts(port);
            let (mut range, because) = load.explained(HeaderCounting::Each { check: 4, least: 64 });
            let missing = counts.dropped.saturating_mul(load.full_frame()).saturating_add(counts.interval);
            range.least = range.least.saturating_sub(missing);
            let because = because + &thrown_away(counts.dropped, "at it");
            self.step(
                (AccountingPoint::Port, station.name(), format!("port {}", port.port).into()),
                counts.bytes,
                range,
                because,
            )
        };
        ports.map(step).collect()
    }
}

/// The target's node, without its port.
fn node(target: &str) -> &str {
    match target.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => target,
    }
}

fn socket(tally: &Tally) -> Option<&linerate_model::SocketCounts> {
    tally.kernel.as_ref()?.socket.as_ref()
}

fn thrown_away(packets: u64, whose: &str) -> String {
    if packets == 0 { String::new() } else { format!("; {packets} packets were thrown away {whose}") }
}
