//! Comparisons of simulated repeats: real differences are found, and equal configurations raise no alarm, also
//! with correlated repeats.
use linerate_theory::compare::{Comparison, ComparisonOutcome, Pairing, compare};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const RUNS: usize = 250;
const REPEATS: usize = 15;
const MEAN: f64 = 941e6;

/// A standard normal number, by the Box-Muller method.
fn normal(random: &mut StdRng) -> f64 {
    let (a, b): (f64, f64) = (random.random_range(f64::EPSILON..1.0), random.random_range(0.0..1.0));
    (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
}

/// Repeats around a mean with a spread of `share`. Each deviation is `phi` times the previous one plus new
/// noise.
fn repeats(random: &mut StdRng, count: usize, mean: f64, share: f64, phi: f64) -> Vec<f64> {
    let fresh = (1.0 - phi * phi).sqrt();
    let mut away = normal(random);
    let mut draw = || {
        let now = mean * (1.0 + share * away);
        away = phi * away + fresh * normal(random);
        now
    };
    (0..count).map(|_| draw()).collect()
}

fn compared(seed: u64, change: f64, phi: f64, pairing: Pairing) -> Comparison {
    compared_of(REPEATS, seed, change, phi, pairing)
}

fn compared_of(count: usize, seed: u64, change: f64, phi: f64, pairing: Pairing) -> Comparison {
    let mut random = StdRng::seed_from_u64(seed);
    let base = repeats(&mut random, count, MEAN, 0.005, phi);
    let other = repeats(&mut random, count, MEAN * (1.0 + change), 0.005, phi);
    compare(&base, &other, pairing, MEAN * 1e-4).unwrap()
}

/// The share of all runs for which each condition holds.
fn shares<const N: usize>(
    change: f64,
    phi: f64,
    pairing: Pairing,
    hold: [fn(&Comparison) -> bool; N],
) -> [f64; N] {
    let mut counts = [0_usize; N];
    for seed in 0..RUNS as u64 {
        let found = compared(seed, change, phi, pairing);
        for (count, holds) in counts.iter_mut().zip(hold) {
            *count += usize::from(holds(&found));
        }
    }
    counts.map(|count| count as f64 / RUNS as f64)
}

/// Three standard errors of a share of 5 % among the runs.
fn margin() -> f64 {
    3.0 * (0.05 * 0.95 / RUNS as f64).sqrt()
}

const PAIRINGS: [Pairing; 2] = [Pairing::None, Pairing::InTurn];

fn shows(found: &Comparison) -> bool {
    matches!(found.outcome, ComparisonOutcome::Higher | ComparisonOutcome::Lower)
}

fn depends(found: &Comparison) -> bool {
    found.dependence.is_some()
}

#[test]
fn one_per_cent_is_found_in_fifteen_repeats_of_half_a_per_cent_of_noise() {
    for pairing in PAIRINGS {
        let [power] = shares(0.01, 0.0, pairing, [|found| found.outcome == ComparisonOutcome::Higher]);
        assert!(power >= 0.8, "{pairing:?}: {power}");
        let [power] = shares(-0.01, 0.0, pairing, [|found| found.outcome == ComparisonOutcome::Lower]);
        assert!(power >= 0.8, "{pairing:?}: {power}");
    }
}

#[test]
fn a_difference_smaller_than_single_runs_differ_by_is_found_with_more_repeats() {
    let found = |count| {
        let mut random = StdRng::seed_from_u64(7);
        let base = repeats(&mut random, count, MEAN, 0.01, 0.0);
        let other = repeats(&mut random, count, MEAN * 1.01, 0.01, 0.0);
        compare(&base, &other, Pairing::None, 0.0).unwrap()
    };
    let many = found(60);
    assert!(many.shift < many.noise_floor, "{many:?}");
    assert_eq!(many.outcome, ComparisonOutcome::Higher, "{many:?}");
    assert!(many.interval.unwrap().low > 0.0);
}

#[test]
fn equal_configurations_raise_an_alarm_once_in_twenty_at_most_and_are_seldom_called_dependent() {
    for pairing in PAIRINGS {
        let [alarms, dependent] = shares(0.0, 0.0, pairing, [shows, depends]);
        assert!(alarms <= 0.05 + margin(), "{pairing:?}: {alarms}");
        assert!(dependent <= 0.08 + margin(), "{pairing:?}: {dependent}");
    }
}

#[test]
fn dependent_repeats_raise_no_more_alarms_or_are_reported() {
    for phi in [0.9, 0.97] {
        for pairing in PAIRINGS {
            let [silent, dependent] =
                shares(0.0, phi, pairing, [|found| shows(found) && !depends(found), depends]);
            assert!(silent <= 0.05 + margin(), "{pairing:?} at {phi}: {silent} without a word");
            assert!(dependent >= 0.85, "{pairing:?} at {phi}: {dependent}");
        }
    }
}

#[test]
fn a_large_difference_is_seen_through_a_drift_and_its_interval_is_wider() {
    let drift = |number: u32| f64::from(number) * 1e6;
    let base: Vec<f64> = (0..15).map(|number| 900e6 + drift(number)).collect();
    let other: Vec<f64> = base.iter().map(|value| value + 400e6).collect();
    let found = compare(&base, &other, Pairing::None, 0.0).unwrap();
    let dependence = found.dependence.unwrap();
    assert_eq!(found.outcome, ComparisonOutcome::Higher);
    assert!(dependence.counts_as < 10.0 && dependence.p_if_independent < found.p, "{found:?}");
    let near: Vec<f64> = base.iter().map(|value| value + 8e6).collect();
    let found = compare(&base, &near, Pairing::None, 0.0).unwrap();
    assert_eq!(found.outcome, ComparisonOutcome::Dependent, "{found:?}");
    assert!(found.interval.unwrap().low < 0.0 && found.p > 0.05);
}

/// For any number of repeats: false alarms are as rare as chance allows, even with a correlation of 0.9, or the
/// result states that the repeats depend on each other, or that this is unknown. A correlation of 0.3 doubles
/// the false alarms and is too weak to be detected.
#[test]
fn few_repeats_raise_no_alarm_without_a_word() {
    const TRIES: u64 = 125;
    let margin = 3.0 * (0.05 * 0.95 / TRIES as f64).sqrt();
    for count in [3, 5, 8, 15, 30] {
        for (phi, allowed) in [(0.0, 0.05), (0.3, 0.1), (0.9, 0.05)] {
            for pairing in PAIRINGS {
                let silent = |seed: &u64| {
                    let found = compared_of(count, *seed, 0.0, phi, pairing);
                    shows(&found) && !depends(&found) && !found.is_independence_unknown()
                };
                let alarms = (0..TRIES).filter(silent).count() as f64 / TRIES as f64;
                assert!(alarms <= allowed + margin, "{count} at {phi}, {pairing:?}: {alarms} without a word");
            }
        }
        for pairing in PAIRINGS {
            let found = (0..TRIES)
                .filter(|seed| shows(&compared_of(count, *seed, 0.01, 0.0, pairing)))
                .count() as f64;
            let found = found / TRIES as f64;
            assert!(count < 15 || found >= 0.8, "{count}, {pairing:?}: 1 % is found in {found}");
            assert!(count >= 15 || compared_of(count, 1, 0.01, 0.0, pairing).is_independence_unknown());
        }
    }
}
