//! The configuration file of `linerate serve`.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;
use std::process::Command;

use crate::support::{Done, Folder, Process, ServeProcess, TIMEOUT, eventually, linerate, signal};

/// A configuration file in a folder.
struct ConfigFile {
    folder: Folder,
}

impl ConfigFile {
    fn new(text: &str) -> Self {
        let file = Self { folder: Folder::new() };
        file.write(text);
        file
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("linerate.toml")
    }

    fn write(&self, text: &str) {
        fs::write(self.path(), text).unwrap();
    }

    /// `linerate serve` with this file, and more words.
    fn command(&self, more: &[&str]) -> Command {
        let mut command = linerate();
        command.arg("serve").arg("--config").arg(self.path()).args(more);
        command
    }

    fn serve(&self, more: &[&str]) -> ServeProcess {
        ServeProcess::from(self.command(&[&["--json"], more].concat()))
    }

    /// What the program says instead of serving.
    fn answer(&self, more: &[&str]) -> Done {
        Process::start(self.command(more)).finish(TIMEOUT)
    }
}

/// A test of `seconds` against a server.
fn test(server: &ServeProcess, seconds: &str) -> Done {
    let mut command = linerate();
    let host = format!("127.0.0.1:{}", server.port);
    command.args(["test", &host, "-t", seconds, "--upload", "-b", "10M", "--no-latency", "-q"]);
    Process::start(command).finish(TIMEOUT)
}

#[test]
fn options_of_the_file_act_and_the_command_line_replaces_them() {
    let file = ConfigFile::new("port = 0\nbind = [\"127.0.0.1\"]\nlimit-time = \"300ms\"\nclassic = false\n");
    let server = file.serve(&[]);
    let addresses = server.events("listening");
    assert!(addresses.iter().all(|event| event["address"] == "127.0.0.1"), "{addresses:?}");
    let refused = test(&server, "2");
    assert!(refused.code == Some(1) && refused.stderr.contains("allows 300 ms"), "{refused:?}");
    drop(server);
    let server = file.serve(&["--limit-time", "60", "--bind", "127.0.0.2"]);
    let addresses = server.events("listening");
    assert!(
        addresses.iter().all(|event| event["address"] == "127.0.0.2"),
        "replaced, not added: {addresses:?}"
    );
}

#[test]
fn a_variable_of_the_environment_replaces_the_file_too() {
    let file = ConfigFile::new("port = 0\narchive = \"/nonexistent/folder/archive.sqlite\"\n");
    // `linerate()` sets LINERATE_ARCHIVE.
    let mut named_by_variable = linerate();
    named_by_variable.args(["serve", "--json"]).env("LINERATE_CONFIG", file.path());
    let server = ServeProcess::from(named_by_variable);
    let measured = test(&server, "0.2");
    assert_eq!(measured.code, Some(0), "{measured:?}");
    assert!(!server.stderr().contains("/nonexistent"), "{}", server.stderr());
}

#[test]
fn every_mistake_of_the_file_is_named_with_its_position() {
    let file = ConfigFile::new(
        "prot = 5201\nport = 70000\npolicy = \"exklusive\"\nlimit_time = 5\nclassic = \"yes\"\nbind = [\"::1\", \"here\"]\n\
         config = \"x\"\n",
    );
    let refused = file.answer(&["--check-config"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{refused:?}");
    for words in [
        "linerate.toml:1:1: 'prot' is no option that a configuration file may set; did you mean 'port'?",
        "linerate.toml:2:8: invalid value '70000' for '--port <PORT>'",
        "linerate.toml:3:10: invalid value 'exklusive' for '--policy <POLICY>' [possible values: exclusive, shared]",
        "linerate.toml:4:1: 'limit_time' is no option that a configuration file may set; did you mean 'limit-time'?",
        "linerate.toml:5:11: 'classic' is 'yes'; it has to be true or false",
        "linerate.toml:6:16: invalid value 'here' for '--bind <ADDRESS>'",
        "linerate.toml:7:1: 'config' is no option",
    ] {
        assert!(refused.stderr.contains(words), "{words}: {}", refused.stderr);
    }
    assert_eq!(file.answer(&[]).stderr, refused.stderr, "serving says the same");
}

#[test]
fn options_that_contradict_each_other_are_refused_with_the_file() {
    let file = ConfigFile::new("web-token-file = \"/dev/null\"\n");
    let refused = file.answer(&[]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.stderr.contains("--web") && refused.stderr.contains("linerate.toml are included"),
        "{refused:?}"
    );
}

#[test]
fn a_check_reads_the_files_that_the_configuration_names_and_serves_nobody() {
    let file = ConfigFile::new("port = 1\n");
    let checked = file.answer(&["--check-config"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(checked.stdout.contains("linerate.toml: no mistakes"), "{checked:?}");
    for (text, words) in [
        ("agent-token-file = \"/no/such/file\"\n", "--agent-token-file /no/such/file"),
        ("web = true\nweb-token-file = \"/no/such/file\"\n", "--web-token-file /no/such/file"),
        ("web = true\ntokens = \"/no/such/file\"\n", "/no/such/file"),
        ("web = true\ntls-cert = \"/no/such/file\"\ntls-key = \"/no/such/key\"\n", "/no/such/file"),
    ] {
        file.write(text);
        let refused = file.answer(&["--check-config"]);
        assert!(refused.code == Some(2) && refused.stderr.contains(words), "{text}: {refused:?}");
    }
}

#[test]
fn a_check_refuses_what_a_start_refuses() {
    let file = ConfigFile::new("");
    let data = file.folder.path().join("linerate");
    fs::create_dir(&data).unwrap();
    let secret = |name: &str, mode: u32| {
        let path = data.join(name);
        fs::write(&path, "cut").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path.display().to_string()
    };
    let (damaged, exposed) = (secret("damaged", 0o600), secret("exposed", 0o644));
    let answer = |text: &str, more: &[&str]| {
        file.write(text);
        let mut command = file.command(more);
        command.env("XDG_DATA_HOME", file.folder.path());
        Process::start(command).finish(TIMEOUT)
    };
    for good in [
        "web = true\ntls-self-signed = true\n",
        "web = \"0.0.0.0:8080\"\ninsecure = true\n",
        "tls-only = true\nresponsiveness-port = 5202\n",
        "tls = true\nresponsiveness-port = 5202\n",
    ] {
        let checked = answer(good, &["--check-config"]);
        assert_eq!(checked.code, Some(0), "{good}: {checked:?}");
    }
    assert!(!data.join("tls.pem").exists(), "a check makes nothing");
    secret("tls.pem", 0o600);
    for (text, words) in [
        ("web = \"0.0.0.0:8080\"\n", "neither a token nor TLS"),
        (&format!("web = true\ntokens = \"{damaged}\"\n"), "damaged:1: the first line is not"),
        (&format!("web = true\ntokens = \"{exposed}\"\n"), "chmod 600"),
        ("tls-cert = \"c.pem\"\ntls-key = \"k.pem\"\n", "--tls-cert: give --tls or --web with it"),
        ("tls = true\n", "--tls: "),
        ("web = true\ntls-self-signed = true\n", "tls.pem has no certificate"),
        ("responsiveness-port = 5202\n", "--tls"),
    ] {
        for more in [&["--check-config"][..], &[]] {
            let refused = answer(&format!("port = 0\n{text}"), more);
            assert!(refused.code == Some(2) && refused.stderr.contains(words), "{text}{more:?}: {refused:?}");
        }
    }
}

/// A file that gives the server its token when the test wants it.
struct SlowFile {
    path: PathBuf,
}

impl SlowFile {
    fn new(folder: &Folder) -> Self {
        let path = folder.path().join("slow");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        Self { path }
    }

    /// Calls `act` while the server reads the file, and then lets it find this text.
    fn give(&self, text: &str, act: impl FnOnce()) {
        // O_NONBLOCK: without a reader, opening fails instead of waiting.
        let open = || fs::OpenOptions::new().write(true).custom_flags(0o4000).open(&self.path).ok();
        let mut pipe = eventually("the server reads the file", open);
        act();
        pipe.write_all(text.as_bytes()).unwrap();
    }
}

#[test]
fn signals_that_come_while_the_server_starts_are_obeyed_when_it_has_started() {
    const TOKEN: &str = "the token of this agent";
    let file = ConfigFile::new("");
    let slow = SlowFile::new(&file.folder);
    let waiting = format!("port = 0\nagent-token-file = \"{}\"\n", slow.path.display());
    file.write(&waiting);
    let server = Process::start(file.command(&[]));
    slow.give(TOKEN, || signal(server.pid(), "TERM"));
    let ended = server.finish(TIMEOUT);
    assert_eq!(ended.code, Some(143), "{ended:?}");
    // Without a configuration file, SIGHUP ends it too.
    let mut command = linerate();
    command.args(["serve", "-p", "0", "--agent-token-file"]).arg(&slow.path);
    let server = Process::start(command);
    slow.give(TOKEN, || signal(server.pid(), "HUP"));
    let ended = server.finish(TIMEOUT);
    assert_eq!(ended.code, Some(129), "{ended:?}");
    let server = Process::start(file.command(&[]));
    slow.give(TOKEN, || {
        file.write("port = 0\n");
        signal(server.pid(), "HUP");
    });
    let words = "the configuration was read again: changed: agent-token-file";
    eventually("it has read the file again", || server.stderr().contains(words).then_some(()));
    signal(server.pid(), "TERM");
    assert_eq!(server.finish(TIMEOUT).code, Some(143));
}

#[test]
fn sighup_changes_limits_for_the_next_run_and_names_what_needs_a_restart() {
    let file = ConfigFile::new("port = 0\nlimit-time = \"300ms\"\n");
    let server = file.serve(&[]);
    assert_eq!(test(&server, "1").code, Some(1));
    file.write("port = 0\nlimit-time = 5\nclassic = true\n");
    server.signal("HUP");
    let said = |words: &'static str| eventually(words, || server.stderr().contains(words).then_some(()));
    said("the configuration was read again: changed: limit-time; changes after a restart: classic");
    let measured = test(&server, "1");
    assert_eq!(measured.code, Some(0), "{measured:?}");
    server.signal("HUP");
    said("was read again: changes after a restart: classic");
    file.write("limit-time = \"soon\"\n");
    server.signal("HUP");
    said("linerate.toml:1:14: invalid value 'soon' for '--limit-time <SECONDS>'");
    said("the configuration was not changed, as the file has mistakes");
    assert_eq!(test(&server, "1").code, Some(0), "what was in force stays");
    file.write("limit-time = \"300ms\"\n");
    server.signal("HUP");
    eventually("the limit is back", || (test(&server, "1").code == Some(1)).then_some(()));
    server.signal("TERM");
    assert_eq!(server.finish(TIMEOUT).code, Some(143));
}

#[test]
fn the_health_of_a_server_is_its_exit_code_and_leaves_no_trace() {
    let server = ServeProcess::start(&[]);
    let health = |host: &str, more: &[&str]| {
        let mut command = linerate();
        command.args(["health", host]).args(more);
        Process::start(command).finish(TIMEOUT)
    };
    let before = server.stderr();
    let healthy = health(&format!("127.0.0.1:{}", server.port), &[]);
    assert_eq!((healthy.code, healthy.stderr.as_str()), (Some(0), ""), "{healthy:?}");
    server.signal("STOP");
    let hanging = health(&format!("127.0.0.1:{}", server.port), &["-t", "0.2"]);
    server.signal("CONT");
    assert!(hanging.code == Some(1) && hanging.stderr.contains("does not answer"), "{hanging:?}");
    eventually("both are over", || {
        (health("127.0.0.1", &["-p", &server.port.to_string()]).code == Some(0)).then_some(())
    });
    assert_eq!(server.stderr(), before, "a health check is not reported");
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port();
    let answering = std::thread::spawn(move || {
        use std::io::Write;
        other.accept().unwrap().0.write_all(b"SSH-2.0-x\r\n").unwrap();
    });
    let not_ours = health(&format!("127.0.0.1:{port}"), &[]);
    answering.join().unwrap();
    assert!(not_ours.code == Some(1) && not_ours.stderr.contains("SSH"), "{not_ours:?}");
    let nobody = health(&format!("127.0.0.1:{port}"), &[]);
    assert!(nobody.code == Some(1) && nobody.stderr.contains("refused"), "{nobody:?}");
}

#[test]
fn without_a_file_sighup_ends_the_server_as_before() {
    let server = ServeProcess::start(&[]);
    server.signal("HUP");
    assert_eq!(server.finish(TIMEOUT).code, Some(129));
}

#[test]
fn the_token_of_an_agent_is_read_again() {
    let file = ConfigFile::new("");
    let token = file.folder.path().join("token");
    let others = file.folder.path().join("others");
    fs::write(&token, "an old token of this agent").unwrap();
    fs::write(&others, "a new token of this agent").unwrap();
    file.write(&format!("port = 0\nagent-token-file = \"{}\"\n", token.display()));
    let server = file.serve(&[]);
    let target = ServeProcess::start(&[]);
    let directed = |token: &PathBuf| {
        let mut command = linerate();
        let (agent, host) = (format!("127.0.0.1:{}", server.port), format!("127.0.0.1:{}", target.port));
        command.args(["test", &host, "--from", &agent, "-t", "0.2", "--upload", "-b", "10M", "--no-latency"]);
        command.arg("-q").arg("--agent-token-file").arg(token);
        Process::start(command).finish(TIMEOUT)
    };
    assert_eq!(directed(&others).code, Some(1), "a token that it does not know");
    fs::copy(&others, &token).unwrap();
    server.signal("HUP");
    let words = "was read again: the agent's token is another one";
    eventually("the configuration is read", || server.stderr().contains(words).then_some(()));
    let measured = directed(&others);
    assert_eq!(measured.code, Some(0), "{measured:?}");
    file.write("port = 0\n");
    server.signal("HUP");
    eventually("it is no agent any more", || {
        server.stderr().contains("changed: agent-token-file").then_some(())
    });
    let refused = directed(&others);
    assert!(refused.code == Some(1) && refused.stderr.contains("not an agent"), "{refused:?}");
}
