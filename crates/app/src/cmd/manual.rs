//! `linerate man`, made from the command line itself.

use std::collections::BTreeMap;

use clap::Command;
use clap_mangen::roff::{Roff, bold, roman};
use serde::Deserialize;

use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::stdout;

/// Prints the manual page of linerate, or of a command or subcommand.
pub(crate) fn man(mut program: Command, names: &[String]) -> Result<Exit, CommandError> {
    // Sets the full name of every command, such as `linerate test`.
    program.build();
    let mut command = &program;
    for name in names {
        command = command.find_subcommand(name).ok_or_else(|| no_command(command, name))?;
    }
    let title = command.get_bin_name().unwrap_or("linerate").replace(' ', "-");
    let command = command.clone().display_name(title);
    let mut manual = Vec::new();
    let source = format!("linerate {}", env!("CARGO_PKG_VERSION"));
    clap_mangen::Man::new(command)
        .source(source)
        .render(&mut manual)
        .map_err(|error| CommandError::failed(format!("the manual page could not be written: {error}")))?;
    // Without the preamble, which the page has already.
    let texts = ManualTexts::read().map_err(CommandError::failed)?;
    let closing = closing_sections(&texts, names.first().map(String::as_str)).to_roff();
    manual.extend_from_slice(closing.as_bytes());
    Ok(stdout::print(&manual))
}

/// The sections after those that the command line defines: exit codes, files, examples.
fn closing_sections(texts: &ManualTexts, command: Option<&str>) -> Roff {
    let examples = command.and_then(|command| texts.examples.get(command)).or(texts.examples.get("linerate"));
    let exits =
        Exit::MEANINGS.iter().map(|(code, meaning)| ((*code).to_owned(), (*meaning).to_owned())).collect();
    let mut roff = Roff::new();
    for (section, entries) in
        [("EXIT STATUS", Some(&exits)), ("FILES", Some(&texts.files)), ("EXAMPLES", examples)]
    {
        roff.control("SH", [section]);
        for (term, text) in entries.into_iter().flatten() {
            roff.control("TP", []).text([bold(term)]).text([roman(text)]);
        }
    }
    roff
}

/// A term and what it means.
type Entry = (String, String);

/// The texts of the sections that follow from no definition of the command line.
#[derive(Debug, Deserialize)]
struct ManualTexts {
    files: Vec<Entry>,
    /// Those of `linerate` are also those of commands without examples of their own.
    examples: BTreeMap<String, Vec<Entry>>,
}

impl ManualTexts {
    fn read() -> serde_json::Result<Self> {
        serde_json::from_str(include_str!("../../man/sections.json"))
    }
}

fn no_command(command: &Command, name: &str) -> CommandError {
    let known: Vec<&str> =
        command.get_subcommands().map(Command::get_name).filter(|name| *name != "help").collect();
    let whose = command.get_bin_name().unwrap_or("linerate");
    CommandError::usage(if known.is_empty() {
        format!("{whose} has no subcommands; remove '{name}'")
    } else {
        format!("{whose} has no command named '{name}'; the commands are {}", known.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    use crate::cli::Cli;

    #[test]
    fn every_example_is_a_command_line_that_is_accepted() {
        for (command, examples) in ManualTexts::read().unwrap().examples {
            for (line, _) in examples {
                assert!(
                    command == "linerate" || line.contains(&command),
                    "{line} is no example of {command}"
                );
                let parsed = Cli::command().try_get_matches_from(line.split(' '));
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
        }
    }

    #[test]
    fn a_page_ends_with_exit_codes_files_and_its_own_examples() {
        let texts = ManualTexts::read().unwrap();
        let closing = |command| closing_sections(&texts, command).to_roff();
        let test = closing(Some("test"));
        let sections: Vec<&str> = test.lines().filter(|line| line.starts_with(".SH")).collect();
        assert_eq!(sections, [".SH \"EXIT STATUS\"", ".SH FILES", ".SH EXAMPLES"]);
        assert!(test.contains("linerate test server \\-P 8") && !test.contains("linerate serve"), "{test}");
        assert!(closing(Some("doctor")).contains("linerate serve"));
        assert!(closing(None).contains("linerate serve"));
    }
}
