//! The requests of a client: its header, its plan for the archive, and its flows.

use linerate_model::Direction;
use linerate_units::Timestamp;

use super::{Iperf2Client, RUN};
use crate::iperf2::VERSION;
use crate::iperf2::datagram::Generation;
use crate::iperf2::load::Iperf2Load;
use crate::iperf2::settings::{Iperf2Amount, Iperf2Mode, Iperf2Rate, Iperf2Settings};
use crate::iperf2::wire::{Extension, TestHeader, burst_head};
use crate::stand_in::{FlowId, Link, Output, Planned};

impl Iperf2Client {
    pub(super) fn plan(&mut self) {
        let settings = &self.queue.settings;
        let mut spec = self.queue.spec(settings.udp, self.streams.len(), settings.offered());
        match settings.amount {
            Iperf2Amount::Time(_) => spec.traffic.duration = settings.amount.limited_time(),
            Iperf2Amount::Bytes(each) => {
                let all = each.saturating_mul(self.streams.len() as u64);
                spec.traffic.bytes = Some(linerate_units::Bytes::new(all));
            }
        }
        let (up, down) = ((FlowId(0), Direction::Upload), (FlowId(1), Direction::Download));
        let flows = match settings.mode {
            Iperf2Mode::Plain => vec![up],
            Iperf2Mode::Reverse => vec![down],
            Iperf2Mode::Dual | Iperf2Mode::Tradeoff | Iperf2Mode::FullDuplex => vec![up, down],
        };
        spec.traffic.upload = settings.mode == Iperf2Mode::Plain;
        spec.traffic.download = settings.mode == Iperf2Mode::Reverse;
        spec.traffic.bidir = matches!(settings.mode, Iperf2Mode::Dual | Iperf2Mode::FullDuplex);
        let turns = if settings.mode == Iperf2Mode::Tradeoff { 2 } else { 1 };
        let expected = settings.amount.limited_time().map(|time| time.saturating_mul(turns));
        let (tool, peer) = ("iperf2", self.peer.clone());
        let planned = Planned { run: RUN, tool, peer, link: Link(0), client: true, spec, flows, expected };
        self.queue.put(Output::Plan(Box::new(planned)));
    }

    pub(super) fn load(&self, sends: bool, star: bool) -> Iperf2Load {
        let settings = &self.queue.settings;
        let shared = settings.mode == Iperf2Mode::FullDuplex;
        let head = match (settings.compatible, settings.udp) {
            (true, _) => Vec::new(),
            (false, true) => self.header.write_udp(),
            (false, false) if settings.trip_times => burst_head(&self.header, settings.length_for(false)),
            (false, false) => self.header.write_tcp(),
        };
        // A server that sends on the client's connection begins with its own header.
        let echoed = settings.trip_times && !settings.udp && !sends && star;
        Iperf2Load {
            flow: FlowId(u16::from(!sends)),
            run: RUN,
            udp: settings.udp,
            sends,
            star,
            direction: if sends { Direction::Upload } else { Direction::Download },
            length: settings.length_for(settings.udp),
            head,
            amount: Some(settings.amount).filter(|_| sends),
            offered: settings.offered(),
            generation: Generation::New,
            answers: settings.mode != Iperf2Mode::Reverse && !shared && !settings.no_udp_fin,
            shared,
            fq_rate: settings.fq_rate,
            trip_times: settings.trip_times && (sends || star),
            skipped: if echoed { self.header.write_tcp().len() as u64 } else { 0 },
        }
    }
}

/// The header of a client.
pub(super) fn header_of(settings: &Iperf2Settings) -> TestHeader {
    let amount = match settings.amount {
        Iperf2Amount::Time(time) => -i32::try_from(time.as_ns() / 10_000_000).unwrap_or(i32::MAX),
        Iperf2Amount::Bytes(bytes) => (bytes & 0x7fff_ffff) as i32,
    };
    let back = matches!(settings.mode, Iperf2Mode::Dual | Iperf2Mode::Tradeoff);
    let port = if back { settings.listen_port.unwrap_or(settings.port) } else { settings.port };
    let rate = match settings.rate {
        Some(Iperf2Rate::Bits(rate) | Iperf2Rate::Packets(rate)) => rate,
        None if settings.udp => settings.offered().unwrap_or(0),
        None => 0,
    };
    // The datagrams of 2.1.8 tell it in a way that contradicts their own length; its server works without it.
    let starts_later = settings.start_at.is_some() && !settings.udp;
    let full_duplex = settings.mode == Iperf2Mode::FullDuplex;
    let extension = Extension {
        peer_detect: settings.peer_detect && !settings.udp,
        reverse: settings.mode == Iperf2Mode::Reverse,
        full_duplex,
        trip_times: settings.trip_times,
        no_udp_fin: settings.udp && (settings.no_udp_fin || full_duplex),
        in_packets: matches!(settings.rate, Some(Iperf2Rate::Packets(_))),
        // 2.1.8 sends a rate without this flag.
        rate_set: false,
        version: VERSION,
        tos: u16::from(settings.tos.unwrap_or(0)),
        rate,
        starts_later,
        start: match settings.start_at.filter(|_| starts_later) {
            Some(at) => Some(super::super::settings::parts(at)),
            None => settings.trip_times.then(|| settings.wall(Timestamp::START)),
        },
        fq_rate: settings.fq_rate,
        isochronous: false,
    };
    TestHeader {
        threads: settings.parallel.unwrap_or(1),
        port: u32::from(port),
        length: settings.length.unwrap_or(0),
        window_or_rate: 0,
        amount,
        back,
        at_once: settings.mode == Iperf2Mode::Dual,
        extension: Some(extension).filter(|_| !settings.compatible),
    }
}
