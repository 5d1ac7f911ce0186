//! Writes the generated pages of `docs/reference` into a folder. `cargo xtask gen` runs it:
//!
//! ```sh
//! cargo run --package linerate --example reference -- docs/reference
//! ```

use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs, io};

use clap::builder::PossibleValue;
use clap::{Arg, Command};
use linerate_control::ServerEvent;
use linerate_model::{Event, TestSpec};
use schemars::generate::SchemaSettings;
use serde_json::{Value, json, to_string_pretty};

/// A page, and what makes it.
type ReferencePage = (&'static str, fn() -> serde_json::Result<String>);

/// All generated pages.
const PAGES: &[ReferencePage] = &[
    ("result.schema.json", || to_string_pretty(&linerate_report::result_schema())),
    ("event.schema.json", || to_string_pretty(&schemars::schema_for!(Event))),
    // Of what is written, not of what would be read.
    ("serve-event.schema.json", || {
        let written = SchemaSettings::draft2020_12().for_serialize();
        to_string_pretty(&written.into_generator().into_root_schema_for::<ServerEvent>())
    }),
    ("spec.schema.json", || to_string_pretty(&schemars::schema_for!(TestSpec))),
    ("check.schema.json", || to_string_pretty(&linerate_report::check::check_schema())),
    ("compare.schema.json", || to_string_pretty(&linerate_report::compare::compare_schema())),
    ("topology.schema.json", || to_string_pretty(&linerate_emu::topology::schema())),
    ("topology.md", || Ok(linerate_emu::topology::reference())),
    ("plan.schema.json", || to_string_pretty(&linerate_plan::schema())),
    ("plan-result.schema.json", || to_string_pretty(&linerate_report::plan::plan_result_schema())),
    ("plan.md", || Ok(linerate_plan::reference())),
    ("fleet.schema.json", || to_string_pretty(&linerate_fleet::fleet_file::schema())),
    ("fleet.md", || Ok(linerate_fleet::fleet_file::reference())),
    ("metrics.md", || Ok(linerate_report::metrics_reference())),
    #[cfg(feature = "parquet")]
    ("samples.md", || Ok(linerate_report::parquet::reference())),
    ("stand-in-options.md", || Ok(linerate_compat::option_table::reference())),
    ("openapi.json", || Ok(linerate_web::openapi())),
    ("cli.md", || Ok(command_lines(linerate::command()))),
    ("options.json", || to_string_pretty(&options_of_commands(linerate::command()))),
];

fn main() -> ExitCode {
    let Some(folder) = env::args_os().nth(1) else {
        eprintln!("usage: reference FOLDER");
        return ExitCode::from(2);
    };
    match write(Path::new(&folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", folder.display());
            ExitCode::FAILURE
        }
    }
}

/// Writes all pages into a folder, and prints their names.
fn write(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for (name, page) in PAGES {
        fs::write(folder.join(name), format!("{}\n", page()?.trim_end()))?;
        println!("{name}");
    }
    Ok(())
}

/// Width of help texts in the reference.
const COLUMNS: usize = 100;

/// The help of every command, independent of the terminal.
fn command_lines(program: Command) -> String {
    let mut program = plain(program);
    program.build();
    let mut text = String::from(
        "# Command line\n\nThe `--help` text of every command. This page is written by `cargo xtask gen`.\n",
    );
    describe(&mut text, &mut program);
    text
}

/// The help of a command, followed by that of its subcommands.
fn describe(text: &mut String, command: &mut Command) {
    let name = command.get_bin_name().unwrap_or("linerate").to_owned();
    let help = command.render_long_help().to_string();
    // Trailing spaces of wrapped lines would only disturb diffs.
    let lines: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    // Writing to a String cannot fail.
    let _ = write!(text, "\n## `{name}`\n\n```text\n{}\n```\n", lines.join("\n"));
    for below in command.get_subcommands_mut().filter(|command| command.get_name() != "help") {
        describe(text, below);
    }
}

/// The same commands with a fixed width and no colour.
fn plain(command: Command) -> Command {
    let command =
        command.term_width(COLUMNS).color(clap::ColorChoice::Never).mut_args(|arg| arg.hide_env_values(true));
    command.mut_subcommands(plain)
}

/// The commands whose options other programs pass on.
const WRAPPED: [&str; 3] = ["test", "sweep", "check"];

/// What wrappers in other languages need to know about the options of these commands.
fn options_of_commands(mut program: Command) -> Value {
    program.build();
    let commands = program.get_subcommands().filter(|command| WRAPPED.contains(&command.get_name()));
    let options = |command: &Command| {
        let options = command.get_opts().chain(flags(command)).filter(|arg| arg.get_id() != "help");
        let options: Vec<Value> = options.map(option).collect();
        (command.get_name().to_owned(), Value::from(options))
    };
    let commands: serde_json::Map<String, Value> = commands.map(options).collect();
    json!({ "schema": "linerate.options/1", "commands": commands })
}

/// Options without a value, which clap lists with neither options nor positionals.
fn flags(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|arg| !arg.get_action().takes_values())
}

/// One option: its field in the specification (`id`), its flags, and which values it takes.
fn option(arg: &Arg) -> Value {
    let takes_values = arg.get_action().takes_values();
    let least = arg.get_num_args().map_or(1, |range| range.min_values());
    let value = match (takes_values, least) {
        (false, _) => "none",
        (true, 0) => "optional",
        (true, _) => "required",
    };
    let names = arg.get_value_names().unwrap_or_default();
    let values = arg.get_possible_values();
    json!({
        "id": arg.get_id().as_str(),
        "long": arg.get_long(),
        "short": arg.get_short(),
        "aliases": arg.get_visible_aliases().unwrap_or_default(),
        "value": value,
        "value_name": if takes_values { names.first().map(clap::builder::Str::as_str) } else { None },
        "values": if takes_values { values.iter().map(PossibleValue::get_name).collect() } else { Vec::new() },
        "repeatable": matches!(arg.get_action(), clap::ArgAction::Append),
        "group": arg.get_help_heading(),
        "help": arg.get_help().map(ToString::to_string),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_says_which_one_it_is() {
        for (name, page) in PAGES.iter().filter(|(name, _)| name.ends_with(".schema.json")) {
            let schema: Value = serde_json::from_str(&page().unwrap()).unwrap();
            assert!(schema["$schema"].is_string(), "{name}");
        }
    }

    #[test]
    fn wrappers_learn_how_an_option_is_passed() {
        let options = options_of_commands(linerate::command());
        let test = options["commands"]["test"].as_array().unwrap();
        let find = |id: &str| test.iter().find(|option| option["id"] == id).unwrap();
        assert_eq!(find("streams")["long"], "parallel");
        assert_eq!(find("streams")["value"], "required");
        assert_eq!(find("udp")["value"], "none");
        assert_eq!(find("io")["value"], "required");
        assert_eq!(find("io")["values"], json!(["auto", "copy", "splice", "sendfile", "zerocopy"]));
        assert_eq!(find("download")["aliases"], json!(["reverse"]));
        assert_eq!(test.iter().filter(|option| option["id"] == "udp").count(), 1);
        assert_eq!(options["commands"].as_object().unwrap().len(), WRAPPED.len());
    }

    #[test]
    fn every_command_is_in_the_reference() {
        let page = command_lines(linerate::command());
        for command in linerate::command().get_subcommands() {
            let heading = format!("## `linerate {}`\n", command.get_name());
            assert!(page.contains(&heading), "{heading}");
        }
        assert!(page.contains("## `linerate lab up`\n"));
        assert!(page.lines().all(|line| line.chars().count() <= COLUMNS || line.starts_with("What")));
        assert!(!page.contains('\u{1b}'));
    }
}
