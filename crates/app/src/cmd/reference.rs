//! Generated references: completions, manual pages, schemas, and the pages of `docs/reference`.

use std::fmt::Write;

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use linerate_model::metrics::{Better, MetricEntry, MetricKind};
use linerate_model::{CATALOGUE, Event, TestSpec};

use super::page;
use crate::args::{Cli, SchemaName};
use crate::exit::Exit;
use crate::print;

/// Width of help texts in the reference.
const COLUMNS: usize = 100;

/// Prints shell completions.
pub(super) fn completions(shell: Shell) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "linerate", &mut script);
    page::print(&script)
}

/// Prints the manual page of linerate, or of a command or subcommand.
pub(super) fn man(names: &[String]) -> Exit {
    let mut program = Cli::command();
    // Sets the full name of every command, such as `linerate test`.
    program.build();
    let mut command = &program;
    for name in names {
        let Some(found) = command.find_subcommand(name) else {
            let known: Vec<&str> = shown(command).map(Command::get_name).collect();
            let whose = command.get_bin_name().unwrap_or("linerate");
            print::error(if known.is_empty() {
                format!("{whose} has no subcommands; remove '{name}'")
            } else {
                format!("{whose} has no command named '{name}'; the commands are {}", known.join(", "))
            });
            return Exit::Usage;
        };
        command = found;
    }
    let title = command.get_bin_name().unwrap_or("linerate").replace(' ', "-");
    let command = command.clone().display_name(title);
    let mut manual = Vec::new();
    let source = format!("linerate {}", env!("CARGO_PKG_VERSION"));
    match clap_mangen::Man::new(command).source(source).render(&mut manual) {
        Ok(()) => page::print(&manual),
        Err(error) => {
            print::error(format!("the manual page could not be written: {error}"));
            Exit::Failed
        }
    }
}

/// Prints a JSON Schema.
pub(super) fn schema(which: SchemaName) -> Exit {
    match which {
        SchemaName::Result => page::print_json(&linerate_report::result_schema()),
        SchemaName::Event => page::print_json(&schemars::schema_for!(Event)),
        SchemaName::Spec => page::print_json(&schemars::schema_for!(TestSpec)),
        SchemaName::Check => page::print_json(&linerate_report::check::check_schema()),
        SchemaName::Compare => page::print_json(&linerate_report::compare::compare_schema()),
        SchemaName::Topology => page::print_json(&linerate_emu::topology::schema()),
        SchemaName::PlanResult => page::print_json(&linerate_report::plan::plan_result_schema()),
        SchemaName::Plan => page::print_json(&linerate_plan::schema()),
    }
}

/// Prints the metric reference.
pub(super) fn metrics() -> Exit {
    page::print(metrics_page().as_bytes())
}

/// Prints the reference of topology files.
pub(super) fn topology() -> Exit {
    page::print(linerate_emu::topology::reference().as_bytes())
}

/// Prints the reference of plan files.
pub(super) fn plan() -> Exit {
    page::print(linerate_plan::reference().as_bytes())
}

/// Prints the command line reference.
pub(super) fn cli() -> Exit {
    page::print(cli_page(Cli::command()).as_bytes())
}

fn metrics_page() -> String {
    let mut text = String::from(
        "# Metrics\n\nAll quantities that a sample can contain, in the form of RFC 1242 section 2. A quantity that was not measured is absent. Counters are amounts per interval, which can be added; gauges are values at the end of an interval. Port metrics exist only in an emulated network. This page is written by `cargo xtask gen`.\n",
    );
    for entry in CATALOGUE.iter().flat_map(|entries| entries.iter()) {
        describe(&mut text, entry);
    }
    text
}

fn describe(text: &mut String, entry: &MetricEntry) {
    let kind = match entry.kind {
        MetricKind::Counter => "counter",
        MetricKind::Gauge => "gauge",
        MetricKind::Mean => "mean over the interval",
        MetricKind::Peak => "largest in the interval",
    };
    let better = match entry.better {
        Better::Higher => "higher is better",
        Better::Lower => "lower is better",
        Better::Neither => "explains other metrics; neither direction is better",
    };
    let unit = if entry.unit == "1" { "count" } else { entry.unit };
    let (definition, remarks) = paragraphs(entry.doc);
    text.push_str(&format!("\n## `{}`\n\n**Definition:** {definition}\n", entry.name));
    for (label, remark) in remarks {
        text.push_str(&format!("\n**{label}:** {remark}\n"));
    }
    text.push_str(&format!("\n**Unit:** {unit}, {kind}, {better}\n\n**Source:** {}\n", entry.source));
}

/// The definition, and the labelled remarks after it (`Discussion: …`, `Issues: …`, `See also: …`).
fn paragraphs(doc: &str) -> (String, Vec<(&str, String)>) {
    const LABELS: [&str; 3] = ["Discussion:", "Issues:", "See also:"];
    let mut definition = Vec::new();
    let mut remarks: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut rest = doc;
    while let Some(word) = rest.split_whitespace().next() {
        rest = rest.trim_start();
        if let Some(label) = LABELS.into_iter().find(|label| rest.starts_with(label)) {
            remarks.push((label.trim_end_matches(':'), Vec::new()));
            rest = &rest[label.len()..];
            continue;
        }
        remarks.last_mut().map_or(&mut definition, |(_, words)| words).push(word);
        rest = &rest[word.len()..];
    }
    (definition.join(" "), remarks.into_iter().map(|(label, words)| (label, words.join(" "))).collect())
}

fn cli_page(program: Command) -> String {
    let mut program = plain(program);
    program.build();
    let mut text = String::from(
        "# Command line\n\nThe `--help` text of every command. This page is written by `cargo xtask gen`.\n",
    );
    describe_command(&mut text, &mut program);
    text
}

/// The help of a command, followed by that of its subcommands.
fn describe_command(text: &mut String, command: &mut Command) {
    let name = command.get_bin_name().unwrap_or("linerate").to_owned();
    let help = command.render_long_help().to_string();
    // Trailing spaces of wrapped lines would only disturb diffs.
    let lines: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    // Writing to a String cannot fail.
    let _ = write!(text, "\n## `{name}`\n\n```text\n{}\n```\n", lines.join("\n"));
    for mut below in shown(command).cloned().collect::<Vec<_>>() {
        describe_command(text, &mut below);
    }
}

/// The same commands with a fixed width and no colour, independent of the terminal.
fn plain(command: Command) -> Command {
    let command =
        command.term_width(COLUMNS).color(clap::ColorChoice::Never).mut_args(|arg| arg.hide_env_values(true));
    command.mut_subcommands(plain)
}

/// Visible commands.
fn shown(program: &Command) -> impl Iterator<Item = &Command> {
    program.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_ends_where_the_first_label_stands() {
        let (definition, remarks) =
            paragraphs(" The time.\n Of a flow.\n Discussion: holds queues,\n and acks. Issues: Linux.\n");
        assert_eq!(definition, "The time. Of a flow.");
        assert_eq!(
            remarks,
            [("Discussion", "holds queues, and acks.".to_owned()), ("Issues", "Linux.".to_owned())]
        );
    }

    #[test]
    fn every_metric_has_its_entry() {
        let page = metrics_page();
        for entry in CATALOGUE.iter().flat_map(|entries| entries.iter()) {
            assert_eq!(page.matches(&format!("## `{}`\n", entry.name)).count(), 1, "{}", entry.name);
        }
        assert_eq!(page.matches("**Definition:**").count(), page.matches("**Source:**").count());
    }

    #[test]
    fn every_listed_command_stands_in_the_reference_and_no_hidden_one() {
        let page = cli_page(Cli::command());
        for command in Cli::command().get_subcommands() {
            let heading = format!("## `linerate {}`", command.get_name());
            assert_eq!(page.contains(&heading), !command.is_hide_set(), "{heading}");
        }
        assert!(page.contains("## `linerate lab up`\n") && !page.contains("## `linerate lab switch`"));
        assert!(page.lines().all(|line| line.chars().count() <= COLUMNS || line.starts_with("What")));
        assert!(!page.contains('\u{1b}'));
    }
}
