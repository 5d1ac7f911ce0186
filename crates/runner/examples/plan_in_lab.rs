//! Runs a plan in an emulated network on this machine (needs root). The switch of the network and the agents on its
//! hosts are other processes of this program: each has a role, which its arguments name.

use std::error::Error;
use std::io;
use std::path::Path;
use std::process::Command;

use linerate_lab::{LabHandle, StateDir};
use linerate_model::World;
use linerate_plan::{Source, read};
use linerate_runner::CancelToken;
use linerate_runner::lab::{LabPrograms, LabSetup, LabSwitch, serve_on_host};
use linerate_runner::plan::{PlanFiles, PlanWorld, PreparedPlan};
use linerate_units::Bitrate;

const PLAN: &str = r#"
flow.bulk = { from = "a", to = "b" }
test.duration = "1s"
axis.streams = [1, 4]
lab.topology = "pair"
"#;

#[derive(Debug)]
struct Roles;

impl Roles {
    fn command(role: &str, lab: &LabHandle) -> io::Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(role).arg(lab.run_dir()).arg(lab.name());
        Ok(command)
    }
}

impl LabPrograms for Roles {
    fn switch(&self, lab: &LabHandle, _tied: bool) -> io::Result<Command> {
        Self::command("switch", lab)
    }

    fn agent(&self, lab: &LabHandle, host: &str, port: u16) -> io::Result<Command> {
        let mut command = Self::command("agent", lab)?;
        command.arg(host).arg(port.to_string());
        Ok(command)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["switch", folder, lab] => {
            let state = StateDir::open(Some(Path::new(folder)))?;
            // This network is not kept after the plan, so the switch is always tied to it.
            LabSwitch::create(&lab.parse()?, &state, None)?.run(true)?;
        }
        ["agent", folder, lab, host, port] => {
            let lab = StateDir::open(Some(Path::new(folder)))?.lab(lab.parse()?);
            serve_on_host(&lab, host, port.parse()?, None)?;
        }
        _ => plan(StateDir::open(args.first().map(Path::new))?)?,
    }
    Ok(())
}

fn plan(state: StateDir) -> Result<(), Box<dyn Error>> {
    let source = Source { name: "in-lab.toml".to_owned(), text: PLAN.to_owned() };
    let plan = PreparedPlan::new(read(source, &[], &PlanFiles)?, World::Lab)?;
    let world = PlanWorld::Lab(LabSetup { state, programs: &Roles, keep: false });
    let record = plan.run(world, &CancelToken::new(), Vec::new(), &mut ())?;
    for goodput in record.summaries.iter().filter(|summary| summary.quantity == "goodput") {
        if let Some(rate) = goodput.median.and_then(Bitrate::from_bps) {
            println!("point {}, {}: {rate}", goodput.point, goodput.direction.name());
        }
    }
    println!("ended as {:?}", record.outcome);
    Ok(())
}
