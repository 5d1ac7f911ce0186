//! All system calls, socket options and clocks of linerate.
//!
//! Only this crate may use `unsafe`, read a clock or depend on the operating system. It contains no protocol,
//! metric or policy: it executes requests and reports what the kernel granted. Only Linux is supported today.
//!
//! Sockets are the standard library's types; functions take anything that lends a file descriptor (`&impl
//! AsFd`). Deadlines are [`clock::Mono`], durations are [`std::time::Duration`]. A value that the kernel does
//! not report is `None`, never 0.

#[cfg(not(target_os = "linux"))]
compile_error!("linerate runs only on Linux; another system needs its own linerate-sock");

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
pub mod inherited;
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
