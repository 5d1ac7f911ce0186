//! Options of NTttcp for Linux 1.4.3: both ends print and save with them what the real ends do.
//!
//! NTttcp has no package, so this is skipped where it is not installed.

use serde_json::Value;

use crate::support::{
    Done, Folder, NTTTCP, Netns, Process, Program, TIMEOUT, assert_no_differences, eventually, form, signal,
    skipped,
};

use Program::{Ours, Real};

const SYNC_PORT: u16 = 5000;

/// What the ends get besides an address, the number of ports, a second, and the files.
#[derive(Debug, Clone, Copy)]
struct NtttcpArgumentPair {
    receiver: &'static [&'static str],
    sender: &'static [&'static str],
}

const fn pair(receiver: &'static [&'static str], sender: &'static [&'static str]) -> NtttcpArgumentPair {
    NtttcpArgumentPair { receiver, sender }
}

const PAIRS: [NtttcpArgumentPair; 9] = [
    pair(&[], &[]),
    pair(&["-V"], &["-V"]),
    pair(&["-Q"], &["-Q", "-n", "2", "-l", "2"]),
    pair(&["-e", "-V"], &["-f", "-V", "--no-delay"]),
    pair(&["-W", "1"], &["-W", "1", "-C", "1"]),
    pair(&["-b", "1K"], &["-b", "1K"]),
    pair(&[], &["--show-tcp-retrans"]),
    pair(&["-t", "2"], &["-V"]),
    pair(&["-M", "-V"], &["-L", "-V"]),
];

/// What an end printed and saved: exit code, forms of the lines, keys of the JSON document, tags of the XML one.
#[derive(Debug, PartialEq)]
struct NtttcpOutputShape {
    code: Option<i32>,
    lines: Vec<String>,
    json: Vec<String>,
    xml: Vec<String>,
}

/// The lines besides those of the progress, which come as often as the machine is idle, and of single sockets.
fn lines(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.rsplit(['\r', '\u{1b}']).next().unwrap_or(line));
    let lines = lines.filter(|line| !line.contains("Real-time") && !line.contains("DBG :"));
    let units = ["Kbps", "Mbps", "Gbps"];
    let lines = lines.map(|line| units.iter().fold(form(line), |line, unit| line.replace(unit, "bps")));
    // The names of files, and the line after everything.
    lines.filter(|line| !line.starts_with("save output") && !line.starts_with("---")).collect()
}

fn keys(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                found.push(format!("{path}/{key}"));
                keys(value, &format!("{path}/{key}"), found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, path, found)),
        _ => {}
    }
}

fn shape(role: &str, done: &Done, folder: &Folder) -> NtttcpOutputShape {
    let read =
        |ending: &str| std::fs::read_to_string(folder.file(&format!("{role}.{ending}"))).unwrap_or_default();
    let mut json = Vec::new();
    keys(&serde_json::from_str(&read("json")).unwrap_or_default(), "", &mut json);
    let xml = read("xml");
    let tags = xml.split('<').skip(1).filter_map(|tag| tag.split_once('>').map(|(tag, _)| tag));
    let tags = tags.filter(|tag| !tag.starts_with("ntttcp")).map(str::to_owned).collect();
    NtttcpOutputShape { code: done.code, lines: lines(&done.stdout), json, xml: tags }
}

/// The end of a receiver. The real one sometimes does not end after its result, which is complete by then.
fn finish(serving: Process, whose: Program, folder: &Folder) -> Done {
    if whose == Ours {
        return serving.finish(TIMEOUT);
    }
    eventually("the receiver has its result", || {
        let saved = std::fs::read_to_string(folder.file("receiver.json")).ok()?;
        let whole =
            serde_json::from_str::<Value>(&saved).is_ok() && serving.stdout().contains("cpu busy (all)");
        whole.then_some(())
    });
    signal(serving.pid(), "KILL");
    Done { code: Some(0), ..serving.finish(TIMEOUT) }
}

/// The shapes of both ends, the receiver's first, and their output.
fn shapes(receiver: Program, sender: Program, pair: NtttcpArgumentPair) -> ([NtttcpOutputShape; 2], String) {
    let (netns, folder) = (Netns::new(), Folder::new());
    let files = ["receiver", "sender"]
        .map(|role| ["xml", "json"].map(|ending| folder.file(&format!("{role}.{ending}"))));
    let args = |role: usize, address: &'static str| -> Vec<String> {
        let [xml, json] = &files[role];
        [address, "-P", "2", "-t", "1", "-x", xml, "-j", json].map(str::to_owned).to_vec()
    };
    let with = |args: &[String], more: &[&str]| -> Vec<String> {
        args.iter().cloned().chain(more.iter().map(|arg| (*arg).to_owned())).collect()
    };
    let receiving = with(&args(0, "-r127.0.0.1"), pair.receiver);
    let receiving: Vec<&str> = receiving.iter().map(String::as_str).collect();
    let sending = with(&args(1, "-s127.0.0.1"), &[&["-n", "1", "-B", "20M"], pair.sender].concat());
    let sending: Vec<&str> = sending.iter().map(String::as_str).collect();
    let serving = NTTTCP.start(receiver, &netns, &receiving);
    netns.await_listener(SYNC_PORT);
    netns.await_listener(SYNC_PORT + 2);
    let sent = NTTTCP.ask(sender, &netns, &sending);
    let received = finish(serving, receiver, &folder);
    let text = format!("{}{}\n{}{}", received.stdout, received.stderr, sent.stdout, sent.stderr);
    ([shape("receiver", &received, &folder), shape("sender", &sent, &folder)], text)
}

#[test]
#[ignore = "needs root and network namespaces"]
fn with_every_option_both_ends_print_and_save_what_the_real_ones_do() {
    let test = "with_every_option_both_ends_print_and_save_what_the_real_ones_do";
    if !NTTTCP.is_installed() {
        return skipped(test, "ntttcp is not installed");
    }
    assert_no_differences(&PAIRS, 3, |pair| {
        let (real, text) = shapes(Real, Real, pair);
        if shapes(Real, Real, pair).0 != real {
            skipped(test, &format!("{pair:?}: the real program does not agree with itself"));
            return Vec::new();
        }
        let ends = [(Ours, Real), (Real, Ours)].into_iter();
        let different = ends.filter_map(|(receiver, sender)| {
            let (ours, printed) = shapes(receiver, sender, pair);
            let command = format!("{receiver:?} {:?} {sender:?} {:?}", pair.receiver, pair.sender);
            (ours != real).then(|| format!("{command}\n{ours:?}\n{real:?}\n{printed}\n{text}"))
        });
        different.collect()
    });
}
