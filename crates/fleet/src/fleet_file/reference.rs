//! The reference page of a fleet's file, and its schema.

use std::fmt::Write;

use linerate_plan::file_keys::{NAME_PATTERN, object, properties, section, test_schema};
use serde_json::{Value, json};

use super::keys::{ALARM, HEAD, HOST, MESH, NOTIFY, SHARED};

const INTRODUCTION: &str = "# Fleet files\n
A fleet file is a TOML file that describes the hosts of a fleet, what they share, and the meshes between them.
`linerate fleet check` checks it and shows what it means, `linerate fleet run` carries it out. This page is written by
`cargo xtask gen`. Values are written as in [plan files](plan.md).\n
Names consist of lower-case letters, digits and hyphens, at most 32 characters.
";

const EXAMPLE: &str = r#"zone = "Europe/Berlin"

[host.berlin]
address = "berlin.example.net"
labels = ["core"]

[host.potsdam]
address = "potsdam.example.net"
labels = ["core"]

[host.rome]
address = "rome.example.net"
labels = ["edge"]

# Tests from Berlin and Potsdam to other places share one uplink, so only one of them runs at a time.
[link.uplink]
hosts = ["berlin", "potsdam"]

[mesh.all]
every = "2h"
jitter = "10m"
quiet = ["Mon-Fri 08:00-18:00"]
test = { upload = true, duration = "5s" }
alarm = { below = "900M", change = "20%" }

[notify]
mail = ["noc@example.net"]
"#;

/// The reference page, in Markdown.
#[must_use]
pub fn reference() -> String {
    let mut page = INTRODUCTION.to_owned();
    // Writing to a String does not fail.
    let _ = write!(page, "\n## Example\n\n```toml\n{EXAMPLE}```\n");
    section(&mut page, "Keys of the file", "Outside any table.", &[HEAD]);
    section(&mut page, "`[host.NAME]`", "A host of the fleet.", &[HOST]);
    section(
        &mut page,
        "`[nic.NAME]`, `[link.NAME]`, `[lag.NAME]`, `[group.NAME]`",
        "What tests share besides their hosts. Exclusive tests, which are the default, use a NIC, link or LAG alone; \
         shared tests use one unit of its capacity.",
        &[SHARED],
    );
    section(&mut page, "`[mesh.NAME]`", "Tests between many pairs of hosts.", &[MESH]);
    section(&mut page, "`[mesh.NAME.alarm]`", "Limits of the results of a mesh.", &[ALARM]);
    section(&mut page, "`[notify]`", "Who is told about alarms, and about their end.", &[NOTIFY]);
    page
}

/// The JSON Schema of a fleet's file, draft 2020-12.
#[must_use]
pub fn schema() -> Value {
    let named = |shape: &str, about: &str| {
        json!({ "type": "object", "propertyNames": { "pattern": NAME_PATTERN },
            "additionalProperties": { "$ref": format!("#/$defs/{shape}") }, "description": about })
    };
    let mut top = properties(&[HEAD]);
    top.insert("host".to_owned(), named("host", "The hosts."));
    for (kind, about) in [
        ("nic", "Network interfaces that several hosts share."),
        ("link", "Links that several pairs share."),
        ("lag", "Links that are used as one."),
        ("group", "Hosts of which only some may measure at the same time."),
    ] {
        top.insert(kind.to_owned(), named("shared", about));
    }
    top.insert("mesh".to_owned(), named("mesh", "Tests between many pairs of hosts."));
    top.insert("notify".to_owned(), json!({ "$ref": "#/$defs/notify" }));
    let mut schema = object(&top);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("linerate fleet");
    schema["description"] = json!("The hosts of a fleet, what they share, and the meshes between them.");
    let mut host = object(&properties(&[HOST]));
    host["required"] = json!(["address"]);
    schema["$defs"] = json!({
        "host": host,
        "shared": object(&properties(&[SHARED])),
        "mesh": object(&properties(&[MESH])),
        "alarm": object(&properties(&[ALARM])),
        "notify": object(&properties(&[NOTIFY])),
        "test": test_schema(),
    });
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_page_is_a_fleet() {
        let fleet = crate::tests_support::inventory(EXAMPLE);
        assert_eq!(fleet.mesh_schedules().len(), 6);
    }

    #[test]
    fn the_schema_knows_every_key_of_the_example() {
        let schema = schema();
        let mesh = &schema["$defs"]["mesh"]["properties"];
        for key in ["every", "jitter", "quiet", "test", "alarm"] {
            assert!(mesh[key]["description"].is_string(), "{key}");
        }
        assert!(schema["$defs"]["test"]["properties"]["duration"].is_object());
    }
}
