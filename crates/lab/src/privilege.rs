//! The privilege with which a lab is created: as root, or as root of a user namespace.

use linerate_sock::userns::{become_root_in_user_namespace, effective_user};
use linerate_sock::{SockError, proc};

use crate::LabResourceError;

/// What this process may create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privilege {
    /// Namespaces with names under `/run/netns`, visible to every program.
    Root,
    /// Namespaces without names, in a user namespace of this process: accessible through its descriptors.
    UserNamespace,
}

impl Privilege {
    /// Enables this process to create a lab: root stays unchanged, another user becomes root in a user
    /// namespace. Only for a process with a single thread. [`super::run_dir`] returns a different folder
    /// afterwards, so call it before.
    ///
    /// # Errors
    /// The system denies user namespaces to its users; the message states the remedy.
    pub fn acquire() -> Result<Self, LabResourceError> {
        if effective_user() == 0 {
            return Ok(Self::Root);
        }
        become_root_in_user_namespace().map_err(refused)?;
        Ok(Self::UserNamespace)
    }
}

fn refused(source: SockError) -> LabResourceError {
    LabResourceError::NoUserNamespace { remedy: remedy(proc::sysctl), source }
}

/// The settings with which distributions disable user namespaces, each with the disabling value and an enabling
/// one.
const NAMESPACE_SYSCTLS: &[(&str, &str, &str)] = &[
    ("kernel.unprivileged_userns_clone", "0", "1"),
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ("user.max_user_namespaces", "0", "10000"),
];

fn remedy(sysctl: impl Fn(&str) -> Option<String>) -> String {
    let closed =
        NAMESPACE_SYSCTLS.iter().filter(|(name, closed, _)| sysctl(name).as_deref() == Some(*closed));
    let open: Vec<String> = closed.map(|(name, _, open)| format!("{name}={open}")).collect();
    match open.as_slice() {
        [] => "run as root (`sudo`)".to_owned(),
        open => format!("run as root (`sudo`), or allow them: `sudo sysctl {}`", open.join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remedy_names_the_switch_that_is_off() {
        assert_eq!(remedy(|_| None), "run as root (`sudo`)");
        let ubuntu = |name: &str| match name {
            "kernel.unprivileged_userns_clone" | "kernel.apparmor_restrict_unprivileged_userns" => {
                Some("1".to_owned())
            }
            _ => Some("96365".to_owned()),
        };
        assert_eq!(
            remedy(ubuntu),
            "run as root (`sudo`), or allow them: `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`"
        );
        let closed = |_: &str| Some("0".to_owned());
        assert!(
            remedy(closed)
                .ends_with("`sudo sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000`")
        );
    }
}
