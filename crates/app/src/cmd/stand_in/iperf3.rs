//! iperf3's command line.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::Path;

use linerate_compat::Stamped;
use linerate_compat::iperf3::argv::{self, Iperf3Command};
use linerate_compat::iperf3::auth::{Authenticator, Login};
use linerate_compat::iperf3::client::{Iperf3Client, Iperf3ClientConfig};
use linerate_compat::iperf3::errors::{Iperf3Error, Iperf3ErrorNumber};
use linerate_compat::iperf3::report::Iperf3SystemInfo;
use linerate_compat::iperf3::server::{Iperf3Server, Iperf3ServerConfig};
use linerate_compat::iperf3::settings::{Common, Iperf3File, Iperf3Settings};
use linerate_compat::stand_in::StandIn;
use linerate_control::file_facts;
use linerate_runner::{PidFile, PidFileError, log_file};
use linerate_sock::proc::host::kernel;
use linerate_sock::process::detach;

use super::{EarlyExit, PreparedTool, argument_texts};

/// The environment variable with a client's password, which keeps it out of the process list.
const PASSWORD: &str = "IPERF3_PASSWORD";

pub(super) fn prepare(_: &str, arguments: &[OsString]) -> Result<PreparedTool, EarlyExit> {
    let system = system();
    let settings = match argv::parse(&argument_texts(arguments)) {
        Ok(Iperf3Command::Client(settings) | Iperf3Command::Server(settings)) => with_file(*settings),
        Ok(Iperf3Command::Help) => return Err(EarlyExit::text(argv::help())),
        Ok(Iperf3Command::Version) => return Err(EarlyExit::text(argv::version(&system))),
        Err(refusal) => return Err(EarlyExit::error(refusal.text, refusal.code)),
    };
    for warning in &settings.common.warnings {
        // As iperf3 does: on standard error even if there is a log file. Nothing is to be done if nobody reads it.
        let _ = writeln!(std::io::stderr(), "{warning}");
    }
    let (output, complaints) = printers(&settings.common)?;
    let (host, common, daemon) = (settings.host.clone(), settings.common.clone(), settings.server.daemon);
    let stand_in = stand_in(settings, Iperf3SystemInfo { system })?;
    if daemon {
        let trouble = |error| format!("iperf3: error - unable to become a daemon: {error}\n");
        detach().map_err(|error| EarlyExit::error(trouble(error), 1))?;
    }
    // The process id of a daemon is known only now.
    let pid_file = match common.pidfile.as_deref().map(PidFile::create).transpose() {
        Ok(pid_file) => pid_file,
        Err(error) => return Err(no_pid_file(error, &common, output)),
    };
    Ok(PreparedTool { output, complaints, pid_file, ..PreparedTool::new(stand_in, host) })
}

/// The error of a process id file, which goes where all output goes.
fn no_pid_file(error: PidFileError, common: &Common, output: Writer) -> EarlyExit {
    let text = match error {
        PidFileError::Taken => "Another instance of iperf3 appears to be running".to_owned(),
        PidFileError::System(error) => {
            format!("error - {}", Iperf3Error::of_system(Iperf3ErrorNumber::PID_FILE, &error))
        }
    };
    let line = format!("iperf3: {text}\n");
    match output.filter(|_| common.logfile.is_some()) {
        Some(mut log) => {
            // There is nowhere else to say that the log file cannot be written.
            let _ = log.write_all(line.as_bytes());
            EarlyExit::error(String::new(), 1)
        }
        // With -J, iperf3 has no object yet that could hold the text.
        None if common.json => EarlyExit::error(String::new(), 1),
        None => EarlyExit::error(line, 1),
    }
}

fn stand_in(settings: Iperf3Settings, host: Iperf3SystemInfo) -> Result<Box<dyn StandIn>, EarlyExit> {
    let unix_ms = jiff::Timestamp::now().as_millisecond().unsigned_abs();
    let mut seed = [0; 32];
    getrandom::fill(&mut seed)
        .map_err(|error| EarlyExit::error(format!("iperf3: error - no random numbers: {error}\n"), 1))?;
    if settings.is_client() {
        let login = login(&settings)?;
        return Ok(Box::new(Iperf3Client::new(Iperf3ClientConfig { settings, host, unix_ms, seed, login })));
    }
    let gate = gate(&settings)?;
    Ok(Box::new(Iperf3Server::new(Iperf3ServerConfig { settings, host, unix_ms, seed, gate, shared: false })))
}

/// The settings with what is known about the file of `-F`.
fn with_file(mut settings: Iperf3Settings) -> Iperf3Settings {
    if let Some(Iperf3File { path, .. }) = settings.common.file.clone() {
        settings.set_file(file_facts(path));
    }
    settings
}

/// The output of uname(1).
fn system() -> String {
    let kernel = kernel();
    [kernel.system, kernel.host, kernel.release, kernel.version, kernel.machine].join(" ")
}

type Writer = Option<Box<dyn Write>>;

/// Output writers according to `--logfile` and `--timestamps`.
fn printers(common: &Common) -> Result<(Writer, Writer), EarlyExit> {
    let open = |otherwise: Box<dyn Write>| -> Result<Box<dyn Write>, EarlyExit> {
        match &common.logfile {
            None => Ok(otherwise),
            Some(path) => log_file(path).map_err(|error| unusable(Iperf3ErrorNumber::LOG_FILE, &error)),
        }
    };
    let (mut output, mut complaints) = (None, None);
    if common.logfile.is_some() || common.timestamps.is_some() {
        output = Some(open(Box::new(std::io::stdout()))?);
        complaints = Some(open(Box::new(std::io::stderr()))?);
    }
    // JSON has no lines of its own.
    if let Some(format) = common.timestamps.as_ref().filter(|_| !common.json) {
        let stamped = |to| Box::new(Stamped::new(to, format.clone(), jiff::Zoned::now)) as Box<dyn Write>;
        (output, complaints) = (output.map(stamped), complaints.map(stamped));
    }
    Ok((output, complaints))
}

fn login(settings: &Iperf3Settings) -> Result<Option<Login>, EarlyExit> {
    let client = &settings.client;
    let (Some(name), Some(path)) = (&client.username, &client.rsa_public_key) else { return Ok(None) };
    let key = read(path, Iperf3ErrorNumber::CLIENT_AUTH)?;
    let password = match std::env::var(PASSWORD) {
        Ok(password) => password,
        Err(_) => {
            rpassword::prompt_password("Password: ").map_err(|_| parameter(Iperf3ErrorNumber::CLIENT_AUTH))?
        }
    };
    let login = Login::new(name, &password, &key, settings.common.pkcs1_padding);
    login.map(Some).map_err(|_| parameter(Iperf3ErrorNumber::CLIENT_AUTH))
}

fn gate(settings: &Iperf3Settings) -> Result<Option<Authenticator>, EarlyExit> {
    let server = &settings.server;
    let (Some(key), Some(users)) = (&server.rsa_private_key, &server.authorized_users) else {
        return Ok(None);
    };
    let key = read(key, Iperf3ErrorNumber::SERVER_AUTH)?;
    read(users, Iperf3ErrorNumber::SERVER_AUTH)?;
    let users = users.clone();
    // If the file has been deleted, no user is accepted.
    let reader = Box::new(move || fs::read_to_string(&users).unwrap_or_default());
    let gate = Authenticator::new(&key, reader, server.time_skew_threshold, settings.common.pkcs1_padding);
    gate.map(Some).map_err(|_| parameter(Iperf3ErrorNumber::SERVER_AUTH))
}

fn read(path: &Path, number: Iperf3ErrorNumber) -> Result<String, EarlyExit> {
    fs::read_to_string(path).map_err(|_| parameter(number))
}

fn parameter(number: Iperf3ErrorNumber) -> EarlyExit {
    EarlyExit::error(format!("iperf3: parameter error - {}\n", Iperf3Error::new(number)), 1)
}

fn unusable(number: Iperf3ErrorNumber, error: &std::io::Error) -> EarlyExit {
    EarlyExit::error(format!("iperf3: error - {}\n", Iperf3Error::of_system(number, error)), 1)
}
