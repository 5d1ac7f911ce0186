//! Tests that run while no other test does; see `support/turn.rs`.

mod byte_accounting;
mod causes;
mod causes_path;
mod faults_tools;
mod interop_ndt7;
mod interop_rates;
mod interop_speed_pages;
mod investigate;
mod lab_kills;
mod lab_known;
mod lab_truth;
mod many_clients;
mod run_lab;
mod truth;
