use expect_test::{Expect, expect};

use super::*;
use crate::topology::{bundled, read};

/// Only what tbf can do: runs on every kernel that has tbf.
const PLAIN: &str = r#"
[host.a]
congestion = "reno"
sysctl."ipv4.tcp_rmem" = "4096 131072 33554432"
[host.b]
[switch.s]
[link.a]
ends = ["a", "s"]
rate = "1G"
shape_rate = "500M"
shape_burst = "64kB"
mtu = 1000
[link.b]
ends = ["s", "b"]
rate = "100M"
mtu = 1000
tags = 1
nic = false
"#;

/// Everything else.
const RICH: &str = r#"
[host.a]
[host.b]
[switch.s]
buffer = "1MB"
sharing = "static"
[switch.t]
buffer = "1MB"
alpha = 3
[link.a]
ends = ["a", "s"]
delay = "1500ns"
jitter = "1ms"
loss_burst = { to_bad = 0.001, to_good = 0.5, loss_good = 1e-6, loss_bad = 0.9 }
duplicate = "2%"
[link.lag]
ends = ["s", "t"]
members = 3
rate = "1G"
mtu = 1400
too_big = "icmp"
police_rate = "100M"
police_burst = "64kB"
tags = 2
reorder = 0.25
[link.lag.from.t]
delay = "25ms"
loss_every = 1000
[link.b]
ends = ["b", "t"]
shape_rate = "50M"
discipline = "red"
red_min = "30kB"
red_max = "90kB"
ecn = true
loss = 1e-4
overtake = true
[link.b.from.t]
discipline = "codel"
rate = "20M"
shape_rate = "none"
loss_times = ["1s"]
"#;

fn bundled_topology(name: &str) -> Topology {
    let found = bundled().iter().find(|bundled| bundled.name == name).unwrap();
    read(found.text, name, &[]).unwrap()
}

/// The commands that build a network, and the differences from the description.
fn check(topology: &Topology, expected: &Expect) {
    let Commands { resources, up, cannot, .. } = commands(topology, "t");
    let up = resources.iter().chain(&up).map(|command| format!("{command}\n"));
    let cannot = cannot.iter().map(|gap| format!("# {gap}\n"));
    expected.assert_eq(&up.chain(cannot).collect::<String>());
}

/// Every argument is documented in the manual pages of iproute2 6.1; the commands of PLAIN are run below.
#[test]
fn a_line_is_a_token_bucket_with_the_buffer_as_its_limit() {
    check(
        &read(PLAIN, "plain.toml", &[]).unwrap(),
        &expect![[r#"
        ip netns add linerate-t-a
        ip netns add linerate-t-b
        ip netns add linerate-t-s
        ip netns exec linerate-t-a sysctl -q -w net.ipv4.tcp_congestion_control=reno
        ip -n linerate-t-s link add br0 type bridge stp_state 0 mcast_snooping 0
        ip -n linerate-t-s link set br0 up
        ip link add name eth0 netns linerate-t-a type veth peer name p1 netns linerate-t-s
        ip -n linerate-t-a link set dev eth0 mtu 1000 gso_max_segs 1 up
        ip -n linerate-t-s link set dev p1 mtu 1000 master br0 up
        ip link add name p2 netns linerate-t-s type veth peer name eth0 netns linerate-t-b
        ip -n linerate-t-s link set dev p2 mtu 1000 master br0 up
        ip -n linerate-t-b link set dev eth0 mtu 1000 gso_max_segs 1 up
        ip -n linerate-t-a link set lo up
        ip netns exec linerate-t-a sysctl -q -w 'net.ipv4.tcp_rmem=4096 131072 33554432'
        ip -n linerate-t-a address add 10.77.0.1/24 dev eth0
        ip -n linerate-t-b link set lo up
        ip -n linerate-t-b address add 10.77.0.2/24 dev eth0
        tc -n linerate-t-a qdisc add dev eth0 root handle 10: stab overhead 24 tbf rate 500000000bit burst 64000 limit 1048576 mpu 84 peakrate 1000000000bit mtu 2076
        tc -n linerate-t-s qdisc add dev p1 root handle 10: stab overhead 24 tbf rate 500000000bit burst 64000 limit 1048576 mpu 84 peakrate 1000000000bit mtu 2076
        tc -n linerate-t-s qdisc add dev p2 root handle 10: stab overhead 28 tbf rate 100000000bit burst 12500 limit 1048576 mpu 84
        # hosts send single packets instead of GSO super-packets, so that each is counted and dropped individually; this costs CPU time and lowers the maximum rate
        # link 'a': the shaper also counts preamble and gap, so it passes less than shape_rate in frames
    "#]],
    );
}

#[test]
fn delay_loss_policers_and_disciplines_have_their_means() {
    check(
        &read(RICH, "rich.toml", &[]).unwrap(),
        &expect![[r#"
            ip netns add linerate-t-a
            ip netns add linerate-t-b
            ip netns add linerate-t-s
            ip netns add linerate-t-t
            ip -n linerate-t-s link add br0 type bridge stp_state 0 mcast_snooping 0
            ip -n linerate-t-s link set br0 up
            ip -n linerate-t-t link add br0 type bridge stp_state 0 mcast_snooping 0
            ip -n linerate-t-t link set br0 up
            ip link add name eth0 netns linerate-t-a type veth peer name p1 netns linerate-t-s
            ip -n linerate-t-a link set dev eth0 mtu 1500 gso_max_segs 1 up
            ip -n linerate-t-s link set dev p1 mtu 1500 master br0 up
            ip link add name p2 netns linerate-t-s type veth peer name p1 netns linerate-t-t
            ip -n linerate-t-s link set dev p2 mtu 1400 master br0 up
            ip -n linerate-t-t link set dev p1 mtu 1400 master br0 up
            ip link add name eth0 netns linerate-t-b type veth peer name p2 netns linerate-t-t
            ip -n linerate-t-b link set dev eth0 mtu 1500 gso_max_segs 1 up
            ip -n linerate-t-t link set dev p2 mtu 1500 master br0 up
            ip -n linerate-t-a link set lo up
            ip -n linerate-t-a address add 10.77.0.1/24 dev eth0
            ip -n linerate-t-a address add fd77::1/64 dev eth0 nodad
            ip -n linerate-t-b link set lo up
            ip -n linerate-t-b address add 10.77.0.2/24 dev eth0
            ip -n linerate-t-b address add fd77::2/64 dev eth0 nodad
            tc -n linerate-t-a qdisc add dev eth0 root handle 1: netem limit 1000000 delay 1.500us 1000us loss gemodel 0.1% 50% 90% 0.0001% duplicate 2%
            tc -n linerate-t-s qdisc add dev p1 root handle 1: netem limit 1000000 delay 1.500us 1000us loss gemodel 0.1% 50% 90% 0.0001% duplicate 2%
            tc -n linerate-t-s qdisc add dev p2 clsact
            tc -n linerate-t-s filter add dev p2 egress matchall action police rate 100000000bit burst 64000 overhead 12 conform-exceed drop/ok
            tc -n linerate-t-s qdisc add dev p2 root handle 1: netem limit 5465 delay 1000us reorder 75%
            tc -n linerate-t-s qdisc add dev p2 parent 1:1 handle 10: stab overhead 32 tbf rate 3000000000bit burst 375000 limit 750000 mpu 84
            tc -n linerate-t-t qdisc add dev p1 clsact
            tc -n linerate-t-t filter add dev p1 egress matchall action police rate 100000000bit burst 64000 overhead 12 conform-exceed drop/ok
            tc -n linerate-t-t qdisc add dev p1 root handle 1: netem limit 117072 delay 25000us
            tc -n linerate-t-t qdisc add dev p1 parent 1:1 handle 10: stab overhead 32 tbf rate 3000000000bit burst 375000 limit 900000 mpu 84
            tc -n linerate-t-b qdisc add dev eth0 root handle 1: netem limit 1000000 loss random 0.01%
            tc -n linerate-t-b qdisc add dev eth0 parent 1:1 handle 10: stab overhead 4 tbf rate 50000000bit burst 62500 limit 1048576
            tc -n linerate-t-b qdisc add dev eth0 parent 10:1 handle 20: red limit 1048576 min 30000 max 90000 probability 0.1 burst 51 avpkt 1000 bandwidth 50000000bit ecn
            tc -n linerate-t-t qdisc add dev p2 root handle 10: stab overhead 24 tbf rate 20000000bit burst 3076 limit 750000 mpu 84
            tc -n linerate-t-t qdisc add dev p2 parent 10:1 handle 20: codel limit 494 target 5000us interval 100000us ecn
            # hosts send single packets instead of GSO super-packets, so that each is counted and dropped individually; this costs CPU time and lowers the maximum rate
            # switch 't': ports do not share a buffer; each port has the most that a single busy port could use
            # link 'a': jitter changes the order of packets
            # link 'lag': the LAG is a single link of 3 times the rate, so one flow can use all of it and nothing is hashed
            # link 'lag': a bridge drops packets that are too big and sends no ICMP message
            # link 'lag' from 't': packets are delayed before the queue, not after the line: a drop happens later by the delay
            # link 'lag' from 't': no packet is lost: netem cannot drop every nth packet
            # link 'lag' from 't': no packet is reordered: with netem a reordered packet would skip the whole delay
            # link 'b' from 'b': RED drops everything above red_max, and its weight is the power of two that tc computes from its burst
            # link 'b' from 't': no packet is lost: netem cannot drop packets at given times
            # link 'b' from 't': CoDel's buffer is counted in packets, not in bytes
            # the seed is not used: losses differ from run to run
        "#]],
    );
}

/// In the switch of the lab, each member of a LAG has a line, a shaper and a queue of its own.
#[test]
fn a_lag_is_a_line_with_what_all_its_members_have() {
    let lag = r#"
        [host.a]
        [host.b]
        [link.lag]
        ends = ["a", "b"]
        members = 3
        rate = "1G"
        shape_rate = "500M"
        shape_burst = "64kB"
        police_rate = "100M"
        police_burst = "32kB"
        buffer = "400kB"
        discipline = "red"
        red_min = "30kB"
        red_max = "90kB"
    "#;
    let commands = commands(&read(lag, "lag.toml", &[]).unwrap(), "t");
    let has = |part: &str| {
        let lines: Vec<String> = commands.up.iter().map(ToString::to_string).collect();
        assert_eq!(lines.iter().filter(|line| line.contains(part)).count(), 2, "{part} in {lines:#?}");
    };
    has(" rate 1500000000bit burst 192000 limit 1200000 mpu 84 peakrate 3000000000bit ");
    has(" red limit 1200000 min 90000 max 270000 ");
    has(" police rate 100000000bit burst 32000 ");
}

#[test]
fn every_bundled_network_has_its_commands_and_only_the_lag_loses_its_point() {
    for bundled in bundled() {
        let commands = commands(&bundled_topology(bundled.name), "t");
        let has = |word: &str| commands.up.iter().any(|command| command.argv.iter().any(|had| had == word));
        assert_eq!(
            has("netem"),
            bundled_topology(bundled.name).links.iter().any(|l| l.directions[0].delay.as_ns() > 0)
        );
        assert_eq!(has("police"), bundled.name == "policed");
        let hashed = commands.cannot.iter().any(|gap| gap.contains("nothing is hashed"));
        assert_eq!(hashed, bundled.name == "lag-2x1g");
    }
}

#[test]
fn a_command_is_a_line_that_a_shell_takes_apart_again() {
    let command = KernelCommand { argv: ["sysctl", "-w", "a=1 2", "it's", ""].map(str::to_owned).to_vec() };
    assert_eq!(command.to_string(), r"sysctl -w 'a=1 2' 'it'\''s' ''");
}

/// Runs a command to its end; returns its standard error if it failed.
fn run(command: &KernelCommand) -> Result<String, String> {
    let output = std::process::Command::new(&command.argv[0]).args(&command.argv[1..]).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    if output.status.success() {
        Ok(text(output.stdout))
    } else {
        Err(format!("{command}: {}", text(output.stderr)))
    }
}

#[test]
#[ignore = "needs root and network namespaces"]
fn the_kernel_takes_the_commands_and_leaves_nothing() {
    // Without a hyphen before the number: the tests of `linerate-lab` look for the names of this process that
    // have one.
    let lab = format!("kernel{}", std::process::id());
    let commands = commands(&read(PLAIN, "plain.toml", &[]).unwrap(), &lab);
    let built: Result<Vec<String>, String> = commands.resources.iter().chain(&commands.up).map(run).collect();
    let show = |words: &str| run(&command(words, &[]));
    let queues = show(&format!("tc -n linerate-{lab}-s qdisc show dev p2"));
    let link = show(&format!("ip -n linerate-{lab}-a -details link show dev eth0"));
    let address = show(&format!("ip -n linerate-{lab}-a -brief address show dev eth0"));
    let removed: Result<Vec<String>, String> = commands.down.iter().map(run).collect();

    built.unwrap();
    removed.unwrap();
    let queues = queues.unwrap();
    assert!(queues.starts_with("qdisc tbf 10: root") && queues.contains("rate 100Mbit"), "{queues}");
    let link = link.unwrap();
    assert!(link.contains(" mtu 1000 ") && link.contains(" gso_max_segs 1 "), "{link}");
    let address = address.unwrap();
    assert!(address.contains("10.77.0.1/24") && !address.contains(':'), "no IPv6 below 1280: {address}");
    assert!(!show("ip netns list").unwrap().contains(&lab));
}
