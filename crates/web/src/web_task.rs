//! What a run of the pages is: a test or a plan.

use linerate_units::Span;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::live::WebLive;
use crate::plan_request::PlanTask;
use crate::run_request::TestTask;

/// Expected time of a test whose end depends on the network.
const UNKNOWN_TIME: Span = Span::from_secs(60);

/// What was asked for, and checked.
#[derive(Debug)]
pub(crate) enum WebTask {
    /// A test from this host.
    Test(Box<TestTask>),
    /// A plan, which is many tests.
    Plan(PlanTask),
}

impl WebTask {
    /// The other host of a test; the name of a plan.
    pub(crate) fn target(&self) -> &str {
        match self {
            Self::Test(test) => &test.request.to,
            Self::Plan(plan) => &plan.name,
        }
    }

    /// The name that the visitor gave.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Test(test) => test.request.name.as_deref(),
            Self::Plan(_) => None,
        }
    }

    /// Whether it is a plan.
    pub(crate) fn is_plan(&self) -> bool {
        matches!(self, Self::Plan(_))
    }

    /// How long it takes; absent if its end depends on the network.
    pub(crate) fn expected_time(&self) -> Option<Span> {
        match self {
            Self::Test(test) => test.expected_time(),
            Self::Plan(plan) => Some(plan.time),
        }
    }

    /// For how long it asks for a place in the server's queue.
    pub(crate) fn length(&self) -> Span {
        self.expected_time().unwrap_or(UNKNOWN_TIME)
    }

    /// Whether it needs a place in the queue of this host's server, as far as that is known without a question to the
    /// network.
    pub(crate) fn needs_place(&self) -> bool {
        match self {
            Self::Test(_) => true,
            Self::Plan(plan) => plan.occupies_this_host(),
        }
    }

    /// Whether it is a test to another host, which may turn out to be the server of this program.
    pub(crate) fn is_to_a_host(&self) -> bool {
        matches!(self, Self::Test(test) if !test.is_loopback())
    }

    /// Whether it is a test to the server on port `own` of this program. Resolves a name.
    pub(crate) fn is_against_server(&self, own: u16) -> bool {
        matches!(self, Self::Test(test) if test.is_against_server(own))
    }

    /// What viewers will see of it.
    pub(crate) fn viewed(&self) -> WebLive {
        if self.is_plan() { WebLive::of_plan() } else { WebLive::of_test() }
    }

    /// The same for the same request.
    pub(crate) fn digest(&self) -> [u8; 32] {
        let json = match self {
            Self::Test(test) => as_json("test", &test.request),
            Self::Plan(plan) => as_json("plan", &plan.request),
        };
        Sha256::digest(json).into()
    }
}

fn as_json(kind: &str, request: &impl Serialize) -> Vec<u8> {
    // Requests have a JSON form: they came as one.
    serde_json::to_vec(&(kind, request)).unwrap_or_default()
}
