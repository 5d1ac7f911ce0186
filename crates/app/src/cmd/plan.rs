//! `linerate plan`: checks a plan and shows what it would do.

use clap::Args;
use linerate_plan::{PlanError, bundled, read};
use linerate_report::plan_preview::{
    BundledPlans, PlanMistakes, PlanPreview, describe, estimated_time, long_time,
};
use linerate_runner::find_plan;
use linerate_runner::plan::{PlanFiles, TooLong};
use linerate_units::{Span, above_zero};

use super::page::{self, Page, TextStyle};
use crate::exit::Exit;
use crate::print;
use crate::terminal;

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

/// Executes the command.
pub(crate) fn run(args: &PlanArgs) -> Exit {
    let Some(name) = &args.plan else { return list(args.json) };
    let source = match find_plan(name) {
        Ok(source) => source,
        Err(trouble) => {
            print::error(trouble);
            return Exit::Usage;
        }
    };
    if args.show {
        return page::print(source.text.as_bytes());
    }
    let plan = match read(source, &args.set, &PlanFiles) {
        Ok(plan) => plan,
        Err(error) => {
            if args.json {
                // With --json, the errors are printed as JSON too; the exit code reports the failure.
                let _ = page::print_json(&PlanMistakes::new(&error));
            } else {
                print_mistakes(&error);
            }
            return Exit::Usage;
        }
    };
    let estimate = match plan.estimate() {
        Ok(estimate) => estimate,
        Err(error) => {
            print::error(error);
            return Exit::Usage;
        }
    };
    if let Err(error) = TooLong::check(&plan, &estimate, args.max_time) {
        print::error(too_long(&error));
        return Exit::Usage;
    }
    if args.json {
        return page::print_json(&PlanPreview::new(&plan, &estimate));
    }
    let view = terminal::stdout_view();
    let mut page = Page::new(view.width, view.colour);
    describe(&mut page, &plan, &estimate);
    page::print(page.into_text().as_bytes())
}

/// Prints all errors in a plan.
pub(super) fn print_mistakes(error: &PlanError) {
    for line in error.to_string().lines() {
        // Lines quoted from the file follow their message.
        if line.starts_with("    ") { print::note(line) } else { print::error(line) }
    }
}

/// The error for a plan that takes longer than allowed.
pub(super) fn too_long(found: &TooLong) -> String {
    let whose = if found.by_plan { "max_time of the plan" } else { "--max-time" };
    format!(
        "plan {} would take {}, but {whose} is {}; raise that limit, or remove points or repeats",
        found.plan,
        estimated_time(&found.estimate),
        long_time(found.limit)
    )
}

fn list(json: bool) -> Exit {
    if json {
        return page::print_json(&BundledPlans::new());
    }
    let view = terminal::stdout_view();
    let mut page = Page::new(view.width, view.colour);
    page.heading("Bundled plans (linerate plan NAME describes one; --show prints the file)");
    let width = bundled().iter().map(|known| known.name.len()).max().unwrap_or(0);
    for known in bundled() {
        page.row(&[(TextStyle::Strong, known.name), (TextStyle::Plain, known.about)], &[width]);
    }
    page::print(page.into_text().as_bytes())
}
