use linerate_theory::encapsulation::Encapsulation;
use linerate_theory::envelope::{
    ArrivingBurst, Cpu, Hosts, Path, PathDescription, Questions, TransferDeadline, ValueRange, answers,
};
use linerate_theory::framing::IpVersion;
use proptest::prelude::*;

use super::*;

/// A path and the questions about it.
type PathQuestions = (PathDescription, Questions);

fn bitrate(text: &str) -> Bitrate {
    text.parse().unwrap()
}

fn ratio(value: f64) -> Ratio {
    Ratio::new(value).unwrap()
}

fn between<T: Copy + PartialOrd>(low: T, high: T) -> Option<ValueRange<T>> {
    Some(ValueRange::between(low, high).unwrap())
}

/// A path without ranges, with or without a round-trip time.
fn over(link: &str, rtt: Option<Span>, exact: Path) -> PathDescription {
    PathDescription { exact, rtt: rtt.map(Into::into), ..PathDescription::of_link(bitrate(link)) }
}

fn page_of((path, questions): &PathQuestions) -> String {
    text(Page::new(80, false), &answers(path, questions).unwrap())
}

fn page(path: PathDescription) -> String {
    page_of(&(path, Questions::default()))
}

#[test]
fn the_binding_ceiling_is_marked_and_what_follows_it_named() {
    let exact = Path { window_bytes: Some(65_535.0), congestion: Congestion::Reno, ..Path::gigabit() };
    let path = over("1G", Some(Span::from_ms(21)), exact);
    let page = page(PathDescription { loss: Some(ratio(1e-6).into()), ..path });
    assert!(page.contains("> receiver window       24.97 Mb/s"), "{page}");
    assert!(page.contains("Without the receiver window the limit would be 675.6 Mb/s"), "{page}");
    assert_eq!(page.matches('>').count(), 1);
}

#[test]
fn bbr_has_no_loss_ceiling_and_says_so() {
    let path = over("1G", Some(Span::from_ms(21)), Path { congestion: Congestion::Bbr, ..Path::gigabit() });
    let page = page(PathDescription { loss: Some(ratio(1e-4).into()), ..path });
    assert!(page.contains("not applicable"), "{page}");
    assert!(page.contains("> link"), "{page}");
}

/// Paths and questions with long lines.
fn wide() -> [PathQuestions; 7] {
    let transfer = |bytes: u64| Questions { transfer: Some(Bytes::new(bytes)), ..Questions::default() };
    let need = |seconds: u64, bytes: u64| {
        Some(TransferDeadline { bytes: Bytes::new(bytes), within: Span::from_secs(seconds) })
    };
    let many = Path {
        streams: 16,
        rmem_max_bytes: Some(6.0 * 1024.0 * 1024.0),
        wmem_max_bytes: Some(4.0 * 1024.0 * 1024.0),
        offered_bps: Some(1e12),
        ..Path::gigabit()
    };
    let many = over("400G", Some(Span::from_ms(300)), many);
    let datagrams = Path { udp: true, datagram_bytes: Some(18.0), ..Path::gigabit() };
    let burst = ArrivingBurst { bytes: Bytes::new(1 << 30), rate: bitrate("1000T") };
    let lag = Path { streams: 8, lag_links: 4, ..Path::gigabit() };
    let cpu = Cpu { frequency_hz: 3e9, cores: 1, cycles_per_packet: 10_000.0, cycles_per_byte: 2.0 };
    let hosts = Hosts { cpu: Some(cpu), bus_bps: Some(26.8e9), disk_bps: None };
    [
        (PathDescription::of_link(bitrate("1G")), Questions::default()),
        (PathDescription { loss: Some(ratio(1e-9).into()), ..many }, transfer(1 << 40)),
        (
            over("10M", Some(Span::from_secs(3600)), datagrams),
            Questions { burst: Some(burst), ..Questions::default() },
        ),
        (
            over("1000T", Some(Span::from_secs(3600)), Path { mtu_bytes: 68.0, ..Path::gigabit() }),
            transfer(16_000_000_000 << 30),
        ),
        (
            PathDescription {
                exact: lag,
                link: ValueRange::between(bitrate("1G"), bitrate("10G")).unwrap(),
                rtt: between(Span::from_ms(20), Span::from_ms(25)),
                loss: between(ratio(1e-6), ratio(1e-4)),
                disk: None,
            },
            Questions {
                need: need(8 * 3600, 2_000_000_000_000),
                lag: true,
                distance_km: Some(1000.0),
                ..Questions::default()
            },
        ),
        (
            over("10G", Some(Span::from_ms(300)), Path { congestion: Congestion::Reno, ..Path::gigabit() }),
            Questions { target: Some(bitrate("9.9G")), distance_km: Some(20_000.0), ..Questions::default() },
        ),
        (
            PathDescription {
                disk: between(bitrate("50MB/s"), bitrate("100MB/s")),
                ..over("1G", None, Path { hosts, ..Path::gigabit() })
            },
            Questions { need: need(1, 1 << 40), ..Questions::default() },
        ),
    ]
}

#[test]
fn no_line_is_longer_than_eighty_columns() {
    for asked in wide() {
        for shown in page_of(&asked).lines() {
            assert!(shown.chars().count() <= 80, "{asked:?}: {shown}");
        }
    }
}

#[test]
fn every_layer_that_is_described_is_named() {
    let exact = Path {
        ip_version: IpVersion::V6,
        tags: 2,
        encapsulation: Encapsulation::Vxlan4,
        timestamps: false,
        ..Path::gigabit()
    };
    let answers = answers(&over("1G", None, exact), &Questions::default()).unwrap();
    let page = text(Page::new(120, false), &answers);
    assert!(page.contains("1000BASE-T, MTU 1500, IPv6, 2 VLAN tag(s), vxlan4"), "{page}");
    assert!(page.contains("Not asked") && page.contains("--rtt 20ms"), "{page}");
}

#[test]
fn a_range_makes_ranges_of_what_depends_on_it() {
    let exact = Path { window_bytes: Some(65_535.0), ..Path::gigabit() };
    let path =
        PathDescription { rtt: between(Span::from_ms(20), Span::from_ms(25)), ..over("1G", None, exact) };
    let page = page_of(&(path, Questions { distance_km: Some(1000.0), ..Questions::default() }));
    assert!(page.starts_with("Link of 1.000 Gb/s, round trip 20 ms .. 25 ms, one connection"), "{page}");
    // 65535 * 8 over 25 and over 20 ms.
    assert!(page.contains("> receiver window       20.97 Mb/s .. 26.21 Mb/s"), "{page}");
    assert!(page.contains("    link                  941.5 Mb/s\n"), "{page}");
    assert!(page.contains("2 combinations"), "{page}");
}

#[test]
fn what_does_not_fit_says_how_much_of_each_minute_it_would_take() {
    let need = |seconds: u64, bytes: u64| {
        let deadline = TransferDeadline { bytes: Bytes::new(bytes), within: Span::from_secs(seconds) };
        let questions = Questions { need: Some(deadline), ..Questions::default() };
        page_of(&(PathDescription::of_link(bitrate("1G")), questions))
    };
    let tight = need(1, 235_370_611);
    assert!(tight.contains("does not fit") && tight.contains("120.0 s"), "{tight}");
    let fits = need(8 * 3600, 2_000_000_000_000);
    assert!(fits.contains("59.0 %") && !fits.contains("does not fit"), "{fits}");
}

#[test]
fn what_is_offered_beyond_the_path_is_no_share_of_it() {
    let offered =
        |bps: f64| page(over("1G", None, Path { udp: true, offered_bps: Some(bps), ..Path::gigabit() }));
    let beyond = offered(1914.174e6);
    assert!(beyond.contains("more than the 957.1 Mb/s that fit"), "{beyond}");
    let within = offered(95.7087e6);
    assert!(within.contains("10.0 % of the 957.1 Mb/s that fit"), "{within}");
}

proptest! {
    /// No line contradicts another one, for any path that can be described.
    #[test]
    fn no_page_contradicts_itself(asked in description()) {
        let answers = answers(&asked.0, &asked.1).unwrap();
        for answer in &answers {
            agrees(&asked, answer);
        }
        let shown = text(Page::new(80, false), &answers);
        for nonsense in [" gap of 0 s", "every 0 s", "NaN", "inf"] {
            prop_assert!(!shown.contains(nonsense), "{asked:?}: {nonsense} in\n{shown}");
        }
        let row = |name: &str| {
            let found = shown.lines().find(|row| row.trim_start().starts_with(name)).unwrap_or_default();
            found.trim_start()[name.len()..].trim_start().chars().take(10).collect::<String>()
        };
        prop_assert_ne!(row("L1 wire"), row("L4 payload"), "{:?}: {}", asked, shown);
        // Every ceiling of every end of a range is on the page.
        for ceiling in answers.iter().flat_map(|answer| &answer.envelope.ceilings) {
            prop_assert!(shown.contains(&ceiling.limit.words()), "{asked:?}: {} in\n{shown}", ceiling.limit);
        }
    }
}

/// Invariants between the figures of an answer.
fn agrees(line: &dyn std::fmt::Debug, answer: &EnvelopeAnswer) {
    let envelope = &answer.envelope;
    let binding = envelope.binding.bitrate_bps;
    let close = 1.0 + 1e-9;
    assert!(
        envelope.ceilings.iter().all(|one| binding <= one.bitrate_bps * close),
        "{line:?}: {envelope:#?}"
    );
    assert!(binding <= envelope.at_most_bps() * close, "{line:?}: {envelope:#?}");
    if let Some(lost) = envelope.path.loss.filter(|lost| *lost > 1e-3) {
        assert!(binding <= envelope.at_most_bps() * (1.0 - lost) * close, "{line:?}: {envelope:#?}");
    }
    // Within the allowed loss, the loss ceiling permits the full link rate.
    if let (Some(lost), Some(budget)) = (envelope.path.loss, &envelope.loss)
        && let Some(ceiling) = envelope.ceilings.iter().find(|one| one.limit == Limit::Loss)
        && lost < budget.allowed
    {
        let full = envelope.at_most_bps() * (1.0 - lost);
        assert!(ceiling.bitrate_bps * close >= full, "{line:?}: {lost} is allowed: {envelope:#?}");
    }
    if let Some(transfer) = &answer.transfer
        && let (Some(ideal), Some(expected)) = (transfer.ideal_s, transfer.expected_s)
    {
        assert!(ideal <= expected * close, "{line:?}: {transfer:?}");
    }
    if let Some(need) = &answer.need {
        assert_eq!(need.fits, need.takes_s <= need.within_s * close, "{line:?}: {need:?}");
        assert!(!need.fits || need.required_bps <= binding * close, "{line:?}: {need:?} over {binding}");
    }
    if let Some(lag) = &answer.lag {
        assert!(lag.expected_bps <= lag.all_bps * close, "{line:?}: {lag:?}");
        assert!((lag.expected_bps / binding - 1.0).abs() < 1e-9 || lag.expected_bps <= binding * close);
    }
    if let Some(target) = &answer.target {
        assert_eq!(target.fits, target.bitrate_bps <= binding, "{line:?}: {target:?}");
    }
}

/// A path and a question, over all orders of magnitude.
fn description() -> impl Strategy<Value = PathQuestions> {
    let bps = || (0.0..15.0_f64).prop_map(|power| Bitrate::from_bps(10f64.powf(power).floor()).unwrap());
    let rtt = (0.0..12.5_f64).prop_map(|power| Span::from_ns(10f64.powf(power) as u64));
    let lost = || (-9.0..-0.01_f64).prop_map(|power| ratio(10f64.powf(power)));
    let loss = prop_oneof![
        Just(None),
        lost().prop_map(|loss| Some(ValueRange::from(loss))),
        lost().prop_map(|loss| between(Ratio::default(), loss)),
    ];
    let congestion = prop_oneof![Just(Congestion::Reno), Just(Congestion::Cubic)];
    let lag = proptest::option::of(1_u32..16);
    let mtu = prop_oneof![Just(1500_u32), 100..65_535_u32];
    let window = proptest::option::of(1_u64..1 << 32);
    let asked = prop_oneof![
        Just(Questions::default()),
        (1_u64..1 << 40)
            .prop_map(|bytes| Questions { transfer: Some(Bytes::new(bytes)), ..Questions::default() }),
        (1_u64..100_000, 1_u64..1 << 40).prop_map(|(seconds, bytes)| {
            let deadline = TransferDeadline { bytes: Bytes::new(bytes), within: Span::from_secs(seconds) };
            Questions { need: Some(deadline), ..Questions::default() }
        }),
        bps().prop_map(|target| Questions { target: Some(target), ..Questions::default() }),
    ];
    (bps(), rtt, loss, congestion, 1_u32..64, lag, mtu, window, asked).prop_map(
        |(link, rtt, loss, congestion, streams, lag, mtu, window, asked)| {
            let exact = Path {
                congestion,
                streams,
                lag_links: lag.unwrap_or(1),
                mtu_bytes: f64::from(mtu),
                window_bytes: window.map(|bytes| bytes as f64),
                ..Path::gigabit()
            };
            let path = PathDescription { exact, link: link.into(), rtt: Some(rtt.into()), loss, disk: None };
            (path, Questions { lag: lag.is_some(), ..asked })
        },
    )
}
