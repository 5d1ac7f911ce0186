//! Files of the real programs, and malformed files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use linerate_model::import::{Claim, ClaimScope, ForeignTest, Quantity};
use linerate_model::metrics::Side;

use super::log::name;
use super::*;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/results")
}

fn fixture(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).unwrap()
}

fn one(text: &str) -> ForeignResult {
    let mut readings = read(text, None).unwrap();
    assert_eq!(readings.len(), 1, "{readings:?}");
    readings.remove(0)
}

/// `23.9*1048576`.
fn product(text: &str) -> f64 {
    text.split('*').map(|factor| factor.parse::<f64>().unwrap()).product()
}

fn names_of(claim: &Claim) -> [String; 3] {
    let scope = match claim.scope {
        _ if claim.omitted => "omitted",
        ClaimScope::Interval => "interval",
        ClaimScope::Total => "total",
        ClaimScope::Size => "size",
    };
    let side = claim.side.map_or("-", |side| if side == Side::Sender { "sender" } else { "receiver" });
    [scope.to_owned(), claim.direction.map_or("-", |way| way.name()).to_owned(), side.to_owned()]
}

/// Checks one row of the table against what was parsed from its file.
fn check(file: &str, readings: &[ForeignResult], row: &str) {
    let words: Vec<&str> = row.split_whitespace().collect();
    let [line, scope, direction, side, quantity, value, step, printed @ ..] = words.as_slice() else {
        panic!("{file}: {row}")
    };
    let claims = readings.iter().flat_map(|reading| &reading.tests).flat_map(|test| &test.claims);
    let here: Vec<&Claim> = claims.filter(|claim| claim.line.to_string() == **line).collect();
    let figure = here.iter().find_map(|claim| {
        let same = names_of(claim) == [*scope, *direction, *side];
        same.then(|| claim.figures.iter().find(|figure| format!("{:?}", figure.quantity) == **quantity))
            .flatten()
    });
    let Some(figure) = figure else { panic!("{file}: nothing is read for {row}; there is {here:?}") };
    let near = |read: f64, wanted: f64| (read - wanted).abs() <= 1e-9 * wanted.abs().max(1e-9);
    assert!(near(figure.value, product(value)), "{file}: {row}: the value is {}", figure.value);
    assert!(near(figure.step, product(step)), "{file}: {row}: the step is {}", figure.step);
    let shown: Vec<&str> = figure.printed.split_whitespace().collect();
    assert_eq!(shown, printed, "{file}: {row}");
}

#[test]
fn files_of_the_real_programs_are_read_as_the_table_says() {
    let mut listed = BTreeSet::new();
    let (mut file, mut readings) = (String::new(), Vec::new());
    for row in fixture("EXPECTED").lines() {
        let row = row.trim_end();
        if row.is_empty() || row.starts_with('#') {
            continue;
        }
        if let Some(figure) = row.strip_prefix(". ") {
            check(&file, &readings, figure);
            continue;
        }
        let words: Vec<&str> = row.split_whitespace().collect();
        let [name, tools, tests] = words.as_slice() else { panic!("{row}") };
        file = (*name).to_owned();
        listed.insert(file.clone());
        readings = read(&fixture(name), None).unwrap_or_else(|error| panic!("{name}: {error}"));
        let found: Vec<&str> = readings.iter().map(|reading| reading.tool.as_str()).collect();
        assert_eq!(found.join(","), **tools, "{name}");
        let counts: Vec<String> = readings.iter().map(|reading| reading.tests.len().to_string()).collect();
        assert_eq!(counts.join(","), **tests, "{name}");
        let unread: Vec<_> = readings.iter().flat_map(|reading| &reading.unread).collect();
        assert!(unread.is_empty(), "{name}: {unread:?}");
    }
    let mut there = BTreeSet::new();
    for tool in
        std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir())
    {
        for file in std::fs::read_dir(&tool).unwrap() {
            let path = file.unwrap().path();
            there.insert(path.strip_prefix(folder()).unwrap().to_string_lossy().into_owned());
        }
    }
    assert_eq!(there, listed, "every file has its rows");
}

fn first(reading: &ForeignResult) -> &ForeignTest {
    &reading.tests[0]
}

#[test]
fn the_request_and_its_time_are_reported() {
    let reading = one(&fixture("iperf3/v321-tcp-bidir-P2.json"));
    let test = first(&reading);
    assert_eq!(reading.version.as_deref(), Some("3.21+"));
    assert_eq!(test.started_at.as_deref(), Some("2026-11-21T19:05:56Z"));
    assert_eq!((test.spec.traffic.bidir, test.spec.traffic.streams), (true, 2));
    let test = &one(&fixture("iperf3/v312-tcp-verbose-timestamps.txt")).tests[0];
    assert_eq!(test.started_at.as_deref(), Some("2026-11-22T06:36:43Z"));
    assert_eq!(test.target.as_deref(), Some("127.0.0.1"));
    let error = first(&one(&fixture("iperf3/v321-busy.json"))).error.clone();
    assert_eq!(error.as_deref(), Some("the server is busy running a test. try again later"));
    let test = &one(&fixture("nuttcp/v612-tx-verbose.txt")).tests[0];
    assert_eq!(test.spec.traffic.length.map(linerate_units::Bytes::get), Some(65_536));
    let mss = test.effective.iter().find(|figure| figure.quantity == Quantity::Mss);
    assert_eq!(mss.map(|mss| mss.value), Some(1448.0));
}

#[test]
fn what_the_writer_cannot_know_is_not_read_as_0() {
    let at = |reading: &ForeignResult, line: u32, quantity| {
        let claims = reading.tests.iter().flat_map(|test| &test.claims).filter(|claim| claim.line == line);
        claims.filter_map(|claim| claim.figure(quantity)).count()
    };
    // A client writes 0 lost datagrams and no jitter next to what it sent.
    let client = one(&fixture("iperf3/v312-udp-server-output.txt"));
    assert_eq!((at(&client, 8, Quantity::Packets), at(&client, 9, Quantity::Lost)), (1, 1));
    assert_eq!((at(&client, 8, Quantity::Lost), at(&client, 8, Quantity::Jitter)), (0, 0));
    // A server writes 0 for everything that the client counted.
    for (name, line) in [("iperf3/v312-server-tcp.json", 82), ("iperf3/v312-server-udp.json", 97)] {
        let server = one(&fixture(name));
        assert_eq!(at(&server, line, Quantity::Bytes), 0, "{name}");
        let claims = &first(&server).claims;
        assert!(claims.iter().all(|claim| claim.figure(Quantity::CpuRemote).is_none()), "{name}");
    }
}

#[test]
fn documents_of_old_versions_tell_who_sends_by_what_was_asked() {
    for name in ["iperf3/v321-tcp.json", "iperf3/v321-tcp-reverse.json", "iperf3/v312-server-tcp.json"] {
        let text = fixture(name);
        // Records before 3.6 do not name the sender.
        let old = text.replace("\"sender\":\ttrue", "\"x\":\t1").replace("\"sender\":\tfalse", "\"x\":\t0");
        assert_ne!(old, text);
        let ways = |text: &str| -> Vec<_> {
            first(&one(text)).claims.iter().map(|claim| (claim.direction, claim.side)).collect()
        };
        assert!(ways(&text).len() > 3);
        assert_eq!(ways(&old), ways(&text), "{name}");
    }
}

#[test]
fn a_cut_document_keeps_its_intervals_and_names_the_place() {
    let text = fixture("iperf3/v321-tcp.json");
    let whole = first(&one(&text)).claims.len();
    // In the middle of the number in line 80.
    let cut = text.match_indices("\"bytes\":\t3992453120").next().unwrap().0 + 12;
    let reading = one(&text[..cut]);
    assert!(first(&reading).claims.len() < whole);
    assert_eq!(first(&reading).claims[0].figure(Quantity::Bytes).unwrap().value, 3_917_611_008.0);
    let line = text[..cut].lines().count() as u32;
    assert_eq!((reading.unread[0].line, reading.unread[0].column.is_some()), (line, true));
    assert!(
        !first(&reading)
            .claims
            .iter()
            .any(|claim| claim.figure(Quantity::Bytes).is_some_and(|b| b.value == 399.0))
    );
    // A further document after it is read completely.
    let both = format!("{}\n{}", &text[..cut], text);
    let reading = one(&both);
    assert_eq!((reading.tests.len(), reading.tests[1].claims.len()), (2, whole));
    assert_eq!(reading.tests[1].claims[0].line, first(&one(&text)).claims[0].line + line);
}

#[test]
fn numbers_that_are_none_are_named_and_the_others_are_read() {
    let text = fixture("iperf3/v321-tcp.json");
    let mad = text.replacen(
        "\"bits_per_second\":\t31307325073.050613",
        &format!("\"bits_per_second\":\t{}", "9".repeat(400)),
        1,
    );
    let mad = mad.replacen("\"seconds\":\t1.0002709627151489", "\"seconds\":\t-nan", 1);
    let reading = one(&mad);
    let claims = &first(&reading).claims;
    assert_eq!(claims.len(), first(&one(&text)).claims.len());
    assert_eq!(claims[0].figure(Quantity::Bitrate), None);
    assert_eq!(claims[0].figure(Quantity::Bytes).unwrap().value, 3_917_611_008.0);
    let whys: Vec<&str> = reading.unread.iter().map(|unread| unread.why.as_str()).collect();
    assert!(whys.len() == 2 && whys[0].contains("400") && whys[1].contains("nan"), "{whys:?}");
}

#[test]
fn carriage_returns_colours_and_log_prefixes_change_nothing() {
    for name in
        ["iperf3/v312-tcp-P2-fK.txt", "iperf2/v218-server-two-clients.txt", "nuttcp/v612-tx-interval.txt"]
    {
        let text = fixture(name).replace("$ ", "");
        let plain = one(&text);
        let decorated: String = text
            .lines()
            .map(|line| format!("\u{1b}[32mNov 22 06:00:01 host tool[4711]: {line}\u{1b}[0m\r\n"))
            .collect();
        let imported = one(&decorated);
        let figures = |reading: &ForeignResult| -> Vec<_> {
            let claims = reading.tests.iter().flat_map(|test| &test.claims);
            claims.map(|claim| (claim.line, claim.stream, claim.scope, claim.figures.clone())).collect()
        };
        assert!(!figures(&plain).is_empty());
        assert_eq!(figures(&imported), figures(&plain), "{name}");
        assert_eq!(imported.unread, [], "{name}");
    }
}

#[test]
fn decimal_commas_are_read_or_named_but_never_misread() {
    let text = fixture("iperf2/v218-tcp-fullduplex.txt").replace('.', ",").replace("127,0,0,1", "127.0.0.1");
    let reading = one(&text);
    let last = reading.tests[1].claims.last().unwrap();
    assert_eq!(last.figure(Quantity::Bitrate).unwrap().value, 87.7e6);
    let csv = "20261121191905,127.0.0.1,49578,127.0.0.1,5001,1,0,0-1,0,24903740,199229920\n";
    assert!(read(csv, None).unwrap_err().why.contains("locale"));
    let ttcp = one("ttcp-t: 16777216 bytes in 0,66 real seconds = 24885,25 KB/sec +++\n");
    let rate = first(&ttcp).claims[0].figure(Quantity::Bitrate).unwrap();
    assert_eq!(rate.value, 24885.25 * 8192.0);
    let unclear = read("ttcp-t: 1 bytes in 0.66 real seconds = 1,234 KB/sec +++\n", None).unwrap();
    assert_eq!(first(&unclear[0]).claims[0].figure(Quantity::Bitrate), None);
    assert_eq!((unclear[0].unread[0].line, unclear[0].unread[0].column), (1, Some(40)));
}

#[test]
fn a_log_may_hold_several_programs() {
    let names = [
        "iperf3/v312-tcp-bidir.txt",
        "iperf3/v321-tcp.json",
        "ttcp/sgi-udp.txt",
        "netpipe/v372.out",
        "ntttcp/s.xml",
    ];
    let log: String = names.iter().map(|name| fixture(name) + "\nsome words of a person\n").collect();
    let readings = read(&log, None).unwrap();
    let tools: Vec<&str> = readings.iter().map(|reading| reading.tool.as_str()).collect();
    assert_eq!(tools, ["iperf3", "iperf3", "ttcp", "netpipe", "ntttcp"]);
    let only = read(&log, Some("NPtcp")).unwrap();
    assert_eq!((only.len(), only[0].tool.as_str()), (1, "netpipe"));
}

#[test]
fn strange_texts_say_where_they_are_strange() {
    let why = |text: &str, tool| read(text, tool).unwrap_err();
    assert_eq!(why("\n\nhello\nworld\n", None).line, 3);
    assert_eq!(why("", None).line, 0);
    assert!(why("x", Some("netperf")).why.contains("netperf"));
    assert!(why("{\"a\": 1}\n", None).why.contains("JSON"));
    assert_eq!(why("text\n{\n \"start\": {\n", None).line, 4);
    assert_eq!(why("Throughput 5.3 Gbits/sec in total\n", None).line, 1);
    assert!(why(&fixture("iperf3/v321-tcp.json"), Some("ttcp")).line > 0);
    // One unknown line does not affect the rest.
    let mixed = format!("Throughput 5.3 Gbits/sec\n{}", fixture("iperf3/v312-server-tcp.txt"));
    assert_eq!(one(&mixed).unread[0].line, 1);
}

#[test]
fn huge_and_deep_texts_end_soon() {
    let digits = "9".repeat(10 << 20);
    assert!(read(&digits, None).unwrap_err().why.contains("too long"));
    for piece in
        ["[", "{\"start\":", "{\"a\":[", "[  5] ", "ttcp-t: ", "\r", "{\n", "<ntttcps version=\"", "\u{1b}["]
    {
        let text = piece.repeat(300_000);
        let _ = read(&text, None);
    }
}

#[test]
fn names_depend_on_the_content_and_on_nothing_else() {
    let text = fixture("iperf3/v312-two-runs.log");
    let reading = one(&text);
    let moved = one(&format!("\n\nwords\n{text}"));
    let names = |reading: &ForeignResult| -> Vec<String> {
        reading.tests.iter().map(|test| name(reading, test, 0)).collect()
    };
    assert_eq!(names(&reading), names(&moved));
    assert_eq!(names(&reading)[0].len(), 16);
    let changed = one(&text.replacen("50.", "51.", 1));
    assert_ne!(names(&reading)[0], names(&changed)[0]);
    assert_ne!(name(&reading, &reading.tests[0], 0), name(&reading, &reading.tests[0], 1));
}

#[test]
fn files_of_windows_are_texts() {
    let plain = "ttcp-t: 5 bytes in 1.00 real seconds = 0.00 KB/sec +++\r\n";
    let wide: Vec<u8> =
        [0xff, 0xfe].into_iter().chain(plain.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    assert_eq!(text(&wide), plain);
    assert_eq!(text(b"a\xffb"), "a\u{fffd}b");
}
