//! Tests that measure or load the machine.

mod causes;
mod causes_path;
mod honest_files;
mod interop_rates;
mod investigate;
mod lab_kills;
mod lab_known;
mod lab_truth;
mod many_clients;
mod truth;
