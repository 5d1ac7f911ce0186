//! The table of options, and the settings that they fill.

use super::{both, client, server};
use crate::iperf3::errors::Iperf3Error;
use crate::iperf3::settings::Iperf3Settings;
use crate::option_table::{OptionGroup, ToolOption};

/// One option.
#[derive(Debug, Clone, Copy)]
pub(super) struct Iperf3Option {
    /// How it is written and what it does, for the reader, the help text and the reference page.
    pub(super) entry: ToolOption,
    side: OptionSide,
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

/// The entries of a part of the table.
const fn entries<const N: usize>(options: &[Iperf3Option]) -> [ToolOption; N] {
    let mut entries = [options[0].entry; N];
    let mut at = 0;
    while at < N {
        entries[at] = options[at].entry;
        at += 1;
    }
    entries
}

/// The table as the reference page shows it.
pub(in crate::iperf3) const GROUPS: &[OptionGroup] = &[
    OptionGroup::new("Client and server", &entries::<{ both::OPTIONS.len() }>(both::OPTIONS)),
    OptionGroup::new("Server", &entries::<{ server::OPTIONS.len() }>(server::OPTIONS)),
    OptionGroup::new("Client", &entries::<{ client::OPTIONS.len() }>(client::OPTIONS)),
];

/// A client that an example is added to.
const CLIENT: &[&str] = &["-c", "192.0.2.2"];
/// A server that an example is added to.
const SERVER: &[&str] = &["-s"];

impl Iperf3Option {
    /// An option that makes this a client or a server, or needs neither.
    pub(super) const fn role(entry: ToolOption, set: OptionSetter) -> Self {
        Self { entry, side: OptionSide::Both, set }
    }

    pub(super) const fn both(entry: ToolOption, set: OptionSetter) -> Self {
        Self { entry: entry.after_or(CLIENT), side: OptionSide::Both, set }
    }

    pub(super) const fn client(entry: ToolOption, set: OptionSetter) -> Self {
        Self { entry: entry.after_or(CLIENT), side: OptionSide::Client, set }
    }

    pub(super) const fn server(entry: ToolOption, set: OptionSetter) -> Self {
        Self { entry: entry.after_or(SERVER), side: OptionSide::Server, set }
    }

    /// Its names without `--`.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.entry.names().filter_map(|name| name.strip_prefix("--"))
    }

    /// Its first name.
    pub(super) fn long(&self) -> &'static str {
        self.names().next().unwrap_or_default()
    }

    /// Its letter.
    pub(super) fn short(&self) -> Option<char> {
        let letter = self.entry.names().find(|name| !name.starts_with("--"))?;
        letter.strip_prefix('-')?.chars().next()
    }

    /// Whether its long name or an alias begins with `start`.
    pub(super) fn begins_with(&self, start: &str) -> bool {
        self.names().any(|name| name.starts_with(start))
    }

    /// Whether it has a value, which its spelling shows.
    pub(super) fn takes(&self) -> OptionArgument {
        let long = self.entry.spellings.iter().find(|spelling| spelling.starts_with("--"));
        match long {
            Some(spelling) if spelling.contains("[=") => OptionArgument::Perhaps,
            Some(spelling) if spelling.contains(' ') => OptionArgument::Value,
            _ => OptionArgument::Nothing,
        }
    }

    /// Its lines in the help text.
    pub(super) fn help(&self) -> String {
        let short = self.short().map_or_else(|| "    ".to_owned(), |short| format!("-{short}, "));
        let long = self.entry.spellings.iter().find(|spelling| spelling.starts_with("--"));
        format!("  {short}{:<28} {}\n", long.copied().unwrap_or_default(), self.entry.remark)
    }
}
