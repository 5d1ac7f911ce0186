//! The request to carry out a plan, and what is made of it.

use linerate_control::ServerTrust;
use linerate_model::World;
use linerate_runner::OpenArchive;
use linerate_runner::lab::LabSetup;
use linerate_runner::plan::{
    Plan, PlanMistake, PlanRequest, PlanRunError, PlanWorld, PreparedPlan, TooLong, WorldError,
    read_without_files, world_of,
};
use linerate_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::PlanSetup;
use crate::problem::{HttpProblem, INTERNAL, INVALID_SETTING, UNABLE};
use crate::run_request::RunLimits;

/// Most settings.
const MAX_SETTINGS: usize = 100;
/// Most mistakes in the text of a problem; the preview has all of them.
const MAX_MISTAKES: usize = 5;

/// A plan to carry out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanRunRequest {
    /// The file, TOML. It cannot include files, and its topology is a bundled one.
    text: String,
    /// Values that replace those of the file, as `--set` of `linerate run` takes them: `KEY=VALUE`.
    #[serde(default)]
    #[schemars(length(max = 100))]
    set: Vec<String>,
    /// Where; without it, on the hosts of the plan if all of them have addresses, and in an emulated network if not.
    #[serde(default)]
    world: Option<WorldOfPlan>,
    /// Whether the control connections to the agents of the hosts, and those between the hosts, are encrypted.
    #[serde(default)]
    tls: bool,
}

/// Where plans are carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WorldOfPlan {
    /// On the hosts at the addresses in the plan.
    Hosts,
    /// In a network that this host emulates.
    Lab,
}

/// A plan that may be carried out.
#[derive(Debug)]
pub(crate) struct PlanTask {
    /// What was asked for.
    pub(crate) request: PlanRunRequest,
    /// Its name.
    pub(crate) name: String,
    world: WorldOfPlan,
    /// How long it takes, at most.
    pub(crate) time: Span,
}

impl From<WorldOfPlan> for World {
    fn from(world: WorldOfPlan) -> Self {
        match world {
            WorldOfPlan::Hosts => Self::Hosts,
            WorldOfPlan::Lab => Self::Lab,
        }
    }
}

impl WorldOfPlan {
    /// Where a plan can be carried out: where it is usually, then elsewhere.
    pub(crate) fn all_of(plan: &Plan) -> Vec<Self> {
        let mut all = [Self::Hosts, Self::Lab];
        if world_of(plan, None) == Ok(World::Lab) {
            all.reverse();
        }
        all.into_iter().filter(|world| world_of(plan, Some((*world).into())).is_ok()).collect()
    }
}

impl PlanSetup {
    /// Where plans of the pages may be carried out.
    pub(crate) fn worlds(&self) -> Vec<WorldOfPlan> {
        let hosts = self.agent_token.as_ref().map(|_| WorldOfPlan::Hosts);
        let lab = self.lab_programs.map(|_| WorldOfPlan::Lab);
        hosts.into_iter().chain(lab).collect()
    }

    /// Refuses a world that this server cannot use.
    fn check_world(&self, world: WorldOfPlan) -> Result<(), HttpProblem> {
        if self.worlds().contains(&world) {
            return Ok(());
        }
        let text = match world {
            WorldOfPlan::Hosts => {
                "this server has no token for the agents of other hosts; whoever runs it gives it one with \
                 --web-agent-token-file"
            }
            WorldOfPlan::Lab => "this server cannot emulate networks, which needs root",
        };
        Err(HttpProblem::new(UNABLE, text).at("world"))
    }
}

/// Reads a plan, which must not name files of this host.
///
/// # Errors
/// All mistakes, at most as many settings as are allowed.
pub(crate) fn read_plan(text: &str, set: &[String]) -> Result<Result<Plan, Vec<PlanMistake>>, HttpProblem> {
    if set.len() > MAX_SETTINGS {
        let text = format!("a plan takes at most {MAX_SETTINGS} settings here");
        return Err(HttpProblem::new(INVALID_SETTING, text).at("set").limit(MAX_SETTINGS as u64));
    }
    Ok(read_without_files(text, set).map_err(|error| error.mistakes))
}

impl PlanRunRequest {
    /// Checks the request. A plan may have 20,000 points, so this may take a while.
    ///
    /// # Errors
    /// The field that is wrong, a limit is exceeded, or this server cannot carry out such plans.
    pub(crate) fn check(self, limits: &RunLimits, setup: &PlanSetup) -> Result<PlanTask, HttpProblem> {
        let plan = read_plan(&self.text, &self.set)?.map_err(|mistakes| mistaken(&mistakes))?;
        let invalid =
            |field: &str, text: &dyn ToString| HttpProblem::new(INVALID_SETTING, text.to_string()).at(field);
        let world = world_of(&plan, self.world.map(World::from)).map_err(|error| match error {
            WorldError::NoAddress(host) => invalid(
                "set",
                &format!(
                    "host {host} has no address; add the setting host.{host}.address=…, or use another world"
                ),
            ),
            WorldError::NoLab => invalid("text", &"the plan has no [lab] with a topology"),
            WorldError::LabAxis(axis) => invalid(
                "world",
                &format!("axis '{axis}' changes the emulated network, which hosts do not have"),
            ),
            error => invalid("world", &error),
        })?;
        let world = if world == World::Lab { WorldOfPlan::Lab } else { WorldOfPlan::Hosts };
        setup.check_world(world)?;
        let estimate = plan.estimate().map_err(|error| invalid("text", &error))?;
        TooLong::check(&plan, &estimate, None).map_err(|error| invalid("set", &error))?;
        match world {
            WorldOfPlan::Lab if limits.longest.is_some() && estimate.at_least => {
                let text = "the time of tests is limited here, and a flow of the plan ends after an amount of data; \
                            give test.duration instead";
                return Err(invalid("text", &text));
            }
            WorldOfPlan::Lab => limits.check_time("plan", Some(estimate.time), "text")?,
            WorldOfPlan::Hosts => {
                let addresses = plan.used_hosts().filter_map(|host| host.address.as_deref());
                addresses.into_iter().try_for_each(|address| limits.check_host(address, "text"))?;
                if !limits.targets.is_empty() {
                    let groups = plan.multicast_groups().map_err(|error| invalid("text", &error))?;
                    groups.into_iter().try_for_each(|group| limits.check_group(Some(group), "text"))?;
                }
            }
        }
        Ok(PlanTask { request: self, name: plan.name.clone(), world, time: estimate.time })
    }
}

/// The problem of a plan with mistakes.
fn mistaken(mistakes: &[PlanMistake]) -> HttpProblem {
    let text = |mistake: &PlanMistake| match mistake.line {
        Some(line) => format!("line {line}: {}", mistake.text),
        None => format!("{}: {}", mistake.quoted, mistake.text),
    };
    let mut texts: Vec<String> = mistakes.iter().take(MAX_MISTAKES).map(text).collect();
    if mistakes.len() > MAX_MISTAKES {
        texts.push(format!("and {} more", mistakes.len() - MAX_MISTAKES));
    }
    let field = if mistakes.iter().any(|mistake| mistake.line.is_some()) { "text" } else { "set" };
    HttpProblem::new(INVALID_SETTING, texts.join("; ")).at(field)
}

impl PlanTask {
    /// Whether this host is busy with it, so that no client of its server may be measured meanwhile. Agents take a
    /// place in the queues of their own hosts.
    pub(crate) fn occupies_this_host(&self) -> bool {
        self.world == WorldOfPlan::Lab
    }

    /// The plan, with the id of its run.
    ///
    /// # Errors
    /// An assertion refers to a run that is not in the archive.
    pub(crate) fn prepare<'a>(
        &'a self,
        run: &str,
        archive: OpenArchive<'a>,
    ) -> Result<PreparedPlan<'a>, HttpProblem> {
        let PlanRunRequest { text, set, .. } = &self.request;
        // It is read again: a plan of 20,000 points takes much more memory than its text, and many may wait.
        let plan = read_plan(text, set)?.map_err(|mistakes| mistaken(&mistakes))?;
        let request = PlanRequest {
            world: Some(self.world.into()),
            set,
            archive: Some(archive),
            ..PlanRequest::default()
        };
        Ok(request.prepare_read(plan).map_err(not_run)?.named(run.to_owned()))
    }

    /// The hosts or the network to carry it out in.
    ///
    /// # Errors
    /// This server cannot use them.
    pub(crate) fn open_world<'a>(&self, setup: &'a PlanSetup) -> Result<PlanWorld<'a>, HttpProblem> {
        setup.check_world(self.world)?;
        match (self.world, &setup.agent_token, setup.lab_programs) {
            (WorldOfPlan::Hosts, Some(token), _) => Ok(PlanWorld::Hosts {
                token: token.clone(),
                tls: self.request.tls.then_some(ServerTrust::Token),
            }),
            (WorldOfPlan::Lab, _, Some(programs)) => {
                let lab = LabSetup::open(setup.run_dir.as_deref(), programs);
                lab.map(PlanWorld::Lab).map_err(|error| without_paths(&error))
            }
            _ => Err(HttpProblem::new(UNABLE, "this server carries out no such plans")),
        }
    }
}

/// Why a plan was not carried out, for visitors.
pub(crate) fn not_run(error: PlanRunError) -> HttpProblem {
    match error {
        PlanRunError::Archive(error) | PlanRunError::OtherRun { error, .. } => error.into(),
        error @ PlanRunError::Lab(_) => without_paths(&error),
        error => HttpProblem::new(INVALID_SETTING, error),
    }
}

/// What visitors read of an error that may name files of this host: what has a slash is for the log.
fn without_paths(error: &dyn std::error::Error) -> HttpProblem {
    let text = error.to_string();
    if !text.contains('/') {
        return HttpProblem::new(INVALID_SETTING, text);
    }
    tracing::error!(%error, "an emulated network has failed");
    HttpProblem::new(INTERNAL, "the network could not be emulated; the log of the server says why")
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_control::Token;

    fn request(text: &str, set: &[&str], world: Option<WorldOfPlan>) -> PlanRunRequest {
        let set = set.iter().map(|&set| set.to_owned()).collect();
        PlanRunRequest { text: text.to_owned(), set, world, tls: false }
    }

    fn with_token() -> PlanSetup {
        PlanSetup { agent_token: Some(Token::new("sixteen characters").unwrap()), ..PlanSetup::default() }
    }

    const IN_LAB: &str = "[lab]\ntopology = \"pair\"\n[test]\nduration = 2\n";

    #[test]
    fn a_refused_plan_has_the_field_to_blame() {
        let refused = |request: PlanRunRequest, setup: &PlanSetup| {
            let problem = request.check(&RunLimits::default(), setup).unwrap_err();
            (problem.field.unwrap(), problem.detail)
        };
        let (field, text) = refused(request("repeat = 3\n", &[], None), &PlanSetup::default());
        assert_eq!(field, "text");
        assert!(text.starts_with("line 1: ") && text.contains("repeats"), "{text}");
        let (field, text) = refused(request(IN_LAB, &["repeats=x"], None), &PlanSetup::default());
        assert!(field == "set" && text.starts_with("repeats=x: "), "{field}: {text}");
        let (field, text) = refused(request(IN_LAB, &[], None), &PlanSetup::default());
        assert!(field == "world" && text.contains("emulate"), "{field}: {text}");
        let (field, text) = refused(request(IN_LAB, &[], Some(WorldOfPlan::Hosts)), &with_token());
        assert!(field == "set" && text.contains("host.a.address"), "{field}: {text}");
        let addresses = ["host.a.address=192.0.2.1", "host.b.address=192.0.2.2"];
        let (field, text) = refused(request(IN_LAB, &addresses, None), &PlanSetup::default());
        assert!(field == "world" && text.contains("--web-agent-token-file"), "{field}: {text}");
    }

    #[test]
    fn an_emulated_network_is_not_used_longer_than_tests_may_be() {
        static NONE: NoPrograms = NoPrograms;
        let setup = PlanSetup { lab_programs: Some(&NONE), ..PlanSetup::default() };
        let limits = RunLimits { longest: Some(Span::from_secs(10)), ..RunLimits::default() };
        let check = |set: &[&str]| request(IN_LAB, set, None).check(&limits, &setup);
        assert!(check(&[]).is_ok());
        let long = check(&["repeats=50"]).unwrap_err();
        assert_eq!((long.limit, long.field.as_deref()), (Some(10), Some("text")));
        let text = IN_LAB.replace("duration = 2", "bytes = \"1T\"");
        let endless = request(&text, &[], None).check(&limits, &setup).unwrap_err();
        assert!(endless.detail.contains("test.duration"), "{endless:?}");
        assert!(request(&text, &[], None).check(&RunLimits::default(), &setup).is_ok(), "no limit");
    }

    /// Stands for the programs of a lab that is never started.
    #[derive(Debug)]
    struct NoPrograms;

    impl linerate_runner::lab::LabPrograms for NoPrograms {
        fn switch(
            &self,
            _: &linerate_runner::lab::LabHandle,
            _: bool,
        ) -> std::io::Result<std::process::Command> {
            Err(std::io::ErrorKind::NotFound.into())
        }

        fn agent(
            &self,
            _: &linerate_runner::lab::LabHandle,
            _: &str,
            _: u16,
        ) -> std::io::Result<std::process::Command> {
            Err(std::io::ErrorKind::NotFound.into())
        }
    }

    #[test]
    fn plans_go_only_where_tests_may() {
        let addresses = ["host.a.address=192.0.2.1", "host.b.address=198.51.100.2"];
        let limits = |targets: &[&str]| RunLimits {
            targets: targets.iter().map(|target| target.parse().unwrap()).collect(),
            ..RunLimits::default()
        };
        let check = |targets: &[&str]| {
            let request = request(IN_LAB, &addresses, Some(WorldOfPlan::Hosts));
            request.check(&limits(targets), &with_token())
        };
        let problem = check(&["192.0.2.0/24"]).unwrap_err();
        assert_eq!((problem.status, problem.field.as_deref()), (403, Some("text")));
        let both = ["192.0.2.0/24", "198.51.100.0/24"];
        let plan = check(&both).unwrap();
        assert!(!plan.occupies_this_host() && plan.time > Span::from_secs(2), "{plan:?}");

        // The receivers of a group have not been asked, also if only one point of many sends there.
        let text = format!(
            "{IN_LAB}udp = true\nupload = true\n[axis]\nmulticast = [\"239.1.2.3\", \"239.9.9.9\"]\n"
        );
        let check = |targets: &[&str]| {
            let request = request(&text, &addresses, Some(WorldOfPlan::Hosts));
            request.check(&limits(targets), &with_token())
        };
        assert!(check(&[&both[..], &["239.0.0.0/8"]].concat()).is_ok());
        let problem = check(&[&both[..], &["239.1.0.0/16"]].concat()).unwrap_err();
        assert_eq!((problem.status, problem.field.as_deref()), (403, Some("text")));
    }

    #[test]
    fn where_a_plan_can_be_carried_out_is_known_before() {
        let plan = |set: &[&str]| {
            let set: Vec<String> = set.iter().map(|&set| set.to_owned()).collect();
            read_plan(IN_LAB, &set).unwrap().unwrap()
        };
        assert_eq!(WorldOfPlan::all_of(&plan(&[])), [WorldOfPlan::Lab]);
        let reached = plan(&["host.a.address=192.0.2.1", "host.b.address=192.0.2.2"]);
        assert_eq!(WorldOfPlan::all_of(&reached), [WorldOfPlan::Hosts, WorldOfPlan::Lab]);
        assert_eq!(with_token().worlds(), [WorldOfPlan::Hosts]);
    }
}
