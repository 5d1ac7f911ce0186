//! What both roles and all tests share: the settings, the printer, and the pending outputs.

use std::collections::VecDeque;

use linerate_model::{SocketKnobs, TestSpec};
use linerate_units::{Bitrate, Bytes};

use super::report::Iperf2Report;
use super::settings::Iperf2Settings;
use super::wire::TestHeader;
use crate::stand_in::{LinkOptions, Output, Transport};

/// The settings, the printer, and the pending outputs.
#[derive(Debug)]
pub(super) struct OutputQueue {
    pub(super) settings: Iperf2Settings,
    pub(super) report: Iperf2Report,
    pub(super) outputs: VecDeque<Output>,
    pub(super) over: bool,
}

impl OutputQueue {
    pub(super) fn new(settings: Iperf2Settings) -> Self {
        Self { report: Iperf2Report::new(settings.clone()), settings, outputs: VecDeque::new(), over: false }
    }

    pub(super) fn put(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

    pub(super) fn print(&mut self, text: String) {
        if !text.is_empty() {
            self.put(Output::Print(text));
        }
    }

    pub(super) fn print_error(&mut self, text: String) {
        self.put(Output::PrintError(text));
    }

    /// Prints the warnings about the command line.
    pub(super) fn warn(&mut self) {
        let warnings = std::mem::take(&mut self.settings.warnings);
        if !warnings.is_empty() {
            self.print_error(warnings);
        }
    }

    pub(super) fn exit(&mut self, code: i32) {
        if !self.over {
            self.over = true;
            self.put(Output::Exit(code));
        }
    }

    /// Options of a link; a window sets both socket buffers.
    pub(super) fn options(&self, udp: bool) -> LinkOptions {
        let settings = &self.settings;
        LinkOptions {
            transport: if udp { Transport::Udp } else { Transport::Tcp },
            local: settings.bind,
            device: settings.device.clone(),
            ipv4: settings.ipv4,
            ipv6: settings.ipv6,
            snd_buf: settings.window,
            rcv_buf: settings.window,
            mss: settings.mss.filter(|_| !udp),
            congestion: settings.congestion.clone().filter(|_| !udp),
            tos: settings.tos,
            ttl: settings.ttl,
            dont_route: settings.local_only,
            no_delay: settings.no_delay && !udp,
            ..LinkOptions::default()
        }
    }

    pub(super) fn sockets(&self) -> SocketKnobs {
        let settings = &self.settings;
        SocketKnobs {
            window: settings.window.map(Bytes::new),
            mss: settings.mss,
            congestion: settings.congestion.clone().map(Into::into),
            tos: settings.tos,
            no_delay: settings.no_delay,
            ..SocketKnobs::default()
        }
    }

    /// The specification of a test.
    pub(super) fn spec(&self, udp: bool, streams: usize, rate: Option<u64>) -> TestSpec {
        let mut spec = TestSpec::default();
        spec.traffic.udp = udp;
        spec.traffic.no_latency = true;
        spec.traffic.streams = u32::try_from(streams).unwrap_or(u32::MAX);
        spec.traffic.length = Some(Bytes::new(u64::from(self.settings.length_for(udp))));
        spec.traffic.rate = rate.and_then(|rate| Bitrate::from_bps(rate as f64));
        spec.socket = self.sockets();
        spec
    }
}

/// The amount that a header requests: bytes per connection, or a time in hundredths of a second.
pub(super) fn amount_of(header: &TestHeader) -> super::settings::Iperf2Amount {
    use super::settings::Iperf2Amount;
    if header.amount < 0 {
        let hundredths = u64::from(header.amount.unsigned_abs());
        Iperf2Amount::Time(linerate_units::Span::from_ms(hundredths * 10))
    } else {
        // The top bit is cleared on the wire, so larger amounts cannot be requested.
        Iperf2Amount::Bytes(u64::from(header.amount.unsigned_abs()))
    }
}
