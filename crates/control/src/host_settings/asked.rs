//! Parses the host settings of a plan.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use linerate_model::ForeignText;
use linerate_sock::discipline::RootDiscipline;
use linerate_sock::host_setting::{HostSetting, HostSettingRequest};
use linerate_units::{Ratio, Span};

/// The settings that an agent can apply and restore, with the names that plans use.
pub const SETTINGS: [&str; 11] = [
    "mtu",
    "tso",
    "gso",
    "gro",
    "lro",
    "congestion",
    "tcp_rmem",
    "tcp_wmem",
    "qdisc",
    NETEM_DELAY,
    NETEM_LOSS,
];

const NETEM_DELAY: &str = "netem_delay";
const NETEM_LOSS: &str = "netem_loss";
/// Longest delay: a longer one would break the connection to the coordinator.
const MAX_DELAY: Span = Span::from_secs(5);

/// Parses settings, in the order in which they are to be applied.
///
/// # Errors
/// Every invalid value, with what would be valid.
pub(super) fn setting_requests(
    values: &BTreeMap<ForeignText, ForeignText>,
) -> Result<Vec<HostSettingRequest>, Vec<String>> {
    let (mut requested, mut troubles) = (Vec::new(), Vec::new());
    for (name, value) in values.iter().filter(|(name, _)| !name.starts_with("netem_")) {
        match setting_request(name, value) {
            Ok(request) => requested.push(request),
            Err(why) => troubles.push(format!("{name} = {value}: {why}")),
        }
    }
    match netem(values) {
        Ok(None) => {}
        Ok(Some(_)) if values.contains_key("qdisc") => {
            let why = "both set the root qdisc of the interface; give one of them";
            troubles.push(format!("qdisc and netem_delay or netem_loss: {why}"));
        }
        Ok(Some(netem)) => requested.push(HostSettingRequest::Discipline(netem)),
        Err(why) => troubles.push(why),
    }
    let unknown =
        values.keys().filter(|name| name.starts_with("netem_") && !SETTINGS.contains(&name.as_str()));
    troubles.extend(unknown.map(|name| format!("{name}: this agent does not have this setting")));
    requested
        .sort_by_key(|request| HostSetting::ALL.iter().position(|setting| *setting == request.setting()));
    if troubles.is_empty() { Ok(requested) } else { Err(troubles) }
}

fn setting_request(name: &str, value: &str) -> Result<HostSettingRequest, String> {
    let Some(setting) = HostSetting::named(name) else {
        return Err(
            "this agent does not have this setting; install the coordinator's version on its host".to_owned()
        );
    };
    Ok(match setting {
        HostSetting::Mtu => {
            HostSettingRequest::Mtu(value.parse().map_err(|_| "give a number of bytes".to_owned())?)
        }
        HostSetting::Tso | HostSetting::Gso | HostSetting::Gro | HostSetting::Lro => {
            HostSettingRequest::Offload(setting, value.parse().map_err(|_| "give true or false".to_owned())?)
        }
        HostSetting::Congestion => HostSettingRequest::Congestion(value.to_owned()),
        HostSetting::TcpRmem | HostSetting::TcpWmem => {
            let sizes: Result<Vec<u64>, _> = value.split_whitespace().map(str::parse).collect();
            let sizes = sizes.ok().and_then(|sizes| <[u64; 3]>::try_from(sizes).ok());
            let why = || {
                "give the smallest, default and largest size in bytes, for example 4096 131072 \
                          33554432"
                    .to_owned()
            };
            HostSettingRequest::Buffers(setting, sizes.ok_or_else(why)?)
        }
        HostSetting::RootDiscipline => {
            HostSettingRequest::Discipline(RootDiscipline::parse(value).map_err(|error| error.to_string())?)
        }
    })
}

fn netem(values: &BTreeMap<ForeignText, ForeignText>) -> Result<Option<RootDiscipline>, String> {
    let delay: Option<Span> = quantity(values, NETEM_DELAY)?;
    let loss: Option<Ratio> = quantity(values, NETEM_LOSS)?;
    if let Some(delay) = delay.filter(|delay| *delay > MAX_DELAY) {
        return Err(format!(
            "{NETEM_DELAY} = {delay}: more than {MAX_DELAY} would break the connection to the agent; give \
             less"
        ));
    }
    if let Some(loss) = loss.filter(|loss| loss.get() > 1.0) {
        return Err(format!(
            "{NETEM_LOSS} = {}: give a share of the packets, 0 to 1 or 0% to 100%",
            loss.exact()
        ));
    }
    Ok((delay.is_some() || loss.is_some()).then(|| {
        let delay = delay.map_or(Duration::ZERO, Span::as_duration);
        RootDiscipline::netem(delay, loss.map_or(0.0, Ratio::get))
    }))
}

fn quantity<V: FromStr<Err: ToString>>(
    values: &BTreeMap<ForeignText, ForeignText>,
    name: &str,
) -> Result<Option<V>, String> {
    let read =
        |text: &ForeignText| text.parse().map_err(|error: V::Err| format!("{name}: {}", error.to_string()));
    values.get(name).map(read).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(given: &[(&str, &str)]) -> BTreeMap<ForeignText, ForeignText> {
        given.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    #[test]
    fn the_words_of_a_plan_are_understood_whatever_their_order() {
        let asked = values(&[
            ("netem_delay", "25ms"),
            ("netem_loss", "1%"),
            ("tcp_rmem", "4096 131072 33554432"),
            ("mtu", "9000"),
            ("congestion", "bbr"),
            ("tso", "false"),
        ]);
        let expected = [
            HostSettingRequest::Congestion("bbr".to_owned()),
            HostSettingRequest::Buffers(HostSetting::TcpRmem, [4096, 131_072, 33_554_432]),
            HostSettingRequest::Mtu(9000),
            HostSettingRequest::Offload(HostSetting::Tso, false),
            HostSettingRequest::Discipline(RootDiscipline::netem(Duration::from_millis(25), 0.01)),
        ];
        assert_eq!(setting_requests(&asked).unwrap(), expected);
    }

    #[test]
    fn every_setting_of_the_list_has_a_value_that_is_understood() {
        let example = |name: &str| match name {
            "mtu" => "1500",
            "congestion" => "reno",
            "tcp_rmem" | "tcp_wmem" => "1 2 3",
            "qdisc" => "fq",
            "netem_delay" => "1ms",
            "netem_loss" => "1e-4",
            _ => "true",
        };
        for name in SETTINGS {
            assert_eq!(setting_requests(&values(&[(name, example(name))])).unwrap().len(), 1, "{name}");
        }
    }

    #[test]
    fn every_value_that_is_none_is_named_with_what_would_be() {
        let asked = values(&[
            ("colour", "red"),
            ("gro", "on"),
            ("mtu", "jumbo"),
            ("netem_delay", "6s"),
            ("netem_jitter", "1ms"),
            ("qdisc", "cake"),
            ("tcp_rmem", "1 2"),
        ]);
        let troubles = setting_requests(&asked).unwrap_err();
        for words in
            ["colour", "gro = on: give true or false", "bytes", "5 s", "netem_jitter", "fq_codel", "largest"]
        {
            assert!(troubles.iter().any(|trouble| trouble.contains(words)), "{words}: {troubles:#?}");
        }
        assert_eq!(troubles.len(), 7);
        let both = setting_requests(&values(&[("netem_loss", "1%"), ("qdisc", "fq")])).unwrap_err();
        assert!(both[0].contains("give one of them"), "{both:?}");
        assert!(setting_requests(&values(&[("netem_loss", "101%")])).is_err());
    }
}
