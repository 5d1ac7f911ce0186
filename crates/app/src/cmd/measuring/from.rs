//! The agent of `--from`.

use linerate_control::HostRef;
use linerate_runner::target;

use crate::args::TestArgs;
use crate::cmd::token::read_token;

/// The agent of `--from`, if given.
pub(in crate::cmd) fn agent(args: &TestArgs) -> Result<Option<HostRef>, String> {
    let (Some(from), Some(file)) = (&args.from, &args.agent_token_file) else { return Ok(None) };
    let (address, port) = target(from, None).map_err(|error| format!("--from: {error}"))?;
    let token = read_token(file)?;
    Ok(Some(HostRef { name: from.clone(), address, port, test_address: None, token, netns: None }))
}
