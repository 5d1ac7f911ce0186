//! A plan as text.

use linerate_model::World;
use linerate_plan::{Assertion, Axis, AxisTarget, Estimate, Plan, TrialOrder};
use linerate_units::Span;

use crate::page::{Page, TextStyle};
use crate::text_flow::plural;

/// With more points than this, only their number is shown.
const MAX_LISTED: usize = 100;

/// Prints what a plan would do.
pub fn describe(page: &mut Page, plan: &Plan, estimate: &Estimate) {
    page.heading(&plan.name);
    if !plan.about.is_empty() {
        page.remark(0, TextStyle::Plain, &plan.about);
    }
    summary(page, plan, estimate);
    hosts(page, plan);
    flows(page, plan);
    axes(page, plan);
    if !plan.assertions.is_empty() || !plan.left_out.is_empty() {
        page.heading("Assertions");
        plan.assertions.iter().for_each(|one| assertion(page, one));
    }
    for text in &plan.left_out {
        page.remark(0, TextStyle::Warning, &format!("{text}: skipped, because --set removed its points"));
    }
    points(page, plan);
}

/// What is about to be done, where, and how long it takes, in one line.
#[must_use]
pub fn announcement(plan: &Plan, world: World) -> String {
    let place = match world {
        World::Lab => "in an emulated network on this machine".to_owned(),
        _ => {
            let hosts: Vec<&str> = plan.used_hosts().map(|host| host.name.as_str()).collect();
            format!("on {}", hosts.join(", "))
        }
    };
    // A plan that was prepared has an estimate.
    let Ok(estimate) = plan.estimate() else { return format!("plan {} {place}", plan.name) };
    let trials = plural(estimate.trials, "trial");
    format!("plan {}: {trials} {place}, {}", plan.name, estimated_time(&estimate))
}

/// The estimated time, and its precision.
#[must_use]
pub fn estimated_time(estimate: &Estimate) -> String {
    let bound = match (estimate.at_least, estimate.at_most) {
        (true, true) => "about ",
        (true, false) => "at least ",
        (false, true) => "at most ",
        (false, false) => "",
    };
    format!("{bound}{}", long_time(estimate.time))
}

/// A time in minutes and hours if it is long.
#[must_use]
pub fn long_time(span: Span) -> String {
    let minutes = span.as_ns().div_ceil(60_000_000_000);
    match minutes {
        0..=2 => span.to_string(),
        3..120 => format!("{minutes} min"),
        _ => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn summary(page: &mut Page, plan: &Plan, estimate: &Estimate) {
    let points = count(plan.grid.len() as u64, "point");
    let repeats =
        if plan.repeats == 1 { "once each".to_owned() } else { format!("{} times each", plan.repeats) };
    let order = match plan.order {
        TrialOrder::Shuffled => format!("shuffled with the seed {}", plan.seed),
        order => order.name().to_owned(),
    };
    let rows = [
        ("Points", format!("{points}, {repeats}, {order}")),
        ("Trials", format!("{}, {} between them", count(estimate.trials, "trial"), plan.pause)),
        ("Time", estimated_time(estimate)),
    ];
    for (name, text) in &rows {
        page.row(&[(TextStyle::Faint, name), (TextStyle::Plain, text)], &[6]);
    }
    for (name, note) in &plan.notes {
        page.row(&[(TextStyle::Faint, name), (TextStyle::Plain, note)], &[6]);
    }
}

fn hosts(page: &mut Page, plan: &Plan) {
    page.heading("Hosts");
    let width = plan.hosts.iter().map(|host| host.name.len()).max().unwrap_or(0);
    for host in &plan.hosts {
        let mut parts = Vec::new();
        match (&host.address, host.in_lab) {
            (Some(address), _) => parts.push(format!("{address}, port {}", host.port)),
            (None, true) => parts.push("in the lab".to_owned()),
            (None, false) => parts.push(format!("no address; give --set host.{}.address=…", host.name)),
        }
        parts.extend(host.settings.iter().map(|(key, setting)| format!("{key} {setting}")));
        page.row(&[(TextStyle::Strong, &host.name), (TextStyle::Plain, &parts.join(", "))], &[width]);
    }
    if let Some(lab) = &plan.lab {
        let set: Vec<String> = lab.set.iter().map(|(key, value)| format!(" --set {key}={value}")).collect();
        page.remark(
            0,
            TextStyle::Faint,
            &format!("The lab is started as with: linerate lab up {}{}", lab.topology, set.concat()),
        );
    }
}

fn flows(page: &mut Page, plan: &Plan) {
    page.heading("Flows");
    let Ok(point) = plan.point(0) else { return };
    let slots = plan.schedule(&point);
    let width = plan.flows.iter().map(|flow| flow.name.len()).max().unwrap_or(0);
    for flow in &plan.flows {
        let Some(slot) = slots.iter().find(|slot| slot.flow == flow.name) else {
            let text = format!("{} to {}, not at the first point", flow.from, flow.to);
            page.row(&[(TextStyle::Strong, &flow.name), (TextStyle::Plain, &text)], &[width]);
            continue;
        };
        let end =
            slot.end.map_or_else(|| "until everything is sent".to_owned(), |end| format!("to {end} at most"));
        let cross_traffic = if flow.cross_traffic { ", as cross traffic" } else { "" };
        let text = format!("{} to {}, from {} {end}{cross_traffic}", flow.from, flow.to, slot.start);
        page.row(&[(TextStyle::Strong, &flow.name), (TextStyle::Plain, &text)], &[width]);
    }
    if plan.grid.len() > 1 {
        page.remark(0, TextStyle::Faint, "Times are for the first point, from the start of a trial.");
    }
}

fn axes(page: &mut Page, plan: &Plan) {
    if plan.axes.is_empty() && plan.search.is_none() {
        return;
    }
    page.heading("Axes");
    let names = plan.axes.iter().map(|axis| axis.name.len());
    let width = names.chain(plan.search.iter().map(|search| search.name.len())).max().unwrap_or(0);
    let row = |page: &mut Page, name: &str, text: &str| {
        page.row(&[(TextStyle::Strong, name), (TextStyle::Plain, text)], &[width]);
    };
    for axis in &plan.axes {
        row(page, &axis.name, &format!("{}: {}", targets(&axis.targets), values(axis)));
    }
    if let Some(search) = &plan.search {
        let confirm = search.confirm.map(|time| format!(", confirmed for {time}")).unwrap_or_default();
        let text = format!(
            "{}: search from {} to {} for the largest value with {}, within {}{confirm}",
            targets(&search.targets),
            search.low,
            search.high,
            search.text,
            search.resolution
        );
        row(page, &search.name, &text);
    }
}

fn targets(targets: &[AxisTarget]) -> String {
    let name = |target: &AxisTarget| match target {
        AxisTarget::Test(knob) => format!("test.{knob}"),
        AxisTarget::Flow { flow, knob } => format!("flow.{flow}.{knob}"),
        AxisTarget::Host { host, key } => format!("host.{host}.{key}"),
        AxisTarget::Lab(key) => format!("lab.{key}"),
        AxisTarget::Flows => "flows".to_owned(),
    };
    targets.iter().map(name).collect::<Vec<_>>().join(" and ")
}

fn values(axis: &Axis) -> String {
    axis.values.iter().map(|value| value.label.as_str()).collect::<Vec<_>>().join(", ")
}

fn assertion(page: &mut Page, assertion: &Assertion) {
    let of = assertion.flow.as_ref().map(|flow| format!(" of {flow}")).unwrap_or_default();
    let name =
        if assertion.name == assertion.text { String::new() } else { format!(" ({})", assertion.name) };
    page.remark(0, TextStyle::Plain, &format!("{}{of}{name}", assertion.text));
}

fn points(page: &mut Page, plan: &Plan) {
    if plan.grid.len() < 2 {
        return;
    }
    page.heading("Points");
    for number in 0..plan.grid.len().min(MAX_LISTED) {
        let Ok(point) = plan.point(number) else { continue };
        page.row(&[(TextStyle::Faint, &point.id.to_string()), (TextStyle::Plain, &point.label())], &[16]);
    }
    if plan.grid.len() > MAX_LISTED {
        let more = plan.grid.len() - MAX_LISTED;
        page.remark(0, TextStyle::Faint, &format!("and {more} more; --json lists all of them"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_times_are_rounded_up_to_minutes() {
        assert_eq!(long_time(Span::from_secs(45)), "45 s");
        assert_eq!(long_time(Span::from_secs(2410)), "41 min");
        assert_eq!(long_time(Span::from_secs(7200)), "2 h 0 min");
        assert_eq!(long_time(Span::from_secs(9001)), "2 h 31 min");
    }
}
