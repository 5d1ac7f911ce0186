//! The Python package: a wheel with this program, installed into an environment of its own and tested there.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::support::{Process, skipped};

const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Time to check, build, install and test it.
const TIMEOUT: Duration = Duration::from_secs(300);

#[test]
fn the_python_package_is_up_to_date_and_works() {
    let place = Path::new(WORKSPACE).join("target/peers");
    let installed = |name: &str| place.join(name).join("installed.txt").is_file();
    if !installed("python-package") || !installed("python-package-tools") {
        return skipped("the_python_package_is_up_to_date_and_works", "scripts/python-package.sh tools");
    }
    let mut command = Command::new("scripts/python-package.sh");
    command.current_dir(WORKSPACE).args(["test", env!("CARGO_BIN_EXE_linerate")]);
    let done = Process::start(command).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{}\n{}", done.stdout, done.stderr);
    // Nothing in it is skipped: pytest says how many tests passed, and nothing else.
    assert!(done.stdout.contains(" passed in ") && !done.stdout.contains("skipped"), "{}", done.stdout);
}
