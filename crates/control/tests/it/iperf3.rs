//! The real iperf3 on the port of a server, together with native clients.
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::channel;

use linerate_control::{Server, ServerConfig, ServerHandle};
use linerate_model::{CaveatKind, Outcome, Side};

use crate::forwarded_runs::{ForwardingSink, next_run};

#[test]
#[ignore = "needs iperf3"]
fn the_real_client_is_measured_in_both_directions_and_its_runs_are_kept() {
    let (log, events) = channel();
    let server = Server::bind(ServerConfig {
        addresses: vec!["127.0.0.1:0".parse().unwrap()],
        foreign: ServerConfig::others_at_home(),
        log_store: Some(Arc::new(ForwardingSink(log))),
        ..ServerConfig::default()
    })
    .unwrap();
    let port = server.addresses()[0].port().to_string();
    let switch = Arc::new(ServerHandle::new().unwrap());
    let serving = {
        let switch = Arc::clone(&switch);
        std::thread::spawn(move || server.run(switch, |_| ()))
    };
    // 40 blocks of 10,000 bytes: numbers that both ends count exactly.
    let tests: [(&[&str], Side); 4] = [
        (&["-l", "10000", "-k", "40"], Side::Receiver),
        (&["-l", "10000", "-k", "40", "-R"], Side::Sender),
        (&["-l", "1000", "-k", "40", "-u", "-b", "10M"], Side::Receiver),
        (&["-l", "1000", "-k", "40", "-u", "-b", "10M", "-R"], Side::Sender),
    ];
    for (arguments, ours) in tests {
        let mut client = Command::new("timeout");
        client.args(["60", "iperf3", "-c", "127.0.0.1", "-p", &port, "-J"]).args(arguments);
        let output = client.output().unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{arguments:?}: {stdout}");
        let record = next_run(&events);
        assert_eq!(record.outcome, Some(Outcome::Completed), "{arguments:?}");
        assert!(record.caveats.iter().any(|caveat| caveat.kind == CaveatKind::ForeignPeer));
        let blocks = if arguments.contains(&"-u") { 1_000 } else { 10_000 } * 40;
        let flow = record.flows.first().unwrap();
        let counted = flow.tally(ours).unwrap().total_bytes.get();
        // In a download the client reports when it has received enough; some more blocks are already in
        // transit.
        assert!(
            counted == blocks || ours == Side::Sender && counted > blocks,
            "{arguments:?}: {counted} bytes"
        );
        assert!(flow.tally(ours.other()).is_some(), "{arguments:?}: the client reported its counts");
    }
    switch.turn_off();
    serving.join().unwrap().unwrap();
}
