//! A file whose keys are the options of a command: each key is the long name of one, without its dashes.

use crate::mistake::{Mistakes, SourcePosition};
use crate::suggest::hint;
use crate::tree::{ConfigContent, ConfigEntry, ConfigValue, parse};

/// What an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionKind {
    /// No value: `true` stands for the option, `false` for none.
    Switch,
    /// No value is needed: `true` stands for the option without one.
    OptionalValue,
    /// One value, a text or a number.
    Value,
    /// A value each time that it is given: one, or a list of them.
    Values,
}

/// An option that a file gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredOption {
    /// The long name, without dashes.
    pub name: String,
    /// Its values as they would be typed; empty for an option without one.
    pub values: Vec<String>,
    /// Position of the key.
    pub at: SourcePosition,
    /// Positions of the values.
    pub values_at: Vec<SourcePosition>,
}

/// Reads a file whose keys are the options in `known`. Values are not checked: whoever reads the command line does
/// that. `false` for a switch leaves it out. All mistakes are added to `mistakes`.
pub fn read_options(
    text: &str,
    known: &[(&str, OptionKind)],
    mistakes: &mut Mistakes,
) -> Vec<ConfiguredOption> {
    let Some(table) = parse(text, 0, mistakes) else { return Vec::new() };
    table.0.iter().filter_map(|entry| option(entry, known, mistakes)).collect()
}

fn option(
    entry: &ConfigEntry,
    known: &[(&str, OptionKind)],
    mistakes: &mut Mistakes,
) -> Option<ConfiguredOption> {
    let ConfigEntry { key, at, value } = entry;
    let Some((_, kind)) = known.iter().find(|(name, _)| name == key) else {
        mistakes.add_with(at, || {
            let suggestion = match key.trim_start_matches('-') {
                bare if known.iter().any(|(name, _)| *name == bare) => format!("; write it as '{bare}'"),
                bare => hint(&bare.replace('_', "-"), known.iter().map(|(name, _)| *name)),
            };
            format!("'{key}' is no option that a configuration file may set{suggestion}")
        });
        return None;
    };
    let wrong = |mistakes: &mut Mistakes, value: &ConfigValue, wanted: &str| {
        mistakes.add(&value.at, format!("'{key}' is {}; it has to be {wanted}", value.content.describe()));
    };
    let (mut values, mut values_at) = (Vec::new(), Vec::new());
    match (kind, &value.content) {
        (OptionKind::Switch | OptionKind::OptionalValue, ConfigContent::Flag(true)) => {}
        (OptionKind::Switch | OptionKind::OptionalValue, ConfigContent::Flag(false)) => return None,
        (OptionKind::Switch, _) => {
            wrong(mistakes, value, "true or false");
            return None;
        }
        (OptionKind::Values, ConfigContent::List(list)) => {
            for value in list {
                match typed(value) {
                    Some(text) => {
                        values.push(text);
                        values_at.push(value.at.clone());
                    }
                    None => wrong(mistakes, value, "a list of texts or numbers"),
                }
            }
            // An empty list gives nothing.
            if values.is_empty() {
                return None;
            }
        }
        _ => {
            let Some(text) = typed(value) else {
                let wanted = match kind {
                    OptionKind::OptionalValue => "true, false, a text or a number",
                    OptionKind::Values => "a text, a number, or a list of them",
                    OptionKind::Switch | OptionKind::Value => "a text or a number",
                };
                wrong(mistakes, value, wanted);
                return None;
            };
            values.push(text);
            values_at.push(value.at.clone());
        }
    }
    Some(ConfiguredOption { name: key.clone(), values, at: at.clone(), values_at })
}

/// A text or a number as it would be typed.
fn typed(value: &ConfigValue) -> Option<String> {
    match &value.content {
        ConfigContent::Text(text) | ConfigContent::Typed(text) | ConfigContent::Number(text) => {
            Some(text.clone())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[(&str, OptionKind)] = &[
        ("port", OptionKind::Value),
        ("bind", OptionKind::Values),
        ("classic", OptionKind::Switch),
        ("web", OptionKind::OptionalValue),
        ("limit-time", OptionKind::Value),
    ];

    fn read(text: &str) -> (Vec<(String, Vec<String>)>, Vec<String>) {
        let mut mistakes = Mistakes::default();
        let options = read_options(text, KNOWN, &mut mistakes);
        let options = options.into_iter().map(|option| (option.name, option.values)).collect();
        let position = |place: SourcePosition| match place {
            SourcePosition::File { line, column, .. } => format!("{line}:{column}"),
            SourcePosition::Override(text) => text,
        };
        let mistakes = mistakes.in_order().into_iter();
        (options, mistakes.map(|mistake| format!("{} {}", position(mistake.place), mistake.text)).collect())
    }

    #[test]
    fn every_kind_of_option_is_given_as_it_would_be_typed() {
        let text = "port = 5202\nbind = [\"::1\", \"127.0.0.1\"]\nclassic = true\nweb = \"[::1]:80\"\nlimit-time = 1_0\n";
        let (options, mistakes) = read(text);
        assert_eq!(mistakes, Vec::<String>::new());
        let option =
            |name: &str, values: &[&str]| (name.to_owned(), values.iter().map(|v| (*v).to_owned()).collect());
        let expected = vec![
            option("port", &["5202"]),
            option("bind", &["::1", "127.0.0.1"]),
            option("classic", &[]),
            option("web", &["[::1]:80"]),
            option("limit-time", &["10"]),
        ];
        assert_eq!(options, expected);
        assert_eq!(read("web = true\nbind = \"::1\"").0, [option("web", &[]), option("bind", &["::1"])]);
        assert_eq!(read("classic = false\nbind = []\nweb = false\n"), (Vec::new(), Vec::new()));
    }

    #[test]
    fn all_mistakes_are_reported_with_position_and_remedy() {
        let text = "prot = 1\n--port = 2\nlimit_time = 3\nclassic = \"yes\"\nbind = [1, true]\nport = [1]\nweb = 1979-05-27\n";
        let (_, mistakes) = read(&text.replace("--port", "\"--port\""));
        assert_eq!(mistakes.len(), 7, "{mistakes:#?}");
        for (at, start, remedy) in [
            (0, "1:1 ", "did you mean 'port'?"),
            (1, "2:1 ", "write it as 'port'"),
            (2, "3:1 ", "did you mean 'limit-time'?"),
            (3, "4:11 ", "true or false"),
            (4, "5:12 ", "a list of texts or numbers"),
            (5, "6:8 ", "a text or a number"),
            (6, "7:7 ", "true, false, a text or a number"),
        ] {
            assert!(mistakes[at].starts_with(start) && mistakes[at].contains(remedy), "{}", mistakes[at]);
        }
        assert_eq!(read("port = ").1.len(), 1, "no TOML");
    }
}
