//! Tests of the document against the public contract.

use super::*;
use crate::samples_of_runs as runs;
use linerate_model::flow::FlowId;
use linerate_model::{Body, Event, Limit, Side};
use serde_json::{Value, json};

fn json_of(log: &[Event]) -> Value {
    serde_json::to_value(document(&RunRecord::fold(log))).unwrap()
}

/// JSON pointers of the contract that a finished TCP run has.
const TCP_PATHS: &str = "/schema /run/id /run/started_at /run/world /run/linerate /run/outcome /run/target \
    /run/spec/traffic /hosts/0/name /hosts/0/kernel /hosts/0/cpu /caveats \
    /flows/0/name /flows/0/from /flows/0/to /flows/0/transport /flows/0/direction /flows/0/streams \
    /flows/0/receiver/bytes /flows/0/receiver/seconds /flows/0/receiver/bitrate_bps \
    /flows/0/receiver/first_read_bytes /flows/0/receiver/omitted_bytes /flows/0/receiver/tail_bytes \
    /flows/0/receiver/total_bytes \
    /flows/0/sender/bytes /flows/0/sender/seconds /flows/0/sender/bitrate_bps /flows/0/sender/retransmits \
    /flows/0/settings/window/asked /flows/0/settings/window/granted_snd_bytes \
    /flows/0/settings/window/granted_rcv_bytes /flows/0/settings/mss/asked /flows/0/settings/mss/effective_bytes \
    /flows/0/settings/congestion/asked /flows/0/settings/congestion/effective /flows/0/settings/tos \
    /flows/0/settings/pacing /flows/0/settings/io /flows/0/settings/length_bytes /flows/0/settings/no_delay \
    /flows/0/latency/idle/p50_ns /flows/0/latency/idle/p95_ns /flows/0/latency/idle/p99_ns \
    /flows/0/latency/idle/min_ns /flows/0/latency/idle/mean_ns /flows/0/latency/idle/max_ns \
    /flows/0/latency/idle/count /flows/0/latency/idle/lost /flows/0/latency/idle/transport \
    /flows/0/latency/loaded/p50_ns /flows/0/latency/loaded/kernel_timestamps /flows/0/latency/loaded/offset_error_ns \
    /flows/0/cpu/sender_seconds /flows/0/cpu/receiver_seconds /flows/0/cpu/sender_host_busy \
    /flows/0/cpu/receiver_host_busy /flows/0/ceiling/bitrate_bps /flows/0/ceiling/share /flows/0/ceiling/because \
    /flows/0/ceilings/1/limit /flows/0/verdict/cause /flows/0/verdict/rule /flows/0/verdict/confidence \
    /flows/0/verdict/share_of_time /flows/0/verdict/text /flows/0/verdict/evidence /flows/1/verdict/remedy \
    /flows/1/also/0/rule /flows/0/byte_accounting/unaccounted_bytes /flows/0/steady/bitrate_bps \
    /flows/1/caveats/0/kind /flows/1/caveats/0/text /flows/0/samples/0/side /flows/0/samples/0/start_ns \
    /flows/0/samples/0/end_ns /flows/0/samples/0/readings/flow.bytes";

#[test]
fn a_finished_run_has_every_field_of_the_contract() {
    let json = json_of(&runs::tcp_run());
    for path in TCP_PATHS.split_whitespace() {
        assert!(json.pointer(path).is_some(), "{path} is missing");
    }
    assert_eq!(json["schema"], "linerate.result/2");
    let flow = &json["flows"][0];
    assert_eq!(flow["receiver"]["bitrate_bps"], 941.4e6);
    assert_eq!(flow["sender"]["retransmits"], 17);
    // 941.4 of the 1448/1538 of 1000 Mb/s.
    let share = flow["ceiling"]["share"].as_f64().unwrap();
    assert!((share - 0.9414 * 1538.0 / 1448.0).abs() < 1e-12, "{share}");
    assert_eq!(flow["settings"]["mss"], json!({ "asked": null, "effective_bytes": 1448 }));
    assert_eq!(flow["settings"]["congestion"], json!({ "asked": "bbr", "effective": "cubic" }));
    let window = json!({ "asked": 4 << 20, "granted_snd_bytes": 8 << 20, "granted_rcv_bytes": 6 << 20 });
    assert_eq!(flow["settings"]["window"], window);
    assert_eq!(flow["verdict"]["cause"], "link");
    assert_eq!(flow["verdict"]["confidence"], "confirmed");
    assert_eq!(flow["caveats"], json!([]));
    for absent in ["/flows/0/udp", "/flows/0/receiver/impossible", "/flows/0/verdict/remedy", "/run/reason"] {
        assert!(json.pointer(absent).is_none(), "{absent} is there");
    }
    // Three samples of half a second at an interval of one second.
    assert_eq!(flow["samples"].as_array().unwrap().len(), 2);
}

#[test]
fn a_run_in_the_lab_reports_what_its_ports_counted() {
    let json = json_of(&runs::lab_run());
    assert_eq!(json["run"]["world"], "lab");
    assert_eq!(json["flows"][0]["caveats"][0]["kind"], "lab_late");
    let ports = json["ports"].as_array().unwrap();
    let names: Vec<&Value> = ports.iter().map(|port| &port["port"]).collect();
    assert_eq!(names, ["s>b", "s>a", "s>c"], "those that carried nothing too");
    let mut busy = ports[0].clone();
    let samples = busy.as_object_mut().unwrap().remove("samples").unwrap();
    // 20 intervals of 8127 packets; before them one of 162, which is not part of rate and busy share.
    let expected = json!({
        "port": "s>b", "flows": [0], "seconds": 2.0, "rate_bps": 1e9, "busy": 1.0, "packets": 20 * 8127 + 162,
        "bytes": (20 * 8127 + 162) * 1518, "dropped": 20 * 8, "marked": 0, "queue_max_bytes": 500_000
    });
    assert_eq!(busy, expected);
    let bounds = |at: usize| (samples[at]["start_ns"].as_u64(), samples[at]["end_ns"].as_u64());
    // One outside, then one per second.
    assert_eq!(samples.as_array().unwrap().len(), 3);
    assert_eq!(
        (samples[0]["outside"].as_bool(), bounds(1)),
        (Some(true), (Some(2_000_000_000), Some(3_000_000_000)))
    );
    assert_eq!(samples[1]["readings"]["port.packets"], 10 * 8127);
}

#[test]
fn datagrams_are_counted_from_what_the_receiver_knows() {
    let json = json_of(&runs::udp_run());
    let expected = json!({
        // 9990 read, 15 of them twice, and 25 never.
        "packets": 10_000, "lost": 25, "out_of_order": 3, "duplicates": 15,
        "loss_ratio": 0.0025, "jitter_ns": 54_688, "send_errors": 0
    });
    assert_eq!(json["flows"][0]["udp"], expected);
    assert_eq!(json["flows"][0]["sender"]["packets"], 10_000);
    assert!(json.pointer("/flows/0/latency").is_none());
}

#[test]
fn a_killed_run_gives_the_last_count_and_says_so() {
    let json = json_of(&runs::killed_run());
    let receiver = json!({ "bytes": 250_000_000, "seconds": 2.5, "bitrate_bps": 8e8 });
    assert_eq!(json["flows"][0]["receiver"], receiver);
    assert_eq!(json["flows"][0]["caveats"][0]["kind"], "partial");
    // The upload did not start: all its values are absent, not 0.
    assert!(json.pointer("/flows/1/receiver").is_none());
    assert_eq!(json["flows"][1]["caveats"][0]["kind"], "partial");
    assert!(json.pointer("/run/outcome").is_none());
}

#[test]
fn a_flow_that_ended_early_says_why() {
    let mut bodies = runs::opening(linerate_model::TestSpec::default());
    bodies.push(runs::planned(0, linerate_model::Direction::Upload, linerate_model::Transport::Tcp));
    let broken = Tally { complete: false, error: Some("connection reset".into()), ..runs::tally(1e6) };
    bodies.push(runs::ended(FlowId(0), Side::Receiver, broken));
    let json = json_of(&runs::log(bodies));
    assert_eq!(json["flows"][0]["receiver"]["bitrate_bps"], 1e6);
    assert!(json["flows"][0]["caveats"][0]["text"].as_str().unwrap().contains("connection reset"));
}

#[test]
fn more_than_the_ceiling_is_marked_beyond_the_error_of_clocks() {
    assert_eq!(json_of(&runs::impossible_run())["flows"][0]["receiver"]["impossible"], true);
    let marked = |bps: f64, limit: Limit| {
        let mut bodies = runs::opening(linerate_model::TestSpec::default());
        bodies.push(runs::planned(0, linerate_model::Direction::Upload, linerate_model::Transport::Tcp));
        bodies.push(runs::ended(FlowId(0), Side::Receiver, runs::tally(bps)));
        bodies.push(runs::ceilings(FlowId(0)));
        if let Some((_, Body::Ceilings { ceiling: Some(ceiling), .. })) = bodies.last_mut() {
            ceiling.limit = limit;
        }
        json_of(&runs::log(bodies)).pointer("/flows/0/receiver/impossible").is_some()
    };
    assert!(!marked(runs::GIGABIT * (1.0 + 199e-6), Limit::Link));
    assert!(marked(runs::GIGABIT * (1.0 + 201e-6), Limit::Link));
    // A rate above an estimated ceiling disproves the estimate, not the rate.
    assert!(!marked(runs::GIGABIT * 2.0, Limit::HostMemory));
}

#[test]
fn an_empty_log_is_a_document_all_the_same() {
    let expected = json!({
        "schema": "linerate.result/2", "run": { "id": "" }, "hosts": [], "flows": [], "caveats": []
    });
    assert_eq!(json_of(&[]), expected);
}

/// Checks the names of the document against its schema: every required name is present, and every name that is
/// present is known.
#[cfg(feature = "schema")]
#[test]
fn the_schema_describes_the_document() {
    let schema = result_schema();
    for log in [
        runs::tcp_run(),
        runs::udp_run(),
        runs::killed_run(),
        runs::impossible_run(),
        runs::lab_run(),
        Vec::new(),
    ] {
        check_names(&schema, &schema, &json_of(&log), "");
    }
    let required = |path: &str| schema.pointer(path).unwrap().as_array().unwrap().contains(&json!("bytes"));
    assert!(required("/$defs/ReceiverSection/required"));
    // The check itself detects a missing name.
    let mut broken = json_of(&runs::tcp_run());
    broken["flows"][0]["receiver"].as_object_mut().unwrap().remove("bytes");
    assert!(std::panic::catch_unwind(|| check_names(&schema, &schema, &broken, "")).is_err());
}

#[cfg(feature = "schema")]
fn check_names(root: &Value, schema: &Value, value: &Value, path: &str) {
    let schema = resolve(root, schema, value);
    if let (Value::Array(items), Some(item)) = (value, schema.get("items")) {
        for (number, value) in items.iter().enumerate() {
            check_names(root, item, value, &format!("{path}/{number}"));
        }
    }
    let (Value::Object(fields), Some(known)) = (value, schema.get("properties").and_then(Value::as_object))
    else {
        return;
    };
    for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        assert!(fields.contains_key(name.as_str().unwrap()), "{path}: {name} is required and missing");
    }
    for (name, value) in fields {
        let field = known.get(name);
        // A flattened part is next to the properties of its parent.
        let flattened = schema.get("anyOf").is_some() || schema.get("$ref").is_some();
        assert!(field.is_some() || flattened, "{path}/{name} is not in the schema");
        if let Some(field) = field {
            check_names(root, field, value, &format!("{path}/{name}"));
        }
    }
}

/// Follows references, and for a value other than `null` chooses the alternative that is not `null`.
#[cfg(feature = "schema")]
fn resolve<'a>(root: &'a Value, schema: &'a Value, value: &Value) -> &'a Value {
    if schema.get("properties").is_some() {
        return schema;
    }
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        return resolve(root, root.pointer(reference.trim_start_matches('#')).unwrap(), value);
    }
    let alternatives = schema.get("anyOf").and_then(Value::as_array);
    let other = alternatives.and_then(|all| all.iter().find(|one| one.get("type") != Some(&json!("null"))));
    match other {
        Some(other) if !value.is_null() => resolve(root, other, value),
        _ => schema,
    }
}

#[test]
fn a_series_has_its_sizes_and_no_rate_of_the_whole() {
    let mut log = runs::sweep_run();
    let (host, body) = runs::ended(FlowId(0), Side::Receiver, runs::tally(1e6));
    log.push(Event { host, seq: 99, body, ..log[0].clone() });
    let json = serde_json::to_value(document(&RunRecord::fold(&log))).unwrap();
    let flow = &json["flows"][0];
    assert!(flow.get("receiver").is_none() && flow.get("sender").is_none(), "{flow}");
    assert_eq!(flow["sizes"].as_array().unwrap().len(), 9);
    assert_eq!(flow["sizes"][1]["message_bytes"], 4);
    assert_eq!(flow["sizes"][1]["interval"]["low_ns"], 19_004);
    assert!(flow["sizes"][8].get("interval").is_none());
    assert_eq!(flow["curve"]["saturation_bytes"], 65_536);
    assert_eq!(flow["curve"]["fit"]["half_performance_bytes"], 20_000);
    assert_eq!(flow["caveats"].as_array().unwrap().len(), 0);
}

#[test]
fn the_uncertainty_is_next_to_its_rate_or_absent() {
    let mut record = RunRecord::fold(&runs::tcp_run());
    assert!(!serde_json::to_string(&document(&record)).unwrap().contains("uncertainty"));
    record.flows[0].uncertainty = Some(runs::uncertainty());
    let json = serde_json::to_value(document(&record)).unwrap();
    let known = &json["flows"][0]["uncertainty"];
    assert_eq!(known["expanded_bps"], 380_000.0);
    assert_eq!(known["main"], "variation");
    assert_eq!(known["contributions"][1]["source"], "wake_up");
    assert!(json.pointer("/flows/1/uncertainty").is_none());
}
