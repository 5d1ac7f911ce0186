//! Arbitrary bytes into every decoder.
//!
//! A target is a function that accepts any bytes and must return: a panic, an endless loop or a violated
//! invariant is a bug. cargo-fuzz drives it with coverage feedback (`make fuzz`), and the test in `noise.rs`
//! drives it with seeded random bytes on any toolchain.

mod agent;
mod dialogue;
mod engine;
mod fleet;
mod fleet_agent;
mod fleet_coordinator;
mod frame;
mod host;
mod http;
mod iperf3;
mod log;
mod native;
mod netperf;
mod netpipe;
#[cfg(test)]
mod noise;
mod noisy_host;
mod ntttcp;
mod nuttcp;
mod plan;
mod quantities;
mod responsiveness;
mod responsiveness_test;
mod results;
mod script;
mod seeds;
mod tool;
mod topology;

pub use agent::agent;
pub use dialogue::{native_client, native_server};
pub use fleet::fleet_message;
pub use fleet_agent::fleet_agent;
pub use fleet_coordinator::fleet_coordinator;
pub use frame::frame;
pub use host::{cmsg, errqueue, proc, tcp_info};
pub use http::http;
pub use iperf3::{iperf3_client, iperf3_params, iperf3_results, iperf3_server};
pub use log::{event_log, spec};
pub use native::{native_datagram, native_framer, native_preface};
pub use netperf::{netperf, netperf_client};
pub use netpipe::netpipe;
pub use ntttcp::ntttcp;
pub use nuttcp::{nuttcp_argv, nuttcp_client, nuttcp_lines, nuttcp_server};
pub use plan::plan;
pub use quantities::units;
pub use responsiveness::responsiveness;
pub use responsiveness_test::responsiveness_test;
pub use results::foreign_results;
pub use tool::{iperf2, iperf2_argv, iperf2_wire, ttcp, ttcp_argv};
pub use topology::topology;

/// A target with the inputs from which the search starts.
pub struct FuzzTarget {
    /// Name of the file in `fuzz_targets/`.
    pub name: &'static str,
    /// The function under test.
    pub run: fn(&[u8]),
    /// Inputs that cover much of the code.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// Every target.
pub const TARGETS: &[FuzzTarget] = &[
    FuzzTarget { name: "native_preface", run: native_preface, seeds: seeds::prefaces },
    FuzzTarget { name: "native_datagram", run: native_datagram, seeds: seeds::datagrams },
    FuzzTarget { name: "native_framer", run: native_framer, seeds: seeds::frames },
    FuzzTarget { name: "native_client", run: native_client, seeds: seeds::client_dialogues },
    FuzzTarget { name: "native_server", run: native_server, seeds: seeds::server_dialogues },
    FuzzTarget { name: "agent", run: agent, seeds: agent::seeds },
    FuzzTarget { name: "fleet_message", run: fleet_message, seeds: fleet::seeds },
    FuzzTarget { name: "fleet_agent", run: fleet_agent, seeds: fleet_agent::seeds },
    FuzzTarget { name: "fleet_coordinator", run: fleet_coordinator, seeds: fleet_coordinator::seeds },
    FuzzTarget { name: "netperf", run: netperf, seeds: netperf::seeds },
    FuzzTarget { name: "netperf_client", run: netperf_client, seeds: netperf::client_seeds },
    FuzzTarget { name: "netpipe", run: netpipe, seeds: netpipe::seeds },
    FuzzTarget { name: "http", run: http, seeds: http::seeds },
    FuzzTarget { name: "responsiveness", run: responsiveness, seeds: responsiveness::seeds },
    FuzzTarget { name: "responsiveness_test", run: responsiveness_test, seeds: responsiveness_test::seeds },
    FuzzTarget { name: "ntttcp", run: ntttcp, seeds: ntttcp::seeds },
    FuzzTarget { name: "iperf3_params", run: iperf3_params, seeds: iperf3::messages },
    FuzzTarget { name: "iperf3_results", run: iperf3_results, seeds: iperf3::messages },
    FuzzTarget { name: "iperf3_client", run: iperf3_client, seeds: iperf3::client_scripts },
    FuzzTarget { name: "iperf3_server", run: iperf3_server, seeds: iperf3::server_scripts },
    FuzzTarget { name: "iperf2", run: iperf2, seeds: tool::iperf2_scripts },
    FuzzTarget { name: "iperf2_argv", run: iperf2_argv, seeds: tool::iperf2_command_lines },
    FuzzTarget { name: "iperf2_wire", run: iperf2_wire, seeds: tool::iperf2_messages },
    FuzzTarget { name: "ttcp", run: ttcp, seeds: tool::scripts },
    FuzzTarget { name: "ttcp_argv", run: ttcp_argv, seeds: tool::command_lines },
    FuzzTarget { name: "tcp_info", run: tcp_info, seeds: seeds::tcp_infos },
    FuzzTarget { name: "cmsg", run: cmsg, seeds: seeds::control_messages },
    FuzzTarget { name: "errqueue", run: errqueue, seeds: seeds::control_messages },
    FuzzTarget { name: "proc", run: proc, seeds: seeds::proc_files },
    FuzzTarget { name: "frame", run: frame, seeds: frame::seeds },
    FuzzTarget { name: "topology", run: topology, seeds: topology::seeds },
    FuzzTarget { name: "plan", run: plan, seeds: plan::seeds },
    FuzzTarget { name: "event_log", run: event_log, seeds: seeds::event_logs },
    FuzzTarget { name: "spec", run: spec, seeds: seeds::specs },
    FuzzTarget { name: "nuttcp_lines", run: nuttcp_lines, seeds: nuttcp::line_seeds },
    FuzzTarget { name: "nuttcp_argv", run: nuttcp_argv, seeds: nuttcp::argv_seeds },
    FuzzTarget { name: "nuttcp_client", run: nuttcp_client, seeds: nuttcp::client_seeds },
    FuzzTarget { name: "nuttcp_server", run: nuttcp_server, seeds: nuttcp::server_seeds },
    FuzzTarget { name: "foreign_results", run: foreign_results, seeds: results::seeds },
    FuzzTarget { name: "units", run: units, seeds: seeds::quantities },
];
