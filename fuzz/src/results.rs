//! Result files of other programs.

use linerate_compat::import::{Imported, read, runs, text};
use linerate_model::import::{ClaimScope, ForeignResult};

/// Reads any file; every reading refers to a place in the file, and every run has a log with an id of ours.
pub fn foreign_results(bytes: &[u8]) {
    let text = text(bytes);
    let Ok(readings) = read(&text, None) else { return };
    let lines = text.split('\n').count() as u32;
    for reading in &readings {
        check(reading, lines);
    }
    // Prose is refused unless the program is named.
    let Ok(imported) = runs(&text, None, &Imported::default()) else { return };
    for run in &imported.runs {
        assert_eq!(run.run.len(), 16);
        assert!(!run.events.is_empty() && run.events.iter().all(|event| event.run == run.run));
    }
}

fn check(reading: &ForeignResult, lines: u32) {
    for unread in &reading.unread {
        assert!((1..=lines).contains(&unread.line), "{unread:?} of {lines} lines");
    }
    for test in &reading.tests {
        for claim in &test.claims {
            assert!((1..=lines).contains(&claim.line), "{claim:?} of {lines} lines");
            assert!(claim.scope != ClaimScope::Interval || !claim.figures.is_empty());
            for figure in claim.figures.iter().chain(&test.effective) {
                assert!(figure.value.is_finite() && figure.step >= 0.0, "{figure:?}");
            }
        }
    }
}

/// An excerpt of a result file of each program.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    [
        include_str!("../../fixtures/results/iperf3/v321-udp-loss.json"),
        include_str!("../../fixtures/results/iperf3/v321-stream.ndjson"),
        include_str!("../../fixtures/results/iperf3/v312-tcp-P2-fK.txt"),
        include_str!("../../fixtures/results/iperf3/v312-udp-server-output.txt"),
        include_str!("../../fixtures/results/iperf2/v218-udp-b-e-loss.txt"),
        include_str!("../../fixtures/results/iperf2/v218-tcp-enhanced.txt"),
        include_str!("../../fixtures/results/iperf2/v218-udp-csv.txt"),
        include_str!("../../fixtures/results/ttcp/sgi-reverse-S-C.txt"),
        include_str!("../../fixtures/results/ttcp/pcattcp-transmit.txt"),
        include_str!("../../fixtures/results/ttcp/brl1987-tcp.txt"),
        include_str!("../../fixtures/results/nuttcp/v612-parse.txt"),
        include_str!("../../fixtures/results/nuttcp/v612-udp-loss.txt"),
        include_str!("../../fixtures/results/ntttcp/s.xml"),
        include_str!("../../fixtures/results/ntttcp/s.json"),
        include_str!("../../fixtures/results/ntttcp/default-2ports.txt"),
        include_str!("../../fixtures/results/ntttcp/windows-sender.txt"),
        include_str!("../../fixtures/results/netpipe/v372-console.txt"),
        include_str!("../../fixtures/results/netperf/v270-keyval.txt"),
        include_str!("../../fixtures/results/netperf/v270-udp-stream.txt"),
        include_str!("../../fixtures/results/netperf/v270-tcp-stream-interim.txt"),
        include_str!("../../fixtures/results/linerate/loopback.jsonl"),
    ]
    .into_iter()
    .map(|file| file.as_bytes().to_vec())
    .collect()
}
