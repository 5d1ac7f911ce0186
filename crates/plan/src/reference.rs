//! The reference page of the file format.

use std::fmt::Write;

use crate::assertion::{Dimension, QUANTITIES};
use crate::bundled;
use crate::keys::{ASSERT, AXIS, FLOW, HEAD, HOST, Key, LAB, SETTINGS};
use crate::knobs::{knobs, series_knobs};

const INTRODUCTION: &str = "# Plan files\n
What shall be measured between which hosts, in which combinations, how often and in which order, as a TOML file that
`linerate plan` checks and lists. Written by `cargo xtask gen`.\n
A plan has hosts (`[host.NAME]`, or those of a topology in `[lab]`), flows between them (`[flow.NAME]`), knobs of the test
(`[test]`) and axes (`[axis]`). Every combination of the axes' values is a point, every repeat of a point a trial. In a trial
the flows run at once, unless `at` or `after` say otherwise.\n
Names have small letters, digits and hyphens, at most 32; those of axes have underscores instead of hyphens.\n
## Values\n
| kind | written as |
|---|---|
| rate | `\"1G\"`, `\"2.5Gb/s\"`, `100e6`: decimal prefixes, a bare number is bit/s |
| amount of memory | `\"64K\"` and `\"64KiB\"` are 65536 bytes, `\"64kB\"` is 64000, a bare number is bytes |
| time | `\"25ms\"`, `\"10us\"`, `\"1.5s\"`, a bare number is seconds |
| share | `1e-4` or `\"0.01%\"` |\n
What holds wins in this order: `--set` of the command line, an axis over a flow's knob, the flow's own `test`, an axis over a
knob of `test`, `[test]`, the default. `\"default\"` as the value of a knob takes it away.
";

/// The bundled file shown on the page.
const EXAMPLE: &str = "bufferbloat";

const AXES: &str = "
`axis.length = [\"64K\", \"1M\"]` is short for `[axis.length]` with `values`. A range has `from`, `to` and one of `step`, `factor`
and `points`. An axis with `pass` is searched: its largest value is tried first, then the range is halved until it is no
wider than `resolution`. A plan searches one axis at most.\n";

const ASSERTIONS: &str = "
An assertion compares two sides with `>=`, `<=`, `>`, `<`, `==` or `!=`. A side has quantities, numbers with units, `+`, `-`,
`*`, `/` and parentheses; a number before a quantity is a factor (`0.98 ceiling`). A rate is compared with a rate and a time
with a time. `point(streams=1).goodput` is the quantity at the point that differs in these axes only;
`run(\"name\").goodput` that of the same point in another run. What was not measured makes an assertion fail, by name.\n";

/// The reference page, in Markdown.
#[must_use]
pub fn reference() -> String {
    let mut page = INTRODUCTION.to_owned();
    if let Some(example) = bundled().iter().find(|bundled| bundled.name == EXAMPLE) {
        // Writing to a String does not fail.
        let _ = write!(page, "\n## Example\n\nThe bundled `{EXAMPLE}`:\n\n```toml\n{}```\n", example.text);
    }
    section(&mut page, "Keys of the file", "Outside any table.", &[HEAD]);
    page.push_str("\n`[notes]` holds texts that are kept with the results, as the name of a device.\n");
    section(
        &mut page,
        "`[host.NAME]`",
        "Where it is, and what is set there for the time of a trial. The settings may be swept.",
        &[HOST, SETTINGS],
    );
    section(&mut page, "`[lab]`", "The emulated network.", &[LAB]);
    section(
        &mut page,
        "`[flow.NAME]`",
        "A plan with two hosts may leave flows out: then one goes from the first to the second.",
        &[FLOW],
    );
    section(&mut page, "`[axis.NAME]`", "What is swept or searched.", &[AXIS]);
    page.push_str(AXES);
    section(&mut page, "Assertions", "The keys of an assertion that is a table.", &[ASSERT]);
    page.push_str(ASSERTIONS);
    page.push_str("\n| quantity | is | meaning |\n|---|---|---|\n");
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
        "\n## Bundled\n\nThe names may stand in place of a file.\n\n| name | what it is |\n|---|---|\n",
    );
    for bundled in bundled() {
        let _ = writeln!(page, "| `{}` | {} |", bundled.name, bundled.about);
    }
    page
}

fn section(page: &mut String, title: &str, text: &str, tables: &[&[Key]]) {
    let _ =
        write!(page, "\n## {title}\n\n{text}\n\n| key | value | default | meaning |\n|---|---|---|---|\n");
    for key in tables.iter().flat_map(|keys| keys.iter()) {
        // Values are shown as code, descriptions as text.
        let written = serde_json::from_str::<serde_json::Value>(key.default).is_ok();
        let default = if written { format!("`{}`", key.default) } else { key.default.to_owned() };
        let _ = writeln!(page, "| `{}` | {} | {default} | {} |", key.name, key.kind.describe(), key.help);
    }
}
