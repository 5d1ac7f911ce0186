//! Every knob of a test, over TCP and UDP: it has a visible effect, or it is refused by name, or the result
//! reports that it had no effect. No knob is silently ignored.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::{Net, Process, Server, Side, TIMEOUT, flow, linerate};

/// Checks a knob's effect in the result.
type Seen = fn(&Value) -> bool;

/// Expected behaviour of a knob over one transport.
enum Fate {
    Acts(Seen),
    /// Refused by name before anything is measured.
    Refused,
}

use Fate::{Acts, Refused};

/// A knob with a value, and its expected behaviour over TCP and over UDP.
struct Knob(&'static str, &'static [&'static str], Fate, Fate);

fn spec(result: &Value) -> &Value {
    &result["run"]["spec"]
}

fn up(result: &Value) -> &Value {
    flow(result, "upload")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

fn says(result: &Value, kind: &str, word: &str) -> bool {
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
fn traffic() -> Vec<Knob> {
    vec![
        Knob(
            "udp",
            &["--upload"],
            Acts(|r| up(r)["transport"] == "udp"),
            Acts(|r| up(r)["transport"] == "udp"),
        ),
        Knob("mptcp", &["--upload"], Acts(|r| up(r)["transport"] == "mptcp"), Refused),
        Knob("upload", &[], Acts(is_up), Acts(is_up)),
        Knob(
            "download",
            &[],
            Acts(|r| directions(r) == ["download"]),
            Acts(|r| directions(r) == ["download"]),
        ),
        Knob("bidir", &[], Acts(|r| directions(r).len() == 2), Acts(|r| directions(r).len() == 2)),
        Knob("time", &["0.2", "--upload"], Acts(lasted), Acts(lasted)),
        Knob(
            "bytes",
            &["64K", "--upload"],
            Acts(|r| total(r) == 65_536.0),
            Acts(|r| total(r) <= 65_536.0 + 1500.0),
        ),
        Knob(
            "blockcount",
            &["3", "--upload", "-l", "1000"],
            Acts(|r| total(r) == 3000.0),
            Acts(|r| total(r) <= 3000.0),
        ),
        Knob(
            "parallel",
            &["2", "--upload"],
            Acts(|r| up(r)["streams"] == 2),
            Acts(|r| up(r)["streams"] == 2),
        ),
        Knob("bitrate", &["8M", "--upload"], Acts(|r| offered(r) < 9e6), Acts(|r| offered(r) < 9e6)),
        // Datagrams are paced by fq only, which is not attached: half a megabyte is more than the socket
        // buffers hold.
        Knob(
            "fq-rate",
            &["8M", "--upload"],
            Acts(paced),
            Acts(|r| paced(r) || says(r, "setting_ineffective", "--fq-rate")),
        ),
        Knob("length", &["1000", "--upload"], Acts(length_is_1000), Acts(length_is_1000)),
        Knob("omit", &["0.1", "--upload"], Acts(omits), Acts(omits)),
        Knob("interval", &["0.1", "--upload"], Acts(ticks), Acts(ticks)),
        Knob(
            "read-rate",
            &["8M", "--upload"],
            Acts(|r| number(&up(r)["receiver"]["bitrate_bps"]) < 12e6),
            Refused,
        ),
        Knob(
            "until",
            &["50%", "--upload"],
            Acts(|r| spec(r)["traffic"]["until"] == 0.5),
            Acts(|r| spec(r)["traffic"]["until"] == 0.5),
        ),
        Knob("no-latency", &["--upload"], Acts(unprobed), Acts(unprobed)),
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

/// The socket and host knobs.
fn sockets() -> Vec<Knob> {
    vec![
        // The kernel doubles what it grants.
        Knob("window", &["64K"], Acts(|r| granted(r) == 131_072.0), Acts(|r| granted(r) == 131_072.0)),
        // More than the veth's MTU of 1500 bytes allows.
        Knob("set-mss", &["8960"], Acts(|r| says(r, "setting_ineffective", "8960")), Refused),
        Knob("congestion", &["reno"], Acts(|r| sender(r)["congestion"]["effective"] == "reno"), Refused),
        // TCP uses these two bits itself.
        Knob(
            "tos",
            &["3"],
            Acts(|r| says(r, "setting_ineffective", "type-of-service")),
            Acts(|r| tos(r) == 3.0),
        ),
        Knob("dscp", &["af41"], Acts(|r| tos(r) == 136.0), Acts(|r| tos(r) == 136.0)),
        Knob("no-delay", &[], Acts(|r| spec(r)["socket"]["no_delay"] == true), Refused),
        Knob("version4", &[], Acts(|r| local(r).starts_with("10.")), Acts(|r| local(r).starts_with("10."))),
        Knob("version6", &[], Refused, Refused),
        Knob(
            "bind",
            &["10.77.0.1"],
            Acts(|r| local(r).starts_with(Side::A.address())),
            Acts(|r| local(r).starts_with(Side::A.address())),
        ),
        Knob(
            "bind-dev",
            &["veth0"],
            Acts(|r| spec(r)["socket"]["bind_device"] == "veth0"),
            Acts(|r| spec(r)["socket"]["bind_device"] == "veth0"),
        ),
        Knob(
            "cport",
            &["40123"],
            Acts(|r| local(r).ends_with(":40123")),
            Acts(|r| local(r).ends_with(":40123")),
        ),
        Knob("zerocopy", &["=sendfile"], Acts(|r| sender(r)["zerocopy"]["effective"] == "sendfile"), Refused),
        Knob("skip-rx-copy", &[], Acts(|r| says(r, "rx_copy_skipped", "MSG_TRUNC")), Refused),
        Knob("affinity", &["0"], Acts(|r| sender(r)["affinity"] == 0), Acts(|r| sender(r)["affinity"] == 0)),
        Knob(
            "server-affinity",
            &["0"],
            Acts(|r| up(r)["settings"]["receiver"]["affinity"] == 0),
            Acts(|r| up(r)["settings"]["receiver"]["affinity"] == 0),
        ),
        Knob(
            "link",
            &["100G"],
            Acts(|r| up(r)["ceiling"]["limit"] == "link"),
            Acts(|r| up(r)["ceiling"]["limit"] == "link"),
        ),
        Knob(
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
    let tried: BTreeSet<String> = traffic().iter().chain(&sockets()).map(|knob| knob.0.to_owned()).collect();
    assert_eq!(offered_knobs(), tried);
}

/// Runs one knob over one transport, and returns what is wrong.
fn wrong(net: &Net, port: &str, knob: &Knob, udp: bool, alone: bool) -> Option<String> {
    let Knob(name, values, tcp_fate, udp_fate) = knob;
    let mut args = vec![
        "test".to_owned(),
        Side::B.address().to_owned(),
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
    let done = Process::start(net.exec(Side::A, env!("CARGO_BIN_EXE_linerate"), &words)).finish(TIMEOUT);
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
fn every_knob_acts_or_is_refused_or_is_said_to_have_no_effect() {
    let net = Net::pair();
    let server = Server::start_in(&net, Side::B, &[]);
    let port = server.port.to_string();
    let tables = [(traffic(), false), (sockets(), true)];
    let all = tables.iter().flat_map(|(knobs, alone)| knobs.iter().map(move |knob| (knob, *alone)));
    let tried = all.flat_map(|(knob, alone)| [false, true].map(|udp| (knob, alone, udp)));
    let wrong: Vec<String> =
        tried.filter_map(|(knob, alone, udp)| wrong(&net, &port, knob, udp, alone)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
