//! The command line of linerate.

use std::process::ExitCode;

fn main() -> ExitCode {
    linerate::main(std::env::args_os())
}
