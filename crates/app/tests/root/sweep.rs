//! Sweeps over links, and those of NetPIPE.

use std::process::Command;

use serde_json::Value;

use crate::support::{
    Folder, LinkSide, Net, Netns, Process, ServeProcess, TIMEOUT, caveats, linerate, test_json,
};

fn sizes(flow: &Value) -> Vec<u64> {
    let sizes = flow["sizes"].as_array().unwrap();
    sizes.iter().map(|point| point["message_bytes"].as_u64().unwrap()).collect()
}

#[test]
#[ignore = "needs root and ip for network namespaces"]
fn over_a_cable_a_series_finds_the_path_in_both_ip_versions() {
    let net = Net::pair();
    let server = ServeProcess::start_in(&net, LinkSide::B, &[]);
    let port = server.port.to_string();
    for address in [LinkSide::B.address(), LinkSide::B.address6()] {
        let args = ["sweep", address, "-p", &port, "--to", "64K", "-t", "5", "--json"];
        let result = test_json(net.exec(LinkSide::A, env!("CARGO_BIN_EXE_linerate"), &args));
        let flow = &result["flows"][0];
        // NetPIPE's sizes up to 64 KiB: 1 2 3 4 6 8 12, then three around each base.
        let found = sizes(flow);
        assert_eq!(found[..8], [1, 2, 3, 4, 6, 8, 12, 13]);
        assert_eq!(found.last(), Some(&65_539));
        assert_eq!(flow["byte_accounting"]["unaccounted_bytes"], 0);
        assert!(caveats(&result).is_empty(), "{:?}", caveats(&result));
    }
}

/// 200 Mb/s in one direction through the sender's token bucket; the reverse direction is limited by the machine
/// only.
#[test]
#[ignore = "needs root, ip for network namespaces, and tc"]
fn no_series_is_faster_than_the_slower_way_of_its_path() {
    const SHAPED: f64 = 200e6;
    let net = Net::pair();
    let server = ServeProcess::start_in(&net, LinkSide::B, &[]);
    net.tbf(LinkSide::A, "200mbit", "64kb", "20ms");
    let port = server.port.to_string();
    for (mode, directions) in [(None, 1.0), (Some("--stream"), 1.0), (Some("--bidir"), 2.0)] {
        let sizes = ["sweep", LinkSide::B.address(), "-p", &port, "--sizes", "1,4K..4M", "-t", "4", "--json"];
        let args: Vec<&str> = sizes.into_iter().chain(mode).collect();
        let result = test_json(net.exec(LinkSide::A, env!("CARGO_BIN_EXE_linerate"), &args));
        let flow = &result["flows"][0];
        // A burst that fits into the bucket passes at once, which adds 2 % for the largest messages; the rule
        // tolerates another 2 %.
        let peak = flow["curve"]["peak_bps"].as_f64().unwrap();
        assert!(peak <= directions * SHAPED * 1.04, "{mode:?}: {}", flow["curve"]);
        for point in flow["sizes"].as_array().unwrap() {
            let rate = point["bitrate_bps"].as_f64().unwrap();
            assert!(rate <= peak || point["buffered"] == true, "{mode:?}: {point} {}", flow["curve"]);
        }
        // The bucket is the ceiling if it limits all used directions.
        if directions < 2.0 {
            let ceiling = &flow["ceiling"];
            assert_eq!(ceiling["limit"], "qdisc", "{mode:?}: {flow}");
            let expected = SHAPED * 1448.0 / 1514.0;
            assert!((ceiling["bitrate_bps"].as_f64().unwrap() / expected - 1.0).abs() < 1e-6, "{ceiling}");
            assert!(ceiling["because"].as_str().unwrap().contains("tbf of 200 Mb/s on veth0"), "{ceiling}");
            // 64 KiB of 4 MiB were in the bucket.
            assert!(peak <= expected * 64.0 / 63.0 * 1.0002, "{mode:?}: {}", flow["curve"]);
        } else {
            assert!(flow.get("ceiling").is_none(), "nobody knows the way back: {flow}");
        }
        // With the link rate given, no unmarked value exceeds it, and neither does the fit through the times.
        let args: Vec<&str> = args.into_iter().chain(["--link", "200M"]).collect();
        let result = test_json(net.exec(LinkSide::A, env!("CARGO_BIN_EXE_linerate"), &args));
        let flow = &result["flows"][0];
        assert_eq!(flow["ceiling"]["limit"], "link", "{flow}");
        assert!(flow["ceiling"].get("share").is_none(), "{flow}");
    }
}

#[test]
#[ignore = "needs root, ip for network namespaces, and NPtcp"]
fn netpipes_runs_are_archived_with_their_points_at_both_ends() {
    let (netns, folder) = (Netns::new(), Folder::new());
    let (ours, theirs) = (folder.file("client.sqlite"), folder.file("server.sqlite"));
    let options = ["-l", "1", "-u", "64", "-n", "20", "-o", "/dev/null"];
    let run = |server: Command, client: Command| {
        let server = Process::start(server);
        netns.await_listener(5002);
        let client = Process::start(client).finish(TIMEOUT);
        assert_eq!(client.code, Some(0), "{client:?}");
        server.finish(TIMEOUT);
    };
    let transmitter = [&["-h", "127.0.0.1"][..], &options].concat();
    let stand_in = |archive: &str, args: &[&str]| {
        let mut command = netns.exec(env!("CARGO_BIN_EXE_linerate"), &[&["netpipe"], args].concat());
        command.env("LINERATE_ARCHIVE", archive);
        command
    };
    run(netns.exec("NPtcp", &options), stand_in(&ours, &transmitter));
    run(stand_in(&theirs, &options), netns.exec("NPtcp", &transmitter));
    for archive in [&ours, &theirs] {
        let mut command = linerate();
        command.args(["show", "--json", "--archive", archive]);
        let kept = test_json(command);
        assert_eq!(
            (&kept["run"]["outcome"], &kept["flows"][0]["name"]),
            (&"completed".into(), &"ping-pong".into())
        );
        let found = sizes(&kept["flows"][0]);
        assert_eq!(found, [1, 2, 3, 4, 6, 8, 12, 13, 16, 19, 21, 24, 27, 29, 32, 35, 45, 48, 51, 61, 64, 67]);
        assert_eq!(kept["flows"][0]["sizes"][0]["repeats"], 20);
        assert!(caveats(&kept).contains(&"foreign_peer".to_owned()), "{kept}");
    }
}
