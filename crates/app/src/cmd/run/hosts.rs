//! Real hosts, reached at the addresses in the plan.

use linerate_control::HostRef;
use linerate_plan::Plan;
use linerate_proto::agent::Token;

use super::super::token::read_token;
use super::{RunArgs, RunError};

/// The hosts that the flows use, in the order of the plan.
pub(super) fn hosts(args: &RunArgs, plan: &Plan) -> Result<Vec<HostRef>, RunError> {
    let Some(file) = &args.agent_token_file else {
        let text = "the hosts require a token; start `linerate serve --agent-token-file FILE` on each of \
                    them and give the same file here";
        return Err(RunError::usage(text));
    };
    let token: Token = read_token(file).map_err(RunError::usage)?;
    let host = |host: &linerate_plan::Host| {
        Some(HostRef {
            name: host.name.clone(),
            address: host.address.clone()?,
            port: Some(host.port),
            test_address: None,
            token: token.clone(),
            netns: None,
        })
    };
    Ok(plan.used_hosts().filter_map(host).collect())
}
