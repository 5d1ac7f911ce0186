//! Command lines that start no test, and unusual ones that do.

use linerate_units::Span;

use super::words;
use crate::iperf2::{Iperf2EarlyExit, Iperf2Settings, parse};

fn parsed(line: &str) -> Result<Iperf2Settings, Iperf2EarlyExit> {
    parse(&words(line))
}

/// The first line of a refusal, and its exit code.
fn refused(line: &str) -> (String, i32) {
    let refusal = parsed(line).expect_err(line);
    assert!(!refusal.to_stdout, "{line}");
    (refusal.text.lines().next().unwrap_or_default().to_owned(), refusal.code)
}

#[test]
fn refusals_have_the_texts_and_codes_of_2_1_8() {
    // The messages of the real program.
    let usage = "Usage: iperf [-s|-c host] [options]";
    for (line, text, code) in [
        ("", usage, 0),
        ("-t 3", usage, 0),
        ("-Q", "iperf: invalid option -- Q", 0),
        ("--nonsense", "iperf: unrecognized option `--nonsense'", 0),
        ("-c", "iperf: option requires an argument -- c", 0),
        ("--client", "iperf: option `--client' requires an argument", 0),
        ("-c h -i abc", "Invalid value of 'abc' for -i interval", 1),
        ("-c h -t abc", "ERROR: -t value of 'abc' not recognized", 1),
        ("-c h -n x", "Invalid value for -n amount of 'x'", 1),
        ("-c h -C -R", "ERROR: compatibility mode not supported with the requested with options", 1),
        (
            "-c h --trip-times -C",
            "ERROR: compatibility mode not supported with the requested with options",
            1,
        ),
        ("-c h -d -R", "ERROR: options of --full-duplex, --reverse, -d and -r are mutually exclusive", 1),
        (
            "-c h -b 1m",
            "ERROR: option -b and -l of 131072 are incompatible, consider setting -l to 125000 or lower",
            1,
        ),
    ] {
        assert_eq!(refused(line), (text.to_owned(), code), "{line}");
    }
    assert_eq!(refused("-h"), (usage.to_owned(), 1));
    assert!(refused("-v").0.starts_with("iperf version 2.1.8"));
}

#[test]
fn where_2_1_8_would_hang_the_length_is_refused() {
    assert_eq!(refused("-c h --trip-times -l 91").1, 1);
    for fine in ["-c h --trip-times -l 92", "-c h -u --trip-times -l 91", "-s --trip-times"] {
        assert!(parsed(fine).is_ok(), "{fine}");
    }
}

#[test]
fn other_spellings_of_2_1_8_are_accepted() {
    for (line, same) in [
        ("-c h -6", "-c h -V"),
        ("-c h --file_input x", "-c h -F x"),
        ("-c h --file x", "-c h -F x"),
        ("-c h --stdin_input", "-c h -I"),
        ("-c h --peer", "-c h -X"),
        ("-c h -f mbits", "-c h -f m"),
        ("-c h -f Kbytes", "-c h -f K"),
    ] {
        assert_eq!(parsed(line).expect(line), parsed(same).expect(same), "{line}");
    }
    assert_eq!(
        refused("-c h --tcp").0,
        "iperf: unrecognized option `--tcp'",
        "several options begin like this"
    );
    let only = |line: &str| parsed(line).map(|settings| (settings.ipv4, settings.ipv6)).expect(line);
    assert_eq!(
        (only("-c h -4"), only("-s -6"), only("-c h -4 -V")),
        ((true, false), (false, true), (false, false))
    );
}

#[test]
fn an_interval_that_is_too_short_is_lengthened_and_one_that_is_too_long_refused() {
    let short = parsed("-c h -i 0.001").expect("a warning");
    assert_eq!(short.interval, Some(Span::from_ms(5)));
    assert_eq!(short.warnings, "WARNING: interval too small, increasing to 5.0000 milliseconds.\n");
    assert_eq!(parsed("-c h -i 0").expect("none").interval, None);
    let long = ("Too large value of '5000' for -i interval, max is 4294.967295".to_owned(), 1);
    assert_eq!(refused("-c h -i 5000"), long);
}

#[test]
fn what_does_not_matter_is_a_warning() {
    for (line, text) in [
        ("-c h extra", "iperf: ignoring extra argument -- extra\n"),
        ("-s -d", "WARNING: option -d is not valid for server mode\n"),
        ("-s -R", "WARN: option of --reverse is not supported on the server\n"),
        ("-c h -4 -6", "WARN: both ipv4 and ipv6 set\n"),
        ("-c h", ""),
    ] {
        assert_eq!(parsed(line).expect(line).warnings, text, "{line}");
    }
}
