//! `linerate lab down`.

use super::DownArgs;
use super::topology::LabError;
use crate::exit::Exit;
use crate::print;

pub(super) fn run(args: &DownArgs) -> Exit {
    let place = match args.place.open() {
        Ok(place) => place,
        Err(trouble) => return trouble.report(),
    };
    let labs = if args.all {
        match place.labs() {
            Ok(labs) => labs,
            Err(error) => return LabError::failed(error).report(),
        }
    } else {
        match args.place.lab_or_leftover(args.name.as_deref()) {
            Ok(lab) => vec![lab],
            Err(trouble) => return trouble.report(),
        }
    };
    let mut exit = Exit::Done;
    for lab in labs {
        match lab.down() {
            Ok(left) => {
                for name in left {
                    print::warning(format!("not removed, because it belongs to another program: {name}"));
                }
                print::note(format!("{} is down", lab.name()));
            }
            Err(error) => exit = LabError::failed(error).report(),
        }
    }
    if args.all
        && let Err(error) = place.remove_dead_logs()
    {
        exit = LabError::failed(error).report();
    }
    exit
}
