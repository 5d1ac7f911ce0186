//! Tokens in files that options name.

use std::error::Error;
use std::path::Path;

use linerate_proto::agent::Token;
use linerate_runner::read_secret;

use crate::command_error::CommandError;

/// Reads the token of an agent.
pub(crate) fn read_token(path: &Path) -> Result<Token, CommandError> {
    read_from("--agent-token-file", path, Token::new)
}

/// Reads a secret from the file of an option.
pub(crate) fn read_from<T, E: Error + Send + Sync + 'static>(
    option: &str,
    path: &Path,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, CommandError> {
    read_secret(path, parse)
        .map_err(|error| CommandError::usage(format!("{option} {}: {error}", path.display())))
}
