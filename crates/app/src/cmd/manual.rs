//! `linerate completions` and `linerate man`, made from the command line itself.

use clap::Command;
use clap_complete::Shell;

use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::stdout;

/// Prints shell completions.
pub(crate) fn completions(mut program: Command, shell: Shell) -> Result<Exit, CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program, "linerate", &mut script);
    Ok(stdout::print(&script))
}

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
    Ok(stdout::print(&manual))
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
