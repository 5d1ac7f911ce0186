//! `linerate serve`.

use std::collections::BTreeSet;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use clap::Args;
use clap::builder::PossibleValuesParser;
use linerate_compat::Tool;
use linerate_control::{
    ControlError, Heartbeat, Server, ServerConfig, ServerEvent, ServerHandle, ServerIdentity, ServerLimits,
    ServerReload, TlsRequirement, canonical_address, listening_text, restore_leftovers,
};
use linerate_model::{ArchiveLimitOptions, ArchiveOptions, ListenOptions, ServerLimitOptions};
use linerate_report::outcome;
use linerate_runner::{
    ArchiveLogStore, CertificateError, CertificateSource, LabPortObserver, Retention, ServiceConfig,
    ServiceManager, SettingsGuardians, TlsCertificate,
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
use crate::signals::{SERVICE_STOP_SIGNALS, Signals, WaitingSignals, ending};
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

/// Serves until a signal arrives, or until one run has ended with `--one-off`.
pub(crate) fn run(args: &ServeArgs, configured: Option<ConfiguredServe>) -> Result<Exit, CommandError> {
    // Before any other file is opened.
    let mut inherited =
        InheritedSockets::from_environment().map_err(ControlError::from).map_err(CommandError::failed)?;
    print::developers_log();
    let stops = if configured.is_some() { SERVICE_STOP_SIGNALS.to_vec() } else { ending() };
    // One that comes while the server starts waits until there is something to stop.
    let started = Arc::new(OnceLock::<Arc<ServerHandle>>::new());
    let running = Arc::clone(&started);
    let signals = Signals::catch_these(&stops, move |_| {
        ServiceManager.stopping();
        running.get().into_iter().for_each(|server| server.turn_off());
    })?;
    let hangups = configured.as_ref().map(|_| WaitingSignals::catch(&[SIGHUP])).transpose()?;
    let agent_token = args.agent_token_file.as_deref().map(read_token).transpose()?;
    if let Some(configured) = configured.as_ref().filter(|_| args.check_config) {
        args.web.check(args)?;
        certificate(&args.web, TlsCertificate::check)?;
        return Ok(stdout::print(
            format!("{}: no mistakes\n", configured.config.path().display()).as_bytes(),
        ));
    }
    let settings = agent_token.as_ref().and_then(|_| settings_folder(args));
    let guardians =
        settings.clone().map(|folder| Arc::new(SettingsGuardians { folder, command: guardian::NAME }) as _);
    let identity = identity(&args.web)?;
    let pages = args.web.listener(&mut inherited);
    let config = ServerConfig { identity, agent_token, settings, guardians, ..config(args) };
    let server = Server::bind_with(config, &mut inherited).map_err(CommandError::failed)?;
    args.limits().quotas.in_words().into_iter().for_each(print::note);
    let _web = args.web.start(&server, args, pages)?;
    let switch = Arc::new(ServerHandle::new().map_err(CommandError::failed)?);
    let handle = started.get_or_init(|| Arc::clone(&switch));
    if signals.which().is_some() {
        handle.turn_off();
    }
    if let Some((configured, hangups)) = configured.zip(hangups) {
        hangups.hand_over(on_hangup(configured, server.reload(), args.web.public))?;
    }
    ServiceManager.ready(&server.status());
    let (own, json) = (server.own_addresses(), args.json);
    let coordinators = Mutex::new(BTreeSet::new());
    server
        .run(switch, move |event| {
            if json { print_event_json(&event, &own) } else { print_event(&event, &own, &coordinators) }
        })
        .map_err(CommandError::failed)?;
    Ok(signals.which().map_or(Exit::Done, Exit::Interrupted))
}

impl ServeArgs {
    fn limits(&self) -> ServerLimits {
        ServerLimits::new(&self.limits, self.web.public)
    }
}

/// Restores settings of this host that a killed agent has left changed. Returns the folder of the undo journal of this
/// agent, if it may change settings.
fn settings_folder(args: &ServeArgs) -> Option<PathBuf> {
    let folder = args.run.settings().map_err(print::warning).ok()?;
    match restore_leftovers(&folder) {
        Ok(restored) => print_restored(&restored, "left by a killed agent: "),
        Err(error) => print::warning(error),
    }
    Some(folder).filter(|_| !args.no_settings)
}

/// Reads the configuration file again. The server was public, or not, when it started.
fn on_hangup(configured: ConfiguredServe, server: ServerReload, is_public: bool) -> impl Fn(i32) + Send {
    let started = configured.config.clone();
    let in_force = Mutex::new(configured);
    move |_| {
        ServiceManager.reloading();
        let mut in_force = locked(&in_force);
        match reloaded(&in_force, (&started, is_public), &server) {
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
    }
}

/// The configuration file as it is now, and what has changed, in words.
fn reloaded(
    in_force: &ConfiguredServe,
    (started, is_public): (&ServiceConfig, bool),
    server: &ServerReload,
) -> Result<(ConfiguredServe, String), CommandError> {
    let (newer, args) = in_force.read_again()?;
    let token = args.agent_token_file.as_deref().map(read_token).transpose()?;
    let changes = in_force.config.changes(&newer.config, started, server.set_agent_token(token));
    // That it is public changes with a restart, and with it what its quotas are if none are given.
    server.set_limits(ServerLimits::new(&args.limits, is_public));
    Ok((newer, changes.in_words()))
}

/// What is read of the certificate of the server's own port, if one is wanted.
fn certificate<T>(
    web: &WebArgs,
    read: impl FnOnce(&CertificateSource) -> Result<T, CertificateError>,
) -> Result<Option<T>, CommandError> {
    let refused = |option: &str, error: CertificateError| {
        CommandError::of(error.needs_correction(), format!("{option}: {error}"))
    };
    let source = CertificateSource::of_server(&web.tls, web.names().is_some());
    let Some(source) = source.map_err(|error| refused("--tls-cert", error))? else { return Ok(None) };
    let option = if web.tls.is_for_control() { "--tls" } else { source.option() };
    read(&source).map(Some).map_err(|error| refused(option, error))
}

/// The certificate of the server's own port, if it is wanted.
fn identity(web: &WebArgs) -> Result<Option<Arc<dyn ServerIdentity>>, CommandError> {
    let names = web.names().unwrap_or_default();
    let identity = certificate(web, |source| TlsCertificate::open(source, &names))?;
    let Some(identity) = identity else { return Ok(None) };
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

/// Prints an event of a server whose own addresses are `own`. `coordinators` has the clients that coordinate runs.
fn print_event(event: &ServerEvent, own: &[SocketAddr], coordinators: &Mutex<BTreeSet<SocketAddr>>) {
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
fn print_event_json(event: &ServerEvent, own: &[SocketAddr]) {
    if let ServerEvent::Listening(address) = event {
        print::note(listening_text(*address, own));
    }
    let Ok(event) = serde_json::to_value(event) else { return };
    // The reader may be gone; the server continues.
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{event}").and_then(|()| out.flush());
}
