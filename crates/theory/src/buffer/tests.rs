//! Published series of a switch test, and sawtooths through queues of known size.

use super::*;

const MIB: f64 = 1_048_576.0;

/// Goodput of a single flow on 10 Gb/s with an MTU of 9000: 8948 of 9038 bytes.
const ALONE: f64 = 10e9 * 8948.0 / 9038.0;

fn path() -> BufferPath {
    BufferPath {
        drain_bps: 10e9,
        alone_bps: ALONE,
        others_bps: 2.0161e9,
        base_rtt_s: 0.0508,
        probe_base_s: None,
    }
}

/// MBytes of 2^20 per second, retransmissions, window in MiB, as published by a science network.
fn printed(rows: &[(f64, u64, f64)]) -> Vec<BufferInterval> {
    let reading = |(megabytes, retransmits, window): &(f64, u64, f64)| BufferInterval {
        span_s: 1.0,
        goodput_bps: megabytes * MIB * 8.0,
        cwnd_bytes: Some(window * MIB),
        retransmits: *retransmits,
        ..BufferInterval::default()
    };
    rows.iter().map(reading).collect()
}

/// The sample of a switch with 64 MB: the window ended the growth, nothing was dropped while the link was full.
#[test]
fn the_sample_with_64_mb_is_a_lower_bound() {
    let series = printed(&[
        (155.0, 0, 5.85),
        (115.0, 1, 6.01),
        (125.0, 0, 6.62),
        (142.0, 0, 7.97),
        (178.0, 0, 10.1),
        (224.0, 0, 12.9),
        (286.0, 0, 16.6),
        (368.0, 0, 21.0),
        (469.0, 0, 26.5),
        (565.0, 2, 32.4),
        (691.0, 0, 39.6),
        (789.0, 0, 47.3),
        (882.0, 0, 55.5),
        (924.0, 0, 63.7),
        (925.0, 0, 71.7),
        (926.0, 0, 79.5),
        (928.0, 0, 84.9),
        (924.0, 0, 85.0),
    ]);
    let Some(BufferFinding::LowerBound { bytes, other_losses }) = analyse(&series, &path()) else {
        panic!("{:?}", analyse(&series, &path()))
    };
    assert!((bytes - 51.4e6).abs() < 0.1e6, "{bytes}");
    assert_eq!(other_losses, 2);
    let rows = rows(&series, &path());
    assert!((rows[13].rtt_s.unwrap() - 0.0645).abs() < 5e-5, "{:?}", rows[13]);
    assert!((rows[13].queue_bytes.unwrap() - 17.1e6).abs() < 1e5, "{:?}", rows[13]);
    assert_eq!(rows[0].rtt_s, None, "nothing is known of the window at the start");
}

/// The sample of a switch with 36 MB: packets were lost at half the load, with a flat round trip.
#[test]
fn the_sample_with_36_mb_was_not_a_full_queue() {
    let series = printed(&[
        (155.0, 0, 5.86),
        (118.0, 1, 6.02),
        (125.0, 0, 6.74),
        (148.0, 0, 8.25),
        (185.0, 3, 10.5),
        (235.0, 1, 13.6),
        (300.0, 0, 17.4),
        (385.0, 44, 13.6),
        (491.0, 0, 27.8),
        (590.0, 2, 34.1),
        (691.0, 99, 20.4),
        (406.0, 0, 20.6),
        (409.0, 0, 20.9),
        (416.0, 1, 22.0),
        (452.0, 0, 24.0),
    ]);
    let Some(BufferFinding::NotAFullQueue { losses, load, queue_bytes }) = analyse(&series, &path()) else {
        panic!("{:?}", analyse(&series, &path()))
    };
    assert_eq!(losses, 7, "seconds are longer than a repair takes");
    assert!((0.75..0.80).contains(&load), "{load}");
    assert!(queue_bytes < 3e6, "{queue_bytes}");
}

/// A flow that fills a queue of `buffer` bytes, loses a packet and backs off to 0.7 of its window, `drops`
/// times.
fn sawtooth(buffer: f64, drops: usize) -> Vec<BufferInterval> {
    let path = path();
    let left = (path.drain_bps - path.others_bps) / path.drain_bps * ALONE;
    let full = left * (path.base_rtt_s + buffer * 8.0 / path.drain_bps) / 8.0;
    let mut series = Vec::new();
    for _ in 0..drops {
        for step in 0..40 {
            let window = full * (0.7 + 0.3 * f64::from(step) / 39.0);
            let rtt = (window * 8.0 / left).max(path.base_rtt_s);
            series.push(BufferInterval {
                span_s: 0.1,
                goodput_bps: window * 8.0 / rtt,
                cwnd_bytes: Some(window),
                rtt_s: Some(rtt),
                ..BufferInterval::default()
            });
        }
        let window = full * 0.7;
        series.push(BufferInterval {
            span_s: 0.1,
            goodput_bps: left,
            cwnd_bytes: Some(window),
            rtt_s: Some((window * 8.0 / left).max(path.base_rtt_s)),
            retransmits: 300,
            ..BufferInterval::default()
        });
    }
    series
}

#[test]
fn a_full_queue_gives_its_size() {
    for buffer in [1e6, 4e6, 16e6, 36e6, 64e6] {
        let Some(BufferFinding::Estimate { bytes, interval, drops, load }) =
            analyse(&sawtooth(buffer, 8), &path())
        else {
            panic!("{buffer}: {:?}", analyse(&sawtooth(buffer, 8), &path()))
        };
        assert!((bytes / buffer - 1.0).abs() < 0.01, "{bytes} of {buffer}");
        let interval = interval.unwrap();
        assert!(interval.low <= bytes && bytes <= interval.high);
        assert_eq!(drops, 8);
        assert!((load - 1.0).abs() < 1e-3, "{load}");
    }
    let mut series = sawtooth(4e6, 8);
    // The repair continues in the next interval.
    (0..8).for_each(|drop| series[(drop * 41 + 41).min(327)].retransmits = 20);
    assert!(matches!(analyse(&series, &path()), Some(BufferFinding::Estimate { drops: 8, .. })));
    let Some(BufferFinding::Estimate { interval, .. }) = analyse(&sawtooth(4e6, 3), &path()) else {
        panic!()
    };
    assert_eq!(interval, None, "three drops bound nothing");
}

#[test]
fn losses_outside_the_full_queue_do_not_lower_the_estimate() {
    let mut series = sawtooth(16e6, 6);
    // Single losses shortly after the window began to grow: there is no queue.
    for at in [45, 86, 127] {
        series[at].retransmits = 1;
    }
    let Some(BufferFinding::Estimate { bytes, .. }) = analyse(&series, &path()) else { panic!() };
    assert!((bytes / 16e6 - 1.0).abs() < 0.01, "{bytes}");
}

/// The kernel's smoothed RTT shows only half of the rise of a queue that lasts for milliseconds. Probes show
/// all of it.
#[test]
fn probes_are_believed_before_the_kernels_mean() {
    let path = BufferPath { probe_base_s: Some(0.0506), ..path() };
    let mut series = sawtooth(4e6, 8);
    for reading in &mut series {
        let rise = reading.rtt_s.unwrap() - path.base_rtt_s;
        reading.rtt_s = Some(path.base_rtt_s + rise / 2.0);
        reading.probe_rtt_s = Some(0.0506 + rise);
    }
    let Some(BufferFinding::Estimate { bytes, .. }) = analyse(&series, &path) else { panic!() };
    assert!((bytes / 4e6 - 1.0).abs() < 0.01, "{bytes}");
    series.iter_mut().for_each(|reading| reading.probe_rtt_s = None);
    let Some(BufferFinding::Estimate { bytes, .. }) = analyse(&series, &path) else { panic!() };
    assert!((bytes / 2e6 - 1.0).abs() < 0.01, "without probes the kernel is all there is: {bytes}");
}

/// A host that is as fast as the line has a queue of its own. The kernel's RTT contains it, but the RTT of
/// probes below the driver's queue does not. So an interval without probes is not used.
#[test]
fn the_hosts_own_queue_does_not_fill_the_gaps_of_probes() {
    let path = BufferPath { others_bps: 0.0, base_rtt_s: 0.05, probe_base_s: Some(0.05), ..path() };
    let mut series = [BufferInterval {
        span_s: 0.1,
        goodput_bps: ALONE,
        rtt_s: Some(0.110),
        probe_rtt_s: Some(0.051),
        ..BufferInterval::default()
    }; 20];
    series[7].probe_rtt_s = None;
    // 1 ms at 10 Gb/s, not 60 ms.
    let Some(BufferFinding::LowerBound { bytes, .. }) = analyse(&series, &path) else { panic!() };
    assert!((bytes - 1.25e6).abs() < 1.0, "{bytes}");
}

/// A queue that overflows in slow start: the cumulative acknowledgement stops at the first gap although the
/// line is full, and the probe that met the full queue was sent two round trips before the repair is visible.
#[test]
fn the_first_overflow_counts_by_what_arrives_and_by_probes_that_left_before() {
    let path = BufferPath { base_rtt_s: 0.05, probe_base_s: Some(0.05), ..path() };
    let left = 1.0 - path.others_bps / path.drain_bps;
    let at = |share: f64, acked: f64, probe: f64, retransmits| BufferInterval {
        span_s: 0.1,
        goodput_bps: acked * ALONE,
        arrived_bps: Some(share * ALONE),
        probe_rtt_s: Some(probe),
        retransmits,
        ..BufferInterval::default()
    };
    // 16 MB at 10 Gb/s are 12.8 ms.
    let series = [
        at(0.1, 0.1, 0.05, 0),
        at(0.4, 0.4, 0.0628, 0),
        at(0.5, 0.5, 0.055, 0),
        at(0.7, 0.1, 0.052, 900),
        at(left, 0.0, 0.051, 2000),
        at(0.3, 1.4, 0.05, 0),
    ];
    let Some(BufferFinding::Estimate { bytes, drops: 1, load, .. }) = analyse(&series, &path) else {
        panic!("{:?}", analyse(&series, &path))
    };
    assert!((bytes - 16e6).abs() < 1.0, "{bytes}");
    assert!((load - 1.0).abs() < 1e-9, "{load}");
    let idle: Vec<BufferInterval> = series
        .iter()
        .map(|one| BufferInterval { arrived_bps: one.arrived_bps.map(|rate| rate * 0.5), ..*one })
        .collect();
    assert!(matches!(analyse(&idle, &path), Some(BufferFinding::NotAFullQueue { losses: 1, .. })));
}

/// In slow start the sending host's own line holds a queue too: 25 MB of the 41.
#[test]
fn drops_of_the_omitted_start_count_only_where_there_are_no_others() {
    let mut series = sawtooth(41e6, 2);
    series.iter_mut().for_each(|reading| reading.omitted = true);
    series.extend(sawtooth(16e6, 3));
    let Some(BufferFinding::Estimate { bytes, drops: 3, .. }) = analyse(&series, &path()) else {
        panic!("{:?}", analyse(&series, &path()))
    };
    assert!((bytes / 16e6 - 1.0).abs() < 0.01, "{bytes}");
    series.iter_mut().filter(|reading| !reading.omitted).for_each(|reading| reading.retransmits = 0);
    let Some(BufferFinding::Estimate { bytes, drops: 2, .. }) = analyse(&series, &path()) else {
        panic!("{:?}", analyse(&series, &path()))
    };
    assert!((bytes / 41e6 - 1.0).abs() < 0.01, "{bytes}");
}

#[test]
fn nothing_is_reported_without_windows_and_round_trips() {
    let blind = BufferInterval { goodput_bps: 1e9, ..BufferInterval::default() };
    assert_eq!(analyse(&[blind; 10], &path()), None);
    assert_eq!(analyse(&[], &path()), None);
    assert_eq!(analyse(&sawtooth(1e6, 1), &BufferPath { drain_bps: 0.0, ..path() }), None);
    assert_eq!(analyse(&sawtooth(1e6, 1), &BufferPath { others_bps: f64::NAN, ..path() }), None);
}

/// 10 Gb/s and 50 ms: the product is 62.5 MB, CUBIC needs 26.79 MB, two flows 44.19 MB.
#[test]
fn sizes_for_a_path_follow_the_rules() {
    let fits = fits(10e9, 0.05, 2.0);
    let bytes: Vec<f64> = fits.iter().map(|fit| (fit.bytes / 1e4).round() / 100.0).collect();
    assert_eq!(bytes, [62.5, 44.19, 26.79]);
}
