//! Which limits a result crosses.

use linerate_model::calendar::{AlarmKind, AlarmLimits, CalendarRunState, CellResult};
use linerate_theory::stats::change::pettitt;
use linerate_theory::stats::order::median;
use linerate_units::Bitrate;

/// Results that a lasting change is looked for in.
pub(crate) const HISTORY: usize = 60;
/// Fewest results on either side of a change.
const MIN_SIDE: usize = 5;
/// Probability below which a change is no chance.
const SIGNIFICANT: f64 = 0.01;

/// A limit that was crossed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Crossing {
    pub(crate) kind: AlarmKind,
    /// What was found, in words.
    pub(crate) text: String,
    /// For a change, how many results there are from it on.
    pub(crate) results_since: usize,
}

/// The limits that a run crosses. `history` has the goodputs of earlier results, the oldest first, without this one.
pub(crate) fn crossings(
    limits: &AlarmLimits,
    state: CalendarRunState,
    reason: &str,
    result: Option<&CellResult>,
    history: &[Bitrate],
) -> Vec<Crossing> {
    let Some(result) = result else {
        let text = format!("no result ({}): {reason}", state.name());
        // A run that a user cancelled, another one preempted or that found no time says nothing about the network. Of those
        // that were not booked, only those are judged whose agents have no room for results.
        let counts = matches!(
            state,
            CalendarRunState::Failed | CalendarRunState::Missed | CalendarRunState::NotBooked
        );
        let found = (limits.failure && counts).then_some(Crossing {
            kind: AlarmKind::Failure,
            text,
            results_since: 0,
        });
        return found.into_iter().collect();
    };
    let mut found = Vec::new();
    let mut add = |kind, text| found.push(Crossing { kind, text, results_since: 0 });
    if let (Some(goodput), Some(least)) = (result.goodput, limits.below)
        && goodput < least
    {
        add(AlarmKind::Goodput, format!("the goodput is {goodput}, below {least}"));
    }
    if let (Some(latency), Some(most)) = (result.latency, limits.latency)
        && latency > most
    {
        add(AlarmKind::Latency, format!("the median latency under load is {latency}, above {most}"));
    }
    if let (Some(loss), Some(most)) = (result.loss, limits.loss)
        && loss > most
    {
        let (loss, most) = (loss.percent(), most.percent());
        add(AlarmKind::Loss, format!("{loss} of the datagrams are lost, more than {most}"));
    }
    if let (Some(goodput), Some(least)) = (result.goodput, limits.change) {
        let series: Vec<f64> = history.iter().chain([&goodput]).map(|rate| rate.bps()).collect();
        found.extend(lasting_change(&series, least.get()));
    }
    found
}

/// Kinds of alarms that a run can end: those whose value it has, and that it does not cross.
pub(crate) fn kept(
    limits: &AlarmLimits,
    result: Option<&CellResult>,
    crossed: &[Crossing],
) -> Vec<AlarmKind> {
    let Some(result) = result else { return Vec::new() };
    let has = |kind: &AlarmKind| match kind {
        // Limits that the schedule does not have any more are kept too.
        AlarmKind::Goodput => limits.below.is_none() || result.goodput.is_some(),
        AlarmKind::Latency => limits.latency.is_none() || result.latency.is_some(),
        AlarmKind::Loss => limits.loss.is_none() || result.loss.is_some(),
        AlarmKind::Failure => true,
        // A change is reported once: what it changed to is the new normal.
        AlarmKind::Change => true,
    };
    AlarmKind::ALL
        .into_iter()
        .filter(has)
        .filter(|kind| !crossed.iter().any(|one| one.kind == *kind))
        .collect()
}

/// A change of level that Pettitt's test finds and that is at least the share `least` of the median before it.
fn lasting_change(series: &[f64], least: f64) -> Option<Crossing> {
    let found = pettitt(series)?;
    let (before, after) = series.split_at_checked(found.first_after)?;
    if before.len() < MIN_SIDE || after.len() < MIN_SIDE || found.p() > SIGNIFICANT {
        return None;
    }
    let (old, new) = (median(before)?, median(after)?);
    if old <= 0.0 || (new / old - 1.0).abs() < least {
        return None;
    }
    let (old, new) = (Bitrate::from_bps(old)?, Bitrate::from_bps(new)?);
    let text = format!(
        "the goodput has changed from {old} to {new} (medians of {} and {} results; Pettitt's test, p = {:.2})",
        before.len(),
        after.len(),
        found.p()
    );
    Some(Crossing { kind: AlarmKind::Change, text, results_since: after.len() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_units::{Ratio, Span};
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    fn mbps(rate: f64) -> Bitrate {
        Bitrate::from_bps(rate * 1e6).unwrap()
    }

    fn result(goodput: f64) -> CellResult {
        CellResult {
            goodput: Some(mbps(goodput)),
            latency: Some(Span::from_ms(20)),
            loss: Ratio::new(0.01),
            ..CellResult::default()
        }
    }

    fn kinds(limits: &AlarmLimits, result: Option<&CellResult>, history: &[Bitrate]) -> Vec<AlarmKind> {
        let state = if result.is_some() { CalendarRunState::Finished } else { CalendarRunState::Failed };
        crossings(limits, state, "refused", result, history).into_iter().map(|one| one.kind).collect()
    }

    #[test]
    fn each_limit_is_crossed_by_its_own_value_only() {
        let limits = AlarmLimits {
            below: Some(mbps(900.0)),
            latency: Some(Span::from_ms(20)),
            loss: Ratio::new(0.01),
            change: None,
            failure: true,
        };
        assert_eq!(kinds(&limits, Some(&result(900.0)), &[]), []);
        assert_eq!(kinds(&limits, Some(&result(899.0)), &[]), [AlarmKind::Goodput]);
        let slow = CellResult { latency: Some(Span::from_ms(21)), ..result(950.0) };
        assert_eq!(kinds(&limits, Some(&slow), &[]), [AlarmKind::Latency]);
        let lossy = CellResult { loss: Ratio::new(0.011), ..result(950.0) };
        assert_eq!(kinds(&limits, Some(&lossy), &[]), [AlarmKind::Loss]);
        assert_eq!(kinds(&limits, None, &[]), [AlarmKind::Failure]);
        assert_eq!(kinds(&AlarmLimits::default(), None, &[]), []);
        let cancelled = crossings(&limits, CalendarRunState::Cancelled, "by a user", None, &[]);
        assert_eq!(cancelled, []);
    }

    #[test]
    fn a_lasting_change_is_found_and_noise_and_small_changes_are_not() {
        let limits = AlarmLimits { change: Ratio::new(0.2), ..AlarmLimits::default() };
        let mut rng = StdRng::seed_from_u64(7);
        let mut noisy = |level: f64, count: usize| -> Vec<Bitrate> {
            (0..count).map(|_| mbps(level * rng.random_range(0.97..1.03))).collect()
        };
        let changed = [noisy(940.0, 30), noisy(600.0, 9)].concat();
        assert_eq!(kinds(&limits, Some(&result(605.0)), &changed), [AlarmKind::Change]);
        // The first low result may be an outlier.
        assert_eq!(kinds(&limits, Some(&result(605.0)), &changed[..31]), []);
        let small = [noisy(940.0, 30), noisy(850.0, 9)].concat();
        assert_eq!(kinds(&limits, Some(&result(850.0)), &small), []);
    }

    /// With 1 % for each result of its own, dependent windows must not add up to false alarms.
    #[test]
    fn a_steady_path_raises_no_alarm_in_two_thousand_results() {
        let limits = AlarmLimits { change: Ratio::new(0.05), ..AlarmLimits::default() };
        let mut rng = StdRng::seed_from_u64(11);
        let series: Vec<Bitrate> = (0..2000).map(|_| mbps(940.0 * rng.random_range(0.97..1.03))).collect();
        for end in 1..series.len() {
            let history = &series[end.saturating_sub(HISTORY)..end];
            let last = CellResult { goodput: Some(series[end]), ..CellResult::default() };
            assert_eq!(kinds(&limits, Some(&last), history), [], "{end}");
        }
    }
}
