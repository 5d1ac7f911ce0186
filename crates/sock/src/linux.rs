//! All system calls and socket options of Linux.

pub(crate) use crate::unix::{cost, kernel};
pub use crate::unix::{files, limits};

pub mod affinity;
pub(crate) mod batch;
mod call;
pub(crate) mod clock;
pub mod cmsg;
pub(crate) mod departure;
pub mod discipline;
pub(crate) mod error_codes;
pub(crate) mod errqueue;
mod ethtool;
pub(crate) mod features;
pub mod host_setting;
pub(crate) mod iface;
mod inherited;
pub mod journal;
pub mod local;
pub mod mount;
pub(crate) mod multicast;
pub(crate) mod multipath;
mod netlink;
pub mod netns;
pub(crate) mod poll;
pub mod priority;
pub mod process;
pub(crate) mod queues;
pub(crate) mod reply;
pub mod routing;
pub(crate) mod sockopt;
pub mod splice;
pub(crate) mod stream;
pub mod tap;
pub(crate) mod tcp_info;
pub mod userns;
