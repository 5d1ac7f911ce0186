//! Every mistake has its position and a remedy.

use expect_test::{Expect, expect};

use super::{TestSurroundings, source, try_plan};
use crate::read;

#[expect(clippy::needless_pass_by_value, reason = "keeps the expected text next to the call")]
pub(super) fn wrong(text: &str, expected: Expect) {
    match try_plan(text, &[]) {
        Ok(_) => panic!("this should be wrong:\n{text}"),
        Err(error) => expected.assert_eq(&error.to_string()),
    }
}

#[test]
fn keys_and_knobs() {
    wrong(
        "repaets = 3",
        expect![[r#"
        plan.toml:1:1: unknown key repaets; did you mean 'repeats'?
            repaets = 3
            ^"#]],
    );
    wrong(
        "[test]\nwidnow = \"64K\"",
        expect![[r#"
            plan.toml:2:1: unknown knob test.widnow; did you mean 'window'?
                widnow = "64K"
                ^"#]],
    );
    wrong(
        "test.window_bytes = 65536",
        expect![[r#"
            plan.toml:1:6: unknown knob test.window_bytes; write 'window', and the unit in its value
                test.window_bytes = 65536
                     ^"#]],
    );
    wrong(
        "[flow.x]\nfrom = \"a\"\nto = \"c\"\nafer = \"y\"",
        expect![[r#"
        plan.toml:3:6: flow.x.to: there is no host 'c'; known are a, b
            to = "c"
                 ^
        plan.toml:4:1: unknown key flow.x.afer; did you mean 'after'?
            afer = "y"
            ^"#]],
    );
    wrong(
        "[host.c]\nmut = 9000",
        expect![[r#"
        plan.toml:2:1: unknown key host.c.mut; did you mean 'mtu'?
            mut = 9000
            ^"#]],
    );
}

#[test]
fn flows_that_share_a_sender_start_together() {
    let plan = |group: &str, own: &str| {
        format!(
            "{group}[flow.x]\nfrom = \"a\"\nto = \"b\"\n{own}[flow.y]\nfrom = \"a\"\nto = \"b\"\nat = \"1s\"\n{own}"
        )
    };
    let group = "udp = true\nmulticast = \"239.1.2.3\"\n";
    wrong(
        &plan(&format!("[test]\n{group}"), ""),
        expect![[r#"
        plan.toml:10:6: flow.y.at: this flow and 'x' share one sender to a multicast group, which starts once; give both the same at and after
            at = "1s"
                 ^"#]],
    );
    wrong(
        &plan("", &group.replace("udp", "test.udp").replace("multi", "test.multi")),
        expect![[r#"
        plan.toml:9:6: flow.y.at: this flow and 'x' share one sender to a multicast group, which starts once; give both the same at and after
            at = "1s"
                 ^"#]],
    );
    assert!(try_plan(&plan("", ""), &[]).is_ok(), "each has a sender of its own");
}

#[test]
fn a_port_behind_an_address_says_where_it_belongs() {
    wrong(
        "[host.c]\naddress = \"192.0.2.1:5202\"",
        expect![[r#"
            plan.toml:2:11: host.c.address: the port is a separate key; write address = "192.0.2.1" and port = 5202
                address = "192.0.2.1:5202"
                          ^"#]],
    );
    wrong(
        "[host.c]\naddress = \"[2001:db8::1]:5202\"",
        expect![[r#"
            plan.toml:2:11: host.c.address: the port is a separate key; write address = "2001:db8::1" and port = 5202
                address = "[2001:db8::1]:5202"
                          ^"#]],
    );
    for right in ["2001:db8::1", "::1", "192.0.2.1", "server.example", "fe80::1%eth0"] {
        let text = format!("[host.c]\naddress = \"{right}\"");
        let error = try_plan(&text, &[]).map_or_else(|error| error.to_string(), |_| String::new());
        assert!(!error.contains("port ="), "{right}: {error}");
    }
}

#[test]
fn values() {
    wrong(
        "[test]\nwindow = \"64 furlongs\"\nduration = \"-3s\"\nudp = 1",
        expect![[r#"
        plan.toml:2:10: test.window: unknown unit 'furlongs' in '64 furlongs'; known units are K M G T (binary), KiB MiB GiB TiB (binary), kB MB GB TB (decimal), B (example: 64K or 64KiB (65536 bytes), 1MB (1000000 bytes))
            window = "64 furlongs"
                     ^
        plan.toml:3:12: test.duration: '-3s' is negative (example: 10 or 10s, 250ms, 2m, 1h)
            duration = "-3s"
                       ^
        plan.toml:4:7: test.udp: 1 is not true or false
            udp = 1
                  ^"#]],
    );
    wrong(
        "order = \"shufled\"\nrepeats = 0\npause = true",
        expect![[r#"
        plan.toml:1:9: order: 'shufled' is unknown; did you mean 'shuffled'?
            order = "shufled"
                    ^
        plan.toml:2:11: repeats: 0 is not a whole number from 1 to 1000
            repeats = 0
                      ^
        plan.toml:3:9: pause: true is not a time such as "25ms"
            pause = true
                    ^"#]],
    );
    wrong(
        "host.c.tcp_rmem = \"1 2\"",
        expect![[r#"
            plan.toml:1:19: host.c.tcp_rmem: '1 2' is not smallest, default and largest size in bytes, such as "4096 131072 33554432"
                host.c.tcp_rmem = "1 2"
                                  ^"#]],
    );
    wrong(
        "test.bind_address = \"here\"",
        expect![[r#"
        plan.toml:1:6: flow a-b: here: invalid IP address syntax
            test.bind_address = "here"
                 ^"#]],
    );
    wrong(
        "name = \"My Plan\"",
        expect![[r#"
        plan.toml:1:8: name: 'My Plan' cannot be a name; use lower-case letters, digits and hyphens, and do not begin with a hyphen
            name = "My Plan"
                   ^"#]],
    );
}

#[test]
fn axes() {
    wrong(
        "axis.speed = [1]",
        expect![[r#"
            plan.toml:1:6: axis 'speed' does not name a knob; known are affinity, bidir, bind_address, bind_device, blocks, burst_period, busy_poll, bytes, congestion, download, dscp, duration, fast_open, fq_rate, interval, io, ipv4, ipv6, length, link, mptcp, mss, multicast, no_delay, no_latency, no_sampling, notsent_lowat, omit, pipeline, quick_ack, rate, read_rate, request_size, requests, requests_per_second, response_size, server_affinity, skip_rx_copy, source_port, spin, streams, tos, ttl, txtime, udp, until, upload, window, workload, zerocopy; or give what it sweeps with key = "…"
                axis.speed = [1]
                     ^"#]],
    );
    wrong(
        "axis.window = [\"64K\", 65536]",
        expect![[r#"
        plan.toml:1:15: axis.window: '64K' and '65536' are the same; leave one out
            axis.window = ["64K", 65536]
                          ^"#]],
    );
    wrong(
        "axis.window = []",
        expect![[r#"
        plan.toml:1:6: axis.window: no values; give at least one
            axis.window = []
                 ^"#]],
    );
}

#[test]
fn ranges() {
    wrong(
        "axis.window = { from = \"1M\", to = \"1K\", factor = 2 }",
        expect![[r#"
        plan.toml:1:24: axis.window.from: 1MiB is above 1KiB; give the smaller one first
            axis.window = { from = "1M", to = "1K", factor = 2 }
                                   ^"#]],
    );
    wrong(
        "axis.window = { from = \"1K\", to = \"1M\" }",
        expect![[r#"
            plan.toml:1:6: axis.window: a range needs step, factor or points
                axis.window = { from = "1K", to = "1M" }
                     ^"#]],
    );
    wrong(
        "axis.window = { from = 0, to = \"1M\", factor = 2 }",
        expect![[r#"
            plan.toml:1:47: axis.window: a range with a factor cannot begin at 0; begin above 0
                axis.window = { from = 0, to = "1M", factor = 2 }
                                                              ^"#]],
    );
    wrong(
        "axis.congestion = { from = 1, to = 2, step = 1 }",
        expect![[r#"
            plan.toml:1:6: axis.congestion: values of this kind have no range; list them with values = […]
                axis.congestion = { from = 1, to = 2, step = 1 }
                     ^"#]],
    );
}

#[test]
fn what_axes_sweep() {
    wrong(
        "axis.mtu = { key = \"host.c.mtu\", values = [1500] }",
        expect![[r#"
        plan.toml:1:20: axis.mtu.key: 'host.c.mtu' cannot be swept; there is no host 'c'; known are a, b
            axis.mtu = { key = "host.c.mtu", values = [1500] }
                               ^"#]],
    );
    wrong(
        "axis.buffer = { key = \"lab.buffer\", values = [1] }",
        expect![[r#"
        plan.toml:1:23: axis.buffer.key: 'lab.buffer' cannot be swept; the plan has no lab, add [lab] with topology = "…"
            axis.buffer = { key = "lab.buffer", values = [1] }
                                  ^"#]],
    );
    wrong(
        "axis.window = [1000]\naxis.w = { key = \"test.window\", values = [1] }",
        expect![[r#"
            plan.toml:2:6: axis.w: axis 'window' already sweeps this key; remove one of them
                axis.w = { key = "test.window", values = [1] }
                     ^"#]],
    );
    wrong(
        "axis.window = { values = [1000, 2000], labels = [\"one\"] }",
        expect![[r#"
            plan.toml:1:49: axis.window.labels: 1 label(s) for 2 values; give one label for each value
                axis.window = { values = [1000, 2000], labels = ["one"] }
                                                                ^"#]],
    );
}

#[test]
fn an_axis_that_changes_nothing() {
    wrong(
        "axis.streams = [1, 2]\n[flow.x]\nfrom = \"a\"\nto = \"b\"\ntest.streams = 4",
        expect![[r#"
            plan.toml:1:6: axis.streams: it has no effect, because every flow sets this knob itself; sweep flow.NAME.KNOB
                axis.streams = [1, 2]
                     ^"#]],
    );
}

#[test]
fn combinations() {
    let axes = "axis.window = [1000, 2000]\naxis.streams = [1, 2, 3]\n";
    wrong(
        &format!("zip = [[\"window\", \"streams\"]]\n{axes}"),
        expect![[r#"
            plan.toml:1:8: zip: window has 2, streams has 3 values; axes that advance together need the same number of values
                zip = [["window", "streams"]]
                       ^"#]],
    );
    wrong(
        &format!("zip = [[\"window\", \"stream\"]]\n{axes}"),
        expect![[r#"
        plan.toml:1:8: zip: there is no axis 'stream'; did you mean 'streams'?
            zip = [["window", "stream"]]
                   ^"#]],
    );
    wrong(
        &format!("exclude = [{{ window = 3000 }}, {{ widow = 1000 }}]\n{axes}"),
        expect![[r#"
            plan.toml:1:23: 3000 is not a value of axis 'window'; its values are 1000, 2000
                exclude = [{ window = 3000 }, { widow = 1000 }]
                                      ^
            plan.toml:1:33: there is no axis 'widow'; did you mean 'window'?
                exclude = [{ window = 3000 }, { widow = 1000 }]
                                                ^"#]],
    );
    wrong(
        &format!("exclude = [{{ streams = [1, 2, 3] }}]\n{axes}"),
        expect![[r#"
        plan.toml:1:1: exclude: this excludes every point; keep at least one
            exclude = [{ streams = [1, 2, 3] }]
            ^"#]],
    );
    wrong(
        &format!("exclude = [{{ window = 1000 }}, {{ window = 1000, streams = 2 }}]\n{axes}"),
        expect![[r#"
        plan.toml:1:31: exclude: no point matches this; remove it, or correct its values
            exclude = [{ window = 1000 }, { window = 1000, streams = 2 }]
                                          ^"#]],
    );
}

#[test]
fn flows_and_hosts() {
    let flow = |name: &str, rest: &str| format!("[flow.{name}]\nfrom = \"a\"\nto = \"b\"\n{rest}\n");
    wrong(
        &(flow("x", "after = \"y\"") + &flow("y", "after = \"x\"")),
        expect![[r#"
            plan.toml:4:9: flow.x.after: these flows wait for each other; remove `after` from one of them
                after = "y"
                        ^"#]],
    );
    wrong(
        &(flow("x", "cross_traffic = true") + &flow("y", "after = \"x\"")),
        expect![[r#"
            plan.toml:8:9: flow.y.after: 'x' is cross traffic and runs until the others have ended; name another flow
                after = "x"
                        ^"#]],
    );
    wrong(
        &flow("x", "cross_traffic = true"),
        expect![[r#"
            plan.toml:4:17: every flow is cross traffic, so none of them ends; remove cross_traffic from one
                cross_traffic = true
                                ^"#]],
    );
    wrong(
        "[flow.x]\nfrom = \"a\"\nto = \"a\"\n[flow.y]\nto = \"b\"",
        expect![[r#"
        plan.toml:4:7: flow.y.from is missing; name a host
            [flow.y]
                  ^"#]],
    );
    wrong(
        "[host.c]",
        expect![[r#"
            plan.toml:1:1: a plan with more than two hosts needs flows; add [flow.NAME] with from = "…" and to = "…"
                [host.c]
                ^"#]],
    );
    wrong(
        "[lab]\ntopology = \"tow\"",
        expect![[r#"
        plan.toml:2:12: lab: there is no topology tow
            topology = "tow"
                       ^"#]],
    );
    wrong(
        "[lab]\ntopology = \"two\"\n[axis.rate]\nkey = \"lab.rate\"\nvalues = [\"1G\"]",
        expect![[r#"
            plan.toml:3:7: the lab cannot be created with these values: there is no parameter rate
                [axis.rate]
                      ^"#]],
    );
}

#[test]
fn knobs_that_do_not_go_together() {
    wrong(
        "test.udp = true\naxis.length = [100, 70000]",
        expect![[r#"
        plan.toml:2:6: flow a-b: --length: the length is out of range; give 32 to 65507 bytes for a datagram (at length=70000)
            axis.length = [100, 70000]
                 ^"#]],
    );
    wrong(
        "[test]\nudp = true\ncongestion = \"reno\"",
        expect![[r#"
        plan.toml:3:1: flow a-b: --congestion: it applies only to TCP, but the test uses UDP; remove it or -u
            congestion = "reno"
            ^"#]],
    );
    wrong(
        "[test]\nbytes = \"1M\"\nduration = 3",
        expect![[r#"
        plan.toml:3:1: flow a-b: --time: it cannot be combined with --bytes; remove one of them
            duration = 3
            ^"#]],
    );
}

#[test]
fn the_command_line() {
    let set = |settings: &[&str]| try_plan("axis.window = [1, 2]", settings).unwrap_err().to_string();
    expect![[r#"
        --set host.c.mtu=9000: the plan has no host 'c'; known are a, b
        --set nonsense: it does not have the form key=value, as in test.duration=5s
        --set repeat=3: unknown key 'repeat'; did you mean 'repeats'?
        --set test.duraton=3s: unknown knob test.duraton; did you mean 'duration'?
        --set test.window=x: test.window: 'x' does not start with a number (example: 64K or 64KiB (65536 bytes), 1MB (1000000 bytes))"#]].assert_eq(&set(&["repeat=3", "test.duraton=3s", "host.c.mtu=9000", "nonsense", "test.window=x"]));
}

#[test]
fn included_files() {
    let around = TestSurroundings(&[
        ("wrong.toml", "pause = 1\n\n[test]\nwindw = 3\n"),
        ("broken.toml", "a = = 1\n"),
        ("circle.toml", "include = \"circle.toml\"\n"),
    ]);
    let read = |text: &str| {
        let text = format!("{text}\n[host.a]\n[host.b]\n");
        read(source(&text), &[], &around).unwrap_err().to_string()
    };
    expect![[r#"
        wrong.toml:4:1: unknown knob test.windw; did you mean 'window'?
            windw = 3
            ^"#]]
    .assert_eq(&read("include = \"wrong.toml\""));
    expect![[r#"
        plan.toml:1:11: include: missing.toml next to plan.toml cannot be read: it is not there
            include = ["missing.toml", "broken.toml"]
                      ^
        broken.toml:1:5: not TOML: extra `=`, expected nothing; see toml.io for the syntax
            a = = 1
                ^
        broken.toml:1:7: not TOML: unexpected key or value, expected newline, `#`; see toml.io for the syntax
            a = = 1
                  ^"#]]
    .assert_eq(&read("include = [\"missing.toml\", \"broken.toml\"]"));
    expect![[r#"
        circle.toml:1:11: include: files are nested deeper than 8; check whether one includes itself
            include = "circle.toml"
                      ^"#]]
    .assert_eq(&read("include = \"circle.toml\""));
}

#[test]
fn a_series_that_cannot_be() {
    wrong(
        "[flow.x]\nfrom = \"a\"\nto = \"b\"\ncross_traffic = true\nseries = { szies = \"1\", trials = 0, sizes = \"2..1\" }\n\
         test = { duration = \"1s\", window = \"64K\" }\n[flow.y]\nfrom = \"a\"\nto = \"b\"\nseries = \"all\"",
        expect![[r#"
            plan.toml:4:17: flow.x.cross_traffic: a series ends by itself and cannot be cross traffic; remove one of the two
                cross_traffic = true
                                ^
            plan.toml:5:12: there is no knob flow.x.series.szies; did you mean 'sizes'?
                series = { szies = "1", trials = 0, sizes = "2..1" }
                           ^
            plan.toml:5:45: flow.x.series.sizes: '2..1': give sizes from 1 byte to 64M, the smaller one first
                series = { szies = "1", trials = 0, sizes = "2..1" }
                                                            ^
            plan.toml:6:10: flow.x.test.duration: this knob does not apply to a series; see the knobs of series
                test = { duration = "1s", window = "64K" }
                         ^
            plan.toml:10:10: flow.y.series: 'all' is not a table such as { sizes = "1..1M", time = "10s" }
                series = "all"
                         ^"#]],
    );
    wrong(
        "[flow.x]\nfrom = \"a\"\nto = \"b\"\nseries = { from = \"1M\", to = \"64K\" }",
        expect![[r#"
            plan.toml:4:30: flow.x.series.to: the size is out of range; give the size of --from to 64M
                series = { from = "1M", to = "64K" }
                                             ^"#]],
    );
}

#[test]
fn a_descent_in_steps_that_are_none() {
    wrong(
        "[test]\nudp = true\n[axis.rate]\nfrom = 0\nto = \"1G\"\npass = \"loss == 0\"\ndescend = \"90%\"",
        expect![[r#"
            plan.toml:7:11: axis.rate.descend: the share is out of range; give 1% to 50%
                descend = "90%"
                          ^"#]],
    );
}

/// Counts the mistakes of a plan that is wrong in every line, and returns the last one.
fn last_of_many(text: &str) -> (usize, String) {
    let mistakes = try_plan(text, &[]).unwrap_err().mistakes;
    (mistakes.len(), mistakes.last().unwrap().text.clone())
}

#[test]
fn of_thirty_thousand_unknown_keys_fifty_are_reported_and_the_others_counted() {
    let lines =
        |head: &str| head.to_owned() + &(0..30_000).map(|n| format!("k{n} = 1\n")).collect::<String>();
    for head in ["", "[test]\n"] {
        let (count, last) = last_of_many(&lines(head));
        assert_eq!((count, last.as_str()), (51, "and 29,950 more mistakes; correct these first"), "{head}");
    }
}

#[test]
fn an_axis_of_too_many_values_and_a_plan_of_too_many_bytes_are_refused_by_number() {
    let values = |count| format!("axis.streams = [{}]", "1,".repeat(count));
    let (count, text) = last_of_many(&values(20_001));
    assert_eq!((count, text.as_str()), (1, "axis.streams: 20001 values; a plan has at most 20000 points"));
    let (count, text) = last_of_many(&values(1_000_000));
    assert_eq!(count, 1);
    assert!(text.contains(" bytes; a plan or topology has at most 1048576"), "{text}");
}

#[test]
fn a_list_of_a_hundred_thousand_exclusions_is_refused_by_number() {
    let plan = format!("axis.streams = [1, 2]\nexclude = [{}]", "{},".repeat(100_000));
    let (_, text) = last_of_many(&plan);
    assert_eq!(text, "exclude: 100000 tables; at most 1000 are allowed; a value may be a list of values");
}
