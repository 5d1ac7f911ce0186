//! Calls of cargo by a task, which cargo itself has started.

use std::process::Command;

/// What cargo tells the programs that it runs about their package.
const OF_PACKAGE: [&str; 2] = ["CARGO_PKG_", "CARGO_MANIFEST_"];

/// The cargo that started this task.
pub(crate) fn command() -> Command {
    let mut command = Command::new(program());
    forget_package(&mut command);
    command
}

/// Command line that runs an example in its release build.
pub(crate) fn release_example(package: &str, example: &str, arguments: &[&str]) -> Vec<String> {
    let program = program();
    let words = [&program, "run", "--quiet", "--release", "--package", package, "--example", example, "--"];
    words.iter().chain(arguments).map(|word| (*word).to_owned()).collect()
}

/// Removes what cargo has told this task about the package `xtask`. Build scripts that look at it, such as ring's, would run
/// again now and once more in the next call by hand, and everything that depends on them would be compiled again.
pub(crate) fn forget_package(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if OF_PACKAGE.iter().any(|prefix| name.as_encoded_bytes().starts_with(prefix.as_bytes())) {
            command.env_remove(name);
        }
    }
}

fn program() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}
