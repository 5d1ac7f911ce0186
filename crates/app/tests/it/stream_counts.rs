//! What each stream moves is counted while a test runs, at the end of the host that starts it.

use serde_json::Value;

use crate::support::{Process, ServeProcess, TIMEOUT, test};

/// The log of a test with these options.
fn log_of(args: &[&str]) -> Vec<Value> {
    let server = ServeProcess::start(&[]);
    let all = [&["-t", "4", "--no-latency", "--json-stream"], args].concat();
    let done = Process::start(test("127.0.0.1", server.port, &all)).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
    done.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["body"].clone()).collect()
}

fn of_kind<'l>(log: &'l [Value], kind: &'static str, flow: u64) -> impl Iterator<Item = &'l Value> {
    log.iter().filter(move |body| body["kind"] == kind && body["flow"] == flow)
}

fn bytes(counts: &Value) -> Vec<u64> {
    counts["bytes"].as_array().unwrap().iter().map(|bytes| bytes.as_u64().unwrap()).collect()
}

#[test]
fn each_stream_of_several_is_counted_in_both_directions() {
    let log = log_of(&["-P", "3", "-b", "20M"]);
    for (flow, what) in [(0, "received"), (1, "acknowledged")] {
        let counted: Vec<&Value> = of_kind(&log, "streams", flow).collect();
        assert!(counted.len() > 2, "{flow}: {counted:?}");
        assert!(counted.iter().all(|counts| counts["counted"] == what), "{flow}: {counted:?}");
        let counted: Vec<Vec<u64>> = counted.into_iter().map(bytes).collect();
        for stream in 0..3 {
            assert!(counted.is_sorted_by_key(|counts| counts[stream]), "{flow}: {counted:?}");
        }
        let ended = of_kind(&log, "flow_ended", flow).find(|ended| ended["side"] == "receiver").unwrap();
        let streams = ended["tally"]["streams"].as_array().unwrap();
        for (last, whole) in counted.last().unwrap().iter().zip(streams) {
            let whole = whole["bytes"].as_u64().unwrap();
            // The last acknowledgements may come after the end of the flow.
            assert!(
                *last <= whole && (what == "acknowledged" || *last == whole),
                "{flow}: {last} of {whole}"
            );
        }
    }
}

#[test]
fn a_single_stream_has_no_counts_of_its_own_and_datagrams_are_those_sent() {
    assert_eq!(of_kind(&log_of(&["-b", "20M"]), "streams", 0).count(), 0);
    // The data of transactions is on other connections.
    assert_eq!(of_kind(&log_of(&["--workload", "crr", "-P", "2"]), "streams", 0).count(), 0);
    let log = log_of(&["-u", "-b", "20M", "-P", "2", "--upload"]);
    let counted: Vec<&Value> = of_kind(&log, "streams", 0).collect();
    assert!(counted.len() > 2, "{counted:?}");
    assert!(counted.iter().all(|counts| counts["counted"] == "sent"), "{counted:?}");
    assert!(bytes(counted[counted.len() - 1]).iter().all(|bytes| *bytes > 0), "{counted:?}");
}
