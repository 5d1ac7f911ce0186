//! `linerate plan`: checks a plan and shows what it would do.

use clap::Args;
use linerate_plan::{bundled, read};
use linerate_report::page::TextStyle;
use linerate_report::plan_preview::{
    BundledPlans, PlanMistakes, PlanPreview, describe, estimated_time, long_time,
};
use linerate_runner::find_plan;
use linerate_runner::plan::{PlanFiles, TooLong};
use linerate_units::{Span, above_zero};

use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::{stdout, terminal};

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// A bundled plan, or a plan file; lists the bundled plans if omitted
    plan: Option<String>,
    /// Set a value of the plan, such as test.duration=5s, repeats=3, axis.window=64K,1M or
    /// host.a.address=192.0.2.1; may be given more than once
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Refuse the plan if it would take longer [default: max_time of the plan]
    #[arg(long, value_name = "SECONDS", value_parser = above_zero::<Span>)]
    max_time: Option<Span>,
    /// Print the file itself, to read it or to start one's own from it
    #[arg(long, conflicts_with_all = ["set", "max_time", "json"], requires = "plan")]
    show: bool,
    /// Print as JSON: every point with the parameters of its flows, and the order of the trials
    #[arg(long)]
    json: bool,
}

/// Checks the plan and describes it.
pub(crate) fn run(args: &PlanArgs) -> Result<Exit, CommandError> {
    let Some(name) = &args.plan else { return Ok(list(args.json)) };
    let source = find_plan(name).map_err(CommandError::usage)?;
    if args.show {
        return Ok(stdout::print(source.text.as_bytes()));
    }
    let plan = read(source, &args.set, &PlanFiles).map_err(|error| {
        if args.json {
            // With --json, the errors are printed as JSON too; the exit code reports the failure.
            let _ = stdout::print_json(&PlanMistakes::new(&error));
            return Exit::Usage.into();
        }
        CommandError::usage(error)
    })?;
    let estimate = plan.estimate().map_err(CommandError::usage)?;
    TooLong::check(&plan, &estimate, args.max_time).map_err(|error| too_long(&error))?;
    if args.json {
        return Ok(stdout::print_json(&PlanPreview::new(&plan, &estimate)));
    }
    let mut page = terminal::stdout_page();
    describe(&mut page, &plan, &estimate);
    Ok(stdout::print(page.into_text().as_bytes()))
}

/// The error for a plan that takes longer than allowed.
pub(super) fn too_long(found: &TooLong) -> CommandError {
    let whose = if found.by_plan { "max_time of the plan" } else { "--max-time" };
    CommandError::usage(format!(
        "plan {} would take {}, but {whose} is {}; raise that limit, or remove points or repeats",
        found.plan,
        estimated_time(&found.estimate),
        long_time(found.limit)
    ))
}

fn list(json: bool) -> Exit {
    if json {
        return stdout::print_json(&BundledPlans::new());
    }
    let mut page = terminal::stdout_page();
    page.heading("Bundled plans (linerate plan NAME describes one; --show prints the file)");
    let width = bundled().iter().map(|known| known.name.len()).max().unwrap_or(0);
    for known in bundled() {
        page.row(&[(TextStyle::Strong, known.name), (TextStyle::Plain, known.about)], &[width]);
    }
    stdout::print(page.into_text().as_bytes())
}
