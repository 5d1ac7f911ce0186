//! Completions and manual pages, made from the command line itself.

use clap::{Command, CommandFactory};
use clap_complete::Shell;

use super::page;
use crate::args::Cli;
use crate::exit::Exit;
use crate::print;

/// Prints shell completions.
pub(super) fn completions(shell: Shell) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "linerate", &mut script);
    page::print(&script)
}

/// Prints the manual page of linerate, or of a command or subcommand.
pub(super) fn man(names: &[String]) -> Exit {
    let mut program = Cli::command();
    // Sets the full name of every command, such as `linerate test`.
    program.build();
    let mut command = &program;
    for name in names {
        let Some(found) = command.find_subcommand(name) else {
            let known: Vec<&str> = shown(command).map(Command::get_name).collect();
            let whose = command.get_bin_name().unwrap_or("linerate");
            print::error(if known.is_empty() {
                format!("{whose} has no subcommands; remove '{name}'")
            } else {
                format!("{whose} has no command named '{name}'; the commands are {}", known.join(", "))
            });
            return Exit::Usage;
        };
        command = found;
    }
    let title = command.get_bin_name().unwrap_or("linerate").replace(' ', "-");
    let command = command.clone().display_name(title);
    let mut manual = Vec::new();
    let source = format!("linerate {}", env!("CARGO_PKG_VERSION"));
    match clap_mangen::Man::new(command).source(source).render(&mut manual) {
        Ok(()) => page::print(&manual),
        Err(error) => {
            print::error(format!("the manual page could not be written: {error}"));
            Exit::Failed
        }
    }
}

/// Visible commands.
fn shown(program: &Command) -> impl Iterator<Item = &Command> {
    program.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help")
}
