//! `linerate lab show`, and the generated reference of topology files.

use linerate_emu::topology;

use super::super::page;
use super::topology::find;
use crate::exit::Exit;

pub(super) fn run(name: &str) -> Exit {
    match find(name) {
        Ok(source) => page::print(source.text.as_bytes()),
        Err(trouble) => trouble.report(),
    }
}

pub(super) fn schema() -> Exit {
    page::print_json(&topology::schema())
}

pub(super) fn reference() -> Exit {
    page::print(topology::reference().as_bytes())
}
