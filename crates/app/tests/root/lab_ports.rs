//! The ceiling of an emulated link.

use serde_json::json;

use crate::support::{RunningLab, ServeProcess, flow, test_json};

#[test]
#[ignore = "needs root and network namespaces"]
fn the_ceiling_of_an_emulated_line_is_what_its_rate_carries_and_both_ends_report_it() {
    let lab = RunningLab::up("pair", &[]);
    let server = ServeProcess::from(lab.linerate("b", &["serve", "-p", "0", "--json", "--one-off"]));
    let port = server.port.to_string();
    let client = ["test", "b", "-p", &port, "-t", "1", "-b", "20M", "--download", "--json"];
    let document = test_json(lab.linerate("a", &client));
    for host in 0..2 {
        let link = &document["hosts"][host]["link"];
        assert_eq!((&link["kind"], link["speed_bps"].as_f64()), (&json!("tun"), Some(1e9)), "{link}");
    }
    let ceiling = &flow(&document, "download")["ceiling"];
    assert_eq!(ceiling["limit"], "link", "{ceiling}");
    // 1448 of every 1538 bytes.
    let bps = ceiling["bitrate_bps"].as_f64().unwrap();
    assert!((bps - 1e9 * 1448.0 / 1538.0).abs() < 1.0, "{ceiling}");
}
