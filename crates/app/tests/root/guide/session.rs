//! Runs a page from its first command to its last.

use std::collections::BTreeMap;
use std::time::Duration;

use linerate_sock::clock;

use super::hosts::{GuideHost, GuideHosts};
use super::output::align;
use super::page::{GuideBlock, GuideCommand, GuidePage, OutputRule, Preparation};
use crate::support::pause;

/// Time for a command that stays to print what the page shows.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Time for a run that has ended to be archived on a busy machine.
const ARCHIVED_WITHIN: Duration = Duration::from_secs(10);

/// Default port of `linerate serve`.
const SERVER_PORT: u16 = 5201;

/// Whether the pages get the output of this run, and commands are not made shorter.
fn writes() -> bool {
    std::env::var("LINERATE_GUIDE").is_ok_and(|value| value == "write")
}

/// Runs all commands of a page, and compares or writes their output.
pub(super) fn run_page(path: &str) {
    let page = GuidePage::read(path);
    let mut session = PageSession {
        hosts: GuideHosts::new(),
        words: Vec::new(),
        renewed: BTreeMap::new(),
        faults: Vec::new(),
        code: Some(0),
    };
    for block in &page.blocks {
        session.block(&page, block);
    }
    if writes() {
        let lines = page.lines.iter().enumerate();
        let text = lines.map(|(at, line)| format!("{}\n", session.renewed.get(&at).unwrap_or(line)));
        std::fs::write(&page.path, text.collect::<String>()).unwrap();
    }
    assert!(session.faults.is_empty(), "\n{}", session.faults.join("\n\n"));
}

/// Whether a command is run exactly as the page shows it, because its output is written into the page.
fn renews(block: &GuideBlock, command: &GuideCommand) -> bool {
    writes() && !command.output.is_empty() && block.rules.output != OutputRule::Example
}

/// A command in the background, whose output goes elsewhere and does not stay open. A server listens before the next
/// command begins.
fn background(text: &str) -> String {
    if text.contains("linerate serve") {
        let ready = "until grep -qs '^listening on' serve.log; do sleep 0.05; done";
        format!("rm -f serve.log; {text} > serve.log 2>&1 & {ready}")
    } else {
        format!("{text} > /dev/null 2>&1 &")
    }
}

struct PageSession {
    hosts: GuideHosts,
    /// Words of the page, and what they stand for.
    words: Vec<(String, String)>,
    /// New text of lines of the page.
    renewed: BTreeMap<usize, String>,
    faults: Vec<String>,
    /// Exit code of the last command.
    code: Option<i32>,
}

impl PageSession {
    fn block(&mut self, page: &GuidePage, block: &GuideBlock) {
        let rules = &block.rules;
        if rules.skip.is_some() {
            return block.commands.iter().for_each(|command| self.parse_only(page, command));
        }
        let text: String = page.lines[block.text.clone()].iter().map(|line| format!("{line}\n")).collect();
        if let Some(name) = &rules.file {
            std::fs::write(self.hosts.work(name), &text).unwrap();
        }
        for preparation in &rules.preparations {
            self.prepare(page, block, preparation);
        }
        if rules.script {
            let done = self.hosts.run(self.host(block, ""), &self.replaced(block, &text, writes()));
            assert_eq!(done.code, Some(0), "{}: {text}: {done:?}", page.path.display());
        }
        for (at, command) in block.commands.iter().enumerate() {
            let next = block.commands.get(at + 1);
            self.command(page, block, command, next.is_some_and(|next| next.text == "echo $?"));
        }
    }

    fn prepare(&mut self, page: &GuidePage, block: &GuideBlock, preparation: &Preparation) {
        match preparation {
            Preparation::Name { name, host } => self.hosts.name(name, GuideHost::named(host)),
            Preparation::Serve { host, options } => {
                let serve = format!("linerate serve {options}");
                self.hosts.start(GuideHost::named(host), &serve, SERVER_PORT);
            }
            Preparation::Run { host, command } => {
                let done = self.hosts.run(GuideHost::named(host), command);
                assert_eq!(done.code, Some(0), "{}: {command}: {done:?}", page.path.display());
            }
            Preparation::Let { word, command } => {
                let done = self.hosts.run(self.host(block, ""), command);
                let value = done.stdout.trim().to_owned();
                let good = done.code == Some(0) && !value.is_empty();
                assert!(good, "{}: {command}: {done:?}", page.path.display());
                self.words.push((word.clone(), value));
            }
        }
    }

    /// The host of a command.
    fn host(&self, block: &GuideBlock, prompt: &str) -> GuideHost {
        let on = block.rules.on.as_deref().filter(|_| prompt.is_empty());
        on.map_or_else(|| self.hosts.prompted(prompt), GuideHost::named)
    }

    fn command(&mut self, page: &GuidePage, block: &GuideBlock, command: &GuideCommand, may_fail: bool) {
        let shown = &page.lines[command.output.clone()];
        let text = self.text(block, command);
        let host = self.host(block, &command.prompt);
        let compare = match block.rules.output {
            OutputRule::Exact | OutputRule::Figures => true,
            OutputRule::Measured => writes(),
            OutputRule::Example => false,
        };
        if command.text == "echo $?" {
            let code = self.code.map_or_else(String::new, |code| code.to_string());
            return self.compare(page, block, command, &[code]);
        }
        let stays = block.rules.stays.as_ref().filter(|(_, words)| text.starts_with(words));
        if let Some((port, _)) = stays {
            self.hosts.start(host, &text, *port);
            let deadline = clock::now() + TIMEOUT;
            let wanted = if compare { shown } else { &[] };
            loop {
                let printed = self.lines(&self.hosts.printed(host));
                if align(wanted, &printed, block.rules.output).is_ok() || deadline.has_passed() {
                    return if compare {
                        self.compare(page, block, command, &printed)
                    };
                }
                pause(Duration::from_millis(20));
            }
        }
        let text = text.strip_suffix(" &").map_or_else(|| text.clone(), background);
        let mut done = self.hosts.run(host, &text);
        // A run is archived soon after its end, on a busy machine later: what only looks at it looks again.
        let deadline = clock::now() + ARCHIVED_WITHIN;
        while text.starts_with("curl -s http") && done.code != Some(0) && !deadline.has_passed() {
            pause(Duration::from_millis(500));
            done = self.hosts.run(host, &text);
        }
        self.code = done.code;
        let shows_error = shown.iter().any(|line| line.starts_with("error: "));
        let good = done.code == Some(0) || (done.code.is_some() && done.code == block.rules.exit);
        let may_fail = may_fail || text.contains("echo $?");
        if !may_fail && good == shows_error {
            self.faults.push(format!(
                "{}\nran: {text}\n{:?}: {}",
                page.place(command),
                done.code,
                done.stdout
            ));
        }
        if compare {
            let printed = self.lines(&done.stdout);
            self.compare(page, block, command, &printed);
        }
    }

    /// The command as it is run.
    fn text(&self, block: &GuideBlock, command: &GuideCommand) -> String {
        let renewed = renews(block, command);
        let text = self.replaced(block, &command.text, renewed);
        if renewed {
            return text;
        }
        // A comment after the command begins with blanks.
        let head = text.split("  #").next().unwrap_or_default();
        let stays = block.rules.stays.as_ref().is_some_and(|(_, words)| head.starts_with(words));
        let also = if head.contains("linerate ") && !stays { block.rules.also.as_str() } else { "" };
        format!("{} {also}", head.trim_end()).trim_end().to_owned()
    }

    /// A text of the page with what its words stand for.
    fn replaced(&self, block: &GuideBlock, text: &str, literally: bool) -> String {
        let mut text = text.to_owned();
        for (old, new) in block.rules.instead.iter().filter(|_| !literally) {
            text = text.replace(old.as_str(), new);
        }
        for (word, value) in &self.words {
            text = text.replace(word.as_str(), value);
        }
        text
    }

    /// The lines that were printed, with the words of the page.
    fn lines(&self, text: &str) -> Vec<String> {
        let mut text = text.to_owned();
        for (word, value) in &self.words {
            text = text.replace(value.as_str(), word);
        }
        text.lines().map(str::to_owned).collect()
    }

    fn compare(&mut self, page: &GuidePage, block: &GuideBlock, command: &GuideCommand, printed: &[String]) {
        let shown = &page.lines[command.output.clone()];
        let rule = if writes() { OutputRule::Figures } else { block.rules.output };
        match align(shown, printed, rule) {
            Ok(places) => {
                for (line, place) in command.output.clone().zip(places) {
                    if let Some(at) = place {
                        self.renewed.insert(line, printed[at].trim_end().to_owned());
                    }
                }
            }
            Err(fault) => {
                let all = printed.join("\n");
                self.faults.push(format!("{}\n{fault}\nall that was printed:\n{all}", page.place(command)));
            }
        }
    }

    /// Checks that linerate would accept a command that is not run.
    fn parse_only(&mut self, page: &GuidePage, command: &GuideCommand) {
        let text = command.text.split(" #").next().unwrap_or_default();
        if !text.contains("linerate") {
            return;
        }
        let Some(words) = shlex::split(text) else {
            self.faults.push(format!("{}\na quotation mark has no end", page.place(command)));
            return;
        };
        let words: Vec<String> = words.into_iter().skip_while(|word| word != "linerate").collect();
        if words.is_empty() || words.iter().any(|word| word == "|") {
            return;
        }
        if let Err(error) = linerate::command().try_get_matches_from(words) {
            self.faults.push(format!("{}\n{error}", page.place(command)));
        }
    }
}
