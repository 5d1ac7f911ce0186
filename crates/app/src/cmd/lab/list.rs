//! `linerate lab list`.

use linerate_emu::topology;
use linerate_report::page::TextStyle;
use serde::Serialize;

use super::which_lab::all;
use crate::args::RunFolder;
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::{stdout, terminal};

#[derive(Serialize)]
struct LabListDocument {
    topologies: Vec<ListedTopology>,
    labs: Vec<ListedLab>,
}

#[derive(Serialize)]
struct ListedTopology {
    name: &'static str,
    about: &'static str,
}

#[derive(Serialize)]
struct ListedLab {
    name: String,
    up: bool,
}

pub(super) fn run(json: bool, place: &RunFolder) -> Result<Exit, CommandError> {
    let topologies: Vec<ListedTopology> = topology::bundled()
        .iter()
        .map(|known| ListedTopology { name: known.name, about: known.about })
        .collect();
    let labs: Vec<ListedLab> =
        all(place)?.iter().map(|lab| ListedLab { name: lab.name().to_owned(), up: lab.is_up() }).collect();
    if json {
        return Ok(stdout::print_json(&LabListDocument { topologies, labs }));
    }
    let mut page = terminal::stdout_page();
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
    Ok(stdout::print(page.into_text().as_bytes()))
}
