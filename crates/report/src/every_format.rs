//! Every format accepts every log: arbitrary events, in any order, with any numbers.

use linerate_model::flow::FlowId;
use linerate_model::metrics::Metric;
use linerate_model::{
    Body, Cause, Caveat, CaveatKind, Ceiling, Confidence, Digest, Direction, Event, Finding, FlowHead,
    FlowPlan, FollowUp, ForeignText, HostInfo, LatencyReport, Limit, Outcome, PortSample, ProbePhase,
    ProbeTransport, Readings, ResponsivenessConfidence, ResponsivenessReport, Rule, RunRecord, Sample, Side,
    SizeCurve, SizeFit, SizePoint, StreamCounting, Tally, TestSpec, TimeInterval, Transport, UdpTally,
};
use linerate_units::{Bitrate, Bytes, Ratio, Span, Timestamp};
use proptest::prelude::*;

#[cfg(feature = "parquet")]
use crate::format::RunSource;
use crate::samples_of_runs as runs;
use crate::{
    IntervalRows, Live, RunRow, TextLayout, csv, document, history_table, html, markdown, ndjson, picture,
    plot, text,
};

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Sender), Just(Side::Receiver)]
}

fn flow() -> impl Strategy<Value = FlowId> {
    (0..3_u16).prop_map(FlowId)
}

/// Small, ordinary and extreme counts.
fn count() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(u64::MAX), any::<u64>(), 0_u64..10_000_000_000]
}

fn planned() -> impl Strategy<Value = Body> {
    (flow(), ".*", any::<bool>(), any::<u32>()).prop_map(|(flow, name, udp, streams)| {
        let transport = if udp { Transport::Udp } else { Transport::Tcp };
        let direction = if udp { Direction::Upload } else { Direction::Download };
        Body::FlowPlanned(FlowPlan {
            flow,
            from: name.clone().into(),
            to: name.clone().into(),
            name: name.into(),
            transport,
            direction,
            streams,
        })
    })
}

fn tally() -> impl Strategy<Value = Tally> {
    (count(), count(), any::<f64>(), count(), any::<bool>(), proptest::option::of(".*")).prop_map(
        |(bytes, elapsed, real, small, complete, trouble)| Tally {
            bytes: Bytes::new(bytes),
            elapsed: Span::from_ns(elapsed),
            bitrate: Bitrate::from_bps(real).unwrap_or_default(),
            retransmits: complete.then_some(small),
            host_busy: Ratio::new(real),
            udp: (small % 2 == 0).then(|| UdpTally {
                packets: bytes,
                lost: small,
                duplicates: elapsed,
                ..UdpTally::default()
            }),
            complete,
            error: trouble.map(Into::into),
            ..Tally::default()
        },
    )
}

fn sample() -> impl Strategy<Value = Sample> {
    (side(), count(), count(), count(), any::<bool>()).prop_map(|(side, start, end, value, outside)| {
        let mut readings = Readings::default();
        for name in
            ["flow.bytes", "flow.bitrate", "udp.lost", "udp.packets", "udp.loss_ratio", "tcp.cwnd", "x.y"]
        {
            readings.put(Metric::<u64>::new(name), value);
        }
        let (start_ns, end_ns) = (Timestamp::from_ns(start), Timestamp::from_ns(end));
        Sample { side, start_ns, end_ns, outside, readings }
    })
}

fn port() -> impl Strategy<Value = Body> {
    let flows = proptest::collection::vec(flow(), 0..3);
    (flows, ".{0,9}", count(), count(), count(), any::<f64>(), any::<bool>()).prop_map(
        |(flows, port, start, end, value, real, outside)| {
            let mut readings = Readings::default();
            for name in ["port.packets", "port.queue_max", "port.marked"] {
                readings.put(Metric::<u64>::new(name), value);
            }
            readings.put_some(Metric::new("port.rate"), Bitrate::from_bps(real));
            readings.put_some(Metric::new("port.busy"), Ratio::new(real));
            let (start_ns, end_ns) = (Timestamp::from_ns(start), Timestamp::from_ns(end));
            Body::Port {
                flows,
                port: port.into(),
                sample: PortSample { start_ns, end_ns, outside, readings },
            }
        },
    )
}

fn finding() -> impl Strategy<Value = Finding> {
    (".*", any::<f64>(), proptest::option::of(".*"), any::<bool>()).prop_map(
        |(text, value, remedy, known)| Finding {
            cause: if known { Cause::Impossible } else { Cause::Unknown },
            rule: ForeignText::from(text.chars().take(3).collect::<String>()).into(),
            confidence: if known { Confidence::Probable } else { Confidence::Unexplained },
            share_of_time: Some(value),
            evidence: ["a_bps", "b_bytes", "c_ns", "d", "_ns"]
                .map(|name| (ForeignText::from(name).into(), value))
                .into(),
            text: text.into(),
            remedy: remedy.map(Into::into),
        },
    )
}

fn latency() -> impl Strategy<Value = LatencyReport> {
    (count(), count(), any::<bool>()).prop_map(|(count, ns, idle)| LatencyReport {
        phase: if idle { ProbePhase::Idle } else { ProbePhase::Loaded },
        transport: ProbeTransport::Tcp,
        sent: count,
        lost: ns,
        rtt: Digest { count, p50_ns: ns, p95_ns: ns, p99_ns: ns, ..Digest::default() },
        upload: None,
        download: None,
        offset_ns: None,
        offset_error_ns: None,
        kernel_timestamps: idle,
        intervals: Vec::new(),
        histogram: Vec::new(),
    })
}

fn ceilings() -> impl Strategy<Value = Body> {
    (flow(), any::<f64>(), ".*").prop_map(|(flow, bitrate_bps, because)| {
        let ceiling = Ceiling { limit: Limit::Link, bitrate_bps, because: because.into(), slack_bps: 0.0 };
        Body::Ceilings { flow, ceilings: vec![ceiling.clone(), ceiling.clone()], ceiling: Some(ceiling) }
    })
}

fn size() -> impl Strategy<Value = Body> {
    (flow(), count(), count(), any::<f64>(), any::<bool>()).prop_map(|(flow, bytes, ns, real, known)| {
        let time = Span::from_ns(ns);
        let coverage = Ratio::new(real).unwrap_or_default();
        let point = SizePoint {
            message_bytes: Bytes::new(bytes),
            trials: known.then_some(7),
            repeats: known.then_some(u32::MAX),
            best: time,
            median: known.then_some(time),
            interval: known.then_some(TimeInterval { low: Span::ZERO, high: time, coverage }),
            bitrate: Bitrate::from_bps(real),
            buffered: known,
        };
        Body::Size { flow, point }
    })
}

fn curve() -> impl Strategy<Value = Body> {
    (flow(), count(), any::<f64>(), any::<bool>()).prop_map(|(flow, value, real, known)| {
        let (bytes, time) = (Bytes::new(value), Span::from_ns(value));
        let rate = Bitrate::from_bps(real).unwrap_or_default();
        let fit = SizeFit {
            startup: time,
            asymptotic: rate,
            half_performance_bytes: bytes,
            largest_error: Ratio::new(real).unwrap_or_default(),
        };
        let curve = SizeCurve {
            smallest_bytes: bytes,
            smallest_one_way: time,
            peak_bytes: bytes,
            peak: rate,
            saturation_bytes: known.then_some(bytes),
            sustained: known.then_some(rate),
            fit: known.then_some(fit),
        };
        Body::Curve { flow, curve }
    })
}

fn responsiveness() -> impl Strategy<Value = Body> {
    (any::<f64>(), count(), any::<bool>()).prop_map(|(real, count, known)| {
        let (rpm, time) = (known.then_some(real), known.then_some(Span::from_ns(count)));
        Body::Responsiveness(Box::new(ResponsivenessReport {
            loaded: if known { vec![Direction::Download, Direction::Upload] } else { Vec::new() },
            rpm,
            foreign_rpm: rpm,
            loaded_rpm: rpm,
            idle_rpm: rpm,
            tcp: time,
            tls: time,
            http: time,
            loaded_http: time,
            late: time,
            rate_confidence: ResponsivenessConfidence::Medium,
            confidence: ResponsivenessConfidence::Low,
            probes: [count, count],
            lost: count,
            connections: u32::MAX,
            intervals: 0,
            interval: Span::from_ns(count),
            encrypted: known,
        }))
    })
}

fn body() -> impl Strategy<Value = Body> {
    prop_oneof![
        size(),
        curve(),
        planned(),
        ".*".prop_map(|name| Body::Host {
            info: HostInfo { address: Some(name.clone().into()), name: name.into(), ..HostInfo::default() }
        }),
        (flow(), side(), tally()).prop_map(|(flow, side, tally)| Body::FlowEnded { flow, side, tally }),
        (flow(), sample()).prop_map(|(flow, sample)| Body::Sample { flow, sample }),
        port(),
        (flow(), count(), count(), count()).prop_map(|(flow, bytes, elapsed, small)| Body::Progress {
            flow,
            bytes: Bytes::new(bytes),
            elapsed: Span::from_ns(elapsed),
            srtt: Some(Span::from_ns(small)),
            retransmits: Some(small),
        }),
        (flow(), proptest::collection::vec(count(), 0..4)).prop_map(|(flow, bytes)| Body::Streams {
            flow,
            counted: StreamCounting::Acknowledged,
            bytes: bytes.into_iter().map(Bytes::new).collect()
        }),
        (proptest::option::of(flow()), latency()).prop_map(|(flow, report)| Body::Latency { flow, report }),
        (flow(), finding(), finding()).prop_map(|(flow, verdict, other)| Body::Verdict {
            flow,
            verdict,
            also: vec![other]
        }),
        ceilings(),
        responsiveness(),
        (flow(), ".*", ".*").prop_map(|(flow, because, answer)| Body::FollowUp {
            flow,
            follow_up: FollowUp {
                question: "ports".into(),
                runs: vec![because.clone().into()],
                because: because.into(),
                answer: answer.into(),
                evidence: std::collections::BTreeMap::new(),
            }
        }),
        (proptest::option::of(flow()), ".*").prop_map(|(flow, text)| Body::Caveat {
            flow,
            caveat: Caveat { kind: CaveatKind::ConcurrentRun, text: text.into() }
        }),
        (flow(), side()).prop_map(|(flow, side)| runs::settings(flow, side).1),
        proptest::option::of(".*")
            .prop_map(|reason| Body::RunEnded { outcome: Outcome::Failed, reason: reason.map(Into::into) }),
    ]
}

fn log() -> impl Strategy<Value = Vec<Event>> {
    (any::<bool>(), proptest::collection::vec(body(), 0..40)).prop_map(|(opened, bodies)| {
        let opening = if opened { runs::opening(TestSpec::default()) } else { Vec::new() };
        runs::log(opening.into_iter().chain(bodies.into_iter().map(|body| (0, body))).collect())
    })
}

/// Checks that no line is wider than the page or contains a control character.
fn check_page(page: &str, width: usize) -> Result<(), TestCaseError> {
    for line in page.lines() {
        prop_assert!(line.chars().count() <= width, "wider than {}: {:?}", width, line);
        prop_assert!(!line.chars().any(char::is_control), "{:?}", line);
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_format_takes_every_log(log in log(), width in 40_usize..200, colour in any::<bool>()) {
        let record = RunRecord::fold(&log);
        let view = TextLayout { width, colour, kept: None, explain: false, all_streams: false };
        let page = text(&record, &view);
        if !colour {
            check_page(&page, width)?;
        }
        serde_json::to_string(&document(&record)).unwrap();
        let _ = markdown::report(&record);
        let mut out = Vec::new();
        csv::samples(&record, &mut out).unwrap();
        csv::summary(&record, &mut out).unwrap();
        csv::sizes(&record, &mut out).unwrap();
        let _ = picture::Pictures::of_run(&record).svg(None);
        #[cfg(feature = "parquet")]
        {
            let run = RunSource { record: &record, events: &log, view: &view, assets: None };
            match crate::parquet::of_run(&run) {
                Ok(file) => prop_assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1")),
                Err(error) => prop_assert!(error.is_of_format(), "{error}"),
            }
        }
        let assets = html::Assets { script: "", style: "" };
        html::write(None, None, &[html::ReportedRun { record: &record, events: &log }], &assets, &mut out).unwrap();
        let drawn = plot::terminal(&record, &view);
        if !colour {
            check_page(&drawn, width)?;
        }
        let (mut live, mut rows) = (Live::new(), IntervalRows::default());
        for event in &log {
            ndjson::write(event, &mut out).unwrap();
            rows.on(event);
            live.on(event);
            let line = live.line(&view);
            prop_assert!(!line.contains('\n'));
            if !colour {
                check_page(&line, width)?;
            }
        }
    }

    #[test]
    fn the_list_takes_every_run(names in proptest::collection::vec(".{0,30}", 5), width in 40_usize..200) {
        let row = RunRow {
            run: names[0].clone().into(),
            name: names[2].clone().into(),
            started_at: names[1].clone().into(),
            target: names[2].clone().into(),
            flows: vec![FlowHead {
                flow: FlowId(0),
                name: names[3].clone().into(),
                direction: "upload".into(),
                transport: "tcp".into(),
                bitrate: None,
                cause: Some(names[4].clone().into()),
            }],
            outcome: None,
            tags: vec![names[1].clone().into()],
        };
        let table = history_table(&[row.clone(), row], &TextLayout { width, colour: false, kept: None, explain: false, all_streams: false });
        check_page(&table, width)?;
    }

    /// For any relation of a rate, its ceiling and the verdict.
    #[test]
    fn nobody_prints_more_than_the_whole_of_a_ceiling(
        rate in 1e3_f64..1e11,
        factor in prop_oneof![Just(1.0), 0.9998_f64..1.0003, 0.001_f64..50.0],
        limit in proptest::sample::select(Limit::ALL),
        cause in proptest::option::of(prop_oneof![
            Just(Cause::Link), Just(Cause::Impossible), Just(Cause::Invalid), Just(Cause::Unknown)
        ]),
        width in 60_usize..160,
    ) {
        let mut bodies = runs::opening(TestSpec::default());
        bodies.push(runs::planned(0, Direction::Download, Transport::Tcp));
        bodies.push(runs::ended(FlowId(0), Side::Receiver, Tally { complete: true, ..runs::tally(rate) }));
        let ceiling = Ceiling { limit, bitrate_bps: rate / factor, because: "given".into(), slack_bps: 0.0 };
        let ceilings = vec![ceiling.clone()];
        bodies.push((0, Body::Ceilings { flow: FlowId(0), ceilings, ceiling: Some(ceiling.clone()) }));
        if let Some(cause) = cause {
            let verdict = Finding {
                cause,
                rule: Rule::LinkFull,
                confidence: Confidence::Probable,
                share_of_time: None,
                text: "text".into(),
                evidence: std::collections::BTreeMap::new(),
                remedy: None,
            };
            bodies.push((0, Body::Verdict { flow: FlowId(0), verdict, also: Vec::new() }));
        }
        let log = runs::log(bodies);
        let record = RunRecord::fold(&log);
        let flow = &record.flows[0];
        // The share is the rate divided by the ceiling, except above the ceiling.
        let share = flow.ceiling_share().map(linerate_model::CeilingShare::get);
        if factor <= 1.0 {
            prop_assert!(share.is_some_and(|share| (share - factor).abs() < 1e-9));
        }
        if factor > 1.0003 && (!ceiling.is_wall() || cause == Some(Cause::Impossible)) {
            prop_assert_eq!(share, None);
        }
        if factor > 1.0003 && ceiling.is_wall() && cause.is_none() {
            prop_assert!(flow.is_impossible());
        }
        let view = TextLayout { width, colour: false, kept: None, explain: true, all_streams: false };
        let mut table = Vec::new();
        csv::summary(&record, &mut table).unwrap();
        let mut rows = ::csv::Reader::from_reader(&table[..]);
        let column = rows.headers().unwrap().iter().position(|head| head == "share").unwrap();
        let cell = rows.records().next().unwrap().unwrap()[column].to_owned();
        prop_assert!(cell.is_empty() || cell.parse::<f64>().unwrap() <= 1.0, "{}", cell);
        let json = serde_json::to_value(document(&record)).unwrap();
        let printed = json.pointer("/flows/0/ceiling/share").and_then(serde_json::Value::as_f64);
        prop_assert_eq!(printed, share);
        let (mut page, assets) = (Vec::new(), html::Assets { script: "", style: "" });
        html::write(None, None, &[html::ReportedRun { record: &record, events: &log }], &assets, &mut page).unwrap();
        let page = String::from_utf8_lossy(&page).into_owned();
        for text in [text(&record, &view), markdown::report(&record), page] {
            for (at, _) in text.match_indices(" %") {
                let number = text[..at].rsplit(|c: char| !(c.is_ascii_digit() || c == '.')).next().unwrap_or("");
                prop_assert!(number.parse::<f64>().is_ok_and(|percent| percent <= 100.0), "{} % in {}", number, text);
            }
        }
    }
}
