//! `linerate lab show`.

use super::super::page;
use super::topology::find;
use crate::exit::Exit;

pub(super) fn run(name: &str) -> Exit {
    match find(name) {
        Ok(source) => page::print(source.text.as_bytes()),
        Err(trouble) => trouble.report(),
    }
}
