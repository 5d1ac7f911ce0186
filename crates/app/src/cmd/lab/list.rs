//! `linerate lab list`.

use linerate_emu::topology;
use linerate_lab::LabHandle;
use serde::Serialize;

use super::super::page::{self, Page, TextStyle};
use super::PlaceArgs;
use super::topology::LabError;
use crate::exit::Exit;
use crate::terminal;

#[derive(Serialize)]
struct Document {
    topologies: Vec<Entry>,
    labs: Vec<Running>,
}

#[derive(Serialize)]
struct Entry {
    name: &'static str,
    about: &'static str,
}

#[derive(Serialize)]
struct Running {
    name: String,
    up: bool,
}

pub(super) fn run(json: bool, place: &PlaceArgs) -> Exit {
    let topologies: Vec<Entry> =
        topology::bundled().iter().map(|known| Entry { name: known.name, about: known.about }).collect();
    let labs: Vec<LabHandle> = match place.open().and_then(|place| place.labs().map_err(LabError::failed)) {
        Ok(labs) => labs,
        Err(trouble) => return trouble.report(),
    };
    let labs: Vec<Running> =
        labs.iter().map(|lab| Running { name: lab.name().to_owned(), up: lab.is_up() }).collect();
    if json {
        return page::print_json(&Document { topologies, labs });
    }
    let view = terminal::stdout_view();
    let mut page = Page::new(view.width, view.colour);
    page.heading(
        "Bundled topologies (linerate lab up NAME starts one; linerate lab show NAME prints the \
                  file)",
    );
    let width = topologies.iter().map(|known| known.name.len()).max().unwrap_or(0);
    for known in &topologies {
        page.row(&[(TextStyle::Strong, known.name), (TextStyle::Plain, known.about)], &[width]);
    }
    page.heading("Labs");
    if labs.is_empty() {
        page.remark(0, TextStyle::Faint, "none is up");
    }
    for lab in &labs {
        let how = if lab.up { "up" } else { "killed; `linerate lab down` removes what is left of it" };
        page.row(&[(TextStyle::Strong, &lab.name), (TextStyle::Plain, how)], &[width]);
    }
    page::print(page.into_text().as_bytes())
}
