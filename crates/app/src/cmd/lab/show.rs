//! `linerate lab show`.

use super::which_lab::topology;
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::stdout;

pub(super) fn run(name: &str) -> Result<Exit, CommandError> {
    Ok(stdout::print(topology(name)?.text.as_bytes()))
}
