//! The switch process of a lab.

use linerate_runner::lab::{Switch, refuse};

use super::SwitchArgs;
use super::topology::{LabError, lab_name};
use crate::exit::Exit;
use crate::signals::Signals;

pub(super) fn run(args: &SwitchArgs) -> Exit {
    let place = args.place.open().and_then(|place| Ok((place, lab_name(&args.name)?)));
    let (place, name) = match place.map_err(LabError::into_text) {
        Ok(found) => found,
        Err(why) => {
            refuse(&why);
            return Exit::Failed;
        }
    };
    // What prevents the network is told to the process that started this one, which prints it.
    let Ok(switch) = Switch::create(&name, &place) else { return Exit::Failed };
    let stopper = switch.stopper();
    if let Err(error) = Signals::on_each(move || stopper.stop()) {
        refuse(&format!("cannot wait for signals: {error}"));
        return Exit::Failed;
    }
    match switch.run(args.tied) {
        Ok(()) => Exit::Done,
        Err(error) => {
            tracing::error!(%error, "the switch ended");
            Exit::Failed
        }
    }
}
