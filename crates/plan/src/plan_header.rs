//! The header of a plan's log.

use std::collections::BTreeSet;
use std::net::IpAddr;

use linerate_model::{
    EVENT_SCHEMA, PlanAxis, PlanFile, PlanFlow, PlanHost, PlanPoint, PlanStart, PlanValue, World,
};

use crate::axis::Axis;
use crate::kind::SettingValue;
use crate::plan::{Host, Plan};
use crate::point::PointError;

/// Facts for the header that the caller knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanHeaderFacts {
    /// Wall-clock time, RFC 3339.
    pub started_at: String,
    /// Where its runs take place.
    pub world: World,
    /// Version of linerate.
    pub linerate: String,
    /// Settings of the command line.
    pub set: Vec<String>,
}

impl Plan {
    /// The first event of the plan's log.
    ///
    /// # Errors
    /// A point that cannot be executed.
    pub fn open(&self, opening: PlanHeaderFacts) -> Result<PlanStart, PointError> {
        let point = |number| {
            let id = self.point(number)?.id.to_string();
            Ok(PlanPoint { id: id.into(), values: self.grid.choice(number).unwrap_or_default() })
        };
        let lab = opening.world == World::Lab;
        Ok(PlanStart {
            schema: EVENT_SCHEMA.into(),
            started_at: opening.started_at.into(),
            world: opening.world,
            linerate: opening.linerate.into(),
            name: self.name.clone().into(),
            about: self.about.clone().into(),
            notes: self
                .notes
                .iter()
                .map(|(name, note)| (name.as_str().into(), note.as_str().into()))
                .collect(),
            files: self
                .files
                .iter()
                .map(|file| PlanFile { name: file.name.clone().into(), text: file.text.clone().into() })
                .collect(),
            set: opening.set.into_iter().map(Into::into).collect(),
            hosts: self.used_hosts().map(|host| header_host(host, lab)).collect(),
            topology: self.lab.as_ref().filter(|_| lab).map(|lab| lab.topology.clone()).map(Into::into),
            flows: self
                .flows
                .iter()
                .map(|flow| PlanFlow {
                    name: flow.name.clone().into(),
                    from: flow.from.clone().into(),
                    to: flow.to.clone().into(),
                    cross_traffic: flow.cross_traffic,
                })
                .collect(),
            axes: self.axes.iter().map(header_axis).collect(),
            method: self.method.map(|method| method.name().into()),
            search: self.search.as_ref().map(|search| search.text.clone()).map(Into::into),
            points: (0..self.grid.len()).map(point).collect::<Result<_, _>>()?,
            repeats: self.least_repeats(),
            order: self.order.name().into(),
            seed: self.seed,
            estimate: self.estimate()?.time,
        })
    }

    /// Hosts that are client or server of a flow, in the order of the plan.
    pub fn used_hosts(&self) -> impl Iterator<Item = &Host> {
        let used =
            |host: &&Host| self.flows.iter().any(|flow| flow.from == host.name || flow.to == host.name);
        self.hosts.iter().filter(used)
    }

    /// The multicast groups to which flows send at any of its points.
    ///
    /// # Errors
    /// A point that cannot be executed.
    pub fn multicast_groups(&self) -> Result<BTreeSet<IpAddr>, PointError> {
        let mut groups = BTreeSet::new();
        for number in 0..self.grid.len() {
            let tests = self.point(number)?.tests;
            groups.extend(tests.iter().filter_map(|test| test.spec.traffic.multicast));
        }
        Ok(groups)
    }
}

fn header_host(host: &Host, lab: bool) -> PlanHost {
    let address = host.address.clone().filter(|_| !lab);
    PlanHost { name: host.name.clone().into(), address: address.map(Into::into) }
}

fn header_axis(axis: &Axis) -> PlanAxis {
    let unit = axis.values.iter().find_map(|value| match value.setting {
        SettingValue::Whole(_) | SettingValue::Share(_) => Some("1"),
        SettingValue::Time(_) => Some("ns"),
        SettingValue::Rate(_) => Some("bit/s"),
        SettingValue::Memory(_) => Some("bytes"),
        SettingValue::Default | SettingValue::Flag(_) | SettingValue::Dscp(_) | SettingValue::Text(_) => None,
    });
    let value = |value: &crate::AxisValue| PlanValue {
        label: value.label.clone().into(),
        number: value.setting.number(),
    };
    PlanAxis {
        name: axis.name.clone().into(),
        unit: unit.map(Into::into),
        values: axis.values.iter().map(value).collect(),
    }
}
