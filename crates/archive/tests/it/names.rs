//! Runs by their names, and reading without writing.

use std::collections::BTreeSet;
use std::path::Path;

use linerate_archive::{Archive, ArchiveError, Filter, Store};
use linerate_model::{Body, RunLabels, RunRecord};
use rusqlite::Connection;

use crate::archive::{event, number, record_all, whole_run};
use crate::folder::ArchiveTestFolder;
use crate::place::{TestPlace, on_both_databases};

on_both_databases!(runs_are_found_by_the_name_that_they_were_given);

fn runs_are_found_by_the_name_that_they_were_given(place: &TestPlace) {
    let named = [("7f3a01", "before"), ("7f3a02", "before"), ("7f3a03", "9012"), ("901234", "7f3a")];
    for (run, name) in named {
        let mut log = whole_run(run, "server");
        let labels = RunLabels { name: Some(name.into()), ..RunLabels::default() };
        log.insert(0, event(run, 1000, 0, Body::Labelled(labels)));
        place.record_all(&log);
    }
    place.record_all(&whole_run("b07", "b"));
    let archive = place.open();
    assert_eq!(archive.find("7f3a").unwrap(), "901234", "a name comes before the beginning of others");
    let error = archive.find("before").unwrap_err();
    assert!(
        error.to_string().contains("the newest are 7f3a02 of 2026-11-21T10:00:00Z, 7f3a01 of 2026-"),
        "{error}"
    );
    // What is printed for a run selects that run, whatever names others have.
    for run in ["7f3a01", "7f3a02", "7f3a03", "901234"] {
        assert_eq!(archive.find(&archive.short_name(run).unwrap()).unwrap(), run);
    }
    assert_eq!(RunRecord::fold(&archive.events("7f3a01").unwrap()).labels.name.as_deref(), Some("before"));
    let listed = |filter: &Filter| -> Vec<(String, Option<String>)> {
        let heads = archive.runs(filter).unwrap().into_iter();
        heads.map(|head| (head.id.into_string(), head.name.map(Into::into))).collect()
    };
    let both = ["7f3a02", "7f3a01"].map(|id| (id.to_owned(), Some("before".to_owned())));
    assert_eq!(listed(&Filter { name: Some("before".into()), ..Filter::default() }), both);
    assert_eq!(listed(&Filter { name_or_target: Some("before".into()), ..Filter::default() }), both);
    assert_eq!(
        listed(&Filter { name_or_target: Some("b".into()), ..Filter::default() }),
        [("b07".to_owned(), None)]
    );
}

#[test]
fn an_archive_is_read_without_a_trace() {
    let folder = ArchiveTestFolder::new();
    let path = folder.file("a %.sqlite");
    record_all(&path, &whole_run("7f3a01", "server"));
    let files = |path: &Path| {
        let folder = std::fs::read_dir(path.parent().unwrap()).unwrap();
        folder.map(|file| file.unwrap().file_name()).collect::<BTreeSet<_>>()
    };
    let before = (files(&path), std::fs::read(&path).unwrap());
    let archive = Archive::open_to_read(&path).unwrap();
    assert_eq!(archive.runs(&Filter::default()).unwrap().len(), 1);
    drop(archive);
    assert_eq!((files(&path), std::fs::read(&path).unwrap()), before);
    // One of an earlier version is not converted.
    Connection::open(&path).unwrap().execute_batch("PRAGMA user_version = 4").unwrap();
    assert!(matches!(Archive::open_to_read(&path).unwrap_err(), ArchiveError::Older { .. }));
    assert_eq!(number(&path, "SELECT user_version FROM pragma_user_version"), 4.0);
    assert!(Archive::open_to_read(&folder.file("none.sqlite")).is_err());
    assert!(!folder.file("none.sqlite").exists());
}
