//! A page of the guide, with the commands in it.

use std::ops::Range;
use std::path::{Path, PathBuf};

/// How much of an output is compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum OutputRule {
    #[default]
    Exact,
    Figures,
    Measured,
    /// The page shows the output of another place, which is never renewed.
    Example,
}

/// Something that is done before the commands of a block.
#[derive(Debug)]
pub(super) enum Preparation {
    /// A command on a host.
    Run { host: String, command: String },
    /// A `linerate serve` on a host, with these options.
    Serve { host: String, options: String },
    /// The output of a command, which replaces a word of the page.
    Let { word: String, command: String },
    /// A further name of a host.
    Name { name: String, host: String },
}

/// What the comment before a block says.
#[derive(Debug, Default)]
pub(super) struct BlockRules {
    pub(super) output: OutputRule,
    /// Commands that begin with these words stay, and are ready when this TCP port is open.
    pub(super) stays: Option<(u16, String)>,
    pub(super) also: String,
    pub(super) instead: Vec<(String, String)>,
    /// In the order of the page.
    pub(super) preparations: Vec<Preparation>,
    /// Host of commands without the name of one.
    pub(super) on: Option<String>,
    /// An exit code that is as good as 0.
    pub(super) exit: Option<i32>,
    /// Name of a file in the working folder with the text of the block.
    pub(super) file: Option<String>,
    /// Whether the block is a shell script that is run.
    pub(super) script: bool,
    /// Why the block is not run.
    pub(super) skip: Option<String>,
}

/// A command, and the output that the page shows.
#[derive(Debug)]
pub(super) struct GuideCommand {
    /// The word before `$`; empty if there is none.
    pub(super) prompt: String,
    pub(super) text: String,
    /// Lines of the page.
    pub(super) output: Range<usize>,
}

#[derive(Debug)]
pub(super) struct GuideBlock {
    pub(super) rules: BlockRules,
    /// Lines of the page.
    pub(super) text: Range<usize>,
    /// Empty unless it is a console.
    pub(super) commands: Vec<GuideCommand>,
}

#[derive(Debug)]
pub(super) struct GuidePage {
    pub(super) path: PathBuf,
    pub(super) lines: Vec<String>,
    pub(super) blocks: Vec<GuideBlock>,
}

/// The root of the workspace.
pub(super) fn workspace() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

impl GuidePage {
    /// Reads a page; its path is relative to the workspace.
    pub(super) fn read(path: &str) -> Self {
        let path = workspace().join(path);
        let lines: Vec<String> = std::fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect();
        let mut page = Self { path, lines, blocks: Vec::new() };
        let mut rules = BlockRules::default();
        let mut at = 0;
        while at < page.lines.len() {
            let line = page.lines[at].as_str();
            at += 1;
            if line == "<!-- guide" {
                let end = page.end(at, "-->");
                page.lines[at..end].iter().for_each(|line| rules.read(line));
                at = end + 1;
            } else if line.starts_with("```") {
                let is_console = line == "```console";
                let end = page.end(at, "```");
                let commands = if is_console { commands(&page.lines, at..end) } else { Vec::new() };
                page.blocks.push(GuideBlock { rules: std::mem::take(&mut rules), text: at..end, commands });
                at = end + 1;
            }
        }
        page
    }

    fn end(&self, from: usize, mark: &str) -> usize {
        let found = self.lines[from..].iter().position(|line| line == mark);
        from + found.unwrap_or_else(|| panic!("{}:{from}: no {mark}", self.path.display()))
    }

    /// Its place for a message.
    pub(super) fn place(&self, command: &GuideCommand) -> String {
        format!("{}:{}: {}", self.path.display(), command.output.start, command.text)
    }
}

impl BlockRules {
    fn read(&mut self, line: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let pair = |mark: &str| {
            let parts = rest.split_once(mark);
            let (first, second) = parts.unwrap_or_else(|| panic!("no {mark:?} in {line:?}"));
            (first.to_owned(), second.to_owned())
        };
        match word {
            "figures" => self.output = OutputRule::Figures,
            "measured" => self.output = OutputRule::Measured,
            "example" => self.output = OutputRule::Example,
            "stays" => {
                let (port, command) = pair(" ");
                self.stays = Some((port.parse().unwrap(), command));
            }
            "also" => rest.clone_into(&mut self.also),
            "instead" => {
                let (old, new) = pair(" =>");
                self.instead.push((old, new.trim_start().to_owned()));
            }
            "before" => {
                let (host, command) = pair(" ");
                self.preparations.push(Preparation::Run { host, command });
            }
            "let" => {
                let (word, command) = pair(" ");
                self.preparations.push(Preparation::Let { word, command });
            }
            "name" => {
                let (name, host) = pair(" ");
                self.preparations.push(Preparation::Name { name, host });
            }
            "server" => {
                let (host, options) = rest.split_once(' ').unwrap_or((rest, ""));
                let (host, options) = (host.to_owned(), options.to_owned());
                self.preparations.push(Preparation::Serve { host, options });
            }
            "on" => self.on = Some(rest.to_owned()),
            "exit" => self.exit = Some(rest.parse().unwrap()),
            "file" => self.file = Some(rest.to_owned()),
            "script" => self.script = true,
            "skip" if !rest.is_empty() => self.skip = Some(rest.to_owned()),
            _ => panic!("unknown in a comment of the guide: {line:?}"),
        }
    }
}

/// The commands of a block.
fn commands(lines: &[String], block: Range<usize>) -> Vec<GuideCommand> {
    let mut commands: Vec<GuideCommand> = Vec::new();
    for at in block {
        if let Some((prompt, text)) = prompt_and_command(&lines[at]) {
            let (prompt, text) = (prompt.to_owned(), text.to_owned());
            commands.push(GuideCommand { prompt, text, output: at + 1..at + 1 });
        } else {
            let command = commands.last_mut();
            command.unwrap_or_else(|| panic!("output before any command: {:?}", lines[at])).output.end =
                at + 1;
        }
    }
    commands
}

/// Divides a line such as `server$ linerate serve`; none if it is output.
fn prompt_and_command(line: &str) -> Option<(&str, &str)> {
    let (prompt, command) = line.split_once("$ ")?;
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    prompt.chars().all(is_name).then_some((prompt, command))
}
