//! JSON line by line (`--json-stream`).

use linerate_model::import::ForeignTest;

use super::document::{EndRoles, begin, end_claims, interval_claims};
use crate::import::json::JsonNode;
use crate::import::parsed_test::ParsedTest;

/// A test whose lines are being read.
#[derive(Debug, Default)]
pub(crate) struct Iperf3StreamReader {
    open: Option<(ForeignTest, EndRoles)>,
    intervals: u32,
}

impl Iperf3StreamReader {
    /// Parses one object, which is in line `line`.
    pub(crate) fn take(&mut self, event: &JsonNode, parsed: &mut ParsedTest) {
        let (Some(name), Some(data)) = (event.get("event").and_then(JsonNode::text), event.get("data"))
        else {
            return;
        };
        if name == "start" {
            self.close(parsed);
            let mut test = ForeignTest::default();
            let roles = begin(data, &mut test, parsed);
            self.open = Some((test, roles));
            return;
        }
        let (test, roles) = self.open.get_or_insert_default();
        match name {
            "interval" => {
                let path = format!("interval {}", self.intervals);
                self.intervals += 1;
                test.claims.extend(interval_claims(data, &path, *roles, parsed));
            }
            "error" => test.error = data.text().map(Into::into),
            "end" => {
                test.claims.extend(end_claims(data, *roles, parsed));
                self.close(parsed);
            }
            _ => {}
        }
    }

    /// Ends the test, even without its end event.
    pub(crate) fn close(&mut self, parsed: &mut ParsedTest) {
        self.intervals = 0;
        if let Some((test, _)) = self.open.take() {
            parsed.add(test);
        }
    }
}
