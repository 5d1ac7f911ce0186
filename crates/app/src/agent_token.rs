//! The token of agents, in a file.

use std::path::Path;

use linerate_proto::agent::Token;

use crate::command_error::CommandError;

/// Largest token file, bytes.
const MAX_FILE_BYTES: u64 = 64 << 10;

/// Reads the token from a file.
pub(crate) fn read_token(path: &Path) -> Result<Token, CommandError> {
    let trouble = |what: &dyn std::fmt::Display| {
        CommandError::usage(format!("--agent-token-file {}: {what}", path.display()))
    };
    let about = std::fs::metadata(path).map_err(|error| trouble(&error))?;
    if about.len() > MAX_FILE_BYTES {
        return Err(trouble(&"the file is too large for a token"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| trouble(&error))?;
    Token::new(&text).map_err(|error| trouble(&error))
}
