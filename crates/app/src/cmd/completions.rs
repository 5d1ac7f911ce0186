//! `linerate completions`: the shell asks this program what can follow, so that names of runs, plans, labs and servers
//! are known too.

use std::ffi::{OsStr, OsString};
use std::iter::successors;
use std::path::{Path, PathBuf};

use clap::Command;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter};
use clap_complete::env::{CompleteEnv, Shells};
use linerate_runner::NameKind::{CongestionControl, Lab, Label, LabelOrServer, Plan, Run, Server, Topology};
use linerate_runner::{KnownName, NameKind};

use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::stdout;

/// The variable in which a shell tells its name when it asks.
const VARIABLE: &str = "LINERATE_COMPLETE";

/// Prints the script with which a shell asks.
pub(crate) fn script(shell: clap_complete::Shell) -> Result<Exit, CommandError> {
    let (mut script, name) = (Vec::new(), shell.to_string());
    let known = Shells::builtins();
    let shell =
        known.completer(&name).ok_or_else(|| CommandError::failed(format!("no script for {name}")))?;
    shell
        .write_registration(VARIABLE, "linerate", "linerate", "linerate", &mut script)
        .map_err(CommandError::failed)?;
    Ok(stdout::print(&script))
}

/// Answers a shell that asks what can follow in a command line of `program`; absent if none asks.
pub(crate) fn answer(argv: &[OsString], program: fn() -> Command) -> Option<Exit> {
    std::env::var_os(VARIABLE)?;
    let folder = std::env::current_dir().ok();
    let archive = archive_of(argv, program());
    let with_names = || with_names(program(), archive.as_deref());
    match CompleteEnv::with_factory(with_names)
        .var(VARIABLE)
        .bin("linerate")
        .try_complete(argv, folder.as_deref())
    {
        Ok(answered) => answered.then_some(Exit::Done),
        // The shell shows nothing else than candidates.
        Err(_) => Some(Exit::Failed),
    }
}

/// Arguments whose values are names that change: the argument, its names, whether it also takes files, and the commands
/// that have it.
const NAMES: &[(&str, NameKind, bool, &[&str])] = &[
    ("host", Server, false, &["test", "sweep"]),
    ("name", Label, false, &["test", "sweep"]),
    ("congestion", CongestionControl, false, &["test", "sweep"]),
    ("target", LabelOrServer, false, &["history"]),
    ("plan", Run, false, &["history"]),
    ("run", Run, false, &["show", "export", "archive tag", "archive untag"]),
    ("runs", Run, false, &["report", "archive delete"]),
    ("runs", Run, true, &["compare"]),
    ("resume", Run, false, &["run"]),
    ("plan", Plan, true, &["plan", "run"]),
    ("topology", Topology, true, &["run", "lab up"]),
    ("topology", Topology, false, &["lab show"]),
    ("name", Lab, false, &["lab down", "lab status", "lab exec", "lab set"]),
];

/// The archive that the command line or the environment names. The shell has not expanded `~` yet.
fn archive_of(argv: &[OsString], program: Command) -> Option<PathBuf> {
    let typed = argv.iter().skip_while(|word| *word != "--").skip(1);
    let given = program.ignore_errors(true).try_get_matches_from(typed).ok()?;
    let last = successors(Some(&given), |given| given.subcommand().map(|(_, of_it)| of_it)).last()?;
    let named = last.try_get_one::<String>("archive").ok()??;
    let below_home = named.strip_prefix("~/").zip(std::env::home_dir());
    Some(below_home.map_or_else(|| named.into(), |(below, home)| home.join(below)))
}

/// The command line, with the names of [`NAMES`] in an archive or the default one.
fn with_names(mut program: Command, archive: Option<&Path>) -> Command {
    for (arg, kind, files, commands) in NAMES {
        let archive = archive.map(Path::to_owned);
        let candidates = move |typed: &OsStr| candidates(*kind, *files, archive.as_deref(), typed);
        let names = ArgValueCompleter::new(candidates);
        program = commands.iter().fold(program, |program, command| add(program, command, arg, &names));
    }
    program
}

/// Adds the names to an argument of the command below `top` that a path of words names.
fn add(top: Command, path: &'static str, arg: &'static str, names: &ArgValueCompleter) -> Command {
    let (first, rest) = path.split_once(' ').unwrap_or((path, ""));
    match first {
        // `mut_arg` would move the argument after all others.
        "" => top.mut_args(|one| if one.get_id() == arg { one.add(names.clone()) } else { one }),
        // One that this build lacks would be created.
        _ if top.find_subcommand(first).is_none() => top,
        _ => top.mut_subcommand(first, |below| add(below, rest, arg, names)),
    }
}

/// The names, or what may follow in `NAME=RUN,RUN`.
fn candidates(
    kind: NameKind,
    files: bool,
    archive: Option<&Path>,
    typed: &OsStr,
) -> Vec<CompletionCandidate> {
    let text = typed.to_string_lossy();
    let (before, last) = text.split_at(text.rfind(['=', ',']).map_or(0, |at| at + 1));
    let names = KnownName::all(kind, archive).into_iter();
    let names = names.map(|known| CompletionCandidate::new(known.name).help(Some(known.about.into())));
    let paths = if files { PathCompleter::file().complete(OsStr::new(last)) } else { Vec::new() };
    // The shell takes a candidate as it is: one with letters that mean something to a shell could be a command, or
    // several words.
    let is_plain = |letter: char| letter.is_alphanumeric() || "._-:/@%+,".contains(letter);
    let fits = |text: &str| text.starts_with(last) && text.chars().all(is_plain);
    let found = names.chain(paths).filter(|found| fits(&found.get_value().to_string_lossy()));
    found.map(|found| found.add_prefix(before)).collect()
}
