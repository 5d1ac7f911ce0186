//! The reference page of the file format.

use std::fmt::Write;

use super::bundled;
use super::direction_keys::WAY;
use super::keys::{HEAD, HOST, LINK, SWITCH, TopologyKey};

const INTRODUCTION: &str = "# Topology files\n
A topology file is a TOML file that describes a network for `linerate lab` to emulate. This page is written by
`cargo xtask gen`.\n
A file describes hosts, switches and links. A link joins two nodes and has two directions. Keys in `[link.NAME]` apply to
both directions, and keys in `[link.NAME.from.NODE]` only to the direction away from that node. A host has one port. A
network has no loops; parallel links are one link with `members`.\n
Names consist of lower-case letters, digits and hyphens, at most 32 characters.\n
## Values\n
| kind | written as |
|---|---|
| rate | `\"1G\"`, `\"2.5Gb/s\"`, `100e6`: decimal prefixes, a bare number is bit/s; 1 kb/s to 1 Tb/s |
| amount of memory | `\"64K\"` and `\"64KiB\"` are 65536 bytes, `\"64kB\"` is 64000, a bare number is bytes |
| time | `\"25ms\"`, `\"10us\"`, `\"1.5s\"`, a bare number is seconds; at most an hour |
| probability | `1e-4` or `\"0.01%\"` |
| address | `\"10.77.0.1/24\"`: all hosts are in the same network |
| parameter | `\"$buffer\"` is the value of `buffer` in `[parameters]` |
";

/// The bundled file that the page shows.
const EXAMPLE: &str = "long-haul";

const SETTING: &str = "
## Overriding values\n
`--set KEY=VALUE` replaces a value of the file. `KEY` is a parameter (`buffer=36MB`), or the path to any key
(`link.lag.delay=5ms`, `link.lag.from.s2.loss=1e-3`, `host.a.congestion=reno`, `seed=7`). Lists are written with commas. The
last setting of a key wins. A setting of a whole link also replaces the values that the file gives for one of its directions.\n
While a lab runs, `linerate lab set link.NAME KEY=VALUE` (or `link.NAME.from.NODE`) changes the keys that are marked live below.
A rate of `none` removes the limit.
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
    section(&mut page, "`[host.NAME]`", "All keys are optional.", HOST);
    section(&mut page, "`[switch.NAME]`", "All keys are optional.", SWITCH);
    section(&mut page, "`[link.NAME]`", "Keys of the link as a whole.", LINK);
    section(
        &mut page,
        "`[link.NAME]` and `[link.NAME.from.NODE]`",
        "Keys of a direction, in the order in which a packet passes the stages: policer, queue, shaper, \
         line, loss, duplication, reordering, delay. Only one of `loss`, `loss_every`, `loss_times` and \
         `loss_burst` can be set.",
        WAY,
    );
    page.push_str(
        "\n## Bundled topologies\n\nUse the name instead of a file.\n\n| name | description |\n|---|---|\n",
    );
    for bundled in bundled() {
        let _ = writeln!(page, "| `{}` | {} |", bundled.name, bundled.about);
    }
    page
}

fn section<T>(page: &mut String, title: &str, text: &str, keys: &[TopologyKey<T>]) {
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
