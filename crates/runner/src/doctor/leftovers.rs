//! Host settings that an agent has changed.

use linerate_control::Leftovers;
use linerate_model::{CheckSection, CheckStatus, HostCheck};

const REMEDY: &str = "linerate doctor --restore-settings";

/// One check per changed setting; none if nothing is changed.
pub(super) fn section(leftovers: Option<&Leftovers>) -> CheckSection {
    let checks = leftovers.map_or_else(Vec::new, |left| {
        left.settings.iter().enumerate().map(|(at, setting)| check(left, at, setting)).collect()
    });
    CheckSection { title: "Settings changed by an agent".to_owned(), checks }
}

fn check(left: &Leftovers, at: usize, setting: &str) -> HostCheck {
    let process = left.pid.map_or_else(|| "an agent".to_owned(), |pid| format!("an agent (process {pid})"));
    let check = HostCheck::good(format!("agent.setting.{}", at + 1), setting, "");
    if left.is_alive {
        let text = format!(
            "{process} changed it for a coordinator and will restore it when the coordinator is done"
        );
        return check.judged(CheckStatus::Note, text);
    }
    let text = format!(
        "{process} changed it and was killed before it could restore it; the next `linerate serve` with an \
         agent token restores it, or run:"
    );
    check.judged(CheckStatus::Bad, text).with_remedy(REMEDY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(is_alive: bool) -> Leftovers {
        let mut left = Leftovers::default();
        (left.pid, left.is_alive) = (Some(7), is_alive);
        left.settings =
            vec!["mtu of eth0: 9000, before 1500".to_owned(), "congestion: reno, before bbr".to_owned()];
        left
    }

    #[test]
    fn what_a_killed_agent_left_is_bad_and_what_a_living_one_holds_is_not() {
        assert!(section(None).checks.is_empty());
        let dead = section(Some(&left(false))).checks;
        assert_eq!(
            dead.iter().map(|check| check.status).collect::<Vec<_>>(),
            [CheckStatus::Bad, CheckStatus::Bad]
        );
        assert_eq!((dead[1].id.as_str(), dead[0].remedy.as_deref()), ("agent.setting.2", Some(REMEDY)));
        assert!(dead[0].text.contains("process 7"));
        let alive = section(Some(&left(true))).checks;
        assert_eq!((alive[0].status, alive[0].remedy.as_deref()), (CheckStatus::Note, None));
    }
}
