//! Tests of the whole program that need root: network namespaces, labs, and other programs in them.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot be prepared fails")]

#[path = "../support/mod.rs"]
mod support;

mod agents;
mod alone;
mod disk;
mod faults_floods;
mod faults_input;
mod faults_network;
mod faults_vanished;
mod guide;
mod honest_files;
mod host_settings;
mod idle_server;
mod interop_iperf2;
mod interop_iperf2_faults;
mod interop_iperf2_loss;
mod interop_iperf2_old;
mod interop_iperf2_options;
mod interop_iperf2_times;
mod interop_iperf3_client;
mod interop_iperf3_faults;
mod interop_iperf3_files;
mod interop_iperf3_forms;
mod interop_iperf3_login;
mod interop_iperf3_loss;
mod interop_iperf3_options;
mod interop_iperf3_server;
mod interop_iperf3_service;
mod interop_netperf;
mod interop_netpipe;
mod interop_ntttcp;
mod interop_ntttcp_options;
mod interop_nuttcp;
mod interop_nuttcp_faults;
mod interop_nuttcp_loss;
mod interop_nuttcp_options;
mod interop_responsiveness;
mod interop_retransmits;
mod interop_ttcp;
mod kills;
mod kills_lab;
mod knobs;
mod lab_kernel;
mod lab_life;
mod lab_mistakes;
mod lab_ports;
mod lab_rootless;
mod multicast;
mod quotas;
mod run_lab;
mod several_addresses;
mod sweep;
mod tcp_options;
mod web_pages;
