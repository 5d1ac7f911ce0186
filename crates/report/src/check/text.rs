//! The answer for a terminal.

use linerate_model::import::{Claim, ClaimScope, Unread};
use linerate_theory::claims::{
    Acceptance, AcceptanceCriterion, AcceptanceState, Context, Judged, Judgement, PossibleCause, Reason,
    Verdict, name_and_unit,
};
use linerate_units::{Bitrate, Bytes, Ratio, Span};

use super::{CheckReport, JudgedReading, JudgedTest, Judgements};
use crate::page::{Page, TextStyle};

/// Columns of the margin, the name of a figure, the figure as printed, and the verdict.
const WIDTHS: [usize; 4] = [2, 13, 16, 12];
/// Columns of the margin and of a label under a figure.
const LABEL_WIDTHS: [usize; 2] = [2, 13];

/// The whole answer; `all` includes possible intervals.
#[must_use]
pub fn text(mut page: Page, answer: &CheckReport, all: bool) -> String {
    if let Some(path) = described(&answer.context) {
        page.remark(0, TextStyle::Plain, &path);
    }
    for input in answer.inputs.iter().filter(|input| input.failure.is_none()) {
        one_input(&mut page, input, all);
    }
    if answer.lines().next().is_some() {
        summary(&mut page, answer);
    }
    page.into_text()
}

/// The stated path in one line.
fn described(context: &Context) -> Option<String> {
    let bytes = |value: f64| format!("{value:.0}");
    let size = |value: f64| Bytes::new(value as u64).to_string();
    let mut parts = Vec::new();
    parts.extend(context.link_bps.and_then(Bitrate::from_bps).map(|rate| format!("link of {rate}")));
    parts.extend(context.mtu_bytes.map(|mtu| format!("MTU {}", bytes(mtu))));
    parts.extend(context.mss_bytes.map(|payload| format!("segments of {} bytes", bytes(payload))));
    parts.extend(context.timestamps.filter(|on| !on).map(|_| "no TCP timestamps".to_owned()));
    parts.extend(context.rtt_s.and_then(Span::from_secs_f64).map(|rtt| format!("round trip {rtt}")));
    parts.extend(context.window_bytes.map(|held| format!("at most {} in flight", size(held))));
    parts.extend(context.loss.and_then(Ratio::new).map(|loss| format!("loss of {loss}")));
    parts.extend(context.streams.map(|streams| format!("{streams} stream(s)")));
    parts.extend(context.distance_m.map(|metres| format!("{:.0} km", metres / 1000.0)));
    (!parts.is_empty()).then(|| format!("Stated path: {}.", parts.join(", ")))
}

fn one_input(page: &mut Page, input: &Judgements, all: bool) {
    for reading in &input.readings {
        page.heading(&title(input, reading));
        for piece in &reading.unread {
            unread(page, piece);
        }
        for test in &reading.tests {
            one_test(page, test, all);
        }
    }
    if input.readings.is_empty() {
        page.heading(&plain(&input.name));
        page.remark(2, TextStyle::Faint, "no results in the file");
    }
}

fn title(input: &Judgements, reading: &JudgedReading) -> String {
    if reading.tool.is_empty() {
        return input.name.clone();
    }
    let version = reading.version.as_ref().map_or_else(String::new, |version| format!(" {version}"));
    plain(&format!("{}: {}{version}", input.name, reading.tool))
}

fn unread(page: &mut Page, piece: &Unread) {
    let column = piece.column.map_or_else(String::new, |column| format!(", column {column}"));
    let text = plain(&format!("line {}{column} could not be read: {}", piece.line, piece.why));
    page.remark(2, TextStyle::Warning, &text);
}

fn one_test(page: &mut Page, judged: &JudgedTest, all: bool) {
    if let Some(target) = &judged.test.target {
        let begun = judged.test.started_at.as_ref().map_or_else(String::new, |at| format!(", {at}"));
        page.remark(2, TextStyle::Plain, &plain(&format!("with {target}{begun}")));
    }
    let mut hidden = (0_usize, 0_usize);
    for (claim, line) in judged.lines() {
        let dull = claim.scope != ClaimScope::Total && line.verdict() == Verdict::Possible;
        if dull && !all {
            hidden = (hidden.0 + 1, hidden.1 + line.judgements.len());
        } else {
            one_line(page, claim, line);
        }
    }
    if hidden.0 > 0 {
        let text =
            format!("{} more lines with {} figures, all possible; --all shows them", hidden.0, hidden.1);
        page.remark(2, TextStyle::Faint, &text);
    }
    if let Some(error) = &judged.test.error {
        page.remark(2, TextStyle::Warning, &plain(&format!("the test ended with: {error}")));
    }
    if let Some(found) = &judged.acceptance {
        acceptance(page, found);
    }
}

/// Whether the test is what an acceptance rule asks for.
fn acceptance(page: &mut Page, found: &Acceptance) {
    let (ink, outcome) = match found.state {
        AcceptanceState::Passed => (TextStyle::Good, "Accepted."),
        AcceptanceState::Missing => (TextStyle::Warning, "Not shown yet: something is missing."),
        AcceptanceState::Failed => (TextStyle::Bad, "Not accepted."),
    };
    page.remark(2, ink, outcome);
    for AcceptanceCriterion { state, text, .. } in &found.criteria {
        let ink = match state {
            AcceptanceState::Passed => TextStyle::Plain,
            AcceptanceState::Missing => TextStyle::Warning,
            AcceptanceState::Failed => TextStyle::Bad,
        };
        let cells = [(TextStyle::Plain, ""), (ink, state.name()), (TextStyle::Plain, text.as_str())];
        page.row(&cells, &LABEL_WIDTHS);
    }
}

fn one_line(page: &mut Page, claim: &Claim, line: &Judged) {
    let place = if claim.line > 0 { format!("line {}: ", claim.line) } else { String::new() };
    page.remark(2, TextStyle::Strong, &plain(&format!("{place}{}", claim.quote)));
    let mut dull = Vec::new();
    for (figure, judgement) in claim.figures.iter().zip(&line.judgements) {
        if judgement.verdict == Verdict::Possible
            && judgement.reasons.is_empty()
            && judgement.ceiling.is_none()
        {
            dull.push(name(judgement));
        } else {
            one_figure(page, &plain(&figure.printed), judgement);
        }
    }
    if !dull.is_empty() {
        page.row(
            &[(TextStyle::Plain, ""), (TextStyle::Plain, "possible"), (TextStyle::Faint, &dull.join(", "))],
            &LABEL_WIDTHS,
        );
    }
}

fn name(judgement: &Judgement) -> String {
    name_and_unit(judgement.quantity).0.replace('_', " ")
}

fn one_figure(page: &mut Page, printed: &str, judgement: &Judgement) {
    let ink = ink(judgement.verdict);
    let ceiling = judgement.ceiling.as_ref().map_or_else(String::new, |ceiling| {
        let rate = Bitrate::from_bps(ceiling.bitrate_bps).map_or_else(String::new, |rate| rate.to_string());
        // A share cannot exceed 1.
        let part = judgement.share.map_or_else(|| "more than".to_owned(), |share| format!("{share} of"));
        format!("{part} {rate}: {}", ceiling.because)
    });
    let name = name(judgement);
    let cells = [
        (TextStyle::Plain, ""),
        (TextStyle::Plain, name.as_str()),
        (TextStyle::Strong, printed),
        (ink, judgement.verdict.name()),
        (TextStyle::Faint, ceiling.as_str()),
    ];
    page.row(&cells, &WIDTHS);
    for reason in &judgement.reasons {
        one_reason(page, reason);
    }
}

fn one_reason(page: &mut Page, reason: &Reason) {
    let ink = if reason.verdict > Verdict::AtCeiling { TextStyle::Plain } else { TextStyle::Faint };
    page.row(&[(TextStyle::Plain, ""), (TextStyle::Plain, ""), (ink, &reason.text)], &LABEL_WIDTHS);
    for (number, cause) in reason.causes.iter().enumerate() {
        one_cause(page, number, cause);
    }
}

fn one_cause(page: &mut Page, number: usize, cause: &PossibleCause) {
    let label = if number == 0 { "likeliest" } else { "or" };
    let text = format!("{}; {}", cause.text, cause.remedy);
    page.row(&[(TextStyle::Plain, ""), (TextStyle::Faint, label), (TextStyle::Plain, &text)], &LABEL_WIDTHS);
}

fn ink(verdict: Verdict) -> TextStyle {
    match verdict {
        Verdict::Possible => TextStyle::Plain,
        Verdict::AtCeiling => TextStyle::Good,
        Verdict::Doubtful => TextStyle::Warning,
        Verdict::Impossible => TextStyle::Bad,
    }
}

fn summary(page: &mut Page, answer: &CheckReport) {
    let counts = answer.counts();
    let parts = [
        (counts.impossible, "impossible", Verdict::Impossible),
        (counts.doubtful, "doubtful", Verdict::Doubtful),
        (counts.at_ceiling, "exactly at a ceiling", Verdict::AtCeiling),
        (counts.possible, "possible", Verdict::Possible),
    ];
    let named: Vec<String> = parts
        .iter()
        .filter(|(count, _, _)| *count > 0)
        .map(|(count, word, _)| format!("{count} {word}"))
        .collect();
    let figures = if counts.all() == 1 { "1 figure" } else { &format!("{} figures", counts.all()) };
    let worst =
        parts.iter().find(|(count, _, _)| *count > 0).map_or(Verdict::Possible, |(_, _, verdict)| *verdict);
    page.heading("Summary");
    page.remark(2, ink(worst), &format!("{figures}: {}.", named.join(", ")));
}

/// A text from a file without control characters, which could move the terminal's cursor.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c == '\t' { ' ' } else { c }).filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{of_files, of_rate};
    use super::*;
    use linerate_theory::claims::AcceptanceRule;

    fn shown(answer: &CheckReport, all: bool) -> String {
        text(Page::new(100, false), answer, all)
    }

    #[test]
    fn an_impossible_line_is_quoted_with_ceiling_cause_and_remedy() {
        let page = shown(&of_files(987e6), false);
        for part in [
            "run.txt: iperf3 3.12",
            "line 6, column 12 could not be read",
            "line 7: [ 5] 0.00-10.00 sec 987 Mbits/sec",
            "impossible",
            "exceeds the 949.285 Mb/s that the link carries",
            "applied once too often",
            "2 more lines with 4 figures, all possible",
            "1 impossible, 5 possible",
        ] {
            assert!(page.contains(part), "{part} in\n{page}");
        }
        assert!(shown(&of_files(987e6), true).contains("line 5:"));
    }

    #[test]
    fn what_an_acceptance_rule_asks_for_is_listed_with_what_the_test_shows() {
        let page = shown(&of_files(987e6).accepted_by(&AcceptanceRule::GIGABIT), false);
        assert!(page.contains("Not accepted.\n"), "{page}");
        for (state, part) in [("failed", "impossible"), ("missing", "retransmit")] {
            let line = page.lines().find(|line| line.trim_start().starts_with(state)).unwrap_or_default();
            assert!(line.contains(part), "{state}: {line} in\n{page}");
        }
        assert!(!shown(&of_files(987e6), false).contains("ccepted"));
    }

    #[test]
    fn a_known_ceiling_is_named() {
        let page = shown(&of_rate(941.48e6, 1e4, "941.48M"), false);
        assert!(
            page.contains("Exactly the 941.482 Mb/s of a full link (1000BASE-T, MTU 1500, IPv4,"),
            "{page}"
        );
        assert!(page.contains("1 figure: 1 exactly at a ceiling."), "{page}");
    }

    #[test]
    fn a_file_moves_no_cursor() {
        assert_eq!(plain("a\u{1b}[2Jb\tc\u{9b}d"), "a[2Jb cd");
    }
}
