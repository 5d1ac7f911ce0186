//! The request for a test, and what is made of it.

use std::collections::BTreeMap;
use std::net::{IpAddr, ToSocketAddrs};

use linerate_model::{LabelOptions, RunLabels, TestSpec};
use linerate_proto::native::NATIVE;
use linerate_runner::{Measurement, RunnerError, target};
use linerate_sock::iface;
use linerate_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::allowed_target::AllowedTarget;
use crate::problem::{HttpProblem, INVALID_SETTING, TARGET};

/// The name of a test on this host alone.
const THIS_HOST: &str = "this host";
/// Most characters of a host with its port; a name has at most 253.
const MAX_HOST_CHARS: usize = 300;

/// A test to start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunRequest {
    /// The other host, as HOST, HOST:PORT or \[ADDRESS\]:PORT; `this host` for a test over the loopback interface.
    #[schemars(length(min = 1, max = 300))]
    pub(crate) to: String,
    /// What to measure.
    #[serde(default)]
    pub(crate) test: TestSpec,
    /// Name of the run, which repeats of one configuration may share.
    #[serde(default)]
    pub(crate) name: Option<String>,
    /// Notes by their keys.
    #[serde(default)]
    pub(crate) notes: BTreeMap<String, String>,
}

/// What tests and plans of the pages may not exceed.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunLimits {
    /// Where they may go; empty for everywhere.
    pub(crate) targets: Vec<AllowedTarget>,
    /// How long one may take that keeps this host busy; absent for no limit.
    pub(crate) longest: Option<Span>,
}

impl RunLimits {
    /// Whether a test may go to a host, a name or an address.
    pub(crate) fn allow(&self, host: &str) -> bool {
        self.targets.is_empty() || self.targets.iter().any(|allowed| allowed.allows(host))
    }

    /// Refuses a host where tests may not go, which the request has in `field`.
    pub(crate) fn check_host(&self, host: &str, field: &str) -> Result<(), HttpProblem> {
        if self.allow(host) {
            return Ok(());
        }
        let all: Vec<String> = self.targets.iter().map(ToString::to_string).collect();
        let text = format!("tests from these pages may only go to {}", all.join(", "));
        Err(HttpProblem::new(TARGET, text).at(field))
    }

    /// Refuses a multicast group where tests may not go: its receivers are hosts too, and have not been asked.
    pub(crate) fn check_group(&self, group: Option<IpAddr>, field: &str) -> Result<(), HttpProblem> {
        group.map_or(Ok(()), |group| self.check_host(&group.to_string(), field))
    }

    /// Refuses `what`, which would keep this host busy for `time`, if that is too long.
    pub(crate) fn check_time(&self, what: &str, time: Option<Span>, field: &str) -> Result<(), HttpProblem> {
        let (Some(longest), Some(time)) = (self.longest, time) else { return Ok(()) };
        if time <= longest {
            return Ok(());
        }
        let text = format!("the {what} would take {time}, and this host measures at most {longest}");
        Err(HttpProblem::new(INVALID_SETTING, text).at(field).limit(longest.as_ns() / 1_000_000_000))
    }
}

/// A request that was checked.
#[derive(Debug)]
pub(crate) struct TestTask {
    /// The other host and its port; absent for a test over the loopback interface.
    target: Option<(String, Option<u16>)>,
    labels: RunLabels,
    /// What was asked for.
    pub(crate) request: RunRequest,
}

impl RunRequest {
    /// Checks the request.
    ///
    /// # Errors
    /// The field that is wrong, or a limit is exceeded.
    pub(crate) fn check(mut self, limits: &RunLimits) -> Result<TestTask, HttpProblem> {
        self.test.prepare_sweep();
        let spec = &self.test;
        spec.check().and_then(|()| spec.agree()).map_err(|error| HttpProblem::of_spec(spec, &error))?;
        limits.check_time("test", spec.expected_time(), "test.traffic.duration_ns")?;
        let target = if self.to == THIS_HOST {
            // A group stays on the loopback interface.
            None
        } else {
            limits.check_group(spec.traffic.multicast, "test.traffic.multicast")?;
            Some(self.target(limits)?)
        };
        Ok(TestTask { target, labels: self.labels()?, request: self })
    }

    fn target(&self, limits: &RunLimits) -> Result<(String, Option<u16>), HttpProblem> {
        let typed = self.to.trim();
        if !is_host_text(typed) {
            let text = format!(
                "a host has at most {MAX_HOST_CHARS} letters, digits and the characters . - _ : % [ ]"
            );
            return Err(HttpProblem::new(INVALID_SETTING, text).at("to"));
        }
        let found = target(typed, None).map_err(|error| HttpProblem::new(INVALID_SETTING, error).at("to"))?;
        limits.check_host(&found.0, "to")?;
        Ok(found)
    }

    /// The name and notes.
    fn labels(&self) -> Result<RunLabels, HttpProblem> {
        let mut labels = RunLabels::default();
        let invalid = |error: &dyn ToString| HttpProblem::new(INVALID_SETTING, error.to_string());
        if let Some(name) = self.name.as_deref().filter(|name| !name.trim().is_empty()) {
            let name = LabelOptions::checked_name(name).map_err(|error| invalid(&error).at("name"))?;
            labels.name = Some(name.into());
        }
        for (key, note) in &self.notes {
            let entry = LabelOptions::checked_entry(&format!("notes.{key}={note}"));
            let (key, note) = entry.map_err(|error| invalid(&error).at(format!("notes.{key}")))?;
            labels.notes.insert(key.into(), note.into());
        }
        Ok(labels)
    }
}

impl TestTask {
    /// How long the test takes; absent if its end depends on the network.
    pub(crate) fn expected_time(&self) -> Option<Span> {
        self.request.test.expected_time()
    }

    /// Whether the test is over the loopback interface, against a server of its own.
    pub(crate) fn is_loopback(&self) -> bool {
        self.target.is_none()
    }

    /// Whether the other host is the server on port `own` of this program. Resolves its name.
    pub(crate) fn is_against_server(&self, own: u16) -> bool {
        let Some((host, port)) = &self.target else { return false };
        let port = port.unwrap_or(NATIVE.default_port);
        if port != own {
            return false;
        }
        let addresses: Vec<IpAddr> =
            iface::addresses().unwrap_or_default().into_iter().map(|entry| entry.address).collect();
        let resolved = (host.as_str(), port).to_socket_addrs();
        resolved.is_ok_and(|mut all| {
            all.any(|address| address.ip().is_loopback() || addresses.contains(&address.ip().to_canonical()))
        })
    }

    /// The measurement with the id `run`; a test over loopback goes to `loopback`, a port of this host.
    pub(crate) fn measurement(&self, run: &str, loopback: Option<u16>) -> Result<Measurement, RunnerError> {
        let home = ("127.0.0.1".to_owned(), loopback);
        let (host, port) = self.target.clone().unwrap_or(home);
        let measurement = Measurement::of(host, port, self.request.test.clone())?;
        Ok(Measurement { run: run.to_owned(), labels: self.labels.clone(), ..measurement })
    }
}

/// Whether a text may be a host with its port. Names have letters of any script.
fn is_host_text(text: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || ".-_:%[]".contains(c);
    text.chars().count() <= MAX_HOST_CHARS && !text.starts_with('-') && text.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_goes_to_a_group_only_where_tests_may() {
        let limits = RunLimits {
            targets: ["192.0.2.0/24", "239.1.0.0/16"].map(|target| target.parse().unwrap()).into(),
            ..RunLimits::default()
        };
        let field_of = |to: &str, group: &str| {
            let test = serde_json::json!({ "traffic": { "udp": true, "multicast": group } });
            let request = serde_json::json!({ "to": to, "test": test });
            let request: RunRequest = serde_json::from_value(request).unwrap();
            request.check(&limits).err().map(|problem| (problem.status, problem.field.unwrap()))
        };
        assert_eq!(field_of("192.0.2.7", "239.1.2.3"), None);
        assert_eq!(field_of("192.0.2.7", "239.9.9.9"), Some((403, "test.traffic.multicast".to_owned())));
        assert_eq!(field_of("198.51.100.7", "239.1.2.3"), Some((403, "to".to_owned())));
        assert_eq!(field_of(THIS_HOST, "239.9.9.9"), None, "it stays on the loopback interface");
    }
}
