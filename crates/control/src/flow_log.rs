//! Entries that the log of every run has, with any kind of peer.

use linerate_model::flow::FlowId;
use linerate_model::{Body, Caveat, CaveatKind, Direction, FlowPlan, TestSpec};
use linerate_proto::Ended;

use crate::log::Log;

/// Most caveats of one kind that a flow has from its ends: several settings may have had no effect, and both hosts may
/// have been late, but a peer may send any number.
const MAX_CAVEATS_OF_A_KIND: usize = 8;

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
        let known = log.record().flow(flow).map_or(&[][..], |record| record.caveats.as_slice());
        let alike = known.iter().filter(|known| known.kind == caveat.kind).count();
        // What concerns both ends alike is said once.
        if alike < MAX_CAVEATS_OF_A_KIND && !known.contains(&caveat) {
            log.note_from(host, Body::Caveat { flow: Some(flow), caveat });
        }
    }
}

/// Adds a caveat that the run ended early.
pub(crate) fn warn_partial(flow: FlowId, log: &mut Log<'_>) {
    let text = "the run was cut short; the figures cover what was measured".to_owned();
    log.warn(Some(flow), CaveatKind::Partial, text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::{Side, SideSettings, Tally};

    const FLOW: FlowId = FlowId(0);

    fn caveat(kind: CaveatKind, text: &str) -> Caveat {
        Caveat { kind, text: text.into() }
    }

    /// The caveats of a flow whose sender and receiver have reported these.
    fn noted(sides: [Vec<Caveat>; 2]) -> Vec<Caveat> {
        let mut log = Log::new("r".to_owned(), Vec::new());
        log.note(Body::FlowPlanned(plan(FLOW, Direction::Upload, &TestSpec::default(), &log)));
        for (side, caveats) in [Side::Sender, Side::Receiver].into_iter().zip(sides) {
            let (settings, tally) = (SideSettings::default(), Tally::default());
            let host = u16::from(side == Side::Receiver);
            note_end(FLOW, host, Ended { flow: FLOW, side, settings, tally, caveats }, &mut log);
        }
        log.record().flow(FLOW).unwrap().caveats.clone()
    }

    #[test]
    fn two_caveats_of_one_kind_are_both_noted_and_the_same_one_of_both_ends_once() {
        let mss = caveat(CaveatKind::SettingIneffective, "segments carry 1448 bytes");
        let tos = caveat(CaveatKind::SettingIneffective, "packets carry another type of service");
        let late = |text| caveat(CaveatKind::TimerLate, text);
        let sender = vec![mss.clone(), tos.clone(), late("300 ms late")];
        let receiver = vec![tos.clone(), late("500 ms late")];
        let expected = vec![mss, tos, late("300 ms late"), late("500 ms late")];
        assert_eq!(noted([sender, receiver]), expected);
    }

    #[test]
    fn a_peer_that_repeats_a_kind_of_caveat_with_other_numbers_is_not_noted_for_ever() {
        let many = (0..1000).map(|number| caveat(CaveatKind::ReceiverDrops, &number.to_string())).collect();
        let partial = caveat(CaveatKind::Partial, "cut short");
        let all = noted([many, vec![partial.clone()]]);
        assert_eq!((all.len(), all.last()), (MAX_CAVEATS_OF_A_KIND + 1, Some(&partial)));
    }
}
