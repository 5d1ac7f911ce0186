//! `linerate serve`.

use std::io::Write;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use linerate_control::{
    Policy, Restored, Server, ServerConfig, ServerEvent, ServerHandle, restore_leftovers,
};
use linerate_proto::agent::SettingInForce;
use linerate_runner::LabPortObserver;

use super::guardian::OwnGuardians;
use super::stand_in::ArchiveKeeper;
use super::token::read_token;
use crate::args::{PolicyName, ServeArgs};
use crate::exit::Exit;
use crate::signals::Signals;
use crate::{calibration, print};

pub(crate) fn run(args: &ServeArgs) -> Exit {
    let signals = match Signals::catch() {
        Ok(signals) => signals,
        Err(error) => {
            print::error(format!("cannot catch signals: {error}"));
            return Exit::Failed;
        }
    };
    let agent_token = match args.agent_token_file.as_deref().map(read_token).transpose() {
        Ok(token) => token,
        Err(trouble) => {
            print::error(trouble);
            return Exit::Usage;
        }
    };
    let settings = agent_token.as_ref().and_then(|_| args.run.settings());
    if let Some(folder) = &settings {
        match restore_leftovers(folder) {
            Ok(restored) => print_restored(&restored, "left by a killed agent: "),
            Err(error) => print::warning(error),
        }
    }
    let settings = settings.filter(|_| !args.no_settings);
    let guardians = settings.clone().map(|folder| Arc::new(OwnGuardians { folder }) as _);
    let server = match Server::bind(ServerConfig { agent_token, settings, guardians, ..config(args) }) {
        Ok(server) => server,
        Err(error) => {
            print::error(error);
            return Exit::Failed;
        }
    };
    let switch = match ServerHandle::new() {
        Ok(switch) => Arc::new(switch),
        Err(error) => {
            print::error(error);
            return Exit::Failed;
        }
    };
    let handle = Arc::clone(&switch);
    if let Err(error) = Signals::on_each(move || handle.turn_off()) {
        print::error(format!("cannot wait for signals: {error}"));
        return Exit::Failed;
    }
    let (json, own) = (args.json, args.port);
    let result =
        server.run(
            switch,
            move |event| if json { print_event_json(&event, own) } else { print_event(&event, own) },
        );
    match (result, signals.which()) {
        (Err(error), _) => {
            print::error(error);
            Exit::Failed
        }
        (Ok(()), Some(signal)) => Exit::Interrupted(signal),
        (Ok(()), None) => Exit::Done,
    }
}

fn config(args: &ServeArgs) -> ServerConfig {
    let any = [IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
    let addresses = if args.bind.is_empty() { any.as_slice() } else { &args.bind };
    ServerConfig {
        addresses: addresses.iter().map(|address| SocketAddr::new(*address, args.port)).collect(),
        policy: match args.policy {
            PolicyName::Exclusive => Policy::Exclusive,
            PolicyName::Shared => Policy::Shared,
        },
        longest: args.limit_time,
        most_clients: args.limit_clients,
        memory: args.limit_memory,
        one_off: args.one_off,
        calibration: calibration::stored(),
        agent_token: None,
        settings: None,
        guardians: None,
        foreign: ServerConfig::others_at_home(),
        classic: if args.classic { ServerConfig::classic_ports() } else { Vec::new() },
        keeper: Some(Arc::new(ArchiveKeeper::for_foreign_clients(
            args.archive.archive.clone(),
            &args.archive_limits,
        ))),
        observer: LabPortObserver::from_environment().map(|lab| Arc::new(lab) as _),
    }
}

/// Prints an event of a server on port `own`.
fn print_event(event: &ServerEvent, own: u16) {
    match event {
        ServerEvent::Listening(address) => print::note(match older_tools(address.port(), own) {
            Some(tools) => format!("listening on {address} (TCP and UDP) for {tools}"),
            None => format!(
                "listening on {address} (TCP and UDP); measure from another host with: linerate test {}",
                how(*address)
            ),
        }),
        ServerEvent::Begun { client, name } => print::note(format!("{} ({name}): measuring", plain(*client))),
        ServerEvent::Waiting { client, position } => {
            print::note(format!("{}: waiting in the queue, position {position}", plain(*client)))
        }
        ServerEvent::Held { client, name } => {
            print::note(format!("{} ({name}): coordinator connected; other clients wait", plain(*client)));
        }
        ServerEvent::Asked { client, target } => {
            print::note(format!("{}: coordinates a run from this host to {target}", plain(*client)));
        }
        ServerEvent::SettingsChanged { client, in_force } => {
            let one = |setting: &SettingInForce| {
                let of = setting.interface.as_ref().map_or_else(String::new, |name| format!(" of {name}"));
                format!("{}{of}: {}, before {}", setting.setting, setting.now, setting.found)
            };
            let all: Vec<String> = in_force.iter().map(one).collect();
            let all = if all.is_empty() { "no setting".to_owned() } else { all.join("; ") };
            print::note(format!("{}: settings changed for its runs: {all}", plain(*client)));
        }
        ServerEvent::SettingsRestored { client, restored } => {
            print_restored(restored, &format!("{}: ", plain(*client)))
        }
        ServerEvent::Ended { client, trouble: None } => print::note(format!("{}: done", plain(*client))),
        ServerEvent::Ended { client, trouble: Some(why) } => {
            print::note(format!("{}: {why}", plain(*client)))
        }
        ServerEvent::Foreign { client, why } => print::note(format!("{}: refused: {why}", plain(*client))),
        ServerEvent::OutOfFiles { why, allowed } => print::warning(format!(
            "{why}: this server may have {allowed} open files, and new clients wait until some are closed; \
             raise the limit (ulimit -n, LimitNOFILE= of a service), or admit fewer clients \
             (--limit-clients)"
        )),
        _ => {}
    }
}

pub(super) fn print_restored(restored: &Restored, head: &str) {
    restored.put_back.iter().for_each(|setting| print::note(format!("{head}restored {setting}")));
    restored.left.iter().for_each(|why| print::warning(format!("{head}{why}")));
}

/// The tools of a port; absent for the server's own port.
fn older_tools(port: u16, own: u16) -> Option<String> {
    let classic = ServerConfig::classic_ports().into_iter().find(|classic| classic.port == port && port != own)?;
    Some(classic.tools.iter().map(|tool| tool.name).collect::<Vec<_>>().join(" and "))
}

/// How a client specifies this address.
fn how(address: SocketAddr) -> String {
    let host = if address.ip().is_unspecified() { "HOST".to_owned() } else { address.ip().to_string() };
    let port = if address.port() == 5201 { String::new() } else { format!(" -p {}", address.port()) };
    format!("{host}{port}")
}

/// Addresses of IPv4 clients of a dual-stack socket, in IPv4 form.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Prints an event as one line of JSON; where a server listens also as text.
fn print_event_json(event: &ServerEvent, own: u16) {
    if let ServerEvent::Listening(_) = event {
        print_event(event, own);
    }
    let Ok(event) = serde_json::to_value(event) else { return };
    // The reader may be gone; the server continues.
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{event}").and_then(|()| out.flush());
}
