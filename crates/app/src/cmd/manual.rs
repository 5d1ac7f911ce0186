//! `linerate man`, made from the command line itself.

use clap::Command;
use clap_mangen::roff::{Roff, bold, roman};

use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::stdout;

/// Prints the manual page of linerate, or of a command or subcommand.
pub(crate) fn man(mut program: Command, names: &[String]) -> Result<Exit, CommandError> {
    // Sets the full name of every command, such as `linerate test`.
    program.build();
    let mut command = &program;
    for name in names {
        command = command.find_subcommand(name).ok_or_else(|| no_command(command, name))?;
    }
    let title = command.get_bin_name().unwrap_or("linerate").replace(' ', "-");
    let command = command.clone().display_name(title);
    let mut manual = Vec::new();
    let source = format!("linerate {}", env!("CARGO_PKG_VERSION"));
    clap_mangen::Man::new(command)
        .source(source)
        .render(&mut manual)
        .map_err(|error| CommandError::failed(format!("the manual page could not be written: {error}")))?;
    // Without the preamble, which the page has already.
    let closing = closing_sections(names.first().map(String::as_str)).to_roff();
    manual.extend_from_slice(closing.as_bytes());
    Ok(stdout::print(&manual))
}

/// The sections that follow from no definition of the command line: exit codes, files, examples.
fn closing_sections(command: Option<&str>) -> Roff {
    let examples = EXAMPLES.iter().find(|(name, _)| Some(*name) == command).or(EXAMPLES.first());
    let examples = examples.map_or(&[][..], |(_, examples)| examples);
    let mut roff = Roff::new();
    for (section, entries) in [("EXIT STATUS", Exit::MEANINGS), ("FILES", FILES), ("EXAMPLES", examples)] {
        roff.control("SH", [section]);
        for (term, text) in entries {
            roff.control("TP", []).text([bold(*term)]).text([roman(*text)]);
        }
    }
    roff
}

const FILES: &[(&str, &str)] = &[
    (
        "$XDG_DATA_HOME/linerate/archive.sqlite",
        "The archive of runs, ~/.local/share if XDG_DATA_HOME is not set. LINERATE_ARCHIVE or --archive names \
         another file. The folder also has the files of `serve --web`: tokens, web-tls.pem (certificate and key) and \
         web-share.key (of the links to runs).",
    ),
    (
        "/run/linerate",
        "State of labs and undo journals, or linerate in $XDG_RUNTIME_DIR for users other than root. LINERATE_RUN \
         names another folder.",
    ),
];

/// Examples of a command; the first entry is that of linerate and of commands without examples of their own.
const EXAMPLES: &[(&str, &[(&str, &str)])] = &[
    (
        "linerate",
        &[
            ("linerate serve", "Run the server on one host."),
            ("linerate test server", "Measure from another one, and say what limits the path."),
            ("linerate show", "Show the latest run again."),
            ("linerate iperf3 -c server", "Use the command line of iperf3."),
        ],
    ),
    (
        "serve",
        &[
            ("linerate serve", "Measure one client at a time at port 5201."),
            (
                "linerate serve --limit-time 60 --limit-clients 4",
                "Refuse long runs and more than four clients.",
            ),
            (
                "linerate serve --classic",
                "Also answer iperf 2, nuttcp, NetPIPE and others at their own ports.",
            ),
        ],
    ),
    (
        "test",
        &[
            ("linerate test server", "Measure download, then upload, with the latency under load."),
            (
                "linerate test server -P 8 -C cubic --upload",
                "Measure the upload with eight streams of CUBIC.",
            ),
            ("linerate test server -u -b 50M", "Send UDP at 50 Mb/s: loss, reordering, jitter."),
            ("linerate test server --until 1% --json", "Stop when the mean is known to 1 %, and print JSON."),
        ],
    ),
    (
        "run",
        &[
            ("linerate run window-sweep --world lab", "Run a bundled plan in an emulated network."),
            ("linerate run plan.toml --agent-token-file token", "Run a plan on the hosts that it names."),
            ("linerate run --resume 7f3a", "Continue an interrupted plan."),
        ],
    ),
    (
        "history",
        &[
            ("linerate history", "List the newest runs."),
            ("linerate history server --since 2026-05-01", "List runs against one server since a day."),
        ],
    ),
    (
        "lab",
        &[
            ("linerate lab up pair", "Start an emulated network of two hosts."),
            ("linerate lab exec a -- ping b", "Run a program on one of its hosts."),
            ("linerate lab down", "Remove it."),
        ],
    ),
];

fn no_command(command: &Command, name: &str) -> CommandError {
    let known: Vec<&str> =
        command.get_subcommands().map(Command::get_name).filter(|name| *name != "help").collect();
    let whose = command.get_bin_name().unwrap_or("linerate");
    CommandError::usage(if known.is_empty() {
        format!("{whose} has no subcommands; remove '{name}'")
    } else {
        format!("{whose} has no command named '{name}'; the commands are {}", known.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    use crate::cli::Cli;

    #[test]
    fn every_example_is_a_command_line_that_is_accepted() {
        for (_, examples) in EXAMPLES {
            for (line, _) in *examples {
                let parsed = Cli::command().try_get_matches_from(line.split(' '));
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
        }
    }

    #[test]
    fn a_page_ends_with_exit_codes_files_and_its_own_examples() {
        let closing = |command| closing_sections(command).to_roff();
        let test = closing(Some("test"));
        let sections: Vec<&str> = test.lines().filter(|line| line.starts_with(".SH")).collect();
        assert_eq!(sections, [".SH \"EXIT STATUS\"", ".SH FILES", ".SH EXAMPLES"]);
        assert!(test.contains("linerate test server \\-P 8") && !test.contains("linerate serve"), "{test}");
        assert!(closing(Some("doctor")).contains("linerate serve"));
        assert!(closing(None).contains("linerate serve"));
    }
}
