//! iperf3's command line.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::Path;

use linerate_compat::iperf3::argv::{self, Iperf3Command};
use linerate_compat::iperf3::auth::{Authenticator, Login};
use linerate_compat::iperf3::client::{Iperf3Client, Iperf3ClientConfig};
use linerate_compat::iperf3::errors::{Iperf3Error, Iperf3ErrorNumber};
use linerate_compat::iperf3::report::Iperf3SystemInfo;
use linerate_compat::iperf3::server::{Iperf3Server, Iperf3ServerConfig};
use linerate_compat::iperf3::settings::{Common, Iperf3Settings};
use linerate_compat::stand_in::StandIn;
use linerate_sock::proc::host::kernel;

use super::printer::{Stamped, log_file};
use super::{EarlyExit, PreparedTool, argument_texts};

/// The environment variable with a client's password, which keeps it out of the process list.
const PASSWORD: &str = "IPERF3_PASSWORD";

pub(super) fn prepare(_: &str, arguments: &[OsString]) -> Result<PreparedTool, EarlyExit> {
    let system = system();
    let settings = match argv::parse(&argument_texts(arguments)) {
        Ok(Iperf3Command::Client(settings) | Iperf3Command::Server(settings)) => *settings,
        Ok(Iperf3Command::Help) => return Err(EarlyExit::text(argv::help())),
        Ok(Iperf3Command::Version) => return Err(EarlyExit::text(argv::version(&system))),
        Err(refusal) => return Err(EarlyExit::error(refusal.text, refusal.code)),
    };
    let (output, complaints) = printers(&settings.common)?;
    let host = settings.host.clone();
    let stand_in = stand_in(settings, Iperf3SystemInfo { system })?;
    Ok(PreparedTool { stand_in, host, output, complaints })
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
            Some(path) => log_file(path).map_err(|error| unusable(Iperf3ErrorNumber::LOG_FILE, path, &error)),
        }
    };
    let (mut output, mut complaints) = (None, None);
    if common.logfile.is_some() || common.timestamps.is_some() {
        output = Some(open(Box::new(std::io::stdout()))?);
        complaints = Some(open(Box::new(std::io::stderr()))?);
    }
    if let Some(format) = &common.timestamps {
        output = output.map(|to| Box::new(Stamped::new(to, format.clone())) as Box<dyn Write>);
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

fn unusable(number: Iperf3ErrorNumber, path: &Path, error: &std::io::Error) -> EarlyExit {
    EarlyExit::error(format!("iperf3: error - {}{}: {error}\n", Iperf3Error::new(number), path.display()), 1)
}
