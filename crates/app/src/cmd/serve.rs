//! `linerate serve`.

use std::collections::BTreeSet;
use std::io::Write;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use linerate_compat::Tool;
use linerate_control::{
    Policy, Server, ServerConfig, ServerEvent, ServerHandle, canonical_address, listening_text,
    restore_leftovers,
};
use linerate_report::outcome;
use linerate_runner::{ArchiveLogStore, LabPortObserver};
use linerate_sock::thread::locked;
use linerate_units::{Bytes, Span, above_zero};

use super::guardian::{OwnGuardians, print_restored};
use super::web::WebArgs;
use crate::agent_token::read_token;
use crate::args::{ArchiveArgs, ArchiveLimits, QuotaArgs, RunFolder};
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::signals::Signals;
use crate::{archive, calibration, print};

/// When clients are measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum PolicyName {
    /// One run at a time; the others wait in a queue and see their position
    #[default]
    Exclusive,
    /// All at once; each result mentions the runs at the same time
    Shared,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Port for TCP and UDP; 0 lets the system choose
    #[arg(short, long, default_value_t = 5201)]
    port: u16,
    /// Listen only on this address; may be given more than once [default: all]
    #[arg(short = 'B', long = "bind", value_name = "ADDRESS")]
    bind: Vec<IpAddr>,
    /// When clients are measured
    #[arg(long, value_enum, default_value_t)]
    policy: PolicyName,
    /// Stop after one run
    #[arg(short = '1', long)]
    one_off: bool,
    /// Also answer older tools at their own ports
    #[arg(long)]
    classic: bool,
    /// Do not answer clients of this tool or protocol; may be given more than once
    #[arg(long, value_name = "TOOL", value_parser = PossibleValuesParser::new(Tool::all_protocols()))]
    without: Vec<String>,
    /// Refuse runs that take longer
    #[arg(long, value_name = "SECONDS", value_parser = above_zero::<Span>)]
    pub(super) limit_time: Option<Span>,
    /// Refuse further clients when this number is running or waiting
    #[arg(long, value_name = "CLIENTS", value_parser = clap::value_parser!(u32).range(1..))]
    limit_clients: Option<u32>,
    /// Refuse runs that need more memory in total (K, M, G are binary) [default: a quarter of this host's, at
    /// least 128M]
    #[arg(long, value_name = "SIZE", value_parser = above_zero::<Bytes>)]
    limit_memory: Option<Bytes>,
    #[command(flatten)]
    quotas: QuotaArgs,
    #[command(flatten)]
    archive_limits: ArchiveLimits,
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
    run: RunFolder,
    /// Print events as JSON, one object per line, on stdout
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(super) archive: ArchiveArgs,
}

/// Serves until a signal arrives, or until one run has ended with `--one-off`.
pub(crate) fn run(args: &ServeArgs) -> Result<Exit, CommandError> {
    print::developers_log();
    let signals = Signals::catch()?;
    let agent_token = args.agent_token_file.as_deref().map(read_token).transpose()?;
    let settings = agent_token.as_ref().and_then(|_| args.run.settings());
    if let Some(folder) = &settings {
        match restore_leftovers(folder) {
            Ok(restored) => print_restored(&restored, "left by a killed agent: "),
            Err(error) => print::warning(error),
        }
    }
    let settings = settings.filter(|_| !args.no_settings);
    let guardians = settings.clone().map(|folder| Arc::new(OwnGuardians { folder }) as _);
    let identity = args.web.identity()?;
    let server = Server::bind(ServerConfig { identity, agent_token, settings, guardians, ..config(args) })
        .map_err(CommandError::failed)?;
    args.quotas.quotas(args.web.public).in_words().into_iter().for_each(print::note);
    let _web = args.web.start(&server, args)?;
    let switch = Arc::new(ServerHandle::new().map_err(CommandError::failed)?);
    let handle = Arc::clone(&switch);
    Signals::on_each(move || handle.turn_off())
        .map_err(|error| CommandError::failed(format!("cannot wait for signals: {error}")))?;
    let (own, json) = (args.port, args.json);
    let coordinators = Mutex::new(BTreeSet::new());
    server
        .run(switch, move |event| {
            if json { print_event_json(&event, own) } else { print_event(&event, own, &coordinators) }
        })
        .map_err(CommandError::failed)?;
    Ok(signals.which().map_or(Exit::Done, Exit::Interrupted))
}

fn config(args: &ServeArgs) -> ServerConfig {
    let any = [IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
    let addresses = if args.bind.is_empty() { any.as_slice() } else { &args.bind };
    ServerConfig {
        addresses: addresses.iter().map(|address| SocketAddr::new(*address, args.port)).collect(),
        policy: if args.policy == PolicyName::Shared { Policy::Shared } else { Policy::Exclusive },
        longest: args.limit_time,
        most_clients: args.limit_clients,
        quotas: args.quotas.quotas(args.web.public),
        memory: args.limit_memory,
        one_off: args.one_off,
        calibration: calibration::stored(),
        foreign: ServerConfig::others_at_home(),
        without: args.without.clone(),
        tls_only: args.web.tls.tls_only,
        classic: if args.classic { ServerConfig::classic_ports() } else { Vec::new() },
        log_store: Some(Arc::new(ArchiveLogStore {
            without_addresses: args.archive_limits.no_store_addresses,
            ..archive::log_store(args.archive.archive.clone(), Some(args.archive_limits.quota()))
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
