//! The result of a run in a lab: goodput, caveats, and the series of its sender and of the ports.

use serde_json::Value;

/// The result document of one upload.
pub(super) struct UploadResult {
    document: Value,
    /// Goodput at the receiver, bits per second.
    pub(super) goodput_bps: f64,
}

/// The readings of one interval.
pub(super) struct ResultInterval<'a> {
    /// Start, seconds.
    pub(super) start_s: f64,
    /// End, seconds.
    pub(super) end_s: f64,
    /// Whether it is outside the measured part.
    pub(super) outside: bool,
    readings: &'a Value,
}

impl ResultInterval<'_> {
    /// A metric by its name; absent if it was not read.
    pub(super) fn read(&self, metric: &str) -> Option<f64> {
        self.readings[metric].as_f64()
    }
}

impl UploadResult {
    pub(super) fn read(output: &[u8]) -> Result<Self, String> {
        let document: Value =
            serde_json::from_slice(output).map_err(|e| format!("linerate printed no JSON: {e}"))?;
        let goodput = document["flows"][0]["receiver"]["bitrate_bps"].as_f64().filter(|bps| *bps > 0.0);
        let goodput_bps = goodput.ok_or("the run carried nothing")?;
        Ok(Self { document, goodput_bps })
    }

    /// A value of the flow, by its path such as `/sender/seconds`.
    pub(super) fn number(&self, path: &str) -> Result<f64, String> {
        self.document["flows"][0]
            .pointer(path)
            .and_then(Value::as_f64)
            .ok_or_else(|| format!("the result has no {path}"))
    }

    /// The whole document.
    pub(super) fn text(&self) -> String {
        self.document.to_string()
    }

    /// Whether the run has this caveat.
    pub(super) fn has_caveat(&self, kind: &str) -> bool {
        [&self.document["flows"][0]["caveats"], &self.document["caveats"]]
            .into_iter()
            .flat_map(|caveats| caveats.as_array().into_iter().flatten())
            .any(|caveat| caveat["kind"] == kind)
    }

    /// The series of the sender, from its first byte.
    pub(super) fn sender(&self) -> Vec<ResultInterval<'_>> {
        let samples = self.document["flows"][0]["samples"].as_array().into_iter().flatten();
        samples.filter(|sample| sample["side"] == "sender").filter_map(interval).collect()
    }

    /// The series of a port, from the start of the run.
    pub(super) fn port(&self, name: &str) -> Vec<ResultInterval<'_>> {
        let ports = self.document["ports"].as_array().into_iter().flatten();
        let samples = ports.filter(|port| port["port"] == name).flat_map(|port| port["samples"].as_array());
        samples.flatten().filter_map(interval).collect()
    }

    /// The mean of a metric of the sender over the measured part.
    pub(super) fn sender_mean(&self, metric: &str) -> Result<f64, String> {
        let measured = self.sender().into_iter().filter(|interval| !interval.outside);
        let all: Vec<f64> = measured.filter_map(|interval| interval.read(metric)).collect();
        if all.is_empty() {
            return Err(format!("the sender did not read {metric}"));
        }
        Ok(all.iter().sum::<f64>() / all.len() as f64)
    }
}

fn interval(sample: &Value) -> Option<ResultInterval<'_>> {
    Some(ResultInterval {
        start_s: sample["start_ns"].as_f64()? / 1e9,
        end_s: sample["end_ns"].as_f64()? / 1e9,
        outside: sample["outside"].as_bool().unwrap_or_default(),
        readings: &sample["readings"],
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::json;

    pub(in super::super) fn interval_of(readings: &Value, outside: bool) -> ResultInterval<'_> {
        ResultInterval { start_s: 0.0, end_s: 0.0, outside, readings }
    }

    /// A run of three seconds, of which the first is omitted.
    pub(in super::super) fn run() -> UploadResult {
        let sample = |side: &str, end: u64, outside: bool, cwnd: u64| {
            let start = (end - 1) * 1_000_000_000;
            json!({ "side": side, "start_ns": start, "end_ns": start + 1_000_000_000, "outside": outside,
                    "readings": { "tcp.cwnd": cwnd, "tcp.unacked": cwnd.min(15) } })
        };
        let port = |end: u64, dropped: u64| {
            let start = (end - 1) * 100_000_000;
            json!({ "start_ns": start, "end_ns": start + 100_000_000, "readings": { "port.dropped": dropped } })
        };
        let document = json!({
            "flows": [{
                "receiver": { "bitrate_bps": 8e6, "first_read_ns": 150_000_000 },
                "caveats": [{ "kind": "lab_late", "text": "" }],
                "samples": [
                    sample("sender", 1, true, 10), sample("receiver", 1, true, 11),
                    sample("sender", 2, false, 20), sample("sender", 3, false, 40),
                ],
            }],
            "ports": [
                { "port": "a>s", "samples": [port(1, 9)] },
                { "port": "s>b", "samples": [port(11, 0), port(21, 3), port(22, 1)] },
            ],
            "caveats": [{ "kind": "lab_packet_limit", "text": "" }],
        });
        UploadResult::read(document.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn only_the_measured_part_of_the_sender_counts() {
        assert_eq!(run().sender_mean("tcp.cwnd"), Ok(30.0));
        assert!(run().sender_mean("tcp.snd_wnd").is_err());
        assert_eq!(run().sender().len(), 3);
    }

    #[test]
    fn ports_caveats_and_values_are_found() {
        let run = run();
        assert_eq!(run.port("s>b").len(), 3);
        assert!(run.port("b>s").is_empty());
        assert!(run.has_caveat("lab_late") && run.has_caveat("lab_packet_limit"));
        assert!(!run.has_caveat("lab_gone"));
        assert_eq!(run.number("/receiver/bitrate_bps"), Ok(8e6));
        assert!(run.number("/sender/seconds").is_err());
    }

    #[test]
    fn a_run_that_carried_nothing_is_no_run() {
        assert!(UploadResult::read(br#"{"flows":[{"receiver":{"bitrate_bps":0.0}}]}"#).is_err());
        assert!(UploadResult::read(br#"{"flows":[]}"#).is_err());
        assert!(UploadResult::read(b"").is_err());
    }
}
