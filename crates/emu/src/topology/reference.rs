//! The reference page of the file format.

use std::fmt::Write;

use super::bundled;
use super::direction_keys::WAY;
use super::keys::{HEAD, HOST, Key, LINK, SWITCH};

const INTRODUCTION: &str = "# Topology files\n
A network that `linerate lab` emulates, as a TOML file. Written by `cargo xtask gen`.\n
A file names hosts, switches and links. A link joins two nodes and has two directions; what stands in `[link.NAME]` holds
for both, what stands in `[link.NAME.from.NODE]` for the direction away from that node alone. A host has one port.
Networks have no loops; parallel lines are one link with `members`.\n
Names have small letters, digits and hyphens, at most 32.\n
## Values\n
| kind | written as |
|---|---|
| rate | `\"1G\"`, `\"2.5Gb/s\"`, `100e6`: decimal prefixes, a bare number is bit/s; 1 kb/s to 1 Tb/s |
| amount of memory | `\"64K\"` and `\"64KiB\"` are 65536 bytes, `\"64kB\"` is 64000, a bare number is bytes |
| time | `\"25ms\"`, `\"10us\"`, `\"1.5s\"`, a bare number is seconds; at most an hour |
| probability | `1e-4` or `\"0.01%\"` |
| address | `\"10.77.0.1/24\"`: all hosts are in one network |
| parameter | `\"$buffer\"` stands for what `[parameters]` declares as `buffer` |
";

/// The bundled file that the page shows.
const EXAMPLE: &str = "long-haul";

const SETTING: &str = "
## Setting values from outside\n
`--set KEY=VALUE` replaces what the file says. `KEY` is a parameter (`buffer=36MB`), or the path to any key
(`link.lag.delay=5ms`, `link.lag.from.s2.loss=1e-3`, `host.a.congestion=reno`, `seed=7`). Lists are written with commas. The
last setting of a key wins. A setting for a whole link also replaces what the file says for one direction of it.\n
While a lab runs, `linerate lab set link.NAME KEY=VALUE` (or `link.NAME.from.NODE`) changes the keys that are marked live below.
`none` as a rate takes the limit away.
";

/// The reference page, in Markdown.
#[must_use]
pub fn reference() -> String {
    let mut page = INTRODUCTION.to_owned();
    if let Some(example) = bundled().iter().find(|bundled| bundled.name == EXAMPLE) {
        // Writing to a String cannot fail.
        let _ = write!(page, "\n## Example\n\nThe bundled `{EXAMPLE}`:\n\n```toml\n{}```\n", example.text);
    }
    page.push_str(SETTING);
    section(&mut page, "Keys of the file", "Outside any table.", HEAD);
    section(&mut page, "`[host.NAME]`", "Nothing must be given.", HOST);
    section(&mut page, "`[switch.NAME]`", "Nothing must be given.", SWITCH);
    section(&mut page, "`[link.NAME]`", "What holds for the link as a whole.", LINK);
    section(
        &mut page,
        "`[link.NAME]` and `[link.NAME.from.NODE]`",
        "What a direction does, in the order in which a packet meets it: policer, queue, shaper, line, loss, duplicates, reordering, delay. Of \
         `loss`, `loss_every`, `loss_times` and `loss_burst` only one can hold.",
        WAY,
    );
    page.push_str(
        "\n## Bundled\n\nThe names may stand in place of a file.\n\n| name | what it is |\n|---|---|\n",
    );
    for bundled in bundled() {
        let _ = writeln!(page, "| `{}` | {} |", bundled.name, bundled.about);
    }
    page
}

fn section<T>(page: &mut String, title: &str, text: &str, keys: &[Key<T>]) {
    let _ = write!(
        page,
        "\n## {title}\n\n{text}\n\n| key | value | default | live | meaning |\n|---|---|---|---|---|\n"
    );
    for key in keys {
        // Literal values are formatted as code; descriptions in words are not.
        let written = serde_json::from_str::<serde_json::Value>(key.default).is_ok();
        let default = if written { format!("`{}`", key.default) } else { key.default.to_owned() };
        let live = if key.live { "yes" } else { "" };
        let _ = writeln!(
            page,
            "| `{}` | {} | {default} | {live} | {} |",
            key.name,
            key.kind.describe(),
            key.help
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_its_row() {
        let page = reference();
        let rows =
            |name: &str| page.lines().filter(|line| line.starts_with(&format!("| `{name}` |"))).count();
        for name in HEAD.iter().map(|key| key.name).chain(LINK.iter().map(|key| key.name)) {
            assert_eq!(rows(name), 1, "{name}");
        }
        for key in WAY.iter().filter(|key| key.name != "buffer") {
            assert_eq!(rows(key.name), 1, "{}", key.name);
        }
        assert_eq!(page.matches("```").count(), 2, "the example is there");
        assert_eq!(rows("buffer"), 2, "a link's and a switch's");
        assert!(page.lines().filter(|line| line.starts_with("| ")).all(|line| line.ends_with('|')));
    }
}
