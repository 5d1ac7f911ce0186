//! The reference page of the file format.

use std::fmt::Write;

use crate::assertion::{Dimension, QUANTITIES};
use crate::bundled;
use crate::keys::{ASSERT, AXIS, FLOW, HEAD, HOST, LAB, PlanKey, SETTINGS};
use crate::knobs::{knobs, series_knobs};

const INTRODUCTION: &str = "# Plan files\n
A plan file is a TOML file that describes what to measure between which hosts, in which combinations, how often and in
which order. `linerate plan` checks and lists it. This page is written by `cargo xtask gen`.\n
A plan has hosts (`[host.NAME]`, or those of a topology in `[lab]`), flows between them (`[flow.NAME]`), knobs of the test
(`[test]`) and axes (`[axis]`). Every combination of the axes' values is a point, and every repetition of a point is a trial.
In a trial all flows run at the same time, unless `at` or `after` delays them.\n
Names consist of lower-case letters, digits and hyphens, at most 32 characters. Names of axes have underscores instead of
hyphens.\n
## Values\n
| kind | written as |
|---|---|
| rate | `\"1G\"`, `\"2.5Gb/s\"`, `100e6`: decimal prefixes, a bare number is bit/s |
| amount of memory | `\"64K\"` and `\"64KiB\"` are 65536 bytes, `\"64kB\"` is 64000, a bare number is bytes |
| time | `\"25ms\"`, `\"10us\"`, `\"1.5s\"`, a bare number is seconds |
| share | `1e-4` or `\"0.01%\"` |\n
Settings override each other in this order, strongest first: `--set` on the command line, an axis over a flow's knob, the
flow's own `test`, an axis over a knob of `test`, `[test]`, the default. `\"default\"` as the value of a knob unsets it.
";

/// The bundled file shown on the page.
const EXAMPLE: &str = "bufferbloat";

const AXES: &str = "
`axis.length = [\"64K\", \"1M\"]` is short for `[axis.length]` with `values`. A range has `from`, `to` and either
`step`, `factor` or `points`. An axis with `pass` is searched: its largest value is tried first, then the range is halved
until it is no wider than `resolution`. A plan can search only one axis.\n";

const ASSERTIONS: &str = "
An assertion compares two sides with `>=`, `<=`, `>`, `<`, `==` or `!=`. A side contains quantities, numbers with units, `+`,
`-`, `*`, `/` and parentheses. A number in front of a quantity is a factor (`0.98 ceiling`). Both sides must be of the same
kind, for example two rates. `point(streams=1).goodput` is the quantity at the point that differs only in these axes.
`run(\"name\").goodput` is the quantity at the same point of another run. If a quantity was not measured, the assertion fails
and names it.\n";

/// The reference page, in Markdown.
#[must_use]
pub fn reference() -> String {
    let mut page = INTRODUCTION.to_owned();
    if let Some(example) = bundled().iter().find(|bundled| bundled.name == EXAMPLE) {
        // Writing to a String does not fail.
        let _ = write!(page, "\n## Example\n\nThe bundled `{EXAMPLE}`:\n\n```toml\n{}```\n", example.text);
    }
    section(&mut page, "Keys of the file", "Outside any table.", &[HEAD]);
    page.push_str(
        "\n`[notes]` contains texts that are stored with the results, for example the name of a \
                   device.\n",
    );
    section(
        &mut page,
        "`[host.NAME]`",
        "Address of a host, and its settings for the duration of a trial. The settings can be swept.",
        &[HOST, SETTINGS],
    );
    section(&mut page, "`[lab]`", "The emulated network.", &[LAB]);
    section(
        &mut page,
        "`[flow.NAME]`",
        "A plan with two hosts needs no flows: the default is one flow from the first host to the second.",
        &[FLOW],
    );
    section(&mut page, "`[axis.NAME]`", "Values to sweep or search.", &[AXIS]);
    page.push_str(AXES);
    section(&mut page, "Assertions", "Keys of an assertion that is written as a table.", &[ASSERT]);
    page.push_str(ASSERTIONS);
    page.push_str("\n| quantity | kind | meaning |\n|---|---|---|\n");
    for quantity in QUANTITIES {
        let is = match quantity.dimension {
            Dimension::Plain => "a number",
            other => other.name(),
        };
        let _ = writeln!(page, "| `{}` | {is} | {} |", quantity.name, quantity.help);
    }
    page.push_str("\n## Knobs of `[test]`\n\nThe knobs of `linerate test`.\n\n| knob | value | meaning |\n|---|---|---|\n");
    for knob in knobs() {
        let _ = writeln!(page, "| `{}` | {} | {} |", knob.name, knob.kind.describe(), knob.help);
    }
    page.push_str(
        "\n## Knobs of `series`\n\nThe knobs of `linerate sweep`.\n\n| knob | value | meaning |\n|---|---|---|\n",
    );
    for knob in series_knobs() {
        let _ = writeln!(page, "| `{}` | {} | {} |", knob.name, knob.kind.describe(), knob.help);
    }
    page.push_str(
        "\n## Bundled plans\n\nUse the name instead of a file.\n\n| name | description |\n|---|---|\n",
    );
    for bundled in bundled() {
        let _ = writeln!(page, "| `{}` | {} |", bundled.name, bundled.about);
    }
    page
}

/// Appends a section with the keys of some tables to a page.
pub fn section(page: &mut String, title: &str, text: &str, tables: &[&[PlanKey]]) {
    let _ =
        write!(page, "\n## {title}\n\n{text}\n\n| key | value | default | meaning |\n|---|---|---|---|\n");
    for key in tables.iter().flat_map(|keys| keys.iter()) {
        // Values are shown as code, descriptions as text.
        let written = serde_json::from_str::<serde_json::Value>(key.default).is_ok();
        let default = if written { format!("`{}`", key.default) } else { key.default.to_owned() };
        let _ = writeln!(page, "| `{}` | {} | {default} | {} |", key.name, key.kind.describe(), key.help);
    }
}
