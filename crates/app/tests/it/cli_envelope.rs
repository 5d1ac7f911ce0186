//! `linerate envelope` as a program: documents, exit codes, and refusals that name their argument.

use serde_json::Value;

use crate::support::run;

fn json(line: &str) -> Value {
    let output = run(line);
    assert!(output.code == Some(0), "{line}: {}", output.stderr);
    assert!(output.stderr.is_empty(), "{line}: {}", output.stderr);
    output.json()
}

fn close(got: &Value, want: f64) {
    let got = got.as_f64().unwrap();
    assert!((got / want - 1.0).abs() < 1e-4, "got {got}, want {want}");
}

#[test]
fn a_gigabit_over_21_ms_is_what_the_standards_say() {
    let found = json("envelope --link 1G --rtt 21ms --json");
    assert_eq!(found["schema"], "linerate.envelope/2");
    assert_eq!(found["binding"]["limit"], "link");
    // 1448 of 1538 bytes; 1e9 / (1538 * 8) frames; 1e9 * 0.021 / 8 bytes.
    close(&found["rates"]["payload_bps"], 941.482_445e6);
    close(&found["frames"]["per_second"], 81_274.382);
    close(&found["needs"]["bdp_wire_bytes"], 2_625_000.0);
    assert_eq!(found["needs"]["window_shift"], 6);
}

#[test]
fn the_window_that_is_set_binds_below_the_link() {
    let found = json("envelope --link 1G --rtt 21ms --window 65535 --json");
    assert_eq!(found["binding"]["limit"], "receiver_window");
    // 65535 * 8 / 0.021.
    close(&found["binding"]["bitrate_bps"], 24.965_714e6);
    assert_eq!(found["after_remedy"]["limit"], "link");
}

#[test]
fn ranges_have_bounds_and_questions_their_answers() {
    let found = json("envelope --json --link 1G --rtt 20ms..25ms --need 8h:2TB --target 500M --lag 2 -P 2");
    // 1e9 * 0.020 / 8 and * 0.025 / 8.
    close(&found["bounds"]["/needs/bdp_wire_bytes"]["low"], 2_500_000.0);
    close(&found["bounds"]["/needs/bdp_wire_bytes"]["high"], 3_125_000.0);
    close(&found["needs"]["bdp_wire_bytes"], 2_500_000.0);
    // 2e12 * 8 / 28800, and the share of 1.5 times 941.482 Mb/s: two streams use three quarters of two links on
    // average.
    close(&found["need"]["required_bps"], 555.5556e6);
    close(&found["need"]["utilisation"], 0.590086 / 1.5);
    assert_eq!((&found["need"]["fits"], &found["target"]["fits"]), (&Value::Bool(true), &Value::Bool(true)));
    close(&found["lag"]["no_collision"], 0.5);
    close(&found["acknowledgements"]["bitrate_bps"], 29.2588e6);
    let tight = json("envelope --json --link 1G --need 10s:1.25GB --disk 60MB/s");
    assert_eq!(tight["binding"]["limit"], "disk");
    assert_eq!(tight["need"]["fits"], false);
    // 1.25 GB at 60 MB/s take 20.8 s.
    close(&tight["need"]["seconds_per_minute"], 125.0);
}

#[test]
fn flags_change_the_headers_that_they_name() {
    let payload =
        |flags: &str| json(&format!("envelope --link 1G --json {flags}"))["frames"]["payload_bytes"].clone();
    assert_eq!(payload(""), 1448.0);
    assert_eq!(payload("--no-timestamps"), 1460.0);
    assert_eq!(payload("-6"), 1428.0);
    assert_eq!(payload("--mtu 9000"), 8948.0);
    assert_eq!(payload("--encap vxlan4"), 1398.0);
    assert_eq!(payload("--encap pppoe"), 1440.0);
    assert_eq!(payload("-u"), 1472.0);
    assert_eq!(payload("-u -l 18"), 18.0);
    let wire = json("envelope --link 1G --vlan 2 --json")["frames"]["wire_bytes"].clone();
    assert_eq!(wire, 1546.0);
}

#[test]
fn nothing_absent_is_null_and_no_number_is_lost() {
    fn walk(value: &Value) {
        match value {
            Value::Object(fields) => fields.values().for_each(walk),
            Value::Array(items) => items.iter().for_each(walk),
            other => assert!(!other.is_null()),
        }
    }
    for line in [
        "envelope --json --link 1G",
        "envelope --json --link 1000T --rtt 1h --loss 0.999999 -P 1000000 --transfer 16000000000G",
        "envelope --json --link 1b/s --rtt 1ns --loss 1e-15 --window 1 --rmem 1 --wmem 1 --mtu 68 -n 1 -b 1",
    ] {
        walk(&json(line));
    }
}

#[test]
fn bad_values_are_refused_by_name() {
    let table = [
        ("--link 0", "--link"),
        ("--link -1G", "--link"),
        ("--link fast", "--link"),
        ("--link 1e300T", "--link"),
        ("--link 1001T", "--link"),
        ("--rtt 1ms", "--link"),
        ("--link 1G --mtu 0", "--mtu"),
        ("--link 1G --mtu -1500", "--mtu"),
        ("--link 1G --mtu 99999999999", "--mtu"),
        ("--link 1G --mtu 68 --encap vxlan6", "--mtu"),
        ("--link 1G --rtt 0", "--rtt"),
        ("--link 1G --rtt 21", "ms or s"),
        ("--link 1", "G or T"),
        ("--link 1G --rtt 1ms --loss 30% -C bbr", "--loss"),
        ("--link 1G --rtt -21ms", "--rtt"),
        ("--link 1G --rtt 2h", "--rtt"),
        ("--link 1G --rtt 21 furlongs", "furlongs"),
        ("--link 1G --rtt 1ms --loss 1", "--loss"),
        ("--link 1G --rtt 1ms --loss 100%", "--loss"),
        ("--link 1G --rtt 1ms --loss -0.1", "--loss"),
        ("--link 1G --loss 0.1", "--rtt"),
        ("--link 1G --window 64K", "--rtt"),
        ("--link 1G --rtt 1ms --window 0", "--window"),
        ("--link 1G --rtt 1ms --window 99999999999999999999", "--window"),
        ("--link 1G --rtt 1ms --window 1.5", "--window"),
        ("--link 1G --rtt 1ms --rmem -6M", "--rmem"),
        ("--link 1G --rtt 1ms --wmem 0", "--wmem"),
        ("--link 1G --streams 0", "--streams"),
        ("--link 1G --streams -4", "--streams"),
        ("--link 1G --vlan 5", "--vlan"),
        ("--link 1G --congestion vegas", "--congestion"),
        ("--link 1G --encap pigeon", "--encap"),
        ("--link 1G --length 100", "--udp"),
        ("--link 1G --udp --length 0", "--length"),
        ("--link 1G --udp --length 1473", "--length"),
        ("--link 1G --udp --rtt 1ms --window 64K", "--window"),
        ("--link 1G --transfer 0", "--transfer"),
        ("--link 1G --offered 0", "--offered"),
        ("--link 1G --burst 1M", "--burst-rate"),
        ("--link 1G --burst 0 --burst-rate 1G", "--burst"),
        ("--link 10G..1G", "--link"),
        ("--link 1G --rtt 20ms..", "--rtt"),
        ("--link 1G --rtt 1ms --loss 0.1..0.01", "--loss"),
        ("--link 1G --need 8h", "--need"),
        ("--link 1G --need 8h:0", "--need"),
        ("--link 1G --target 1G", "--rtt"),
        ("--link 1G --lag 0", "--lag"),
        ("--link 1G --lag 257", "--lag"),
        ("--link 1G --distance -5", "--distance"),
        ("--link 1G --cpu 3G", "--cpu"),
        ("--link 1G --cpu 3G:0:0", "--cpu"),
        ("--link 1G --pcie 8G:0", "--pcie"),
        ("--link 1G --disk 0", "--disk"),
    ];
    for (flags, named) in table {
        let output = run(&format!("envelope {flags}"));
        let message = output.stderr;
        assert_eq!(output.code, Some(2), "{flags}: {message}");
        assert!(message.contains(named), "{flags}: {message}");
        assert!(output.stdout.is_empty(), "{flags}");
    }
}

#[test]
fn text_has_no_colour_when_piped() {
    let output = run("envelope --link 1G --rtt 21ms");
    assert_eq!(output.code, Some(0));
    assert!(output.stdout.starts_with("Link of 1.000 Gb/s, round trip 21 ms"));
    assert!(!output.stdout.contains('\u{1b}'));
}
