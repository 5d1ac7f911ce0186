//! The checklist of iperf 2 in virtual time, and its bytes against captures of the real programs.

mod dialogue;
mod transcript;
