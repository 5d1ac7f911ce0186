//! What a refused command line probably meant: the messages of the parser, with the remedy of this program.

use std::error::Error;
use std::ffi::OsString;
use std::num::ParseIntError;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory};
use linerate_compat::iperf_habits::{is_host, of_test, without_command};

use crate::cli::Cli;
use crate::core_build;

/// The error of a command line with the usage of its command and, if it is known, what to type instead.
pub(crate) fn explained(error: clap::Error, argv: &[OsString]) -> clap::Error {
    let words: Vec<String> = argv.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let mut top = Cli::command();
    top.build();
    let (command, rest) = command_of(top, &words);
    let mut error = readable(error, &command);
    if let Some(why) = unknown(&error).and_then(core_build::missing) {
        return command.clone().error(error.kind(), why);
    }
    if let Some(usage) = error.get(ContextKind::Usage) {
        let usage = without_untyped(usage.to_string(), &command, &words);
        error.insert(ContextKind::Usage, ContextValue::StyledStr(StyledStr::from(usage)));
    }
    if let Some(hint) = hint(&error, &command, rest) {
        error.remove(ContextKind::Suggested);
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(hint)]));
    }
    error
}

/// A usage line without the options that nobody typed. The parser lists what has a value, as if all of it were
/// needed, and variables of the environment give values too.
fn without_untyped(mut usage: String, command: &Command, words: &[String]) -> String {
    for option in command.get_arguments().filter(|option| option.get_env().is_some()) {
        let (Some(long), Some([value, ..])) = (option.get_long(), option.get_value_names()) else { continue };
        let name = format!("--{long}");
        if !words.iter().any(|word| word.starts_with(&name)) {
            usage = usage.replace(&format!(" {name} <{value}>"), "");
        }
    }
    usage
}

/// The command that the words name, and the words after its name.
fn command_of(top: Command, words: &[String]) -> (Command, &[String]) {
    let (mut command, mut rest) = (top, words);
    while let Some((first, after)) = rest.split_first() {
        let Some(sub) = command.find_subcommand(first) else { break };
        (command, rest) = (sub.clone(), after);
    }
    (command, rest)
}

/// The error of a number in words that do not come from the parser of the programming language.
fn readable(error: clap::Error, command: &Command) -> clap::Error {
    let number = error.source().is_some_and(<dyn Error>::is::<ParseIntError>);
    let value = (error.get(ContextKind::InvalidValue), error.get(ContextKind::InvalidArg));
    let (true, (Some(value), Some(arg))) = (number, value) else { return error };
    let why =
        format!("invalid value '{value}' for '{arg}': it is not a whole number in the range of this option");
    command.clone().error(ErrorKind::ValueValidation, why)
}

/// The option or command that is not known.
fn unknown(error: &clap::Error) -> Option<&str> {
    match error.get(ContextKind::InvalidArg).or(error.get(ContextKind::InvalidSubcommand))? {
        ContextValue::String(unknown) => Some(unknown.as_str()),
        _ => None,
    }
}

fn hint(error: &clap::Error, command: &Command, rest: &[String]) -> Option<String> {
    let unknown = unknown(error)?;
    match (error.kind(), command.get_name()) {
        (ErrorKind::UnknownArgument, "linerate") => Some(without_command(unknown, rest)),
        (ErrorKind::UnknownArgument, "test") => of_test(unknown, rest),
        (ErrorKind::InvalidSubcommand, "linerate")
            if error.get(ContextKind::SuggestedSubcommand).is_none() || is_host(unknown) =>
        {
            Some(format!("to measure the path to a host: linerate test {unknown}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn message(line: &str) -> String {
        let argv: Vec<OsString> =
            std::iter::once("linerate").chain(line.split(' ')).map(OsString::from).collect();
        explained(Cli::try_parse_from(&argv).unwrap_err(), &argv).render().to_string()
    }

    #[test]
    fn a_command_line_of_iperf_leads_to_the_command_that_does_it() {
        for (line, remedy) in [
            ("-s", "linerate serve"),
            ("-s -p 5000", "linerate serve"),
            ("-c far.example.org -t 3", "linerate test far.example.org"),
            ("-c", "linerate test HOST"),
            ("far.example.org", "linerate test far.example.org"),
            ("10.0.0.1", "linerate test 10.0.0.1"),
            ("test -c h", "linerate test HOST"),
            ("test h -f m", "--json"),
            ("test h -V", "--explain"),
            ("test h -d", "--bidir"),
            ("test h -r", "one after the other"),
            ("test h --logfile x", "--report FILE"),
            ("test h --streams 4", "-P 4"),
            ("test far.example.org --get-server-output", "linerate iperf3 -c far.example.org"),
        ] {
            let text = message(line);
            assert!(text.contains(remedy), "{line}: {text}");
            assert!(!text.contains("as a value"), "{line}: {text}");
        }
    }

    #[test]
    fn a_mistyped_name_is_suggested() {
        assert!(message("hstory").contains("'history'"));
        assert!(message("test h --parallell 4").contains("--parallel"));
    }

    #[test]
    fn a_word_for_a_number_is_not_explained_by_the_programming_language() {
        let text = message("test h -P four");
        assert!(
            text.contains("'four'") && text.contains("whole number") && !text.contains("digit"),
            "{text}"
        );
    }

    #[test]
    fn a_usage_line_demands_only_what_is_needed() {
        let command = command_of(Cli::command(), &["test".to_owned()]).0;
        let usage = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            without_untyped(
                "Usage: linerate test --from <AGENT> --archive <FILE|URL> <HOST>".to_owned(),
                &command,
                &words,
            )
        };
        assert_eq!(usage(&["test", "h", "--from=a"]), "Usage: linerate test --from <AGENT> <HOST>");
        assert!(usage(&["test", "h", "--archive=x"]).contains("--archive <FILE|URL>"));
    }
}
