//! References generated from the definitions.

use crate::args::SchemaName;
use crate::exit::Exit;

pub(super) fn completions(_: clap_complete::Shell) -> Exit {
    Exit::Done
}
pub(super) fn man(_: Option<&str>) -> Exit {
    Exit::Done
}
pub(super) fn schema(_: SchemaName) -> Exit {
    Exit::Done
}
pub(super) fn metrics() -> Exit {
    Exit::Done
}
pub(super) fn cli() -> Exit {
    Exit::Done
}
