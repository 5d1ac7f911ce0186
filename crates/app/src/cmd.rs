//! One file per command.

mod archived;
mod check;
mod compare;
mod doctor;
mod envelope;
mod format;
mod guardian;
mod import;
mod lab;
mod measuring;
mod page;
mod plan;
mod reference;
mod report;
mod run;
mod serve;
mod settings_folder;
mod stand_in;
mod sweep;
mod test;
mod token;

pub(crate) use check::CheckArgs;
pub(crate) use compare::CompareArgs;
pub(crate) use doctor::DoctorArgs;
pub(crate) use envelope::EnvelopeArgs;
pub(crate) use format::format_name;
pub(crate) use guardian::GuardArgs;
pub(crate) use lab::LabArgs;
pub(crate) use plan::PlanArgs;
pub(crate) use run::RunArgs;
pub(crate) use settings_folder::RunFolder;
pub(crate) use stand_in::{InstallLinksArgs, Tool};

use crate::args::{Cli, Command};
use crate::exit::Exit;

/// Executes a command.
pub(crate) fn run(cli: Cli) -> Exit {
    match cli.command {
        Command::Serve(args) => serve::run(&args),
        Command::Test(args) => test::run(&args),
        Command::Sweep(args) => sweep::run(&args),
        Command::Envelope(args) => envelope::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Lab(args) => lab::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Iperf3(given) => stand_in::run("iperf3", &given),
        Command::Nuttcp(given) => stand_in::run("nuttcp", &given),
        Command::Iperf(given) => stand_in::run("iperf", &given),
        Command::Ttcp(given) => stand_in::run("ttcp", &given),
        Command::Netpipe(given) => stand_in::run("NPtcp", &given),
        Command::Netperf(given) => stand_in::run("netperf", &given),
        Command::Netserver(given) => stand_in::run("netserver", &given),
        Command::Ntttcp(given) => stand_in::run("ntttcp", &given),
        Command::InstallLinks(args) => stand_in::install(&args),
        Command::Import(args) => import::run(&args),
        Command::History(args) => archived::history(&args),
        Command::Show(args) => archived::show(&args),
        Command::Export(args) => archived::export(&args),
        Command::Report(args) => report::run(&args),
        Command::Completions { shell } => reference::completions(shell),
        Command::Man { command } => reference::man(&command),
        Command::GuardSettings(args) => guardian::run(&args),
    }
}
