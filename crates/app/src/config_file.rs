//! The configuration file of `linerate serve`: its options are put before those of the command line, which replace
//! them.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::ArgAction;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, CommandFactory, Parser};
use linerate_config::OptionKind;
use linerate_runner::ServiceConfig;

use crate::cli::{self, Cli};
use crate::cmd::serve::ServeArgs;
use crate::command_error::CommandError;
use crate::mistyped;

/// The command that has a configuration file.
const SERVE: &str = "serve";

/// Options about the file, and that print something instead of serving.
const NOT_IN_A_FILE: &[&str] = &["config", "check-config", "help"];

/// A command line with the options of its configuration file.
#[derive(Debug, Clone)]
pub(crate) struct ConfiguredServe {
    /// The file.
    pub(crate) config: ServiceConfig,
    /// The words as typed.
    typed: Vec<OsString>,
    /// The words with those of the file.
    pub(crate) words: Vec<OsString>,
}

impl ConfiguredServe {
    /// The command line of a server with a configuration file; absent for any other.
    pub(crate) fn read(typed: &[OsString]) -> Result<Option<Self>, CommandError> {
        let [program, name, rest @ ..] = typed else { return Ok(None) };
        if name != SERVE {
            return Ok(None);
        }
        // Errors of the command line are reported when all of it is there.
        let given = Cli::command().ignore_errors(true).try_get_matches_from(typed);
        let given = given.ok().and_then(|given| given.subcommand_matches(SERVE).cloned());
        let file = |given: &ArgMatches| given.try_get_one::<PathBuf>("config").ok().flatten().cloned();
        let Some((given, path)) = given.and_then(|given| file(&given).map(|path| (given, path))) else {
            return Ok(None);
        };
        let mut top = Cli::command();
        top.build();
        let Some(serve) = top.find_subcommand(SERVE) else { return Ok(None) };
        let config = ServiceConfig::read(&path, &options(serve), refusal).map_err(CommandError::usage)?;
        let is_given = |name: &str| {
            let option = serve.get_arguments().find(|option| option.get_long() == Some(name));
            let source = option.and_then(|option| given.value_source(option.get_id().as_str()));
            matches!(source, Some(ValueSource::CommandLine | ValueSource::EnvVariable))
        };
        let mut words = vec![program.clone(), name.clone()];
        let config = config.without(is_given);
        words.extend(config.words());
        words.extend_from_slice(rest);
        Ok(Some(Self { config, typed: typed.to_vec(), words }))
    }

    /// Reads the file again, with the options that the command line then has.
    pub(crate) fn read_again(&self) -> Result<(Self, Box<ServeArgs>), CommandError> {
        let gone = || CommandError::usage("the command line names no configuration file");
        let newer = Self::read(&self.typed)?.ok_or_else(gone)?;
        match Cli::try_parse_from(&newer.words) {
            Ok(Cli { command: cli::Command::Serve(args) }) => Ok((newer, args)),
            Ok(_) => Err(gone()),
            Err(error) => Err(CommandError::usage(in_one_line(error, &newer.words))),
        }
    }
}

/// The options that a file may set.
fn options(serve: &Command) -> Vec<(&str, OptionKind)> {
    let kind = |option: &Arg| match option.get_action() {
        ArgAction::SetTrue => OptionKind::Switch,
        ArgAction::Append => OptionKind::Values,
        _ if option.get_num_args().is_some_and(|count| count.min_values() == 0) => OptionKind::OptionalValue,
        _ => OptionKind::Value,
    };
    let named = serve.get_arguments().filter_map(|option| Some((option.get_long()?, kind(option))));
    named.filter(|(name, _)| !NOT_IN_A_FILE.contains(name)).collect()
}

/// What is wrong with a value of an option, on its own.
fn refusal(name: &str, value: Option<&str>) -> Option<String> {
    let word = value.map_or_else(|| format!("--{name}"), |value| format!("--{name}={value}"));
    let words = ["linerate", SERVE, &word].map(OsString::from);
    let error = Cli::command().try_get_matches_from(&words).err()?;
    if !matches!(error.kind(), ErrorKind::ValueValidation | ErrorKind::InvalidValue) {
        return None;
    }
    let text = in_one_line(error, &words);
    // A variable of the environment may be wrong too.
    text.contains(&format!("'--{name}")).then_some(text)
}

/// The error of the parser without the usage of the command.
fn in_one_line(error: clap::Error, words: &[OsString]) -> String {
    let text = mistyped::explained(error, words).render().to_string();
    let lines: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
    lines.join(" ").trim_start_matches("error: ").to_owned()
}
