//! The packages of the workspace and their dependencies, as cargo reads them.

use serde_json::Value;

use crate::cargo;

/// One line of a `[dependencies]` table, of any kind (normal, development, build).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edge {
    /// The dependent crate: `engine` for the package `linerate-engine`, `app` for `linerate`.
    pub(crate) from: String,
    /// The crate it depends on, or the name of an external package.
    pub(crate) to: String,
    /// Whether `to` is a package of this workspace.
    pub(crate) inside: bool,
}

/// Asks cargo for the workspace's packages.
pub(crate) fn read_edges() -> Result<Vec<Edge>, String> {
    let output = cargo::command()
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .output()
        .map_err(|e| format!("cannot run cargo metadata: {e}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata failed:\n{}", String::from_utf8_lossy(&output.stderr)));
    }
    let document =
        serde_json::from_slice(&output.stdout).map_err(|e| format!("cargo metadata is not JSON: {e}"))?;
    Ok(edges_of(&document))
}

/// The edges in a document of `cargo metadata`.
pub(crate) fn edges_of(document: &Value) -> Vec<Edge> {
    let mut edges = Vec::new();
    for package in list(document, "packages") {
        for dependency in list(package, "dependencies") {
            edges.push(Edge {
                from: crate_of(name(package)),
                to: crate_of(name(dependency)),
                inside: dependency["path"].is_string(),
            });
        }
    }
    edges
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn name(value: &Value) -> &str {
    value["name"].as_str().unwrap_or_default()
}

fn crate_of(package: &str) -> String {
    match package {
        "linerate" => "app".to_owned(),
        other => other.strip_prefix("linerate-").unwrap_or(other).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_crates_and_distinguishes_internal_from_external_ones() {
        let document = serde_json::json!({"packages": [
            {"name": "linerate", "dependencies": [{"name": "linerate-sock", "path": "crates/sock"}, {"name": "clap"}]},
        ]});
        let edge = |to: &str, inside| Edge { from: "app".to_owned(), to: to.to_owned(), inside };
        assert_eq!(edges_of(&document), [edge("sock", true), edge("clap", false)]);
    }

    #[test]
    fn cargo_answers_for_this_workspace() {
        let edges = read_edges().unwrap();
        assert!(edges.iter().any(|edge| edge.from == "app" && edge.to == "model" && edge.inside));
    }
}
