//! iperf 2 in virtual time, and its messages compared with captures of the real programs.

mod command_lines;
mod dialogue;
mod times;
mod transcript;
