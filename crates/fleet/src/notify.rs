//! Tells users about alarms: a command, a web hook, mail.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use linerate_model::calendar::Alarm;
use linerate_sock::clock;
use serde_json::{Value, json};

use crate::inventory::Notify;
use crate::recurrence::rfc3339;

/// How long a command, a web server or the mail program may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How often a command is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Where mail programs are.
const SENDMAIL: [&str; 2] = ["/usr/sbin/sendmail", "/usr/lib/sendmail"];

/// Why somebody could not be told about an alarm.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotifyError {
    /// A command failed.
    #[error("the command '{command}' of [notify] {why}")]
    Command {
        /// The program.
        command: String,
        /// How it failed.
        why: String,
    },
    /// A web server did not take the alarm.
    #[error("the web hook of [notify] failed: {0}")]
    Webhook(String),
    /// There is no mail program.
    #[error("the mail addresses of [notify] need a mail program ({} is missing); install one such as msmtp-mta", SENDMAIL[0])]
    NoSendmail,
}

/// Tells everybody; what failed.
pub(crate) fn notify(whom: &Notify, fleet: &str, alarm: &Alarm) -> Vec<NotifyError> {
    let document = document(fleet, alarm);
    let mut errors = Vec::new();
    if let Some((program, arguments)) = whom.command.split_first() {
        errors.extend(pipe_into(program, arguments, &format!("{document}\n")).err());
    }
    if let Some(url) = &whom.webhook {
        errors.extend(post(url, &document).err());
    }
    if !whom.mail.is_empty() {
        errors.extend(send_mail(&whom.mail, fleet, alarm).err());
    }
    errors
}

/// An alarm as programs read it.
#[must_use]
pub(crate) fn document(fleet: &str, alarm: &Alarm) -> Value {
    json!({
        "schema": "linerate.alarm/1",
        "fleet": fleet,
        "state": if alarm.cleared.is_some() { "cleared" } else { "raised" },
        "kind": alarm.kind,
        "schedule": alarm.schedule,
        "mesh": alarm.mesh,
        "from": alarm.from,
        "to": alarm.to,
        "text": alarm.text,
        "since": rfc3339(alarm.since),
        "raised": rfc3339(alarm.raised),
        "cleared": alarm.cleared.map(rfc3339),
        "runs": [alarm.first_run, alarm.second_run],
    })
}

/// Runs a program with a text on its standard input.
fn pipe_into(program: &str, arguments: &[String], text: &str) -> Result<(), NotifyError> {
    let failed = |why: String| NotifyError::Command { command: program.to_owned(), why };
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| failed(format!("cannot be started: {error}")))?;
    if let Some(mut input) = child.stdin.take() {
        // A program that does not read is judged by its exit code. The text is shorter than the buffer of a pipe.
        let _ = input.write_all(text.as_bytes());
    }
    wait(&mut child).map_err(failed)
}

fn wait(child: &mut Child) -> Result<(), String> {
    let until = clock::now() + TIMEOUT;
    loop {
        match child.try_wait() {
            Err(error) => return Err(format!("cannot be waited for: {error}")),
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("failed ({status})")),
            Ok(None) if until.has_passed() => {
                // Fails if it has just ended.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("did not end within {} s and was killed", TIMEOUT.as_secs()));
            }
            Ok(None) => clock::sleep_until(clock::now() + POLL_INTERVAL),
        }
    }
}

fn post(url: &str, document: &Value) -> Result<(), NotifyError> {
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(TIMEOUT))
        .user_agent(concat!("linerate/", env!("CARGO_PKG_VERSION")))
        .max_redirects(0)
        .build();
    let agent = ureq::Agent::new_with_config(config);
    let sent = agent.post(url).header("content-type", "application/json").send(document.to_string());
    match sent.map(|answer| answer.status()) {
        Ok(status) if status.is_success() => Ok(()),
        // The answer to a redirected POST is that to a GET.
        Ok(status) => {
            let why = format!("it answers {status}; give the address that takes alarms itself");
            Err(NotifyError::Webhook(why))
        }
        Err(error) => Err(NotifyError::Webhook(error.to_string())),
    }
}

fn send_mail(to: &[String], fleet: &str, alarm: &Alarm) -> Result<(), NotifyError> {
    let program =
        SENDMAIL.into_iter().find(|path| Path::new(path).exists()).ok_or(NotifyError::NoSendmail)?;
    // Addresses are arguments after `--`, so that none of them is an option.
    let mut arguments = vec!["-i".to_owned(), "--".to_owned()];
    arguments.extend(to.iter().cloned());
    pipe_into(program, &arguments, &mail(to, fleet, alarm))
}

/// A mail. Names have letters, digits and hyphens only, and texts have no line ends.
fn mail(to: &[String], fleet: &str, alarm: &Alarm) -> String {
    let what = if alarm.cleared.is_some() { "cleared" } else { "alarm" };
    let mut text = format!(
        "To: {}\nSubject: linerate {fleet}: {what}: {} to {}, {}\n",
        to.join(", "),
        alarm.from,
        alarm.to,
        alarm.kind.name()
    );
    text += "Content-Type: text/plain; charset=utf-8\nAuto-Submitted: auto-generated\n\n";
    text += &format!("{} to {}: {}\n\n", alarm.from, alarm.to, alarm.text);
    text += &format!("since:   {}\nraised:  {}\n", rfc3339(alarm.since), rfc3339(alarm.raised));
    if let Some(cleared) = alarm.cleared {
        text += &format!("cleared: {}\n", rfc3339(cleared));
    }
    text += &format!("runs:    {} and {} (linerate show RUN)\n", alarm.first_run, alarm.second_run);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::calendar::{AlarmKind, UnixTime};

    fn alarm() -> Alarm {
        Alarm {
            since: UnixTime::from_ms(0),
            raised: UnixTime::from_ms(60_000),
            cleared: None,
            schedule: "m.a.b".to_owned(),
            mesh: Some("m".to_owned()),
            from: "a".to_owned(),
            to: "b".to_owned(),
            kind: AlarmKind::Goodput,
            text: "the goodput is 1 b/s,\r\nBcc: everybody".into(),
            first_run: "1".to_owned(),
            second_run: "2".to_owned(),
        }
    }

    #[test]
    fn a_command_gets_the_alarm_on_its_standard_input() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("alarm.json");
        let script = format!("cat > '{}'", file.display());
        let whom = Notify { command: vec!["sh".to_owned(), "-c".to_owned(), script], ..Notify::default() };
        assert!(notify(&whom, "campus", &alarm()).is_empty());
        let written: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        assert_eq!(
            (&written["fleet"], &written["kind"], &written["state"]),
            (&json!("campus"), &json!("goodput"), &json!("raised"))
        );
        assert_eq!(written["since"], json!("1970-01-01T00:00:00Z"));
    }

    #[test]
    fn what_fails_is_named() {
        let whom = Notify {
            command: vec!["/no/such/program".to_owned()],
            webhook: Some("http://127.0.0.1:1/".to_owned()),
            mail: Vec::new(),
        };
        let errors: Vec<String> = notify(&whom, "campus", &alarm()).iter().map(ToString::to_string).collect();
        assert!(errors[0].contains("/no/such/program") && errors[1].contains("web hook"), "{errors:?}");
        let fails = Notify { command: vec!["false".to_owned()], ..Notify::default() };
        assert!(notify(&fails, "campus", &alarm())[0].to_string().contains("exit status: 1"));
    }

    #[test]
    fn a_web_hook_that_sends_elsewhere_has_not_taken_the_alarm() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            for answer in ["301 Moved Permanently\r\nLocation: /other", "204 No Content"] {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = std::io::BufReader::new(stream.try_clone().unwrap());
                let mut line = String::new();
                let mut length = 0;
                while std::io::BufRead::read_line(&mut request, &mut line).unwrap() > 2 {
                    let header = line.to_ascii_lowercase();
                    length =
                        header.strip_prefix("content-length:").map_or(length, |n| n.trim().parse().unwrap());
                    line.clear();
                }
                std::io::Read::read_exact(&mut request, &mut vec![0; length]).unwrap();
                write!(stream, "HTTP/1.1 {answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                    .unwrap();
            }
        });
        let whom = Notify { webhook: Some(url), ..Notify::default() };
        let errors = notify(&whom, "campus", &alarm());
        assert!(errors[0].to_string().contains("it answers 301"), "{errors:?}");
        assert!(notify(&whom, "campus", &alarm()).is_empty());
        server.join().unwrap();
    }

    #[test]
    fn a_text_of_others_adds_no_line_to_the_head_of_a_mail() {
        let mail = mail(&["noc@example.net".to_owned()], "campus", &alarm());
        let (head, body) = mail.split_once("\n\n").unwrap();
        assert_eq!(head.lines().count(), 4, "{head}");
        assert!(!head.contains("Bcc") && body.contains("Bcc: everybody"));
    }
}
