//! Output selectors: the values that `-o`, `-O` and `-k` can print, and how they print them.

mod table;

use super::figures::NetperfReport;
use super::options::Selection;

pub(super) use table::ALL;

/// Most blocks of a selection.
pub(super) const MAX_BLOCKS: usize = 4;

/// Most selectors of a selection: more than there are, and few enough for a line.
const MAX_SELECTED: usize = 1000;

/// What a selector needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SelectorNeeds {
    /// Nothing special.
    Nothing,
    /// The times of single transactions.
    Statistics,
    /// The server's algorithm for congestion control.
    RemoteCongestion,
}

/// A value that can be selected.
#[derive(Debug)]
pub(super) struct Selector {
    /// Its name.
    pub(super) name: &'static str,
    /// The lines of its heading.
    pub(super) heading: &'static [&'static str],
    /// Its value as text; absent if there is none.
    pub(super) value: fn(&NetperfReport<'_>) -> Option<String>,
    pub(super) needs: SelectorNeeds,
}

impl PartialEq for Selector {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// The selector with a name, in any case.
fn named(name: &str) -> Option<&'static Selector> {
    ALL.iter().find(|selector| selector.name.eq_ignore_ascii_case(name))
}

/// The selector with a name or a heading, as files may have them.
fn described(text: &str) -> Option<&'static Selector> {
    named(text).or_else(|| ALL.iter().find(|selector| selector.heading.join(" ").eq_ignore_ascii_case(text)))
}

/// Whether the argument of `-o`, `-O` or `-k` is a list, and not the name of a file.
pub(super) fn is_list(argument: &str) -> bool {
    argument.eq_ignore_ascii_case("all") || argument.contains([',', ';']) || named(argument).is_some()
}

/// Parses a list: blocks separated by semicolons, selectors by commas or blanks.
///
/// # Errors
/// A selector that does not exist.
pub(super) fn of_list(list: &str) -> Result<Selection, String> {
    if list.eq_ignore_ascii_case("all") {
        return Ok(everything());
    }
    let lines = list.split(';').map(|block| block.split([',', ' ']));
    blocks(lines.map(|block| block.filter(|name| !name.is_empty()).collect()), named)
}

/// Parses a file: a block on each line, selectors separated by commas.
///
/// # Errors
/// A selector that does not exist.
pub(super) fn of_file(text: &str) -> Result<Selection, String> {
    let lines = text.lines().take(MAX_BLOCKS).map(|line| line.split(','));
    blocks(lines.map(|line| line.map(str::trim).filter(|name| !name.is_empty()).collect()), described)
}

fn blocks<'a>(
    lines: impl Iterator<Item = Vec<&'a str>>,
    find: fn(&str) -> Option<&'static Selector>,
) -> Result<Selection, String> {
    let mut selection = Selection::new();
    for line in lines {
        if selection.len() == MAX_BLOCKS {
            return Err(format!("there are at most {MAX_BLOCKS} blocks of output selectors"));
        }
        if line.len() > MAX_SELECTED {
            return Err(format!("a block has at most {MAX_SELECTED} output selectors"));
        }
        let found = line
            .into_iter()
            .map(|name| find(name).ok_or_else(|| format!("there is no output selector '{name}'")));
        selection.push(found.collect::<Result<_, _>>()?);
    }
    Ok(selection)
}

/// Where the blocks of `all` begin.
const STARTS: [&str; MAX_BLOCKS] =
    ["SOCKET_TYPE", "LOCAL_CPU_UTIL", "LOCAL_SEND_THROUGHPUT", "LOCAL_SYSNAME"];

/// Everything, in four blocks.
fn everything() -> Selection {
    let mut selection = Selection::new();
    for selector in
        ALL.iter().filter(|selector| selector.name != "OUTPUT_NONE" && selector.name != "OUTPUT_END")
    {
        if STARTS.contains(&selector.name) {
            selection.push(Vec::new());
        }
        if let Some(block) = selection.last_mut() {
            block.push(selector);
        }
    }
    selection
}

/// What is selected by default.
pub(super) fn default(sends: bool, receives: bool, cpu: bool) -> Selection {
    let first = match (sends, receives) {
        (true, false) => "LSS_SIZE_END,RSR_SIZE_END,LOCAL_SEND_SIZE",
        (false, true) => "RSS_SIZE_END,LSR_SIZE_END,REMOTE_SEND_SIZE",
        _ => "LSS_SIZE_END,LSR_SIZE_END,RSR_SIZE_END,RSS_SIZE_END,REQUEST_SIZE,RESPONSE_SIZE",
    };
    let rate = "ELAPSED_TIME,THROUGHPUT,THROUGHPUT_UNITS";
    let of = |side: &str| {
        [
            "UTIL",
            "PERCENT_USER",
            "PERCENT_SYSTEM",
            "PERCENT_IOWAIT",
            "PERCENT_IRQ",
            "PERCENT_SWINTR",
            "METHOD",
        ]
        .map(|what| format!("{side}_CPU_{what}"))
        .join(",")
    };
    let cpu = if cpu {
        format!(",{},{},LOCAL_SD,REMOTE_SD,SD_UNITS", of("LOCAL"), of("REMOTE"))
    } else {
        String::new()
    };
    of_list(&format!("{first},{rate}{cpu}")).unwrap_or_default()
}

/// The names of all selectors, for `-o '?'`.
pub(super) fn names(separator: char) -> String {
    let names: Vec<&str> = ALL.iter().map(|selector| selector.name).collect();
    names.join(&separator.to_string()) + "\n"
}

/// One value a line.
pub(super) fn keyval(selection: &Selection, report: &NetperfReport<'_>) -> String {
    let line = |selector: &&'static Selector| {
        (selector.value)(report).map(|value| format!("{}={value}\n", selector.name))
    };
    selection.iter().flatten().filter_map(line).collect()
}

/// One line of headings and one of values.
pub(super) fn csv(selection: &Selection, report: &NetperfReport<'_>) -> String {
    if selection.first().is_none_or(Vec::is_empty) {
        return String::new();
    }
    let (mut heading, mut values) = (String::new(), String::new());
    for selector in selection.iter().flatten() {
        heading += &selector.heading.join(" ");
        heading.push(',');
        match (selector.value)(report) {
            Some(value) => values += &format!("{value},"),
            // netperf leaves a blank after a value that does not exist.
            None => values += ", ",
        }
    }
    heading.pop();
    values.pop();
    if report.options.headings { format!("{heading}\n{values}\n") } else { format!("{values}\n") }
}

/// Values in columns under four lines of headings, in blocks.
pub(super) fn human(selection: &Selection, report: &NetperfReport<'_>) -> String {
    let mut text = String::new();
    for (number, block) in selection.iter().enumerate().filter(|(_, block)| !block.is_empty()) {
        if number > 0 {
            text.push('\n');
        }
        let mut lines: [String; 5] = Default::default();
        for selector in block {
            let value = (selector.value)(report);
            let least = value.as_ref().map_or(0, |value| value.len() + 1);
            let width = selector.heading.iter().map(|line| line.len()).fold(least, usize::max);
            for (at, line) in lines.iter_mut().enumerate() {
                let cell = if at == 4 { value.as_deref() } else { selector.heading.get(at).copied() };
                *line += &format!("{:width$} ", cell.unwrap_or_default());
            }
        }
        let skipped = if report.options.headings { 0 } else { 4 };
        for line in &lines[skipped..] {
            text += line;
            text.push('\n');
        }
    }
    text
}
