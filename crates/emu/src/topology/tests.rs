//! Files as users write them, and the resulting errors.

use linerate_units::Timestamp;

use super::*;
use crate::link_direction::Loss;

mod mistakes;
mod properties;
mod settings;

/// Two hosts and a switch in as few lines as possible: lines 1 to 5.
const PAIR: &str = "host.a = {}\nhost.b = {}\nswitch.s = {}\n\
    link.a.ends = [\"a\", \"s\"]\nlink.b.ends = [\"b\", \"s\"]\n";

fn settings(typed: &[&str]) -> Vec<Override> {
    typed.iter().map(|text| text.parse().unwrap()).collect()
}

fn parse(text: &str, typed: &[&str]) -> Topology {
    read(text, "net.toml", &settings(typed)).unwrap_or_else(|error| panic!("{error}"))
}

/// The errors for an invalid file.
fn refused(text: &str, typed: &[&str]) -> String {
    read(text, "net.toml", &settings(typed)).unwrap_err().to_string()
}

/// The errors for [`PAIR`] with more lines, from line 6 on.
fn check(cases: &[(&str, &str)]) {
    for (more, expected) in cases {
        assert_eq!(refused(&format!("{PAIR}{more}"), &[]), *expected, "\n{more}");
    }
}
