//! What the stand-ins do with each option of their tools: the tables of docs/reference/stand-in-options.md.
//!
//! An option of any version of a tool has an entry, and a test holds every entry against the reader of the command
//! line. So no option is accepted and ignored without an entry that says why nothing has to be done.

use std::fmt::Write;

/// What a stand-in does with an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionSupport {
    /// It has the effect that it has in the tool.
    Acts,
    /// The command line is refused, with a message that names the option.
    Refused,
    /// It is accepted, but there is nothing for it to change here.
    NoEffect,
}

/// An option of a foreign tool.
#[derive(Debug, Clone, Copy)]
pub struct ToolOption {
    /// Its spellings, each with the name of its value if it has one: `-l N`, `--len N`.
    pub spellings: &'static [&'static str],
    /// What the stand-in does with it.
    pub support: OptionSupport,
    /// What it does, or why it is refused or has no effect.
    pub remark: &'static str,
    /// Arguments that are an example of its use.
    pub example: &'static [&'static str],
    /// Arguments that have to come before the example: the role, and the options that it needs.
    pub after: &'static [&'static str],
}

impl ToolOption {
    const fn new(
        support: OptionSupport,
        spellings: &'static [&'static str],
        example: &'static [&'static str],
        remark: &'static str,
    ) -> Self {
        Self { spellings, support, remark, example, after: &[] }
    }

    /// An option with the effect that it has in the tool.
    #[must_use]
    pub const fn acts(
        spellings: &'static [&'static str],
        example: &'static [&'static str],
        remark: &'static str,
    ) -> Self {
        Self::new(OptionSupport::Acts, spellings, example, remark)
    }

    /// An option that is refused by name.
    #[must_use]
    pub const fn refused(
        spellings: &'static [&'static str],
        example: &'static [&'static str],
        remark: &'static str,
    ) -> Self {
        Self::new(OptionSupport::Refused, spellings, example, remark)
    }

    /// An option that is accepted although there is nothing for it to change.
    #[must_use]
    pub const fn no_effect(
        spellings: &'static [&'static str],
        example: &'static [&'static str],
        remark: &'static str,
    ) -> Self {
        Self::new(OptionSupport::NoEffect, spellings, example, remark)
    }

    /// The same option, whose example needs these arguments before it.
    #[must_use]
    pub const fn after(self, after: &'static [&'static str]) -> Self {
        Self { after, ..self }
    }

    /// The same option; its example needs these arguments before it unless it says which.
    #[must_use]
    pub const fn after_or(self, after: &'static [&'static str]) -> Self {
        if self.after.is_empty() { self.after(after) } else { self }
    }

    /// Its spellings without their values.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.spellings.iter().map(|spelling| spelling.split([' ', '=', '[']).next().unwrap_or(spelling))
    }
}

/// Options that belong together: those of a role, or of a variant of the tool.
#[derive(Debug, Clone, Copy)]
pub struct OptionGroup {
    /// Heading, as Markdown; absent if the tool has one group.
    pub title: Option<&'static str>,
    /// The options.
    pub options: &'static [ToolOption],
}

impl OptionGroup {
    /// A group with a heading.
    #[must_use]
    pub const fn new(title: &'static str, options: &'static [ToolOption]) -> Self {
        Self { title: Some(title), options }
    }

    /// The only group of a tool.
    #[must_use]
    pub const fn only(options: &'static [ToolOption]) -> Self {
        Self { title: None, options }
    }
}

impl super::Tool {
    /// The options of all groups.
    pub fn every_option(&self) -> impl Iterator<Item = &'static ToolOption> {
        self.options.iter().flat_map(|group| group.options)
    }
}

/// The entry of an option that is refused, by its name with the dash.
pub(crate) fn refused(options: &'static [ToolOption], name: &str) -> Option<&'static ToolOption> {
    let mut refused = options.iter().filter(|option| option.support == OptionSupport::Refused);
    refused.find(|option| option.names().any(|known| known == name))
}

/// The reference page about the options of all stand-ins, as Markdown.
#[must_use]
pub fn reference() -> String {
    let mut page = String::from(
        "# Options of the stand-ins\n\n\
         This page lists every option of the tools that linerate replaces. `linerate TOOL` treats each in one of\n\
         these ways:\n\n\
         - *acts*: the option has the same effect as in the original tool.\n\
         - *refused*: the command exits at once with an error that names the option.\n\
         - *no effect*: the option is accepted, but there is nothing for it to change here.\n\n\
         `cargo xtask gen` writes this page.\n",
    );
    // Browsers have no command line.
    for tool in super::ALL.iter().filter(|tool| !tool.options.is_empty()) {
        // Writing to a String cannot fail.
        let _ = write!(page, "\n## {}\n", tool.name);
        for group in tool.options {
            if let Some(title) = group.title {
                let _ = write!(page, "\n### {title}\n");
            }
            page += "\n| option | support | remark |\n|---|---|---|\n";
            group.options.iter().for_each(|option| page += &row(option));
        }
    }
    page
}

/// The row of an option in the table of its group.
fn row(option: &ToolOption) -> String {
    let support = match option.support {
        OptionSupport::Acts => "acts",
        OptionSupport::Refused => "**refused**",
        OptionSupport::NoEffect => "no effect",
    };
    let escaped = |text: &str| text.replace('|', "\\|");
    let spellings: Vec<String> =
        option.spellings.iter().map(|spelling| format!("`{}`", escaped(spelling))).collect();
    format!("| {} | {support} | {} |\n", spellings.join(", "), escaped(option.remark))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ALL, Tool};

    /// The tools with a command line.
    fn with_options() -> impl Iterator<Item = &'static Tool> {
        ALL.iter().copied().filter(|tool| !tool.options.is_empty())
    }

    /// Parses a command line: the settings as text, or the message to the user.
    type ArgvReader = fn(&[String]) -> Result<String, String>;

    /// The reader of each tool's command line.
    const READERS: &[(&str, ArgvReader)] = &[
        ("nuttcp", nuttcp),
        ("ntttcp", ntttcp),
        ("netperf", netperf),
        ("ttcp", |arguments| {
            crate::ttcp::parse("ttcp", arguments).map(|s| format!("{s:?}")).map_err(|exit| exit.text)
        }),
        ("iperf2", |arguments| {
            crate::iperf2::parse(arguments).map(|s| format!("{s:?}")).map_err(|exit| exit.text)
        }),
        ("iperf3", |arguments| {
            crate::iperf3::argv::parse(arguments).map(|s| format!("{s:?}")).map_err(|exit| exit.text)
        }),
        ("netpipe", |arguments| {
            let arguments: Vec<std::ffi::OsString> = arguments.iter().map(Into::into).collect();
            let command = crate::netpipe::NetpipeCommand::parse(&arguments);
            command
                .map(|command| format!("{:?} {:?}", command.host, command.options))
                .map_err(|exit| exit.error)
        }),
    ];

    fn ntttcp(arguments: &[String]) -> Result<String, String> {
        let arguments: Vec<std::ffi::OsString> = arguments.iter().map(Into::into).collect();
        match crate::ntttcp::parse(&arguments) {
            Ok(options) => Ok(format!("{options:?}")),
            Err(exit) if exit.error.is_empty() => Ok(exit.output),
            Err(exit) => Err(exit.error),
        }
    }

    /// netperf, or netserver if that is the first word. Both print their help as an error.
    fn netperf(arguments: &[String]) -> Result<String, String> {
        use crate::netperf::{ClientCommand, NetperfSurroundings, ServerCommand};
        let help = arguments.last().is_some_and(|last| last == "-h");
        if let Some((_, rest)) = arguments.split_first().filter(|(first, _)| *first == "netserver") {
            return match ServerCommand::parse(rest) {
                ServerCommand::Mistake(text) if !help => Err(text),
                command => Ok(format!("{command:?}")),
            };
        }
        let read = |_: &str, _: usize| Ok(b"fill".to_vec());
        let surroundings = NetperfSurroundings { wall: linerate_units::Span::ZERO, seed: 0, read: &read };
        match ClientCommand::parse(arguments, &surroundings) {
            ClientCommand::Mistake(text) if !help => Err(text),
            ClientCommand::Test(mut options) => {
                // It is only kept for the output.
                options.command_line.clear();
                Ok(format!("{options:?}"))
            }
            command => Ok(format!("{command:?}")),
        }
    }

    fn nuttcp(arguments: &[String]) -> Result<String, String> {
        use crate::nuttcp::NuttcpInvocation;
        let (warnings, invocation) = crate::nuttcp::invocation(arguments);
        match invocation {
            NuttcpInvocation::Usage(text) => Err(text.to_owned()),
            NuttcpInvocation::Mistake(text) => Err(text),
            invocation => Ok(format!("{warnings:?} {invocation:?}")),
        }
    }

    fn reader(tool: &Tool) -> ArgvReader {
        let found = READERS.iter().find(|(name, _)| *name == tool.name);
        found.unwrap_or_else(|| panic!("{} has no reader here", tool.name)).1
    }

    fn arguments(parts: &[&[&str]]) -> Vec<String> {
        parts.concat().into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn every_option_does_what_its_entry_says() {
        for tool in with_options() {
            let read = reader(tool);
            for option in tool.every_option() {
                let context = format!("{} {:?}", tool.name, [option.after, option.example].concat());
                assert!(!option.remark.is_empty(), "{context}: no remark");
                assert!(
                    option.names().any(|name| option.example[0].starts_with(name)),
                    "{context}: the example shows another option"
                );
                let without = read(&arguments(&[option.after]));
                let with = read(&arguments(&[option.after, option.example]));
                assert!(option.after.is_empty() || without.is_ok(), "{context}: {without:?}");
                match option.support {
                    OptionSupport::Acts => {
                        let with = with.unwrap_or_else(|text| panic!("{context}: refused: {text}"));
                        assert_ne!(Ok(with), without, "{context}: accepted and ignored");
                    }
                    OptionSupport::NoEffect => assert_eq!(with, without, "{context}: it has an effect"),
                    OptionSupport::Refused => {
                        let text = with.expect_err(&context);
                        // getopt(3) names a letter as in "invalid option -- 'a'".
                        let named = option.names().any(|name| {
                            text.contains(name)
                                || text.contains(&format!("-- '{}'", name.trim_start_matches('-')))
                        });
                        assert!(named, "{context}: not named: {text}");
                    }
                }
            }
        }
    }

    #[test]
    fn an_option_without_an_entry_is_refused() {
        let letters = ('a'..='z').chain('A'..='Z').chain('0'..='9');
        for tool in with_options() {
            let read = reader(tool);
            let options: Vec<&ToolOption> = tool.every_option().collect();
            let known: Vec<&str> = options.iter().flat_map(|option| option.names()).collect();
            let before: Vec<&[&str]> = options.iter().map(|option| option.after).collect();
            for letter in letters.clone() {
                let name = format!("-{letter}");
                if known.contains(&name.as_str()) {
                    continue;
                }
                for before in &before {
                    for value in [None, Some("1")] {
                        let line = [before, &[name.as_str()][..], value.as_slice()].concat();
                        let accepted = read(&arguments(&[&line])).ok();
                        assert_eq!(accepted, None, "{} {line:?} has no entry in its table", tool.name);
                    }
                }
            }
        }
    }

    #[test]
    fn every_tool_has_its_section_in_the_reference() {
        let page = reference();
        for tool in with_options() {
            assert!(page.contains(&format!("\n## {}\n", tool.name)), "{}", tool.name);
            let complete =
                !tool.options.is_empty() && tool.options.iter().all(|group| !group.options.is_empty());
            assert!(complete, "{}", tool.name);
        }
    }
}
