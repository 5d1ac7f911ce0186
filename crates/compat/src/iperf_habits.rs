//! Options of iperf and iperf3 that users try with our own tests, and what to use instead.

/// Options that `test` does not have, but its users know from other tools, with what to use instead.
const ELSEWHERE: &[(&[&str], &str)] = &[
    (&["-c", "--client"], "the server is given without -c: linerate test HOST"),
    (&["-s", "--server"], "to run the server: linerate serve"),
    (&["-f", "--format"], "rates are printed in the unit that fits them; --json has them exactly, in bit/s"),
    (&["-V", "--verbose"], "--explain lists every ceiling and where each number comes from"),
    (&["-d", "--debug", "--dualtest"], "to measure both directions at the same time: --bidir"),
    (
        &["-r", "--tradeoff"],
        "both directions are measured one after the other unless one is chosen; reverse alone is -R",
    ),
    (&["--logfile", "-o", "--output"], "to write the result to a file: --report FILE, or > FILE"),
    (&["--streams"], "the number of streams is -P N, for example -P 4"),
    (&["-D", "--daemon"], "the server can be started as a service: linerate serve"),
    (&["--timestamps"], "--json-stream has the time of every event"),
];

/// What to use instead of an option of iperf that our own tests do not have; absent for other options.
#[must_use]
pub fn instead_of(option: &str) -> Option<&'static str> {
    ELSEWHERE.iter().find(|(names, _)| names.contains(&option)).map(|(_, instead)| *instead)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_names_of_an_option_have_one_answer() {
        assert_eq!(instead_of("-c"), instead_of("--client"));
        assert!(instead_of("--dualtest").is_some_and(|instead| instead.contains("--bidir")));
        assert_eq!(instead_of("--parallel"), None);
    }
}
