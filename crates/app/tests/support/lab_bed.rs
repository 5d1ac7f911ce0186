//! The hosts of a lab as a test bed: an agent on each, and a coordinator inside the first one.

use std::fs::File;
use std::sync::atomic::AtomicBool;

use linerate_control::{FlowEnd, FlowJob, HostRef, Log, RunEvent, RunGroup, RunServer, TestBed, run_group};
use linerate_model::{RunRecord, TestSpec};
use linerate_proto::agent::Token;
use linerate_sock::netns;
use linerate_units::Span;

use super::{AgentPair, Folder, RunningLab, ServeProcess, token_file};

/// Hosts of a lab with their agents.
pub(crate) struct LabBed {
    pub(crate) lab: RunningLab,
    names: Vec<&'static str>,
    pub(crate) servers: Vec<ServeProcess>,
    _folder: Folder,
}

impl LabBed {
    pub(crate) fn up(topology: &str, names: &[&'static str]) -> Self {
        let (folder, token) = token_file();
        let lab = RunningLab::up(topology, &[]);
        let serve = ["serve", "-p", "0", "--json", "--agent-token-file", &token];
        let servers = names.iter().map(|name| ServeProcess::from(lab.linerate(name, &serve))).collect();
        Self { lab, names: names.to_vec(), servers, _folder: folder }
    }

    /// What the lab says about a host.
    fn about(&self, host: &str, key: &str) -> String {
        let status = self.lab.status();
        let hosts = status["hosts"].as_array().unwrap();
        hosts.iter().find(|found| found["name"] == host).unwrap()[key].as_str().unwrap().to_owned()
    }

    pub(crate) fn address(&self, host: &str) -> String {
        self.about(host, "address").split('/').next().unwrap().to_owned()
    }

    /// A flow between two hosts, by their numbers.
    pub(crate) fn flow(from: usize, to: usize, spec: &TestSpec) -> FlowJob {
        FlowJob {
            from,
            to: RunServer::Host(to),
            spec: spec.clone(),
            start_after: Span::ZERO,
            after: None,
            cross_traffic: false,
            plan: None,
        }
    }

    /// Runs the flows together. `on` sees every event.
    pub(crate) fn run(
        &self,
        flows: Vec<FlowJob>,
        on: &mut (dyn FnMut(&RunEvent<'_>) + Send),
    ) -> Vec<(FlowEnd, RunRecord)> {
        let host = |(name, server): (&&str, &ServeProcess)| HostRef {
            name: (*name).to_owned(),
            address: self.address(name),
            port: Some(server.port),
            test_address: None,
            token: Token::new(AgentPair::SECRET).unwrap(),
            tls: None,
            netns: None,
        };
        let hosts = self.names.iter().zip(&self.servers).map(host).collect();
        let bed = TestBed { name: "the test".to_owned(), hosts };
        let name = Some("a group of the test".to_owned());
        let group = RunGroup { name, started_at: String::new(), start_by: None, flows };
        let inside = File::open(format!("/run/netns/{}", self.about(self.names[0], "netns"))).unwrap();
        netns::with_netns_fd(&inside, || {
            let mut logs: Vec<Log<'_>> =
                group.flows.iter().map(|_| Log::new("1".to_owned(), Vec::new())).collect();
            let ends = run_group(bed, &group, &mut logs, &AtomicBool::new(false), on).unwrap();
            ends.into_iter().zip(logs.into_iter().map(Log::into_record)).collect()
        })
        .unwrap()
    }
}
