//! The vectors: every formula text is calculated by the library's functions and compared with its expected
//! value, or it is in the list of unused formulas, with the reason.
//!
//! `LINERATE_THEORY_VECTORS` names another file of vectors with the same formula texts.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Map, Value};

use self::refused::WITHOUT_USE;

mod bdp;
mod compare;
mod framing;
mod hosts;
mod queueing;
mod refused;
mod rfc;
mod stats;
mod tcp;

/// One vector of the file; its unit and kind are for readers.
#[derive(Deserialize)]
struct Vector {
    id: String,
    formula: String,
    inputs: Map<String, Value>,
    expected: Value,
    tolerance: compare::Tolerance,
}

/// The inputs of a vector by name.
struct Inputs<'a>(&'a Map<String, Value>);

impl Inputs<'_> {
    fn number(&self, name: &str) -> Option<f64> {
        self.0.get(name)?.as_f64()
    }

    /// A count; vectors may write it as 4 or as 4.0.
    fn count(&self, name: &str) -> Option<u32> {
        let number = self.number(name)?;
        (number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number)).then_some(number as u32)
    }

    fn list(&self, name: &str) -> Option<Vec<f64>> {
        self.0.get(name)?.as_array()?.iter().map(Value::as_f64).collect()
    }
}

/// Calculates one formula from its inputs.
type Compute = fn(&Inputs<'_>) -> Option<Value>;

/// A formula text and the corresponding library call.
type FormulaCall = (&'static str, Compute);

fn number(result: Option<f64>) -> Option<Value> {
    result.map(Value::from)
}

fn table() -> BTreeMap<&'static str, Compute> {
    let chapters: [&[FormulaCall]; 7] =
        [framing::ROWS, bdp::ROWS, tcp::ROWS, queueing::ROWS, rfc::ROWS, hosts::ROWS, stats::ROWS];
    let rows = chapters.concat();
    let count = rows.len();
    let table: BTreeMap<_, _> = rows.into_iter().collect();
    assert_eq!(table.len(), count, "a formula text is in the table twice");
    table
}

fn bundled() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/theory-vectors.json").to_owned()
}

fn read(path: &str) -> Result<Vec<Vector>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {path}: {error}"))?;
    serde_json::from_str(&text).map_err(|error| format!("{path} is no list of vectors: {error}"))
}

#[test]
fn vectors_are_reproduced() {
    let path = std::env::var("LINERATE_THEORY_VECTORS").unwrap_or_else(|_| bundled());
    let (table, vectors) = (table(), read(&path).unwrap());
    let without_use: BTreeMap<_, _> = WITHOUT_USE.iter().copied().collect();
    let (mut faults, mut skipped) = (Vec::new(), 0);
    for vector in &vectors {
        let id = &vector.id;
        if let Some(reason) = without_use.get(vector.formula.as_str()) {
            println!("not calculated: {id}: {reason}");
            skipped += 1;
            continue;
        }
        let Some(compute) = table.get(vector.formula.as_str()) else {
            faults.push(format!("{id}: unknown formula `{}`", vector.formula));
            continue;
        };
        let fault = match compute(&Inputs(&vector.inputs)) {
            Some(got) => compare::difference(&got, &vector.expected, &vector.tolerance),
            None => Some("outside the domain, or an input is missing".to_owned()),
        };
        if let Some(fault) = fault {
            faults.push(format!("{id}: {fault}"));
        }
    }
    println!("{} vectors, {skipped} not calculated, {} wrong", vectors.len(), faults.len());
    assert!(!vectors.is_empty(), "no vectors in {path}");
    assert!(faults.is_empty(), "{} of {} vectors:\n{}", faults.len(), vectors.len(), faults.join("\n"));
}

#[test]
fn bundled_vectors_use_every_formula_of_the_table() {
    let vectors = read(&bundled()).unwrap();
    let formulas: BTreeSet<&str> = vectors.iter().map(|vector| vector.formula.as_str()).collect();
    let (calculated, without_use) = (table(), WITHOUT_USE.iter().map(|(formula, _)| *formula));
    let unused: Vec<_> =
        calculated.keys().copied().chain(without_use.clone()).filter(|one| !formulas.contains(one)).collect();
    assert!(unused.is_empty(), "listed but in no vector: {unused:?}");
    let both: Vec<_> = without_use.filter(|one| calculated.contains_key(one)).collect();
    assert!(both.is_empty(), "calculated and without use: {both:?}");
    assert_eq!(table().len() + WITHOUT_USE.len(), 216, "distinct formula texts");
    assert_eq!(vectors.len(), 463, "bundled vectors");
}
