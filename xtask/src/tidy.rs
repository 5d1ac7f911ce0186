//! `cargo xtask tidy`: house rules that neither the compiler nor clippy checks.
//!
//! Each check is one file in this folder: a pure function from the text of the workspace to problems.

mod edges;
mod file_names;
mod foreign_text;
mod fuzz_targets;
mod ignored_tests;
mod lib_files;
mod links;
mod machine_paths;
mod marks;
mod module_order;
mod pinned;
mod reasons;
mod schema_fields;
mod sizes;
mod threads;
mod type_names;
mod unsafe_code;
mod vocabulary;

use crate::tree::Tree;
use crate::{metadata, tree};

/// One violation of a rule: where it is, what is wrong, and what to do instead.
#[derive(Debug)]
pub(crate) struct Problem {
    path: String,
    line: usize,
    what: String,
    remedy: &'static str,
    fatal: bool,
}

impl Problem {
    fn new(path: &str, line: usize, what: impl Into<String>, remedy: &'static str) -> Self {
        Self { path: path.to_owned(), line, what: what.into(), remedy, fatal: true }
    }

    /// The same problem as a warning, which does not make the task fail.
    fn warning(self) -> Self {
        Self { fatal: false, ..self }
    }

    fn print(&self) {
        let weight = if self.fatal { "error" } else { "warning" };
        eprintln!("{}:{}: {weight}: {}\n    {}", self.path, self.line, self.what, self.remedy);
    }
}

/// The checks that only need the text of the workspace.
const CHECKS: &[fn(&Tree) -> Vec<Problem>] = &[
    file_names::check,
    foreign_text::check,
    fuzz_targets::check,
    ignored_tests::check,
    lib_files::check,
    links::check,
    machine_paths::check,
    marks::check,
    module_order::check,
    pinned::check,
    reasons::check,
    schema_fields::check,
    sizes::check,
    threads::check,
    type_names::check,
    unsafe_code::check,
    vocabulary::check,
];

/// Runs all checks and prints the problems.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    if let Some(unknown) = arguments.first() {
        return Err(format!("takes no argument, got {unknown:?}"));
    }
    let tree = Tree::read(&tree::root()?)?;
    let mut problems = edges::check(&metadata::read_edges()?, &tree);
    for check in CHECKS {
        problems.extend(check(&tree));
    }
    problems.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    problems.iter().for_each(Problem::print);
    let fatal = problems.iter().filter(|problem| problem.fatal).count();
    println!("tidy: {} files, {fatal} errors, {} warnings", tree.files.len(), problems.len() - fatal);
    match fatal {
        0 => Ok(()),
        _ => Err(format!("{fatal} rules of the house are broken, see above")),
    }
}

/// Runs one check over literal samples and returns `path:line` of each problem.
#[cfg(test)]
fn found(check: fn(&Tree) -> Vec<Problem>, samples: &[(&str, &str)]) -> Vec<String> {
    let problems = check(&Tree::of(samples));
    problems.iter().map(|problem| format!("{}:{}", problem.path, problem.line)).collect()
}
