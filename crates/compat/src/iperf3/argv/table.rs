//! The table of options, and the settings that they fill.

use super::{both, client, server};
use crate::iperf3::errors::Iperf3Error;
use crate::iperf3::settings::Iperf3Settings;

/// One option.
#[derive(Debug)]
pub(super) struct Iperf3Option {
    pub(super) long: &'static str,
    pub(super) aliases: &'static [&'static str],
    pub(super) short: Option<char>,
    pub(super) takes: OptionArgument,
    side: OptionSide,
    /// Name of its value in the help text.
    value: &'static str,
    /// Its description in the help text.
    help: &'static str,
    pub(super) set: OptionSetter,
}

/// Stores the value, which is empty if there is none.
pub(super) type OptionSetter = fn(&mut ParsedSettings, &str) -> Result<(), Iperf3Error>;

/// Whether an option has a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OptionArgument {
    Nothing,
    Value,
    /// Only as `--option=value`, and never in its short form.
    Perhaps,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OptionSide {
    Both,
    Client,
    Server,
}

/// The settings while the command line is being parsed.
#[derive(Debug, Default)]
pub(super) struct ParsedSettings {
    pub(super) settings: Iperf3Settings,
    /// Whether `-s` was given.
    pub(super) server: bool,
    /// Whether an option for clients only was given.
    pub(super) client_only: bool,
    /// Whether an option for servers only was given.
    pub(super) server_only: bool,
    /// Whether `--rcv-timeout` was given.
    pub(super) rcv_timeout: bool,
    pub(super) time: Option<u32>,
    pub(super) bytes: Option<u64>,
    pub(super) blocks: Option<u64>,
    pub(super) bitrate: Option<u64>,
}

impl ParsedSettings {
    /// Notes the role of an option.
    pub(super) fn note(&mut self, option: &Iperf3Option) {
        self.client_only |= option.side == OptionSide::Client;
        self.server_only |= option.side == OptionSide::Server;
    }
}

/// Every option of both roles.
pub(super) fn options() -> impl Iterator<Item = &'static Iperf3Option> + Clone {
    both::OPTIONS.iter().chain(server::OPTIONS).chain(client::OPTIONS)
}

impl Iperf3Option {
    const fn new(long: &'static str, side: OptionSide, help: &'static str, set: OptionSetter) -> Self {
        Self { long, aliases: &[], short: None, takes: OptionArgument::Nothing, side, value: "", help, set }
    }

    pub(super) const fn both(long: &'static str, help: &'static str, set: OptionSetter) -> Self {
        Self::new(long, OptionSide::Both, help, set)
    }

    pub(super) const fn client(long: &'static str, help: &'static str, set: OptionSetter) -> Self {
        Self::new(long, OptionSide::Client, help, set)
    }

    pub(super) const fn server(long: &'static str, help: &'static str, set: OptionSetter) -> Self {
        Self::new(long, OptionSide::Server, help, set)
    }

    pub(super) const fn short(self, short: char) -> Self {
        Self { short: Some(short), ..self }
    }

    pub(super) const fn also(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    pub(super) const fn value(self, value: &'static str) -> Self {
        Self { takes: OptionArgument::Value, value, ..self }
    }

    pub(super) const fn perhaps(self, value: &'static str) -> Self {
        Self { takes: OptionArgument::Perhaps, value, ..self }
    }

    /// Whether its long name or an alias begins with `start`.
    pub(super) fn begins_with(&self, start: &str) -> bool {
        self.names().any(|name| name.starts_with(start))
    }

    /// Its long name and its aliases.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.long).chain(self.aliases.iter().copied())
    }

    /// Its line in the help text.
    pub(super) fn help(&self) -> String {
        let short = self.short.map_or_else(|| "    ".to_owned(), |short| format!("-{short}, "));
        let value = match self.takes {
            OptionArgument::Nothing => String::new(),
            OptionArgument::Value => format!(" {}", self.value),
            OptionArgument::Perhaps => format!("[={}]", self.value),
        };
        format!("  {short}{:<28} {}\n", format!("--{}{value}", self.long), self.help)
    }
}
