//! Foreign tools without I/O: the behaviour of iperf2, iperf3, netperf, netpipe, ntttcp, nuttcp and ttcp on the wire and
//! on the terminal.
//!
//! Each tool is one folder with its command line, wire format, dialogue and output, and a reader for the output
//! of the real program (`read`); its entry is in [`ALL`]. The contract of a dialogue is [`stand_in`].
//! [`import`] detects which tool wrote a text. Decoders accept any bytes without panic and are fuzzed.
//! Sockets, sleeping and threads are in other crates.
//!
//! ```
//! let text = "\
//! Connecting to host 192.0.2.2, port 5201
//! [  5] local 192.0.2.1 port 40000 connected to 192.0.2.2 port 5201
//! [ ID] Interval           Transfer     Bitrate
//! [  5]   0.00-10.00  sec  1.10 GBytes   944 Mbits/sec                  receiver
//! ";
//! let readings = linerate_compat::import::read(text, None).unwrap();
//! assert_eq!(readings[0].tool, "iperf3");
//! assert_eq!(readings[0].tests.len(), 1);
//! ```

mod c_format;
pub mod c_time;
mod errno;
pub mod http;
pub mod import;
pub mod iperf2;
pub mod iperf3;
pub mod iperf_habits;
pub mod netperf;
pub mod netpipe;
pub mod ntttcp;
pub mod nuttcp;
pub mod option_table;
mod refusal;
mod sessions;
mod stamped;
pub mod stand_in;
mod tool;
mod tos;
pub mod ttcp;
#[cfg(test)]
mod virtual_hosts;

pub use refusal::no_refusal;
pub use stamped::Stamped;
pub use tool::{ALL, EmbeddedServerConfig, StartCheck, Tool};
