//! `linerate completions`: the shell asks this program what can follow, so that names of runs, plans, labs and servers
//! are known too.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::Command;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter};
use clap_complete::env::{CompleteEnv, Shells};
use linerate_runner::KnownName;
use linerate_runner::NameKind::{
    self, CongestionControl, Lab, Label, LabelOrServer, Plan, Run, Server, Topology,
};

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
    let asked = CompleteEnv::with_factory(|| with_names(program())).var(VARIABLE).bin("linerate");
    match asked.try_complete(argv, folder.as_deref()) {
        Ok(answered) => answered.then_some(Exit::Done),
        // The shell shows nothing else than candidates.
        Err(_) => Some(Exit::Failed),
    }
}

/// Arguments whose values are names that change: the command, the argument, its names, and whether it also takes files.
const NAMES: &[(&[&str], &str, NameKind, bool)] = &[
    (&["test"], "host", Server, false),
    (&["test"], "name", Label, false),
    (&["test"], "congestion", CongestionControl, false),
    (&["sweep"], "host", Server, false),
    (&["sweep"], "name", Label, false),
    (&["sweep"], "congestion", CongestionControl, false),
    (&["history"], "target", LabelOrServer, false),
    (&["history"], "plan", Run, false),
    (&["show"], "run", Run, false),
    (&["export"], "run", Run, false),
    (&["report"], "runs", Run, false),
    (&["compare"], "runs", Run, true),
    (&["plan"], "plan", Plan, true),
    (&["run"], "plan", Plan, true),
    (&["run"], "topology", Topology, true),
    (&["run"], "resume", Run, false),
    (&["lab", "up"], "topology", Topology, true),
    (&["lab", "show"], "topology", Topology, false),
    (&["lab", "down"], "name", Lab, false),
    (&["lab", "status"], "name", Lab, false),
    (&["lab", "exec"], "name", Lab, false),
    (&["lab", "set"], "name", Lab, false),
];

/// The command line, with the names of [`NAMES`].
fn with_names(program: Command) -> Command {
    NAMES.iter().fold(program, |program, (path, arg, kind, files)| {
        let candidates = move |typed: &OsStr| candidates(*kind, *files, typed);
        add(program, path, arg, ArgValueCompleter::new(candidates))
    })
}

fn add(command: Command, path: &[&'static str], arg: &'static str, names: ArgValueCompleter) -> Command {
    match path {
        [] => command.mut_arg(arg, |arg| arg.add(names)),
        [first, rest @ ..] => command.mut_subcommand(first, |command| add(command, rest, arg, names)),
    }
}

/// The names, or what may follow in `NAME=RUN,RUN`.
fn candidates(kind: NameKind, files: bool, typed: &OsStr) -> Vec<CompletionCandidate> {
    let text = typed.to_string_lossy();
    let (before, last) = text.split_at(text.rfind(['=', ',']).map_or(0, |at| at + 1));
    // As for a command line without --archive.
    let archive = std::env::var_os("LINERATE_ARCHIVE").filter(|path| !path.is_empty()).map(PathBuf::from);
    let names = KnownName::all(kind, archive.as_deref()).into_iter();
    let names = names.map(|known| CompletionCandidate::new(known.name).help(Some(known.about.into())));
    let paths = if files { PathCompleter::file().complete(OsStr::new(last)) } else { Vec::new() };
    // The shell takes a candidate as it is: one with other letters could be a command, or several words.
    let fits = |text: &str| text.starts_with(last) && text.chars().all(is_plain);
    let found = names.chain(paths).filter(|found| fits(&found.get_value().to_string_lossy()));
    found.map(|found| found.add_prefix(before)).collect()
}

/// Whether a letter has no meaning of its own in any shell.
fn is_plain(letter: char) -> bool {
    letter.is_alphanumeric() || "._-:/@%+,".contains(letter)
}
