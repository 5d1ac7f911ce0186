//! Settings of the sockets.

use std::net::IpAddr;

use linerate_units::{Bytes, Span};
use serde::{Deserialize, Serialize};

use super::{Dscp, SpecError, Traffic};

use crate::foreign_text::ForeignText;

/// Settings of the sockets.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SocketKnobs {
    /// Fix the socket buffers at both ends to this size, which disables the kernel's own tuning
    #[cfg_attr(feature = "clap", arg(short = 'w', long, value_name = "BYTES", help_heading = "Sockets"))]
    #[serde(rename = "window_bytes", skip_serializing_if = "Option::is_none")]
    pub window: Option<Bytes>,
    /// Request this maximum segment size in bytes (TCP); the effective value is reported
    #[cfg_attr(
        feature = "clap",
        arg(short = 'M', long = "set-mss", value_name = "BYTES", help_heading = "Sockets")
    )]
    #[serde(rename = "mss_bytes", skip_serializing_if = "Option::is_none")]
    pub mss: Option<u32>,
    /// Congestion control at the sender, for example cubic or bbr (TCP)
    #[cfg_attr(feature = "clap", arg(short = 'C', long, value_name = "NAME", help_heading = "Sockets"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<ForeignText>,
    /// Type-of-service byte of every packet: decimal, 0x hexadecimal or 0 octal
    #[cfg_attr(
        feature = "clap",
        arg(short = 'S', long, value_name = "BYTE", value_parser = parse_tos, conflicts_with = "dscp", help_heading = "Sockets")
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tos: Option<u8>,
    /// DSCP of every packet: 0 to 63 or a name such as ef, cs1, af41
    #[cfg_attr(feature = "clap", arg(long, value_name = "CLASS", help_heading = "Sockets"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dscp: Option<Dscp>,
    /// Send small segments at once (TCP_NODELAY)
    #[cfg_attr(feature = "clap", arg(short = 'N', long, help_heading = "Sockets"))]
    pub no_delay: bool,
    /// Acknowledge what arrives at once instead of waiting for more (TCP_QUICKACK)
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Sockets"))]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub quick_ack: bool,
    /// Keep at most this much in the socket that was not sent yet (TCP_NOTSENT_LOWAT)
    #[cfg_attr(feature = "clap", arg(long, value_name = "BYTES", help_heading = "Sockets"))]
    #[serde(rename = "notsent_lowat_bytes", skip_serializing_if = "Option::is_none")]
    pub notsent_lowat: Option<Bytes>,
    /// Open data connections with TCP Fast Open; both hosts need net.ipv4.tcp_fastopen=3
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Sockets"))]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fast_open: bool,
    /// Let waiting calls poll the network device for this time, for example 50us (SO_BUSY_POLL)
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME", help_heading = "Sockets"))]
    #[serde(rename = "busy_poll_ns", skip_serializing_if = "Option::is_none")]
    pub busy_poll: Option<Span>,
    /// Use IPv4 only
    #[cfg_attr(
        feature = "clap",
        arg(short = '4', long = "version4", conflicts_with = "ipv6", help_heading = "Sockets")
    )]
    pub ipv4: bool,
    /// Use IPv6 only
    #[cfg_attr(feature = "clap", arg(short = '6', long = "version6", help_heading = "Sockets"))]
    pub ipv6: bool,
    /// Bind to this local address
    #[cfg_attr(
        feature = "clap",
        arg(short = 'B', long = "bind", value_name = "ADDRESS", help_heading = "Sockets")
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bind_address: Option<IpAddr>,
    /// Bind to this network device (SO_BINDTODEVICE)
    #[cfg_attr(feature = "clap", arg(long = "bind-dev", value_name = "DEVICE", help_heading = "Sockets"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bind_device: Option<ForeignText>,
    /// Local port of the first data stream; the others use the ports after it
    #[cfg_attr(feature = "clap", arg(long = "cport", value_name = "PORT", help_heading = "Sockets"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_port: Option<u16>,
    /// How the sender passes bytes to the kernel (TCP): copy (the default), splice, sendfile, zerocopy (MSG_ZEROCOPY),
    /// or auto for the fastest on that host
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "METHOD", conflicts_with = "zerocopy", help_heading = "Sockets")
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io: Option<SendMethod>,
    /// Send without copying, by the fastest method of the sender's host (TCP)
    #[cfg_attr(feature = "clap", arg(short = 'Z', long, help_heading = "Sockets"))]
    #[serde(deserialize_with = "switch_or_method", skip_serializing_if = "std::ops::Not::not")]
    pub zerocopy: bool,
    /// Let the receiving kernel discard the bytes instead of copying them to the program; the result says so
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Sockets"))]
    pub skip_rx_copy: bool,
}

/// A way to pass bytes to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SendMethod {
    /// The fastest of copy, splice and sendfile, found by a short comparison on the sender's host.
    Auto,
    /// send: the kernel copies from the program's buffer.
    Copy,
    /// vmsplice of a fixed buffer into a pipe, splice from there to the socket.
    Splice,
    /// sendfile from an anonymous file.
    Sendfile,
    /// send with MSG_ZEROCOPY; the kernel reports whether it copied after all.
    #[serde(alias = "msg")]
    Zerocopy,
}

impl SendMethod {
    /// The methods that a sender compares when it may choose, the usual one first.
    #[must_use]
    pub const fn candidates(may_copy: bool) -> &'static [Self] {
        if may_copy { &[Self::Copy, Self::Splice, Self::Sendfile] } else { &[Self::Splice, Self::Sendfile] }
    }

    /// The fastest of these methods with their rates, in any unit. The first one is kept unless another is clearly
    /// faster: by more than the rates of a quiet host differ from measurement to measurement.
    #[must_use]
    pub fn fastest(rates: &[(Self, f64)]) -> Option<Self> {
        const CLEARLY_FASTER: f64 = 1.1;
        let (usual, rest) = rates.split_first()?;
        let fastest = rest.iter().max_by(|a, b| a.1.total_cmp(&b.1));
        let better = fastest.filter(|(_, rate)| *rate > CLEARLY_FASTER * usual.1);
        Some(better.unwrap_or(usual).0)
    }

    /// Its name on the command line and in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Copy => "copy",
            Self::Splice => "splice",
            Self::Sendfile => "sendfile",
            Self::Zerocopy => "zerocopy",
        }
    }
}

/// Reads a switch. Earlier versions had a method in its place.
fn switch_or_method<'de, D: serde::Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum SwitchOrMethod {
        Switch(bool),
        Method(Option<SendMethod>),
    }
    Ok(match SwitchOrMethod::deserialize(from)? {
        SwitchOrMethod::Switch(on) => on,
        SwitchOrMethod::Method(method) => method.is_some(),
    })
}

impl SocketKnobs {
    /// Whether the sender is to find the fastest method itself, and if so, whether it may copy.
    #[must_use]
    pub fn chooses(&self) -> Option<bool> {
        if self.zerocopy { Some(false) } else { (self.io == Some(SendMethod::Auto)).then_some(true) }
    }

    /// The option that chooses how bytes are sent, if one was given.
    const fn send_option(&self) -> Option<&'static str> {
        if self.zerocopy {
            Some("--zerocopy")
        } else if self.io.is_some() {
            Some("--io")
        } else {
            None
        }
    }

    /// The type-of-service byte in effect: set directly, or through the DSCP.
    #[must_use]
    pub fn tos_byte(&self) -> Option<u8> {
        self.tos.or_else(|| self.dscp.map(Dscp::tos_byte))
    }

    /// The same settings for another test on the same path: ports are chosen freely. For datagrams, TCP options
    /// are omitted and the kernel chooses the buffers.
    #[must_use]
    pub fn varied(&self, udp: bool) -> Self {
        let base = Self { source_port: None, ..self.clone() };
        if !udp {
            return base;
        }
        Self {
            window: None,
            mss: None,
            congestion: None,
            no_delay: false,
            quick_ack: false,
            notsent_lowat: None,
            fast_open: false,
            io: None,
            zerocopy: false,
            skip_rx_copy: false,
            ..base
        }
    }

    /// The settings that apply only to a stream of data, and whether they were given. The ports of connections that
    /// are opened anew have to differ.
    pub(super) fn stream_knobs(&self) -> [(bool, &'static str); 3] {
        [
            (self.send_option().is_some(), self.send_option().unwrap_or("--io")),
            (self.skip_rx_copy, "--skip-rx-copy"),
            (self.source_port.is_some(), "--cport"),
        ]
    }

    pub(super) fn check(&self, traffic: &Traffic) -> Result<(), SpecError> {
        let fail = |knob, trouble: &str, remedy: &str| {
            Err(SpecError { knob, trouble: trouble.to_owned(), remedy: remedy.to_owned() })
        };
        if self.window.is_some_and(|w| w.get() == 0 || w.get() >= 1 << 30) {
            return fail("--window", "the size is out of range", "give 1K to below 1G");
        }
        if self.mss.is_some_and(|m| !(88..=32_767).contains(&m)) {
            return fail("--set-mss", "the segment size is out of range", "give 88 to 32767 bytes");
        }
        if self.notsent_lowat.is_some_and(|bytes| bytes.get() == 0 || bytes.get() >= 1 << 30) {
            return fail("--notsent-lowat", "the size is out of range", "give 1 to below 1G");
        }
        let longest_poll = Span::from_ms(10);
        if self.busy_poll.is_some_and(|time| time < Span::from_us(1) || time > longest_poll) {
            return fail("--busy-poll", "the time is out of range", "give 1us to 10ms");
        }
        if self.fast_open && traffic.mptcp {
            return fail("--fast-open", "connections of MPTCP are opened without it", "remove it or --mptcp");
        }
        if traffic.udp {
            for (given, knob) in [
                (self.mss.is_some(), "--set-mss"),
                (self.congestion.is_some(), "--congestion"),
                (self.no_delay, "--no-delay"),
                (self.quick_ack, "--quick-ack"),
                (self.notsent_lowat.is_some(), "--notsent-lowat"),
                (self.fast_open, "--fast-open"),
                (self.send_option().is_some(), self.send_option().unwrap_or("--io")),
                (self.skip_rx_copy, "--skip-rx-copy"),
                (traffic.read_rate.is_some(), "--read-rate"),
            ] {
                if given {
                    return fail(knob, "it applies only to TCP, but the test uses UDP", "remove it or -u");
                }
            }
        }
        if self.zerocopy && self.io.is_some() {
            return fail("--zerocopy", "it chooses a method, and --io names one", "remove one of them");
        }
        let family = self.bind_address.map(|a| a.is_ipv4());
        if (self.ipv4 && family == Some(false)) || (self.ipv6 && family == Some(true)) {
            return fail("--bind", "the address has the other IP version", "remove -4 or -6");
        }
        Ok(())
    }
}

#[cfg(feature = "clap")]
fn parse_tos(text: &str) -> Result<u8, String> {
    let parsed = if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        u8::from_str_radix(hex, 16)
    } else if text.len() > 1 && text.starts_with('0') {
        u8::from_str_radix(&text[1..], 8)
    } else {
        text.parse()
    };
    parsed.map_err(|_| "give 0 to 255, for example 184, 0xb8 or 0270".to_owned())
}

#[cfg(all(test, feature = "clap"))]
mod tests {
    use super::*;

    #[test]
    fn tos_takes_three_number_systems() {
        assert_eq!(parse_tos("184"), Ok(184));
        assert_eq!(parse_tos("0xb8"), Ok(184));
        assert_eq!(parse_tos("0270"), Ok(184));
        assert!(parse_tos("256").is_err());
    }
}

#[cfg(test)]
mod method_tests {
    use super::*;

    #[test]
    fn specifications_of_earlier_versions_have_a_method_as_zerocopy() {
        let read = |json: &str| serde_json::from_str::<SocketKnobs>(json).unwrap();
        for (json, on) in
            [("\"msg\"", true), ("\"splice\"", true), ("null", false), ("true", true), ("false", false)]
        {
            let knobs = read(&format!("{{\"zerocopy\":{json}}}"));
            assert_eq!((knobs.zerocopy, knobs.io), (on, None), "{json}");
        }
        assert!(!read("{}").zerocopy);
        assert!(serde_json::from_str::<SocketKnobs>("{\"zerocopy\":\"quickly\"}").is_err());
    }

    #[test]
    fn the_usual_method_is_kept_unless_another_is_clearly_faster() {
        use SendMethod::{Copy, Sendfile, Splice};
        let fastest =
            |copy, splice, file| SendMethod::fastest(&[(Copy, copy), (Splice, splice), (Sendfile, file)]);
        assert_eq!(fastest(1.0, 2.0, 1.5), Some(Splice));
        assert_eq!(fastest(1.0, 1.5, 2.0), Some(Sendfile));
        assert_eq!(fastest(1.0, 1.05, 0.9), Some(Copy));
        assert_eq!(fastest(0.0, 0.0, 0.0), Some(Copy));
        assert_eq!(SendMethod::fastest(&[]), None);
    }

    #[test]
    fn a_method_has_one_name_on_the_command_line_and_in_json() {
        for method in [
            SendMethod::Auto,
            SendMethod::Copy,
            SendMethod::Splice,
            SendMethod::Sendfile,
            SendMethod::Zerocopy,
        ] {
            assert_eq!(serde_json::to_value(method).unwrap(), method.name());
        }
    }
}
