//! A thousand honest runs, none of which is called impossible; and the same runs falsified, each of which is if
//! it exceeds a limit.
use linerate_model::import::{Claim, ClaimScope, Figure, ForeignTest, Quantity};
use linerate_model::metrics::Side;
use linerate_theory::claims::{Context, Judged, Verdict, judge};
use linerate_units::Span;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

mod runs;

use runs::SimulatedRun;

const RUNS: u64 = 1000;
/// Two clocks of 100 ppm each.
const CLOCKS: f64 = 200e-6;

fn one_line(claim: Claim) -> ForeignTest {
    ForeignTest { claims: vec![claim], ..ForeignTest::default() }
}

/// The receiver's total alone, with its bytes and therefore its rate multiplied by `factor`.
fn total(run: &SimulatedRun, factor: f64, side: Option<Side>) -> ForeignTest {
    let bytes = run.rate_bps * run.seconds / 8.0 * factor;
    one_line(Claim { side, ..run.line(bytes, 0.0, run.seconds, ClaimScope::Total) })
}

fn verdict(judged: &[Judged]) -> Verdict {
    judged.iter().map(Judged::verdict).max().unwrap()
}

/// Largest relative effect of rounding on a rate.
fn rounding(test: &ForeignTest) -> f64 {
    let figure = test.claims[0].figure(Quantity::Bitrate).unwrap();
    figure.step / figure.value
}

#[test]
fn no_honest_run_is_called_impossible() {
    let mut figures = 0;
    for seed in 0..RUNS {
        let run = SimulatedRun::of(seed);
        let test = run.printed();
        let in_file = Context { from_file: true, ..run.stated() };
        for context in [&run.context, &run.stated(), &in_file] {
            let judged = judge(&test, context);
            for (claim, line) in test.claims.iter().zip(&judged) {
                figures += line.judgements.len();
                assert!(line.verdict() != Verdict::Impossible, "{run:#?}\n{claim:#?}\n{line:#?}");
            }
        }
    }
    assert!(figures > 20_000, "{figures} figures");
}

#[test]
fn no_honest_file_of_a_shaped_link_is_called_impossible() {
    for seed in 0..RUNS {
        let run = SimulatedRun::of(seed);
        // Linux counts 24 bytes less per frame than the wire carries.
        let shaped = SimulatedRun {
            rate_bps: run.rate_bps * (run.mtu_bytes + 38.0) / (run.mtu_bytes + 14.0),
            ..run.clone()
        };
        // A stated window is a limit with a shaper, too.
        let context = Context { from_file: true, window_bytes: None, ..run.stated() };
        let test = shaped.printed();
        let judged = judge(&test, &context);
        for (claim, line) in test.claims.iter().zip(&judged) {
            assert!(line.verdict() != Verdict::Impossible, "{run:#?}\n{claim:#?}\n{line:#?}");
        }
    }
}

#[test]
fn an_honest_receiver_is_not_even_doubted() {
    for seed in 0..RUNS {
        let run = SimulatedRun::of(seed);
        let test = total(&run, 1.0, Some(Side::Receiver));
        let judged = judge(&test, &run.stated());
        let rate = judged[0].of(Quantity::Bitrate).unwrap();
        let only_short = rate
            .reasons
            .iter()
            .all(|reason| reason.verdict < Verdict::Doubtful || reason.text.starts_with("Too short"));
        assert!(only_short, "{run:#?}\n{rate:#?}");
    }
}

/// Falsifies every run and checks that each detectable one is found. Returns their number.
fn falsified(factor: impl Fn(&SimulatedRun) -> f64, side: Option<Side>) -> usize {
    let mut found = 0;
    for seed in 0..RUNS {
        let run = SimulatedRun::of(seed);
        let factor = factor(&run);
        let test = total(&run, factor, side);
        let claimed = run.rate_bps * factor;
        let certain = claimed * (1.0 - rounding(&test)) > run.ceiling_bps * (1.0 + CLOCKS) * (1.0 + 1e-6);
        let verdict = verdict(&judge(&test, &run.stated()));
        if certain {
            assert_eq!(verdict, Verdict::Impossible, "{claimed} of {}: {run:#?}", run.ceiling_bps);
            found += 1;
        } else if claimed <= run.ceiling_bps {
            assert!(verdict < Verdict::Impossible, "{claimed} of {}: {run:#?}", run.ceiling_bps);
        }
    }
    found
}

#[test]
fn a_binary_prefix_too_many_is_found_where_it_exceeds_what_can_be() {
    assert!(falsified(|_| 1.048_576, None) > 300);
}

#[test]
fn bits_for_bytes_are_found_where_they_exceed_what_can_be() {
    assert!(falsified(|_| 8.0, None) > 500);
}

#[test]
fn a_senders_clock_is_found_where_it_exceeds_what_can_be() {
    let timing = |run: &SimulatedRun| 1.0 + run.buffered_bytes * 8.0 / (run.rate_bps * run.seconds);
    assert!(falsified(timing, None) > 100);
}

#[test]
fn a_receiver_may_not_exceed_the_path_by_more_than_a_read() {
    let mut found = 0;
    for seed in 0..RUNS {
        let run = SimulatedRun::of(seed);
        let test = total(&run, 1.03, Some(Side::Receiver));
        let least = run.rate_bps * 1.03 * (1.0 - rounding(&test));
        let excess = (least / (run.ceiling_bps * (1.0 + CLOCKS)) - 1.0) * run.ceiling_bps * run.seconds / 8.0;
        if excess > 131_072.0 * f64::from(run.streams) * 1.1 {
            assert_eq!(verdict(&judge(&test, &run.stated())), Verdict::Impossible, "{run:#?}");
            found += 1;
        }
    }
    assert!(found > 100, "{found}");
}

#[test]
fn bytes_that_belong_to_another_rate_are_found_whatever_the_path() {
    for seed in 0..RUNS {
        let run = SimulatedRun::of(seed);
        for factor in [0.9, 1.1, 1.048_576_f64.powi(3), 8.0, 0.125] {
            let mut test = total(&run, 1.0, Some(Side::Receiver));
            let digits =
                test.claims[0].figures.iter().take(3).map(|figure| figure.step / figure.value).sum::<f64>();
            let rate = test.claims[0]
                .figures
                .iter_mut()
                .find(|figure| figure.quantity == Quantity::Bitrate)
                .unwrap();
            rate.value *= factor;
            rate.step *= factor;
            if (factor - 1.0).abs() > 2.5 * digits + 0.001 {
                let judged = judge(&test, &Context::default());
                assert_eq!(verdict(&judged), Verdict::Impossible, "{factor}: {run:#?} {test:#?}");
            }
        }
    }
}

const QUANTITIES: [Quantity; 14] = [
    Quantity::Bytes,
    Quantity::Seconds,
    Quantity::Bitrate,
    Quantity::Packets,
    Quantity::PacketRate,
    Quantity::Lost,
    Quantity::LossRatio,
    Quantity::Retransmits,
    Quantity::CongestionWindow,
    Quantity::RoundTrip,
    Quantity::Calls,
    Quantity::CallTime,
    Quantity::MessageSize,
    Quantity::Mss,
];
const VALUES: [f64; 10] =
    [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0, 1e-308, 1.0, 941e6, 1e18, f64::MAX];

/// A line of arbitrary figures.
fn any_claim(random: &mut StdRng) -> Claim {
    let mut figures = Vec::new();
    for quantity in QUANTITIES {
        let value = *VALUES.choose(random).unwrap();
        if random.random_bool(0.5) {
            figures.push(Figure { quantity, value, step: value / 100.0, printed: "".into() });
        }
    }
    Claim {
        scope: *[ClaimScope::Interval, ClaimScope::Total, ClaimScope::Size].choose(random).unwrap(),
        side: *[None, Some(Side::Sender), Some(Side::Receiver)].choose(random).unwrap(),
        stream: *[None, Some(1), Some(2)].choose(random).unwrap(),
        start: Span::from_secs_f64(random.random_range(0.0..3.0)),
        end: Span::from_secs_f64(random.random_range(0.0..3.0)),
        omitted: random.random_bool(0.2),
        figures,
        ..Claim::default()
    }
}

#[test]
fn figures_of_any_kind_are_judged_and_those_that_are_no_numbers_refused() {
    for seed in 0..RUNS {
        let mut random = StdRng::seed_from_u64(seed);
        let claims = (0..6).map(|_| any_claim(&mut random)).collect();
        let test = ForeignTest { claims, ..ForeignTest::default() };
        let run = SimulatedRun::of(seed);
        for context in [Context::default(), run.context.clone(), run.stated()] {
            let judged = judge(&test, &Context { loss: Some(0.01), distance_m: Some(1e6), ..context });
            for (claim, line) in test.claims.iter().zip(&judged) {
                assert_eq!(claim.figures.len(), line.judgements.len());
                for (figure, judgement) in claim.figures.iter().zip(&line.judgements) {
                    let number = figure.value.is_finite() && figure.value >= 0.0;
                    assert!(number || judgement.verdict == Verdict::Impossible, "{figure:?}: {judgement:?}");
                    let numbers = judgement.reasons.iter().flat_map(|reason| reason.evidence.values());
                    assert!(numbers.clone().all(|value| value.is_finite()), "{judgement:?}");
                }
            }
        }
    }
}
