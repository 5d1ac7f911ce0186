//! Tests with plans as text.

mod buffers;
mod bundled_plans;
mod conducting;
mod cross_traffic;
mod flows_at_points;
mod judging;
mod laws;
mod layers;
mod methods;
mod mistakes;
mod rfc2544;
mod times;
mod wrong_assertions;
mod wrong_axes;

use crate::{Plan, PlanError, Source, Surroundings, SurroundingsError, read};

/// Files that can be included or are topologies, and a topology `two` with the hosts `a` and `b` and a parameter `buffer`.
pub(crate) struct TestSurroundings(pub(crate) &'static [(&'static str, &'static str)]);

impl Surroundings for TestSurroundings {
    fn include(&self, name: &str, relative_to: &str) -> Result<Source, SurroundingsError> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        let source = |text: &str| Source { name: name.to_owned(), text: text.to_owned() };
        found.map(|(_, text)| source(text)).ok_or_else(|| SurroundingsError::File {
            file: format!("{name} next to {relative_to}"),
            source: std::io::Error::other("it is not there"),
        })
    }

    fn topology(&self, topology: &str, relative_to: &str) -> Result<Source, SurroundingsError> {
        self.include(topology, relative_to)
    }

    fn hosts(&self, topology: &str, set: &[(&str, &str)], _: &str) -> Result<Vec<String>, SurroundingsError> {
        let wrong = |text: String| Err(SurroundingsError::Network(text.into()));
        match set.iter().find(|(key, _)| *key != "buffer") {
            _ if topology != "two" => wrong(format!("there is no topology {topology}")),
            Some((key, _)) => wrong(format!("there is no parameter {key}")),
            None => Ok(["a", "b"].map(str::to_owned).to_vec()),
        }
    }
}

pub(crate) fn source(text: &str) -> Source {
    Source { name: "plan.toml".to_owned(), text: text.to_owned() }
}

/// Reads a plan with this text and two hosts.
pub(crate) fn try_plan(text: &str, settings: &[&str]) -> Result<Plan, PlanError> {
    let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
    read(source(&format!("{text}\n[host.a]\n[host.b]\n")), &settings, &TestSurroundings(&[]))
}

pub(crate) fn plan(text: &str) -> Plan {
    try_plan(text, &[]).unwrap_or_else(|error| panic!("{error}"))
}
