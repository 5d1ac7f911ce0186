//! `linerate serve`.

use std::collections::BTreeSet;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use clap::Args;
use clap::builder::PossibleValuesParser;
use linerate_compat::Tool;
use linerate_control::{
    ControlError, Heartbeat, Server, ServerConfig, ServerEvent, ServerHandle, ServerIdentity, ServerLimits,
    ServerReload, TlsRequirement, canonical_address, listening_text, restore_leftovers,
};
use linerate_model::{
    ArchiveLimitOptions, ArchiveOptions, ListenOptions, ServerLimitOptions, ServerTlsOptions,
};
use linerate_report::outcome;
use linerate_runner::{
    ArchiveLogStore, CertificateSource, LabPortObserver, Retention, ServiceConfig, ServiceManager,
    SettingsGuardians, TlsCertificate,
};
use linerate_sock::inherited::InheritedSockets;
use linerate_sock::thread::locked;
use signal_hook::consts::SIGHUP;

use super::guardian::{self, print_restored};
use super::web::WebArgs;
use crate::agent_token::read_token;
use crate::args::RunFolder;
use crate::command_error::CommandError;
use crate::config_file::ConfiguredServe;
use crate::exit::Exit;
use crate::signals::{SERVICE_STOP_SIGNALS, Signals, ending};
use crate::{archive, calibration, print, stdout};

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    listen: ListenOptions,
    /// Do not answer clients of this tool or protocol; may be given more than once
    #[arg(long, value_name = "TOOL", value_parser = PossibleValuesParser::new(Tool::all_protocols()))]
    without: Vec<String>,
    #[command(flatten)]
    limits: ServerLimitOptions,
    #[command(flatten)]
    archive_limits: ArchiveLimitOptions,
    /// Also be an agent: anyone with the token in this file may run tests from this host
    #[arg(long, value_name = "FILE")]
    agent_token_file: Option<PathBuf>,
    /// As an agent, refuse changes of this host's settings for a measurement (MTU, offloads, buffers, queueing
    /// disciplines)
    #[arg(long, requires = "agent_token_file")]
    no_settings: bool,
    #[command(flatten)]
    web: WebArgs,
    #[command(flatten)]
    pub(super) run: RunFolder,
    /// Print events as JSON, one object per line, on stdout
    #[arg(long)]
    json: bool,
    /// Read options from this TOML file, in which each key is an option without its dashes; options of the command line
    /// replace them. SIGHUP makes the server read the file again
    #[arg(long, value_name = "FILE", env = "LINERATE_CONFIG")]
    config: Option<PathBuf>,
    /// Check the configuration file and the files that it names, and do not serve
    #[arg(long, requires = "config")]
    check_config: bool,
    #[command(flatten)]
    pub(super) archive: ArchiveOptions,
}

/// Options that SIGHUP changes while the server runs; the token of an agent is read again too.
const LIVE_OPTIONS: &[&str] = &[
    "limit-time",
    "limit-clients",
    "limit-memory",
    "limit-daily-tests",
    "limit-daily-time",
    "limit-daily-bytes",
    "limit-daily-total",
    "agent-token-file",
];

/// Serves until a signal arrives, or until one run has ended with `--one-off`.
pub(crate) fn run(args: &ServeArgs, configured: Option<ConfiguredServe>) -> Result<Exit, CommandError> {
    // Before any other file is opened.
    let mut inherited =
        InheritedSockets::from_environment().map_err(ControlError::from).map_err(CommandError::failed)?;
    print::developers_log();
    let stops = if configured.is_some() { SERVICE_STOP_SIGNALS.to_vec() } else { ending() };
    let signals = Signals::catch_these(&stops)?;
    let agent_token = args.agent_token_file.as_deref().map(read_token).transpose()?;
    if let Some(configured) = configured.as_ref().filter(|_| args.check_config) {
        args.web.check_files(args)?;
        check_certificate(&args.web.tls)?;
        return Ok(stdout::print(
            format!("{}: no mistakes\n", configured.config.path().display()).as_bytes(),
        ));
    }
    let settings = agent_token.as_ref().and_then(|_| args.run.settings());
    if let Some(folder) = &settings {
        match restore_leftovers(folder) {
            Ok(restored) => print_restored(&restored, "left by a killed agent: "),
            Err(error) => print::warning(error),
        }
    }
    let settings = settings.filter(|_| !args.no_settings);
    let guardians =
        settings.clone().map(|folder| Arc::new(SettingsGuardians { folder, command: guardian::NAME }) as _);
    let identity = identity(&args.web)?;
    let pages = args.web.listener(&mut inherited);
    let config = ServerConfig { identity, agent_token, settings, guardians, ..config(args) };
    let server = Server::bind_with(config, &mut inherited).map_err(CommandError::failed)?;
    args.limits().quotas.in_words().into_iter().for_each(print::note);
    let _web = args.web.start(&server, args, pages)?;
    let switch = Arc::new(ServerHandle::new().map_err(CommandError::failed)?);
    let handle = Arc::clone(&switch);
    let on_stop = move |_| {
        ServiceManager.stopping();
        handle.turn_off();
    };
    Signals::hand_over(&stops, on_stop)?;
    if let Some(configured) = configured {
        reload_on_hangup(configured, server.reload())?;
    }
    ServiceManager.ready(&server.status());
    let (own, json) = (args.listen.port, args.json);
    let coordinators = Mutex::new(BTreeSet::new());
    server
        .run(switch, move |event| {
            if json { print_event_json(&event, own) } else { print_event(&event, own, &coordinators) }
        })
        .map_err(CommandError::failed)?;
    Ok(signals.which().map_or(Exit::Done, Exit::Interrupted))
}

impl ServeArgs {
    fn limits(&self) -> ServerLimits {
        ServerLimits::new(&self.limits, self.web.public)
    }
}

/// Reads the configuration file again at each SIGHUP.
fn reload_on_hangup(configured: ConfiguredServe, server: ServerReload) -> Result<(), CommandError> {
    let started = configured.config.clone();
    let in_force = Mutex::new(configured);
    let on_hangup = move |_| {
        ServiceManager.reloading();
        let mut in_force = locked(&in_force);
        match reloaded(&in_force, &started, &server) {
            Ok((newer, status)) => {
                print::note(&status);
                ServiceManager.ready(&status);
                *in_force = newer;
            }
            Err(error) => {
                error.report();
                let status = "the configuration was not changed, as the file has mistakes";
                print::warning(status);
                ServiceManager.ready(status);
            }
        }
    };
    Signals::hand_over(&[SIGHUP], on_hangup)
}

/// The configuration file as it is now, and what has changed, in words.
fn reloaded(
    in_force: &ConfiguredServe,
    started: &ServiceConfig,
    server: &ServerReload,
) -> Result<(ConfiguredServe, String), CommandError> {
    let (newer, args) = in_force.read_again()?;
    let changes = in_force.config.changes(&newer.config, started, LIVE_OPTIONS);
    server.set_agent_token(args.agent_token_file.as_deref().map(read_token).transpose()?);
    server.set_limits(args.limits());
    Ok((newer, changes.in_words()))
}

/// Reads a certificate in files. A self-signed one is made when it is needed.
fn check_certificate(tls: &ServerTlsOptions) -> Result<(), CommandError> {
    TlsCertificate::check(tls).map_err(|error| CommandError::of(error.needs_correction(), error))
}

/// The certificate of the server's own port, if it is wanted.
fn identity(web: &WebArgs) -> Result<Option<Arc<dyn ServerIdentity>>, CommandError> {
    if !web.tls.is_for_control() && web.names().is_none() && web.tls.tls_cert.is_some() {
        return Err(CommandError::usage("--tls-cert: give --tls or --web with it"));
    }
    let Some(source) = CertificateSource::of_port(&web.tls) else { return Ok(None) };
    let option = if web.tls.is_for_control() { "--tls" } else { source.option() };
    let identity = TlsCertificate::open(&source, &web.names().unwrap_or_default())
        .map_err(|error| CommandError::of(error.needs_correction(), format!("{option}: {error}")))?;
    if web.tls.is_for_control() {
        print::note(format!("TLS for control connections (clients give --tls): {}", identity.in_words()));
    }
    Ok(Some(Arc::new(identity)))
}

fn config(args: &ServeArgs) -> ServerConfig {
    ServerConfig {
        addresses: args.listen.addresses(),
        policy: args.listen.policy,
        limits: args.limits(),
        heartbeat: ServiceManager
            .heartbeat_interval()
            .map(|interval| Heartbeat { interval, beat: Arc::new(|| ServiceManager.beat()) }),
        one_off: args.listen.one_off,
        calibration: calibration::stored(),
        foreign: ServerConfig::others_at_home(),
        without: args.without.clone(),
        tls_required: TlsRequirement::of(&args.web.tls),
        classic: if args.listen.classic { ServerConfig::classic_ports() } else { Vec::new() },
        responsiveness: args.web.tls.responsiveness_port(),
        log_store: Some(Arc::new(ArchiveLogStore {
            without_addresses: args.archive_limits.no_store_addresses,
            ..archive::log_store(args.archive.archive.clone(), Some(Retention::from(&args.archive_limits)))
        })),
        observer: LabPortObserver::from_environment().map(|lab| Arc::new(lab) as _),
        ..ServerConfig::default()
    }
}

/// Prints an event of a server on port `own`. `coordinators` has the clients that coordinate runs.
fn print_event(event: &ServerEvent, own: u16, coordinators: &Mutex<BTreeSet<SocketAddr>>) {
    match event {
        ServerEvent::Listening(address) => print::note(listening_text(*address, own)),
        ServerEvent::SettingsRestored { client, restored } => {
            print_restored(restored, &format!("{}: ", canonical_address(*client)))
        }
        ServerEvent::Measured { client, flows } => {
            let results = outcome(flows).unwrap_or_else(|| "done".to_owned());
            print::note(format!("{}: {results}", canonical_address(*client)));
        }
        ServerEvent::OutOfFiles { .. } => event.line().into_iter().for_each(print::warning),
        _ => event.line().into_iter().for_each(print::note),
    }
    // The end of a test was printed with its results.
    match event {
        ServerEvent::Held { client, .. } => drop(locked(coordinators).insert(*client)),
        ServerEvent::Ended { client, trouble }
            if locked(coordinators).remove(client) && trouble.is_none() =>
        {
            print::note(format!("{}: done", canonical_address(*client)));
        }
        _ => {}
    }
}

/// Prints an event as one line of JSON; where a server listens also as text.
fn print_event_json(event: &ServerEvent, own: u16) {
    if let ServerEvent::Listening(address) = event {
        print::note(listening_text(*address, own));
    }
    let Ok(event) = serde_json::to_value(event) else { return };
    // The reader may be gone; the server continues.
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{event}").and_then(|()| out.flush());
}
