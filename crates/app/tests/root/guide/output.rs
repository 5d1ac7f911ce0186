//! Comparison of printed lines with those of a page.

use super::page::OutputRule;
use crate::support::form;

/// In a page, any number of lines.
const OMISSION: &str = "…";

/// Units that depend on the value before them, each kind with its sign.
const UNITS: &[(&str, &[&str])] = &[
    ("U", &["b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s"]),
    ("S", &["B", "KiB", "MiB", "GiB", "TiB"]),
    ("T", &["ns", "us", "ms", "s"]),
];

/// The words of a line, without figures, their units, and names of runs.
pub(super) fn words(line: &str) -> String {
    let without_names: Vec<String> = line
        .split_inclusive(|letter: char| !letter.is_ascii_alphanumeric())
        .map(|part| {
            let end = part.trim_end_matches(|letter: char| !letter.is_ascii_alphanumeric());
            let is_name = matches!(end.len(), 4 | 8)
                && end.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
                && end.bytes().any(|byte| byte.is_ascii_digit());
            if is_name { part.replacen(end, "0", 1) } else { part.to_owned() }
        })
        .collect();
    let form = form(&without_names.concat());
    let mut words: Vec<&str> = Vec::new();
    for word in form.split(' ') {
        let bare = word.trim_end_matches([',', ';', ')', '.']);
        let kind = UNITS.iter().find(|(_, units)| units.contains(&bare));
        let after_figure = words.last().is_some_and(|last| last.ends_with('#'));
        match kind.filter(|_| after_figure) {
            Some((kind, _)) => words.push(kind),
            None => words.push(word),
        }
    }
    words.join(" ")
}

/// Where each shown line is in the printed ones; `None` for an omission.
///
/// # Errors
/// The first shown line that is not there.
pub(super) fn align(
    shown: &[String],
    printed: &[String],
    rule: OutputRule,
) -> Result<Vec<Option<usize>>, String> {
    let same = |shown: &str, printed: &str| match rule {
        OutputRule::Exact => shown == printed.trim_end(),
        OutputRule::Figures | OutputRule::Measured | OutputRule::Example => words(shown) == words(printed),
    };
    let mut places = Vec::new();
    let mut next = 0;
    let mut gap = false;
    for line in shown {
        if line.trim() == OMISSION {
            gap = true;
            places.push(None);
            continue;
        }
        let reach = if gap { printed.len() } else { printed.len().min(next + 1) };
        let found = (next..reach).find(|at| same(line, &printed[*at]));
        let at = found.ok_or_else(|| {
            let instead = printed.get(next).map_or("the end", String::as_str);
            format!("shown:   {line}\nprinted: {instead}")
        })?;
        places.push(Some(at));
        next = at + 1;
        gap = false;
    }
    if !gap && !shown.is_empty() && next < printed.len() {
        return Err(format!("shown:   the end\nprinted: {}", printed[next]));
    }
    Ok(places)
}

#[test]
fn only_figures_units_and_names_of_runs_may_differ() {
    assert_eq!(
        words("download  95.47 Mb/s  at 10:02, run 3f2a"),
        words("download 1.2 Gb/s at 11:15, run 77b1")
    );
    assert_eq!(words("p50 45.7 us (100 probes)"), words("p50 1.2 ms (7 probes)"));
    assert_ne!(words("download 95 Mb/s"), words("upload 95 Mb/s"));
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let printed = lines("a 1\nb 2\nc 3\nd 4");
    assert_eq!(align(&lines("a 9\n…\nd 9"), &printed, OutputRule::Figures), Ok(vec![Some(0), None, Some(3)]));
    assert!(align(&lines("a 9\nd 9"), &printed, OutputRule::Figures).is_err());
    assert!(align(&lines("a 1\nb 2"), &printed, OutputRule::Exact).is_err());
    assert!(align(&lines("a 9\n…"), &printed, OutputRule::Exact).is_err());
}
