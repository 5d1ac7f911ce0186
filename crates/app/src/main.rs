//! The command line of linerate.
fn main() {}
