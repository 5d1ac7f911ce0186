//! The document of `linerate doctor`: what a host can do, and which of its settings limit results.
//!
//! ```
//! use linerate_model::{CheckSection, CheckStatus, HostCheck, HostCheckup, JudgedPath};
//! use linerate_report::doctor::{DoctorDocument, text};
//! use linerate_report::page::Page;
//! use linerate_units::{Bitrate, Span};
//!
//! let sack = HostCheck::good("net.ipv4.tcp_sack", "0", "")
//!     .judged(CheckStatus::Bad, "each loss in a window costs a separate round trip, or a timeout")
//!     .with_remedy("sysctl -w net.ipv4.tcp_sack=1");
//! let checkup = HostCheckup {
//!     judged_for: JudgedPath { rate: Bitrate::default(), rtt: Span::from_ms(100), bdp: None },
//!     sections: vec![CheckSection { title: "TCP".to_owned(), checks: vec![sack] }],
//!     features: Vec::new(),
//!     calibration: None,
//! };
//! assert!(text(Page::new(80, false), &checkup, false).contains("$ sysctl -w net.ipv4.tcp_sack=1"));
//! let json = serde_json::to_string(&DoctorDocument::of(&checkup))?;
//! assert!(json.contains(r#""id":"net.ipv4.tcp_sack","status":"bad""#));
//! # Ok::<(), serde_json::Error>(())
//! ```

use std::collections::BTreeMap;

use linerate_model::{Calibration, CheckStatus, HostCheck, HostCheckup, KernelFeature};
use linerate_units::Bytes;
use serde::Serialize;

use crate::page::{Page, TextStyle};

/// Version of the document.
const SCHEMA: &str = "linerate.doctor/1";

/// The checks of a host.
#[derive(Debug, Serialize)]
pub struct DoctorDocument<'c> {
    schema: &'static str,
    judged_for: JudgedFor,
    checks: Vec<&'c HostCheck>,
    features: BTreeMap<&'c str, FeatureEntry<'c>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calibration: Option<&'c Calibration>,
}

#[derive(Debug, Serialize)]
struct JudgedFor {
    rate_bps: f64,
    rtt_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    bdp_bytes: Option<u64>,
}

#[derive(Debug, Serialize)]
struct FeatureEntry<'c> {
    available: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'c str>,
}

impl<'c> DoctorDocument<'c> {
    /// The document of a checkup.
    #[must_use]
    pub fn of(checkup: &'c HostCheckup) -> Self {
        let judged = checkup.judged_for;
        let feature = |found: &'c KernelFeature| {
            let entry = FeatureEntry { available: found.available, detail: found.detail.as_deref() };
            (found.name.as_str(), entry)
        };
        Self {
            schema: SCHEMA,
            judged_for: JudgedFor {
                rate_bps: judged.rate.bps(),
                rtt_ns: judged.rtt.as_ns(),
                bdp_bytes: judged.bdp.map(Bytes::get),
            },
            checks: checkup.checks().collect(),
            features: checkup.features.iter().map(feature).collect(),
            calibration: checkup.calibration.as_deref(),
        }
    }
}

/// The checks as text; `verbose` also explains good settings.
#[must_use]
pub fn text(mut page: Page, checkup: &HostCheckup, verbose: bool) -> String {
    let judged = checkup.judged_for;
    let count = |status| checkup.checks().filter(|check| check.status == status).count();
    let bdp = judged.bdp.map_or_else(String::new, |bdp| format!(", with a BDP of {bdp}"));
    page.remark(
        0,
        TextStyle::Plain,
        &format!(
            "{} good, {} to note, {} bad, for one flow of {} over {}{bdp}; change the path with --link and \
             --rtt.",
            count(CheckStatus::Good),
            count(CheckStatus::Note),
            count(CheckStatus::Bad),
            judged.rate,
            judged.rtt
        ),
    );
    let width = checkup.checks().map(|check| check.id.chars().count()).max().unwrap_or_default();
    for section in &checkup.sections {
        page.heading(&section.title);
        for check in &section.checks {
            show(&mut page, check, width, verbose);
        }
    }
    features(&mut page, &checkup.features);
    page.into_text()
}

fn show(page: &mut Page, check: &HostCheck, width: usize, verbose: bool) {
    let ink = match check.status {
        CheckStatus::Good => TextStyle::Good,
        CheckStatus::Note => TextStyle::Warning,
        CheckStatus::Bad => TextStyle::Bad,
    };
    let cells = [
        (TextStyle::Plain, ""),
        (ink, check.status.name()),
        (TextStyle::Plain, check.id.as_str()),
        (TextStyle::Strong, &check.value),
    ];
    page.row(&cells, &[0, 4, width]);
    if verbose || check.status != CheckStatus::Good {
        page.remark(8, TextStyle::Faint, &check.text);
    }
    if let Some(remedy) = &check.remedy {
        page.verbatim(8, &format!("$ {remedy}"));
    }
}

fn features(page: &mut Page, features: &[KernelFeature]) {
    page.heading("Kernel features");
    let width = features.iter().map(|feature| feature.name.chars().count()).max().unwrap_or_default();
    for feature in features {
        let (ink, word) = if feature.available { (TextStyle::Good, "yes") } else { (TextStyle::Faint, "no") };
        let detail = feature.detail.as_deref().unwrap_or_default();
        page.row(
            &[
                (TextStyle::Plain, ""),
                (ink, word),
                (TextStyle::Plain, &feature.name),
                (TextStyle::Faint, detail),
            ],
            &[0, 4, width],
        );
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use linerate_model::{CheckSection, JudgedPath};
    use linerate_units::{Bitrate, Span};

    use super::*;

    /// A host with one check of each status, and a foreign text in one of them.
    fn checkup() -> HostCheckup {
        let tcp = vec![
            HostCheck::good("net.ipv4.tcp_sack", "1", "several losses are repaired in one round trip"),
            HostCheck::good("net.ipv4.tcp_rmem", "6 MiB at most", "")
                .judged(CheckStatus::Bad, "the window is too small")
                .with_remedy("sysctl -w net.ipv4.tcp_rmem='4096 131072 33554432'"),
        ];
        let machine =
            vec![HostCheck::good("cpu.load", "2\u{1b}[2J", "").judged(CheckStatus::Note, "other programs")];
        let features = [("TCP_INFO", true, Some("232 bytes")), ("io_uring", false, None)];
        HostCheckup {
            judged_for: JudgedPath {
                rate: Bitrate::from_bps(1e9).unwrap(),
                rtt: Span::from_ms(21),
                bdp: Some(Bytes::new(2_625_000)),
            },
            sections: vec![
                CheckSection { title: "TCP".to_owned(), checks: tcp },
                CheckSection { title: "Machine".to_owned(), checks: machine },
            ],
            features: features
                .map(|(name, available, detail)| KernelFeature {
                    name: name.to_owned(),
                    available,
                    detail: detail.map(str::to_owned),
                })
                .into(),
            calibration: None,
        }
    }

    #[test]
    fn a_person_sees_what_is_wrong_with_its_remedy_and_good_settings_in_short() {
        let brief = text(Page::new(80, false), &checkup(), false);
        let (summary, sections) = brief.split_once("\n\n").unwrap();
        let summary = summary.replace('\n', " ");
        let counted = "1 good, 1 to note, 1 bad, for one flow of 1.000 Gb/s over 21 ms, with a BDP of 2.5";
        assert!(summary.starts_with(counted), "{summary}");
        expect![[r#"
            TCP
              good  net.ipv4.tcp_sack  1
              bad   net.ipv4.tcp_rmem  6 MiB at most
                    the window is too small
                    $ sysctl -w net.ipv4.tcp_rmem='4096 131072 33554432'

            Machine
              note  cpu.load           2?[2J
                    other programs

            Kernel features
              yes   TCP_INFO  232 bytes
              no    io_uring
        "#]]
        .assert_eq(sections);
        let verbose = text(Page::new(80, false), &checkup(), true);
        assert!(verbose.contains("several losses are repaired in one round trip"));
    }

    #[test]
    fn the_document_leaves_out_what_is_absent() {
        let checkup = checkup();
        let sack = r#"{"id":"net.ipv4.tcp_sack","status":"good","value":"1","text":"several losses are repaired in one round trip"}"#;
        let rmem = r#"{"id":"net.ipv4.tcp_rmem","status":"bad","value":"6 MiB at most","text":"the window is too small","remedy":"sysctl -w net.ipv4.tcp_rmem='4096 131072 33554432'"}"#;
        let load = r#"{"id":"cpu.load","status":"note","value":"2\u001b[2J","text":"other programs"}"#;
        let features =
            r#"{"TCP_INFO":{"available":true,"detail":"232 bytes"},"io_uring":{"available":false}}"#;
        let judged = r#"{"rate_bps":1000000000.0,"rtt_ns":21000000,"bdp_bytes":2625000}"#;
        assert_eq!(
            serde_json::to_string(&DoctorDocument::of(&checkup)).unwrap(),
            format!(
                r#"{{"schema":"linerate.doctor/1","judged_for":{judged},"checks":[{sack},{rmem},{load}],"features":{features}}}"#
            )
        );
    }
}
