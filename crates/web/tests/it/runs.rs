//! Starting, watching, finding and deleting runs.

use std::collections::BTreeSet;
use std::time::Duration;

use linerate_model::TestSpec;
use linerate_runner::CancelToken;
use linerate_units::Span;
use serde_json::Value;

use crate::client::TestSite;

const SHORT: &str = r#"{"to":"this host","test":{"traffic":{"duration_ns":300000000}}}"#;
const LONG: &str = r#"{"to":"this host","test":{"traffic":{"duration_ns":60000000000}}}"#;

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[test]
fn a_run_is_started_watched_found_exported_and_deleted() {
    let site = TestSite::open();
    let id = site.start_run(
        r#"{"to":"this host","name":"story","notes":{"cable":"blue"},
            "test":{"traffic":{"duration_ns":3000000000},"socket":{"congestion":"cubic"}}}"#,
    );
    let messages = site.watch(&format!("/api/v1/runs/{id}/live"), "end");
    assert_eq!(messages[0].0, "snapshot");
    let frames: Vec<&Value> =
        messages.iter().filter(|(kind, _)| kind == "frame").map(|(_, data)| data).collect();
    let names: BTreeSet<&str> = frames
        .iter()
        .flat_map(|frame| array(&frame["flows"]))
        .filter(|flow| flow["bitrate_bps"].as_f64().is_some_and(|rate| rate > 0.0))
        .map(|flow| flow["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, BTreeSet::from(["download", "upload"]), "{frames:?}");
    assert_eq!(messages.last().unwrap().1["outcome"], "completed");

    let status = site.get(&format!("/api/v1/runs/{id}")).json();
    assert_eq!((&status["state"], &status["name"]), (&"ended".into(), &"story".into()));
    assert_eq!(status["result"]["schema"], "linerate.result/2");
    assert_eq!(status["result"]["flows"][0]["settings"]["congestion"]["effective"], "cubic");

    // Whoever comes after the end sees the same.
    let later = site.watch(&format!("/api/v1/runs/{id}/live"), "end");
    let kinds: Vec<&str> = later.iter().map(|(kind, _)| kind.as_str()).collect();
    assert!(kinds.starts_with(&["snapshot"]) && kinds.ends_with(&["end"]), "{kinds:?}");
    assert_eq!(array(&later[0].1["series"]).len(), 2, "both flows: {later:?}");

    let list = site.get("/api/v1/runs?name=story").json();
    let [run] = array(&list["runs"]) else { panic!("{list}") };
    assert_eq!((&run["id"], &run["state"]), (&id.as_str().into(), &"ended".into()));
    let view = site.get(&format!("/api/v1/runs/{id}/view")).json();
    assert!(view["html"].as_str().unwrap().contains("data-chart=\"0\""));
    assert_eq!(view["charts"]["schema"], "linerate.charts/1");

    let events = site.get(&format!("/api/v1/runs/{id}/events")).body;
    assert_eq!(events.lines().count() as u64, run["events"].as_u64().unwrap());
    for format in ["jsonl", "json", "csv", "summary-csv", "markdown", "text", "svg"] {
        let reply = site.get(&format!("/api/v1/runs/story/export/{format}"));
        assert_eq!(reply.status, 200, "{format}: {}", reply.body);
        let file = reply.header("content-disposition").unwrap();
        assert!(file.starts_with(&format!("attachment; filename=\"linerate-{id}.")), "{file}");
        assert!(!reply.body.is_empty());
    }
    let table = site.get("/api/v1/runs/story/export/parquet");
    assert_eq!(table.header("content-type"), Some("application/vnd.apache.parquet"));
    let file = table.header("content-disposition").unwrap();
    assert_eq!(file, format!("attachment; filename=\"linerate-{id}.parquet\""));
    assert!(table.body.starts_with("PAR1") && table.body.ends_with("PAR1"), "{}", table.body.len());
    site.get(&format!("/api/v1/runs/{id}/export/junit")).problem(422);

    let tag = |method: &str, tag: &str| site.write(method, &format!("/api/v1/runs/story/tags/{tag}"), "", "");
    assert_eq!(tag("PUT", "before-upgrade").status, 204);
    let tagged = site.get("/api/v1/runs?tag=before-upgrade").json();
    assert_eq!(tagged["runs"][0]["tags"], serde_json::json!(["before-upgrade"]));
    assert_eq!(site.get("/api/v1/runs/story").json()["tags"], serde_json::json!(["before-upgrade"]));
    assert_eq!(tag("PUT", "two%20words").problem(422)["field"], "tag");
    assert_eq!(tag("DELETE", "before-upgrade").status, 204);
    assert_eq!(array(&site.get("/api/v1/runs?tag=before-upgrade").json()["runs"]).len(), 0);

    assert_eq!(site.write("DELETE", &format!("/api/v1/runs/{id}"), "", "").status, 204);
    assert_eq!(array(&site.get("/api/v1/runs").json()["runs"]).len(), 0);
    for path in ["", "/live", "/view", "/events"] {
        site.get(&format!("/api/v1/runs/{id}{path}")).problem(404);
    }
}

#[test]
fn a_series_over_message_sizes_is_prepared_and_shows_its_sizes() {
    let site = TestSite::open();
    let id = site.start_run(
        r#"{"to":"this host","test":{"sweep":{"to_bytes":64,"perturb_bytes":0,"time_ns":1000000000}}}"#,
    );
    let messages = site.watch(&format!("/api/v1/runs/{id}/live"), "end");
    let (_, last) = messages.iter().rfind(|(kind, _)| kind == "snapshot").unwrap();
    let sizes: Vec<u64> =
        array(&last["sizes"]).iter().map(|size| size["message_bytes"].as_u64().unwrap()).collect();
    assert!(sizes.starts_with(&[1]) && sizes.ends_with(&[64]) && sizes.is_sorted(), "{messages:?}");
    assert_eq!(last["frame"]["by_size"], true);
    let spec = site.get(&format!("/api/v1/runs/{id}")).json()["result"]["run"]["spec"].clone();
    let set = (&spec["socket"]["no_delay"], &spec["traffic"]["no_latency"]);
    assert_eq!(set, (&true.into(), &true.into()), "nothing delays a message or is in its way: {spec}");
}

#[test]
fn two_runs_wait_for_each_other_and_can_be_cancelled() {
    let site = TestSite::open();
    let first = site.start_run(LONG);
    // Until it has begun, it has a place too.
    site.watch(&format!("/api/v1/runs/{first}/live"), "frame");
    let reply = site.post("/api/v1/runs", SHORT).json();
    assert_eq!(reply["place"], 1, "{reply}");
    let (second, third) = (reply["id"].as_str().unwrap().to_owned(), site.start_run(SHORT));
    let listed = site.get("/api/v1/runs").json();
    let states: Vec<&str> = array(&listed["runs"]).iter().map(|run| run["state"].as_str().unwrap()).collect();
    assert_eq!(states.iter().filter(|state| **state == "waiting").count(), 2, "{listed}");
    assert_eq!(site.get(&format!("/api/v1/runs/{third}")).json()["place"], 2);
    site.write("DELETE", &format!("/api/v1/runs/{second}"), "", "").problem(409);

    // One that waits ends at once, and one that runs keeps what it has measured.
    assert_eq!(site.post(&format!("/api/v1/runs/{second}/cancel"), "").status, 202);
    assert_eq!(site.get(&format!("/api/v1/runs/{second}")).json()["problem"], "cancelled before it began");
    assert_eq!(site.post(&format!("/api/v1/runs/{first}/cancel"), "").status, 202);
    assert_eq!(site.ended(&first)["result"]["run"]["outcome"], "interrupted");
    assert_eq!(site.ended(&third)["result"]["run"]["outcome"], "completed");
    let (_, current) = site.watch("/api/v1/live", "runs").remove(0);
    assert_eq!((&current["latest"], array(&current["waiting"]).len()), (&third.as_str().into(), 0));
}

#[test]
fn a_run_waits_for_a_client_of_the_server_and_its_place_is_shown() {
    let site = TestSite::open();
    let host = site.server.to_string();
    let cancel = CancelToken::new();
    let (token, (begun, measuring)) = (cancel.clone(), std::sync::mpsc::channel());
    let client = std::thread::spawn(move || {
        let mut spec = TestSpec::default();
        spec.traffic.duration = Some(Span::from_secs(60));
        linerate_runner::run(&host, &spec, &token, &mut |event| {
            if matches!(event.body, linerate_model::Body::Progress { .. }) {
                let _ = begun.send(());
            }
        })
    });
    measuring.recv_timeout(Duration::from_secs(60)).unwrap();
    let started = site.post("/api/v1/runs", SHORT).json();
    assert_eq!(started["place"], 1);
    let queue = site.get("/api/v1/hosts").json()["queue"].clone();
    assert_eq!((&queue["measured"], &queue["waiting"]), (&1.into(), &1.into()));
    cancel.cancel();
    let _ = client.join().unwrap();
    assert_eq!(site.ended(started["id"].as_str().unwrap())["result"]["run"]["outcome"], "completed");
}

#[test]
fn a_start_that_is_repeated_is_one_run() {
    let site = TestSite::open();
    let start = |key: &str, body: &str| {
        site.write("POST", "/api/v1/runs", &format!("Idempotency-Key: {key}\r\n"), body)
    };
    let first = start("k1", SHORT).json();
    assert_eq!(start("k1", SHORT).json()["id"], first["id"]);
    site.ended(first["id"].as_str().unwrap());
    assert_eq!(start("k1", SHORT).json()["id"], first["id"], "also after its end");
    assert_eq!(start("k1", LONG).problem(422)["field"], "Idempotency-Key");
    start(&"k".repeat(200), SHORT).problem(422);
    assert_ne!(start("k2", SHORT).json()["id"], first["id"]);
}

#[test]
fn a_host_that_does_not_answer_is_a_failed_run_with_its_reason() {
    let site = TestSite::open();
    // Nobody listens on the discard port of this host.
    let id = site.start_run(r#"{"to":"127.0.0.1:9"}"#);
    let status = site.ended(&id);
    assert_eq!(status["state"], "ended");
    assert!(status["problem"].as_str().unwrap().contains("127.0.0.1"), "{status}");
    let list = site.get("/api/v1/runs").json();
    assert_eq!(array(&list["runs"])[0]["outcome"], "failed", "{list}");
}

#[test]
fn the_number_of_waiting_runs_is_limited() {
    let site = TestSite::open();
    let running = site.start_run(LONG);
    let statuses: Vec<u16> = (0..18).map(|_| site.post("/api/v1/runs", LONG).status).collect();
    // One may still be waiting for its turn when the next ones arrive.
    assert!(statuses.starts_with(&[201; 15]) && statuses.ends_with(&[429]), "{statuses:?}");
    let refused = site.post("/api/v1/runs", LONG);
    assert_eq!(refused.problem(429)["retry_after"], 10);
    assert_eq!(refused.header("retry-after"), Some("10"));
    drop(running);
}

#[test]
fn pages_of_the_list_neither_repeat_nor_lose_runs() {
    let site = TestSite::open();
    let ids: Vec<String> = (0..5).map(|_| site.start_run(SHORT)).collect();
    ids.iter().for_each(|id| assert_eq!(site.ended(id)["state"], "ended"));
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = site.get(&format!("/api/v1/runs?limit=2{cursor}")).json();
        found.extend(array(&page["runs"]).iter().map(|run| run["id"].as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(next) => cursor = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(found, ids.iter().rev().cloned().collect::<Vec<_>>());
    assert_eq!(array(&site.get("/api/v1/runs?until=2000-01-01").json()["runs"]).len(), 0);
    assert_eq!(array(&site.get("/api/v1/runs?verdict=duplex").json()["runs"]).len(), 0);
}

#[test]
fn two_named_groups_are_compared() {
    let site = TestSite::open();
    for name in ["before", "before", "after", "after"] {
        let body = SHORT.replace("{\"to\"", &format!("{{\"name\":\"{name}\",\"to\""));
        site.ended(&site.start_run(&body));
    }
    let view = site.get("/api/v1/compare/view?before=before&after=after").json();
    assert!(view["title"].as_str().unwrap().contains("after compared with before"), "{view}");
    assert!(view["html"].as_str().unwrap().contains("data-chart"));
    let ids = site.get("/api/v1/runs").json();
    let id = |at: usize| array(&ids["runs"])[at]["id"].as_str().unwrap();
    let query = format!("before={}&before={}&after={}", id(3), id(2), id(0));
    assert!(site.get(&format!("/api/v1/compare/view?{query}")).json()["title"].is_string());
    let same = format!("before={0}&after={0}", id(0));
    site.get(&format!("/api/v1/compare/view?{same}")).problem(422);
}

#[test]
fn the_description_has_every_path_and_is_the_one_that_is_served() {
    let site = TestSite::open();
    let served = site.get("/api/v1/openapi.json").body;
    assert_eq!(served, linerate_web::openapi());
    let description: Value = serde_json::from_str(&served).unwrap();
    assert!(description["openapi"].as_str().unwrap().starts_with("3.1"));
    for (path, operations) in description["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            assert!(operation["operationId"].is_string(), "{method} {path}");
            assert!(operation["responses"]["default"].is_object(), "{method} {path} may fail: {operation}");
        }
        // A described path is there: it answers, or says what is wrong with the example.
        let path = path.replace("{id}", "abcd").replace("{format}", "json").replace("{secret}", "x");
        if operations["get"].is_object() && path != "/api/v1/live" {
            let reply = site.get(&path);
            assert!(reply.status == 200 || !reply.problem(reply.status)["type"].is_null(), "{path}");
        }
    }
}

#[test]
fn a_service_that_stops_ends_its_run_and_its_streams() {
    let site = TestSite::open();
    let id = site.start_run(LONG);
    site.watch(&format!("/api/v1/runs/{id}/live"), "frame");
    // Dropping it waits for its threads, and asserts that the server has ended well.
    drop(site);
}
