//! A test that an agent on another host runs.

use std::sync::atomic::Ordering;

use linerate_control::{
    CANCELLED, ControlError, FlowJob, HostRef, Log, RunGroup, RunServer, TestBed, TestRequest, run_group,
};
use linerate_model::{Body, Outcome};
use linerate_sock::Mono;
use linerate_units::Span;

/// The agents that run a test instead of this host.
#[derive(Debug)]
pub struct TestAgents {
    /// The client.
    pub client: HostRef,
    /// The server, if it is an agent as well. It then keeps a place in its queue for the test.
    pub server: Option<HostRef>,
    /// The latest time at which the test may begin; absent for any time.
    pub start_by: Option<Mono>,
}

impl TestAgents {
    /// An agent that measures to any server, at any time.
    #[must_use]
    pub fn client(client: HostRef) -> Self {
        Self { client, server: None, start_by: None }
    }
}

/// Has the agents run the test; its events become the log.
pub(super) fn measure(
    agents: TestAgents,
    request: &TestRequest<'_>,
    log: &mut Log<'_>,
) -> Result<Outcome, ControlError> {
    let server = agents.server.map(|server| (RunServer::Host(1), server));
    let plain = || RunServer::Server { host: request.host.clone(), port: request.port };
    let (to, server) = server.map_or_else(|| (plain(), None), |(to, server)| (to, Some(server)));
    let hosts = std::iter::once(agents.client).chain(server).collect();
    let bed = TestBed { name: linerate_sock::proc::host::kernel().host, hosts };
    let flow = FlowJob {
        from: 0,
        to,
        spec: request.spec.clone(),
        start_after: Span::ZERO,
        after: None,
        cross_traffic: false,
        plan: None,
    };
    let group = RunGroup {
        name: None,
        started_at: request.started_at.clone(),
        start_by: agents.start_by,
        flows: vec![flow],
    };
    let ends = run_group(bed, &group, std::slice::from_mut(log), request.stop, &mut |_| ());
    match ends {
        Ok(mut ends) => match ends.pop() {
            Some(end) if end.outcome != Outcome::Failed => Ok(end.outcome),
            end => {
                let reason = end.and_then(|end| end.reason);
                Err(ControlError::Local(reason.unwrap_or_else(|| "the test failed".to_owned())))
            }
        },
        Err(_) if request.stop.load(Ordering::Relaxed) => {
            not_begun(request, Outcome::Interrupted, CANCELLED.to_owned(), log);
            Ok(Outcome::Interrupted)
        }
        Err(troubles) => {
            let troubles: Vec<String> = troubles.iter().map(ToString::to_string).collect();
            Err(not_begun(request, Outcome::Failed, troubles.join("; "), log))
        }
    }
}

/// A test that could not start is still logged as a run, with the reason.
fn not_begun(request: &TestRequest<'_>, outcome: Outcome, reason: String, log: &mut Log<'_>) -> ControlError {
    log.note(request.run_started());
    log.note(Body::RunEnded { outcome, reason: Some(reason.clone().into()) });
    ControlError::Local(reason)
}
