//! The results that the ends exchange after a test, the client's first.

use linerate_units::Span;
use serde::{Serialize, Serializer};

use super::json::Iperf3Json;
use super::report::{CpuShare, ServerOutput, StreamEndCounts};

/// The results of one end.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Iperf3Results {
    /// CPU share of its process.
    pub cpu: CpuShare,
    /// Whether the retransmitted segments of its streams are known; absent if it only receives.
    pub knows_retransmits: Option<bool>,
    /// Congestion control algorithm of its streams; TCP only.
    pub congestion: Option<String>,
    /// The server's report, if the client requested it.
    pub output: Option<ServerOutput>,
    /// Streams by number.
    pub streams: Vec<StreamResult>,
}

/// The results of one end for one stream.
///
/// # Units
/// seconds
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct StreamResult {
    /// Number of the stream.
    pub id: i64,
    /// Bytes after the omitted part.
    pub bytes: i64,
    /// Segments retransmitted after the omitted part; -1 if unknown.
    pub retransmits: i64,
    /// Jitter.
    pub jitter: f64,
    /// Lost datagrams, including the omitted part.
    pub errors: i64,
    /// Datagrams sent, or the highest number received; including the omitted part.
    pub packets: i64,
    /// The part of these counts in the omitted part; absent before iperf3 3.14.
    pub omitted: Option<Omitted>,
    /// Always 0.
    pub start_time: f64,
    /// Duration of this end's measurement.
    pub end_time: f64,
}

/// Counts at the end of the omitted part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Omitted {
    /// Lost datagrams.
    pub errors: i64,
    /// Datagrams sent, or the highest number received.
    pub packets: i64,
}

/// The layout of the message.
#[derive(Serialize)]
struct ResultsMessage<'a> {
    #[serde(serialize_with = "finite")]
    cpu_util_total: f64,
    #[serde(serialize_with = "finite")]
    cpu_util_user: f64,
    #[serde(serialize_with = "finite")]
    cpu_util_system: f64,
    sender_has_retransmits: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    congestion_used: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_output_text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_output_json: Option<&'a serde_json::Value>,
    streams: Vec<StreamMessage>,
}

#[derive(Serialize)]
struct StreamMessage {
    id: i64,
    bytes: i64,
    retransmits: i64,
    #[serde(serialize_with = "finite")]
    jitter: f64,
    errors: i64,
    omitted_errors: i64,
    packets: i64,
    omitted_packets: i64,
    #[serde(serialize_with = "finite")]
    start_time: f64,
    #[serde(serialize_with = "finite")]
    end_time: f64,
}

impl Iperf3Results {
    /// Encodes the message.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let (text, json) = match &self.output {
            None => (None, None),
            Some(ServerOutput::Text(text)) => (Some(text.as_str()), None),
            Some(ServerOutput::Json(json)) => (None, Some(json)),
        };
        let message = ResultsMessage {
            cpu_util_total: self.cpu.total,
            cpu_util_user: self.cpu.user,
            cpu_util_system: self.cpu.system,
            sender_has_retransmits: self.knows_retransmits.map_or(-1, i64::from),
            congestion_used: self.congestion.as_deref(),
            server_output_text: text,
            server_output_json: json,
            streams: self.streams.iter().map(StreamResult::message).collect(),
        };
        serde_json::to_vec(&message).unwrap_or_default()
    }

    /// Decodes a message; absent if it is not JSON or lacks a required field. `own` is this end's duration,
    /// used if the peer does not send its own (iperf3 3.1).
    #[must_use]
    pub fn read(json: &[u8], own: Span) -> Option<Self> {
        let node = Iperf3Json::parse(json)?;
        let cpu = CpuShare {
            total: node.float("cpu_util_total")?,
            user: node.float("cpu_util_user")?,
            system: node.float("cpu_util_system")?,
        };
        let knows = node.integer("sender_has_retransmits")?;
        let output = match (node.page("server_output_text"), node.get("server_output_json")) {
            (Some(text), _) => Some(ServerOutput::Text(text.to_owned())),
            (None, Some(json)) => Some(ServerOutput::Json(json.to_value())),
            (None, None) => None,
        };
        let streams = node.list("streams")?.iter().map(|stream| StreamResult::read(stream, own));
        Some(Self {
            cpu,
            knows_retransmits: (knows >= 0).then_some(knows > 0),
            congestion: node.text("congestion_used"),
            output,
            streams: streams.collect::<Option<_>>()?,
        })
    }

    /// The results of the stream with this number.
    #[must_use]
    pub fn stream(&self, id: i64) -> Option<&StreamResult> {
        self.streams.iter().find(|stream| stream.id == id)
    }
}

impl StreamResult {
    fn read(node: &Iperf3Json, own: Span) -> Option<Self> {
        let omitted = match (node.integer("omitted_errors"), node.integer("omitted_packets")) {
            (Some(errors), Some(packets)) => Some(Omitted { errors, packets }),
            (None, None) => None,
            _ => return None,
        };
        Some(Self {
            id: node.integer("id")?,
            bytes: node.integer("bytes")?,
            retransmits: node.integer("retransmits")?,
            // A value that is not finite is written as null.
            jitter: if node.get("jitter")? == &Iperf3Json::Null { 0.0 } else { node.float("jitter")? },
            errors: node.integer("errors")?,
            packets: node.integer("packets")?,
            omitted,
            start_time: node.float("start_time").unwrap_or(0.0),
            end_time: node.float("end_time").unwrap_or(own.as_secs_f64()),
        })
    }

    /// Converts the results for a report. `sent` says whether that end sent the stream; `own` is used for the
    /// omitted part if the peer does not report it.
    #[must_use]
    pub fn side(&self, sent: bool, knows_retransmits: Option<bool>, own: Omitted) -> StreamEndCounts {
        let count = |value: i64| u64::try_from(value).unwrap_or(0);
        let knows = sent && knows_retransmits == Some(true) && self.retransmits >= 0;
        let omitted = self.omitted.unwrap_or(own);
        StreamEndCounts {
            bytes: count(self.bytes),
            duration: Span::from_secs_f64(self.end_time - self.start_time).unwrap_or_default(),
            retransmits: knows.then(|| count(self.retransmits)),
            packets: count(self.packets.saturating_sub(omitted.packets)),
            lost: self.errors.saturating_sub(omitted.errors),
            out_of_order: 0,
            jitter: Span::from_secs_f64(self.jitter).unwrap_or_default(),
        }
    }

    fn message(&self) -> StreamMessage {
        let omitted = self.omitted.unwrap_or_default();
        StreamMessage {
            id: self.id,
            bytes: self.bytes,
            retransmits: self.retransmits,
            jitter: self.jitter,
            errors: self.errors,
            omitted_errors: omitted.errors,
            packets: self.packets,
            omitted_packets: omitted.packets,
            start_time: self.start_time,
            end_time: self.end_time,
        }
    }
}

/// A non-finite number would be written as null, which peers reject. Integers are written without a point.
fn finite<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if !value.is_finite() {
        serializer.serialize_i64(0)
    } else if value.fract() == 0.0 && value.abs() < 1e15 {
        serializer.serialize_i64(*value as i64)
    } else {
        serializer.serialize_f64(*value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Span = Span::from_secs(7);

    /// Sent by a client of iperf3 3.21+.
    const REAL: &str = r#"{"cpu_util_total":0.613,"cpu_util_user":0,"cpu_util_system":0.613,"sender_has_retransmits":1,"congestion_used":"bbr","streams":[{"id":1,"bytes":503808,"retransmits":0,"jitter":0,"errors":0,"omitted_errors":0,"packets":0,"omitted_packets":0,"start_time":0,"end_time":2.001337}]}"#;

    #[test]
    fn a_real_message_is_read_and_written_byte_for_byte() {
        let results = Iperf3Results::read(REAL.as_bytes(), OWN).unwrap();
        assert_eq!(results.knows_retransmits, Some(true));
        assert_eq!(results.congestion.as_deref(), Some("bbr"));
        let side = results.stream(1).unwrap().side(true, results.knows_retransmits, Omitted::default());
        assert_eq!((side.bytes, side.retransmits), (503_808, Some(0)));
        assert_eq!(side.duration, Span::from_ns(2_001_337_000));
        assert_eq!(String::from_utf8(results.write()).unwrap(), REAL);
    }

    #[test]
    fn negatives_wrapped_by_3_12_mean_unknown() {
        let wrapped = REAL
            .replace("\"sender_has_retransmits\":1", "\"sender_has_retransmits\":18446744073709551615")
            .replace("\"retransmits\":0", "\"retransmits\":18446744073709551615");
        let results = Iperf3Results::read(wrapped.as_bytes(), OWN).unwrap();
        assert_eq!(results.knows_retransmits, None);
        assert_eq!(results.stream(1).unwrap().side(true, None, Omitted::default()).retransmits, None);
    }

    #[test]
    fn old_peers_leave_things_out() {
        let old = REAL
            .replace("\"omitted_errors\":0,", "")
            .replace("\"omitted_packets\":0,", "")
            .replace(",\"start_time\":0,\"end_time\":2.001337", "");
        let results = Iperf3Results::read(old.as_bytes(), OWN).unwrap();
        let own = Omitted { errors: 0, packets: 9 };
        let stream = StreamResult { packets: 30, ..*results.stream(1).unwrap() };
        let side = stream.side(true, None, own);
        assert_eq!((side.duration, side.packets), (OWN, 21));
        let incomplete = REAL.replace("\"omitted_errors\":0,", "");
        assert_eq!(Iperf3Results::read(incomplete.as_bytes(), OWN), None);
    }

    #[test]
    fn what_must_be_there_must_be_there() {
        for key in ["cpu_util_user", "sender_has_retransmits", "streams", "id", "bytes", "jitter", "packets"]
        {
            let without = REAL.replace(&format!("\"{key}\":"), "\"other\":");
            assert_eq!(Iperf3Results::read(without.as_bytes(), OWN), None, "{key}");
        }
        assert_eq!(Iperf3Results::read(b"null", OWN), None);
    }

    #[test]
    fn numbers_that_are_none_are_not_written_as_null() {
        let cpu = CpuShare { total: f64::NAN, user: f64::INFINITY, system: 0.5 };
        let text = String::from_utf8(Iperf3Results { cpu, ..Iperf3Results::default() }.write()).unwrap();
        assert!(text.starts_with(
            r#"{"cpu_util_total":0,"cpu_util_user":0,"cpu_util_system":0.5,"sender_has_retransmits":-1,"#
        ));
    }

    #[test]
    fn a_report_of_the_server_comes_as_text_or_as_json() {
        let with = |output| Iperf3Results { output: Some(output), ..Iperf3Results::default() };
        for output in
            [ServerOutput::Text("[ ID]\n".into()), ServerOutput::Json(serde_json::json!({"end": {"a": 1}}))]
        {
            let sent = with(output);
            assert_eq!(Iperf3Results::read(&sent.write(), OWN).unwrap().output, sent.output);
        }
    }
}
