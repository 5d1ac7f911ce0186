//! `linerate token`: who may use the pages of `linerate serve --web`.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use linerate_web::{Ability, ShareKey, TokenFile, TokenFileError};

use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::{print, stdout};

#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    command: TokenCommand,
    /// Use the tokens in this file [default: linerate/tokens in the user's data directory]
    #[arg(long, value_name = "FILE", global = true)]
    tokens: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Make a token and print it, once: only a digest of it is stored
    Add {
        /// What to call it: letters, digits and the characters . - _
        name: String,
        /// What its holder may do
        #[arg(long, value_parser = ability())]
        ability: Ability,
        /// Number of days for which it is valid [default: for ever]
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=36_500))]
        days: Option<u32>,
    },
    /// List the tokens
    List,
    /// Remove a token; the sessions that were begun with it end
    Remove {
        /// Its name
        name: String,
    },
    /// Make all links void that show one run to whoever has them
    RotateShares,
}

fn ability() -> impl TypedValueParser<Value = Ability> {
    let names = Ability::ALL.map(|ability| PossibleValue::new(ability.name()).help(ability.about()));
    PossibleValuesParser::new(names).try_map(|name| Ability::named(&name).ok_or("unknown ability"))
}

pub(crate) fn run(args: &TokenArgs) -> Result<Exit, CommandError> {
    let refused = |error: TokenFileError| CommandError::of(error.needs_correction(), error);
    let file = TokenFile::new(args.tokens.as_deref()).map_err(refused)?;
    let printed = match &args.command {
        TokenCommand::Add { name, ability, days } => file
            .add(name, *ability, *days)
            .inspect(|_| print::note("this is the only time that the token is shown:"))
            .map(|token| token + "\n"),
        TokenCommand::List => file.table(),
        TokenCommand::Remove { name } => file.remove(name).map(|()| String::new()),
        TokenCommand::RotateShares => ShareKey::rotate_default().map(|()| String::new()).map_err(Into::into),
    };
    Ok(stdout::print(printed.map_err(refused)?.as_bytes()))
}
