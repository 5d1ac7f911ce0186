//! Why the resources of a lab cannot be created or removed, and what helps.

use std::io;
use std::path::PathBuf;

use linerate_sock::SockError;
use linerate_sock::tap::TapError;

use crate::LabName;

/// A lab that could not be created or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabResourceError {
    /// The switch of a lab of that name runs.
    #[error("the lab \"{0}\" is up; end it with `linerate lab down {0}`, or choose another name with --name")]
    Running(LabName),
    /// The switch of a lab of that name runs, but does not stop when requested to.
    #[error(
        "the switch of the lab \"{lab}\" does not answer; kill its process (`kill -9 {pid}`), then run \
         `linerate lab down {lab}` to remove the lab"
    )]
    Deaf {
        /// The lab.
        lab: LabName,
        /// Number of the switch's process.
        pid: u32,
    },
    /// A namespace of another owner has the name.
    #[error(
        "a network namespace \"{name}\" exists that does not belong to this lab; choose another name for \
         the lab with --name, or remove the namespace with `ip netns delete {name}`"
    )]
    NameTaken {
        /// The name.
        name: String,
    },
    /// Root, but without the usual privileges of root.
    #[error(
        "this process may not create network namespaces; run as root (`sudo`), and in a container grant \
         CAP_SYS_ADMIN and CAP_NET_ADMIN"
    )]
    NotPermitted(#[source] SockError),
    /// Not root, and the system denies user namespaces to its users.
    #[error("a lab without root needs a user namespace, which this system refuses; {remedy}")]
    NoUserNamespace {
        /// What helps.
        remedy: String,
        /// The error of the kernel.
        source: SockError,
    },
    /// No TAP device.
    #[error(transparent)]
    Tap(#[from] TapError),
    /// An interface or namespace of a host.
    #[error("host \"{host}\": {what} failed")]
    Host {
        /// Name of the host.
        host: String,
        /// What was attempted.
        what: String,
        /// The error of the kernel.
        source: SockError,
    },
    /// A setting of a host that the topology requests.
    #[error(
        "host \"{host}\": the setting {setting} is not available on this system; correct it in the \
             topology"
    )]
    Sysctl {
        /// Name of the host.
        host: String,
        /// Full name of the setting, and the requested value: "net.ipv4.tcp_sack = 2".
        setting: String,
        /// The error of the kernel.
        source: SockError,
    },
    /// A congestion control that this kernel does not have.
    #[error(
        "host \"{host}\": this kernel does not have the congestion control \"{wanted}\"; available: \
             {available}"
    )]
    UnknownCongestion {
        /// Name of the host.
        host: String,
        /// The one requested.
        wanted: String,
        /// The available ones.
        available: String,
    },
    /// A name, program or setting that could not be removed; the journal is kept, and a later attempt may
    /// succeed.
    #[error("the lab \"{lab}\": {what} could not be removed; remove it manually, or try again")]
    Stuck {
        /// Name of the lab.
        lab: String,
        /// What could not be removed.
        what: String,
        /// The error of the kernel.
        source: SockError,
    },
    /// A file of the lab's folder.
    #[error("{path}: {what} failed", path = .path.display())]
    Folder {
        /// The file or folder.
        path: PathBuf,
        /// What was attempted.
        what: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A folder that others could have created.
    #[error(
        "{path} is accessible to other users or belongs to another user; remove it, or name a folder of your \
         own with LINERATE_RUN",
        path = .0.display()
    )]
    NotOurs(PathBuf),
    /// A journal that no version of this program has written.
    #[error(
        "{path} line {line}: not an entry that this version knows; remove the lab with the version that \
         created it",
        path = .path.display()
    )]
    Journal {
        /// The journal.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

impl LabResourceError {
    /// For a file of the folder.
    pub(super) fn folder(
        path: &std::path::Path,
        what: &'static str,
    ) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Folder { path, what, source }
    }

    /// For a step in the creation of a host. A missing permission has its own remedy.
    pub(super) fn host(host: &str, what: &str) -> impl FnOnce(SockError) -> Self + use<> {
        let (host, what) = (host.to_owned(), what.to_owned());
        move |source| match source.source.kind() {
            io::ErrorKind::PermissionDenied => Self::NotPermitted(source),
            _ => Self::Host { host, what, source },
        }
    }
}
