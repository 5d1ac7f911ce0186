//! Tests of the whole program that need no root.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot be prepared fails"
)]

#[path = "../support/mod.rs"]
mod support;

// The same server as in the tests of the archive.
#[path = "../../../archive/tests/it/postgres_server.rs"]
mod postgres_server;

mod agents;
mod alone;
mod archive_limits;
mod browser_tests;
mod byte_accounting;
mod cli_check;
mod cli_compare;
mod cli_completions;
mod cli_doctor;
mod cli_envelope;
mod cli_export;
mod cli_import;
mod cli_labels;
mod cli_plan;
mod cli_reference;
mod cli_report;
mod cli_terminal;
mod cli_tls;
mod cli_token;
mod cli_tools;
mod cli_web;
mod earlier_versions;
mod faults_clock;
mod faults_floods;
mod faults_input;
mod faults_network;
mod faults_peers;
mod faults_tools;
mod faults_unknown_peers;
mod fleet;
mod fleet_tryout;
mod http_interface;
mod idle_server;
mod interop_iperf3_faults;
mod lab_mistakes;
mod lab_ports;
mod multicast;
mod python_package;
mod responsiveness;
mod run_plan;
mod serve_config;
mod serve_events;
mod service_manager;
mod shared_archive;
mod speed_pages;
mod stream_counts;
mod sweep;
mod test_file;
mod transactions;
