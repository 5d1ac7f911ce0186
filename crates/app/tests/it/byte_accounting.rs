//! Byte accounting down to the wire: a test without other traffic is explained at every point, and other
//! traffic is detected where it passes.

use serde_json::Value;

use crate::support::{ServeProcess, flow, test, test_json};

fn steps(flow: &Value) -> Vec<Value> {
    flow["byte_accounting"]["steps"].as_array().cloned().unwrap_or_default()
}

#[test]
fn a_run_that_nobody_watches_has_rates_and_nothing_else() {
    let server = ServeProcess::start(&[]);
    let args = ["--upload", "-t", "0.5", "-b", "50M", "--json", "--no-sampling"];
    let document = test_json(test("127.0.0.1", server.port, &args));
    let flow = flow(&document, "upload");
    let receiver = |key: &str| flow["receiver"][key].as_f64().unwrap();
    // A busy receiver reads the last bytes late, so only what its figures have to do with each other is certain.
    let rate = (receiver("bytes") - receiver("first_read_bytes")) * 8.0 / receiver("seconds");
    assert!((receiver("bitrate_bps") / rate - 1.0).abs() < 1e-6, "{flow:#}");
    assert!(receiver("bytes") > 0.0 && receiver("bytes") * 8.0 <= 50e6 * 0.6, "{flow:#}");
    assert_eq!(flow["samples"].as_array().unwrap().len(), 0);
    assert!(flow.get("verdict").is_none() && flow.get("latency").is_none(), "{flow:#}");
}

#[test]
fn the_connections_of_an_upload_balance_to_the_byte() {
    let server = ServeProcess::start(&[]);
    let document = test_json(test("127.0.0.1", server.port, &["--upload", "-n", "20M", "--json"]));
    let flow = flow(&document, "upload");
    for point in ["sender_socket", "receiver_socket"] {
        let step = steps(flow).into_iter().find(|step| step["point"] == point).unwrap();
        // A receiver counts the FIN as a byte.
        let counted = step["counted_bytes"].as_u64().unwrap();
        assert!((20 << 20..=(20 << 20) + 1).contains(&counted), "{step:#}");
        assert_eq!(step["residual_bytes"], 0);
    }
}
