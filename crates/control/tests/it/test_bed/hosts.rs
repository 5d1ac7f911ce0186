//! The agents of a test, their flows, and a client that belongs to no coordinator.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_control::{
    FlowEnd, FlowJob, HostError, HostRef, Log, RunGroup, RunServer, Server, ServerConfig, ServerEvent,
    ServerHandle, ServerTrust, TestBed, TestRequest, measure, run_group,
};
use linerate_model::{RunRecord, TestSpec, World};
use linerate_proto::agent::Token;
use linerate_units::{Bitrate, Span};

/// Timeout of every wait.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) fn token() -> Token {
    Token::new("a secret of these tests").unwrap()
}

/// An agent on loopback.
pub(crate) struct LoopbackAgent {
    pub(crate) address: SocketAddr,
    pub(crate) switch: Arc<ServerHandle>,
    event: Mutex<Receiver<ServerEvent>>,
    thread: Option<JoinHandle<()>>,
}

impl LoopbackAgent {
    pub(crate) fn start() -> Self {
        Self::with(ServerConfig { agent_token: Some(token()), ..ServerConfig::default() })
    }

    pub(crate) fn with(config: ServerConfig) -> Self {
        Self::at("127.0.0.1:0".parse().unwrap(), config)
    }

    pub(crate) fn at(address: SocketAddr, config: ServerConfig) -> Self {
        let server = Server::bind(ServerConfig { addresses: vec![address], ..config }).unwrap();
        let (address, switch) = (server.addresses()[0], Arc::new(ServerHandle::new().unwrap()));
        let (sender, event) = channel();
        let for_server = Arc::clone(&switch);
        let thread = std::thread::spawn(move || {
            server.run(for_server, move |event| drop(sender.send(event))).unwrap();
        });
        Self { address, switch, event: Mutex::new(event), thread: Some(thread) }
    }

    pub(crate) fn named(&self, name: &str) -> HostRef {
        let (address, port) = (self.address.ip().to_string(), Some(self.address.port()));
        HostRef {
            name: name.to_owned(),
            address,
            port,
            test_address: None,
            token: token(),
            tls: None,
            netns: None,
        }
    }

    /// The first event for which `wanted` returns a value.
    pub(crate) fn wait_for<T>(&self, wanted: impl Fn(ServerEvent) -> Option<T>) -> T {
        let event = self.event.lock().unwrap();
        std::iter::from_fn(|| event.recv_timeout(TIMEOUT).ok()).find_map(wanted).unwrap()
    }
}

impl Drop for LoopbackAgent {
    fn drop(&mut self) {
        self.switch.turn_off();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

pub(crate) fn test_bed<const N: usize>(agents: [&LoopbackAgent; N]) -> TestBed {
    let names = ["a", "b", "c", "d"];
    let hosts = agents.iter().zip(names).map(|(agent, name)| agent.named(name)).collect();
    TestBed { name: "the tests".to_owned(), hosts }
}

/// A slow upload of `ms` milliseconds.
pub(crate) fn spec(ms: u64) -> TestSpec {
    let mut spec = TestSpec::default();
    spec.traffic.duration = Some(Span::from_ms(ms));
    spec.traffic.upload = true;
    spec.traffic.no_latency = true;
    spec.traffic.rate = Bitrate::from_bps(10e6);
    spec
}

pub(crate) fn flow(from: usize, to: usize, ms: u64) -> FlowJob {
    let to = RunServer::Host(to);
    FlowJob {
        from,
        to,
        spec: spec(ms),
        start_after: Span::ZERO,
        after: None,
        cross_traffic: false,
        plan: None,
    }
}

pub(crate) fn group(flows: Vec<FlowJob>) -> RunGroup {
    RunGroup { name: Some("together".to_owned()), started_at: String::new(), start_by: None, flows }
}

/// Executes a group; returns how each run ended, and its record.
pub(crate) fn carry_out(
    test_bed: TestBed,
    group: &RunGroup,
) -> Result<Vec<(FlowEnd, RunRecord)>, Vec<HostError>> {
    let mut logs: Vec<Log<'_>> = group.flows.iter().map(|_| Log::new("run".to_owned(), Vec::new())).collect();
    let ends = run_group(test_bed, group, &mut logs, &AtomicBool::new(false), &mut |_| ())?;
    Ok(ends.into_iter().zip(logs.into_iter().map(Log::into_record)).collect())
}

/// Makes a run as a client of no coordinator; returns its record.
pub(crate) fn unknown_client(to: &LoopbackAgent) -> RunRecord {
    client(to.address.port(), None).unwrap()
}

/// The same, with an encrypted control connection if the server is to be recognised; or why there was no run.
pub(crate) fn client(port: u16, tls: Option<ServerTrust>) -> Result<RunRecord, String> {
    let mut log = Log::new("stranger".to_owned(), Vec::new());
    let request = TestRequest {
        host: "127.0.0.1".to_owned(),
        port: Some(port),
        spec: spec(100),
        tls,
        world: World::Hosts,
        started_at: String::new(),
        calibration: None,
        observer: None,
        file: None,
        stop: &AtomicBool::new(false),
    };
    measure(&request, &mut log).map_err(|error| error.to_string())?;
    Ok(log.into_record())
}
