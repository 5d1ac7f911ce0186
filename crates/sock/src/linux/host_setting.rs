//! Settings of a host that a measurement may change temporarily: reading, checking, setting and restoring.
//!
//! All of this happens in the network namespace of the calling thread. The *state* of a setting is a text
//! returned by [`HostSetting::read`]. It is sufficient to restore the setting, and stays the same until
//! somebody changes the setting. A change takes three steps, so that it can be journaled before it happens:
//! read the state, compute the new state ([`HostSettingRequest::becomes`]), apply it
//! ([`HostSettingRequest::set`]).

mod link;
mod offload;
mod root;

use crate::discipline::RootDiscipline;
use crate::{SockError, netns, proc, sockopt};

/// A setting of a host, or of one of its interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostSetting {
    /// MTU of an interface.
    Mtu,
    /// TCP segmentation offload, in the NIC.
    Tso,
    /// Generic segmentation offload, in the kernel.
    Gso,
    /// Generic receive offload, in the kernel.
    Gro,
    /// Large receive offload, in the NIC.
    Lro,
    /// Default congestion control of TCP.
    Congestion,
    /// Receive buffer sizes of TCP.
    TcpRmem,
    /// Send buffer sizes of TCP.
    TcpWmem,
    /// Queueing discipline at the root of an interface.
    RootDiscipline,
}

/// Why a setting cannot be changed as requested, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle(pub String);

/// The requested value of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostSettingRequest {
    /// MTU, bytes.
    Mtu(u32),
    /// An offload ([`HostSetting::Tso`], `Gso`, `Gro` or `Lro`), on or off.
    Offload(HostSetting, bool),
    /// Default congestion control of TCP.
    Congestion(String),
    /// Minimum, default and maximum size in bytes, of [`HostSetting::TcpRmem`] or `TcpWmem`.
    Buffers(HostSetting, [u64; 3]),
    /// Discipline at the root.
    Discipline(RootDiscipline),
}

const CONGESTION: &str = "net.ipv4.tcp_congestion_control";
const AVAILABLE: &str = "net.ipv4.tcp_available_congestion_control";
/// The system has a single list, which can be changed in the initial network namespace only.
const ALLOWED: &str = "net.ipv4.tcp_allowed_congestion_control";
/// The kernel stores these sizes in signed integers.
const MAX_BUFFER: u64 = i32::MAX as u64;

impl HostSetting {
    /// All settings in the order in which they are set; they are restored in reverse order.
    pub const ALL: [Self; 9] = [
        Self::Congestion,
        Self::TcpRmem,
        Self::TcpWmem,
        Self::Mtu,
        Self::Tso,
        Self::Gso,
        Self::Gro,
        Self::Lro,
        Self::RootDiscipline,
    ];

    /// Name on the command line and in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mtu => "mtu",
            Self::Tso => "tso",
            Self::Gso => "gso",
            Self::Gro => "gro",
            Self::Lro => "lro",
            Self::Congestion => "congestion",
            Self::TcpRmem => "tcp_rmem",
            Self::TcpWmem => "tcp_wmem",
            Self::RootDiscipline => "qdisc",
        }
    }

    /// The setting of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|setting| setting.name() == name)
    }

    /// Whether each interface has its own value; otherwise the network namespace has one.
    #[must_use]
    pub fn is_of_interface(self) -> bool {
        self.sysctl().is_none()
    }

    fn sysctl(self) -> Option<&'static str> {
        match self {
            Self::Congestion => Some(CONGESTION),
            Self::TcpRmem => Some("net.ipv4.tcp_rmem"),
            Self::TcpWmem => Some("net.ipv4.tcp_wmem"),
            _ => None,
        }
    }

    /// Reads the state. `interface` is used only if [`HostSetting::is_of_interface`].
    ///
    /// # Errors
    /// `ENODEV` if there is no such interface, `ENOENT` if the kernel has no such setting.
    pub fn read(self, interface: &str) -> Result<String, SockError> {
        match self {
            Self::Mtu => link::mtu(interface).map(|mtu| mtu.to_string()),
            Self::Tso | Self::Gso | Self::Gro | Self::Lro => offload::read(interface, self),
            Self::RootDiscipline => root::read(interface),
            Self::Congestion | Self::TcpRmem | Self::TcpWmem => {
                let text = self.sysctl().and_then(proc::sysctl);
                let text = text.ok_or_else(|| SockError::errno("read a kernel setting", libc::ENOENT))?;
                Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
            }
        }
    }

    /// Restores the state `found`.
    ///
    /// # Errors
    /// As [`HostSettingRequest::set`]; `EINVAL` for an invalid state.
    pub fn put_back(self, interface: &str, found: &str) -> Result<(), SockError> {
        match self {
            Self::Mtu => link::set_mtu(interface, found.parse().map_err(|_| no_state())?),
            Self::Tso | Self::Gso | Self::Gro | Self::Lro => offload::put_back(interface, found),
            Self::RootDiscipline => root::put_back(interface, found),
            Self::Congestion | Self::TcpRmem | Self::TcpWmem => {
                proc::set_sysctl(self.sysctl().unwrap_or_default(), found)
            }
        }
    }

    /// Whether a state is the expected one. For disciplines, only the parts known in advance are compared: the
    /// kind, or only that the discipline is the kernel's default.
    #[must_use]
    pub fn is_same(self, state: &str, expected: &str) -> bool {
        let words = match (self, expected.split(' ').count()) {
            (Self::RootDiscipline, _) if root::is_kernels_own(expected) => 1,
            (Self::RootDiscipline, 2) => 2,
            _ => return state == expected,
        };
        state.split(' ').take(words).eq(expected.split(' ').take(words))
    }
}

impl HostSettingRequest {
    /// The setting that it changes.
    #[must_use]
    pub fn setting(&self) -> HostSetting {
        match self {
            Self::Mtu(_) => HostSetting::Mtu,
            Self::Offload(setting, _) | Self::Buffers(setting, _) => *setting,
            Self::Congestion(_) => HostSetting::Congestion,
            Self::Discipline(_) => HostSetting::RootDiscipline,
        }
    }

    /// The state that the change will produce from the state `now`.
    ///
    /// # Errors
    /// `ENODEV` if there is no such interface.
    pub fn becomes(&self, interface: &str, now: &str) -> Result<String, SockError> {
        Ok(match self {
            Self::Mtu(mtu) => mtu.to_string(),
            Self::Offload(setting, on) => offload::becomes(interface, *setting, *on)?,
            Self::Congestion(name) => name.clone(),
            Self::Buffers(_, [least, usual, largest]) => format!("{least} {usual} {largest}"),
            Self::Discipline(discipline) => root::becomes(discipline, now),
        })
    }

    /// Applies the change, so that the state is `becoming`.
    ///
    /// # Errors
    /// `EPERM` without `CAP_NET_ADMIN`, `EINVAL` for a value that the kernel or the NIC refuses, `ENODEV` if
    /// there is no such interface, `EOPNOTSUPP` if the NIC does not change an offload.
    pub fn set(&self, interface: &str, becoming: &str) -> Result<(), SockError> {
        match self {
            Self::Mtu(mtu) => link::set_mtu(interface, *mtu),
            Self::Offload(setting, on) => offload::set(interface, *setting, *on),
            Self::Discipline(discipline) => root::set(interface, discipline, becoming),
            Self::Congestion(_) | Self::Buffers(..) => {
                proc::set_sysctl(self.setting().sysctl().unwrap_or_default(), becoming)
            }
        }
    }

    /// What prevents the change, as far as this can be determined without applying it. Changes nothing on the
    /// host.
    ///
    /// Disciplines are tried on the loopback of a new namespace; the kernel may load a module for that, as for
    /// any user.
    #[must_use]
    pub fn obstacles(&self, interface: &str) -> Vec<Obstacle> {
        let name = self.setting().name();
        if !may_configure() {
            let why = "needs the capability CAP_NET_ADMIN; run the agent as root, or give it that capability";
            return vec![Obstacle(format!("{name} {why}"))];
        }
        let found = match self {
            Self::Mtu(mtu) => link::obstacles(interface, *mtu),
            Self::Offload(setting, on) => offload::obstacles(interface, *setting, *on),
            Self::Congestion(wanted) => congestion_obstacles(wanted),
            Self::Buffers(setting, sizes) => buffer_obstacles(*setting, sizes),
            Self::Discipline(discipline) => root::obstacles(interface, discipline),
        };
        found.unwrap_or_else(|error| {
            let remedy = error.remedy().map_or_else(String::new, |remedy| format!("; {remedy}"));
            vec![Obstacle(format!("{name} of {interface}: {error}: {}{remedy}", error.source))]
        })
    }
}

/// Error for an invalid state text.
fn no_state() -> SockError {
    SockError::errno("restore a setting", libc::EINVAL)
}

/// Whether this process has CAP_NET_ADMIN; tested without changing anything.
fn may_configure() -> bool {
    use socket2::{Domain, Socket, Type};
    let udp = Socket::new(Domain::IPV4, Type::DGRAM, None);
    udp.is_ok_and(|udp| sockopt::force_rcv_buf(&udp, 1 << 20).is_ok())
}

/// Containers often mount sysctls read-only.
fn writable(sysctl: &'static str) -> Vec<Obstacle> {
    let refused = proc::can_set_sysctl(sysctl).err();
    let obstacle = |error: SockError| {
        Obstacle(format!(
            "{sysctl} may not be changed here ({}); containers often forbid it: run the agent outside the container",
            error.source
        ))
    };
    refused.map(obstacle).into_iter().collect()
}

fn congestion_obstacles(wanted: &str) -> Result<Vec<Obstacle>, SockError> {
    let has = proc::sysctl(AVAILABLE).unwrap_or_default();
    if !has.split_whitespace().any(|name| name == wanted) {
        let what =
            format!("the congestion control '{wanted}' is not loaded in its kernel (available: {has})");
        return Ok(vec![Obstacle(format!("{what}; load it with: modprobe tcp_{wanted}"))]);
    }
    let mut found = writable(CONGESTION);
    // Namespaces other than the initial one accept only the algorithms that the system allows to everybody.
    // Only the kernel knows these, so it is tried in a new namespace.
    if found.is_empty() && proc::can_set_sysctl(ALLOWED).is_err() {
        let tried = netns::create()
            .and_then(|scratch| netns::with_netns_fd(&scratch, || proc::set_sysctl(CONGESTION, wanted)));
        if let Ok(Err(error)) = tried {
            found.push(Obstacle(format!(
                "congestion control '{wanted}' cannot be the default of this network namespace ({}); add it \
                 to the list on the host itself: sysctl {ALLOWED}",
                error.source
            )));
        }
    }
    Ok(found)
}

fn buffer_obstacles(setting: HostSetting, sizes: &[u64; 3]) -> Result<Vec<Obstacle>, SockError> {
    let right = sizes.iter().all(|size| (1..=MAX_BUFFER).contains(size)) && sizes.is_sorted();
    if right {
        return Ok(writable(setting.sysctl().unwrap_or_default()));
    }
    let [least, usual, largest] = sizes;
    Ok(vec![Obstacle(format!(
        "{} = {least} {usual} {largest}: the kernel requires three sizes from 1 to {MAX_BUFFER} in \
         ascending order",
        setting.name()
    ))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_their_settings() {
        for setting in HostSetting::ALL {
            assert_eq!(HostSetting::named(setting.name()), Some(setting));
            assert_eq!(setting.is_of_interface(), setting.sysctl().is_none());
        }
        assert_eq!(HostSetting::named("colour"), None);
    }

    #[test]
    fn a_state_is_the_same_only_if_it_is_all_the_same_but_for_a_discipline_of_ours() {
        let root = HostSetting::RootDiscipline;
        assert!(root.is_same("fq 6c72: 0102", "fq 6c72:"));
        assert!(!root.is_same("fq 6c73: 0102", "fq 6c72:"));
        assert!(!root.is_same("fq 8001: 0102", "fq 8001: 0103"), "one that was found is compared wholly");
        assert!(
            root.is_same("default fq", "default noqueue"),
            "the kernel's own may have become another one"
        );
        assert!(!root.is_same("noqueue 8001: ", "default noqueue"));
        assert!(!HostSetting::TcpRmem.is_same("1 2 3", "1 2"));
    }

    #[test]
    fn what_is_there_is_read() {
        assert_eq!(HostSetting::Mtu.read("lo").unwrap(), crate::iface::link("lo").unwrap().mtu.to_string());
        assert_eq!(HostSetting::TcpRmem.read("").unwrap().split(' ').count(), 3);
        assert!(HostSetting::Gso.read("lo").unwrap().starts_with("tx-generic-segmentation="));
        assert!(HostSetting::RootDiscipline.read("lo").unwrap().starts_with("default "));
        for setting in HostSetting::ALL.into_iter().filter(|setting| setting.is_of_interface()) {
            let error = setting.read("nosuch0").unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ENODEV), "{setting:?}");
        }
    }

    #[test]
    fn sizes_that_the_kernel_would_cut_or_refuse_are_found() {
        for sizes in [[0, 1, 2], [4096, 8192, 1 << 31], [3, 2, 4]] {
            let found = buffer_obstacles(HostSetting::TcpRmem, &sizes).unwrap();
            assert!(found.iter().any(|obstacle| obstacle.0.contains("2147483647")), "{found:?}");
        }
        let found = congestion_obstacles("carrier_pigeon").unwrap();
        assert!(found[0].0.contains("modprobe tcp_carrier_pigeon"), "{found:?}");
    }
}
