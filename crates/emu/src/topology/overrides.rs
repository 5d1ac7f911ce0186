//! Settings of the command line that override those of a file.

use std::str::FromStr;

use linerate_config::{ConfigContent, ConfigTable, ConfigValue, Mistakes, SourcePosition, hint};

use super::direction_keys::LOSS_MODELS;
use super::keys::HEAD;

/// A setting as typed: `buffer=36MB` for a parameter that the file declares, `link.lag.delay=5ms`,
/// `link.lag.from.s2.loss=1e-3`, `host.a.congestion=reno`, `switch.s1.alpha=2` or `seed=7` for any key.
///
/// Later ones take precedence over earlier ones, and all of them over the file: one for a whole link also over
/// what the file sets for a single direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    typed: String,
    path: Vec<String>,
    value: String,
}

/// A text that is not a setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' does not have the form key=value (examples: buffer=36MB, link.ab.delay=5ms)")]
pub struct OverrideError(String);

impl FromStr for Override {
    type Err = OverrideError;

    fn from_str(typed: &str) -> Result<Self, OverrideError> {
        let wrong = || OverrideError(typed.to_owned());
        let (path, value) = typed.split_once('=').ok_or_else(wrong)?;
        let path: Vec<String> = path.trim().split('.').map(str::to_owned).collect();
        if path.iter().any(String::is_empty) {
            return Err(wrong());
        }
        Ok(Self { typed: typed.to_owned(), path, value: value.trim().to_owned() })
    }
}

/// Applies settings to a document.
pub(super) fn apply(document: &mut ConfigTable, overrides: &[Override], mistakes: &mut Mistakes) {
    for setting in overrides {
        let place = SourcePosition::Override(setting.typed.clone());
        let value = ConfigValue { at: place.clone(), content: ConfigContent::Typed(setting.value.clone()) };
        let path: Vec<&str> = setting.path.iter().map(String::as_str).collect();
        if let Err(text) = put(document, &path, value) {
            mistakes.add(&place, text);
        }
    }
}

fn put(document: &mut ConfigTable, path: &[&str], value: ConfigValue) -> Result<(), String> {
    match path {
        [name] if document.table("parameters").is_some_and(|declared| declared.get(name).is_some()) => {
            document.set(&["parameters", name], value);
        }
        [name] if HEAD.iter().any(|key| key.name == *name) => document.set(path, value),
        [kind @ ("host" | "switch" | "link"), name, rest @ ..] if !rest.is_empty() => {
            let Some(described) = document.table_mut(kind).and_then(|table| table.table_mut(name)) else {
                let known = names(document, kind);
                return Err(format!("there is no {kind} '{name}'{}", hint(name, known)));
            };
            match rest {
                ["sysctl", setting @ ..] if *kind == "host" && !setting.is_empty() => {
                    described.set(&["sysctl", &setting.join(".")], value);
                }
                _ if *kind == "link" => put_link(described, rest, value),
                _ => described.set(rest, value),
            }
        }
        _ => {
            let known = HEAD.iter().map(|key| key.name).chain(names(document, "parameters"));
            return Err(format!(
                "'{}' is neither a parameter of this file nor a key such as link.NAME.delay{}",
                path.join("."),
                hint(path[0], known)
            ));
        }
    }
    Ok(())
}

fn names<'d>(document: &'d ConfigTable, kind: &str) -> impl Iterator<Item = &'d str> {
    document.table(kind).into_iter().flat_map(|table| table.0.iter().map(|entry| entry.key.as_str()))
}

/// Applies a setting to a link, and removes settings that contradict it.
fn put_link(link: &mut ConfigTable, rest: &[&str], value: ConfigValue) {
    if let ["from", node, key, ..] = rest
        && let Some(direction) = link.table_mut("from").and_then(|from| from.table_mut(node))
    {
        remove_other_models(direction, key);
    }
    if rest[0] != "from" {
        remove_other_models(link, rest[0]);
        let path = rest.join(".");
        for entry in link.table_mut("from").into_iter().flat_map(|from| &mut from.0) {
            if let ConfigContent::Table(direction) = &mut entry.value.content {
                remove_other_models(direction, rest[0]);
                if LOSS_MODELS.contains(&rest[0]) {
                    direction.remove(rest[0]);
                }
                direction.remove(&path);
            }
        }
    }
    link.set(rest, value);
}

/// A loss model replaces the others.
fn remove_other_models(table: &mut ConfigTable, key: &str) {
    if LOSS_MODELS.contains(&key) {
        for other in LOSS_MODELS.into_iter().filter(|model| *model != key) {
            table.remove(other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_a_key_and_a_value() {
        let setting: Override = "host.a.sysctl.ipv4.tcp_rmem=1 2 3".parse().unwrap();
        assert_eq!(setting.path, ["host", "a", "sysctl", "ipv4", "tcp_rmem"]);
        assert_eq!(setting.value, "1 2 3");
        for wrong in ["", "buffer", "=3", "a..b=1", ".a=1", "a.=1"] {
            let error = wrong.parse::<Override>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("'{wrong}'")), "{error}");
        }
        assert_eq!("a=b=c".parse::<Override>().unwrap().value, "b=c");
    }
}
