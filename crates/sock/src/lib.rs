//! Every system call, socket option and clock of linerate.
//!
//! This is the only room that may write `unsafe`, read a clock or ask which operating system it runs on. It knows no
//! protocol, no metric and no policy: it does what it is told and reports what the kernel granted. Linux only today,
//! all of it behind this crate.
//!
//! Sockets are the standard library's types; functions take anything that lends a file descriptor (`&impl AsFd`).
//! Deadlines are [`clock::Mono`], spans are [`std::time::Duration`], and a value that the kernel does not report is
//! `None`, never 0.

#[cfg(not(target_os = "linux"))]
compile_error!("linerate runs on Linux only today; another system needs its own linerate-sock");

pub mod affinity;
pub mod batch;
mod call;
pub mod clock;
pub mod cmsg;
pub mod cost;
pub mod discipline;
mod error;
pub mod errqueue;
mod ethtool;
pub mod features;
pub mod host_setting;
pub mod iface;
pub mod journal;
pub mod limits;
pub mod local;
pub mod memcopy;
pub mod mount;
mod netlink;
pub mod netns;
pub mod open;
pub mod options;
pub mod poll;
pub mod priority;
pub mod proc;
pub mod process;
pub mod queues;
pub mod routing;
pub mod sockopt;
pub mod splice;
pub mod stream;
pub mod tap;
pub mod tcp_info;
pub mod thread;
pub mod userns;

pub use clock::Mono;
pub use error::SockError;
pub use options::{Granted, KeepAlive, SocketOptions};
pub use stream::Moved;
pub use tcp_info::{TcpInfo, tcp_info};
