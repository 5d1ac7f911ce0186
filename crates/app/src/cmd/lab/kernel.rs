//! `linerate lab up --backend kernel`.

use linerate_emu::topology::Topology;
use linerate_lab::{script, up_by_kernel};

use super::super::page;
use super::topology::{LabError, lab_name};
use super::{UpArgs, status};
use crate::exit::Exit;
use crate::terminal;

pub(super) fn up(topology: &Topology, name: &str, args: &UpArgs) -> Result<Exit, LabError> {
    let name = lab_name(name)?;
    if args.dry_run {
        return Ok(page::print(script(topology, &name).as_bytes()));
    }
    let status = up_by_kernel(topology, &name, &args.place.open()?).map_err(LabError::failed)?;
    if args.json {
        return Ok(page::print_json(&status));
    }
    let view = terminal::stdout_view();
    Ok(page::print(status::text(&status, view.width, view.colour).as_bytes()))
}
