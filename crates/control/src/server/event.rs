//! What a server reports while it runs.

use std::net::{IpAddr, SocketAddr};

use linerate_model::{FlowOutcome, ForeignText};
use linerate_proto::agent::SettingInForce;
use serde::{Serialize, Serializer};

use super::reachable::{canonical_address, responsiveness_text};
use crate::restored::Restored;

/// An event of a server, for its log. As JSON it is an object with its name under `event`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ServerEvent {
    /// It listens on this address.
    Listening(
        #[serde(serialize_with = "listening")]
        #[cfg_attr(feature = "schema", schemars(with = "ListeningAt"))]
        SocketAddr,
    ),
    /// It listens on this address for clients that measure responsiveness.
    ListeningForResponsiveness(
        #[serde(serialize_with = "listening")]
        #[cfg_attr(feature = "schema", schemars(with = "ListeningAt"))]
        SocketAddr,
    ),
    /// A client was admitted.
    Begun {
        /// Address of the client.
        #[serde(serialize_with = "plain")]
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        client: SocketAddr,
        /// Name of the client's host.
        name: ForeignText,
    },
    /// A client is waiting in the queue.
    Waiting {
        /// Address of the client.
        #[serde(serialize_with = "plain")]
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        client: SocketAddr,
        /// Position in the queue; 1 is next.
        position: u32,
    },
    /// A coordinator holds the server: there are no other tests until it releases it.
    Held {
        /// Address of the coordinator.
        #[serde(serialize_with = "plain")]
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        client: SocketAddr,
        /// Name that the coordinator gave.
        name: ForeignText,
    },
    /// A coordinator started a run from this host.
    Asked {
        /// Address of the coordinator.
        #[serde(serialize_with = "plain")]
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        client: SocketAddr,
        /// The server to measure to.
        target: ForeignText,
    },
    /// Settings of this host were changed for a coordinator.
    SettingsChanged {
        /// Address of the coordinator.
        #[serde(serialize_with = "plain")]
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        client: SocketAddr,
        /// All settings that are changed now; empty if none could be changed.
        in_force: Vec<SettingInForce>,
    },
    /// Settings of this host were restored.
    SettingsRestored {
        /// Address of the coordinator for which they had been changed.
        #[serde(serialize_with = "plain")]
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        client: SocketAddr,
        /// What was restored, and what was not.
        #[serde(flatten)]
        restored: Restored,
    },
    /// A run was measured, with these results: as its client tells them, or of a client of another tool as far as
    /// they are known here. It ends with [`ServerEvent::Ended`].
    Measured {
        /// Address of the client.
        #[serde(serialize_with = "plain")]
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        client: SocketAddr,
        /// The results of its flows.
        flows: Vec<FlowOutcome>,
    },
    /// A run ended.
    Ended {
        /// Address of the client.
        #[serde(serialize_with = "plain")]
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        client: SocketAddr,
        /// Why it failed; null if it completed.
        #[serde(rename = "error")]
        trouble: Option<ForeignText>,
    },
    /// A connection that no served protocol recognized was closed.
    Foreign {
        /// Address of the peer.
        #[serde(serialize_with = "plain")]
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        client: SocketAddr,
        /// Why it was closed.
        why: ForeignText,
    },
    /// This process is out of file descriptors, or the kernel is out of memory for sockets. New connections
    /// wait in the kernel until some are free. Reported every 10 s at most.
    OutOfFiles {
        /// The error text of the kernel.
        why: String,
        /// Number of open files that this process may have.
        allowed: u64,
    },
}

impl ServerEvent {
    /// The line of a log for people; absent for events that say nothing by themselves.
    #[must_use]
    pub fn line(&self) -> Option<String> {
        let line = |client: &SocketAddr, text: &str| Some(format!("{}: {text}", canonical_address(*client)));
        let named =
            |client: &SocketAddr, name: &ForeignText| format!("{} ({name})", canonical_address(*client));
        match self {
            Self::Begun { client, name } => Some(format!("{}: measuring", named(client, name))),
            Self::Waiting { client, position } => {
                line(client, &format!("waiting in the queue, position {position}"))
            }
            Self::Held { client, name } => {
                Some(format!("{}: coordinator connected; other clients wait", named(client, name)))
            }
            Self::Asked { client, target } => {
                line(client, &format!("coordinates a run from this host to {target}"))
            }
            Self::SettingsChanged { client, in_force } => {
                let one = |setting: &SettingInForce| {
                    let of =
                        setting.interface.as_ref().map_or_else(String::new, |name| format!(" of {name}"));
                    format!("{}{of}: {}, before {}", setting.setting, setting.now, setting.found)
                };
                let all: Vec<String> = in_force.iter().map(one).collect();
                let all = if all.is_empty() { "no setting".to_owned() } else { all.join("; ") };
                line(client, &format!("settings changed for its runs: {all}"))
            }
            Self::Ended { client, trouble } => trouble.as_ref().and_then(|why| line(client, why.as_str())),
            Self::Foreign { client, why } => line(client, &format!("refused: {why}")),
            Self::OutOfFiles { why, allowed } => Some(format!(
                "{why}: this server may have {allowed} open files, and new clients wait until some are closed; \
                 raise the limit (ulimit -n, LimitNOFILE= of a service), or admit fewer clients \
                 (--limit-clients)"
            )),
            Self::ListeningForResponsiveness(address) => Some(responsiveness_text(*address)),
            Self::Listening(_) | Self::SettingsRestored { .. } | Self::Measured { .. } => None,
        }
    }
}

/// Where a server listens.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ListeningAt {
    /// The address; `::` or `0.0.0.0` for all addresses of the host.
    address: IpAddr,
    /// The port.
    port: u16,
}

fn listening<S: Serializer>(address: &SocketAddr, serializer: S) -> Result<S::Ok, S::Error> {
    ListeningAt { address: address.ip(), port: address.port() }.serialize(serializer)
}

/// The address of an IPv4 client of a dual-stack socket, in IPv4 form.
fn plain<S: Serializer>(client: &SocketAddr, serializer: S) -> Result<S::Ok, S::Error> {
    SocketAddr::new(client.ip().to_canonical(), client.port()).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_units::Bitrate;
    use serde_json::{json, to_value};

    /// The form that programs read from `linerate serve --json`.
    #[test]
    fn events_are_objects_with_a_name() {
        let json = |event: ServerEvent| to_value(event).unwrap();
        let client: SocketAddr = "[::ffff:192.0.2.7]:40000".parse().unwrap();
        assert_eq!(
            json(ServerEvent::Listening("[::]:5201".parse().unwrap())),
            json!({ "event": "listening", "address": "::", "port": 5201 })
        );
        assert_eq!(
            json(ServerEvent::Begun { client, name: "a".into() }),
            json!({ "event": "begun", "client": "192.0.2.7:40000", "name": "a" })
        );
        let flow = FlowOutcome {
            name: "upload".into(),
            bitrate: Bitrate::from_bps(94e6),
            transactions_per_second: None,
            verdict: None,
        };
        assert_eq!(
            json(ServerEvent::Measured { client, flows: vec![flow] }),
            json!({
                "event": "measured", "client": "192.0.2.7:40000",
                "flows": [{ "name": "upload", "bitrate_bps": 94e6 }]
            })
        );
        assert_eq!(
            json(ServerEvent::Ended { client, trouble: None }),
            json!({ "event": "ended", "client": "192.0.2.7:40000", "error": null })
        );
        let restored = Restored { put_back: vec!["MTU 1500".to_owned()], left: Vec::new() };
        assert_eq!(
            json(ServerEvent::SettingsRestored { client, restored }),
            json!({
                "event": "settings_restored", "client": "192.0.2.7:40000", "put_back": ["MTU 1500"], "left": []
            })
        );
        assert_eq!(
            json(ServerEvent::OutOfFiles { why: "too many".to_owned(), allowed: 1024 }),
            json!({ "event": "out_of_files", "why": "too many", "allowed": 1024 })
        );
    }
}
