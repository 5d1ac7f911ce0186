//! Envelopes and checks: answers without a measurement.

use linerate_sock::clock;
use serde_json::{Value, json};

use crate::client::{TIMEOUT, TestSite};

const ENVELOPE: &str = "/api/v1/envelope";
const CHECK: &str = "/api/v1/check";

/// A full gigabit as iperf3 prints it.
const IPERF3: &str = "\
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-10.00  sec  1.10 GBytes   942 Mbits/sec    0             sender
[  5]   0.00-10.04  sec  1.10 GBytes   941 Mbits/sec                  receiver
";

#[test]
fn a_path_has_ceilings_and_a_range_has_bounds() {
    let site = TestSite::open();
    let found = site.post(ENVELOPE, r#"{"link":"1G","rtt":"20ms","window":65535}"#).json();
    assert_eq!(found["schema"], "linerate.envelope/2");
    assert_eq!(found["binding"]["limit"], "receiver_window");
    let rate = found["binding"]["bitrate_bps"].as_f64().unwrap();
    assert!((rate - 65_535.0 * 8.0 / 0.02).abs() < 1.0, "{rate}");
    let found = site.post(ENVELOPE, r#"{"link":"1G","rtt":"20ms..25ms","window":65535}"#).json();
    assert!(found["bounds"]["/ceilings/receiver_window/bitrate_bps"]["low"].is_number(), "{found}");
}

#[test]
fn a_figure_is_judged_and_a_pasted_result_too() {
    let site = TestSite::open();
    let found = site.post(CHECK, r#"{"rate":"966.5M","link":"1G","mtu":1500}"#).json();
    assert_eq!(
        (found["schema"].as_str(), found["verdict"].as_str()),
        (Some("linerate.check/1"), Some("impossible"))
    );
    let body = json!({ "text": IPERF3, "link": "1G", "acceptance": "gigabit" }).to_string();
    let found = site.post(CHECK, &body).json();
    let reading = &found["inputs"][0]["readings"][0];
    assert_eq!((found["verdict"].as_str(), reading["tool"].as_str()), (Some("at_ceiling"), Some("iperf3")));
    assert_eq!(reading["tests"][0]["acceptance"]["verdict"], "passed", "{found}");
    let body = json!({ "text": IPERF3.replace("    0             sender", "    7             sender"), "link": "1G", "acceptance": "gigabit" });
    let found = site.post(CHECK, &body.to_string()).json();
    let accepted = &found["inputs"][0]["readings"][0]["tests"][0]["acceptance"];
    let failed: Vec<&Value> =
        accepted["criteria"].as_array().unwrap().iter().filter(|one| one["verdict"] == "failed").collect();
    assert_eq!((accepted["verdict"].as_str(), failed.len()), (Some("failed"), 1), "{accepted}");
    assert_eq!(failed[0]["name"], "retransmits");
    assert!(
        site.post(CHECK, r#"{"rate":"941M"}"#).json()["inputs"][0]["readings"][0]["tests"][0]
            .get("acceptance")
            .is_none()
    );
}

#[test]
fn a_wrong_body_is_refused_by_its_field() {
    let site = TestSite::open();
    for (path, body, field) in [
        (ENVELOPE, r#"{"link":"1G","lnik":"1G"}"#, Some("lnik")),
        (ENVELOPE, r#"{"link":["1G"]}"#, Some("link")),
        (ENVELOPE, r#"{"link":"fast"}"#, Some("link")),
        (ENVELOPE, r#"{"link":"1G","udp":"yes"}"#, Some("udp")),
        (ENVELOPE, r#"{"link":"\u001b[31m"}"#, Some("link")),
        (ENVELOPE, "[]", None),
        (ENVELOPE, "", None),
        (CHECK, r#"{"rate":"941M","tset":1}"#, Some("tset")),
        (CHECK, r#"{"rate":{"bps":1}}"#, Some("rate")),
        (CHECK, r#"{"text":7}"#, Some("text")),
        (CHECK, "nonsense", None),
    ] {
        let problem = site.post(path, body).problem(422);
        assert_eq!(problem["field"].as_str(), field, "{path} {body}: {problem}");
    }
    let deep = format!(r#"{{"link":{}1{}}}"#, "[".repeat(5000), "]".repeat(5000));
    site.post(ENVELOPE, &deep).problem(422);
    site.post(ENVELOPE, &format!(r#"{{"link":"{}"}}"#, "1".repeat(17 << 10))).problem(413);
    site.post(CHECK, &format!(r#"{{"text":"{}"}}"#, "x".repeat(1 << 20))).problem(413);
    site.get(CHECK).problem(405);
}

#[test]
fn what_was_pasted_comes_back_without_control_characters() {
    let site = TestSite::open();
    let text = IPERF3.replace("receiver", "receiver \u{1b}[2J\u{202e}<b>");
    let reply = site.post(CHECK, &json!({ "text": text }).to_string());
    let found = reply.json().to_string();
    assert!(!found.contains('\u{202e}') && !found.contains("\\u001b"), "{found}");
}

/// The largest bodies, of lines that are read, of one line, and of lines that nobody reads.
#[test]
fn the_largest_text_is_answered_in_time() {
    let site = TestSite::open();
    let line = "[  5]   0.00-1.00   sec   112 MBytes   941 Mbits/sec    0    400 KBytes\n";
    let most = (1 << 20) - 1000;
    let header = IPERF3.lines().next().unwrap();
    for text in [
        format!("{header}\n{}", line.repeat(most * 9 / 10 / (line.len() + 1))),
        "{".repeat(most),
        "9".repeat(most),
        "x ".repeat(most / 2),
        "a\u{0}".repeat(most / 8),
    ] {
        let begun = clock::now();
        let reply = site.post(CHECK, &json!({ "text": text, "link": "1G" }).to_string());
        assert_eq!(reply.status, 200, "{:?}", text.get(..20));
        println!("{:?}: {:?}, {} bytes", text.get(..20), clock::now().since(begun), reply.body.len());
        assert!(clock::now().since(begun).as_secs_f64() < TIMEOUT.as_secs_f64(), "{:?}", text.get(..20));
    }
}

#[test]
fn of_many_long_texts_one_is_checked_at_a_time_and_the_pages_stay_quick() {
    let site = TestSite::open();
    let body = json!({ "text": IPERF3.repeat(900_000 / IPERF3.len()) }).to_string();
    assert!(body.len() < 1 << 20);
    // On a busy machine they may come one after the other.
    let meet = || {
        std::thread::scope(|scope| {
            let asked: Vec<_> = (0..8).map(|_| scope.spawn(|| site.post(CHECK, &body))).collect();
            // A short one does not need the place.
            assert_eq!(site.post(CHECK, r#"{"rate":"941M"}"#).status, 200);
            let replies: Vec<_> = asked.into_iter().map(|asked| asked.join().unwrap()).collect();
            let refused: Vec<_> = replies.iter().filter(|reply| reply.status == 429).collect();
            assert!(refused.len() < replies.len(), "{}", refused.len());
            assert!(replies.iter().all(|reply| [200, 429].contains(&reply.status)));
            refused.first().map(|refused| refused.problem(429)["retry_after"].clone())
        })
    };
    assert_eq!((0..5).find_map(|_| meet()), Some(1.into()));
}
