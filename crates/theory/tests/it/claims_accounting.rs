//! Comparisons between lines, and what a side, a buffer or a congestion control excuses.
use linerate_model::Direction;
use linerate_model::import::{Claim, ClaimScope, Figure, ForeignTest, Quantity};
use linerate_model::metrics::Side;
use linerate_theory::claims::{CauseKind, Check, Context, Judged, Verdict, judge};
use linerate_theory::envelope::Congestion;
use linerate_units::{Bytes, Span};

fn line(figures: &[(Quantity, f64)]) -> Claim {
    let figure = |(quantity, value): &(Quantity, f64)| Figure {
        quantity: *quantity,
        value: *value,
        step: 0.0,
        printed: "".into(),
    };
    Claim { figures: figures.iter().map(figure).collect(), ..Claim::default() }
}

fn during(begin: u64, end: u64, claim: Claim) -> Claim {
    let scope = if end - begin > 1 { ClaimScope::Total } else { ClaimScope::Interval };
    Claim { scope, start: Some(Span::from_secs(begin)), end: Some(Span::from_secs(end)), ..claim }
}

fn test_of(claims: Vec<Claim>) -> ForeignTest {
    ForeignTest { claims, ..ForeignTest::default() }
}

fn gigabit() -> Context {
    Context { link_bps: Some(1e9), mtu_bytes: Some(1500.0), ..Context::default() }
}

fn worst(judged: &[Judged]) -> Verdict {
    judged.iter().map(Judged::verdict).max().unwrap()
}

/// The checks that call a figure of the last line impossible.
fn refused(judged: &[Judged], quantity: Quantity) -> Vec<Check> {
    let reasons = &judged.last().unwrap().of(quantity).unwrap().reasons;
    reasons.iter().filter(|reason| reason.verdict == Verdict::Impossible).map(|reason| reason.check).collect()
}

#[test]
fn streams_add_up_to_their_sum() {
    let sum_of = |parts: &[f64], sum: f64| {
        let mut claims: Vec<Claim> = (5..)
            .zip(parts)
            .map(|(stream, bytes)| {
                during(0, 10, Claim { stream: Some(stream), ..line(&[(Quantity::Bytes, *bytes)]) })
            })
            .collect();
        claims.push(during(0, 10, line(&[(Quantity::Bytes, sum)])));
        refused(&judge(&test_of(claims), &Context::default()), Quantity::Bytes)
    };
    assert_eq!(sum_of(&[1e8, 2e8, 3e8], 6e8), []);
    assert_eq!(sum_of(&[1e8, 2e8, 3e8], 6.1e8), [Check::SumOfStreams]);
    assert_eq!(sum_of(&[1e8, 2e8, 3e8], 5.9e8), [Check::SumOfStreams]);
}

#[test]
fn a_stream_that_is_not_printed_is_missing_from_no_sum() {
    let one = during(0, 10, Claim { stream: Some(5), ..line(&[(Quantity::Bytes, 1e8)]) });
    let context = Context { streams: Some(4), ..Context::default() };
    let sum = |bytes: f64| during(0, 10, line(&[(Quantity::Bytes, bytes)]));
    assert_eq!(refused(&judge(&test_of(vec![one.clone(), sum(4e8)]), &context), Quantity::Bytes), []);
    let less = judge(&test_of(vec![one, sum(0.9e8)]), &context);
    assert_eq!(refused(&less, Quantity::Bytes), [Check::SumOfStreams], "a sum below one of its parts");
}

#[test]
fn streams_of_the_other_way_belong_to_another_sum() {
    let way = |stream: Option<u32>, direction, bytes: f64| {
        during(0, 10, Claim { stream, direction: Some(direction), ..line(&[(Quantity::Bytes, bytes)]) })
    };
    let claims = vec![
        way(Some(5), Direction::Upload, 1e8),
        way(Some(7), Direction::Download, 3e8),
        way(None, Direction::Upload, 1e8),
        way(None, Direction::Download, 3e8),
    ];
    assert_eq!(worst(&judge(&test_of(claims), &Context::default())), Verdict::Possible);
}

#[test]
fn intervals_add_up_to_the_whole() {
    let whole = |bytes: f64| {
        let mut claims: Vec<Claim> =
            (0..4).map(|second| during(second, second + 1, line(&[(Quantity::Bytes, 1e8)]))).collect();
        claims.push(during(0, 4, line(&[(Quantity::Bytes, bytes)])));
        judge(&test_of(claims), &Context::default())
    };
    assert_eq!(worst(&whole(4e8)), Verdict::Possible);
    assert_eq!(refused(&whole(3.9e8), Quantity::Bytes), [Check::SumOfIntervals]);
    assert_eq!(worst(&whole(4.2e8)), Verdict::Possible, "the rest came after the last interval");
    assert_eq!(worst(&whole(5e8)), Verdict::Doubtful, "bytes of no interval");
}

#[test]
fn no_receiver_has_more_than_was_sent() {
    let both = |sent: f64, got: f64, udp: bool| {
        let total =
            |side, bytes| during(0, 10, Claim { side: Some(side), ..line(&[(Quantity::Bytes, bytes)]) });
        let claims = vec![total(Side::Sender, sent), total(Side::Receiver, got)];
        worst(&judge(&test_of(claims), &Context { udp, ..Context::default() }))
    };
    assert_eq!(both(1e9, 0.99e9, false), Verdict::Possible);
    assert_eq!(both(1e9, 1.01e9, false), Verdict::Impossible);
    assert_eq!(both(1e9, 1.01e9, true), Verdict::Doubtful, "datagrams may come twice");
    assert_eq!(both(1e9, 2.1e9, true), Verdict::Impossible, "but not all of them");
    assert_eq!(both(0.0, 1e9, false), Verdict::Possible, "a server that does not know what was sent");
}

#[test]
fn lost_sent_and_their_ratio_agree() {
    let judged = |lost: f64, ratio: f64| {
        let figures = [(Quantity::Packets, 1000.0), (Quantity::Lost, lost), (Quantity::LossRatio, ratio)];
        worst(&judge(&test_of(vec![line(&figures)]), &Context { udp: true, ..Context::default() }))
    };
    assert_eq!(judged(50.0, 0.05), Verdict::Possible);
    assert_eq!(judged(50.0, 50.0 / 1050.0), Verdict::Possible, "lost ones counted with the others");
    assert_eq!(judged(50.0, 0.06), Verdict::Impossible);
    assert_eq!(judged(1001.0, 1.0), Verdict::Impossible);
}

#[test]
fn calls_move_no_more_than_their_size() {
    let judged = |bytes: f64| {
        let figures = [(Quantity::Bytes, bytes), (Quantity::Calls, 2048.0), (Quantity::MessageSize, 8192.0)];
        worst(&judge(&test_of(vec![line(&figures)]), &Context::default()))
    };
    assert_eq!(judged(16_777_216.0), Verdict::Possible);
    assert_eq!(judged(10_000_000.0), Verdict::Possible, "reads may return less");
    assert_eq!(judged(16_777_217.0), Verdict::Impossible);
}

#[test]
fn a_senders_count_is_doubted_while_buffers_explain_it() {
    let judged = |side, seconds: f64, buffers_bytes| {
        let figures = [(Quantity::Bitrate, 966.5e6), (Quantity::Seconds, seconds)];
        let context = Context { buffers_bytes, ..gigabit() };
        worst(&judge(&test_of(vec![Claim { side, ..line(&figures) }]), &context))
    };
    // An excess of 17.2 Mb/s is 2.1 MB in a second and 21 MB in ten.
    assert_eq!(judged(Some(Side::Sender), 1.0, None), Verdict::Doubtful);
    assert_eq!(judged(Some(Side::Sender), 10.0, None), Verdict::Impossible);
    assert_eq!(judged(Some(Side::Sender), 1.0, Some(1e6)), Verdict::Impossible);
    assert_eq!(judged(Some(Side::Sender), 10.0, Some(3e7)), Verdict::Doubtful);
    assert_eq!(judged(Some(Side::Receiver), 1.0, None), Verdict::Impossible);
    assert_eq!(judged(None, 1.0, None), Verdict::Impossible);
}

#[test]
fn intervals_may_borrow_from_buffers_but_not_for_ever() {
    let judged = |rate: f64, count: u64| {
        let interval = |second| {
            let figures = line(&[(Quantity::Seconds, 1.0), (Quantity::Bitrate, rate)]);
            during(second, second + 1, Claim { side: Some(Side::Receiver), ..figures })
        };
        worst(&judge(&test_of((0..count).map(interval).collect()), &gigabit()))
    };
    // 960 instead of 949.3 Mb/s: an excess of 1.3 MB per second, 10 MiB after eight seconds.
    assert_eq!(judged(960e6, 2), Verdict::Doubtful);
    assert_eq!(judged(960e6, 7), Verdict::Doubtful);
    assert_eq!(judged(960e6, 10), Verdict::Impossible);
    assert_eq!(judged(949.2e6, 60), Verdict::AtCeiling);
}

#[test]
fn an_mtu_that_nobody_states_may_be_larger() {
    let judged = |rate: f64| {
        let context = Context { mtu_bytes: None, ..gigabit() };
        judge(&test_of(vec![line(&[(Quantity::Bitrate, rate)])]), &context)
    };
    assert_eq!(worst(&judged(941.48e6)), Verdict::AtCeiling);
    assert_eq!(worst(&judged(966.5e6)), Verdict::Doubtful);
    let needed = judged(966.5e6)[0].judgements[0].reasons[0].evidence["mtu_needed_bytes"];
    // (38 e + 40) / (1 - e) for e = 0.9665.
    assert!((needed - 76.727 / 0.0335).abs() < 1e-6);
    assert_eq!(worst(&judged(999.5e6)), Verdict::Impossible, "no packet is that large");
}

#[test]
fn a_segment_size_shows_the_headers() {
    let judged = |mss: f64, rate: f64| {
        let context = Context { mtu_bytes: None, mss_bytes: Some(mss), ..gigabit() };
        worst(&judge(&test_of(vec![line(&[(Quantity::Bitrate, rate)])]), &context))
    };
    assert_eq!(judged(1448.0, 941.48e6), Verdict::AtCeiling);
    assert_eq!(judged(1448.0, 948e6), Verdict::Impossible, "the rest of 1500 bytes are headers");
    assert_eq!(judged(1460.0, 949.2e6), Verdict::AtCeiling);
    assert_eq!(judged(8948.0, 990.0e6), Verdict::AtCeiling);
    assert_eq!(judged(536.0, 900e6), Verdict::Impossible, "small segments, much overhead");
}

#[test]
fn datagrams_larger_than_packets_are_cut() {
    let judged = |length: u64, rate: f64| {
        let mut test = test_of(vec![line(&[(Quantity::Bitrate, rate)])]);
        test.spec.traffic.udp = true;
        test.spec.traffic.length = Some(Bytes::new(length));
        judge(&test, &gigabit())
    };
    // 8200 bytes in fragments of 1480: five full ones and one of 800, each with 20 + 38 bytes of headers.
    let five = 5.0 * 1538.0 + 800.0 + 20.0 + 38.0;
    // 8888 bytes: six full ones and one of 8, which is padded to the smallest frame.
    let six = 6.0 * 1538.0 + 84.0;
    for (length, wire) in [(8192, five), (8880, six)] {
        let ceiling = judged(length, 900e6)[0].judgements[0].ceiling.clone().unwrap().bitrate_bps;
        assert!((ceiling - 1e9 * length as f64 / wire).abs() < 1.0, "{ceiling}");
        assert_eq!(worst(&judged(length, ceiling)), Verdict::AtCeiling);
        assert_eq!(worst(&judged(length, ceiling * 1.001)), Verdict::Impossible);
    }
    // A rate of all six packets with their IP headers, 8320 bytes.
    let cause = judged(8192, 1e9 * 8320.0 / five)[0].judgements[0].reasons[0].causes[0].clone();
    assert_eq!(cause.kind, CauseKind::HeadersCounted);
    assert!((cause.evidence["implied_bps"] - 1e9 * 8192.0 / five).abs() < 1.0, "{cause:?}");
}

#[test]
fn datagrams_that_are_offered_may_be_lost() {
    let offered = |side, lost: f64| {
        let figures = [(Quantity::Bitrate, 2e9), (Quantity::LossRatio, lost)];
        worst(&judge(&test_of(vec![Claim { side, ..line(&figures) }]), &Context { udp: true, ..gigabit() }))
    };
    assert_eq!(offered(Some(Side::Sender), 0.0), Verdict::Possible);
    assert_eq!(offered(Some(Side::Receiver), 0.0), Verdict::Impossible);
    assert_eq!(offered(None, 0.6), Verdict::Possible, "two fifths of it arrived");
    assert_eq!(offered(None, 0.1), Verdict::Impossible);
}

#[test]
fn loss_says_nothing_against_bbr() {
    let judged = |congestion, rate: f64| {
        let context =
            Context { rtt_s: Some(0.021), loss: Some(1e-4), congestion: Some(congestion), ..gigabit() };
        worst(&judge(&test_of(vec![line(&[(Quantity::Bitrate, rate)])]), &context))
    };
    // 67.6 Mb/s by the square-root law.
    assert_eq!(judged(Congestion::Reno, 500e6), Verdict::Doubtful);
    assert_eq!(judged(Congestion::Reno, 80e6), Verdict::Possible);
    assert_eq!(judged(Congestion::Bbr, 500e6), Verdict::Possible);
}

#[test]
fn retransmissions_without_loss_are_doubted() {
    let judged = |loss: f64| {
        let figures = [
            (Quantity::Retransmits, 5.0),
            (Quantity::Bytes, 1e9),
            (Quantity::Seconds, 10.0),
            (Quantity::LossRatio, loss),
        ];
        let judged = judge(&test_of(vec![line(&figures)]), &gigabit());
        judged[0].of(Quantity::Retransmits).unwrap().verdict
    };
    assert_eq!(judged(0.0), Verdict::Doubtful);
    assert_eq!(judged(1e-5), Verdict::Possible);
}

#[test]
fn a_short_test_over_a_long_path_is_doubted() {
    let judged = |seconds: f64| {
        let figures = [(Quantity::Bitrate, 300e6), (Quantity::Seconds, seconds)];
        worst(&judge(&test_of(vec![line(&figures)]), &Context { rtt_s: Some(0.1), ..gigabit() }))
    };
    // Slow start to 8128 segments takes ten round trips of 0.1 s, of which 0.87 s are lost.
    assert_eq!(judged(2.0), Verdict::Doubtful);
    assert_eq!(judged(60.0), Verdict::Possible);
}

#[test]
fn a_time_of_two_digits_is_too_coarse_for_a_rate_that_nobody_printed() {
    let judged = |seconds: f64| {
        let mut claim = line(&[(Quantity::Bytes, 1e6), (Quantity::Seconds, seconds)]);
        claim.figures[1].step = 0.01;
        worst(&judge(&test_of(vec![claim]), &Context::default()))
    };
    assert_eq!(judged(0.05), Verdict::Doubtful);
    assert_eq!(judged(5.0), Verdict::Possible);
}

#[test]
fn the_likeliest_cause_comes_first() {
    let first = |rate: f64| {
        let judged =
            judge(&test_of(vec![line(&[(Quantity::Bitrate, rate), (Quantity::Seconds, 10.0)])]), &gigabit());
        judged[0].judgements[0].reasons[0].causes[0].kind
    };
    assert_eq!(first(941.482_445e6 * 1.048_576), CauseKind::BinaryPrefix);
    assert_eq!(first(941.482_445e6 * 8.0), CauseKind::BitsForBytes);
    assert_eq!(first(1e9), CauseKind::HeadersForgotten);
    assert_eq!(first(1e9 * 1500.0 / 1538.0), CauseKind::HeadersCounted);
    assert_eq!(first(941.482_445e6 * 2.0), CauseKind::BothDirections);
    assert_eq!(first(950e6), CauseKind::SenderTiming);
}

#[test]
fn a_message_both_ways_at_once_has_twice_the_rate() {
    let judged = |rate: f64| {
        let figures =
            [(Quantity::MessageSize, 125_000.0), (Quantity::OneWay, 1.1e-3), (Quantity::Bitrate, rate)];
        judge(&test_of(vec![Claim { scope: ClaimScope::Size, ..line(&figures) }]), &gigabit())
    };
    // 1 Mbit in 1.1 ms.
    assert_eq!(worst(&judged(1e6 / 1.1e-3)), Verdict::Possible);
    assert_eq!(worst(&judged(2e6 / 1.1e-3)), Verdict::Possible, "both directions added");
    assert_eq!(refused(&judged(3e6 / 1.1e-3), Quantity::Bitrate), [Check::Link, Check::BytesOverTime]);
}

#[test]
fn our_own_rate_leaves_out_the_first_read() {
    let judged = |first_read_left_out| {
        // 131072 bytes of 10 MB are 1.3 %.
        let figures =
            [(Quantity::Bytes, 1e7), (Quantity::Seconds, 1.0), (Quantity::Bitrate, (1e7 - 1e5) * 8.0)];
        worst(&judge(&test_of(vec![line(&figures)]), &Context { first_read_left_out, ..Context::default() }))
    };
    assert_eq!((judged(true), judged(false)), (Verdict::Possible, Verdict::Impossible));
}

fn file() -> Context {
    Context { from_file: true, ..gigabit() }
}

#[test]
fn a_shaper_of_the_links_rate_is_doubted_in_a_file_and_refused_as_a_wire() {
    let judged = |rate: f64, context: &Context| {
        let figures = [(Quantity::Bitrate, rate), (Quantity::Seconds, 10.0)];
        let receiver = Claim { side: Some(Side::Receiver), ..line(&figures) };
        worst(&judge(&test_of(vec![receiver]), context))
    };
    // 1448 of the 1514 bytes per frame that Linux counts, and 1460 without timestamps.
    assert_eq!(judged(956.4e6, &file()), Verdict::Doubtful);
    assert_eq!(judged(956.4e6, &gigabit()), Verdict::Impossible);
    assert_eq!(judged(966.5e6, &file()), Verdict::Impossible, "no shaper of frames lets it through");
}

#[test]
fn small_datagrams_through_a_shaper_are_not_padded() {
    let judged = |context: Context| {
        // 64 bytes of payload: a shaper counts 106 bytes, the wire 130.
        let rate = 10e6 * 64.0 / 106.0;
        let figures =
            [(Quantity::Bitrate, rate), (Quantity::Seconds, 10.0), (Quantity::Packets, rate / 51.2)];
        let claim = Claim { side: Some(Side::Receiver), ..line(&figures) };
        let context = Context { link_bps: Some(10e6), udp: true, datagram_bytes: Some(64.0), ..context };
        worst(&judge(&test_of(vec![claim]), &context))
    };
    assert_eq!(judged(file()), Verdict::Doubtful);
    assert_eq!(judged(gigabit()), Verdict::Impossible);
}

#[test]
fn a_line_without_a_side_may_be_the_senders_in_a_file() {
    let judged = |context: &Context| {
        let figures = [(Quantity::Bitrate, 966.5e6), (Quantity::Seconds, 1.0)];
        worst(&judge(&test_of(vec![line(&figures)]), context))
    };
    assert_eq!(judged(&file()), Verdict::Doubtful, "2.1 MB fit into buffers");
    assert_eq!(judged(&gigabit()), Verdict::Impossible);
}

#[test]
fn buffers_that_nobody_asked_for_grow() {
    let judged = |asked: Option<u64>| {
        let figures = [(Quantity::Bitrate, 966.5e6), (Quantity::Seconds, 1.0)];
        let mut test = test_of(vec![Claim { side: Some(Side::Sender), ..line(&figures) }]);
        let buffer = |quantity, value: f64| Figure { quantity, value, step: 0.0, printed: "".into() };
        test.effective =
            vec![buffer(Quantity::SendBuffer, 16_384.0), buffer(Quantity::ReceiveBuffer, 131_072.0)];
        test.spec.socket.window = asked.map(Bytes::new);
        worst(&judge(&test, &gigabit()))
    };
    assert_eq!(judged(None), Verdict::Doubtful);
    assert_eq!(judged(Some(8192)), Verdict::Impossible);
}

#[test]
fn the_sum_of_both_ways_may_be_twice_the_link() {
    let way = |stream, direction, rate: f64| {
        let figures = line(&[(Quantity::Bitrate, rate), (Quantity::Seconds, 10.0)]);
        during(0, 10, Claim { stream, direction, ..figures })
    };
    let judged = |sum: f64| {
        let claims = vec![
            way(Some(1), Some(Direction::Upload), 900e6),
            way(Some(2), Some(Direction::Download), 900e6),
            way(None, None, sum),
        ];
        worst(&judge(&test_of(claims), &gigabit()))
    };
    assert_eq!(judged(1800e6), Verdict::Possible);
    assert_eq!(judged(2000e6), Verdict::Impossible);
}

#[test]
fn a_piece_of_a_file_may_show_fewer_streams_than_its_sum_has() {
    let judged = |context: &Context, streams: u32| {
        let one = during(0, 10, Claim { stream: Some(5), ..line(&[(Quantity::Bytes, 1e8)]) });
        let sum = during(0, 10, line(&[(Quantity::Bytes, 3e8)]));
        let mut test = test_of(vec![one, sum]);
        test.spec.traffic.streams = streams;
        worst(&judge(&test, context))
    };
    assert_eq!(judged(&file(), 1), Verdict::Doubtful);
    assert_eq!(judged(&file(), 3), Verdict::Possible, "it says that there were three");
    assert_eq!(judged(&gigabit(), 1), Verdict::Impossible);
}

#[test]
fn an_interval_of_no_length_has_any_rate_and_one_without_a_time_may_be_a_burst() {
    let rate = |claim: Claim| {
        let claims = vec![Claim { scope: ClaimScope::Interval, ..claim }];
        worst(&judge(&test_of(claims), &file()))
    };
    let figures = [(Quantity::Bytes, 16e3), (Quantity::Bitrate, 78e9)];
    let at = Some(Span::from_secs(1));
    assert_eq!(
        rate(Claim { start: at, end: at, side: Some(Side::Receiver), ..line(&figures) }),
        Verdict::Doubtful
    );
    assert_eq!(rate(line(&[(Quantity::Bitrate, 35e9)])), Verdict::Doubtful);
}
