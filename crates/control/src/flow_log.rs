//! Entries that the log of every run has, with any kind of peer.

use linerate_model::flow::FlowId;
use linerate_model::{Body, Caveat, CaveatKind, Direction, FlowPlan, TestSpec};
use linerate_proto::Ended;

use crate::log::Log;

/// Describes a planned flow.
pub(crate) fn plan(flow: FlowId, direction: Direction, spec: &TestSpec, log: &Log<'_>) -> FlowPlan {
    let hosts = &log.record().hosts;
    let name = |at: usize| hosts.get(at).map(|host| host.name.clone()).unwrap_or_default();
    let (from, to) = if direction == Direction::Upload { (name(0), name(1)) } else { (name(1), name(0)) };
    FlowPlan {
        flow,
        name: name_of(direction, spec).into(),
        from,
        to,
        transport: spec.traffic.transport(),
        direction,
        streams: spec.traffic.streams,
    }
}

/// What a flow is called: what it carries, or the direction of its data.
fn name_of(direction: Direction, spec: &TestSpec) -> &'static str {
    match &spec.sweep {
        Some(sweep) => sweep.mode().name(),
        None if spec.transactions.are_made() => spec.transactions.workload.name(),
        None if spec.traffic.multicast.is_some() => "multicast",
        None => direction.name(),
    }
}

/// Records the final report of one side of a flow.
pub(crate) fn note_end(flow: FlowId, host: u16, mut ended: Ended, log: &mut Log<'_>) {
    if ended.settings.mptcp == Some(false) {
        let text =
            "plain TCP was used instead of the requested MPTCP: a kernel or a middlebox does not support it";
        ended.caveats.push(Caveat { kind: CaveatKind::MptcpFallback, text: text.into() });
    }
    log.note_from(host, Body::FlowOpened { flow, side: ended.side, settings: ended.settings });
    log.note_from(host, Body::FlowEnded { flow, side: ended.side, tally: ended.tally });
    for caveat in ended.caveats {
        let known =
            log.record().flow(flow).is_some_and(|f| f.caveats.iter().any(|c: &Caveat| c.kind == caveat.kind));
        if !known {
            log.note_from(host, Body::Caveat { flow: Some(flow), caveat });
        }
    }
}

/// Adds a caveat that the run ended early.
pub(crate) fn warn_partial(flow: FlowId, log: &mut Log<'_>) {
    let text = "the run was cut short; the figures cover what was measured".to_owned();
    log.warn(Some(flow), CaveatKind::Partial, text);
}
