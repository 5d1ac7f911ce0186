//! Network namespaces that a task creates, enters and removes, including those of killed tasks.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use linerate_sock::netns::{self, NetnsId};
use linerate_sock::process::end_in_netns;

/// Time for the programs of a killed task to end by themselves.
const STOP_GRACE: Duration = Duration::from_millis(500);

/// Namespaces with a common prefix, removed on drop.
pub(crate) struct Namespaces {
    names: Vec<String>,
}

impl Namespaces {
    /// Creates `task-PID-worker-host` for each host, and brings its loopback interface up.
    pub(crate) fn make(task: &str, worker: usize, hosts: &[&str]) -> Result<Self, String> {
        // The guard exists before the first namespace, so that a failure removes what has been created.
        let own = std::process::id();
        let names = hosts.iter().map(|host| format!("{task}-{own}-{worker}-{host}")).collect();
        let namespaces = Self { names };
        for name in &namespaces.names {
            ip(&["netns", "add", name])?;
            ip(&["-n", name, "link", "set", "lo", "up"])?;
        }
        Ok(namespaces)
    }

    /// Name of the namespace of the host with this number.
    pub(crate) fn name(&self, host: usize) -> &str {
        &self.names[host]
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        // Interfaces disappear with their namespaces. Fails for namespaces that were not created.
        for name in &self.names {
            let _ = ip(&["netns", "delete", name]);
        }
    }
}

/// Removes the namespaces of this task whose creator is gone, and ends the programs in them.
pub(crate) fn remove_left_over(task: &str) -> Result<(), String> {
    let list = output("ip", &["netns", "list"])?;
    let left = list.lines().filter_map(|line| line.split_whitespace().next());
    for name in left.filter(|name| is_left_over(name, task)) {
        if let Ok(netns::NameState::Namespace(open)) = netns::open_named(name)
            && let Ok(id) = NetnsId::of(&open)
        {
            end_in_netns(&BTreeSet::from([id]), STOP_GRACE, |_, _| true)
                .map_err(|e| format!("cannot end what a killed task left in {name}: {e}"))?;
        }
        ip(&["netns", "delete", name])?;
    }
    Ok(())
}

/// Whether a name belongs to this task and to a process that is gone.
pub(crate) fn is_left_over(name: &str, task: &str) -> bool {
    maker(name, task).is_some_and(|pid| !is_alive(pid))
}

/// The process that created a namespace of this task.
fn maker(name: &str, task: &str) -> Option<u32> {
    name.strip_prefix(task)?.strip_prefix('-')?.split('-').next()?.parse().ok()
}

fn is_alive(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

/// `ip netns exec` is replaced by its command through exec, so the process id is that of the program.
pub(crate) fn enter(namespace: &str) -> Vec<String> {
    ["ip", "netns", "exec", namespace].map(str::to_owned).to_vec()
}

/// Runs `ip` with arguments.
pub(crate) fn ip(arguments: &[&str]) -> Result<(), String> {
    output("ip", arguments).map(drop)
}

/// The output of a program, which must succeed.
pub(crate) fn output(program: &str, arguments: &[&str]) -> Result<String, String> {
    let call = || format!("`{program} {}`", arguments.join(" "));
    let output =
        Command::new(program).args(arguments).output().map_err(|e| format!("cannot run {}: {e}", call()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{} failed: {}", call(), String::from_utf8_lossy(&output.stderr).trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_names_its_maker() {
        assert_eq!(maker("verdicts-17-0-a", "verdicts"), Some(17));
        assert_eq!(maker("bench-17-0-a", "verdicts"), None);
        assert_eq!(maker("verdictsx-17-a", "verdicts"), None);
        assert!(is_alive(std::process::id()));
    }

    #[test]
    #[ignore = "needs root"]
    fn what_a_killed_task_left_is_removed_with_its_programs() {
        // The creator is a process that has ended.
        let mut gone = Command::new("true").spawn().unwrap();
        let maker = gone.id();
        gone.wait().unwrap();
        let name = format!("leftover-{maker}-0-a");
        ip(&["netns", "add", &name]).unwrap();
        let mut command = Command::new("ip");
        let mut sleeper = command.args(["netns", "exec", &name, "sleep", "1000"]).spawn().unwrap();
        let mine = Namespaces::make("leftover", 0, &["a"]).unwrap();
        remove_left_over("leftover").unwrap();
        let list = output("ip", &["netns", "list"]).unwrap();
        assert!(!list.contains(&name) && list.contains(mine.name(0)), "{list}");
        assert!(!sleeper.wait().unwrap().success());
    }
}
