//! Options of iperf and iperf3 that users try with our own tests, and what to use instead.

use crate::iperf3::IPERF3;
use crate::option_table::ToolOption;

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
fn instead_of(option: &str) -> Option<&'static str> {
    ELSEWHERE.iter().find(|(names, _)| names.contains(&option)).map(|(_, instead)| *instead)
}

/// What to type instead of a command line of iperf without the name of a command; `unknown` is its first option, and
/// `rest` all its words.
#[must_use]
pub fn without_command(unknown: &str, rest: &[String]) -> String {
    let after = |name: &str| rest.iter().skip_while(|word| *word != name).nth(1).map(String::as_str);
    match unknown {
        "-s" | "--server" => {
            "to run the server: linerate serve (the options of iperf3: linerate iperf3 -s)".to_owned()
        }
        "-c" | "--client" => {
            let host = after(unknown).filter(|word| !word.starts_with('-')).unwrap_or("HOST");
            format!("to measure: linerate test {host} (the options of iperf3: linerate iperf3 -c {host})")
        }
        _ => "options follow a command: linerate serve, linerate test HOST, or linerate iperf3 with the options of \
              iperf3"
            .to_owned(),
    }
}

/// What to type instead of `linerate test` with the option `unknown` of iperf3; absent for an option that iperf3 does not
/// have. `rest` are the words after the command.
#[must_use]
pub fn of_test(unknown: &str, rest: &[String]) -> Option<String> {
    let name = unknown.split('=').next().unwrap_or(unknown);
    if let Some(instead) = instead_of(name) {
        return Some(instead.to_owned());
    }
    let of_iperf3 = IPERF3.options.iter().flat_map(|group| group.options).flat_map(ToolOption::names);
    if !of_iperf3.into_iter().any(|option| option == name) {
        return None;
    }
    let host = rest.iter().find(|word| is_host(word)).map_or("HOST", String::as_str);
    Some(format!("{name} is an option of iperf3: linerate iperf3 -c {host} takes it"))
}

/// Whether a word looks like a name with a domain, or an address.
#[must_use]
pub fn is_host(word: &str) -> bool {
    !word.starts_with('-') && (word.contains(['.', ':']) || word == "localhost")
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
