//! A host with several addresses: datagrams to one of them are answered from there, and not from the address that the
//! kernel would choose, which a client does not expect.

use crate::support::{
    Done, LinkSide, Net, Process, ServeProcess, TIMEOUT, flow, retried_when_busy, test_json,
};

/// Further addresses of side B, in the networks of the first ones.
const OTHER: &str = "10.77.0.22";
const OTHER6: &str = "fd77::22";

fn net() -> Net {
    let net = Net::pair();
    let add = |arguments: &str| {
        let arguments: Vec<&str> = arguments.split_whitespace().collect();
        let done = Process::start(net.exec(LinkSide::B, "ip", &arguments)).finish(TIMEOUT);
        assert_eq!(done.code, Some(0), "{done:?}");
    };
    add(&format!("address add {OTHER}/24 dev veth0"));
    // Without a lifetime, so that datagrams do not come from there by themselves.
    add(&format!("address add {OTHER6}/64 dev veth0 nodad preferred_lft 0"));
    net
}

fn done(net: &Net, program: &str, arguments: &str) -> Done {
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    Process::start(net.exec(LinkSide::A, program, &arguments)).finish(TIMEOUT)
}

#[test]
#[ignore = "needs root and network namespaces"]
fn datagrams_and_probes_reach_every_address_of_a_server() {
    retried_when_busy(|| {
        let net = net();
        let server = ServeProcess::start_in(&net, LinkSide::B, &[]);
        let test = |arguments: String| done(&net, env!("CARGO_BIN_EXE_linerate"), &arguments).json();
        for address in [OTHER, OTHER6, LinkSide::B.address(), LinkSide::B.address6()] {
            let result = test(format!("test {address} -p {} -u -b 5M -t 0.5 --json", server.port));
            for direction in ["download", "upload"] {
                let flow = flow(&result, direction);
                let (datagrams, idle) = (&flow["udp"], &flow["latency"]["idle"]);
                assert!(datagrams["packets"].as_u64().unwrap() > 100, "{address} {direction}: {datagrams}");
                assert_eq!(datagrams["lost"], 0, "{address} {direction}");
                assert_eq!(
                    (&idle["transport"], &idle["lost"]),
                    (&"udp".into(), &0.into()),
                    "{address}: {idle}"
                );
            }
        }
    });
}

#[test]
#[ignore = "needs root and network namespaces, iperf3, iperf, nuttcp"]
fn datagrams_of_other_programs_reach_every_address_of_a_server() {
    retried_when_busy(|| {
        let net = net();
        let server = ServeProcess::start_in(&net, LinkSide::B, &["--classic"]);
        for address in [OTHER, OTHER6] {
            let v6 = if address.contains(':') { "-V" } else { "" };
            for reverse in ["", "-R"] {
                let result = done(
                    &net,
                    "iperf3",
                    &format!("-c {address} -p {} -u -b 5M -t 1 -J {reverse}", server.port),
                )
                .json();
                let sum = &result["end"]["sum"];
                assert!(
                    sum["packets"].as_u64().unwrap() > 100 && sum["lost_packets"] == 0,
                    "{address} {reverse}: {sum}"
                );
            }
            let text = done(&net, "iperf", &format!("-c {address} {v6} -u -b 5M -t 1"));
            assert!(text.stdout.contains("Server Report"), "{address}: {text:?}");
            assert!(text.stdout.contains("(0%)"), "{address}: {text:?}");
            for reverse in ["", "-r"] {
                let text = done(&net, "nuttcp", &format!("-u -Ri5m -T1 {reverse} {address}"));
                assert!(text.stdout.contains("0.00 %loss"), "{address} {reverse}: {text:?}");
            }
        }
    });
}

#[test]
#[ignore = "needs root and network namespaces, iperf3, nuttcp"]
fn stand_ins_of_their_own_answer_from_every_address() {
    retried_when_busy(|| {
        let net = net();
        let serve = |arguments: &[&str], port: u16| {
            let server = Process::start(net.exec(LinkSide::B, env!("CARGO_BIN_EXE_linerate"), arguments));
            net.await_port(LinkSide::B, port, false);
            server
        };
        let server = serve(&["iperf3", "-s", "-1"], 5201);
        let result = done(&net, "iperf3", &format!("-c {OTHER} -u -b 5M -t 1 -J -R")).json();
        assert_eq!(result["end"]["sum"]["lost_packets"], 0, "{result}");
        assert_eq!(server.finish(TIMEOUT).code, Some(0));
        let server = serve(&["nuttcp", "-S", "-1", "--nofork"], 5000);
        let text = done(&net, "nuttcp", &format!("-u -Ri5m -T1 -r {OTHER}"));
        assert!(text.stdout.contains("0.00 %loss"), "{text:?}");
        drop(server);
    });
}

/// The kernel sends what is for an own address through the loopback, and not through the interface that has the address.
#[test]
#[ignore = "needs root and network namespaces"]
fn a_test_of_an_own_address_is_one_over_the_loopback() {
    retried_when_busy(|| {
        let net = net();
        let server = ServeProcess::start_in(&net, LinkSide::B, &[]);
        for address in [OTHER, LinkSide::B.address6()] {
            let port = server.port.to_string();
            let args = ["test", address, "-p", &port, "-t", "1", "--upload", "--json"];
            let result = test_json(net.exec(LinkSide::B, env!("CARGO_BIN_EXE_linerate"), &args));
            for host in 0..2 {
                let link = &result["hosts"][host]["link"];
                assert_eq!((&link["name"], &link["kind"]), (&"lo".into(), &"loopback".into()), "{address}");
            }
            let upload = flow(&result, "upload");
            assert_eq!(upload["byte_accounting"]["unaccounted_bytes"], 0, "{address}: {upload}");
            assert_ne!(upload["verdict"]["cause"], "impossible", "{address}: {upload}");
        }
    });
}
