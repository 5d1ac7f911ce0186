//! A calendar page by page.

use std::fmt::Write as _;

use linerate_fleet::{FleetError, MeshPage, SchedulePage};
use linerate_model::calendar::CalendarRunState;
use linerate_units::Span;

use crate::coordinator::{CAMPUS, Campus, at, described};

#[test]
fn pages_of_schedules_have_all_of_them_once_and_the_next_run_of_each() {
    let mut campus = Campus::new();
    for number in 0..7 {
        let pair = if number % 2 == 0 { ("a", "c") } else { ("b", "d") };
        campus.add(&format!("often-{number}"), pair, 60, |request| {
            (request.at, request.every) = (None, Some(Span::from_secs(300)));
        });
    }
    campus.add("now", ("a", "c"), 60, |_| ());
    campus.tick(1);
    let actions = campus.tick(60);
    assert_eq!(actions.len(), 1, "one run starts: {actions:?}");
    let all = campus.users.schedules().unwrap();
    for size in 1..=9 {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let SchedulePage { schedules, runs, next } =
                campus.users.schedule_page(after.as_deref(), size, at(61)).unwrap();
            assert!(schedules.len() <= size as usize && !schedules.is_empty());
            let (booked, active): (Vec<_>, Vec<_>) =
                runs.into_iter().partition(|run| run.state == CalendarRunState::Booked);
            assert_eq!(active.iter().map(|run| &*run.schedule).collect::<Vec<_>>(), ["now"]);
            for state in schedules.iter().filter(|state| state.schedule.name.as_str() != "now") {
                let name = state.schedule.name.as_str();
                let mine: Vec<_> = booked.iter().filter(|run| run.schedule == name).collect();
                let first = campus.runs(name).into_iter().map(|run| run.due).min();
                assert!(mine.len() == 1 && Some(mine[0].due) == first, "{name}: {mine:?}");
            }
            assert!(booked.len() <= schedules.len());
            found.extend(schedules);
            after = next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(found, all, "pages of {size}");
    }
}

#[test]
fn pages_of_meshes_have_all_of_them_and_a_mesh_that_is_too_large_says_so() {
    let mut campus = Campus::new();
    let mut text = CAMPUS.to_owned();
    for number in 0..102 {
        write!(text, "[host.h{number}]\naddress = \"h\"\n").unwrap();
    }
    // None of them is due soon.
    let many: Vec<String> = (0..102).map(|number| format!("\"h{number}\"")).collect();
    for (name, hosts) in [("small", "\"a\", \"b\""), ("large", &*many.join(", ")), ("last", "\"c\", \"d\"")] {
        let test = "test.duration = \"10s\"";
        write!(text, "[mesh.{name}]\nhosts = [{hosts}]\ncron = \"0 3 1 2 *\"\n{test}\n").unwrap();
    }
    described(&mut campus, &text, 1);
    let mut after = None;
    let mut pages = Vec::new();
    while pages.is_empty() || after.is_some() {
        let MeshPage { meshes, next } = campus.users.mesh_page(after.as_deref(), 100, at(2)).unwrap();
        let sizes = meshes.into_iter().map(|mesh| (mesh.name, mesh.cells.len(), mesh.left_out));
        pages.push(sizes.collect::<Vec<_>>());
        after = next;
    }
    let large = ("large".to_owned(), 10_000, 102 * 101 - 10_000);
    let [small, last] = ["small", "last"].map(|name| (name.to_owned(), 2, 0));
    assert_eq!(pages, [vec![small.clone()], vec![large], vec![last.clone()]]);
    let page = campus.users.mesh_page(None, 1, at(2)).unwrap();
    assert_eq!((page.meshes.len(), page.next.as_deref()), (1, Some("small")));
    assert_eq!(
        campus.users.mesh_page(Some("last"), 1, at(2)).unwrap(),
        MeshPage { meshes: vec![], next: None }
    );
    let error = campus.users.mesh_page(Some("smal"), 1, at(2)).unwrap_err();
    assert!(matches!(error, FleetError::NoMesh { .. }), "{error}");
    // What is for reading at a terminal is complete, and monitoring gets as much as it wants.
    assert_eq!(campus.users.grid("large", at(2)).unwrap().cells.len(), 102 * 101);
    let first = campus.users.first_pairs(5, at(2)).unwrap();
    let sizes: Vec<(usize, u64)> = first.iter().map(|grid| (grid.cells.len(), grid.left_out)).collect();
    assert_eq!(sizes, [(2, 0), (3, 102 * 101 - 3), (0, 2)]);
}
