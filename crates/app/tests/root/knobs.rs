//! Every knob of a test, over TCP and UDP: it has a visible effect, or it is refused by name, or the result
//! reports that it had no effect. No knob is silently ignored.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::{LinkSide, Net, Process, ServeProcess, TIMEOUT, flow, linerate};

/// Checks a knob's effect in the result.
type EffectCheck = fn(&Value) -> bool;

/// Expected behaviour of a knob over one transport.
enum KnobEffect {
    Acts(EffectCheck),
    /// Refused by name before anything is measured.
    Refused,
}

use KnobEffect::{Acts, Refused};

/// A knob with a value, and its expected behaviour over TCP and over UDP.
struct KnobCase(&'static str, &'static [&'static str], KnobEffect, KnobEffect);

fn spec(result: &Value) -> &Value {
    &result["run"]["spec"]
}

fn up(result: &Value) -> &Value {
    flow(result, "upload")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

fn has_caveat(result: &Value, kind: &str, word: &str) -> bool {
    let caveats = up(result)["caveats"].as_array().unwrap();
    caveats.iter().any(|one| one["kind"] == kind && one["text"].as_str().unwrap().contains(word))
}

fn directions(result: &Value) -> Vec<&str> {
    result["flows"].as_array().unwrap().iter().map(|flow| flow["direction"].as_str().unwrap()).collect()
}

fn is_up(result: &Value) -> bool {
    directions(result) == ["upload"]
}

fn total(result: &Value) -> f64 {
    number(&up(result)["receiver"]["total_bytes"])
}

/// The traffic knobs.
fn traffic() -> Vec<KnobCase> {
    vec![
        KnobCase(
            "udp",
            &["--upload"],
            Acts(|r| up(r)["transport"] == "udp"),
            Acts(|r| up(r)["transport"] == "udp"),
        ),
        KnobCase("mptcp", &["--upload"], Acts(|r| up(r)["transport"] == "mptcp"), Refused),
        KnobCase("upload", &[], Acts(is_up), Acts(is_up)),
        KnobCase(
            "download",
            &[],
            Acts(|r| directions(r) == ["download"]),
            Acts(|r| directions(r) == ["download"]),
        ),
        KnobCase("bidir", &[], Acts(|r| directions(r).len() == 2), Acts(|r| directions(r).len() == 2)),
        KnobCase("time", &["0.2", "--upload"], Acts(lasted), Acts(lasted)),
        KnobCase(
            "bytes",
            &["64K", "--upload"],
            Acts(|r| total(r) == 65_536.0),
            Acts(|r| total(r) <= 65_536.0 + 1500.0),
        ),
        KnobCase(
            "blockcount",
            &["3", "--upload", "-l", "1000"],
            Acts(|r| total(r) == 3000.0),
            Acts(|r| total(r) <= 3000.0),
        ),
        KnobCase(
            "parallel",
            &["2", "--upload"],
            Acts(|r| up(r)["streams"] == 2),
            Acts(|r| up(r)["streams"] == 2),
        ),
        KnobCase("file", &["/bin/sh", "--upload"], Acts(|r| sender(r)["file"]["name"] == "sh"), Refused),
        KnobCase("bitrate", &["8M", "--upload"], Acts(|r| offered(r) < 9e6), Acts(|r| offered(r) < 9e6)),
        KnobCase("length", &["1000", "--upload"], Acts(length_is_1000), Acts(length_is_1000)),
        KnobCase("omit", &["0.1", "--upload"], Acts(omits), Acts(omits)),
        KnobCase("interval", &["0.1", "--upload"], Acts(ticks), Acts(ticks)),
        KnobCase(
            "read-rate",
            &["8M", "--upload"],
            Acts(|r| number(&up(r)["receiver"]["bitrate_bps"]) < 12e6),
            Refused,
        ),
        KnobCase(
            "until",
            &["50%", "--upload"],
            Acts(|r| spec(r)["traffic"]["until"] == 0.5),
            Acts(|r| spec(r)["traffic"]["until"] == 0.5),
        ),
        KnobCase("no-latency", &["--upload"], Acts(unprobed), Acts(unprobed)),
    ]
}

/// The knobs of when what is sent leaves.
fn departures() -> Vec<KnobCase> {
    vec![
        KnobCase(
            "burst-period",
            &["100ms", "-b", "8M", "--upload"],
            Acts(|r| offered(r) < 9e6),
            Acts(|r| number(&up(r)["udp"]["send_gaps"]["max_ns"]) > 50e6),
        ),
        // Datagrams are paced by fq only, which is not attached: half a megabyte is more than the socket
        // buffers hold.
        KnobCase(
            "fq-rate",
            &["8M", "--upload"],
            Acts(paced),
            Acts(|r| paced(r) || has_caveat(r, "setting_ineffective", "--fq-rate")),
        ),
        KnobCase(
            "txtime",
            &["--upload", "-b", "8M"],
            Refused,
            // No discipline keeps departure times here.
            Acts(|r| {
                let kept = &sender(r)["txtime"];
                kept["asked"] == true
                    && kept["effective"] == false
                    && has_caveat(r, "setting_ineffective", "--txtime")
            }),
        ),
    ]
}

/// The knobs of tests to a multicast group.
fn groups() -> Vec<KnobCase> {
    vec![
        KnobCase(
            "multicast",
            &["239.1.2.3"],
            Refused,
            Acts(|r| {
                let to = &flow(r, "multicast")["settings"]["sender"]["remote"];
                to.as_str().unwrap().starts_with("239.1.2.3:")
            }),
        ),
        KnobCase(
            "ttl",
            &["3", "--multicast", "239.1.2.3"],
            Refused,
            Acts(|r| spec(r)["traffic"]["ttl"] == 3),
        ),
    ]
}

fn lasted(result: &Value) -> bool {
    number(&up(result)["sender"]["seconds"]) < 5.0
}

fn offered(result: &Value) -> f64 {
    number(&up(result)["sender"]["bitrate_bps"])
}

fn paced(result: &Value) -> bool {
    number(&up(result)["settings"]["sender"]["pacing_bps"]["effective"]) == 8e6
}

fn length_is_1000(result: &Value) -> bool {
    up(result)["settings"]["sender"]["length_bytes"] == 1000
}

fn omits(result: &Value) -> bool {
    number(&up(result)["receiver"]["omitted_bytes"]) > 0.0
}

fn ticks(result: &Value) -> bool {
    up(result)["samples"].as_array().unwrap().len() > 2
}

fn unprobed(result: &Value) -> bool {
    up(result).get("latency").is_none()
}

/// The socket knobs.
fn sockets() -> Vec<KnobCase> {
    vec![
        // The kernel doubles what it grants.
        KnobCase("window", &["64K"], Acts(|r| granted(r) == 131_072.0), Acts(|r| granted(r) == 131_072.0)),
        // More than the veth's MTU of 1500 bytes allows.
        KnobCase("set-mss", &["8960"], Acts(|r| has_caveat(r, "setting_ineffective", "8960")), Refused),
        KnobCase("congestion", &["reno"], Acts(|r| sender(r)["congestion"]["effective"] == "reno"), Refused),
        // TCP uses these two bits itself.
        KnobCase(
            "tos",
            &["3"],
            Acts(|r| has_caveat(r, "setting_ineffective", "type-of-service")),
            Acts(|r| tos(r) == 3.0),
        ),
        KnobCase("dscp", &["af41"], Acts(|r| tos(r) == 136.0), Acts(|r| tos(r) == 136.0)),
        KnobCase("no-delay", &[], Acts(|r| spec(r)["socket"]["no_delay"] == true), Refused),
        KnobCase("quick-ack", &[], Acts(|r| spec(r)["socket"]["quick_ack"] == true), Refused),
        KnobCase(
            "notsent-lowat",
            &["128K"],
            Acts(|r| number(&sender(r)["notsent_lowat_bytes"]["effective"]) == 131_072.0),
            Refused,
        ),
        // The kernel's default lets clients use it, and servers not.
        KnobCase("fast-open", &[], Acts(|r| has_caveat(r, "setting_ineffective", "SYN")), Refused),
        KnobCase(
            "busy-poll",
            &["50us"],
            Acts(|r| number(&sender(r)["busy_poll_ns"]["effective"]) == 50_000.0),
            Acts(|r| number(&sender(r)["busy_poll_ns"]["effective"]) == 50_000.0),
        ),
        KnobCase(
            "version4",
            &[],
            Acts(|r| local(r).starts_with("10.")),
            Acts(|r| local(r).starts_with("10.")),
        ),
        KnobCase("version6", &[], Refused, Refused),
        KnobCase(
            "bind",
            &["10.77.0.1"],
            Acts(|r| local(r).starts_with(LinkSide::A.address())),
            Acts(|r| local(r).starts_with(LinkSide::A.address())),
        ),
        KnobCase(
            "bind-dev",
            &["veth0"],
            Acts(|r| spec(r)["socket"]["bind_device"] == "veth0"),
            Acts(|r| spec(r)["socket"]["bind_device"] == "veth0"),
        ),
        KnobCase(
            "cport",
            &["40123"],
            Acts(|r| local(r).ends_with(":40123")),
            Acts(|r| local(r).ends_with(":40123")),
        ),
    ]
}

/// The knobs of how bytes pass through the hosts.
fn hosts() -> Vec<KnobCase> {
    vec![
        KnobCase("io", &["sendfile"], Acts(|r| sender(r)["io"]["effective"] == "sendfile"), Refused),
        KnobCase(
            "zerocopy",
            &[],
            Acts(|r| {
                let io = &sender(r)["io"];
                io["asked"] == "copy-free" && (io["effective"] == "splice" || io["effective"] == "sendfile")
            }),
            Refused,
        ),
        KnobCase("skip-rx-copy", &[], Acts(|r| has_caveat(r, "rx_copy_skipped", "MSG_TRUNC")), Refused),
        KnobCase(
            "affinity",
            &["0"],
            Acts(|r| sender(r)["affinity"] == 0),
            Acts(|r| sender(r)["affinity"] == 0),
        ),
        KnobCase(
            "server-affinity",
            &["0"],
            Acts(|r| up(r)["settings"]["receiver"]["affinity"] == 0),
            Acts(|r| up(r)["settings"]["receiver"]["affinity"] == 0),
        ),
        KnobCase(
            "link",
            &["100G"],
            Acts(|r| up(r)["ceiling"]["limit"] == "link"),
            Acts(|r| up(r)["ceiling"]["limit"] == "link"),
        ),
        KnobCase(
            "no-sampling",
            &[],
            Acts(|r| up(r).get("verdict").is_none()),
            Acts(|r| up(r).get("verdict").is_none()),
        ),
    ]
}

fn sender(result: &Value) -> &Value {
    &up(result)["settings"]["sender"]
}

fn granted(result: &Value) -> f64 {
    number(&sender(result)["snd_buf_bytes"])
}

fn tos(result: &Value) -> f64 {
    number(&sender(result)["tos"]["effective"])
}

fn local(result: &Value) -> &str {
    sender(result)["local"].as_str().unwrap_or_default()
}

/// The knobs in the help, below the headings about measurement.
fn offered_knobs() -> BTreeSet<String> {
    let mut command = linerate();
    command.args(["test", "--help"]);
    let help = Process::start(command).finish(TIMEOUT).stdout;
    let (mut below, mut knobs) = (false, BTreeSet::new());
    for line in help.lines() {
        if !line.starts_with(' ') && line.ends_with(':') {
            below = ["Traffic:", "Sockets:", "Hosts:"].contains(&line);
        }
        let named = line.trim_start().split([' ', ',', '[', '=']).find_map(|word| word.strip_prefix("--"));
        // Lines with a deeper indentation describe a knob.
        if below && line.starts_with("  ") && line.find('-').is_some_and(|at| at <= 6) {
            knobs.extend(named.map(str::to_owned));
        }
    }
    knobs
}

#[test]
fn every_knob_that_is_offered_is_tried_here() {
    let tried: BTreeSet<String> = traffic()
        .iter()
        .chain(&departures())
        .chain(&groups())
        .chain(&sockets())
        .chain(&hosts())
        .map(|knob| knob.0.to_owned())
        .collect();
    assert_eq!(offered_knobs(), tried);
}

/// Runs one knob over one transport, and returns what is wrong.
fn wrong(net: &Net, port: &str, knob: &KnobCase, udp: bool, alone: bool) -> Option<String> {
    let KnobCase(name, values, tcp_fate, udp_fate) = knob;
    let mut args = vec![
        "test".to_owned(),
        LinkSide::B.address().to_owned(),
        "-p".to_owned(),
        port.to_owned(),
        "--json".to_owned(),
    ];
    let mut flag = format!("--{name}");
    let mut values = values.iter().map(|value| (*value).to_owned()).peekable();
    if let Some(joined) = values.next_if(|value| value.starts_with('=')) {
        flag += &joined;
    }
    args.push(flag);
    args.extend(values);
    let given = |word: &str, args: &[String]| args.iter().any(|arg| arg == word);
    if alone {
        args.push("--upload".to_owned());
    }
    if !["--time", "--bytes", "--blockcount"].iter().any(|limit| given(limit, &args)) {
        args.extend(["-t", "0.4"].map(str::to_owned));
    }
    if udp && *name != "udp" {
        args.push("-u".to_owned());
        if *name != "bitrate" {
            args.extend(["-b", "80M"].map(str::to_owned));
        }
    }
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = Process::start(net.exec(LinkSide::A, env!("CARGO_BIN_EXE_linerate"), &words)).finish(TIMEOUT);
    match if udp { udp_fate } else { tcp_fate } {
        Acts(seen) if done.code == Some(0) && seen(&done.json()) => None,
        Refused if done.code != Some(0) && done.stderr.contains("error") => None,
        Acts(_) => {
            Some(format!("{words:?} is not seen to act: {:?} {} {}", done.code, done.stderr, done.stdout))
        }
        Refused => Some(format!("{words:?} is not refused: {:?} {}", done.code, done.stderr)),
    }
}

#[test]
#[ignore = "needs root and ip for network namespaces"]
fn every_knob_acts_or_is_refused_or_is_reported_to_have_no_effect() {
    let net = Net::pair();
    let server = ServeProcess::start_in(&net, LinkSide::B, &[]);
    let port = server.port.to_string();
    let tables =
        [(traffic(), false), (departures(), false), (groups(), false), (sockets(), true), (hosts(), true)];
    let all = tables.iter().flat_map(|(knobs, alone)| knobs.iter().map(move |knob| (knob, *alone)));
    let tried = all.flat_map(|(knob, alone)| [false, true].map(|udp| (knob, alone, udp)));
    let wrong: Vec<String> =
        tried.filter_map(|(knob, alone, udp)| wrong(&net, &port, knob, udp, alone)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
