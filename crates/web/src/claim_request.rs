//! The request for a check: figures as the command line takes them, and the printed result of a program.

use linerate_compat::import;
use linerate_model::metrics::Side;
use linerate_report::check::{CheckInput, CheckReport};
use linerate_theory::claims::{AcceptanceRule, Context};
use linerate_theory::encapsulation::Encapsulation;
use linerate_theory::framing::IpVersion;
use linerate_theory::typed::{
    TypedFigure, TypedFigures, TypedValueError, describes_path_only, link_rate, probability,
};
use linerate_units::{Bitrate, Bytes, Ratio, above_zero};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::problem::{HttpProblem, INVALID_SETTING};
use crate::typed_value::{TypedValue, congestion, exclude, read, require, tunnel, whole};

/// The name of a pasted text in the document.
const PASTED: &str = "text";

/// A text of this size is read in some milliseconds.
const LONG_TEXT_BYTES: usize = 32 << 10;

/// Figures to check, as the options of `linerate check` state them, and the path. A property of the path that is not
/// given may have any value that makes a figure possible.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ClaimRequest {
    /// The printed result of iperf3, iperf, ttcp, NTttcp, NetPIPE, nuttcp, netperf or linerate.
    text: String,
    /// The program that printed it, such as `iperf3`, if it cannot be detected.
    tool: Option<String>,
    /// The name of an acceptance rule against which every test is measured: `gigabit`.
    acceptance: Option<String>,
    /// Payload per second, such as `966.5M`.
    rate: Option<TypedValue>,
    /// Packets per second.
    pps: Option<TypedValue>,
    /// Payload bytes of the whole test.
    bytes: Option<TypedValue>,
    /// Duration of the whole test, such as `10s`.
    duration: Option<TypedValue>,
    /// Packets of the whole test.
    packets: Option<TypedValue>,
    /// Lost packets.
    lost: Option<TypedValue>,
    /// Retransmitted segments.
    retransmits: Option<TypedValue>,
    /// Congestion window in bytes.
    cwnd: Option<TypedValue>,
    /// Read or write calls.
    calls: Option<TypedValue>,
    /// Busy share of the CPUs, such as `23%`.
    cpu: Option<TypedValue>,
    /// The end that counted the typed figures: `sender` or `receiver`.
    counted_by: Option<TypedValue>,
    /// Rate of the slowest link, such as `1G`.
    link: Option<TypedValue>,
    /// MTU of the link in bytes, 68 to 65535.
    mtu: Option<TypedValue>,
    /// Payload of a full segment in bytes, after options.
    mss: Option<TypedValue>,
    /// Round-trip time without queueing, such as `21ms`.
    rtt: Option<TypedValue>,
    /// Distance between the ends in kilometres, one way; needs `rtt`.
    distance: Option<TypedValue>,
    /// Loss probability per packet, such as `0.01%`.
    loss: Option<TypedValue>,
    /// IPv6 instead of IPv4.
    ipv6: bool,
    /// VLAN tags in each frame, 0 to 4.
    vlan: Option<TypedValue>,
    /// Tunnel on the path, such as `gre`.
    encap: Option<TypedValue>,
    /// Parallel connections, 1 to 1000000.
    streams: Option<TypedValue>,
    /// `reno`, `cubic` or `bbr`.
    congestion: Option<TypedValue>,
    /// TCP without timestamps.
    no_timestamps: bool,
    /// Window of each connection in bytes; needs `rtt`.
    window: Option<TypedValue>,
    /// UDP instead of TCP.
    udp: bool,
    /// Bytes per call, or payload of a datagram.
    length: Option<TypedValue>,
}

impl ClaimRequest {
    /// Whether reading the text takes long enough to delay others.
    pub(crate) fn is_long(&self) -> bool {
        self.text.len() > LONG_TEXT_BYTES
    }

    /// The figures with their judgements.
    ///
    /// # Errors
    /// A field that is wrong, or there is nothing to check.
    pub(crate) fn report(&self) -> Result<CheckReport, HttpProblem> {
        let (figures, context) = (self.figures()?, self.context()?);
        self.agree(&figures, &context)?;
        let has_text = !self.text.trim().is_empty();
        let typed = figures.test().filter(|test| !has_text || !describes_path_only(test));
        if typed.is_none() && !has_text {
            let text = "nothing to check: paste a result, or give a figure such as a rate of 941M";
            return Err(HttpProblem::new(INVALID_SETTING, text).at("rate"));
        }
        if !context.leaves_payload() {
            let text = "it leaves no payload after the headers; give a larger one";
            return Err(HttpProblem::new(INVALID_SETTING, text).at("mtu"));
        }
        let rule = self.rule()?;
        let inputs = if has_text { vec![self.pasted()?] } else { Vec::new() };
        let report = CheckReport::to(typed, inputs, &context);
        Ok(match rule {
            Some(rule) => report.accepted_by(&rule),
            None => report,
        })
    }

    fn rule(&self) -> Result<Option<AcceptanceRule>, HttpProblem> {
        let Some(name) = self.acceptance.as_deref().filter(|name| !name.is_empty()) else { return Ok(None) };
        let names = AcceptanceRule::ALL.map(|rule| rule.name).join(", ");
        let unknown = || format!("there is no such acceptance rule; give one of {names}");
        let found = AcceptanceRule::named(name);
        found.map(Some).ok_or_else(|| HttpProblem::new(INVALID_SETTING, unknown()).at("acceptance"))
    }

    /// The text, read by the program's parser.
    fn pasted(&self) -> Result<CheckInput, HttpProblem> {
        let tool = self.tool.as_deref().filter(|tool| !tool.is_empty());
        if tool.is_some_and(|tool| !import::TOOLS.contains(&tool)) {
            let text =
                format!("no results of such a program are read; give one of {}", import::TOOLS.join(", "));
            return Err(HttpProblem::new(INVALID_SETTING, text).at("tool"));
        }
        let name = PASTED.to_owned();
        Ok(match import::read(&import::text(self.text.as_bytes()), tool) {
            Ok(readings) => CheckInput { name, failure: None, readings },
            Err(error) => CheckInput { name, failure: Some(error.to_string()), readings: Vec::new() },
        })
    }

    fn figures(&self) -> Result<TypedFigures, HttpProblem> {
        let distance = read("distance", self.distance.as_ref(), TypedFigure::count)?;
        let (mss, rtt) = (figure("mss", &self.mss, TypedFigure::bytes)?, self.round_trip()?);
        let length = figure("length", &self.length, TypedFigure::bytes)?;
        Ok(TypedFigures {
            rate: figure("rate", &self.rate, TypedFigure::rate)?,
            pps: figure("pps", &self.pps, TypedFigure::count)?,
            bytes: figure("bytes", &self.bytes, TypedFigure::bytes)?,
            duration: figure("duration", &self.duration, TypedFigure::time)?,
            packets: figure("packets", &self.packets, TypedFigure::count)?,
            lost: figure("lost", &self.lost, TypedFigure::count)?,
            retransmits: figure("retransmits", &self.retransmits, TypedFigure::count)?,
            cwnd: figure("cwnd", &self.cwnd, TypedFigure::bytes)?,
            calls: figure("calls", &self.calls, TypedFigure::count)?,
            length: length.filter(|_| !self.udp),
            cpu: figure("cpu", &self.cpu, TypedFigure::share)?,
            mss,
            rtt: rtt.filter(|_| distance.is_some()),
            mtu: self.mtu()?,
            side: read("counted_by", self.counted_by.as_ref(), side)?,
        })
    }

    fn round_trip(&self) -> Result<Option<TypedFigure>, HttpProblem> {
        figure("rtt", &self.rtt, TypedFigure::round_trip)
    }

    fn mtu(&self) -> Result<Option<u32>, HttpProblem> {
        read("mtu", self.mtu.as_ref(), whole(68..=65_535))
    }

    fn context(&self) -> Result<Context, HttpProblem> {
        let value = |typed: Option<TypedFigure>| typed.map(|typed| typed.value);
        let tunnel = read("encap", self.encap.as_ref(), tunnel)?;
        let length = figure("length", &self.length, TypedFigure::bytes)?;
        let distance = figure("distance", &self.distance, TypedFigure::count)?;
        Ok(Context {
            link_bps: read("link", self.link.as_ref(), link_rate)?.map(Bitrate::bps),
            mtu_bytes: self.mtu()?.map(f64::from),
            ip_version: self.ipv6.then_some(IpVersion::V6),
            timestamps: self.no_timestamps.then_some(false),
            tags: read("vlan", self.vlan.as_ref(), whole(0..=4))?.unwrap_or_default(),
            encapsulation: tunnel.filter(|tunnel| *tunnel != Encapsulation::None),
            mss_bytes: value(figure("mss", &self.mss, TypedFigure::bytes)?),
            udp: self.udp,
            datagram_bytes: value(length.filter(|_| self.udp)),
            streams: read("streams", self.streams.as_ref(), whole(1..=1_000_000))?,
            rtt_s: value(self.round_trip()?),
            window_bytes: read("window", self.window.as_ref(), above_zero::<Bytes>)?
                .map(|window| window.get() as f64),
            loss: read("loss", self.loss.as_ref(), probability)?.map(Ratio::get),
            congestion: read("congestion", self.congestion.as_ref(), congestion)?,
            distance_m: value(distance).map(|kilometres| kilometres * 1000.0),
            ..Context::default()
        })
    }

    /// Refuses fields that exclude or need each other.
    fn agree(&self, figures: &TypedFigures, context: &Context) -> Result<(), HttpProblem> {
        let has_rtt = context.rtt_s.is_some();
        require("distance", context.distance_m.is_some(), "rtt", has_rtt)?;
        require("window", context.window_bytes.is_some(), "rtt", has_rtt)?;
        let excluded = [
            ("congestion", context.congestion.is_some()),
            ("no_timestamps", self.no_timestamps),
            ("window", context.window_bytes.is_some()),
            ("mss", figures.mss.is_some()),
        ];
        if self.udp { exclude("udp", &excluded) } else { Ok(()) }
    }
}

fn figure(
    field: &str,
    value: &Option<TypedValue>,
    parse: fn(&str) -> Result<TypedFigure, TypedValueError>,
) -> Result<Option<TypedFigure>, HttpProblem> {
    read(field, value.as_ref(), parse)
}

fn side(text: &str) -> Result<Side, &'static str> {
    match text {
        "sender" => Ok(Side::Sender),
        "receiver" => Ok(Side::Receiver),
        _ => Err("give sender or receiver"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(json: &str) -> Result<CheckReport, HttpProblem> {
        serde_json::from_str::<ClaimRequest>(json).unwrap().report()
    }

    #[test]
    fn each_mistake_is_at_its_field() {
        for (json, wanted) in [
            ("{}", "rate"),
            (r#"{"text":"  "}"#, "rate"),
            (r#"{"rate":"941"}"#, "rate"),
            (r#"{"rate":"941M","duration":"-1s"}"#, "duration"),
            (r#"{"rate":"941M","mtu":68,"encap":"vxlan6"}"#, "mtu"),
            (r#"{"rate":"941M","distance":100}"#, "rtt"),
            (r#"{"rate":"941M","window":"1M"}"#, "rtt"),
            (r#"{"rate":"941M","udp":true,"mss":1448}"#, "mss"),
            (r#"{"rate":"941M","counted_by":"both"}"#, "counted_by"),
            (r#"{"rate":"941M","acceptance":"terabit"}"#, "acceptance"),
            (r#"{"text":"x","tool":"ping"}"#, "tool"),
        ] {
            let problem = report(json).unwrap_err();
            assert_eq!(problem.field.as_deref(), Some(wanted), "{json}: {problem:?}");
        }
    }

    #[test]
    fn a_text_that_nobody_wrote_is_a_failure_of_the_text() {
        let found = report(r#"{"text":"the network is slow"}"#).unwrap();
        assert_eq!(found.failures().count(), 1);
        assert_eq!(found.counts().all(), 0);
    }

    #[test]
    fn figures_that_describe_the_path_of_a_text_are_no_claim() {
        let text = "[  5]   0.00-10.00  sec  1.10 GBytes   941 Mbits/sec    0             sender";
        let json = serde_json::json!({ "text": text, "tool": "iperf3", "mss": 1448 }).to_string();
        assert_eq!(report(&json).unwrap().inputs.len(), 1);
        let json = serde_json::json!({ "text": text, "tool": "iperf3", "rate": "941M" }).to_string();
        assert_eq!(report(&json).unwrap().inputs.len(), 2);
    }
}
