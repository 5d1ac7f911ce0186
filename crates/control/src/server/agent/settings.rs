//! Checks, sets and restores host settings for a coordinator while the dialogue continues.

use std::net::IpAddr;
use std::sync::Mutex;

use linerate_proto::agent::{SettingInForce, SettingsAnswer, SettingsOrder, SettingsRequest};
use linerate_sock::iface;
use linerate_sock::open::{AllowedIpVersion, resolve};
use linerate_sock::thread::locked;

use crate::host_settings::{self, Changes};
use crate::restored::Restored;
use crate::server::Shared;

/// Any port will do, because only the route is looked up.
const ANY_PORT: u16 = 5201;

/// The settings that one coordinator has changed on this host.
#[derive(Debug, Default)]
pub(super) struct CoordinatorSettings(Mutex<Option<Changes>>);

impl CoordinatorSettings {
    /// Executes a request; `local` is the local address of the connection to the coordinator. May take seconds.
    pub(super) fn carry_out(
        &self,
        request: &SettingsRequest,
        local: Option<IpAddr>,
        shared: &Shared,
    ) -> SettingsAnswer {
        match request {
            SettingsRequest::Check(order) => {
                let mut answer = SettingsAnswer { in_force: self.in_force(), troubles: Vec::new() };
                answer.troubles.extend(self.begin(shared).err().map(Into::into));
                let wrong = setting_requests(order, local).err().into_iter().flatten();
                answer.troubles.extend(wrong.map(Into::into));
                self.end_if_unused();
                answer
            }
            SettingsRequest::Apply(order) => {
                let done = setting_requests(order, local).and_then(|requested| {
                    self.begin(shared).map_err(|why| vec![why])?;
                    locked(&self.0).as_mut().map_or(Ok(()), |changes| changes.apply(&requested))
                });
                let mut troubles = done.err().unwrap_or_default();
                if !troubles.is_empty() {
                    troubles.extend(self.restore().left);
                }
                SettingsAnswer {
                    in_force: self.in_force(),
                    troubles: troubles.into_iter().map(Into::into).collect(),
                }
            }
            SettingsRequest::Restore => SettingsAnswer {
                in_force: Vec::new(),
                troubles: self.restore().left.into_iter().map(Into::into).collect(),
            },
        }
    }

    /// Restores all changed settings.
    pub(super) fn restore(&self) -> Restored {
        let changes = locked(&self.0).take();
        changes.map(Changes::finish).unwrap_or_default()
    }

    /// Takes the lock for changing settings on this host, unless this coordinator already has it.
    fn begin(&self, shared: &Shared) -> Result<(), String> {
        let mut changes = locked(&self.0);
        if changes.is_some() {
            return Ok(());
        }
        let folder = shared.config.settings.as_deref();
        let folder = folder.ok_or_else(|| "this agent has no folder for its undo journal".to_owned())?;
        let (begun, _) = Changes::begin(folder)?;
        *changes = Some(begun.guarded_by(shared.config.guardians.clone()));
        Ok(())
    }

    /// Releases the lock if nothing was changed, for example after a check.
    fn end_if_unused(&self) {
        let mut changes = locked(&self.0);
        if changes.as_ref().is_some_and(|changes| changes.in_force().next().is_none()) {
            drop(changes.take().map(Changes::finish));
        }
    }

    fn in_force(&self) -> Vec<SettingInForce> {
        let changes = locked(&self.0);
        let in_force = changes.iter().flat_map(Changes::in_force);
        in_force
            .map(|(setting, interface, found, now)| SettingInForce {
                setting: setting.name().into(),
                interface: interface.map(Into::into),
                found: found.into(),
                now: now.into(),
            })
            .collect()
    }
}

/// The checked settings of an order, each with its interface.
fn setting_requests(
    order: &SettingsOrder,
    local: Option<IpAddr>,
) -> Result<host_settings::SettingRequests, Vec<String>> {
    host_settings::check(&order.values, || interface(order, local))
}

/// The interface that the order names; else the one on the route to its peers; else the one of `local`.
fn interface(order: &SettingsOrder, local: Option<IpAddr>) -> Result<String, String> {
    if let Some(name) = &order.interface {
        return Ok(name.to_string());
    }
    let remedy = "name the interface: interface = \"…\"";
    let mut found: Vec<(String, String)> = Vec::new();
    for host in &order.towards {
        let way = resolve(host, ANY_PORT, AllowedIpVersion::Any)
            .and_then(|addresses| addresses.first().map(|address| iface::towards(*address)).transpose());
        match way {
            Ok(Some(link)) => found.push((link.name, host.to_string())),
            Ok(None) => return Err(format!("{host} has no address; {remedy}")),
            Err(error) => return Err(format!("no route to {host}: {}; {remedy}", error.source)),
        }
    }
    if let (true, Some(local)) = (found.is_empty(), local) {
        let link =
            iface::of_local_address(local).map_err(|error| format!("{error}: {}; {remedy}", error.source))?;
        return Ok(link.name);
    }
    let Some((first, host)) = found.first() else {
        return Err(format!(
            "there is no other host to find the \
                                                                       interface; {remedy}"
        ));
    };
    match found.iter().find(|(name, _)| name != first) {
        None => Ok(first.clone()),
        Some((other, far)) => Err(format!(
            "{host} is reached through {first} and {far} through {other}; \
                                           {remedy}"
        )),
    }
}
