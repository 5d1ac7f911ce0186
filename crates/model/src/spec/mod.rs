//! What to measure: one documented field per setting.
//!
//! The doc comment of a field is its help text on the command line and in the reference; its serialized name
//! contains the unit.

mod checked;
mod dscp;
mod host;
mod multicast;
mod socket;
mod sweep;
mod traffic;
mod transactions;

use std::fmt;

use linerate_units::{Bitrate, Bytes, Span};
use serde::{Deserialize, Serialize};

pub use checked::CheckedSpec;
pub use dscp::{Dscp, DscpError};
pub use host::HostKnobs;
pub use socket::{SendMethod, SocketKnobs};
pub use sweep::{MessageMode, SizeList, SizeListError, Sweep, TrialSequence};
pub use traffic::{Direction, StopAfter, Traffic, Transport, Variation};
pub use transactions::{Transactions, Workload};

/// One test: what to send, over which sockets, by which hosts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TestSpec {
    /// What to send, how much and how fast.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub traffic: Traffic,
    /// Settings of the sockets.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub socket: SocketKnobs,
    /// Settings of the hosts.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub host: HostKnobs,
    /// Requests and responses instead of a stream of data.
    #[cfg_attr(feature = "clap", command(flatten))]
    #[serde(skip_serializing_if = "Transactions::is_default")]
    pub transactions: Transactions,
    /// A sweep over message sizes instead of timed flows; absent in a plain test.
    #[cfg_attr(feature = "clap", arg(skip))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sweep: Option<Sweep>,
}

/// A specification that contradicts itself or requests something impossible. Names the setting and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecError {
    /// The setting, as on the command line.
    pub knob: &'static str,
    /// What is wrong with its value.
    pub trouble: String,
    /// What to give instead.
    pub remedy: String,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.knob, self.trouble, self.remedy)
    }
}

impl std::error::Error for SpecError {}

/// Set-up of one phase, and the end in which the rest of its data arrives: what a phase usually takes besides its
/// traffic.
const PHASE_OVERHEAD: Span = Span::from_ms(400);

impl TestSpec {
    /// Duration of the idle latency measurement: a fifth of the test, at least 100 ms and at most 2 s.
    #[must_use]
    pub fn idle_time(&self) -> Span {
        if !self.probes_latency() {
            return Span::ZERO;
        }
        Span::from_ns(self.traffic.measured().as_ns() / 5).min(Span::from_secs(2)).max(Span::from_ms(100))
    }

    /// Whether probes measure latency. The latency of transactions is a result of their own, and probes would disturb
    /// it.
    #[must_use]
    pub fn probes_latency(&self) -> bool {
        !self.traffic.no_latency && !self.host.no_sampling && !self.transactions.are_made()
    }

    /// Whether it sets how bytes leave: by which method, in bursts, or with options that earlier versions do not know.
    #[must_use]
    pub fn shapes_sending(&self) -> bool {
        let socket = &self.socket;
        let options = socket.quick_ack || socket.fast_open || socket.zerocopy;
        let values = socket.notsent_lowat.is_some() || socket.busy_poll.is_some() || socket.io.is_some();
        options || values || self.traffic.burst_period.is_some()
    }

    /// Whether small segments are sent at once. A request that waits for an acknowledgement would measure the
    /// acknowledgement.
    #[must_use]
    pub fn sends_at_once(&self) -> bool {
        self.socket.no_delay || self.transactions.are_made()
    }

    /// The directions, phase after phase; simultaneous directions share one phase. The client of a sweep and of
    /// transactions begins, in one phase.
    #[must_use]
    pub fn phases(&self) -> Vec<Vec<Direction>> {
        if self.sweep.is_some() || self.transactions.are_made() {
            vec![vec![Direction::Upload]]
        } else {
            self.traffic.phases()
        }
    }

    /// Longest block, datagram or request of this test.
    #[must_use]
    pub fn longest_block(&self) -> Bytes {
        if self.transactions.are_made() {
            self.transactions.request(self.traffic.udp)
        } else {
            self.traffic.longest_block()
        }
    }

    /// Checks whether a flow of this test can have blocks, datagrams or requests of `length`.
    ///
    /// # Errors
    /// The flow cannot have this length.
    pub fn check_length(&self, length: Bytes) -> Result<(), SpecError> {
        if !self.transactions.are_made() {
            return self.traffic.check_length(length);
        }
        let request = self.transactions.request(self.traffic.udp);
        if request == length {
            return Ok(());
        }
        let trouble = format!("a flow with requests of {} does not match the request", length.exact());
        let remedy = format!("give requests of {}", request.exact());
        Err(SpecError { knob: "--request-size", trouble, remedy })
    }

    /// When the sender stops, for the given block length. Requests count as blocks.
    #[must_use]
    pub fn stop_after(&self, length: Bytes) -> StopAfter {
        match self.transactions.requests {
            Some(requests) => StopAfter::Bytes(Bytes::new(requests.saturating_mul(length.get()))),
            None => self.traffic.stop_after(length),
        }
    }

    /// Whether the test ends after a time, instead of an amount.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        let amount = [self.traffic.bytes.map(Bytes::get), self.traffic.blocks, self.transactions.requests];
        amount.iter().all(Option::is_none)
    }

    /// Usual duration of one phase, from its set-up to its end; `None` if it depends on the network.
    #[must_use]
    pub fn phase_time(&self) -> Option<Span> {
        if let Some(sweep) = &self.sweep {
            return Some(sweep.longest() + PHASE_OVERHEAD);
        }
        let block = self.traffic.length.unwrap_or(Bytes::new(0));
        let traffic = match self.stop_after(block) {
            StopAfter::TimeNs(time) => time,
            StopAfter::Bytes(bytes) if bytes > Bytes::new(0) => {
                // All streams share the amount, and each offers the rate.
                let streams = f64::from(self.traffic.streams);
                Bitrate::from_bps(self.traffic.offered()?.bps() * streams)?.time_for(bytes)?
            }
            StopAfter::Bytes(_) => return None,
        };
        Some(traffic + PHASE_OVERHEAD)
    }

    /// Usual duration of the test from its first connection to its result; `None` if it depends on the network.
    #[must_use]
    pub fn expected_time(&self) -> Option<Span> {
        if self.sweep.is_some() {
            return self.phase_time();
        }
        Some(self.idle_time() + self.phase_time()?.saturating_mul(self.phases().len() as u64))
    }

    /// A sweep over message sizes. Small messages are sent at once, and no probes run at the same time.
    #[must_use]
    pub fn of_sweep(sweep: Sweep, socket: SocketKnobs, host: HostKnobs) -> Self {
        let mut spec = Self { socket, host, sweep: Some(sweep), ..Self::default() };
        spec.prepare_sweep();
        spec
    }

    /// Sets what a sweep needs, if this is one: Nagle's algorithm would delay small messages, and probes would be in
    /// their way.
    pub fn prepare_sweep(&mut self) {
        if self.sweep.is_some() {
            (self.traffic.no_latency, self.socket.no_delay) = (true, true);
        }
    }

    /// The specification of another test on the same path.
    #[must_use]
    pub fn varied(&self, by: &Variation) -> Self {
        let (traffic, socket) = (self.traffic.varied(by), self.socket.varied(by.udp));
        Self { traffic, socket, host: self.host.clone(), ..Self::default() }
    }

    /// Checks for values that no host can use.
    ///
    /// # Errors
    /// The first setting that is out of range or contradicts another.
    pub fn check(&self) -> Result<(), SpecError> {
        self.traffic.check()?;
        self.socket.check(&self.traffic)?;
        self.transactions.check(&self.traffic, &self.socket)?;
        self.sweep.as_ref().map_or(Ok(()), |sweep| sweep.check(&self.traffic, &self.socket))
    }

    /// Checks for values that only concern the client, which a server does not check.
    ///
    /// # Errors
    /// The first setting that this end cannot use.
    pub fn check_client(&self) -> Result<(), SpecError> {
        if self.host.link == Some(Bitrate::ZERO) {
            let (trouble, remedy) = ("the rate must be above zero".to_owned(), "give it like 1G".to_owned());
            return Err(SpecError { knob: "--link", trouble, remedy });
        }
        let first = u32::from(self.socket.source_port.unwrap_or(0));
        let at_once = self.phases().iter().map(Vec::len).max().unwrap_or(1) as u32;
        let last = first.saturating_add(self.traffic.streams.saturating_mul(at_once)).saturating_sub(1);
        if self.socket.source_port.is_none() || (first > 0 && last <= u32::from(u16::MAX)) {
            return Ok(());
        }
        let trouble = format!("the streams would need the ports {first} to {last}, but ports end at 65535");
        Err(SpecError { knob: "--cport", trouble, remedy: "give another first port".to_owned() })
    }

    /// Checks for settings that exclude each other. The command line rejects them itself; other sources have to
    /// call this.
    ///
    /// # Errors
    /// The first pair of settings that exclude each other.
    pub fn agree(&self) -> Result<(), SpecError> {
        let (traffic, socket) = (&self.traffic, &self.socket);
        let time = (traffic.duration.is_some(), "--time");
        let amounts = [(traffic.bytes.is_some(), "--bytes"), (traffic.blocks.is_some(), "--blockcount")];
        let exclusive: [&[(bool, &'static str)]; 6] = [
            &[(traffic.upload, "--upload"), (traffic.download, "--download"), (traffic.bidir, "--bidir")],
            &[(traffic.udp, "--udp"), (traffic.mptcp, "--mptcp")],
            &[time, amounts[0], amounts[1]],
            &[(traffic.until.is_some(), "--until"), amounts[0], amounts[1]],
            &[(socket.tos.is_some(), "--tos"), (socket.dscp.is_some(), "--dscp")],
            &[(socket.ipv4, "--version4"), (socket.ipv6, "--version6")],
        ];
        for group in exclusive {
            let mut given = group.iter().filter(|(given, _)| *given).map(|(_, knob)| *knob);
            if let (Some(knob), Some(other)) = (given.next(), given.next()) {
                let trouble = format!("it cannot be combined with {other}");
                return Err(SpecError { knob, trouble, remedy: "remove one of them".to_owned() });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_takes_its_phases_and_the_idle_latency_before_them() {
        let mut spec = TestSpec::default();
        spec.traffic.duration = Some(Span::from_secs(1));
        assert_eq!(spec.idle_time(), Span::from_ms(200));
        assert_eq!(spec.expected_time(), Some(Span::from_ms(200 + 2 * 1400)));
        spec.traffic.omit = Some(Span::from_secs(2));
        spec.traffic.upload = true;
        assert_eq!(spec.expected_time(), Some(Span::from_ms(200 + 3400)));
        spec.traffic.no_latency = true;
        assert_eq!(spec.idle_time(), Span::ZERO);
        spec.traffic.bytes = Some(Bytes::new(1 << 20));
        assert_eq!(spec.expected_time(), None);
        // 1 MB by two streams of 4 Mb/s takes a second.
        spec.traffic.bytes = Some(Bytes::new(1_000_000));
        (spec.traffic.rate, spec.traffic.streams) = (Bitrate::from_bps(4e6), 2);
        assert_eq!(spec.expected_time(), Some(Span::from_ms(1400)));
    }

    fn knob(change: impl FnOnce(&mut TestSpec)) -> &'static str {
        let mut spec = TestSpec::default();
        change(&mut spec);
        spec.check().unwrap_err().knob
    }

    #[test]
    fn the_default_is_sound() {
        assert_eq!(TestSpec::default().check(), Ok(()));
    }

    #[test]
    fn what_cannot_be_is_named() {
        assert_eq!(knob(|s| s.traffic.streams = 0), "--parallel");
        assert_eq!(knob(|s| s.traffic.streams = 10_001), "--parallel");
        assert_eq!(knob(|s| s.traffic.duration = Some(Span::ZERO)), "--time");
        assert_eq!(knob(|s| s.traffic.duration = Some(Span::from_secs(90_000))), "--time");
        assert_eq!(knob(|s| s.traffic.bytes = Some(Bytes::new(0))), "--bytes");
        assert_eq!(knob(|s| s.traffic.blocks = Some(0)), "--blockcount");
        assert_eq!(knob(|s| s.traffic.omit = Some(Span::from_secs(601))), "--omit");
        assert_eq!(knob(|s| s.traffic.interval = Span::from_ms(9)), "--interval");
        assert_eq!(knob(|s| s.traffic.length = Some(Bytes::new(0))), "--length");
        assert_eq!(knob(|s| s.socket.mss = Some(87)), "--set-mss");
        assert_eq!(knob(|s| s.socket.mss = Some(32_768)), "--set-mss");
        assert_eq!(knob(|s| s.socket.window = Some(Bytes::new(1 << 31))), "--window");
        assert_eq!(
            knob(|s| {
                s.traffic.udp = true;
                s.traffic.length = Some(Bytes::new(65_508));
            }),
            "--length"
        );
        assert_eq!(
            knob(|s| {
                s.traffic.udp = true;
                s.socket.zerocopy = true;
            }),
            "--zerocopy"
        );
    }

    #[test]
    fn knobs_that_exclude_each_other_are_named() {
        let pair = |change: fn(&mut TestSpec)| {
            let mut spec = TestSpec::default();
            assert_eq!(spec.agree(), Ok(()));
            change(&mut spec);
            let error = spec.agree().unwrap_err();
            (error.knob, error.trouble.rsplit(' ').next().unwrap_or_default().to_owned())
        };
        let expected = |one: &'static str, other: &str| (one, other.to_owned());
        let both = |spec: &mut TestSpec| (spec.traffic.download, spec.traffic.bidir) = (true, true);
        assert_eq!(pair(both), expected("--download", "--bidir"));
        let amount = |spec: &mut TestSpec| {
            spec.traffic.bytes = Some(Bytes::new(1));
            spec.traffic.duration = Some(Span::from_secs(1));
        };
        assert_eq!(pair(amount), expected("--time", "--bytes"));
        let classes =
            |spec: &mut TestSpec| (spec.socket.tos, spec.socket.dscp) = (Some(0), Dscp::try_from(0).ok());
        assert_eq!(pair(classes), expected("--tos", "--dscp"));
    }

    #[test]
    fn serialised_names_carry_units_and_unknown_ones_do_no_harm() {
        let mut spec = TestSpec::default();
        spec.traffic.duration = Some(Span::from_secs(3));
        let json = serde_json::to_value(&spec).unwrap();
        assert_eq!(json["traffic"]["duration_ns"], 3_000_000_000_u64);
        let back: TestSpec =
            serde_json::from_str(r#"{"traffic":{"streams":4,"from_the_future":1}}"#).unwrap();
        assert_eq!(back.traffic.streams, 4);
        assert_eq!(back.traffic.interval, Span::from_secs(1));
    }
}
