//! `linerate health`: whether a server answers, for service managers and containers.

use clap::Args;
use linerate_control::check_health;
use linerate_runner::target;
use linerate_units::{Span, above_zero};

use crate::command_error::CommandError;
use crate::exit::Exit;

#[derive(Debug, Args)]
pub(crate) struct HealthArgs {
    /// The server: a host name or address, optionally with its port
    #[arg(default_value = "localhost", value_name = "HOST[:PORT]")]
    host: String,
    /// Port of the server [default: 5201]
    #[arg(short, long, value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// How long to wait for the answer
    #[arg(short, long, value_name = "SECONDS", default_value = "3", value_parser = above_zero::<Span>)]
    timeout: Span,
}

/// Ends with 0 if the server answers.
pub(crate) fn run(args: &HealthArgs) -> Result<Exit, CommandError> {
    let (host, port) = target(&args.host, args.port).map_err(CommandError::usage)?;
    let failed = |error| CommandError::failed(format!("{}: {error}", args.host));
    check_health(&host, port, args.timeout.as_duration()).map(|()| Exit::Done).map_err(failed)
}
