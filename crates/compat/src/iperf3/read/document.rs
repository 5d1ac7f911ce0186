//! The JSON object of a test (`-J`).

use linerate_model::Direction;
use linerate_model::import::{Claim, ClaimScope, ControlEnd, ForeignTest, Quantity};
use linerate_model::metrics::Side;
use linerate_units::{Bitrate, Bytes, Span};

use super::record::{RecordContext, claim, read as read_figure};
use crate::import::date::rfc3339;
use crate::import::json::JsonNode;
use crate::import::number::number;
use crate::import::parsed_test::ParsedTest;

/// Whether a JSON object is a result of iperf3.
pub(crate) fn is_document(root: &JsonNode) -> bool {
    let has = |key| root.get(key).is_some();
    has("start") && (has("intervals") || has("end") || has("error"))
        || root.get("start").is_some_and(|start| start.get("version").is_some())
}

/// The roles of the ends, from the start of the object.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EndRoles {
    end: Option<ControlEnd>,
    reverse: bool,
    bidir: bool,
    udp: bool,
}

impl EndRoles {
    /// Whether the local end sends: by the record, or else by the requested direction.
    fn local_sends(self, record: &JsonNode) -> Option<bool> {
        let stated = record.get("sender").and_then(JsonNode::flag);
        stated.or_else(|| self.end.map(|end| (end == ControlEnd::Client) != self.reverse))
    }

    fn direction(self, local_sends: Option<bool>) -> Option<Direction> {
        let client_sends = (self.end? == ControlEnd::Client) == local_sends?;
        Some(if client_sends { Direction::Upload } else { Direction::Download })
    }
}

/// Parses one object as a separate test.
pub(crate) fn read(root: &JsonNode, parsed: &mut ParsedTest) {
    let mut test = ForeignTest::default();
    let mut roles = EndRoles::default();
    if let Some(start) = root.get("start") {
        roles = begin(start, &mut test, parsed);
    }
    for (number, interval) in root.get("intervals").map_or(&[][..], JsonNode::items).iter().enumerate() {
        test.claims.extend(interval_claims(interval, &format!("intervals[{number}]"), roles, parsed));
    }
    if let Some(end) = root.get("end") {
        test.claims.extend(end_claims(end, roles, parsed));
    }
    test.error = root.get("error").and_then(JsonNode::text).map(Into::into);
    parsed.add(test);
    if let Some(inner) = root.get("server_output_json").filter(|inner| is_document(inner)) {
        read_inner(inner, parsed);
    }
}

/// Parses the server's object inside the client's; it cannot contain a further one.
fn read_inner(root: &JsonNode, parsed: &mut ParsedTest) {
    if root.get("server_output_json").is_none() {
        read(root, parsed);
    }
}

/// The `start` object.
pub(super) fn begin(start: &JsonNode, test: &mut ForeignTest, parsed: &mut ParsedTest) -> EndRoles {
    if let Some(version) = start.get("version").and_then(JsonNode::text) {
        parsed.version(version.strip_prefix("iperf ").unwrap_or(version));
    }
    let mut roles = EndRoles::default();
    for (key, end) in [("connecting_to", ControlEnd::Client), ("accepted_connection", ControlEnd::Server)] {
        if let Some(other) = start.get(key) {
            roles.end = Some(end);
            test.target = other.get("host").and_then(JsonNode::text).map(Into::into);
        }
    }
    test.written_by = roles.end;
    let stamp = start.get("timestamp").and_then(|stamp| stamp.get("timesecs"));
    test.started_at = stamp.and_then(JsonNode::count).and_then(rfc3339).map(Into::into);
    let positive =
        |node: &JsonNode, key: &str| node.get(key).and_then(JsonNode::count).filter(|count| *count > 0);
    if let Some(asked) = start.get("test_start") {
        let flag = |key| asked.get(key).and_then(JsonNode::flag).unwrap_or(false);
        let traffic = &mut test.spec.traffic;
        roles.udp = asked.get("protocol").and_then(JsonNode::text) == Some("UDP");
        (roles.reverse, roles.bidir) = (flag("reverse"), flag("bidir"));
        (traffic.udp, traffic.bidir) = (roles.udp, roles.bidir);
        traffic.download = roles.reverse && !roles.bidir;
        traffic.upload = !roles.reverse && !roles.bidir;
        let streams = positive(asked, "num_streams").and_then(|streams| u32::try_from(streams).ok());
        traffic.streams = streams.unwrap_or(1);
        traffic.length = positive(asked, "blksize").map(Bytes::new);
        traffic.bytes = positive(asked, "bytes").map(Bytes::new);
        traffic.blocks = positive(asked, "blocks");
        traffic.omit = positive(asked, "omit").map(Span::from_secs);
        traffic.duration = positive(asked, "duration").map(Span::from_secs);
        let rate = positive(asked, "target_bitrate").or_else(|| positive(start, "target_bitrate"));
        traffic.rate = rate.and_then(|rate| Bitrate::from_bps(rate as f64));
        traffic.fq_rate = positive(asked, "fqrate").and_then(|rate| Bitrate::from_bps(rate as f64));
        let interval =
            asked.get("interval").and_then(JsonNode::written).and_then(|text| number(text, true).ok());
        let interval = interval.and_then(|seconds| Span::from_secs_f64(seconds.value));
        traffic.interval = interval.filter(|span| *span > Span::ZERO).unwrap_or(traffic.interval);
        test.spec.socket.tos = positive(asked, "tos").and_then(|tos| u8::try_from(tos).ok());
    }
    test.spec.socket.mss = positive(start, "tcp_mss").and_then(|mss| u32::try_from(mss).ok());
    test.spec.socket.window = positive(start, "sock_bufsize").map(Bytes::new);
    for (key, quantity) in [
        ("tcp_mss_default", Quantity::Mss),
        ("sndbuf_actual", Quantity::SendBuffer),
        ("rcvbuf_actual", Quantity::ReceiveBuffer),
    ] {
        let figure = start.get(key).and_then(|node| read_figure(node, key, quantity, 1.0, parsed));
        test.effective.extend(figure.filter(|figure| figure.value > 0.0));
    }
    roles
}

/// One element of `intervals`.
pub(super) fn interval_claims(
    interval: &JsonNode,
    path: &str,
    roles: EndRoles,
    parsed: &mut ParsedTest,
) -> Vec<Claim> {
    let mut claims = Vec::new();
    let mut note = |node: &JsonNode, path: &str, parsed: &mut ParsedTest| {
        let sends = roles.local_sends(node);
        let side = sends.map(|sends| if sends { Side::Sender } else { Side::Receiver });
        let direction = roles.direction(sends);
        claims.push(claim(
            node,
            RecordContext { path, scope: ClaimScope::Interval, direction, side, only: None },
            parsed,
        ));
    };
    for (number, stream) in interval.get("streams").map_or(&[][..], JsonNode::items).iter().enumerate() {
        note(stream, &format!("{path}.streams[{number}]"), parsed);
    }
    for key in ["sum", "sum_bidir_reverse"] {
        if let Some(sum) = interval.get(key) {
            note(sum, &format!("{path}.{key}"), parsed);
        }
    }
    claims.retain(|claim| !claim.figures.is_empty());
    claims
}

/// The quantities that a datagram sender knows.
const SENT: &[Quantity] =
    &[Quantity::Seconds, Quantity::Bytes, Quantity::Bitrate, Quantity::Packets, Quantity::Retransmits];
/// Bytes and rate of the sender next to times of the receiver, which do not match.
const SENT_WITHOUT_TIME: &[Quantity] = &[Quantity::Bytes, Quantity::Bitrate];
/// The quantities that a receiver knows, in records with bytes and rate of the sender.
const FATE: &[Quantity] =
    &[Quantity::Jitter, Quantity::Lost, Quantity::Packets, Quantity::LossRatio, Quantity::OutOfOrder];

/// The `end` object.
pub(super) fn end_claims(end: &JsonNode, roles: EndRoles, parsed: &mut ParsedTest) -> Vec<Claim> {
    let mut claims = Vec::new();
    let mut note = |node: &JsonNode, path: &str, side, only, parsed: &mut ParsedTest| {
        let direction = roles.direction(roles.local_sends(node));
        let mut found = claim(
            node,
            RecordContext { path, scope: ClaimScope::Total, direction, side: Some(side), only },
            parsed,
        );
        // Before a server knows what was sent, it prints a loss ratio of 0.
        let lost = found.figure(Quantity::Lost).is_some_and(|lost| lost.value > 0.0);
        found
            .figures
            .retain(|figure| !(lost && figure.quantity == Quantity::LossRatio && figure.value == 0.0));
        // A server prints its report before it knows the other half, and writes 0 for it.
        let remote = roles.local_sends(node).is_some_and(|sends| sends != (side == Side::Sender));
        let bytes = found.figure(Quantity::Bytes).map(|bytes| bytes.value);
        if !(roles.end == Some(ControlEnd::Server) && remote && bytes == Some(0.0)) {
            claims.push(found);
        }
    };
    for (number, stream) in end.get("streams").map_or(&[][..], JsonNode::items).iter().enumerate() {
        for (key, side) in [("sender", Side::Sender), ("receiver", Side::Receiver)] {
            if let Some(half) = stream.get(key) {
                note(half, &format!("end.streams[{number}].{key}"), side, None, parsed);
            }
        }
        if let Some(udp) = stream.get("udp") {
            let path = format!("end.streams[{number}].udp");
            note(udp, &path, Side::Sender, Some(SENT_WITHOUT_TIME), parsed);
            note(udp, &path, Side::Receiver, Some(FATE), parsed);
        }
    }
    for reverse in ["", "_bidir_reverse"] {
        let (sent, received) = (format!("sum_sent{reverse}"), format!("sum_received{reverse}"));
        let only = if roles.udp { Some(SENT) } else { None };
        for (key, side, only) in [(&sent, Side::Sender, only), (&received, Side::Receiver, None)] {
            // In the sums of datagrams the flag tells the half and not the writer.
            let Some(sum) = end.get(key) else { continue };
            if roles.udp {
                let mut found = udp_sum(sum, key, side, only, roles, !reverse.is_empty(), parsed);
                if !(found.figure(Quantity::Bytes).is_some_and(|bytes| bytes.value == 0.0)
                    && roles.end == Some(ControlEnd::Server))
                {
                    found.figures.retain(|figure| figure.value >= 0.0);
                    claims.push(found);
                }
                continue;
            }
            note_sum(sum, key, side, roles, &mut claims, parsed);
        }
    }
    if end.get("sum_sent").is_none()
        && let Some(sum) = end.get("sum")
    {
        let direction = roles.direction(roles.local_sends(sum));
        for (side, only) in [(Side::Sender, SENT_WITHOUT_TIME), (Side::Receiver, FATE)] {
            let place = RecordContext {
                path: "end.sum",
                scope: ClaimScope::Total,
                direction,
                side: Some(side),
                only: Some(only),
            };
            claims.push(claim(sum, place, parsed));
        }
    }
    claims.extend(cpu(end, roles, parsed));
    claims.retain(|claim| !claim.figures.is_empty());
    claims
}

fn note_sum(
    sum: &JsonNode,
    key: &str,
    side: Side,
    roles: EndRoles,
    claims: &mut Vec<Claim>,
    parsed: &mut ParsedTest,
) {
    let sends = roles.local_sends(sum);
    let path = format!("end.{key}");
    let place = RecordContext {
        path: &path,
        scope: ClaimScope::Total,
        direction: roles.direction(sends),
        side: Some(side),
        only: None,
    };
    let found = claim(sum, place, parsed);
    let remote = sends.is_some_and(|sends| sends != (side == Side::Sender));
    let nothing = found.figure(Quantity::Bytes).is_some_and(|bytes| bytes.value == 0.0);
    if !(roles.end == Some(ControlEnd::Server) && remote && nothing) {
        claims.push(found);
    }
}

fn udp_sum(
    sum: &JsonNode,
    key: &str,
    side: Side,
    only: Option<&[Quantity]>,
    roles: EndRoles,
    backwards: bool,
    parsed: &mut ParsedTest,
) -> Claim {
    let download = if roles.bidir { backwards } else { roles.reverse };
    let direction = Some(if download { Direction::Download } else { Direction::Upload });
    let path = format!("end.{key}");
    claim(
        sum,
        RecordContext { path: &path, scope: ClaimScope::Total, direction, side: Some(side), only },
        parsed,
    )
}

/// Shares of CPU time. A server prints 0 for the client, because it does not know the client's yet.
fn cpu(end: &JsonNode, roles: EndRoles, parsed: &mut ParsedTest) -> Option<Claim> {
    let shares = end.get("cpu_utilization_percent")?;
    let mut found =
        Claim { line: shares.line, quote: "end.cpu_utilization_percent".into(), ..Claim::default() };
    for (key, quantity) in [("host_total", Quantity::CpuLocal), ("remote_total", Quantity::CpuRemote)] {
        let figure = shares.get(key).and_then(|node| read_figure(node, key, quantity, 0.01, parsed));
        let not_received = quantity == Quantity::CpuRemote && roles.end == Some(ControlEnd::Server);
        found.figures.extend(figure.filter(|figure| !(not_received && figure.value == 0.0)));
    }
    (!found.figures.is_empty()).then_some(found)
}
