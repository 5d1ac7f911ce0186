//! Values that a file declares once, used as `"$name"` and overridable from the command line.

use std::collections::{BTreeMap, BTreeSet};

use linerate_config::{ConfigContent, ConfigTable, ConfigValue, Mistakes, check_name, hint};

/// Checks the declarations in `[parameters]`; must be called before overrides replace uses.
pub(super) fn check(document: &ConfigTable, mistakes: &mut Mistakes) {
    let Some(entry) = document.get("parameters") else { return };
    let ConfigContent::Table(declared) = &entry.value.content else {
        mistakes.add(&entry.at, "parameters must be a table; write [parameters] and name = value below it");
        return;
    };
    let mut used = BTreeSet::new();
    for other in document.0.iter().filter(|other| other.key != "parameters") {
        collect_uses(&other.value, &mut used);
    }
    for entry in &declared.0 {
        if let Err(error) = check_name(&entry.key) {
            mistakes.add(&entry.at, error.to_string());
        } else if matches!(entry.value.content, ConfigContent::Table(_) | ConfigContent::Date) {
            let text = format!("parameter '{}' is {}", entry.key, entry.value.content.describe());
            mistakes.add(&entry.at, text + "; give it a text or a number");
        } else if !used.contains(entry.key.as_str()) {
            let name = &entry.key;
            mistakes.add(
                &entry.at,
                format!("parameter '{name}' is not used; use it as \"${name}\" or remove it"),
            );
        }
    }
}

/// The parameter that a value refers to.
fn used_name(value: &ConfigValue) -> Option<&str> {
    match &value.content {
        ConfigContent::Text(text) | ConfigContent::Typed(text) => text.strip_prefix('$'),
        _ => None,
    }
}

fn collect_uses<'v>(value: &'v ConfigValue, used: &mut BTreeSet<&'v str>) {
    match &value.content {
        ConfigContent::List(items) => items.iter().for_each(|item| collect_uses(item, used)),
        ConfigContent::Table(table) => table.0.iter().for_each(|entry| collect_uses(&entry.value, used)),
        _ => used.extend(used_name(value)),
    }
}

/// Replaces references to parameters by their values.
pub(super) fn resolve(document: &mut ConfigTable, mistakes: &mut Mistakes) {
    let declared: BTreeMap<String, ConfigValue> = document
        .table("parameters")
        .into_iter()
        .flat_map(|table| table.0.iter().map(|entry| (entry.key.clone(), entry.value.clone())))
        .collect();
    for entry in document.0.iter_mut().filter(|entry| entry.key != "parameters") {
        if let ConfigContent::Table(table) = &mut entry.value.content {
            resolve_table(table, &declared, mistakes);
        } else {
            resolve_value(&mut entry.value, &declared, mistakes);
        }
    }
}

/// Removes an entry with an unknown parameter: that is one mistake, not two.
fn resolve_table(table: &mut ConfigTable, declared: &BTreeMap<String, ConfigValue>, mistakes: &mut Mistakes) {
    table.0.retain_mut(|entry| resolve_value(&mut entry.value, declared, mistakes));
}

/// False if a parameter is unknown.
fn resolve_value(
    value: &mut ConfigValue,
    declared: &BTreeMap<String, ConfigValue>,
    mistakes: &mut Mistakes,
) -> bool {
    match &mut value.content {
        ConfigContent::Table(table) => {
            resolve_table(table, declared, mistakes);
            return true;
        }
        ConfigContent::List(items) => {
            let mut known = true;
            for item in items {
                known &= resolve_value(item, declared, mistakes);
            }
            return known;
        }
        _ => {}
    }
    let Some(name) = used_name(value) else { return true };
    if let Some(found) = declared.get(name) {
        *value = found.clone();
        return true;
    }
    let known = declared.keys().map(String::as_str);
    let text = match declared.is_empty() {
        true => format!("parameter '{name}' is not declared; add [parameters] with {name} = …"),
        false => format!("parameter '{name}' is not declared in [parameters]{}", hint(name, known)),
    };
    mistakes.add(&value.at, text);
    false
}
