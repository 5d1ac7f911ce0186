//! Files of the real programs, created here over fast and slow links: `linerate check` does not call any of
//! them impossible, whichever properties of the link are stated.
//!
//! `make test` creates about twenty of them. With `LINERATE_HONEST_FILES=all`, which `cargo xtask honest-files`
//! sets, every form runs over every link. `LINERATE_HONEST_FOLDER` is a folder in which the files are kept.

use std::path::PathBuf;
use std::sync::Mutex;

use serde_json::Value;

use crate::support::{Done, Folder, LinkSide, Net, Process, TIMEOUT, at_once, elements, linerate, signal};

/// A link, and what a user would state about it.
struct StatedLink {
    name: &'static str,
    /// In tc's syntax; absent for an unshaped veth pair.
    shaper: Option<&'static str>,
    stated: &'static str,
    bps: f64,
}

impl StatedLink {
    /// How many tests run at the same time, each over a link of its own: those of slow links leave room for others.
    fn tests_at_once(&self) -> usize {
        if self.bps <= 100e6 { 8 } else { 1 }
    }
}

const fn shaped(name: &'static str, shaper: &'static str, stated: &'static str, bps: f64) -> StatedLink {
    StatedLink { name, shaper: Some(shaper), stated, bps }
}

const LINKS: [StatedLink; 5] = [
    shaped("2m", "2mbit", "2M", 2e6),
    shaped("20m", "20mbit", "20M", 20e6),
    shaped("100m", "100mbit", "100M", 100e6),
    shaped("1g", "1gbit", "1G", 1e9),
    StatedLink { name: "cable", shaper: None, stated: "400G", bps: 4e9 },
];

/// How a server ends.
#[derive(Debug, Clone, Copy, PartialEq)]
enum ServerEnding {
    /// By itself, after one test.
    Itself,
    /// By SIGINT; it prints nothing, or its output is not kept.
    Interrupted,
}

/// One way of using one program. In its arguments, `BYTES`, `BLOCKS` (of 8192) and `MESSAGE` are what the link
/// carries in about a second, or a quarter of one; `LOW` and `HIGH` are rates below and above it.
#[derive(Debug, Clone, Copy)]
struct ProgramUse {
    name: &'static str,
    program: &'static str,
    server: &'static str,
    client: &'static str,
    port: u16,
    udp: bool,
    ends: ServerEnding,
    /// The numbers of the links over which the sample includes it.
    sample: &'static [usize],
}

const fn form(
    name: &'static str,
    program: &'static str,
    server: &'static str,
    client: &'static str,
    sample: &'static [usize],
) -> ProgramUse {
    ProgramUse { name, program, server, client, port: 5201, udp: false, ends: ServerEnding::Itself, sample }
}

const fn iperf3(name: &'static str, client: &'static str, sample: &'static [usize]) -> ProgramUse {
    form(name, "iperf3", "-s -1", client, sample)
}

const fn iperf3_json(name: &'static str, client: &'static str, sample: &'static [usize]) -> ProgramUse {
    form(name, "iperf3", "-s -1 -J", client, sample)
}

const fn iperf(name: &'static str, server: &'static str, client: &'static str, udp: bool) -> ProgramUse {
    ProgramUse {
        port: 5001,
        udp,
        ends: ServerEnding::Interrupted,
        ..form(name, "iperf", server, client, &[])
    }
}

const fn nuttcp(name: &'static str, client: &'static str) -> ProgramUse {
    ProgramUse {
        port: 5000,
        ends: ServerEnding::Interrupted,
        ..form(name, "nuttcp", "-S --nofork", client, &[])
    }
}

const fn netpipe(name: &'static str, server: &'static str, client: &'static str) -> ProgramUse {
    ProgramUse { port: 5002, ..form(name, "NPtcp", server, client, &[]) }
}

const fn ours(name: &'static str, server: &'static str, client: &'static str, udp: bool) -> ProgramUse {
    ProgramUse { port: 5001, udp, ..form(name, "linerate", server, client, &[]) }
}

/// A form of the sample.
const fn sampled(form: ProgramUse) -> ProgramUse {
    ProgramUse { sample: &[1], ..form }
}

const TO: &str = "10.77.0.2";

const FORMS: [ProgramUse; 36] = [
    iperf3_json("tcp-json", "-c HOST -t 2 -J", &[0, 4]),
    iperf3("tcp-text", "-c HOST -t 2", &[1]),
    iperf3_json("reverse-json", "-c HOST -R -t 2 -J", &[1]),
    iperf3("reverse-text", "-c HOST -R -t 1", &[]),
    iperf3_json("parallel", "-c HOST -P 4 -t 2 -J", &[]),
    iperf3("parallel-text", "-c HOST -P 4 -t 1 -V", &[]),
    iperf3_json("bidir-json", "-c HOST --bidir -t 2 -J", &[1]),
    iperf3("bidir-text", "-c HOST --bidir -t 2", &[]),
    iperf3_json("bytes", "-c HOST -n BYTES -J", &[1]),
    iperf3_json("window", "-c HOST -w 256K -t 2 -J", &[]),
    iperf3_json("omit", "-c HOST -O 1 -t 2 -J", &[]),
    iperf3("short-intervals", "-c HOST -i 0.1 -t 1", &[]),
    iperf3("server-output", "-c HOST -t 1 --get-server-output", &[]),
    iperf3_json("udp-json", "-c HOST -u -b LOW -t 2 -J", &[1]),
    iperf3("udp-text-too-much", "-c HOST -u -b HIGH -t 2", &[]),
    iperf3_json("udp-reverse-too-much", "-c HOST -u -R -b HIGH -t 1 -J", &[1]),
    iperf3_json("udp-small", "-c HOST -u -l 64 -b LOW -t 1 -J", &[1]),
    iperf("tcp", "-s", "-c HOST -t 2 -i 1", false),
    sampled(iperf("enhanced", "-s -e", "-c HOST -t 2 -e -i 1", false)),
    iperf("parallel", "-s", "-c HOST -t 2 -P 3", false),
    sampled(iperf("dualtest", "-s", "-c HOST -t 1 -d", false)),
    iperf("csv", "-s -y C", "-c HOST -t 1 -y C", false),
    iperf("udp", "-s -u", "-c HOST -u -b LOW -t 2", true),
    iperf("udp-too-much", "-s -u -e", "-c HOST -u -b HIGH -t 1 -e", true),
    nuttcp("brief", "-T2 HOST"),
    sampled(nuttcp("verbose", "-T2 -v HOST")),
    nuttcp("parsed", "-T2 -fparse HOST"),
    nuttcp("intervals", "-T2 -i1 HOST"),
    nuttcp("receive", "-T1 -r -v HOST"),
    nuttcp("udp-too-much", "-u -T1 -RHIGH HOST"),
    sampled(netpipe("pingpong", "-n 3 -u MESSAGE", "-h HOST -n 3 -u MESSAGE")),
    netpipe("both", "-n 3 -2 -u 20000", "-h HOST -n 3 -2 -u 20000"),
    sampled(ours("ttcp", "ttcp -r -s", "ttcp -t -s -n BLOCKS HOST", false)),
    ours("ttcp-udp", "ttcp -r -s -u", "ttcp -t -s -u -n 500 -l 1400 HOST", true),
    ours("ntttcp", "ntttcp -r -t 1 -P 2", "ntttcp -sHOST -t 1 -P 2", false),
    ours("ntttcp-udp", "ntttcp -r -t 1 -P 1 -u", "ntttcp -sHOST -t 1 -P 1 -n 1 -u", false),
];

/// The output of a program, and the link that it measured.
struct File {
    path: String,
    link: &'static StatedLink,
}

fn arguments(text: &str, link: &StatedLink) -> Vec<String> {
    let bytes = (link.bps.min(4e8) / 8.0).max(1e5);
    // The programs accept rates as whole numbers with a letter.
    let rate = |share: f64| format!("{}k", (link.bps.min(4e8) * share / 1e3).round());
    let table = [
        ("HOST", TO.to_owned()),
        ("BYTES", format!("{bytes:.0}")),
        ("BLOCKS", format!("{:.0}", bytes / 8192.0)),
        ("MESSAGE", format!("{:.0}", (bytes / 4.0).min(500_000.0))),
        ("LOW", rate(0.8)),
        ("HIGH", rate(2.0)),
    ];
    let put =
        |word: &str| table.iter().fold(word.to_owned(), |text, (name, value)| text.replace(name, value));
    text.split_whitespace().map(put).collect()
}

fn start(
    net: &Net,
    side: LinkSide,
    form: &ProgramUse,
    text: &str,
    link: &StatedLink,
    folder: &Folder,
) -> Process {
    let program = if form.program == "linerate" { env!("CARGO_BIN_EXE_linerate") } else { form.program };
    let arguments = arguments(text, link);
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut command = net.exec(side, program, &words);
    // NetPIPE writes its result to the working directory.
    command.current_dir(folder.path());
    Process::start(command)
}

/// Runs one form over one link; returns the output of both ends, the client's first.
fn both_ends(net: &Net, form: &ProgramUse, link: &StatedLink, folder: &Folder) -> Vec<(&'static str, Done)> {
    let server = start(net, LinkSide::B, form, form.server, link, folder);
    // NTttcp negotiates the test one port below its data port, over TCP.
    let port = if form.name.starts_with("ntttcp") { form.port - 1 } else { form.port };
    net.await_port(LinkSide::B, port, form.udp);
    let client = start(net, LinkSide::A, form, form.client, link, folder).finish(TIMEOUT);
    if form.ends == ServerEnding::Interrupted {
        signal(server.pid(), "INT");
    }
    let prints = form.program != "nuttcp" && form.program != "NPtcp";
    let server = (form.program != "nuttcp").then(|| server.finish(TIMEOUT));
    [Some(("client", client)), server.map(|done| ("server", done)).filter(|_| prints)]
        .into_iter()
        .flatten()
        .collect()
}

/// Creates the files: all, or the sample.
fn files(folder: &Folder, all: bool) -> Vec<File> {
    let files = Mutex::new(Vec::new());
    for (number, link) in LINKS.iter().enumerate() {
        let forms: Vec<&ProgramUse> =
            FORMS.iter().filter(|form| all || form.sample.contains(&number)).collect();
        for some in forms.chunks(link.tests_at_once()) {
            at_once(some.iter().copied(), |form| {
                let made = files_of(form, link, folder);
                files.lock().unwrap().extend(made);
            });
        }
    }
    files.into_inner().unwrap()
}

/// Creates the files of one form over one link.
fn files_of(form: &ProgramUse, link: &'static StatedLink, folder: &Folder) -> Vec<File> {
    let kept = std::env::var_os("LINERATE_HONEST_FOLDER").map(PathBuf::from);
    let net = Net::pair();
    if let Some(rate) = link.shaper {
        [LinkSide::A, LinkSide::B].into_iter().for_each(|side| net.tbf(side, rate, "20kb", "50ms"));
    }
    let ends = both_ends(&net, form, link, &Folder::new()).into_iter();
    ends.map(|(end, done)| {
        let name = format!("{}-{}-{}-{end}.txt", link.name, form.program, form.name);
        let path = kept.as_ref().map_or_else(|| folder.path().join(&name), |kept| kept.join(&name));
        // NetPIPE writes to stderr.
        let text = if form.program == "NPtcp" { &done.stderr } else { &done.stdout };
        std::fs::write(&path, text).unwrap();
        File { path: path.to_str().unwrap().to_owned(), link }
    })
    .collect()
}

/// Figures that a document calls impossible, and files that could not be read.
fn complaints(document: &Value, stated: &str) -> Vec<String> {
    let mut found = Vec::new();
    for input in elements(&document["inputs"]) {
        let name = input["name"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        if let Some(error) = input["error"].as_str() {
            found.push(format!("{name}: not read: {error}"));
        }
        let tests = elements(&input["readings"]).iter().flat_map(|reading| elements(&reading["tests"]));
        for line in tests.flat_map(|test| elements(&test["lines"])) {
            for figure in elements(&line["figures"]).iter().filter(|one| one["verdict"] == "impossible") {
                let why = &figure["reasons"][0]["text"];
                found.push(format!("{name} {stated}: {}: {}: {why}", line["quote"], figure["quantity"]));
            }
        }
    }
    found
}

fn checked(files: &[&File], flags: &[&str]) -> Vec<String> {
    let mut command = linerate();
    command.args(["check", "--json"]).args(flags).args(files.iter().map(|file| &file.path));
    complaints(&Process::start(command).finish(TIMEOUT).json(), &flags.join(" "))
}

#[test]
#[ignore = "needs root and network namespaces, tc, iperf3, iperf, nuttcp, NPtcp"]
fn files_of_every_program_are_not_impossible() {
    let all = match std::env::var("LINERATE_HONEST_FILES").as_deref() {
        Ok("all") => true,
        Err(std::env::VarError::NotPresent) => false,
        other => panic!("LINERATE_HONEST_FILES is all or absent, not {other:?}"),
    };
    let folder = Folder::new();
    let files = files(&folder, all);
    let mut found = Vec::new();
    for link in &LINKS {
        let here: Vec<&File> = files.iter().filter(|file| file.link.name == link.name).collect();
        if here.is_empty() {
            continue;
        }
        found.extend(checked(&here, &[]));
        found.extend(checked(&here, &["--link", link.stated]));
        found.extend(checked(&here, &["--link", link.stated, "--mtu", "1500"]));
    }
    println!("{} files", files.len());
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(files.len() >= if all { 150 } else { 20 }, "{} files", files.len());
}
