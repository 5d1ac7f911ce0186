//! The configuration file of a server: TOML whose keys are the options of `linerate serve`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use linerate_config::{ConfiguredOption, FileMistakes, MAX_FILE_BYTES, Mistakes, OptionKind, read_options};

/// The option that names the file with the token of an agent.
const AGENT_TOKEN_FILE: &str = "agent-token-file";

/// Options that change while a server runs; the token of an agent is read again too.
const LIVE_OPTIONS: &[&str] = &[
    "limit-time",
    "limit-clients",
    "limit-memory",
    "limit-daily-tests",
    "limit-daily-time",
    "limit-daily-bytes",
    "limit-daily-total",
    AGENT_TOKEN_FILE,
];

/// The options that a file gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceConfig {
    path: PathBuf,
    options: Vec<ConfiguredOption>,
}

/// Why a file gives no options.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceConfigError {
    /// It cannot be read.
    #[error("the configuration file {} cannot be read: {source}; name another one with --config", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What it says is wrong.
    #[error(transparent)]
    Mistakes(#[from] FileMistakes),
}

/// How one configuration differs from another, by the names of its options.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigChanges {
    /// Options that can change while a server runs.
    pub in_force: Vec<String>,
    /// Options that take effect when it starts again.
    pub after_restart: Vec<String>,
    /// Whether the token of the agent is another one.
    pub other_token: bool,
}

impl ConfigChanges {
    /// The changes in one line.
    #[must_use]
    pub fn in_words(&self) -> String {
        let list = |names: &[String], what: &str| {
            (!names.is_empty()).then(|| format!("{what}: {}", names.join(", ")))
        };
        // Without its file, or with its first one, there is not another one.
        let other_token = self.other_token && !self.in_force.iter().any(|name| name == AGENT_TOKEN_FILE);
        let all = [
            list(&self.in_force, "changed"),
            other_token.then(|| "the agent's token is another one".to_owned()),
            list(&self.after_restart, "changes after a restart"),
        ];
        let all: Vec<String> = all.into_iter().flatten().collect();
        let what = if all.is_empty() { "nothing has changed".to_owned() } else { all.join("; ") };
        format!("the configuration was read again: {what}")
    }
}

impl ServiceConfig {
    /// Reads a file whose keys are options in `known`. `refusal` checks an option with one of its values, or with none,
    /// and returns what is wrong.
    ///
    /// # Errors
    /// The file cannot be read, or it has mistakes, all of which are in the error.
    pub fn read(
        path: &Path,
        known: &[(&str, OptionKind)],
        refusal: impl Fn(&str, Option<&str>) -> Option<String>,
    ) -> Result<Self, ServiceConfigError> {
        let text =
            file_text(path).map_err(|source| ServiceConfigError::Read { path: path.to_owned(), source })?;
        let mut mistakes = Mistakes::default();
        let options = read_options(&text, known, &mut mistakes);
        for option in &options {
            for (value, at) in option.values.iter().zip(&option.values_at) {
                if let Some(why) = refusal(&option.name, Some(value)) {
                    mistakes.add(at, why);
                }
            }
            if option.values.is_empty()
                && let Some(why) = refusal(&option.name, None)
            {
                mistakes.add(&option.at, why);
            }
        }
        if !mistakes.is_empty() {
            return Err(FileMistakes::new(&path.display().to_string(), mistakes).into());
        }
        Ok(Self { path: path.to_owned(), options })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves out the options that are given in another way.
    #[must_use]
    pub fn without(mut self, is_given: impl Fn(&str) -> bool) -> Self {
        self.options.retain(|option| !is_given(&option.name));
        self
    }

    /// The options as words of a command line.
    #[must_use]
    pub fn words(&self) -> Vec<OsString> {
        let mut words = Vec::new();
        for option in &self.options {
            if option.values.is_empty() {
                words.push(format!("--{}", option.name).into());
            }
            words.extend(option.values.iter().map(|value| format!("--{}={value}", option.name).into()));
        }
        words
    }

    /// What `newer` changes in a server that runs. Options that need a restart are compared with those of `started`, with
    /// which it runs. `other_token` says whether the token of its agent is another one.
    #[must_use]
    pub fn changes(&self, newer: &Self, started: &Self, other_token: bool) -> ConfigChanges {
        let of = |config: &Self, name: &str| {
            config.options.iter().find(|option| option.name == name).map(|option| option.values.clone())
        };
        let all = [self, newer, started].into_iter().flat_map(|config| &config.options);
        let mut names: Vec<&String> = all.map(|option| &option.name).collect();
        names.sort();
        names.dedup();
        let mut changes = ConfigChanges { other_token, ..ConfigChanges::default() };
        for name in names {
            let is_live = LIVE_OPTIONS.contains(&name.as_str());
            let before = if is_live { self } else { started };
            if of(before, name) != of(newer, name) {
                let list = if is_live { &mut changes.in_force } else { &mut changes.after_restart };
                list.push(name.clone());
            }
        }
        changes
    }
}

/// The text of an ordinary file.
fn file_text(path: &Path) -> io::Result<String> {
    // A pipe would make a reload wait, and cannot be read again.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not an ordinary file"));
    }
    let mut text = String::new();
    let most = MAX_FILE_BYTES as u64;
    File::open(path)?.take(most + 1).read_to_string(&mut text)?;
    if text.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is longer than {most} bytes")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[(&str, OptionKind)] = &[
        ("port", OptionKind::Value),
        ("bind", OptionKind::Values),
        ("classic", OptionKind::Switch),
        ("limit-time", OptionKind::Value),
        ("agent-token-file", OptionKind::Value),
    ];

    fn read(text: &str) -> Result<ServiceConfig, ServiceConfigError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("linerate.toml");
        std::fs::write(&path, text).unwrap();
        ServiceConfig::read(&path, KNOWN, |name, value| {
            (name == "port" && value == Some("high")).then(|| "a port is a number".to_owned())
        })
    }

    #[test]
    fn the_command_line_replaces_options_of_the_file() {
        let config = read("bind = [\"::1\", \"127.0.0.1\"]\nclassic = true\nport = 1\n").unwrap();
        let words = config.clone().without(|name| name == "port").words();
        assert_eq!(words, ["--bind=::1", "--bind=127.0.0.1", "--classic"]);
        assert_eq!(config.words().last().unwrap(), "--port=1");
    }

    #[test]
    fn every_mistake_is_reported_with_its_position() {
        let error = read("port = \"high\"\nprot = 1\n").unwrap_err().to_string();
        let lines: Vec<&str> = error.lines().collect();
        assert!(lines[0].ends_with("linerate.toml:1:8: a port is a number"), "{error}");
        assert!(lines[1].contains(":2:1: ") && lines[1].contains("'port'"), "{error}");
        let missing = ServiceConfig::read(Path::new("/nonexistent/l.toml"), KNOWN, |_, _| None).unwrap_err();
        assert!(missing.to_string().contains("/nonexistent/l.toml"), "{missing}");
        let endless = ServiceConfig::read(Path::new("/dev/zero"), KNOWN, |_, _| None).unwrap_err();
        assert!(endless.to_string().contains("not an ordinary file"), "{endless}");
    }

    #[test]
    fn changes_are_told_by_whether_a_server_can_make_them_while_it_runs() {
        let before = read("port = 1\nlimit-time = 5\nclassic = true\n").unwrap();
        let after = read("port = 2\nbind = \"::1\"\nlimit-time = 6\nclassic = true\n").unwrap();
        let changes = before.changes(&after, &before, false);
        assert_eq!(
            (changes.in_force, changes.after_restart),
            (vec!["limit-time".to_owned()], vec!["bind".to_owned(), "port".to_owned()])
        );
        assert_eq!(before.changes(&before, &before, false), ConfigChanges::default());
        let again = after.changes(&after, &before, false);
        assert_eq!((again.in_force.len(), again.after_restart.len()), (0, 2), "the restart is still due");
    }

    #[test]
    fn another_token_in_the_same_file_is_a_change() {
        let (with, without) = (read("agent-token-file = \"token\"\n").unwrap(), read("").unwrap());
        let words = |newer: &ServiceConfig| with.changes(newer, &with, true).in_words();
        assert_eq!(words(&with), "the configuration was read again: the agent's token is another one");
        assert_eq!(words(&without), "the configuration was read again: changed: agent-token-file");
    }
}
