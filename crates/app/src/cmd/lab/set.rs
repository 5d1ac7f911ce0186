//! `linerate lab set`.

use std::time::Duration;

use linerate_lab::control_protocol::Ask;

use super::SetArgs;
use super::topology::LabError;
use crate::exit::Exit;
use crate::print;

const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn run(args: &SetArgs) -> Exit {
    let mut changes = Vec::new();
    for change in &args.changes {
        let Some((key, value)) = change.split_once('=') else {
            return LabError::usage(format!("{change:?}: write KEY=VALUE, for example delay=25ms")).report();
        };
        changes.push((key.trim().to_owned(), value.trim().to_owned()));
    }
    let lab = match args.lab.find() {
        Ok(lab) => lab,
        Err(trouble) => return trouble.report(),
    };
    if lab.status(ANSWER_TIMEOUT).is_ok_and(|status| status.pid.is_none()) {
        let text = "this lab runs in the kernel and cannot be changed while it is up; start it again with \
                    --set";
        return LabError::failed(text).report();
    }
    match lab.ask(&Ask::Set { target: args.target.clone(), changes }, ANSWER_TIMEOUT) {
        Ok(_) => Exit::Done,
        Err(linerate_lab::AskError::Refused(why)) => {
            print::error(why);
            Exit::Usage
        }
        Err(error) => LabError::failed(error).report(),
    }
}
