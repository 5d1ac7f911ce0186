//! The checklist of iperf 2 in virtual time, and its bytes against captures of the real programs.

mod command_lines;
mod dialogue;
mod times;
mod transcript;
