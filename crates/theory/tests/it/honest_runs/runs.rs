//! Honest runs, computed: a path, what it carries, and what programs would print.

use linerate_model::Direction;
use linerate_model::import::{Claim, ClaimScope, Figure, ForeignTest, Quantity};
use linerate_model::metrics::Side;
use linerate_theory::claims::Context;
use linerate_theory::framing::IpVersion;
use linerate_units::Span;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

const LINKS: [f64; 12] = [10e6, 100e6, 1e9, 2.5e9, 5e9, 10e9, 25e9, 40e9, 50e9, 100e9, 200e9, 400e9];
const MTUS: [f64; 7] = [1500.0, 1500.0, 9000.0, 1280.0, 4470.0, 6000.0, 16_128.0];

/// Print format of a program.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Print {
    /// All digits, as JSON.
    Exact,
    /// Three digits and a decimal unit; bytes in binary units: iperf.
    ThreeDigits,
    /// Whole bytes, times truncated to hundredths, the rate in hundredths of 2^20 bytes: ttcp.
    Hundredths,
    /// Four decimals: nuttcp.
    FourDecimals,
}

/// A simulated run.
#[derive(Debug, Clone)]
pub(crate) struct SimulatedRun {
    pub(crate) seed: u64,
    pub(crate) mtu_bytes: f64,
    pub(crate) v6: bool,
    pub(crate) timestamps: bool,
    pub(crate) udp: bool,
    pub(crate) streams: u32,
    pub(crate) seconds: f64,
    /// Rate that the path carries by its own clocks, bit/s.
    pub(crate) ceiling_bps: f64,
    /// Rate by the clocks of the hosts, which are wrong by at most 100 ppm, as is the link's, bit/s.
    pub(crate) rate_bps: f64,
    /// Bytes in socket buffers when the sender stopped.
    pub(crate) buffered_bytes: f64,
    pub(crate) print: Print,
    /// Properties that a user states.
    pub(crate) context: Context,
}

impl SimulatedRun {
    pub(crate) fn of(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let link_bps = *LINKS.choose(&mut random).unwrap();
        let mtu_bytes = *MTUS.choose(&mut random).unwrap();
        let (v6, timestamps) = (random.random_bool(0.3), random.random_bool(0.7));
        let udp = random.random_bool(0.2);
        let streams = *[1, 1, 2, 4, 8].choose(&mut random).unwrap();
        let rtt_s = 10f64.powf(random.random_range(-4.7..-0.5));
        let window_bytes =
            (!udp && random.random_bool(0.5)).then(|| 2f64.powf(random.random_range(14.0..30.0)).floor());
        let seconds = 10f64.powf(random.random_range(-0.3..2.0));
        let headers = if v6 { 40.0 } else { 20.0 } + if udp { 8.0 } else { 20.0 };
        let headers = headers + if timestamps && !udp { 12.0 } else { 0.0 };
        let link_ceiling = link_bps * (mtu_bytes - headers) / (mtu_bytes + 38.0);
        let window_ceiling = window_bytes.map(|window| window * 8.0 / rtt_s * f64::from(streams));
        let ceiling_bps = window_ceiling.map_or(link_ceiling, |window| window.min(link_ceiling));
        // Only the link's clock changes the link's ceiling; the host's clock changes both.
        let clocks =
            (1.0 + random.random_range(-1e-4..1e-4)) * (1.0 + random.random_range(-0.99e-4..0.99e-4));
        let used = if random.random_bool(0.5) { 1.0 } else { random.random_range(0.01..1.0) };
        let rate_bps = ceiling_bps * clocks * used;
        let buffered_bytes = random.random_range(0.0..1.0) * (4_194_304.0 * f64::from(streams)).min(6e7);
        let print = *[Print::Exact, Print::ThreeDigits, Print::Hundredths, Print::FourDecimals]
            .choose(&mut random)
            .unwrap();
        let context = Context {
            link_bps: Some(link_bps),
            mtu_bytes: (mtu_bytes > 9000.0 || random.random_bool(0.8)).then_some(mtu_bytes),
            ip_version: random.random_bool(0.5).then_some(if v6 { IpVersion::V6 } else { IpVersion::V4 }),
            timestamps: random.random_bool(0.5).then_some(timestamps),
            udp,
            streams: Some(streams),
            rtt_s: Some(rtt_s),
            window_bytes,
            ..Context::default()
        };
        Self {
            seed,
            mtu_bytes,
            v6,
            timestamps,
            udp,
            streams,
            seconds,
            ceiling_bps,
            rate_bps,
            buffered_bytes: if udp { 0.0 } else { buffered_bytes },
            print,
            context,
        }
    }

    /// All properties, with nothing left open.
    pub(crate) fn stated(&self) -> Context {
        Context {
            mtu_bytes: Some(self.mtu_bytes),
            ip_version: Some(if self.v6 { IpVersion::V6 } else { IpVersion::V4 }),
            timestamps: Some(self.timestamps),
            ..self.context.clone()
        }
    }

    /// Output of a program: intervals and totals of both ends, for each stream and for their sum.
    pub(crate) fn printed(&self) -> ForeignTest {
        let mut random = StdRng::seed_from_u64(self.seed ^ 0x5eed);
        let mut claims = Vec::new();
        let whole = self.seconds.floor() as u32;
        let (mut read, mut written) = (0.0_f64, 0.0_f64);
        for second in 0..whole.min(20) {
            let arrived = self.rate_bps / 8.0 * f64::from(second + 1);
            // A reader is late by up to the content of its buffer, a writer is ahead by up to that of the
            // sender's.
            let now = (arrived - random.random_range(0.0..1e6)).max(read);
            let ahead = (arrived + random.random_range(0.0..1.0) * self.buffered_bytes).max(written);
            for (side, bytes) in [(Side::Receiver, now - read), (Side::Sender, ahead - written)] {
                let (begin, end) = (f64::from(second), f64::from(second + 1));
                claims.push(Claim { side: Some(side), ..self.line(bytes, begin, end, ClaimScope::Interval) });
            }
            (read, written) = (now, ahead);
        }
        let bytes = (self.rate_bps * self.seconds / 8.0).floor();
        let each = self.whole((bytes / f64::from(self.streams)).floor());
        for stream in 0..self.streams {
            for (side, more) in
                [(Side::Sender, self.buffered_bytes / f64::from(self.streams)), (Side::Receiver, 0.0)]
            {
                let line = self.line((each + more).floor(), 0.0, self.seconds, ClaimScope::Total);
                claims.push(Claim { side: Some(side), stream: Some(stream + 5), ..line });
            }
        }
        for (side, more) in
            [(Side::Sender, (self.buffered_bytes / f64::from(self.streams)).floor()), (Side::Receiver, 0.0)]
        {
            let sum = (each + more).floor() * f64::from(self.streams);
            let line = self.line(sum, 0.0, self.seconds, ClaimScope::Total);
            claims.push(Claim { side: Some(side), ..line });
        }
        ForeignTest { claims, ..ForeignTest::default() }
    }

    fn datagram_bytes(&self) -> f64 {
        self.mtu_bytes - if self.v6 { 48.0 } else { 28.0 }
    }

    /// Datagrams are received as a whole.
    fn whole(&self, bytes: f64) -> f64 {
        let payload = self.datagram_bytes();
        if self.udp { ((bytes + 0.5) / payload).floor() * payload } else { bytes }
    }

    /// One line, as this program prints it.
    pub(crate) fn line(&self, bytes: f64, begin: f64, end: f64, scope: ClaimScope) -> Claim {
        let seconds = end - begin;
        let payload = self.datagram_bytes();
        let bytes = self.whole(bytes);
        let rate = bytes * 8.0 / seconds;
        let figure =
            |quantity, (value, step): (f64, f64)| Figure { quantity, value, step, printed: "".into() };
        let mut figures = match self.print {
            Print::Exact => vec![
                figure(Quantity::Bytes, (bytes.floor(), 0.0)),
                figure(Quantity::Seconds, (seconds, 0.0)),
                figure(Quantity::Bitrate, (bytes.floor() * 8.0 / seconds, 0.0)),
            ],
            Print::ThreeDigits => vec![
                figure(Quantity::Bytes, digits(bytes, 1024.0)),
                figure(Quantity::Seconds, rounded(seconds, 0.01)),
                figure(Quantity::Bitrate, digits(rate, 1000.0)),
            ],
            Print::Hundredths => vec![
                figure(Quantity::Bytes, (bytes.floor(), 0.0)),
                figure(Quantity::Seconds, ((seconds * 100.0).floor() / 100.0, 0.01)),
                figure(Quantity::Bitrate, rounded(rate, 8_388_608.0 / 100.0)),
                figure(Quantity::Calls, ((bytes / 8192.0).ceil(), 0.0)),
                figure(Quantity::MessageSize, (8192.0, 0.0)),
                figure(Quantity::CallRate, rounded((bytes / 8192.0).ceil() / seconds, 0.01)),
            ],
            Print::FourDecimals => vec![
                figure(Quantity::Bytes, rounded(bytes, 104.8576)),
                figure(Quantity::Seconds, rounded(seconds, 0.01)),
                figure(Quantity::Bitrate, rounded(rate, 100.0)),
            ],
        };
        if self.udp {
            let packets = (bytes / payload).round();
            figures.push(figure(Quantity::Packets, (packets, 0.0)));
            figures.push(figure(Quantity::Lost, (0.0, 0.0)));
            figures.push(figure(Quantity::LossRatio, (0.0, 0.001)));
        }
        Claim {
            scope,
            direction: Some(Direction::Upload),
            start: Span::from_secs_f64((begin * 100.0).round() / 100.0),
            end: Span::from_secs_f64((end * 100.0).round() / 100.0),
            figures,
            ..Claim::default()
        }
    }
}

/// Three digits below a unit's thousand, as `%4.2f`, `%4.1f` and `%4.0f` of iperf's `unit_snprintf`.
fn digits(value: f64, thousand: f64) -> (f64, f64) {
    let mut unit = 1.0;
    while value / unit >= thousand && unit < thousand.powi(4) {
        unit *= thousand;
    }
    let step = match value / unit {
        shown if shown < 9.995 => unit / 100.0,
        shown if shown < 99.95 => unit / 10.0,
        _ => unit,
    };
    rounded(value, step)
}

fn rounded(value: f64, step: f64) -> (f64, f64) {
    ((value / step).round() * step, step)
}
