//! The request for an envelope: a path as the command line describes it.

use linerate_theory::encapsulation::Encapsulation;
use linerate_theory::envelope::{
    ArrivingBurst, Congestion, EnvelopeAnswer, Hosts, Path, PathDescription, PathError, Questions, answers,
};
use linerate_theory::framing::IpVersion;
use linerate_theory::typed::{
    amount, between, deadline, kilometres, link_rate, positive_rate, probability, processor, round_trip, slot,
};
use linerate_units::{Bitrate, Bytes, above_zero};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::problem::{HttpProblem, INVALID_SETTING};
use crate::typed_value::{TypedValue, congestion, exclude, read, require, tunnel, whole};

/// A path, as the options of `linerate envelope` describe it. Only `link` is required.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct EnvelopeRequest {
    /// Rate of the slowest link, such as `1G`, or a range such as `1G..10G`; for a LAG, the rate of one member link.
    #[schemars(required, with = "TypedValue")]
    link: Option<TypedValue>,
    /// MTU of the link in bytes, below any tunnel, 68 to 65535 [default: 1500].
    mtu: Option<TypedValue>,
    /// Round-trip time without queueing, such as `21ms` or `20ms..25ms`.
    rtt: Option<TypedValue>,
    /// Loss probability per packet, such as `0.01%` or `0..0.01%`; needs `rtt`.
    loss: Option<TypedValue>,
    /// IPv6 instead of IPv4.
    ipv6: bool,
    /// VLAN tags in each frame, 0 to 4.
    vlan: Option<TypedValue>,
    /// Tunnel on the path, such as `gre`.
    encap: Option<TypedValue>,
    /// Links of a LAG, 1 to 256.
    lag: Option<TypedValue>,
    /// Length of the path in kilometres.
    distance: Option<TypedValue>,
    /// Parallel connections, 1 to 1000000 [default: 1].
    streams: Option<TypedValue>,
    /// `reno`, `cubic` or `bbr` [default: cubic].
    congestion: Option<TypedValue>,
    /// TCP without timestamps.
    no_timestamps: bool,
    /// Window of each connection in bytes, such as `4M`; needs `rtt`.
    window: Option<TypedValue>,
    /// Largest receive buffer in bytes; needs `rtt`.
    rmem: Option<TypedValue>,
    /// Largest send buffer in bytes; needs `rtt`.
    wmem: Option<TypedValue>,
    /// UDP instead of TCP.
    udp: bool,
    /// Payload of a datagram in bytes; needs `udp`.
    length: Option<TypedValue>,
    /// CPU of the slower host: clock rate, cycles per packet and per byte, cores, such as `3G:10000:2:4`.
    cpu: Option<TypedValue>,
    /// PCI Express slot: transfers per second of each lane, and lanes, such as `8G:4`.
    pcie: Option<TypedValue>,
    /// Rate of the slower disk, such as `500MB/s`.
    disk: Option<TypedValue>,
    /// An amount to transfer in a time, such as `8h:2TB`.
    need: Option<TypedValue>,
    /// Payload per second for which windows, buffers and losses are computed; needs `rtt`.
    target: Option<TypedValue>,
    /// Bytes whose transfer time is computed.
    transfer: Option<TypedValue>,
    /// Offered payload per second.
    offered: Option<TypedValue>,
    /// Bytes of a burst whose queue is computed; needs `burst_rate`.
    burst: Option<TypedValue>,
    /// Rate at which the burst arrives; needs `burst`.
    burst_rate: Option<TypedValue>,
}

impl EnvelopeRequest {
    /// What the path can carry.
    ///
    /// # Errors
    /// A field that is wrong, missing, or excluded by another one.
    pub(crate) fn answers(&self) -> Result<Vec<EnvelopeAnswer>, HttpProblem> {
        let (path, questions) = (self.path()?, self.questions()?);
        self.agree()?;
        answers(&path, &questions).map_err(|error| self.problem(&error))
    }

    fn path(&self) -> Result<PathDescription, HttpProblem> {
        let bytes = |field, value: &Option<TypedValue>| {
            read(field, value.as_ref(), above_zero::<Bytes>)
                .map(|found| found.map(|bytes| bytes.get() as f64))
        };
        let link = read("link", self.link.as_ref(), between(link_rate))?;
        let link = link.ok_or_else(|| {
            HttpProblem::new(INVALID_SETTING, "give the rate of the slowest link, such as 1G").at("link")
        })?;
        let exact = Path {
            mtu_bytes: f64::from(read("mtu", self.mtu.as_ref(), whole(68..=65_535))?.unwrap_or(1500)),
            ip_version: if self.ipv6 { IpVersion::V6 } else { IpVersion::V4 },
            timestamps: !self.no_timestamps,
            tags: read("vlan", self.vlan.as_ref(), whole(0..=4))?.unwrap_or_default(),
            encapsulation: read("encap", self.encap.as_ref(), tunnel)?.unwrap_or(Encapsulation::None),
            rmem_max_bytes: bytes("rmem", &self.rmem)?,
            wmem_max_bytes: bytes("wmem", &self.wmem)?,
            window_bytes: bytes("window", &self.window)?,
            streams: read("streams", self.streams.as_ref(), whole(1..=1_000_000))?.unwrap_or(1),
            lag_links: self.lag_links()?.unwrap_or(1),
            congestion: read("congestion", self.congestion.as_ref(), congestion)?
                .unwrap_or(Congestion::Cubic),
            udp: self.udp,
            datagram_bytes: bytes("length", &self.length)?,
            offered_bps: read("offered", self.offered.as_ref(), above_zero::<Bitrate>)?.map(Bitrate::bps),
            hosts: Hosts {
                cpu: read("cpu", self.cpu.as_ref(), processor)?,
                bus_bps: read("pcie", self.pcie.as_ref(), slot)?,
                disk_bps: None,
            },
            ..Path::gigabit()
        };
        Ok(PathDescription {
            exact,
            link,
            rtt: read("rtt", self.rtt.as_ref(), between(round_trip))?,
            loss: read("loss", self.loss.as_ref(), between(probability))?,
            disk: read("disk", self.disk.as_ref(), between(positive_rate))?,
        })
    }

    fn lag_links(&self) -> Result<Option<u32>, HttpProblem> {
        read("lag", self.lag.as_ref(), whole(1..=256))
    }

    fn questions(&self) -> Result<Questions, HttpProblem> {
        let burst = read("burst", self.burst.as_ref(), above_zero::<Bytes>)?;
        let rate = read("burst_rate", self.burst_rate.as_ref(), link_rate)?;
        require("burst", burst.is_some(), "burst_rate", rate.is_some())?;
        require("burst_rate", rate.is_some(), "burst", burst.is_some())?;
        Ok(Questions {
            transfer: read("transfer", self.transfer.as_ref(), amount)?,
            burst: burst.zip(rate).map(|(bytes, rate)| ArrivingBurst { bytes, rate }),
            need: read("need", self.need.as_ref(), deadline)?,
            target: read("target", self.target.as_ref(), link_rate)?,
            lag: self.lag_links()?.is_some(),
            distance_km: read("distance", self.distance.as_ref(), kilometres)?,
        })
    }

    /// Refuses fields that exclude each other.
    fn agree(&self) -> Result<(), HttpProblem> {
        if self.udp {
            return exclude(
                "udp",
                &[
                    ("loss", is_given(&self.loss)),
                    ("congestion", is_given(&self.congestion)),
                    ("no_timestamps", self.no_timestamps),
                    ("window", is_given(&self.window)),
                    ("rmem", is_given(&self.rmem)),
                    ("wmem", is_given(&self.wmem)),
                    ("target", is_given(&self.target)),
                ],
            );
        }
        require("length", is_given(&self.length), "udp", false)
    }

    /// A path from which nothing can be computed, at the first field that is given and may be to blame.
    fn problem(&self, error: &PathError) -> HttpProblem {
        let given = [
            ("window", &self.window),
            ("rmem", &self.rmem),
            ("wmem", &self.wmem),
            ("cpu", &self.cpu),
            ("pcie", &self.pcie),
            ("disk", &self.disk),
        ];
        let names = error.properties();
        let named = given.iter().find(|(name, value)| names.contains(name) && is_given(value));
        let field = named.map(|(name, _)| *name).or_else(|| names.first().copied());
        let problem = HttpProblem::new(INVALID_SETTING, error);
        match field {
            Some(field) => problem.at(field),
            None => problem,
        }
    }
}

/// Whether a value is given and not blank.
fn is_given(value: &Option<TypedValue>) -> bool {
    !matches!(value.as_ref(), Some(TypedValue::Text(text)) if text.trim().is_empty()) && value.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(json: &str) -> Option<String> {
        let request: EnvelopeRequest = serde_json::from_str(json).unwrap();
        request.answers().err().and_then(|problem| problem.field)
    }

    #[test]
    fn each_mistake_is_at_its_field() {
        for (json, wanted) in [
            ("{}", "link"),
            (r#"{"link":" "}"#, "link"),
            (r#"{"link":"1"}"#, "link"),
            (r#"{"link":"1G","mtu":60}"#, "mtu"),
            (r#"{"link":"1G","mtu":68,"encap":"vxlan6"}"#, "mtu"),
            (r#"{"link":"1G","rtt":"20"}"#, "rtt"),
            (r#"{"link":"1G","rtt":"25ms..20ms"}"#, "rtt"),
            (r#"{"link":"1G","loss":"0.1%"}"#, "rtt"),
            (r#"{"link":"1G","window":"1M"}"#, "rtt"),
            (r#"{"link":"1G","rtt":"1ms","loss":"100%"}"#, "loss"),
            (r#"{"link":"1G","rtt":"1ms","loss":"30%","congestion":"bbr"}"#, "loss"),
            (r#"{"link":"1G","congestion":"warp"}"#, "congestion"),
            (r#"{"link":"1G","encap":"hole"}"#, "encap"),
            (r#"{"link":"1G","udp":true,"rtt":"1ms","window":"1M"}"#, "window"),
            (r#"{"link":"1G","length":"1000"}"#, "udp"),
            (r#"{"link":"1G","udp":true,"ipv6":true,"length":1472}"#, "length"),
            (r#"{"link":"1G","burst":"1M"}"#, "burst_rate"),
            (r#"{"link":"1G","burst_rate":"10G"}"#, "burst"),
            (r#"{"link":"1G","lag":0}"#, "lag"),
            (r#"{"link":"1G","cpu":"3G"}"#, "cpu"),
        ] {
            assert_eq!(field(json).as_deref(), Some(wanted), "{json}");
        }
    }

    #[test]
    fn a_blank_form_with_a_link_is_a_path() {
        assert_eq!(field(r#"{"link":"1G..10G","rtt":"","window":"","udp":false}"#), None);
        assert_eq!(field(r#"{"link":1000000000,"mtu":9000,"streams":"4","rtt":"0.1ms"}"#), None);
    }
}
